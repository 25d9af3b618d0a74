/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool for each address.
 */
#include <weir/client.h>

#include <errno.h>
#include <stdio.h>

#include <weir/error.h>

#include "support/bootstrap/echo_service.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/memory.h"

static weir_client_pools *make(struct host *host)
{
    weir_client_pools *pools = NULL;

    assert_int_equal(
        weir_client_pools_create(
            WEIR_CLIENT_POOL_OPTIONS(.client = WEIR_CLIENT_OPTIONS(.group = host->group), .max = 2),
            &pools),
        0);
    return pools;
}

static weir_client_pool *get(weir_client_pools *pools, const char *address)
{
    weir_client_pool *pool = NULL;

    assert_int_equal(weir_client_pools_get(pools, address, &pool), 0);
    return pool;
}

TEST_EACH_LOOP(client_pools, have_one_for_each_address)
{
    weir_client_pools *pools = make(host);
    weir_client_pool *a = get(pools, "127.0.0.1:1"), *b = get(pools, "127.0.0.1:2"),
                     *again = get(pools, "127.0.0.1:1");

    assert_ptr_equal(a, again);
    assert_ptr_not_equal(a, b);
    assert_int_equal(weir_client_pools_count(pools), 2);
    weir_client_pool_release(a);
    weir_client_pool_release(b);
    weir_client_pool_release(again);
    weir_client_pools_release(weir_client_pools_retain(pools));
    assert_int_equal(weir_client_pools_count(pools), 2);
    weir_client_pools_release(pools);
}

TEST_EACH_LOOP(client_pools, connect_and_close_together)
{
    struct echo_service services[2] = {0};
    weir_server *servers[2];
    weir_channel *channels[2];
    weir_client_pool *pool[2];
    weir_client_pools *pools = make(host);

    for (int i = 0; i < 2; i++) {
        weir_address address;
        char text[WEIR_ADDRESS_TEXT_SIZE];
        weir_promise *acquiring;

        servers[i] = echo_service_start(&services[i], WEIR_SERVER_OPTIONS(.boss = host->group));
        assert_int_equal(weir_channel_local_address(weir_server_listener(servers[i], 0), &address),
                         0);
        pool[i] = get(pools, weir_address_format(&address, text, sizeof(text)));
        assert_int_equal(weir_client_pool_acquire(pool[i], NULL, &acquiring), 0);
        assert_int_equal(weir_promise_sync(acquiring, TEST_TIMEOUT_NS), 0);
        channels[i] = weir_channel_retain(weir_promise_value(acquiring));
        weir_promise_release(acquiring);
        weir_client_pool_return(pool[i], channels[i], NULL);
    }
    weir_client_pools_close(pools);
    for (int i = 0; i < 2; i++) {
        weir_client_pool *none = NULL;

        assert_int_equal(weir_promise_sync(weir_client_pool_closed(pool[i]), TEST_TIMEOUT_NS), 0);
        assert_false(weir_channel_is_open(channels[i]));
        assert_int_equal(weir_client_pools_get(pools, "127.0.0.1:3", &none), WEIR_ECLOSED);
        weir_channel_release(channels[i]);
        weir_client_pool_release(pool[i]);
    }
    assert_int_equal(weir_client_pools_count(pools), 0);
    weir_client_pools_release(pools);
    echo_service_stop(servers[1]);
    weir_server_release(servers[0]);
}

/* Or nobody could connect to its address any more. */
TEST_EACH_LOOP(client_pools, have_another_for_one_that_was_closed)
{
    weir_client_pools *pools = NULL;
    weir_client_pool *closed = NULL, *again = NULL;

    assert_int_equal(
        weir_client_pools_create(
            WEIR_CLIENT_POOL_OPTIONS(.client = WEIR_CLIENT_OPTIONS(.group = host->group)), &pools),
        0);
    assert_int_equal(weir_client_pools_get(pools, "127.0.0.1:1", &closed), 0);
    weir_client_pool_close(closed);
    assert_int_equal(weir_client_pools_get(pools, "127.0.0.1:1", &again), 0);
    assert_ptr_not_equal(again, closed);
    assert_int_equal(weir_client_pools_count(pools), 1);
    assert_false(weir_promise_is_done(weir_client_pool_closed(again)));
    weir_client_pool_release(closed);
    weir_client_pool_release(again);
    weir_client_pools_release(pools);
}

TEST_EACH_LOOP(client_pools, refuse_what_makes_no_sense)
{
    weir_client_pools *none = NULL, *pools;
    weir_client_pool *no_pool = NULL;

    log_capture_start();
    assert_int_equal(weir_client_pools_create(NULL, &none), -EINVAL);
    assert_int_equal(
        weir_client_pools_create(
            WEIR_CLIENT_POOL_OPTIONS(.client = WEIR_CLIENT_OPTIONS(.group = host->group,
                                                                   .address = "127.0.0.1:1")),
            &none),
        -EINVAL);
    assert_null(none);
    pools = make(host);
    assert_int_equal(weir_client_pools_get(pools, NULL, &no_pool), -EINVAL);
    assert_null(no_pool);
    weir_client_pools_release(pools);
}

TEST_EACH_LOOP(client_pools, survive_every_failed_allocation)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        weir_client_pools *pools = NULL;
        weir_client_pool *pool = NULL;

        test_memory_fail_at(n);
        if (weir_client_pools_create(
                WEIR_CLIENT_POOL_OPTIONS(.client = WEIR_CLIENT_OPTIONS(.group = host->group)),
                &pools) == 0 &&
            weir_client_pools_get(pools, "127.0.0.1:1", &pool) == 0)
            weir_client_pool_release(pool);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_client_pools_release(pools);
    }
}
