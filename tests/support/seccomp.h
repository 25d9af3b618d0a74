/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seccomp filter, as in containers. It cannot be removed: use it in a child process.
 */
#ifndef WEIR_TEST_SECCOMP_H
#define WEIR_TEST_SECCOMP_H

/* Makes one system call (SYS_...) of this process fail with a positive errno. Aborts if filters are
 * not supported. */
void seccomp_refuse(long call, int error);

#endif
