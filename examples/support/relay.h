/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays between two connections.
 *
 *      client <-> front  [relay] <-> [relay]  back <-> target
 *
 * The client is not read before the target is connected. A slow receiver slows down its sender: at
 * most the high mark of a channel and one read are held. The end of a stream or of TLS is passed on
 * and leaves the other direction open. When one connection closes, the other closes after sending
 * what is queued. A reset, or truncated TLS, resets the other: a partial message never looks whole.
 */
#ifndef EXAMPLES_RELAY_H
#define EXAMPLES_RELAY_H

#include <weir/weir.h>

/* The high mark; the read that exceeds it adds at most a quarter. */
#define RELAY_MARK (256 * 1024)

/* The options of both connections. */
#define RELAY_OPTIONS RELAY_OPTIONS_WITH()

/* The same with more options: RELAY_OPTIONS_WITH(.drain_waits = true). */
#define RELAY_OPTIONS_WITH(...)                                             \
    WEIR_CHANNEL_OPTIONS(.read_on_demand = true, /* until both are there */ \
                         .half_closure = true, .high_mark = RELAY_MARK,     \
                         .receive_max = RELAY_MARK / 4, __VA_ARGS__)

/* An initializer of a server: relays to the address `target`, a text. May be called later, by a
 * handler that reads first to find the target: data read before is passed on. */
int relay_init(weir_channel *channel, void *target);

/*
 * Connects for `front`, on its loop. The value of the promise is the connection, set up by
 * init(connection, front). Cancelling the promise aborts the attempt.
 */
typedef int relay_connect_fn(weir_channel *front, weir_init_fn *init, void *user_data,
                             weir_promise **ret_connecting);

/* As relay_init, but `connect` finds the target. */
int relay_init_with(weir_channel *channel, relay_connect_fn *connect, void *user_data);

/* The `init` of a relay_connect_fn, for callers that add handlers before the relay. */
int relay_init_back(weir_channel *channel, void *front);

/* The other connection, borrowed; NULL if there is none yet. On their loop. */
weir_channel *relay_other(weir_channel *channel);

#endif
