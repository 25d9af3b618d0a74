/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test of pools does again and again.
 */
#include "support/bootstrap/pool_fixture.h"

#include <string.h>

#include "os/thread.h"
#include "support/executor/group.h"
#include "support/executor/promises.h"

void pond_serve(struct pond *pond, struct host *host)
{
    weir_address address;

    memset(pond, 0, sizeof(*pond));
    pond->host = host;
    pond->server = service_start(&pond->service, WEIR_SERVER_OPTIONS(.boss = host->group));
    assert_int_equal(weir_channel_local_address(weir_server_listener(pond->server, 0), &address),
                     0);
    weir_address_format(&address, pond->address, sizeof(pond->address));
}

weir_client_pool *pond_add_pool(struct pond *pond, const weir_client_pool_options *given)
{
    weir_client_pool_options options = *given;
    weir_client_pool *pool = NULL;

    options.client = WEIR_CLIENT_OPTIONS(.group = pond->host->group, .address = pond->address);
    assert_int_equal(weir_client_pool_create(&options, &pool), 0);
    return pool;
}

void pond_open(struct pond *pond, struct host *host, const weir_client_pool_options *options)
{
    pond_serve(pond, host);
    pond->pool = pond_add_pool(pond, options);
}

void pond_close_pool(weir_client_pool *pool)
{
    weir_client_pool_close(pool);
    assert_int_equal(weir_promise_sync(weir_client_pool_closed(pool), TEST_TIMEOUT_NS), 0);
    weir_client_pool_release(pool);
}

void pond_close(struct pond *pond)
{
    pond_close_pool(pond->pool);
    service_stop(pond->server);
}

weir_promise *pond_ask(weir_client_pool *pool)
{
    weir_promise *acquiring = NULL;

    assert_int_equal(weir_client_pool_acquire(pool, NULL, &acquiring), 0);
    return acquiring;
}

weir_channel *pond_take(weir_promise *acquiring)
{
    weir_channel *channel;

    assert_int_equal(weir_promise_sync(acquiring, TEST_TIMEOUT_NS), 0);
    channel = weir_channel_retain(weir_promise_value(acquiring));
    weir_promise_release(acquiring);
    return channel;
}

weir_channel *pond_acquire(weir_client_pool *pool)
{
    return pond_take(pond_ask(pool));
}

int pond_result(weir_promise *acquiring)
{
    int err = weir_promise_sync(acquiring, TEST_TIMEOUT_NS);

    weir_promise_release(acquiring);
    return err;
}

int pond_give(weir_client_pool *pool, weir_channel *channel)
{
    weir_promise *done = new_promise(NULL);
    int err;

    weir_client_pool_return(pool, channel, done);
    err = weir_promise_sync(done, TEST_TIMEOUT_NS);
    weir_promise_release(done);
    weir_channel_release(channel);
    return err;
}

weir_client_pool_stats pond_stats(weir_client_pool *pool)
{
    weir_client_pool_stats stats;

    weir_client_pool_read_stats(pool, &stats);
    return stats;
}

void pond_close_channel(weir_client_pool *pool, weir_channel *channel)
{
    uint64_t channels = pond_stats(pool).channels;

    weir_channel_close(channel, NULL);
    while (pond_stats(pool).channels == channels)
        weir__thread_yield();
    weir_channel_release(channel);
}
