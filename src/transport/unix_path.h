/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a Unix socket: created by bind, and left in place by the kernel when the socket is
 * closed. So a process that dies leaves a stale file, which the next one has to remove, without
 * touching that of a live process.
 *
 * docs/decisions/0018 describes the protocol between processes that start at the same time.
 */
#ifndef WEIR_TRANSPORT_UNIX_PATH_H
#define WEIR_TRANSPORT_UNIX_PATH_H

#include <weir/address.h>
#include <weir/channel.h>

typedef struct weir__unix_path weir__unix_path;

/*
 * Binds a Unix socket of that type, with the permissions of `unix_mode`. Gives NULL for an abstract
 * name, which has no file. Fails with -EADDRINUSE (a live socket), -EEXIST (not a socket), -ENOMEM,
 * and with errors of bind.
 */
int weir__unix_path_bind(int descriptor, int type, const weir_address *local,
                         const weir_channel_options *options, weir__unix_path **ret_file);

/* After listen: fails with -EADDRINUSE if another process has taken the name meanwhile. NULL is
 * ignored. */
int weir__unix_path_check(const weir__unix_path *file);

/* Before the socket is closed: removes the file if it is still its own, unless another process uses
 * the socket. NULL is ignored. Takes: file. */
void weir__unix_path_end(weir__unix_path *file, bool is_left);

#endif
