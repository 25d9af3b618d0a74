/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All shared state is relaxed: a stronger order would hide races of the library from TSan.
 *
 * The errors are those of the ERRORS sections of the manual pages, and of tcp(7), udp(7) and
 * unix(7), except those that a kernel never returns:
 *   - EAGAIN although there is data or space: an edge-triggered backend rightly waits for the next
 *     change. Full and empty sockets return it often enough by themselves.
 *   - errors of the write that wakes a loop, other than EINTR and EAGAIN (the counter is full, so
 *     the loop is awake): an eventfd has no others.
 *   - ECANCELED for an operation that was not cancelled.
 */
#include "support/loop/faults.h"

#include <errno.h>
#include <stdatomic.h>

#include "os/system.h"

#define ERRORS_MAX 24

/* clang-format off */
static const int errors[FAULT_COUNT][ERRORS_MAX] = {
    [FAULT_SOCKET] = {EACCES, EAFNOSUPPORT, EINVAL, EMFILE, ENFILE, ENOBUFS, ENOMEM,
                      EPROTONOSUPPORT},
    [FAULT_BIND] = {EACCES, EADDRINUSE, EADDRNOTAVAIL, EBADF, EFAULT, EINVAL, ELOOP, ENAMETOOLONG,
                    ENOENT, ENOMEM, ENOTDIR, ENOTSOCK, EROFS},
    [FAULT_LISTEN] = {EADDRINUSE, EBADF, ENOTSOCK, EOPNOTSUPP},
    [FAULT_ACCEPT4] = {EBADF, ECONNABORTED, EFAULT, EHOSTDOWN, EHOSTUNREACH, EINTR, EINVAL, EMFILE,
                       ENETDOWN, ENETUNREACH, ENFILE, ENOBUFS, ENOMEM, ENONET, ENOPROTOOPT, ENOSR,
                       ENOTSOCK, EOPNOTSUPP, EPERM, EPROTO, ESOCKTNOSUPPORT, ETIMEDOUT},
    [FAULT_CONNECT] = {EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, EBADF,
                       ECONNREFUSED, EFAULT, EHOSTUNREACH, EINPROGRESS, EINTR, EISCONN, ENETUNREACH,
                       ENOENT, ENOTSOCK, EPERM, EPROTOTYPE, ETIMEDOUT},
    [FAULT_SHUTDOWN] = {EBADF, EINVAL, ENOTCONN, ENOTSOCK},
    [FAULT_GETSOCKOPT] = {EBADF, EFAULT, EINVAL, ENOPROTOOPT, ENOTSOCK},
    [FAULT_SETSOCKOPT] = {EBADF, EDOM, EFAULT, EINVAL, ENOMEM, ENOPROTOOPT, ENOTSOCK, EPERM},
    [FAULT_GETSOCKNAME] = {EBADF, EFAULT, EINVAL, ENOBUFS, ENOTSOCK},
    [FAULT_GETPEERNAME] = {EBADF, EFAULT, EINVAL, ENOBUFS, ENOTCONN, ENOTSOCK},
    [FAULT_IF_NAMETOINDEX] = {EMFILE, ENODEV, ENOMEM, ENXIO},
    [FAULT_OUTQ] = {EINVAL},
    [FAULT_RECV] = {EBADF, ECONNREFUSED, ECONNRESET, EFAULT, EHOSTUNREACH, EINTR, EINVAL, ENETDOWN,
                    ENOMEM, ENOTCONN, ENOTSOCK, EPIPE, ETIMEDOUT},
    [FAULT_RECVMSG] = {EBADF, ECONNREFUSED, ECONNRESET, EFAULT, EINTR, EINVAL, EMSGSIZE, ENOMEM,
                       ENOTCONN, ENOTSOCK, ETIMEDOUT},
    [FAULT_RECVMMSG] = {EBADF, ECONNREFUSED, EFAULT, EHOSTUNREACH, EINTR, EINVAL, ENETDOWN, ENOMEM,
                        ENOTCONN, ENOTSOCK},
    [FAULT_SEND] = {EACCES, EALREADY, EBADF, ECONNRESET, EDESTADDRREQ, EFAULT, EHOSTUNREACH, EINTR,
                    EINVAL, EISCONN, EMSGSIZE, ENETDOWN, ENETUNREACH, ENOBUFS, ENOMEM, ENOTCONN,
                    ENOTSOCK, EOPNOTSUPP, EPERM, EPIPE, ETIMEDOUT},
    [FAULT_SENDMSG] = {EACCES, EALREADY, EBADF, ECONNRESET, EDESTADDRREQ, EFAULT, EHOSTUNREACH,
                       EINTR, EINVAL, EISCONN, EMSGSIZE, ENETDOWN, ENETUNREACH, ENOBUFS, ENOMEM,
                       ENOTCONN, ENOTSOCK, EOPNOTSUPP, EPERM, EPIPE, ETIMEDOUT},
    [FAULT_SENDMMSG] = {EACCES, EBADF, ECONNREFUSED, EDESTADDRREQ, EFAULT, EHOSTUNREACH, EINTR,
                        EINVAL, EMSGSIZE, ENETDOWN, ENETUNREACH, ENOBUFS, ENOENT, ENOMEM, ENOTCONN,
                        ENOTSOCK, EOPNOTSUPP, EPERM, EPIPE},
    [FAULT_SENDFILE] = {EBADF, ECONNRESET, EFAULT, EINTR, EINVAL, EIO, ENOMEM, ENOTCONN, EOVERFLOW,
                        EPIPE, ESPIPE, ETIMEDOUT},
    [FAULT_READ] = {EAGAIN, EBADF, EFAULT, EINTR, EINVAL, EIO, EISDIR},
    [FAULT_WRITE] = {EAGAIN, EINTR},
    [FAULT_EPOLL_CREATE1] = {EINVAL, EMFILE, ENFILE, ENOMEM},
    [FAULT_EPOLL_CTL] = {EBADF, EEXIST, EINVAL, ELOOP, ENOENT, ENOMEM, ENOSPC, EPERM},
    [FAULT_EPOLL_WAIT] = {EBADF, EFAULT, EINTR, EINVAL},
    [FAULT_EPOLL_PWAIT2] = {EBADF, EFAULT, EINTR, EINVAL, ENOSYS, EPERM},
    [FAULT_PPOLL] = {EFAULT, EINTR, EINVAL, ENOMEM},
    [FAULT_EVENTFD] = {EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM},
    [FAULT_SIGNALFD] = {EBADF, EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM},
    [FAULT_PIPE2] = {EFAULT, EINVAL, EMFILE, ENFILE, ENOMEM},
    [FAULT_FCNTL] = {EBADF, EINVAL, EMFILE, EPERM},
    [FAULT_CLOSE] = {EBADF, EDQUOT, EINTR, EIO, ENOSPC},
    [FAULT_FCHMOD] = {EBADF, EIO, EPERM, EROFS},
    [FAULT_CHMOD] = {EACCES, EFAULT, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR, EPERM,
                     EROFS},
    [FAULT_LSTAT] = {EACCES, EFAULT, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR, EOVERFLOW},
    [FAULT_RENAME] = {EACCES, EBUSY, EDQUOT, EFAULT, EINVAL, EISDIR, ELOOP, EMLINK, ENAMETOOLONG,
                      ENOENT, ENOMEM, ENOSPC, ENOTDIR, EPERM, EROFS, EXDEV},
    [FAULT_LINK] = {EACCES, EDQUOT, EEXIST, EFAULT, EIO, ELOOP, EMLINK, ENAMETOOLONG, ENOENT,
                    ENOMEM, ENOSPC, ENOTDIR, EPERM, EROFS, EXDEV},
    [FAULT_UNLINK] = {EACCES, EBUSY, EFAULT, EIO, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM,
                      ENOTDIR, EPERM, EROFS},
    [FAULT_FORK] = {EAGAIN, ENOMEM, ENOSYS},
    [FAULT_WAITID] = {ECHILD, EINTR, EINVAL},
    [FAULT_PIDFD_OPEN] = {EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM, ENOSYS, EPERM, ESRCH},
    [FAULT_PIDFD_SEND_SIGNAL] = {EBADF, EINVAL, ENOSYS, EPERM, ESRCH},

    [FAULT_RING_SETUP] = {EFAULT, EINVAL, EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM},
    [FAULT_RING_ENABLE] = {EBADFD, EEXIST, EINVAL},
    [FAULT_RING_ENTER] = {EAGAIN, EBADF, EBADFD, EBUSY, EEXIST, EFAULT, EINTR, EINVAL, ENOMEM,
                          ENXIO, EOPNOTSUPP, EOWNERDEAD, ETIME},
    [FAULT_RING_BUFFERS] = {EEXIST, EFAULT, EINVAL, ENOMEM},
    [FAULT_RING_POLL] = {-POLLIN, EBADF, EINVAL, ENOMEM, EOPNOTSUPP},
    [FAULT_RING_ROOM] = {-POLLOUT, EBADF, EINVAL, ENOMEM, EOPNOTSUPP},
    [FAULT_RING_CONNECT] = {EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EBADF,
                            ECONNREFUSED, ECONNRESET, EFAULT, EHOSTUNREACH, EISCONN, ENETUNREACH,
                            ENOENT, ENOMEM, ENOTSOCK, EPERM, EPROTOTYPE, ETIMEDOUT},
    [FAULT_RING_RECEIVE] = {EAGAIN, EBADF, ECONNREFUSED, ECONNRESET, EFAULT, EHOSTUNREACH, EINTR,
                            EINVAL, ENOBUFS, ENOMEM, ENOTCONN, ENOTSOCK, EPIPE, ETIMEDOUT},
    [FAULT_RING_SEND] = {EAGAIN, EBADF, ECANCELED, ECONNRESET, EHOSTUNREACH, EINTR, ENOBUFS,
                         ENOMEM, EPIPE, ETIMEDOUT},
    [FAULT_RING_WAKE] = {-POLLIN, ENOMEM},
};

#define NAME(id, type, name, parameters, arguments) [FAULT_##id] = #name,

static const char *const names[FAULT_COUNT] = {
    FAULT_CALLS(NAME)
    [FAULT_RING_SETUP] = "io_uring_setup",
    [FAULT_RING_ENABLE] = "io_uring_enable_rings",
    [FAULT_RING_ENTER] = "io_uring_enter",
    [FAULT_RING_BUFFERS] = "io_uring_register_buf_ring",
    [FAULT_RING_POLL] = "a ring's poll",
    [FAULT_RING_ROOM] = "a ring's poll for room",
    [FAULT_RING_CONNECT] = "a ring's connect",
    [FAULT_RING_RECEIVE] = "a ring's receive",
    [FAULT_RING_SEND] = "a ring's send",
    [FAULT_RING_WAKE] = "a ring's poll of the eventfd",
};
/* clang-format on */

_Static_assert(sizeof(weir__system) == FAULT_SYSTEM_COUNT * sizeof(void (*)(void)),
               "every call can fail");

static weir__system real;
static _Atomic uint64_t calls[FAULT_COUNT];

static struct {
    _Atomic int call; /* FAULT_COUNT = none */
    _Atomic int err;
    _Atomic uint64_t seen;        /* calls of that kind so far */
    _Atomic uint64_t first, last; /* the calls that fail */
    _Atomic uint64_t injected;
} fault = {.call = FAULT_COUNT};

int faults_account(enum fault_call call)
{
    uint64_t number;

    atomic_fetch_add_explicit(&calls[call], 1, memory_order_relaxed);
    if (atomic_load_explicit(&fault.call, memory_order_relaxed) != (int)call)
        return 0;
    number = atomic_fetch_add_explicit(&fault.seen, 1, memory_order_relaxed) + 1;
    if (number < atomic_load_explicit(&fault.first, memory_order_relaxed) ||
        number > atomic_load_explicit(&fault.last, memory_order_relaxed))
        return 0;
    atomic_fetch_add_explicit(&fault.injected, 1, memory_order_relaxed);
    return atomic_load_explicit(&fault.err, memory_order_relaxed);
}

/* True if the kernel completes the call although it reports this error. */
static bool is_done_anyway(enum fault_call call, int err)
{
    switch (call) {
    case FAULT_CLOSE:
        return true;
    case FAULT_CONNECT:
        return err == EINPROGRESS || err == EINTR || err == EALREADY;
    case FAULT_WRITE:
        return err == EAGAIN;
    default:
        return false;
    }
}

#define SHIM(id, type, name, parameters, arguments) \
    static type shim_##name parameters              \
    {                                               \
        int err = faults_account(FAULT_##id);       \
                                                    \
        if (err == 0)                               \
            return real.name arguments;             \
        if (is_done_anyway(FAULT_##id, err))        \
            (void)real.name arguments;              \
        errno = err;                                \
        return -1;                                  \
    }
FAULT_CALLS(SHIM)

void faults_install(void)
{
    if (weir__sys.close != shim_close) /* left by a test that failed */
        real = weir__sys;
    for (int i = 0; i < FAULT_COUNT; i++)
        atomic_store_explicit(&calls[i], 0, memory_order_relaxed);
    faults_end();
#define PUT_SHIM(id, type, name, parameters, arguments) weir__sys.name = shim_##name;
    FAULT_CALLS(PUT_SHIM)
#undef PUT_SHIM
    faults_install_ring();
}

void faults_remove(void)
{
    weir__sys = real;
    faults_remove_ring();
}

/* Counting starts with the last line: a call that comes before it is not counted. */
void faults_inject(enum fault_call call, uint64_t n, uint64_t count, int err)
{
    faults_end();
    atomic_store_explicit(&fault.seen, 0, memory_order_relaxed);
    atomic_store_explicit(&fault.injected, 0, memory_order_relaxed);
    atomic_store_explicit(&fault.err, err, memory_order_relaxed);
    atomic_store_explicit(&fault.first, n, memory_order_relaxed);
    atomic_store_explicit(&fault.last, n + count - 1, memory_order_relaxed);
    atomic_store_explicit(&fault.call, (int)call, memory_order_relaxed);
}

void faults_end(void)
{
    atomic_store_explicit(&fault.call, FAULT_COUNT, memory_order_relaxed);
}

uint64_t faults_injected(void)
{
    return atomic_load_explicit(&fault.injected, memory_order_relaxed);
}

uint64_t faults_calls(enum fault_call call)
{
    return atomic_load_explicit(&calls[call], memory_order_relaxed);
}

const char *faults_name(enum fault_call call)
{
    return names[call];
}

const int *faults_errors(enum fault_call call)
{
    return errors[call];
}
