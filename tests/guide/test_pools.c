/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connection pools, as docs/guide/16-groups.md shows them.
 */
#include <stdio.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/echo_service.h"

/* doc:begin create */
static int create_pool(weir_group *loops, const char *address, weir_client_pool **ret_pool)
{
    const weir_client_options *client = WEIR_CLIENT_OPTIONS(.group = loops, .address = address);

    return weir_client_pool_create(WEIR_CLIENT_POOL_OPTIONS(.client = client, .max = 8,
                                                            .acquire_timeout_ns = weir_seconds(5),
                                                            .idle_timeout_ns = weir_seconds(60)),
                                   ret_pool);
}
/* doc:end */

/* doc:begin use */
static int use_connection(weir_client_pool *pool, void (*use)(weir_channel *channel))
{
    weir_promise *acquiring = NULL;
    int err = weir_client_pool_acquire(pool, NULL, &acquiring);

    if (!err)
        err = weir_promise_sync(acquiring, WEIR_NEVER); /* on a loop: a listener instead */
    if (!err) {
        weir_channel *channel = weir_promise_value(acquiring);

        use(channel);
        weir_client_pool_return(pool, channel, NULL); /* or close it: it leaves the pool */
    }
    weir_promise_release(acquiring);
    return err;
}
/* doc:end */

static uint64_t used[2];
static int uses;

static void use(weir_channel *channel)
{
    used[uses++] = weir_channel_id(channel);
}

TEST(pools, give_a_connection_again)
{
    weir_group *loops = make_loops(1);
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.workers = loops));
    weir_client_pool *pool = NULL;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    weir_address_format(&address, text, sizeof(text));
    assert_int_equal(create_pool(loops, text, &pool), 0);
    assert_int_equal(use_connection(pool, use), 0);
    assert_int_equal(use_connection(pool, use), 0);
    assert_int_equal(uses, 2);
    assert_int_equal(used[0], used[1]);
    weir_client_pool_close(pool);
    assert_int_equal(weir_promise_sync(weir_client_pool_closed(pool), TEST_TIMEOUT_NS), 0);
    weir_client_pool_release(pool);
    echo_service_stop(server);
    weir_group_release(loops);
}
