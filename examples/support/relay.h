/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two connections that are one: what comes from the one goes to the other.
 *
 *      client <-> front  [relay] <-> [relay]  back <-> target
 *
 * Nothing more is read from the client before the target has answered. Who is slow to take what
 * comes slows down who sends it: no more is held than the mark of a channel and one read. The end
 * of a stream, or of TLS, is passed on, and leaves the other direction open. When one connection
 * has closed, so does the other, once it has sent what there is. One that breaks before its end, by
 * a reset or because TLS was cut off, breaks the other: half a message does not look like a whole.
 */
#ifndef EXAMPLES_RELAY_H
#define EXAMPLES_RELAY_H

#include <weir/weir.h>

/* Not writable above this; the read that goes beyond brings at most a quarter more. */
#define RELAY_MARK (256 * 1024)

/* What both connections are made with. */
#define RELAY_OPTIONS RELAY_OPTIONS_WITH()

/* The same, and further ones: RELAY_OPTIONS_WITH(.drain_waits = true). */
#define RELAY_OPTIONS_WITH(...)                                             \
    WEIR_CHANNEL_OPTIONS(.read_on_demand = true, /* until both are there */ \
                         .half_closure = true, .high_mark = RELAY_MARK,     \
                         .receive_max = RELAY_MARK / 4, __VA_ARGS__)

/* An initialiser of a server: relays to an address, which is its user_data, a text. Or later, for
 * who must read first to know the target: what has been read is then passed on to it. */
int relay_init(weir_channel *channel, void *target);

/*
 * Connects for `front`, on its loop: the promise's value is the connection, which has been given
 * its end of the relay by init(connection, front). Cancelling the promise gives up.
 */
typedef int relay_connect_fn(weir_channel *front, weir_init_fn *init, void *user_data,
                             weir_promise **ret_connecting);

/* As relay_init, but `connect` finds the target. */
int relay_init_with(weir_channel *channel, relay_connect_fn *connect, void *user_data);

/* The other connection, borrowed; NULL if there is none yet. On their loop. */
weir_channel *relay_other(weir_channel *channel);

#endif
