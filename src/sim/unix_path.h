/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of Unix sockets, of each host. A path names an inode, which has a socket until that closes;
 * the file stays until it is removed. Nothing but sockets is in this file system, and every
 * directory exists.
 */
#ifndef WEIR_SIM_UNIX_PATH_H
#define WEIR_SIM_UNIX_PATH_H

#include <sys/stat.h>

#include "sim/network.h"

/* System calls. Those of a killed process fail with EIO and change nothing. */
int weir__sim_path_fchmod(int descriptor, mode_t mode);
int weir__sim_path_chmod(const char *path, mode_t mode);
int weir__sim_path_lstat(const char *path, struct stat *ret_status);
int weir__sim_path_rename(const char *from, const char *to);
int weir__sim_path_link(const char *from, const char *to);
int weir__sim_path_unlink(const char *path);

typedef struct weir__sim_inode {
    uint64_t number;
    unsigned references; /* paths, and the socket */
    mode_t mode;
    weir__sim_socket *socket; /* NULL: closed */
} weir__sim_inode;

/* Creates a file for a socket. Fails with -EADDRINUSE, -ENOMEM. */
int weir__sim_path_bind(const char *path, weir__sim_socket *socket, weir__sim_inode **ret_inode);

/* The socket closes. NULL is ignored. */
void weir__sim_inode_leave(weir__sim_inode *inode);

/* NULL if there is no such file on the host. */
weir__sim_inode *weir__sim_path_find(const weir_sim_host *host, const char *path);
void weir__sim_paths_free(weir_sim_host *host);

#endif
