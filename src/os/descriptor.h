/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors, for layers that make no system calls.
 */
#ifndef WEIR_OS_DESCRIPTOR_H
#define WEIR_OS_DESCRIPTOR_H

/*
 * Closes a descriptor. It is closed even on failure: on Linux also after EINTR, so callers must not
 * retry. Fails with errors of earlier writes, such as -EIO.
 */
int weir__descriptor_close(int descriptor);

/* Duplicates a descriptor, with close-on-exec. Fails with -EBADF, -EMFILE. */
int weir__descriptor_duplicate(int descriptor, int *ret_copy);

/* Set O_NONBLOCK, which affects every process that shares the open file; and close-on-exec. */
int weir__descriptor_set_nonblocking(int descriptor);
int weir__descriptor_set_cloexec(int descriptor);

#endif
