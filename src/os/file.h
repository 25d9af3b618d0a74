/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files, read whole; and files that are written. May block: not for event loops, unless the
 * user wants it.
 */
#ifndef WEIR_OS_FILE_H
#define WEIR_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What changes when a file does, or another takes its place. Zero = there is none. */
typedef struct weir__file_version {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t modified_ns;
} weir__file_version;

/* Which version stands there now. Fails with -errno. */
int weir__file_version_read(const char *path, weir__file_version *ret_version);
bool weir__file_version_equal(const weir__file_version *a, const weir__file_version *b);

/* Reads a file of at most `max` bytes, and puts a 0 behind them; weir__free takes the text. Fails
 * with -errno, -EFBIG, -ENOMEM. */
int weir__file_read(const char *path, size_t max, char **ret_text, size_t *ret_length);

/* Makes a file that only its owner may read, or empties the one that is there; any kind of file, a
 * pipe too. Fails with -errno. */
int weir__file_create(const char *path, int *ret_file);

/* Writes all of it. Fails with -errno: then any part may have been. */
int weir__file_write(int file, const void *bytes, size_t length);

#endif
