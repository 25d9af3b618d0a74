/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test of pools does again and again.
 */
#include "support/bootstrap/pool_fixture.h"

#include <string.h>

#include "os/thread.h"
#include "support/executor/group.h"
#include "support/executor/promises.h"

void pool_fixture_start_server(struct pool_fixture *fixture, struct host *host)
{
    weir_address address;

    memset(fixture, 0, sizeof(*fixture));
    fixture->host = host;
    fixture->server =
        echo_service_start(&fixture->service, WEIR_SERVER_OPTIONS(.boss = host->group));
    assert_int_equal(weir_channel_local_address(weir_server_listener(fixture->server, 0), &address),
                     0);
    weir_address_format(&address, fixture->address, sizeof(fixture->address));
}

weir_client_pool *pool_fixture_add_pool(struct pool_fixture *fixture,
                                        const weir_client_pool_options *given)
{
    weir_client_pool_options options = *given;
    weir_client_pool *pool = NULL;

    options.client =
        WEIR_CLIENT_OPTIONS(.group = fixture->host->group, .address = fixture->address);
    assert_int_equal(weir_client_pool_create(&options, &pool), 0);
    return pool;
}

void pool_fixture_open(struct pool_fixture *fixture, struct host *host,
                       const weir_client_pool_options *options)
{
    pool_fixture_start_server(fixture, host);
    fixture->pool = pool_fixture_add_pool(fixture, options);
}

void pool_fixture_close_pool(weir_client_pool *pool)
{
    weir_client_pool_close(pool);
    assert_int_equal(weir_promise_sync(weir_client_pool_closed(pool), TEST_TIMEOUT_NS), 0);
    weir_client_pool_release(pool);
}

void pool_fixture_close(struct pool_fixture *fixture)
{
    pool_fixture_close_pool(fixture->pool);
    echo_service_stop(fixture->server);
}

weir_promise *pool_fixture_request(weir_client_pool *pool)
{
    weir_promise *acquiring = NULL;

    assert_int_equal(weir_client_pool_acquire(pool, NULL, &acquiring), 0);
    return acquiring;
}

weir_channel *pool_fixture_wait(weir_promise *acquiring)
{
    weir_channel *channel;

    assert_int_equal(weir_promise_sync(acquiring, TEST_TIMEOUT_NS), 0);
    channel = weir_channel_retain(weir_promise_value(acquiring));
    weir_promise_release(acquiring);
    return channel;
}

weir_channel *pool_fixture_acquire(weir_client_pool *pool)
{
    return pool_fixture_wait(pool_fixture_request(pool));
}

int pool_fixture_result(weir_promise *acquiring)
{
    int err = weir_promise_sync(acquiring, TEST_TIMEOUT_NS);

    weir_promise_release(acquiring);
    return err;
}

int pool_fixture_return(weir_client_pool *pool, weir_channel *channel)
{
    weir_promise *done = new_promise(NULL);
    int err;

    weir_client_pool_return(pool, channel, done);
    err = weir_promise_sync(done, TEST_TIMEOUT_NS);
    weir_promise_release(done);
    weir_channel_release(channel);
    return err;
}

weir_client_pool_stats pool_fixture_stats(weir_client_pool *pool)
{
    weir_client_pool_stats stats;

    weir_client_pool_read_stats(pool, &stats);
    return stats;
}

void pool_fixture_close_channel(weir_client_pool *pool, weir_channel *channel)
{
    uint64_t channels = pool_fixture_stats(pool).channels;

    weir_channel_close(channel, NULL);
    while (pool_fixture_stats(pool).channels == channels)
        weir__thread_yield();
    weir_channel_release(channel);
}
