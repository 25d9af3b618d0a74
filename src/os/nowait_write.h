/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to a shared descriptor without blocking.
 *
 * O_NONBLOCK belongs to the open file description, which is shared by all processes that inherited
 * it, so it is never set here.
 */
#ifndef WEIR_OS_NOWAIT_WRITE_H
#define WEIR_OS_NOWAIT_WRITE_H

#include <stddef.h>
#include <sys/types.h>

/* Ways to write without blocking, in order of preference. Each fails for some kinds of file. */
enum {
    WEIR__NOWAIT_FLAG = 1 << 0,   /* RWF_NOWAIT: sockets, and pipes since Linux 6.4 */
    WEIR__NOWAIT_REOPEN = 1 << 1, /* reopens the file with O_NONBLOCK: pipes and terminals, if
                                     /proc, a free descriptor and the permission are available */
    WEIR__NOWAIT_POLL =
        1 << 2, /* polls first; blocks if another process fills the file in between */
    WEIR__NOWAIT_ANY = WEIR__NOWAIT_FLAG | WEIR__NOWAIT_REOPEN | WEIR__NOWAIT_POLL,
};

/*
 * Writes at most PIPE_BUF bytes. Returns the number of bytes written, -EAGAIN if the file would
 * block, or -errno. A regular file is always written, and may block on its disk.
 * Thread: any.
 */
ssize_t weir__nowait_write(int descriptor, const void *bytes, size_t length, unsigned ways);

#endif
