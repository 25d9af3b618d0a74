/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With openat2 the kernel keeps a path beneath the root. Without it (Linux before 5.6, or a seccomp
 * filter that does not know it) each segment is opened by itself and without following links; links
 * that may be followed are resolved here. Both check the path first, so that a mistake in one place
 * does not open the root.
 */
#include "protocol/http/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/error.h>

#ifndef SYS_openat2
#define SYS_openat2 437 /* the same on every architecture */
#endif

#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_NO_SYMLINKS 0x04
#define RESOLVE_BENEATH 0x08

/* Opening a pipe does not wait for a writer, opening a terminal does not make it ours. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* As in the kernel. */
#define MAX_LINKS 40

/* A result of `step`: neither a descriptor nor an error. */
#define MORE INT_MIN

/* Of openat2 with EAGAIN: something was renamed meanwhile, so that ".." could not be checked. */
#define MAX_ATTEMPTS 16

/* ---- the calls ---- */

static int call_openat2(int folder, const char *path, const struct weir__http_open_how *how)
{
    return (int)syscall(SYS_openat2, folder, path, how, sizeof(*how));
}

static int call_openat(int folder, const char *path, int flags, mode_t mode)
{
    return openat(folder, path, flags, mode);
}

static int call_fstat(int file, struct stat *ret_status)
{
    return fstat(file, ret_status);
}

static int call_fstatat(int folder, const char *path, struct stat *ret_status, int flags)
{
    return fstatat(folder, path, ret_status, flags);
}

static ssize_t call_getdents64(int folder, void *entries, size_t size)
{
    return syscall(SYS_getdents64, folder, entries, size);
}

weir__http_disk_calls weir__http_disk = {
    .openat2 = call_openat2,
    .openat = call_openat,
    .fstat = call_fstat,
    .fstatat = call_fstatat,
    .readlinkat = readlinkat,
    .getdents64 = call_getdents64,
    .pread = pread,
    .pwrite = pwrite,
    .unlinkat = unlinkat,
    .close = close,
};

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    int file;

    do
        file = weir__http_disk.openat(folder, path, flags, mode);
    while (file < 0 && errno == EINTR);
    return file >= 0 ? file : -errno;
}

void weir__http_disk_close(int file)
{
    if (file >= 0)
        (void)weir__http_disk.close(file);
}

/* ---- information ---- */

static int describe(const struct stat *status, weir__http_disk_info *ret_info)
{
    if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode))
        return -EACCES;
    *ret_info = (weir__http_disk_info){
        .device = (uint64_t)status->st_dev,
        .inode = (uint64_t)status->st_ino,
        .size = (int64_t)status->st_size,
        .modified_ns =
            (int64_t)status->st_mtim.tv_sec * 1000000000 + (int64_t)status->st_mtim.tv_nsec,
        .is_folder = S_ISDIR(status->st_mode),
    };
    return 0;
}

/* Takes the file. */
static int finish_open(int file, int *ret_file, weir__http_disk_info *ret_info)
{
    struct stat status;
    int err = weir__http_disk.fstat(file, &status) < 0 ? -errno : describe(&status, ret_info);

    if (err < 0)
        weir__http_disk_close(file);
    else
        *ret_file = file;
    return err;
}

/* ---- opening ---- */

int weir__http_disk_open_root(const char *path, int *ret_root)
{
    int root = open_at(AT_FDCWD, path, OPEN_FLAGS | O_DIRECTORY, 0);

    if (root < 0)
        return root;
    *ret_root = root;
    return 0;
}

/* Splits off the first segment of a path. Returns its length, 0 at the end. */
static size_t first_segment(const char **path)
{
    *path += strspn(*path, "/");
    return strcspn(*path, "/");
}

static bool is_parent(const char *segment, size_t length)
{
    return length == 2 && segment[0] == '.' && segment[1] == '.';
}

static int check_path(const char *path)
{
    size_t length;

    if (path[0] == '/')
        return -EINVAL;
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    for (; (length = first_segment(&path)) > 0; path += length) {
        if (is_parent(path, length))
            return -EINVAL;
    }
    return 0;
}

/* A path being resolved: `done` has been, and has no links; `left` has not. */
struct walk {
    int root;
    int folder; /* what `done` leads to; the root is not closed */
    uint32_t flags;
    unsigned links;
    const char *left; /* in `bytes` */
    char done[PATH_MAX];
    char bytes[PATH_MAX];
};

static void enter(struct walk *walk, int folder)
{
    if (walk->folder != walk->root)
        weir__http_disk_close(walk->folder);
    walk->folder = folder;
}

static int remember(struct walk *walk, const char *segment)
{
    size_t used = strlen(walk->done), length = strlen(segment);

    if (used + length + 2 > sizeof(walk->done))
        return -ENAMETOOLONG;
    if (used > 0)
        walk->done[used++] = '/';
    memcpy(walk->done + used, segment, length + 1);
    return 0;
}

static int open_segment(const struct walk *walk, const char *segment, int flags)
{
    return open_at(walk->folder, segment, flags | O_NOFOLLOW, 0);
}

/* Goes to the parent folder: again from the root, because a ".." of the kernel might lead out of it
 * after a rename. */
static int go_up(struct walk *walk)
{
    char segment[NAME_MAX + 1], *slash = strrchr(walk->done, '/');
    const char *rest = walk->done;
    size_t length;
    int folder;

    if (walk->done[0] == '\0')
        return -EXDEV;
    walk->done[slash != NULL ? (size_t)(slash - walk->done) : 0] = '\0';
    enter(walk, walk->root);
    for (; (length = first_segment(&rest)) > 0; rest += length) {
        memcpy(segment, rest, length);
        segment[length] = '\0';
        folder = open_segment(walk, segment, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
            return folder;
        enter(walk, folder);
    }
    return 0;
}

/* Replaces the segment before `rest` by the target of a link. */
static int follow(struct walk *walk, const char *segment, const char *rest)
{
    size_t rest_size = strlen(rest) + 1;
    char target[PATH_MAX];
    ssize_t size;

    if ((walk->flags & WEIR__HTTP_DISK_LINKS) == 0 || ++walk->links > MAX_LINKS)
        return -ELOOP;
    size = weir__http_disk.readlinkat(walk->folder, segment, target, sizeof(target));
    if (size < 0)
        return -errno;
    if (size == 0 || target[0] == '/')
        return size == 0 ? -ENOENT : -EXDEV;
    if ((size_t)size + rest_size > sizeof(target))
        return -ENAMETOOLONG;
    memcpy(target + size, rest, rest_size);
    memcpy(walk->bytes, target, (size_t)size + rest_size);
    walk->left = walk->bytes;
    return 0;
}

static bool is_link(const struct walk *walk, const char *segment)
{
    struct stat status;

    return weir__http_disk.fstatat(walk->folder, segment, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISLNK(status.st_mode);
}

/* Resolves one segment. Returns the file if it was the last one, MORE, or an error. A link that is
 * opened without following it fails with ELOOP, or ENOTDIR. */
static int step(struct walk *walk)
{
    char segment[NAME_MAX + 1];
    const char *start = walk->left, *rest;
    size_t length = first_segment(&start);
    int file, err = 0;
    bool is_last;

    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(segment, start, length);
    segment[length] = '\0';
    rest = start + length;
    is_last = length == 0 || *rest == '\0';
    if (is_parent(segment, length)) {
        err = go_up(walk);
    } else if (is_last || strcmp(segment, ".") != 0) {
        file = open_segment(walk, length > 0 ? segment : ".",
                            is_last ? OPEN_FLAGS : O_PATH | O_DIRECTORY | O_CLOEXEC);
        if ((file == -ELOOP || file == -ENOTDIR) && is_link(walk, segment)) {
            err = follow(walk, segment, rest);
            return err < 0 ? err : MORE;
        }
        if (file < 0 || is_last)
            return file;
        err = remember(walk, segment);
        enter(walk, file);
    }
    walk->left = rest;
    return err < 0 ? err : MORE;
}

static int open_by_segments(int root, const char *path, uint32_t flags)
{
    struct walk walk = {.root = root, .folder = root, .flags = flags};
    int file;

    memcpy(walk.bytes, path, strlen(path) + 1);
    walk.left = walk.bytes;
    do
        file = step(&walk);
    while (file == MORE);
    enter(&walk, root);
    return file;
}

static int open_beneath(int root, const char *path, uint32_t flags)
{
    const struct weir__http_open_how how = {
        .flags = OPEN_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
                   ((flags & WEIR__HTTP_DISK_LINKS) == 0 ? RESOLVE_NO_SYMLINKS : 0u),
    };
    int file, attempts = 0;

    do
        file = weir__http_disk.openat2(root, path[0] != '\0' ? path : ".", &how);
    while (file < 0 && (errno == EINTR || (errno == EAGAIN && ++attempts < MAX_ATTEMPTS)));
    if (file >= 0)
        return file;
    return errno == ENOSYS || errno == EPERM ? open_by_segments(root, path, flags) : -errno;
}

typedef int open_fn(int root, const char *path, uint32_t flags);

static int open_by(open_fn *fn, int root, const char *path, uint32_t flags, int *ret_file,
                   weir__http_disk_info *ret_info)
{
    int err = check_path(path);
    int file = err < 0 ? err : fn(root, path, flags);

    if (file == -ENXIO) /* a socket, or a pipe without a reader */
        return -EACCES;
    return file < 0 ? file : finish_open(file, ret_file, ret_info);
}

int weir__http_disk_open(int root, const char *path, uint32_t flags, int *ret_file,
                         weir__http_disk_info *ret_info)
{
    return open_by(open_beneath, root, path, flags, ret_file, ret_info);
}

int weir__http_disk_open_by_segments(int root, const char *path, uint32_t flags, int *ret_file,
                                     weir__http_disk_info *ret_info)
{
    return open_by(open_by_segments, root, path, flags, ret_file, ret_info);
}

/* ---- temporary files ---- */

/* For file systems without O_TMPFILE: a file whose name is removed at once. */
static int create_and_unlink(const char *folder)
{
    static _Atomic unsigned last;
    char name[64];
    int root, file = -EEXIST;

    root = open_at(AT_FDCWD, folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (root < 0)
        return root;
    for (int i = 0; i < 100 && file == -EEXIST; i++) {
        (void)snprintf(name, sizeof(name), ".weir-%ld-%u", (long)getpid(),
                       atomic_fetch_add_explicit(&last, 1, memory_order_relaxed));
        file = open_at(root, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    if (file >= 0 && weir__http_disk.unlinkat(root, name, 0) < 0) {
        int err = -errno;

        weir__http_disk_close(file);
        file = err;
    }
    weir__http_disk_close(root);
    return file;
}

int weir__http_disk_create_temporary(const char *folder, int *ret_file)
{
    int file = open_at(AT_FDCWD, folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

    if (file == -EOPNOTSUPP || file == -EISDIR) /* the file system, or a kernel before 3.11 */
        file = create_and_unlink(folder);
    if (file < 0)
        return file;
    *ret_file = file;
    return 0;
}

int weir__http_disk_create(const char *path, int *ret_file)
{
    int file = open_at(AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

    if (file < 0)
        return file;
    *ret_file = file;
    return 0;
}

/* ---- reading and writing ---- */

int weir__http_disk_read(int file, int64_t offset, void *bytes, size_t length)
{
    ssize_t got;

    for (size_t done = 0; done < length; done += (size_t)got) {
        do
            got = weir__http_disk.pread(file, (char *)bytes + done, length - done,
                                        (off_t)(offset + (int64_t)done));
        while (got < 0 && errno == EINTR);
        if (got <= 0)
            return got < 0 ? -errno : WEIR_ETRUNCATED;
    }
    return 0;
}

int weir__http_disk_write(int file, int64_t offset, const void *bytes, size_t length)
{
    ssize_t put;

    for (size_t done = 0; done < length; done += (size_t)put) {
        do
            put = weir__http_disk.pwrite(file, (const char *)bytes + done, length - done,
                                         (off_t)(offset + (int64_t)done));
        while (put < 0 && errno == EINTR);
        if (put <= 0)
            return put < 0 ? -errno : -EIO;
    }
    return 0;
}

/* ---- folders ---- */

/* An entry of getdents64, as the kernel writes it. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
};

int weir__http_disk_list(int folder, weir__http_disk_entry_fn *fn, void *user_data)
{
    _Alignas(struct entry) char entries[8192];
    const struct entry *entry;
    ssize_t size;
    int result;

    while ((size = weir__http_disk.getdents64(folder, entries, sizeof(entries))) > 0) {
        for (ssize_t at = 0; at < size; at += entry->size) {
            entry = (const struct entry *)(const void *)(entries + at);
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            result = fn(entry->name, user_data);
            if (result != 0)
                return result;
        }
    }
    return size < 0 ? -errno : 0;
}

int weir__http_disk_look_up(int folder, const char *name, weir__http_disk_info *ret_info)
{
    struct stat status;

    if (weir__http_disk.fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return describe(&status, ret_info);
}
