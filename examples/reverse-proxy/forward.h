/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwards requests to one of several upstreams, and to the next one if it cannot be reached.
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
};

/* The handler of a streaming route; user_data is a forwarder. */
void forward(weir_http_exchange *exchange, void *user_data);

/* Adds a handler that sends head and content of a response together. */
int forward_init_connection(weir_channel *channel, void *user_data);

#endif
