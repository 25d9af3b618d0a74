/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that a Unix socket is bound to: made by bind, and left behind by the system when the
 * socket is closed. So a process that dies leaves one at which nobody answers, and the next that
 * wants the name has to take it away; a living one is not touched.
 *
 * How two who start at the same time find out which of them has the name: docs/decisions/0018.
 */
#ifndef WEIR_TRANSPORT_UNIX_PATH_H
#define WEIR_TRANSPORT_UNIX_PATH_H

#include <weir/address.h>
#include <weir/channel.h>

typedef struct weir__unix_path weir__unix_path;

/*
 * Binds a Unix socket of that type, with the permissions of `unix_mode`. Gives NULL if the name is
 * an abstract one: there is no file. Fails with -EADDRINUSE (somebody answers there), -EEXIST (it
 * is no socket), -ENOMEM, or what the system says.
 */
int weir__unix_path_bind(int descriptor, int type, const weir_address *local,
                         const weir_channel_options *options, weir__unix_path **ret_file);

/* Whether the name still leads to this socket, once it can be connected to: -EADDRINUSE if somebody
 * else has taken it meanwhile. NULL is fine. */
int weir__unix_path_check(const weir__unix_path *file);

/* The socket is about to be closed: removes the file, if it is still this socket's, unless it is to
 * be left to another process that has the socket. NULL is fine. Takes: file. */
void weir__unix_path_end(weir__unix_path *file, bool is_left);

#endif
