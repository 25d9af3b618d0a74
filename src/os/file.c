/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "os/system.h"

#define PIECE_SIZE 4096

int weir__file_version_read(const char *path, weir__file_version *ret_version)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return -errno;
    *ret_version = (weir__file_version){
        .device = status.st_dev,
        .inode = status.st_ino,
        .size = status.st_size,
        .modified_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec,
    };
    return 0;
}

bool weir__file_version_equal(const weir__file_version *a, const weir__file_version *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_ns == b->modified_ns;
}

/* Reads up to the end of the file, because the size in stat is not reliable, as in /proc. */
static int read_all(int file, size_t max, char **text, size_t *length)
{
    for (;;) {
        char *grown = weir__realloc(*text, *length + PIECE_SIZE + 1);
        ssize_t got;

        if (grown == NULL)
            return -ENOMEM;
        *text = grown;
        do
            got = weir__sys.read(file, grown + *length, PIECE_SIZE);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return -errno;
        *length += (size_t)got;
        grown[*length] = '\0';
        if (got == 0)
            return 0;
        if (*length > max)
            return -EFBIG;
    }
}

int weir__file_read(const char *path, size_t max, char **ret_text, size_t *ret_length)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t length = 0;
    int err;

    if (file < 0)
        return -errno;
    err = read_all(file, max, &text, &length);
    (void)weir__sys.close(file);
    if (err < 0) {
        weir__free(text);
        return err;
    }
    *ret_text = text;
    *ret_length = length;
    return 0;
}

int weir__file_create(const char *path, int *ret_file)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (file < 0)
        return -errno;
    *ret_file = file;
    return 0;
}

int weir__file_append(const char *path, int *ret_file)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (file < 0)
        return -errno;
    *ret_file = file;
    return 0;
}

int weir__file_write(int file, const void *bytes, size_t length)
{
    const char *from = bytes;

    while (length > 0) {
        ssize_t done = weir__sys.write(file, from, length);

        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            from += done;
            length -= (size_t)done;
        }
    }
    return 0;
}
