/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes calls of the file system fail on demand: a layer between libweir-http and
 * weir__http_disk counts the calls and fails some.
 *
 *     disk_faults_install();                          no other thread runs yet
 *     disk_faults_inject(DISK_FSTAT, 2, EIO);         the second call from now on fails
 *     ...
 *     assert_true(disk_faults_injected() > 0);
 *     disk_faults_remove();
 */
#ifndef WEIR_TEST_DISK_FAULTS_H
#define WEIR_TEST_DISK_FAULTS_H

#include <stdbool.h>

enum disk_call {
    DISK_OPENAT2,
    DISK_OPENAT,
    DISK_FSTAT,
    DISK_FSTATAT,
    DISK_READLINKAT,
    DISK_GETDENTS64,
    DISK_PREAD,
    DISK_PWRITE,
    DISK_UNLINKAT,
    DISK_CALL_COUNT,
};

/* Instead of an errno: the call returns 0, as at the end of a file. */
#define DISK_END_OF_FILE (-1)

void disk_faults_install(void);
void disk_faults_remove(void);

/* Fails the n-th call of this kind from now on with an errno; 1 is the next one. Replaces the
 * previous fault. */
void disk_faults_inject(enum disk_call call, unsigned n, int err);

/* Fails every call of openat2 with an errno, as a kernel without it does; 0 = none. */
void disk_faults_refuse_openat2(int err);

/* Returns the number of calls failed since disk_faults_inject. */
unsigned disk_faults_injected(void);

/* Returns the number of calls of this kind since disk_faults_install. */
unsigned disk_faults_calls(enum disk_call call);

/* Descriptors opened and not closed since disk_faults_install. */
int disk_faults_open_files(void);

const char *disk_faults_name(enum disk_call call);

#endif
