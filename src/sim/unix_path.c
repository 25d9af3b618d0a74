/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/unix_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UMASK 022
#define DEVICE 1

struct path {
    weir__list link; /* of the host */
    weir__sim_inode *inode;
    char name[];
};

/* ---- inodes ---- */

static void release_inode(weir__sim_inode *inode)
{
    if (--inode->references == 0)
        free(inode);
}

void weir__sim_inode_leave(weir__sim_inode *inode)
{
    if (inode == NULL)
        return;
    inode->socket = NULL;
    release_inode(inode);
}

/* ---- paths ---- */

static struct path *find(const weir_sim_host *host, const char *name)
{
    weir_list_foreach (link, &host->paths) {
        struct path *path = WEIR_CONTAINER_OF(link, struct path, link);

        if (strcmp(path->name, name) == 0)
            return path;
    }
    return NULL;
}

static struct path *add(weir_sim_host *host, const char *name, weir__sim_inode *inode)
{
    struct path *path = malloc(sizeof(*path) + strlen(name) + 1);

    if (path == NULL)
        return NULL;
    memcpy(path->name, name, strlen(name) + 1);
    path->inode = inode;
    inode->references++;
    weir__list_append(&host->paths, &path->link);
    return path;
}

static void free_path(struct path *path)
{
    weir__list_remove(&path->link);
    release_inode(path->inode);
    free(path);
}

void weir__sim_paths_free(weir_sim_host *host)
{
    weir_list_foreach (link, &host->paths)
        free_path(WEIR_CONTAINER_OF(link, struct path, link));
}

weir__sim_inode *weir__sim_path_find(const weir_sim_host *host, const char *path)
{
    const struct path *found = find(host, path);

    return found != NULL ? found->inode : NULL;
}

int weir__sim_path_bind(const char *path, weir__sim_socket *socket, weir__sim_inode **ret_inode)
{
    weir__sim_inode *inode;

    if (find(socket->host, path) != NULL)
        return -EADDRINUSE;
    inode = calloc(1, sizeof(*inode));
    if (inode == NULL)
        return -ENOMEM;
    inode->number = ++weir__sim->next_file;
    inode->references = 1;
    inode->mode = socket->mode & ~(mode_t)UMASK;
    inode->socket = socket;
    if (add(socket->host, path, inode) == NULL) {
        free(inode);
        return -ENOMEM;
    }
    weir__sim_trace_text("bind", path);
    *ret_inode = inode;
    return 0;
}

/* ---- system calls ---- */

static int fail(int err)
{
    errno = err;
    return -1;
}

/* The path on the caller's host. Sets errno if there is none. */
static struct path *find_own(const char *name)
{
    struct path *path = weir_sim_is_dying() ? NULL : find(weir__sim_process()->host, name);

    if (path == NULL)
        errno = weir_sim_is_dying() ? EIO : ENOENT;
    return path;
}

int weir__sim_path_fchmod(int descriptor, mode_t mode)
{
    weir__sim_socket *socket = weir__sim_socket_of(descriptor);

    if (descriptor < WEIR__SIM_FD_FIRST)
        return weir__sim->real.fchmod(descriptor, mode);
    if (socket == NULL)
        return fail(weir__sim_file_of(descriptor) != NULL ? EINVAL : EBADF);
    socket->mode = mode;
    return 0;
}

int weir__sim_path_chmod(const char *path, mode_t mode)
{
    const struct path *found = find_own(path);

    if (found == NULL)
        return -1;
    found->inode->mode = mode;
    return 0;
}

int weir__sim_path_lstat(const char *path, struct stat *ret_status)
{
    const struct path *found = find_own(path);

    if (found == NULL)
        return -1;
    memset(ret_status, 0, sizeof(*ret_status));
    ret_status->st_mode = S_IFSOCK | found->inode->mode;
    ret_status->st_dev = DEVICE;
    ret_status->st_ino = (ino_t)found->inode->number;
    ret_status->st_nlink = 1;
    return 0;
}

int weir__sim_path_unlink(const char *path)
{
    struct path *found = find_own(path);

    if (found == NULL)
        return -1;
    weir__sim_trace_text("unlink", path);
    free_path(found);
    return 0;
}

int weir__sim_path_link(const char *from, const char *to)
{
    const struct path *found = find_own(from);

    if (found == NULL)
        return -1;
    if (find(weir__sim_process()->host, to) != NULL)
        return fail(EEXIST);
    weir__sim_trace_text("link", to);
    return add(weir__sim_process()->host, to, found->inode) != NULL ? 0 : fail(ENOMEM);
}

int weir__sim_path_rename(const char *from, const char *to)
{
    struct path *found = find_own(from), *replaced = find(weir__sim_process()->host, to);

    if (found == NULL)
        return -1;
    if (replaced != NULL && replaced->inode == found->inode)
        return 0; /* as the kernel does: two names of one file */
    if (add(weir__sim_process()->host, to, found->inode) == NULL)
        return fail(ENOMEM);
    weir__sim_trace_text("rename", to);
    free_path(found);
    if (replaced != NULL)
        free_path(replaced);
    return 0;
}
