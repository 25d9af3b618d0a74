/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stale file is distinguished from a live one by connecting to it: without a socket the kernel
 * refuses. But it also refuses between the bind and the listen of a live process. So a file is
 * moved aside before it is removed, and tried once more: if it accepts, it is put back. And a
 * process that has begun to listen checks that the name is still its own. The later of the two sees
 * the other.
 */
#include "transport/unix_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "os/descriptor.h"
#include "os/random.h"
#include "os/system.h"
#include "transport/socket.h"

#define PATH_OFFSET offsetof(struct sockaddr_un, sun_path)
#define PATH_SIZE (sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1)
#define MARK_SIZE 9 /* the suffix of a file moved aside: ".01234567" */
#define ASIDE_MAX \
    (PATH_SIZE - 1 - MARK_SIZE) /* of a path, so that it can be connected to with the suffix */
#define ASIDE_SIZE (PATH_SIZE + MARK_SIZE)

struct weir__unix_path {
    dev_t device; /* of the file: the inode is held by the socket, */
    ino_t inode;  /* so its number is not reused */
    char path[PATH_SIZE];
};

/* ---- liveness ---- */

/* Connects to the path. 0 if the socket is stale. Fails with -EADDRINUSE (live), -ENOENT (no file),
 * or if no socket can be created. */
static int ask(const char *path, int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path); /* the terminating 0 is not needed */
    int descriptor, err;

    if (length > sizeof(address.sun_path))
        return 0; /* a file moved aside whose path is too long: it was tried before */
    memcpy(address.sun_path, path, length);
    err = weir__socket_create(AF_UNIX, type, &descriptor);
    if (err < 0)
        return err;
    err = weir__sys.connect(descriptor, (const struct sockaddr *)&address,
                            (socklen_t)(PATH_OFFSET + length)) < 0
              ? -errno
              : 0;
    (void)weir__descriptor_close(descriptor);
    if (err == -ECONNREFUSED)
        return 0;
    return err == -ENOENT ? -ENOENT : -EADDRINUSE;
}

/* The kernel also refuses connections to files that are not sockets: those are left alone. */
static int ask_file(const char *path, int type)
{
    struct stat status;

    if (weir__sys.lstat(path, &status) < 0)
        return -errno;
    if (!S_ISSOCK(status.st_mode)) {
        weir__warn("unix", path, "not a socket: left in place");
        return -EEXIST; /* not EADDRINUSE, which callers retry */
    }
    return ask(path, type);
}

/* ---- removing stale files ---- */

static void put_back(const char *aside, const char *path)
{
    if (weir__sys.link(aside, path) < 0 && errno != EEXIST)
        weir__warn("unix", path, "could not be moved back from %s: %s", aside,
                   weir_error_text(-errno));
    else
        (void)weir__sys.unlink(aside);
}

/* A name in the same directory; a long one is shortened, if possible. */
static void name_aside(const char *path, char aside[ASIDE_SIZE])
{
    const char *last = strrchr(path, '/');
    size_t length = strlen(path);

    if (length > ASIDE_MAX && (last == NULL || last < path + ASIDE_MAX))
        length = ASIDE_MAX;
    (void)snprintf(aside, ASIDE_SIZE, "%.*s.%08" PRIx32, (int)length, path,
                   (uint32_t)weir__random_next(weir__random_thread()));
}

static int remove_stale(const char *path, int type)
{
    char aside[ASIDE_SIZE];
    int err;

    name_aside(path, aside);
    if (weir__sys.rename(path, aside) < 0)
        return -errno;
    err = ask(aside, type);
    if (err < 0) {
        put_back(aside, path);
        return err;
    }
    if (weir__sys.unlink(aside) < 0)
        weir__warn("unix", aside, "cannot remove this stale socket: %s", weir_error_text(-errno));
    return 0;
}

/* Removes a stale file. 0 if the path is free now. */
static int remove_stale_file(const char *path, int type)
{
    int err = ask_file(path, type);

    if (err == 0)
        err = remove_stale(path, type);
    return err == -ENOENT ? 0 : err;
}

/* ---- binding ---- */

static bool has_path(const weir_address *address)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;

    return address->length > PATH_OFFSET && un->sun_path[0] != '\0';
}

/* Stores the inode of the file. */
static int store_inode(weir__unix_path *file)
{
    struct stat status;

    if (weir__sys.lstat(file->path, &status) < 0)
        return -errno;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    return 0;
}

/*
 * The file gets the permissions of the socket, less the umask: so it never has more than
 * `unix_mode`. What the umask has removed is added afterwards.
 */
static int bind_path(int descriptor, int type, const weir_address *local,
                     const weir_channel_options *options, weir__unix_path *file)
{
    mode_t mode = options->unix_mode;
    int err = 0;

    if (mode != 0 && weir__sys.fchmod(descriptor, mode) < 0)
        return -errno;
    err = weir__socket_bind(descriptor, local, options);
    if (err == -EADDRINUSE) {
        err = remove_stale_file(file->path, type);
        if (err == 0)
            err = weir__socket_bind(descriptor, local, options);
    }
    if (err < 0)
        return err;
    err = store_inode(file);
    if (err == 0 && mode != 0 && weir__sys.chmod(file->path, mode) < 0)
        err = -errno;
    if (err < 0)
        (void)weir__sys.unlink(file->path);
    return err;
}

int weir__unix_path_bind(int descriptor, int type, const weir_address *local,
                         const weir_channel_options *options, weir__unix_path **ret_file)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&local->storage;
    weir__unix_path *file = NULL;
    int err;

    if (local->length > sizeof(*un))
        return -EINVAL; /* as the kernel does */
    if (!has_path(local)) {
        err = weir__socket_bind(descriptor, local, options);
    } else {
        file = weir__zalloc(sizeof(*file));
        if (file == NULL)
            return -ENOMEM;
        memcpy(file->path, un->sun_path, local->length - PATH_OFFSET);
        err = bind_path(descriptor, type, local, options, file);
    }
    if (err < 0)
        weir__free(file);
    else
        *ret_file = file;
    return err;
}

/* ---- checking and removing ---- */

int weir__unix_path_check(const weir__unix_path *file)
{
    struct stat status;

    if (file == NULL)
        return 0;
    if (weir__sys.lstat(file->path, &status) < 0)
        return errno == ENOENT ? -EADDRINUSE : -errno;
    return status.st_dev == file->device && status.st_ino == file->inode ? 0 : -EADDRINUSE;
}

void weir__unix_path_end(weir__unix_path *file, bool is_left)
{
    if (file != NULL && !is_left && weir__unix_path_check(file) == 0 &&
        weir__sys.unlink(file->path) < 0)
        weir__warn("unix", file->path, "could not be removed: %s", weir_error_text(-errno));
    weir__free(file);
}
