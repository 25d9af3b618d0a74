/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server, and a pool of connections to it on the same loop.
 *
 *     struct pond pond;
 *     pond_open(&pond, host, POOL(.max = 2));
 *     channel = pond_acquire(pond.pool);
 *     ...
 *     assert_int_equal(pond_give(pond.pool, channel), 0);
 *     pond_close(&pond);
 */
#ifndef WEIR_TEST_POOL_FIXTURE_H
#define WEIR_TEST_POOL_FIXTURE_H

#include <weir/client.h>

#include "support/bootstrap/echo_service.h"
#include "support/loop/host.h"

#define POOL(...) WEIR_CLIENT_POOL_OPTIONS(__VA_ARGS__)

struct pond {
    struct host *host;
    struct service service;
    weir_server *server;
    char address[WEIR_ADDRESS_TEXT_SIZE];
    weir_client_pool *pool;
};

/* .client need not be set. */
void pond_open(struct pond *pond, struct host *host, const weir_client_pool_options *options);
void pond_close(struct pond *pond);

/* Only the server; and a pool of the test's own. */
void pond_serve(struct pond *pond, struct host *host);
weir_client_pool *pond_add_pool(struct pond *pond, const weir_client_pool_options *given);

/* Closes the pool, and waits for every channel of it. */
void pond_close_pool(weir_client_pool *pool);

/* Asks for a channel; waits for it: the caller keeps it, and the promise is gone. Then both. */
weir_promise *pond_ask(weir_client_pool *pool);
weir_channel *pond_take(weir_promise *acquiring);
weir_channel *pond_acquire(weir_client_pool *pool);

/* What a promise that was asked for came to; it is gone. */
int pond_result(weir_promise *acquiring);

/* Gives it back, and the reference too; returns what became of it. */
int pond_give(weir_client_pool *pool, weir_channel *channel);

/* Closes it, and waits until the pool knows. */
void pond_close_channel(weir_client_pool *pool, weir_channel *channel);

weir_client_pool_stats pond_stats(weir_client_pool *pool);

#endif
