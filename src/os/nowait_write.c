/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls the system directly, not through os/system.h, so that the log works while a test makes
 * those calls fail.
 */
#include "os/nowait_write.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/mutex.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

#define NO_POSITION (-1L)

static ssize_t plain_write(int descriptor, const void *bytes, size_t length)
{
    ssize_t written = write(descriptor, bytes, length);

    return written < 0 ? -errno : written;
}

static ssize_t write_by_flag(int descriptor, const void *bytes, size_t length)
{
    const struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    long written =
        syscall(SYS_pwritev2, descriptor, &piece, 1L, NO_POSITION, NO_POSITION, RWF_NOWAIT);

    return written < 0 ? -errno : written;
}

static ssize_t write_by_opening(int descriptor, const void *bytes, size_t length)
{
    char path[32];
    ssize_t written;
    int own;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0)
        return -errno;
    written = plain_write(own, bytes, length);
    (void)close(own);
    return written;
}

/* The lock prevents other threads from filling the file between poll and write. */
static ssize_t write_by_polling(int descriptor, const void *bytes, size_t length)
{
    static weir__mutex lock = WEIR__MUTEX_INIT;
    struct pollfd state = {.fd = descriptor, .events = POLLOUT};
    ssize_t written = -EAGAIN;

    weir__mutex_lock(&lock);
    if (ppoll(&state, 1, &(const struct timespec){0}, NULL) < 0)
        written = -errno;
    else if ((state.revents & POLLNVAL) != 0)
        written = -EBADF;
    else if ((state.revents & POLLERR) != 0)
        written = -EPIPE;
    else if ((state.revents & POLLOUT) != 0)
        written = plain_write(descriptor, bytes, length);
    weir__mutex_unlock(&lock);
    return written;
}

static bool is_regular(int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

/* True if the bytes were written, or would not be written in another way either. */
static bool is_final(ssize_t written)
{
    return written >= 0 || written == -EAGAIN || written == -EPIPE || written == -EBADF;
}

ssize_t weir__nowait_write(int descriptor, const void *bytes, size_t length, unsigned ways)
{
    static ssize_t (*const writers[])(int, const void *, size_t) = {write_by_flag, write_by_opening,
                                                                    write_by_polling};
    ssize_t written = -EOPNOTSUPP;

    if (is_regular(descriptor))
        return plain_write(descriptor, bytes, length);
    for (unsigned i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
        if ((ways & (1u << i)) == 0)
            continue;
        written = writers[i](descriptor, bytes, length);
        if (is_final(written))
            break;
    }
    return written;
}
