/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwards requests to upstreams and their responses back, both as streams: a slow receiver slows
 * down its sender. The connection to the upstream is on the loop of the client's connection, so
 * that nothing changes threads.
 *
 * A request that no byte of was sent is tried at another upstream; one that was sent only if it is
 * idempotent and has no content.
 */
#ifndef EXAMPLES_FORWARD_H
#define EXAMPLES_FORWARD_H

#include <weir/http_client.h>
#include <weir/http_server.h>

#include "support/upstream.h"

struct forwarder {
    weir_http_client *client;   /* on the loops of the server */
    struct upstreams upstreams; /* their addresses are origins: "http://127.0.0.1:8080" */
    int fall;                   /* failures in a row that mark an upstream down */
    bool is_tls;                /* towards the clients */
};

/* The handler of a streaming route; user_data is a forwarder. */
void forward(weir_http_exchange *exchange, void *user_data);

/* Adds a handler that remembers the client's address of the PROXY protocol. */
int forward_init_connection(weir_channel *channel, void *user_data);

#endif
