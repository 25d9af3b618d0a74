/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls on descriptors, processes and the network, as a table: the layers above make them
 * only through it. Entries can be replaced before the first thread starts, by tests that make each
 * call fail in turn, or by a simulator. Each entry behaves as the function of that name, and sets
 * errno, but need not be a cancellation point.
 */
#ifndef WEIR_OS_SYSTEM_H
#define WEIR_OS_SYSTEM_H

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

typedef struct weir__system {
    int (*socket)(int domain, int type, int protocol);
    int (*bind)(int descriptor, const struct sockaddr *address, socklen_t length);
    int (*listen)(int descriptor, int backlog);
    int (*accept4)(int descriptor, struct sockaddr *address, socklen_t *length, int flags);
    int (*connect)(int descriptor, const struct sockaddr *address, socklen_t length);
    int (*shutdown)(int descriptor, int how);
    int (*getsockopt)(int descriptor, int level, int name, void *value, socklen_t *length);
    int (*setsockopt)(int descriptor, int level, int name, const void *value, socklen_t length);
    int (*getsockname)(int descriptor, struct sockaddr *address, socklen_t *length);
    int (*getpeername)(int descriptor, struct sockaddr *address, socklen_t *length);
    int (*if_nametoindex)(const char *name);     /* returns -1 on failure */
    int (*outq)(int descriptor, int *ret_bytes); /* ioctl, SIOCOUTQ */

    ssize_t (*recv)(int descriptor, void *memory, size_t size, int flags);
    ssize_t (*recvmsg)(int descriptor, struct msghdr *message, int flags);
    int (*recvmmsg)(int descriptor, struct mmsghdr *messages, unsigned count, int flags,
                    struct timespec *timeout);
    ssize_t (*send)(int descriptor, const void *memory, size_t size, int flags);
    ssize_t (*sendmsg)(int descriptor, const struct msghdr *message, int flags);
    int (*sendmmsg)(int descriptor, struct mmsghdr *messages, unsigned count, int flags);
    ssize_t (*sendfile)(int descriptor, int file, off_t *offset, size_t count);
    ssize_t (*read)(int descriptor, void *memory, size_t size);
    ssize_t (*pread)(int descriptor, void *memory, size_t size, off_t offset);
    ssize_t (*write)(int descriptor, const void *memory, size_t size);

    int (*epoll_create1)(int flags);
    int (*epoll_ctl)(int epoll, int operation, int descriptor, struct epoll_event *event);
    int (*epoll_wait)(int epoll, struct epoll_event *events, int count, int timeout_ms);
    int (*epoll_pwait2)(int epoll, struct epoll_event *events, int count,
                        const struct timespec *timeout, const sigset_t *mask);
    int (*ppoll)(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask);
    int (*eventfd)(unsigned value, int flags);
    int (*signalfd)(int descriptor, const sigset_t *mask, int flags);
    int (*pipe2)(int ret_ends[2], int flags);
    int (*fcntl)(int descriptor, int command, int argument);
    int (*close)(int descriptor); /* the descriptor is closed even on failure */

    /* Files of Unix sockets. */
    int (*fchmod)(int descriptor, mode_t mode);
    int (*chmod)(const char *path, mode_t mode);
    int (*lstat)(const char *path, struct stat *ret_status);
    int (*rename)(const char *from, const char *to);
    int (*link)(const char *from, const char *to);
    int (*unlink)(const char *path);

    pid_t (*fork)(void);
    int (*waitid)(idtype_t type, id_t id, siginfo_t *ret_info, int options);
    int (*pidfd_open)(pid_t pid, unsigned flags);
    int (*pidfd_send_signal)(int descriptor, int number);
} weir__system;

extern weir__system weir__sys;

/* The idtype of waitid for pidfds, missing in older C libraries. */
#define WEIR__P_PIDFD ((idtype_t)3)

#endif
