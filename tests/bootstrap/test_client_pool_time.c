/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for a connection of a pool, and for how long; and how long a pool keeps what nobody
 * wants. Each test has a server on the same loop.
 */
#include <weir/client.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "os/thread.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/pool_fixture.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/loop/host.h"

#define START_NS weir_seconds(1)

TEST_EACH_LOOP(client_pool, serves_those_who_wait_in_order)
{
    struct pool_fixture fixture;
    weir_promise *waiting[3];
    weir_channel *channel;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    channel = pool_fixture_acquire(fixture.pool);
    for (int i = 0; i < 3; i++)
        waiting[i] = pool_fixture_request(fixture.pool);
    assert_int_equal(pool_fixture_stats(fixture.pool).waiting, 3);
    for (int i = 0; i < 3; i++) {
        for (int j = i; j < 3; j++)
            assert_false(weir_promise_is_done(waiting[j]));
        assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
        channel = pool_fixture_wait(waiting[i]);
    }
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    pool_fixture_close(&fixture);
    assert_int_equal(fixture.service.opened.calls, 1);
}

struct latecomer {
    weir_client_pool *pool;
    weir_promise *acquiring;
};

static void come_late(weir_promise *returned, void *arg)
{
    struct latecomer *latecomer = arg;

    (void)returned;
    latecomer->acquiring = pool_fixture_request(latecomer->pool);
}

/* The channel is idle for a moment, but others have waited for it. */
TEST_EACH_LOOP(client_pool, does_not_serve_those_first_who_come_as_it_gets_a_channel_back)
{
    struct pool_fixture fixture;
    struct latecomer latecomer = {0};
    weir_promise *waiting, *returned = NULL;
    weir_channel *channel;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    latecomer.pool = fixture.pool;
    channel = pool_fixture_acquire(fixture.pool);
    waiting = pool_fixture_request(fixture.pool);
    assert_int_equal(weir_promise_create(weir_executor_immediate(), &returned), 0);
    assert_int_equal(weir_promise_add_listener(returned, come_late, &latecomer), 0);
    weir_client_pool_return(fixture.pool, channel, returned);
    weir_channel_release(channel);
    weir_promise_release(returned);
    assert_non_null(latecomer.acquiring);
    assert_false(weir_promise_is_done(latecomer.acquiring));
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_wait(waiting)), 0);
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_wait(latecomer.acquiring)), 0);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, bounds_those_who_wait)
{
    struct pool_fixture fixture;
    weir_promise *waiting;
    weir_channel *channel;

    pool_fixture_open(&fixture, host, POOL(.max = 1, .max_waiting = 1));
    channel = pool_fixture_acquire(fixture.pool);
    waiting = pool_fixture_request(fixture.pool);
    assert_int_equal(pool_fixture_result(pool_fixture_request(fixture.pool)), WEIR_EFULL);
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_wait(waiting)), 0);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, lets_nobody_wait_if_told_so)
{
    struct pool_fixture fixture;
    weir_promise *first;
    weir_channel *second;

    pool_fixture_open(&fixture, host, POOL(.max = 2, .max_waiting = WEIR_OFF));
    first = pool_fixture_request(fixture.pool); /* waits only for its connection */
    second = pool_fixture_acquire(fixture.pool);
    assert_int_equal(pool_fixture_result(pool_fixture_request(fixture.pool)), WEIR_EFULL);
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_wait(first)), 0);
    assert_int_equal(pool_fixture_return(fixture.pool, second), 0);
    pool_fixture_close(&fixture);
}

static void move_to(struct single_executor *single, int64_t ns)
{
    assert_int_equal(weir_manual_clock_set(single->clock, START_NS + ns), 0);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

TEST_EACH_LOOP(client_pool, has_a_limit_to_waiting)
{
    struct pool_fixture fixture;
    struct single_executor hands = single_executor_open_at(START_NS);
    weir_promise *waiting;
    weir_channel *channel;

    pool_fixture_open(
        &fixture, host,
        POOL(.max = 1, .executor = hands.executor, .acquire_timeout_ns = weir_seconds(5)));
    channel = pool_fixture_acquire(fixture.pool);
    waiting = pool_fixture_request(fixture.pool);
    run_on_executor(hands.executor, do_nothing, NULL); /* it has its timer now */
    move_to(&hands, weir_seconds(5) - 1);
    run_on_executor(hands.executor, do_nothing, NULL);
    assert_false(weir_promise_is_done(waiting));
    move_to(&hands, weir_seconds(5));
    assert_int_equal(pool_fixture_result(waiting), -ETIMEDOUT);
    assert_int_equal(pool_fixture_stats(fixture.pool).waiting, 0);
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    pool_fixture_close(&fixture);
    single_executor_close(&hands);
}

TEST_EACH_LOOP(client_pool, has_a_limit_to_waiting_for_each)
{
    struct pool_fixture fixture;
    struct single_executor hands = single_executor_open_at(START_NS);
    weir_promise *waiting[3];
    weir_channel *channel;

    pool_fixture_open(
        &fixture, host,
        POOL(.max = 1, .executor = hands.executor, .acquire_timeout_ns = weir_seconds(5)));
    channel = pool_fixture_acquire(fixture.pool);
    for (int i = 0; i < 3; i++) {
        waiting[i] = pool_fixture_request(fixture.pool);
        run_on_executor(hands.executor, do_nothing, NULL);
        move_to(&hands, weir_seconds(i + 1));
    }
    for (int i = 0; i < 3; i++) {
        move_to(&hands, weir_seconds(5 + i));
        assert_int_equal(pool_fixture_result(waiting[i]), -ETIMEDOUT);
        run_on_executor(hands.executor, do_nothing, NULL);
        assert_int_equal(pool_fixture_stats(fixture.pool).waiting, 2 - i);
    }
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    pool_fixture_close(&fixture);
    single_executor_close(&hands);
}

TEST_EACH_LOOP(client_pool, gives_the_channel_of_a_cancelled_one_to_the_next)
{
    struct pool_fixture fixture;
    struct gate gate = {0};
    weir_promise *first, *second;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    first = pool_fixture_request(fixture.pool);
    second = pool_fixture_request(fixture.pool);
    assert_int_equal(weir_promise_cancel(first), 0);
    gate_open(&gate);
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_wait(second)), 0);
    assert_int_equal(pool_fixture_result(first), WEIR_ECANCELED);
    pool_fixture_close(&fixture);
    assert_int_equal(fixture.service.opened.calls, 1);
}

TEST_EACH_LOOP(client_pool, keeps_the_channel_of_a_cancelled_one)
{
    struct pool_fixture fixture;
    struct gate gate = {0};
    weir_promise *first;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    first = pool_fixture_request(fixture.pool);
    assert_int_equal(weir_promise_cancel(first), 0);
    weir_promise_release(first);
    gate_open(&gate);
    while (pool_fixture_stats(fixture.pool).idle == 0)
        weir__thread_yield();
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_acquire(fixture.pool)), 0);
    assert_int_equal(pool_fixture_stats(fixture.pool).created, 1);
    pool_fixture_close(&fixture);
}

/* Answers the first query only. */
struct slow {
    weir_address address;
    unsigned answers;
    weir_promise *_Atomic kept;
};

static void resolve_slowly(void *user_data, const char *host, uint16_t port, weir_promise *promise)
{
    struct slow *slow = user_data;

    (void)host;
    if (slow->answers++ == 0)
        (void)weir_resolver_answer(promise, &slow->address, 1, port);
    else
        slow->kept = weir_promise_retain(promise);
}

/* Although one is being connected for him. */
TEST_EACH_LOOP(client_pool, gives_what_comes_back_to_who_waits_for_a_slow_connection)
{
    static const weir_resolver_type type = {.name = "slow", .resolve = resolve_slowly};
    struct pool_fixture fixture;
    struct slow slow = {0};
    weir_resolver *resolver = NULL;
    weir_channel *channel;
    weir_promise *waiting;

    pool_fixture_start_server(&fixture, host);
    assert_int_equal(
        weir_channel_local_address(weir_server_listener(fixture.server, 0), &slow.address), 0);
    (void)snprintf(fixture.address, sizeof(fixture.address), "slow.test:%u",
                   (unsigned)weir_address_port(&slow.address));
    assert_int_equal(weir_resolver_create(&type, &slow, &resolver), 0);
    assert_int_equal(
        weir_client_pool_create(
            POOL(.client = WEIR_CLIENT_OPTIONS(.group = host->group, .address = fixture.address,
                                               .resolver = resolver)),
            &fixture.pool),
        0);
    channel = pool_fixture_acquire(fixture.pool);
    waiting = pool_fixture_request(fixture.pool);
    assert_int_equal(slow.answers, 2);
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(channel)), 0);
    assert_ptr_equal(pool_fixture_wait(waiting), channel);
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    weir_channel_release(channel);
    pool_fixture_close_pool(fixture.pool);
    weir_promise_release(slow.kept);
    weir_resolver_release(resolver);
    echo_service_stop(fixture.server);
}

/* A time that is over before it has begun. */
TEST_EACH_LOOP(client_pool, may_have_no_time_at_all)
{
    struct pool_fixture fixture;
    weir_channel *channel;

    pool_fixture_open(&fixture, host, POOL(.max = 1));
    channel = pool_fixture_acquire(fixture.pool);
    for (int i = 0; i < 20; i++) {
        weir_client_pool *pool =
            pool_fixture_add_pool(&fixture, POOL(.max = 1, .acquire_timeout_ns = 1));
        weir_promise *acquiring = pool_fixture_request(pool);

        assert_int_equal(weir_promise_await(acquiring, TEST_TIMEOUT_NS), 0);
        if (weir_promise_result(acquiring) == 0)
            weir_client_pool_return(pool, weir_promise_value(acquiring), NULL);
        weir_promise_release(acquiring);
        pool_fixture_close_pool(pool);
    }
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, closes_what_was_idle_too_long)
{
    struct pool_fixture fixture;
    struct single_executor hands = single_executor_open_at(START_NS);
    weir_channel *old, *young;

    pool_fixture_open(
        &fixture, host,
        POOL(.max = 2, .executor = hands.executor, .idle_timeout_ns = weir_seconds(10)));
    old = pool_fixture_acquire(fixture.pool);
    young = pool_fixture_acquire(fixture.pool);
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(old)), 0);
    run_on_executor(hands.executor, do_nothing, NULL);
    move_to(&hands, weir_seconds(6));
    assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(young)), 0);
    move_to(&hands, weir_seconds(10));
    assert_int_equal(weir_channel_await_closed(old, TEST_TIMEOUT_NS), 0);
    run_on_executor(hands.executor, do_nothing, NULL);
    assert_int_equal(pool_fixture_stats(fixture.pool).idle, 1);
    assert_true(weir_channel_is_open(young));
    move_to(&hands, weir_seconds(16));
    assert_int_equal(weir_channel_await_closed(young, TEST_TIMEOUT_NS), 0);
    assert_int_equal(pool_fixture_stats(fixture.pool).channels, 0);
    weir_channel_release(old);
    weir_channel_release(young);
    pool_fixture_close(&fixture);
    single_executor_close(&hands);
}

/* ---- work on idle channels that is refused or cancelled ---- */

/* Acquires a channel when one has closed, before the pool is notified of that. */
struct replacement {
    weir_client_pool *pool; /* NULL = does not ask */
    weir_promise *acquiring;
};

static void on_ended(weir_promise *closed, void *arg)
{
    struct replacement *replacement = arg;

    (void)closed;
    if (replacement->pool != NULL &&
        weir_client_pool_acquire(replacement->pool, NULL, &replacement->acquiring) < 0)
        replacement->acquiring = NULL;
    replacement->pool = NULL;
}

/* The pool listens later. */
static int listen_first(weir_channel *channel, void *replacement)
{
    return weir_promise_add_listener(weir_channel_closed(channel), on_ended, replacement);
}

/* An idle channel that has just ended counts no more. */
TEST_EACH_LOOP(client_pool, replaces_an_idle_channel_that_has_just_ended)
{
    struct pool_fixture fixture;
    struct replacement replacement = {0};
    weir_client_pool *pool = NULL;
    weir_channel *channel;

    pool_fixture_start_server(&fixture, host);
    assert_int_equal(
        weir_client_pool_create(
            POOL(.max = 1,
                 .client = WEIR_CLIENT_OPTIONS(.group = host->group, .address = fixture.address,
                                               .init = listen_first, .user_data = &replacement)),
            &pool),
        0);
    channel = pool_fixture_acquire(pool);
    for (uint64_t i = 2; i < 5; i++) {
        weir_channel *idle = weir_channel_retain(channel);

        assert_int_equal(pool_fixture_return(pool, channel), 0);
        replacement.pool = pool;
        weir_channel_abort(idle, NULL);
        assert_int_equal(weir_channel_await_closed(idle, TEST_TIMEOUT_NS), 0);
        run_on_executor(host->loop, do_nothing, NULL);
        assert_non_null(replacement.acquiring);
        channel = pool_fixture_wait(replacement.acquiring);
        assert_ptr_not_equal(channel, idle);
        weir_channel_release(idle);
        assert_int_equal(pool_fixture_stats(pool).channels, 1);
        assert_int_equal(pool_fixture_stats(pool).idle, 0);
        assert_int_equal(pool_fixture_stats(pool).created, i);
    }
    assert_int_equal(pool_fixture_return(pool, channel), 0);
    assert_int_equal(pool_fixture_stats(pool).idle, 1);
    pool_fixture_close_pool(pool);
    echo_service_stop(fixture.server);
}

/* The executor of its timers has ended: idle channels stay, and are counted as ever. */
TEST_EACH_LOOP(client_pool, counts_idle_channels_without_a_timer)
{
    struct pool_fixture fixture;
    struct single_executor hands = single_executor_open_at(START_NS);
    weir_channel *channel;

    pool_fixture_open(
        &fixture, host,
        POOL(.max = 1, .executor = hands.executor, .idle_timeout_ns = weir_seconds(10)));
    channel = pool_fixture_acquire(fixture.pool);
    single_executor_end(&hands);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
        assert_int_equal(pool_fixture_stats(fixture.pool).idle, 1);
        channel = pool_fixture_acquire(fixture.pool);
        assert_int_equal(pool_fixture_stats(fixture.pool).idle, 0);
        assert_int_equal(pool_fixture_stats(fixture.pool).channels, 1);
    }
    assert_int_equal(pool_fixture_stats(fixture.pool).created, 1);
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    pool_fixture_close(&fixture);
    single_executor_close(&hands);
}

/* A pool that is closed while its timer runs is freed at once, and the timer does nothing. */
TEST_EACH_LOOP(client_pool, cancels_its_timer_when_it_is_closed)
{
    struct pool_fixture fixture;
    struct single_executor hands = single_executor_open_at(START_NS);

    pool_fixture_start_server(&fixture, host);
    for (int i = 0; i < 3; i++) {
        weir_client_pool *pool =
            pool_fixture_add_pool(&fixture, POOL(.max = 2, .executor = hands.executor,
                                                 .idle_timeout_ns = weir_seconds(10)));
        weir_channel *first = pool_fixture_acquire(pool), *second = pool_fixture_acquire(pool);

        assert_int_equal(pool_fixture_return(pool, first), 0);
        assert_int_equal(pool_fixture_return(pool, second), 0);
        assert_int_equal(pool_fixture_stats(pool).idle, 2);
        weir_client_pool_close(pool);
        assert_int_equal(weir_promise_sync(weir_client_pool_closed(pool), TEST_TIMEOUT_NS), 0);
        assert_int_equal(pool_fixture_stats(pool).idle, 0);
        assert_int_equal(pool_fixture_stats(pool).channels, 0);
        weir_client_pool_release(pool);
        run_on_executor(hands.executor, do_nothing, NULL);
    }
    move_to(&hands, weir_seconds(20));
    run_on_executor(hands.executor, do_nothing, NULL);
    echo_service_stop(fixture.server);
    single_executor_close(&hands);
}

/* A channel that was swept makes room for another one. */
TEST_EACH_LOOP(client_pool, connects_anew_after_all_were_idle_too_long)
{
    struct pool_fixture fixture;
    struct single_executor hands = single_executor_open_at(START_NS);

    pool_fixture_open(
        &fixture, host,
        POOL(.max = 1, .executor = hands.executor, .idle_timeout_ns = weir_seconds(10)));
    for (int i = 1; i <= 3; i++) {
        weir_channel *channel = pool_fixture_acquire(fixture.pool);

        assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(channel)), 0);
        run_on_executor(hands.executor, do_nothing, NULL);
        move_to(&hands, i * weir_seconds(10));
        assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
        weir_channel_release(channel);
        assert_int_equal(pool_fixture_stats(fixture.pool).idle, 0);
        assert_int_equal(pool_fixture_stats(fixture.pool).channels, 0);
        assert_int_equal(pool_fixture_stats(fixture.pool).created, i);
    }
    pool_fixture_close(&fixture);
    single_executor_close(&hands);
}
