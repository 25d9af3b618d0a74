/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of connections: C.12, ChannelPool. Each test has a server on the same loop. Time and those
 * who watch are in test_client_pool_time.c and test_client_pool_watch.c.
 */
#include <weir/client.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/pool_fixture.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/promises.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/resolver/fake_dns.h"

/* ---- using channels again ---- */

TEST_EACH_LOOP(client_pool, uses_a_channel_again)
{
    struct pool_fixture fixture;
    weir_channel *first, *second;

    pool_fixture_open(&fixture, host, POOL(.max = 4));
    first = pool_fixture_acquire(fixture.pool);
    assert_true(weir_channel_is_active(first));
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(first)), 0);
    assert_int_equal(pool_fixture_stats(fixture.pool).idle, 1);
    second = pool_fixture_acquire(fixture.pool);
    assert_ptr_equal(second, first);
    assert_int_equal(pool_fixture_return(fixture.pool, second), 0);
    weir_channel_release(first);
    assert_int_equal(pool_fixture_stats(fixture.pool).created, 1);
    assert_int_equal(pool_fixture_stats(fixture.pool).acquired, 2);
    pool_fixture_close(&fixture);
    assert_int_equal(fixture.service.opened.calls, 1);
}

static void acquire_and_give_two(struct pool_fixture *fixture, weir_channel *channels[2])
{
    for (int i = 0; i < 2; i++)
        channels[i] = pool_fixture_acquire(fixture->pool);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pool_fixture_return(fixture->pool, channels[i]),
                         0); /* the pool keeps them */
}

TEST_EACH_LOOP(client_pool, hands_out_the_last_one_first)
{
    struct pool_fixture fixture;
    weir_channel *channels[2], *channel;

    pool_fixture_open(&fixture, host, POOL(.order = WEIR_CLIENT_POOL_LIFO));
    acquire_and_give_two(&fixture, channels);
    channel = pool_fixture_acquire(fixture.pool);
    assert_ptr_equal(channel, channels[1]);
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, hands_out_the_first_one_first)
{
    struct pool_fixture fixture;
    weir_channel *channels[2], *channel;

    pool_fixture_open(&fixture, host, POOL(.order = WEIR_CLIENT_POOL_FIFO));
    acquire_and_give_two(&fixture, channels);
    channel = pool_fixture_acquire(fixture.pool);
    assert_ptr_equal(channel, channels[0]);
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, keeps_no_more_idle_than_allowed)
{
    enum { COUNT = 20 }; /* more than the default limit */
    struct pool_fixture fixture;
    weir_channel *channels[COUNT];

    pool_fixture_open(&fixture, host, POOL(.max = WEIR_OFF, .max_idle = 2));
    for (int i = 0; i < COUNT; i++)
        channels[i] = pool_fixture_acquire(fixture.pool);
    assert_int_equal(pool_fixture_stats(fixture.pool).channels, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(pool_fixture_return(fixture.pool, channels[i]), 0);
    assert_int_equal(pool_fixture_stats(fixture.pool).idle, 2);
    assert_int_equal(pool_fixture_stats(fixture.pool).channels, 2);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, connects_to_names)
{
    struct pool_fixture fixture;
    weir_resolver *resolver = fake_dns_open(NULL);
    char address[WEIR_ADDRESS_TEXT_SIZE];

    pool_fixture_start_server(&fixture, host);
    (void)snprintf(address, sizeof(address), "here.test%s", strrchr(fixture.address, ':'));
    assert_int_equal(
        weir_client_pool_create(
            POOL(.client = WEIR_CLIENT_OPTIONS(.group = host->group, .address = address,
                                               .resolver = resolver)),
            &fixture.pool),
        0);
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_acquire(fixture.pool)), 0);
    pool_fixture_close(&fixture);
    fake_dns_close(resolver);
}

/* ---- failures ---- */

TEST_EACH_LOOP(client_pool, fails_one_acquisition_per_failed_connection)
{
    struct pool_fixture fixture = {.host = host};
    weir_address nobody = unused_address();
    weir_promise *waiting[4];

    weir_address_format(&nobody, fixture.address, sizeof(fixture.address));
    fixture.pool = pool_fixture_add_pool(&fixture, POOL(.max = 2));
    for (int i = 0; i < 4; i++)
        waiting[i] = pool_fixture_request(fixture.pool);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(weir_promise_sync(waiting[i], TEST_TIMEOUT_NS), -ECONNREFUSED);
        assert_non_null(strstr(weir_promise_detail(waiting[i]), fixture.address));
        weir_promise_release(waiting[i]);
    }
    assert_int_equal(pool_fixture_stats(fixture.pool).channels, 0);
    assert_int_equal(pool_fixture_stats(fixture.pool).failed, 4);
    pool_fixture_close_pool(fixture.pool);
}

TEST_EACH_LOOP(client_pool, lets_a_channel_go_that_closes_while_it_is_idle)
{
    struct pool_fixture fixture;
    weir_channel *channel;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    channel = pool_fixture_acquire(fixture.pool);
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(channel)), 0);
    pool_fixture_close_channel(fixture.pool, channel);
    assert_int_equal(pool_fixture_stats(fixture.pool).idle, 0);
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_acquire(fixture.pool)), 0);
    assert_int_equal(pool_fixture_stats(fixture.pool).created, 2);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, makes_room_when_a_channel_closes_that_was_out)
{
    struct pool_fixture fixture;
    weir_channel *channel;
    weir_promise *waiting;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    channel = pool_fixture_acquire(fixture.pool);
    waiting = pool_fixture_request(fixture.pool);
    weir_channel_close(channel, NULL);
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_wait(waiting)), 0);
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0); /* closed as it is */
    assert_int_equal(pool_fixture_stats(fixture.pool).created, 2);
    assert_int_equal(pool_fixture_stats(fixture.pool).idle, 1);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, closes_what_is_not_its_own)
{
    struct pool_fixture fixture;
    weir_client_pool *other;
    weir_channel *channel, *stranger = NULL;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    other = pool_fixture_add_pool(&fixture, POOL(.max = 1));
    channel = pool_fixture_acquire(fixture.pool);
    assert_int_equal(pool_fixture_return(other, weir_channel_retain(channel)), -EINVAL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = host->group, .address = fixture.address), &stranger),
        0);
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(stranger)), -EINVAL);
    assert_int_equal(weir_channel_await_closed(stranger, TEST_TIMEOUT_NS), 0);
    weir_channel_release(stranger);
    assert_int_equal(pool_fixture_stats(fixture.pool).channels, 0);
    pool_fixture_close_pool(other);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, takes_a_channel_back_only_once)
{
    struct pool_fixture fixture;
    weir_channel *channel;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    channel = pool_fixture_acquire(fixture.pool);
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(channel)), 0);
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(channel)), -EALREADY);
    assert_true(weir_channel_is_active(channel));
    assert_int_equal(pool_fixture_stats(fixture.pool).idle, 1);
    weir_channel_release(channel);
    pool_fixture_close(&fixture);
}

/* ---- the end ---- */

TEST_EACH_LOOP(client_pool, fails_waiting_acquisitions_when_closed)
{
    struct pool_fixture fixture;
    weir_channel *out;
    weir_promise *waiting[2];

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    out = pool_fixture_acquire(fixture.pool);
    for (int i = 0; i < 2; i++)
        waiting[i] = pool_fixture_request(fixture.pool);
    weir_client_pool_close(fixture.pool);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pool_fixture_result(waiting[i]), WEIR_ECLOSED);
    assert_int_equal(pool_fixture_result(pool_fixture_request(fixture.pool)), WEIR_ECLOSED);
    assert_true(weir_channel_is_open(out));
    assert_false(weir_promise_is_done(weir_client_pool_closed(fixture.pool)));
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(out)), 0);
    assert_int_equal(weir_channel_await_closed(out, TEST_TIMEOUT_NS), 0);
    weir_channel_release(out);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, closes_what_is_idle_when_it_is_closed)
{
    struct pool_fixture fixture;
    weir_channel *idle;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    idle = pool_fixture_acquire(fixture.pool);
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(idle)), 0);
    weir_client_pool_close(fixture.pool);
    assert_int_equal(weir_channel_await_closed(idle, TEST_TIMEOUT_NS), 0);
    weir_channel_release(idle);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, gives_connections_up_when_it_is_closed)
{
    struct silent_address silent;
    struct pool_fixture fixture = {.host = host};
    weir_promise *waiting;

    silent_address_init(&silent);
    weir_address_format(&silent.address, fixture.address, sizeof(fixture.address));
    fixture.pool = pool_fixture_add_pool(&fixture, POOL(.max = 1));
    waiting = pool_fixture_request(fixture.pool);
    host_turn(host, 2);
    weir_client_pool_close(fixture.pool);
    assert_int_equal(pool_fixture_result(waiting), WEIR_ECLOSED);
    pool_fixture_close_pool(fixture.pool);
    silent_address_deinit(&silent);
}

static void close_pool(weir_channel *channel, void *pool)
{
    (void)channel;
    weir_client_pool_close(*(weir_client_pool **)pool);
}

/* Nobody waits for the connection any more, and nobody will. */
TEST_EACH_LOOP(client_pool, closes_a_connection_that_is_made_as_it_is_closed)
{
    struct pool_fixture fixture;
    weir_promise *waiting;

    pool_fixture_open(&fixture, host,
                      POOL(.max = 1, .created = close_pool, .user_data = &fixture.pool));
    waiting = pool_fixture_request(fixture.pool);
    assert_int_equal(pool_fixture_result(waiting), WEIR_ECLOSED);
    assert_int_equal(weir_promise_sync(weir_client_pool_closed(fixture.pool), TEST_TIMEOUT_NS), 0);
    pool_fixture_close(&fixture);
    assert_int_equal(fixture.service.opened.calls, fixture.service.closed.calls);
}

/* The last reference closes it; a channel that is out keeps its memory. */
TEST_EACH_LOOP(client_pool, released_by_all_closes)
{
    struct pool_fixture fixture;
    weir_channel *out, *idle;

    pool_fixture_open(&fixture, host, POOL(.max = 2));
    out = pool_fixture_acquire(fixture.pool);
    idle = pool_fixture_acquire(fixture.pool);
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(idle)), 0);
    weir_client_pool_release(weir_client_pool_retain(fixture.pool));
    assert_true(weir_channel_is_open(idle));
    weir_client_pool_release(fixture.pool);
    assert_int_equal(weir_channel_await_closed(idle, TEST_TIMEOUT_NS), 0);
    weir_channel_close(out, NULL);
    assert_int_equal(weir_channel_await_closed(out, TEST_TIMEOUT_NS), 0);
    weir_channel_release(idle);
    weir_channel_release(out);
    echo_service_stop(fixture.server);
}

/* Released by a listener while a call of the pool is in progress. */
struct ending {
    weir_client_pool *pool;
    weir_channel *channel;
    weir_promise *promise;
    weir_listener listener;
};

static void let_all_go(weir_promise *promise, void *user_data)
{
    struct ending *ending = user_data;

    (void)promise;
    if (ending->channel != NULL)
        weir_channel_abort(ending->channel, NULL);
    weir_client_pool_release(ending->pool);
    weir_channel_release(ending->channel);
    weir_promise_release(ending->promise);
}

static void close_with_a_listener(void *arg)
{
    struct ending *ending = arg;

    weir_promise_listen(ending->promise, &ending->listener);
    weir_client_pool_close(ending->pool);
}

/* A listener of the close may release the last reference to the pool. */
TEST_EACH_LOOP(client_pool, may_go_while_it_is_closed)
{
    struct silent_address silent;
    struct pool_fixture fixture = {.host = host};
    struct ending ending = {.listener = {.fn = let_all_go, .user_data = &ending}};

    silent_address_init(&silent);
    weir_address_format(&silent.address, fixture.address, sizeof(fixture.address));
    ending.pool = pool_fixture_add_pool(&fixture, POOL(.max = 1, .acquire_timeout_ns = WEIR_OFF));
    assert_int_equal(weir_client_pool_acquire(ending.pool, host->loop, &ending.promise), 0);
    host_turn(host, 2);
    run_on_executor(host->loop, close_with_a_listener, &ending);
    silent_address_deinit(&silent);
}

static void give_with_a_listener(void *arg)
{
    struct ending *ending = arg;

    weir_promise_listen(ending->promise, &ending->listener);
    weir_client_pool_return(ending->pool, ending->channel, ending->promise);
}

/* So may who hears that the channel is back. */
TEST_EACH_LOOP(client_pool, may_go_while_it_takes_a_channel_back)
{
    struct pool_fixture fixture;
    struct ending ending = {.listener = {.fn = let_all_go, .user_data = &ending}};

    pool_fixture_open(&fixture, host, POOL(.max = 1, .acquire_timeout_ns = WEIR_OFF));
    ending.pool = fixture.pool;
    ending.channel = pool_fixture_acquire(fixture.pool);
    ending.promise = new_promise(host->loop);
    run_on_executor(host->loop, give_with_a_listener, &ending);
    echo_service_stop(fixture.server);
}

TEST_EACH_LOOP(client_pool, leaves_nobody_waiting_when_its_group_ends)
{
    struct pool_fixture fixture;
    struct host other;
    weir_promise *waiting[3];
    weir_channel *out;

    pool_fixture_start_server(&fixture, host);
    host_open(&other, (enum backend_id)(host->backend - backends));
    fixture.host = &other;
    fixture.pool = pool_fixture_add_pool(&fixture, POOL(.max = 1, .acquire_timeout_ns = WEIR_OFF));
    out = pool_fixture_acquire(fixture.pool);
    for (int i = 0; i < 3; i++)
        waiting[i] = pool_fixture_request(fixture.pool);
    host_end(&other);
    for (int i = 0; i < 3; i++) {
        int err = pool_fixture_result(waiting[i]);

        assert_true(err == WEIR_EREJECTED || err == WEIR_ECLOSED); /* the later, the more final */
    }
    weir_channel_release(out);
    pool_fixture_close_pool(fixture.pool);
    weir_group_release(other.group);
    echo_service_stop(fixture.server);
}

TEST_EACH_LOOP(client_pool, rejects_invalid_options)
{
    const weir_client_options *client =
        WEIR_CLIENT_OPTIONS(.group = host->group, .address = "127.0.0.1:1");
    weir_client_pool *none = NULL;

    log_capture_start();
    assert_int_equal(weir_client_pool_create(NULL, &none), -EINVAL);
    assert_int_equal(weir_client_pool_create(POOL(.max = 1), &none), -EINVAL);
    assert_int_equal(weir_client_pool_create(POOL(.client = client, .max = -2), &none), -EINVAL);
    assert_int_equal(weir_client_pool_create(POOL(.client = client, .max_idle = -1), &none),
                     -EINVAL);
    assert_int_equal(
        weir_client_pool_create(POOL(.client = client, .acquire_timeout_ns = -2), &none), -EINVAL);
    assert_int_equal(
        weir_client_pool_create(POOL(.client = WEIR_CLIENT_OPTIONS(.group = host->group)), &none),
        -EINVAL);
    assert_int_equal(weir_client_pool_create(
                         POOL(.client = client, .executor = weir_executor_immediate()), &none),
                     -EINVAL);
    client = WEIR_CLIENT_OPTIONS(.group = host->group, .address = "a name without a port");
    assert_int_equal(weir_client_pool_create(POOL(.client = client), &none), -EINVAL);
    assert_null(none);
}

/* Each channel has a loop of its own, and the hooks run there. */
static void note_own_loop(weir_channel *channel, void *user_data)
{
    if (weir_in_executor(weir_channel_executor(channel)))
        call_counter_add(user_data);
}

TEST_EACH_LOOP(client_pool, may_have_a_thread_for_each_channel)
{
    struct pool_fixture fixture;
    weir_group *threads = NULL;
    struct call_counter told = {0};
    weir_resolver *resolver = fake_dns_open(NULL);
    char address[WEIR_ADDRESS_TEXT_SIZE];
    weir_channel *channels[3];

    pool_fixture_start_server(&fixture, host);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_BLOCKING), &threads), 0);
    (void)snprintf(address, sizeof(address), "here.test%s", strrchr(fixture.address, ':'));
    assert_int_equal(weir_client_pool_create(
                         POOL(.max = 3, .acquired = note_own_loop, .user_data = &told,
                              .client = WEIR_CLIENT_OPTIONS(.group = threads, .address = address,
                                                            .resolver = resolver)),
                         &fixture.pool),
                     0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            channels[i] = pool_fixture_acquire(fixture.pool);
        assert_ptr_not_equal(weir_channel_executor(channels[0]),
                             weir_channel_executor(channels[1]));
        for (int i = 0; i < 3; i++)
            assert_int_equal(pool_fixture_return(fixture.pool, channels[i]), 0);
    }
    assert_int_equal(told.calls, 6);
    assert_int_equal(pool_fixture_stats(fixture.pool).created, 3);
    pool_fixture_close_pool(fixture.pool);
    end_group(threads);
    echo_service_stop(fixture.server);
    fake_dns_close(resolver);
}
