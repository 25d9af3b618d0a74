/* SPDX-License-Identifier: Apache-2.0 */
/* Files of Unix sockets, of each host. The functions behave as the system calls. */
#ifndef WEIR_SIM_UNIX_PATH_H
#define WEIR_SIM_UNIX_PATH_H

#include <sys/stat.h>

#include "sim/world.h"

int weir__sim_path_fchmod(int descriptor, mode_t mode);
int weir__sim_path_chmod(const char *path, mode_t mode);
int weir__sim_path_lstat(const char *path, struct stat *ret_status);
int weir__sim_path_rename(const char *from, const char *to);
int weir__sim_path_link(const char *from, const char *to);
int weir__sim_path_unlink(const char *path);

#endif
