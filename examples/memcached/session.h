/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's connection: its commands go to the loops of their keys, and their answers come back in
 * the order of the commands.
 *
 *      [commands] -> [session]   get a      own shard: at once
 *                                get b      another's: a task there, and a task back
 *
 * A command is one request for each key or shard. The requests of a client stand in a queue, and
 * its head is answered as soon as it is done.
 */
#ifndef EXAMPLES_SESSION_H
#define EXAMPLES_SESSION_H

#include "shard.h"

/* An initialiser of a server: its user_data is the cache. */
int session_init(weir_channel *channel, void *cache);

#endif
