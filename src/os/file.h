/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading small files as a whole, and writing files. The functions block: not for event loops
 * unless the user asks for it.
 */
#ifndef WEIR_OS_FILE_H
#define WEIR_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes when a file is modified or replaced. All members 0 = no file. */
typedef struct weir__file_version {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t modified_ns;
} weir__file_version;

/* Reads the current version of a file. Fails with -errno. */
int weir__file_version_read(const char *path, weir__file_version *ret_version);
bool weir__file_version_equal(const weir__file_version *a, const weir__file_version *b);

/* Reads a file of at most `max` bytes and appends a NUL; free the text with weir__free. Fails with
 * -errno, -EFBIG, -ENOMEM. */
int weir__file_read(const char *path, size_t max, char **ret_text, size_t *ret_length);

/* Creates a file that only its owner may access, or truncates an existing one of any kind,
 * including pipes. Fails with -errno. */
int weir__file_create(const char *path, int *ret_file);

/* Opens a file to append to it; creates it with mode 0644 if it is missing. Fails with -errno. */
int weir__file_append(const char *path, int *ret_file);

/* Writes all bytes. Fails with -errno; then some may have been written. */
int weir__file_write(int file, const void *bytes, size_t length);

#endif
