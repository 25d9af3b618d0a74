/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to a descriptor that other processes share, without waiting for its reader.
 *
 * O_NONBLOCK is a property of the open file, which every process that inherited it shares. It is
 * never set here.
 */
#ifndef WEIR_OS_NOWAIT_WRITE_H
#define WEIR_OS_NOWAIT_WRITE_H

#include <stddef.h>
#include <sys/types.h>

/* How to write without waiting, in the order of preference. Each fails on some kind of file. */
enum {
    WEIR__NOWAIT_FLAG = 1 << 0,   /* RWF_NOWAIT: sockets, and pipes since Linux 6.4 */
    WEIR__NOWAIT_REOPEN = 1 << 1, /* opens the file again, with O_NONBLOCK: pipes and terminals, if
                                  there is /proc, a free descriptor and the permission */
    WEIR__NOWAIT_POLL = 1 << 2, /* polls first; another process may be faster, and then it waits */
    WEIR__NOWAIT_ANY = WEIR__NOWAIT_FLAG | WEIR__NOWAIT_REOPEN | WEIR__NOWAIT_POLL,
};

/*
 * Writes at most PIPE_BUF bytes. Returns the number that was written, -EAGAIN if the file takes
 * none now, or -errno. A regular file is always written, and may take the time that its disk takes.
 * Thread: any.
 */
ssize_t weir__nowait_write(int descriptor, const void *bytes, size_t length, unsigned ways);

#endif
