/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server, and a pool of connections to it on the same loop.
 *
 *     struct pool_fixture fixture;
 *     pool_fixture_open(&fixture, host, POOL(.max = 2));
 *     channel = pool_fixture_acquire(fixture.pool);
 *     ...
 *     assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
 *     pool_fixture_close(&fixture);
 */
#ifndef WEIR_TEST_POOL_FIXTURE_H
#define WEIR_TEST_POOL_FIXTURE_H

#include <weir/client.h>

#include "support/bootstrap/echo_service.h"
#include "support/loop/host.h"

#define POOL(...) WEIR_CLIENT_POOL_OPTIONS(__VA_ARGS__)

struct pool_fixture {
    struct host *host;
    struct echo_service service;
    weir_server *server;
    char address[WEIR_ADDRESS_TEXT_SIZE];
    weir_client_pool *pool;
};

/* .client need not be set. */
void pool_fixture_open(struct pool_fixture *fixture, struct host *host,
                       const weir_client_pool_options *options);
void pool_fixture_close(struct pool_fixture *fixture);

/* Starts only the server; creates a pool. */
void pool_fixture_start_server(struct pool_fixture *fixture, struct host *host);
weir_client_pool *pool_fixture_add_pool(struct pool_fixture *fixture,
                                        const weir_client_pool_options *given);

/* Closes the pool, and waits until all channels are closed. */
void pool_fixture_close_pool(weir_client_pool *pool);

/* Requests a channel; waits for it, and releases the promise: the caller owns the channel; or both.
 */
weir_promise *pool_fixture_request(weir_client_pool *pool);
weir_channel *pool_fixture_wait(weir_promise *acquiring);
weir_channel *pool_fixture_acquire(weir_client_pool *pool);

/* Waits for the result of a request, and releases the promise. */
int pool_fixture_result(weir_promise *acquiring);

/* Returns the channel, releases it, and waits for the result. */
int pool_fixture_return(weir_client_pool *pool, weir_channel *channel);

/* Closes the channel, and waits until the pool has noticed. */
void pool_fixture_close_channel(weir_client_pool *pool, weir_channel *channel);

weir_client_pool_stats pool_fixture_stats(weir_client_pool *pool);

#endif
