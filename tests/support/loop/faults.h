/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the kernel fail on demand: a layer between the library and weir__sys, and another around
 * rings (faults_ring.c), counts the calls of each kind and fails some.
 *
 *     faults_install();                               no other thread runs yet
 *     faults_inject(FAULT_ACCEPT4, 3, 1, EMFILE);     the third call from now on fails
 *     ...
 *     assert_int_equal(faults_injected(), 1);
 *     faults_remove();
 *
 * Fixtures call the system directly, so that only calls of the library fail. faults_errors is the
 * table of possible errors. All but installing and removing may be done on any thread.
 */
#ifndef WEIR_TEST_FAULTS_H
#define WEIR_TEST_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every call of os/system.h: constant, return type, name, parameters, arguments. */
#define FAULT_CALLS(XX)                                                                            \
    XX(SOCKET, int, socket, (int domain, int type, int protocol), (domain, type, protocol))        \
    XX(BIND, int, bind, (int fd, const struct sockaddr *address, socklen_t length),                \
       (fd, address, length))                                                                      \
    XX(LISTEN, int, listen, (int fd, int backlog), (fd, backlog))                                  \
    XX(ACCEPT4, int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags),    \
       (fd, address, length, flags))                                                               \
    XX(CONNECT, int, connect, (int fd, const struct sockaddr *address, socklen_t length),          \
       (fd, address, length))                                                                      \
    XX(SHUTDOWN, int, shutdown, (int fd, int how), (fd, how))                                      \
    XX(GETSOCKOPT, int, getsockopt, (int fd, int level, int name, void *value, socklen_t *length), \
       (fd, level, name, value, length))                                                           \
    XX(SETSOCKOPT, int, setsockopt,                                                                \
       (int fd, int level, int name, const void *value, socklen_t length),                         \
       (fd, level, name, value, length))                                                           \
    XX(GETSOCKNAME, int, getsockname, (int fd, struct sockaddr *address, socklen_t *length),       \
       (fd, address, length))                                                                      \
    XX(GETPEERNAME, int, getpeername, (int fd, struct sockaddr *address, socklen_t *length),       \
       (fd, address, length))                                                                      \
    XX(IF_NAMETOINDEX, int, if_nametoindex, (const char *name), (name))                            \
    XX(OUTQ, int, outq, (int descriptor, int *ret_bytes), (descriptor, ret_bytes))                 \
    XX(RECV, ssize_t, recv, (int fd, void *memory, size_t size, int flags),                        \
       (fd, memory, size, flags))                                                                  \
    XX(RECVMSG, ssize_t, recvmsg, (int fd, struct msghdr *message, int flags),                     \
       (fd, message, flags))                                                                       \
    XX(RECVMMSG, int, recvmmsg,                                                                    \
       (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),    \
       (fd, messages, count, flags, timeout))                                                      \
    XX(SEND, ssize_t, send, (int fd, const void *memory, size_t size, int flags),                  \
       (fd, memory, size, flags))                                                                  \
    XX(SENDMSG, ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),               \
       (fd, message, flags))                                                                       \
    XX(SENDMMSG, int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags),     \
       (fd, messages, count, flags))                                                               \
    XX(SENDFILE, ssize_t, sendfile, (int fd, int file, off_t *offset, size_t count),               \
       (fd, file, offset, count))                                                                  \
    XX(READ, ssize_t, read, (int fd, void *memory, size_t size), (fd, memory, size))               \
    XX(PREAD, ssize_t, pread, (int fd, void *memory, size_t size, off_t offset),                   \
       (fd, memory, size, offset))                                                                 \
    XX(WRITE, ssize_t, write, (int fd, const void *memory, size_t size), (fd, memory, size))       \
    XX(EPOLL_CREATE1, int, epoll_create1, (int flags), (flags))                                    \
    XX(EPOLL_CTL, int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event),   \
       (epoll, operation, fd, event))                                                              \
    XX(EPOLL_WAIT, int, epoll_wait,                                                                \
       (int epoll, struct epoll_event *events, int count, int timeout_ms),                         \
       (epoll, events, count, timeout_ms))                                                         \
    XX(EPOLL_PWAIT2, int, epoll_pwait2,                                                            \
       (int epoll, struct epoll_event *events, int count, const struct timespec *timeout,          \
        const sigset_t *mask),                                                                     \
       (epoll, events, count, timeout, mask))                                                      \
    XX(PPOLL, int, ppoll,                                                                          \
       (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),  \
       (fds, count, timeout, mask))                                                                \
    XX(EVENTFD, int, eventfd, (unsigned value, int flags), (value, flags))                         \
    XX(SIGNALFD, int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))      \
    XX(PIPE2, int, pipe2, (int ends[2], int flags), (ends, flags))                                 \
    XX(FCNTL, int, fcntl, (int fd, int command, int argument), (fd, command, argument))            \
    XX(CLOSE, int, close, (int fd), (fd))                                                          \
    XX(FCHMOD, int, fchmod, (int fd, mode_t mode), (fd, mode))                                     \
    XX(CHMOD, int, chmod, (const char *path, mode_t mode), (path, mode))                           \
    XX(LSTAT, int, lstat, (const char *path, struct stat *status), (path, status))                 \
    XX(RENAME, int, rename, (const char *from, const char *to), (from, to))                        \
    XX(LINK, int, link, (const char *from, const char *to), (from, to))                            \
    XX(UNLINK, int, unlink, (const char *path), (path))                                            \
    XX(FORK, pid_t, fork, (void), ())                                                              \
    XX(WAITID, int, waitid, (idtype_t type, id_t id, siginfo_t * info, int options),               \
       (type, id, info, options))                                                                  \
    XX(PIDFD_OPEN, int, pidfd_open, (pid_t pid, unsigned flags), (pid, flags))                     \
    XX(PIDFD_SEND_SIGNAL, int, pidfd_send_signal, (int fd, int number), (fd, number))

#define FAULT_ENUMERATOR(id, type, name, parameters, arguments) FAULT_##id,

enum fault_call {
    FAULT_CALLS(FAULT_ENUMERATOR) FAULT_SYSTEM_COUNT,

    /* Calls of liburing */
    FAULT_RING_SETUP = FAULT_SYSTEM_COUNT,
    FAULT_RING_ENABLE,
    FAULT_RING_ENTER,
    FAULT_RING_BUFFERS,

    /* and operations of a ring, in the order of weir__uring_op. */
    FAULT_RING_POLL,
    FAULT_RING_ROOM,
    FAULT_RING_CONNECT,
    FAULT_RING_RECEIVE,
    FAULT_RING_SEND,
    FAULT_RING_WAKE,
    FAULT_COUNT,
};

void faults_install(void);
void faults_remove(void);

/*
 * Fails the n-th call of this kind from now on with `err`, and `count` - 1 calls after it; 1 is the
 * next call. Replaces the previous fault.
 */
void faults_inject(enum fault_call call, uint64_t n, uint64_t count, int err);
void faults_end(void);

/* Number of calls failed since faults_inject. */
uint64_t faults_injected(void);

/* Number of calls of this kind since faults_install. */
uint64_t faults_calls(enum fault_call call);

/*
 * The name of the call and its possible errors, terminated by 0. A negative value is a result, not
 * an error, for operations of a ring.
 */
const char *faults_name(enum fault_call call);
const int *faults_errors(enum fault_call call);

/* For the layers: counts a call. Returns the error to fail with, or 0. */
int faults_account(enum fault_call call);

/* faults_ring.c, for faults.c. */
void faults_install_ring(void);
void faults_remove_ring(void);

#endif
