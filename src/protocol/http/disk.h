/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders on disk: the only part of libweir-http that makes calls of the file system.
 *
 * The functions block while a disk is slow. They return 0 or a negative error. Descriptors are
 * closed on exec.
 *
 * Paths of weir__http_disk_open are relative to a folder, the root, and never leave it: not by
 * "..", by an absolute path or by a symbolic link, also if somebody else renames folders at the
 * same time.
 */
#ifndef WEIR_PROTOCOL_HTTP_DISK_H
#define WEIR_PROTOCOL_HTTP_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- the calls ---- */

/* The argument of openat2, which older headers do not declare. */
struct weir__http_open_how {
    uint64_t flags;
    uint64_t mode;
    uint64_t resolve;
};

/*
 * The calls that this file makes. Tests replace entries before the first thread starts. Each
 * behaves as the function of that name, and sets errno.
 */
typedef struct weir__http_disk_calls {
    int (*openat2)(int folder, const char *path, const struct weir__http_open_how *how);
    int (*openat)(int folder, const char *path, int flags, mode_t mode);
    int (*fstat)(int file, struct stat *ret_status);
    int (*fstatat)(int folder, const char *path, struct stat *ret_status, int flags);
    ssize_t (*readlinkat)(int folder, const char *path, char *target, size_t size);
    ssize_t (*getdents64)(int folder, void *entries, size_t size);
    ssize_t (*pread)(int file, void *memory, size_t size, off_t offset);
    ssize_t (*pwrite)(int file, const void *memory, size_t size, off_t offset);
    int (*unlinkat)(int folder, const char *path, int flags);
    int (*close)(int file);
} weir__http_disk_calls;

extern weir__http_disk_calls weir__http_disk;

/* ---- files ---- */

typedef struct weir__http_disk_info {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t modified_ns; /* since 1970; negative before */
    bool is_folder;      /* otherwise a regular file */
} weir__http_disk_info;

/* Symbolic links are followed if their target is within the root; otherwise they are errors. */
#define WEIR__HTTP_DISK_LINKS (1u << 0)

/* Opens a folder, to be used as a root. Fails with -errno. */
int weir__http_disk_open_root(const char *path, int *ret_root);

/*
 * Opens a regular file or a folder for reading; "" is the root itself. Fails with -EINVAL (an
 * absolute path, a segment ".."), -EXDEV (a link leads out of the root), -ELOOP (a link without
 * WEIR__HTTP_DISK_LINKS, or too many), -EACCES (something else, such as a device or a pipe, or no
 * permission), or -errno.
 */
int weir__http_disk_open(int root, const char *path, uint32_t flags, int *ret_file,
                         weir__http_disk_info *ret_info);

/* As weir__http_disk_open, for kernels without openat2. For tests. */
int weir__http_disk_open_by_segments(int root, const char *path, uint32_t flags, int *ret_file,
                                     weir__http_disk_info *ret_info);

/*
 * Creates an anonymous file in a folder: no name leads to it, and it is gone when it is closed.
 * Fails with -errno.
 */
int weir__http_disk_create_temporary(const char *folder, int *ret_file);

/* Creates a file for writing, with mode 0644. The path must not exist, not even as a symbolic link.
 * Fails with -errno. */
int weir__http_disk_create(const char *path, int *ret_file);

/*
 * Reads or writes all bytes. Reading fails with WEIR_ETRUNCATED if the file ends before; both with
 * -errno.
 */
int weir__http_disk_read(int file, int64_t offset, void *bytes, size_t length);
int weir__http_disk_write(int file, int64_t offset, const void *bytes, size_t length);

/* Closes a file or folder. A negative descriptor is ignored. */
void weir__http_disk_close(int file);

/* ---- folders ---- */

/* Called for each entry, except "." and "..". Returns 0 to continue; anything else is returned. */
typedef int weir__http_disk_entry_fn(const char *name, void *user_data);

/* Lists a folder that has just been opened, in no order. Fails with -errno. */
int weir__http_disk_list(int folder, weir__http_disk_entry_fn *fn, void *user_data);

/* Looks up an entry of a folder, without following links. Fails with -EACCES (neither a regular
 * file nor a folder), or -errno. */
int weir__http_disk_look_up(int folder, const char *name, weir__http_disk_info *ret_info);

#endif
