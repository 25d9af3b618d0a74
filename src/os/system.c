/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default table of os/system.h. Wrappers are needed where libc declares other types or no
 * function at all, for sendfile, and for calls that are made millions of times a second.
 */
#include "os/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- calls without a cancellation point ---- */

/*
 * In a process with threads glibc's functions enable and disable cancellation around the call, by
 * two locked instructions: 35 ns, 3 % of an echo for recv and send together. weir does not support
 * the cancellation of threads. Sanitizers know what libc's functions do, but not what the calls do.
 */
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CALL_LIBC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define CALL_LIBC 1
#endif
#endif

#ifdef CALL_LIBC
#define DIRECT(wrapper, function) function

/* musl declares unsigned flags for these two. */

static int call_recvmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags,
                         struct timespec *timeout)
{
    return recvmmsg(descriptor, messages, count, flags, timeout);
}

static int call_sendmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags)
{
    return sendmmsg(descriptor, messages, count, flags);
}

#else
#define DIRECT(wrapper, function) wrapper

#if defined(__x86_64__) && defined(__LP64__)

static __attribute__((noinline, cold)) long failed_call(long err)
{
    errno = (int)-err;
    return -1;
}

static inline __attribute__((always_inline)) long direct_call(long number, long a, long b, long c,
                                                              long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result >= 0 ? result : failed_call(result);
}

#else
#define direct_call syscall /* no cancellation point either, but moves the arguments */
#endif

static long address_of(const void *memory)
{
    return (long)(intptr_t)memory;
}

static ssize_t direct_recv(int descriptor, void *memory, size_t size, int flags)
{
    return direct_call(SYS_recvfrom, descriptor, address_of(memory), (long)size, flags, 0L, 0L);
}

static ssize_t direct_send(int descriptor, const void *memory, size_t size, int flags)
{
    return direct_call(SYS_sendto, descriptor, address_of(memory), (long)size, flags, 0L, 0L);
}

static ssize_t direct_write(int descriptor, const void *memory, size_t size)
{
    return direct_call(SYS_write, descriptor, address_of(memory), (long)size, 0L, 0L, 0L);
}

static ssize_t direct_sendmsg(int descriptor, const struct msghdr *message, int flags)
{
    return direct_call(SYS_sendmsg, descriptor, address_of(message), flags, 0L, 0L, 0L);
}

static int direct_recvmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags,
                           struct timespec *timeout)
{
    return (int)direct_call(SYS_recvmmsg, descriptor, address_of(messages), count, flags,
                            address_of(timeout), 0L);
}

static int direct_sendmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags)
{
    return (int)direct_call(SYS_sendmmsg, descriptor, address_of(messages), count, flags, 0L, 0L);
}

/* The kernel subtracts the time that has passed from the timeout. */
static int direct_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout,
                        const sigset_t *mask)
{
    struct timespec left = timeout != NULL ? *timeout : (struct timespec){0};

    return (int)direct_call(SYS_ppoll, address_of(descriptors), (long)count,
                            timeout != NULL ? address_of(&left) : 0L, address_of(mask), _NSIG / 8L,
                            0L);
}

/* There is no epoll_wait on aarch64. */
static int direct_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
    return (int)direct_call(SYS_epoll_pwait, epoll, address_of(events), count, timeout_ms, 0L, 0L);
}

#endif

/* ---- wrappers for other types, or for no function ---- */

/* glibc declares the address parameters of these as a transparent union. */

static int call_bind(int descriptor, const struct sockaddr *address, socklen_t length)
{
    return bind(descriptor, address, length);
}

static int call_accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags)
{
    return accept4(descriptor, address, length, flags);
}

static int call_connect(int descriptor, const struct sockaddr *address, socklen_t length)
{
    return connect(descriptor, address, length);
}

static int call_getsockname(int descriptor, struct sockaddr *address, socklen_t *length)
{
    return getsockname(descriptor, address, length);
}

static int call_getpeername(int descriptor, struct sockaddr *address, socklen_t *length)
{
    return getpeername(descriptor, address, length);
}

/* if_nametoindex returns 0 on failure. */
static int call_if_nametoindex(const char *name)
{
    unsigned index = if_nametoindex(name);

    return index > 0 ? (int)index : -1;
}

static int call_outq(int descriptor, int *ret_bytes)
{
    return ioctl(descriptor, SIOCOUTQ, ret_bytes);
}

/* Not in musl. */
static int call_epoll_pwait2(int epoll, struct epoll_event *events, int count,
                             const struct timespec *timeout, const sigset_t *mask)
{
    return (int)syscall(SYS_epoll_pwait2, epoll, events, count, timeout, mask, _NSIG / 8);
}

/* For commands with an integer argument or none. */
static int call_fcntl(int descriptor, int command, int argument)
{
    return fcntl(descriptor, command, argument);
}

/* In glibc since 2.36, not in musl. */

static int call_pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

static int call_pidfd_send_signal(int descriptor, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, descriptor, number, NULL, 0);
}

/*
 * sendfile without SIGPIPE: it is the only call without MSG_NOSIGNAL. The threads of weir block all
 * signals, but a manual loop runs on a thread of the user. The signal is also raised on success, if
 * the peer closes after some of the bytes were sent.
 */
static ssize_t call_sendfile(int descriptor, int file, off_t *offset, size_t count)
{
    sigset_t pipe_only, before;
    ssize_t sent;
    int err;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    sent = sendfile(descriptor, file, offset, count);
    err = errno;
    if (!sigismember(&before, SIGPIPE)) {
        if (sent < 0 ? err == EPIPE : (size_t)sent < count)
            (void)sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = err;
    return sent;
}

weir__system weir__sys = {
    .socket = socket,
    .bind = call_bind,
    .listen = listen,
    .accept4 = call_accept4,
    .connect = call_connect,
    .shutdown = shutdown,
    .getsockopt = getsockopt,
    .setsockopt = setsockopt,
    .getsockname = call_getsockname,
    .getpeername = call_getpeername,
    .if_nametoindex = call_if_nametoindex,
    .outq = call_outq,

    .recv = DIRECT(direct_recv, recv),
    .recvmsg = recvmsg,
    .recvmmsg = DIRECT(direct_recvmmsg, call_recvmmsg),
    .send = DIRECT(direct_send, send),
    .sendmsg = DIRECT(direct_sendmsg, sendmsg),
    .sendmmsg = DIRECT(direct_sendmmsg, call_sendmmsg),
    .sendfile = call_sendfile,
    .read = read,
    .pread = pread,
    .write = DIRECT(direct_write, write),

    .epoll_create1 = epoll_create1,
    .epoll_ctl = epoll_ctl,
    .epoll_wait = DIRECT(direct_epoll_wait, epoll_wait),
    .epoll_pwait2 = call_epoll_pwait2,
    .ppoll = DIRECT(direct_ppoll, ppoll),
    .eventfd = eventfd,
    .signalfd = signalfd,
    .pipe2 = pipe2,
    .fcntl = call_fcntl,
    .close = close,

    .fchmod = fchmod,
    .chmod = chmod,
    .lstat = lstat,
    .rename = rename,
    .link = link,
    .unlink = unlink,

    .fork = fork,
    .waitid = waitid,
    .pidfd_open = call_pidfd_open,
    .pidfd_send_signal = call_pidfd_send_signal,
};
