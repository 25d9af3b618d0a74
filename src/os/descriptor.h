/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors, for layers that may not make system calls themselves.
 */
#ifndef WEIR_OS_DESCRIPTOR_H
#define WEIR_OS_DESCRIPTOR_H

/*
 * The descriptor is closed when this returns, whatever that is: on Linux also after EINTR, so
 * nobody may try again. Fails with what was left unsaid by earlier writes, such as -EIO.
 */
int weir__descriptor_close(int descriptor);

/* Another descriptor of the same file, closed on exec. Fails with -EBADF, -EMFILE. */
int weir__descriptor_duplicate(int descriptor, int *ret_copy);

/* No call on it blocks any more, in any process that shares the file; and it is closed on exec. */
int weir__descriptor_set_nonblocking(int descriptor);
int weir__descriptor_set_cloexec(int descriptor);

#endif
