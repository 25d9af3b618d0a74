/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of connections: C.12, ChannelPool. Each test has a server on the same loop.
 */
#include <weir/client_pool.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>

#include "base/thread.h"
#include "support/bootstrap/service.h"
#include "support/bootstrap/visitor.h"
#include "support/executor/errand.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/messages.h"
#include "support/executor/promises.h"
#include "support/executor/solo.h"
#include "support/loop/host.h"
#include "support/memory.h"
#include "support/resolver/names.h"

/* ---- a server, and a pool of connections to it ---- */

struct rig {
    struct host *host;
    struct service service;
    weir_channel *server;
    char address[WEIR_ADDRESS_TEXT_SIZE];
    weir_client_pool *pool;
};

static void serve(struct rig *rig, struct host *host)
{
    weir_address address;

    memset(rig, 0, sizeof(*rig));
    rig->host = host;
    rig->server = service_start(&rig->service, WEIR_SERVER_OPTIONS(.boss = host->group));
    assert_int_equal(weir_channel_local_address(rig->server, &address), 0);
    weir_address_format(&address, rig->address, sizeof(rig->address));
}

static weir_client_pool *make_pool(struct rig *rig, const weir_client_pool_options *given)
{
    weir_client_pool_options options = *given;
    weir_client_pool *pool = NULL;

    options.client = WEIR_CLIENT_OPTIONS(.group = rig->host->group, .address = rig->address);
    assert_int_equal(weir_client_pool_create(&options, &pool), 0);
    return pool;
}

#define POOL(...) WEIR_CLIENT_POOL_OPTIONS(__VA_ARGS__)

static void open_rig(struct rig *rig, struct host *host, const weir_client_pool_options *options)
{
    serve(rig, host);
    rig->pool = make_pool(rig, options);
}

/* Closes the pool, and waits for every channel of it. */
static void close_pool(weir_client_pool *pool)
{
    weir_client_pool_close(pool);
    assert_int_equal(weir_promise_sync(weir_client_pool_closed(pool), PATIENCE_NS), 0);
    weir_client_pool_release(pool);
}

static void close_rig(struct rig *rig)
{
    close_pool(rig->pool);
    service_stop(rig->server);
}

static weir_promise *ask(weir_client_pool *pool)
{
    weir_promise *acquiring = NULL;

    assert_int_equal(weir_client_pool_acquire(pool, NULL, &acquiring), 0);
    return acquiring;
}

/* What a promise brought, kept by the caller; the promise is gone. */
static weir_channel *take(weir_promise *acquiring)
{
    weir_channel *channel;

    assert_int_equal(weir_promise_sync(acquiring, PATIENCE_NS), 0);
    channel = weir_channel_retain(weir_promise_value(acquiring));
    weir_promise_release(acquiring);
    return channel;
}

static weir_channel *acquire(weir_client_pool *pool)
{
    return take(ask(pool));
}

static int result(weir_promise *acquiring)
{
    int err = weir_promise_sync(acquiring, PATIENCE_NS);

    weir_promise_release(acquiring);
    return err;
}

/* Gives it back, and the reference too; returns what became of it. */
static int give(weir_client_pool *pool, weir_channel *channel)
{
    weir_promise *done = new_promise(NULL);
    int err;

    weir_client_pool_give(pool, channel, done);
    err = weir_promise_sync(done, PATIENCE_NS);
    weir_promise_release(done);
    weir_channel_release(channel);
    return err;
}

static weir_client_pool_stats stats_of(weir_client_pool *pool)
{
    weir_client_pool_stats stats;

    weir_client_pool_read_stats(pool, &stats);
    return stats;
}

/* Closes it, and waits until the pool knows. */
static void close_channel(weir_client_pool *pool, weir_channel *channel)
{
    uint64_t channels = stats_of(pool).channels;

    weir_channel_close(channel, NULL);
    while (stats_of(pool).channels == channels)
        weir__thread_yield();
    weir_channel_release(channel);
}

/* ---- using channels again ---- */

TEST_EACH_LOOP(client_pool, uses_a_channel_again)
{
    struct rig rig;
    weir_channel *first, *second;

    open_rig(&rig, host, POOL(.max = 4));
    first = acquire(rig.pool);
    assert_true(weir_channel_is_active(first));
    assert_int_equal(give(rig.pool, weir_channel_retain(first)), 0);
    assert_int_equal(stats_of(rig.pool).idle, 1);
    second = acquire(rig.pool);
    assert_ptr_equal(second, first);
    assert_int_equal(give(rig.pool, second), 0);
    weir_channel_release(first);
    assert_int_equal(stats_of(rig.pool).created, 1);
    assert_int_equal(stats_of(rig.pool).acquired, 2);
    close_rig(&rig);
    assert_int_equal(rig.service.opened.calls, 1);
}

static void acquire_and_give_two(struct rig *rig, weir_channel *channels[2])
{
    for (int i = 0; i < 2; i++)
        channels[i] = acquire(rig->pool);
    for (int i = 0; i < 2; i++)
        assert_int_equal(give(rig->pool, channels[i]), 0); /* the pool keeps them */
}

TEST_EACH_LOOP(client_pool, hands_out_the_last_one_first)
{
    struct rig rig;
    weir_channel *channels[2], *channel;

    open_rig(&rig, host, POOL(.order = WEIR_CLIENT_POOL_LIFO));
    acquire_and_give_two(&rig, channels);
    channel = acquire(rig.pool);
    assert_ptr_equal(channel, channels[1]);
    assert_int_equal(give(rig.pool, channel), 0);
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, hands_out_the_first_one_first)
{
    struct rig rig;
    weir_channel *channels[2], *channel;

    open_rig(&rig, host, POOL(.order = WEIR_CLIENT_POOL_FIFO));
    acquire_and_give_two(&rig, channels);
    channel = acquire(rig.pool);
    assert_ptr_equal(channel, channels[0]);
    assert_int_equal(give(rig.pool, channel), 0);
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, connects_to_names)
{
    struct rig rig;
    weir_resolver *resolver = names_open(NULL);
    char address[WEIR_ADDRESS_TEXT_SIZE];

    serve(&rig, host);
    (void)snprintf(address, sizeof(address), "here.test%s", strrchr(rig.address, ':'));
    assert_int_equal(
        weir_client_pool_create(
            POOL(.client = WEIR_CLIENT_OPTIONS(.group = host->group, .address = address,
                                               .resolver = resolver)),
            &rig.pool),
        0);
    assert_int_equal(give(rig.pool, acquire(rig.pool)), 0);
    close_rig(&rig);
    names_close(resolver);
}

/* ---- who waits ---- */

TEST_EACH_LOOP(client_pool, serves_those_who_wait_in_order)
{
    struct rig rig;
    weir_promise *waiting[3];
    weir_channel *channel;

    open_rig(&rig, host, POOL(.max = 1));
    channel = acquire(rig.pool);
    for (int i = 0; i < 3; i++)
        waiting[i] = ask(rig.pool);
    assert_int_equal(stats_of(rig.pool).waiting, 3);
    for (int i = 0; i < 3; i++) {
        for (int j = i; j < 3; j++)
            assert_false(weir_promise_is_done(waiting[j]));
        assert_int_equal(give(rig.pool, channel), 0);
        channel = take(waiting[i]);
    }
    assert_int_equal(give(rig.pool, channel), 0);
    close_rig(&rig);
    assert_int_equal(rig.service.opened.calls, 1);
}

TEST_EACH_LOOP(client_pool, bounds_those_who_wait)
{
    struct rig rig;
    weir_promise *waiting;
    weir_channel *channel;

    open_rig(&rig, host, POOL(.max = 1, .max_waiting = 1));
    channel = acquire(rig.pool);
    waiting = ask(rig.pool);
    assert_int_equal(result(ask(rig.pool)), WEIR_EFULL);
    assert_int_equal(give(rig.pool, channel), 0);
    assert_int_equal(give(rig.pool, take(waiting)), 0);
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, lets_nobody_wait_if_told_so)
{
    struct rig rig;
    weir_promise *first;
    weir_channel *second;

    open_rig(&rig, host, POOL(.max = 2, .max_waiting = WEIR_OFF));
    first = ask(rig.pool); /* waits only for its connection */
    second = acquire(rig.pool);
    assert_int_equal(result(ask(rig.pool)), WEIR_EFULL);
    assert_int_equal(give(rig.pool, take(first)), 0);
    assert_int_equal(give(rig.pool, second), 0);
    close_rig(&rig);
}

/* An executor for the pool's timers, whose time the test moves. */
struct hands {
    weir_manual_clock *clock;
    struct solo solo;
};

static void hands_open(struct hands *hands)
{
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &hands->clock), 0);
    hands->solo = solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(hands->clock)));
}

static void hands_close(struct hands *hands)
{
    solo_close(&hands->solo);
    weir_manual_clock_release(hands->clock);
}

static void move_to(struct hands *hands, int64_t ns)
{
    assert_int_equal(weir_manual_clock_set(hands->clock, weir_seconds(1) + ns), 0);
}

static void do_nothing(void *arg)
{
    (void)arg;
}

TEST_EACH_LOOP(client_pool, has_a_limit_to_waiting)
{
    struct rig rig;
    struct hands hands;
    weir_promise *waiting;
    weir_channel *channel;

    hands_open(&hands);
    open_rig(
        &rig, host,
        POOL(.max = 1, .executor = hands.solo.executor, .acquire_timeout_ns = weir_seconds(5)));
    channel = acquire(rig.pool);
    waiting = ask(rig.pool);
    errand_on(hands.solo.executor, do_nothing, NULL); /* it has its timer now */
    move_to(&hands, weir_seconds(5) - 1);
    errand_on(hands.solo.executor, do_nothing, NULL);
    assert_false(weir_promise_is_done(waiting));
    move_to(&hands, weir_seconds(5));
    assert_int_equal(result(waiting), -ETIMEDOUT);
    assert_int_equal(stats_of(rig.pool).waiting, 0);
    assert_int_equal(give(rig.pool, channel), 0);
    close_rig(&rig);
    hands_close(&hands);
}

TEST_EACH_LOOP(client_pool, gives_the_channel_of_a_cancelled_one_to_the_next)
{
    struct rig rig;
    struct gate gate = {0};
    weir_promise *first, *second;

    open_rig(&rig, host, POOL(.max = 1));
    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    first = ask(rig.pool);
    second = ask(rig.pool);
    assert_int_equal(weir_promise_cancel(first), 0);
    gate_open(&gate);
    assert_int_equal(give(rig.pool, take(second)), 0);
    assert_int_equal(result(first), WEIR_ECANCELED);
    close_rig(&rig);
    assert_int_equal(rig.service.opened.calls, 1);
}

TEST_EACH_LOOP(client_pool, keeps_the_channel_of_a_cancelled_one)
{
    struct rig rig;
    struct gate gate = {0};
    weir_promise *first;

    open_rig(&rig, host, POOL(.max = 1));
    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    first = ask(rig.pool);
    assert_int_equal(weir_promise_cancel(first), 0);
    weir_promise_release(first);
    gate_open(&gate);
    while (stats_of(rig.pool).idle == 0)
        weir__thread_yield();
    assert_int_equal(give(rig.pool, acquire(rig.pool)), 0);
    assert_int_equal(stats_of(rig.pool).created, 1);
    close_rig(&rig);
}

/* Answers the first time; then it keeps who asks. */
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
    struct rig rig;
    struct slow slow = {0};
    weir_resolver *resolver = NULL;
    weir_channel *channel;
    weir_promise *waiting;

    serve(&rig, host);
    assert_int_equal(weir_channel_local_address(rig.server, &slow.address), 0);
    (void)snprintf(rig.address, sizeof(rig.address), "slow.test:%u",
                   (unsigned)weir_address_port(&slow.address));
    assert_int_equal(weir_resolver_create(&type, &slow, &resolver), 0);
    assert_int_equal(
        weir_client_pool_create(
            POOL(.client = WEIR_CLIENT_OPTIONS(.group = host->group, .address = rig.address,
                                               .resolver = resolver)),
            &rig.pool),
        0);
    channel = acquire(rig.pool);
    waiting = ask(rig.pool);
    assert_int_equal(slow.answers, 2);
    assert_int_equal(give(rig.pool, weir_channel_retain(channel)), 0);
    assert_ptr_equal(take(waiting), channel);
    assert_int_equal(give(rig.pool, channel), 0);
    weir_channel_release(channel);
    close_pool(rig.pool);
    weir_promise_release(slow.kept);
    weir_resolver_release(resolver);
    service_stop(rig.server);
}

/* A time that is over before it has begun. */
TEST_EACH_LOOP(client_pool, may_have_no_time_at_all)
{
    struct rig rig;
    weir_channel *channel;

    open_rig(&rig, host, POOL(.max = 1));
    channel = acquire(rig.pool);
    for (int i = 0; i < 20; i++) {
        weir_client_pool *pool = make_pool(&rig, POOL(.max = 1, .acquire_timeout_ns = 1));
        weir_promise *acquiring = ask(pool);

        assert_int_equal(weir_promise_await(acquiring, PATIENCE_NS), 0);
        if (weir_promise_result(acquiring) == 0)
            weir_client_pool_give(pool, weir_promise_value(acquiring), NULL);
        weir_promise_release(acquiring);
        close_pool(pool);
    }
    assert_int_equal(give(rig.pool, channel), 0);
    close_rig(&rig);
}

/* ---- failures ---- */

TEST_EACH_LOOP(client_pool, tells_each_of_a_connection_that_failed)
{
    struct rig rig = {.host = host};
    weir_address nobody = nobody_there();
    weir_promise *waiting[4];

    weir_address_format(&nobody, rig.address, sizeof(rig.address));
    rig.pool = make_pool(&rig, POOL(.max = 2));
    for (int i = 0; i < 4; i++)
        waiting[i] = ask(rig.pool);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(weir_promise_sync(waiting[i], PATIENCE_NS), -ECONNREFUSED);
        assert_non_null(strstr(weir_promise_detail(waiting[i]), rig.address));
        weir_promise_release(waiting[i]);
    }
    assert_int_equal(stats_of(rig.pool).channels, 0);
    assert_int_equal(stats_of(rig.pool).failed, 4);
    close_pool(rig.pool);
}

TEST_EACH_LOOP(client_pool, lets_a_channel_go_that_closes_while_it_is_idle)
{
    struct rig rig;
    weir_channel *channel;

    open_rig(&rig, host, POOL(.max = 1));
    channel = acquire(rig.pool);
    assert_int_equal(give(rig.pool, weir_channel_retain(channel)), 0);
    close_channel(rig.pool, channel);
    assert_int_equal(stats_of(rig.pool).idle, 0);
    assert_int_equal(give(rig.pool, acquire(rig.pool)), 0);
    assert_int_equal(stats_of(rig.pool).created, 2);
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, makes_room_when_a_channel_closes_that_was_out)
{
    struct rig rig;
    weir_channel *channel;
    weir_promise *waiting;

    open_rig(&rig, host, POOL(.max = 1));
    channel = acquire(rig.pool);
    waiting = ask(rig.pool);
    weir_channel_close(channel, NULL);
    assert_int_equal(give(rig.pool, take(waiting)), 0);
    assert_int_equal(give(rig.pool, channel), 0); /* closed as it is */
    assert_int_equal(stats_of(rig.pool).created, 2);
    assert_int_equal(stats_of(rig.pool).idle, 1);
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, closes_what_is_not_its_own)
{
    struct rig rig;
    weir_client_pool *other;
    weir_channel *channel, *stranger = NULL;

    open_rig(&rig, host, POOL(.max = 1));
    other = make_pool(&rig, POOL(.max = 1));
    channel = acquire(rig.pool);
    assert_int_equal(give(other, weir_channel_retain(channel)), -EINVAL);
    assert_int_equal(weir_channel_await_closed(channel, PATIENCE_NS), 0);
    weir_channel_release(channel);
    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = host->group, .address = rig.address),
                                 &stranger),
        0);
    assert_int_equal(give(rig.pool, weir_channel_retain(stranger)), -EINVAL);
    assert_int_equal(weir_channel_await_closed(stranger, PATIENCE_NS), 0);
    weir_channel_release(stranger);
    assert_int_equal(stats_of(rig.pool).channels, 0);
    close_pool(other);
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, takes_a_channel_back_only_once)
{
    struct rig rig;
    weir_channel *channel;

    open_rig(&rig, host, POOL(.max = 1));
    channel = acquire(rig.pool);
    assert_int_equal(give(rig.pool, weir_channel_retain(channel)), 0);
    assert_int_equal(give(rig.pool, weir_channel_retain(channel)), -EALREADY);
    assert_true(weir_channel_is_active(channel));
    assert_int_equal(stats_of(rig.pool).idle, 1);
    weir_channel_release(channel);
    close_rig(&rig);
}

/* ---- health, and who else wants to know ---- */

struct watch {
    weir_executor *loop;
    weir_channel *_Atomic sick;
    struct tally checks, created, acquired, released;
    _Atomic bool elsewhere; /* something was called on another thread */
};

static void note_thread(struct watch *watch)
{
    if (!weir_in_executor(watch->loop))
        watch->elsewhere = true;
}

static bool is_well(weir_channel *channel, void *user_data)
{
    struct watch *watch = user_data;

    note_thread(watch);
    tally_add(&watch->checks);
    return channel != watch->sick;
}

static void on_created(weir_channel *channel, void *user_data)
{
    (void)channel;
    note_thread(user_data);
    tally_add(&((struct watch *)user_data)->created);
}

static void on_acquired(weir_channel *channel, void *user_data)
{
    (void)channel;
    note_thread(user_data);
    tally_add(&((struct watch *)user_data)->acquired);
}

static void on_released(weir_channel *channel, void *user_data)
{
    (void)channel;
    note_thread(user_data);
    tally_add(&((struct watch *)user_data)->released);
}

TEST_EACH_LOOP(client_pool, closes_a_channel_that_is_not_healthy_and_tries_the_next)
{
    struct rig rig;
    struct watch watch = {.loop = host->loop};
    weir_channel *channels[2], *channel;

    open_rig(&rig, host, POOL(.max = 2, .healthy = is_well, .user_data = &watch));
    for (int i = 0; i < 2; i++)
        channels[i] = acquire(rig.pool);
    assert_int_equal(watch.checks.calls, 0); /* they are fresh */
    for (int i = 0; i < 2; i++)
        assert_int_equal(give(rig.pool, weir_channel_retain(channels[i])), 0);
    watch.sick = channels[1];
    channel = acquire(rig.pool);
    assert_ptr_equal(channel, channels[0]);
    assert_int_equal(watch.checks.calls, 2);
    assert_int_equal(weir_channel_await_closed(channels[1], PATIENCE_NS), 0);
    assert_int_equal(stats_of(rig.pool).unhealthy, 1);
    watch.sick = channels[0];
    assert_int_equal(give(rig.pool, channel), 0);
    channel = acquire(rig.pool); /* a new one */
    assert_ptr_not_equal(channel, channels[0]);
    assert_int_equal(give(rig.pool, channel), 0);
    assert_int_equal(stats_of(rig.pool).created, 3);
    for (int i = 0; i < 2; i++)
        weir_channel_release(channels[i]);
    close_rig(&rig);
    assert_false(watch.elsewhere);
}

TEST_EACH_LOOP(client_pool, tells_of_each_step_on_the_channels_loop)
{
    struct rig rig;
    struct watch watch = {.loop = host->loop};

    open_rig(&rig, host,
             POOL(.max = 1, .created = on_created, .acquired = on_acquired, .released = on_released,
                  .user_data = &watch));
    for (int i = 0; i < 3; i++) {
        weir_channel *channel = acquire(rig.pool);

        assert_int_equal(watch.acquired.calls, i + 1);
        assert_int_equal(watch.released.calls, i);
        assert_int_equal(give(rig.pool, channel), 0);
    }
    assert_int_equal(watch.released.calls, 3);
    assert_int_equal(watch.created.calls, 1);
    close_rig(&rig);
    assert_false(watch.elsewhere);
}

/* The time that each may wait takes no room once he has what he waited for. */
TEST_EACH_LOOP(client_pool, keeps_nothing_for_those_who_were_served)
{
    struct rig rig;
    struct watch watch = {.loop = host->loop};
    struct solo solo = solo_open(NULL);

    open_rig(&rig, host,
             POOL(.max = 1, .executor = solo.executor, .healthy = is_well, .user_data = &watch));
    assert_int_equal(give(rig.pool, acquire(rig.pool)), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(give(rig.pool, acquire(rig.pool)), 0);
    assert_true(weir_executor_pending(solo.executor) <= 1);
    close_rig(&rig);
    solo_close(&solo);
}

TEST_EACH_LOOP(client_pool, closes_what_was_idle_too_long)
{
    struct rig rig;
    struct hands hands;
    weir_channel *old, *young;

    hands_open(&hands);
    open_rig(&rig, host,
             POOL(.max = 2, .executor = hands.solo.executor, .idle_timeout_ns = weir_seconds(10)));
    old = acquire(rig.pool);
    young = acquire(rig.pool);
    assert_int_equal(give(rig.pool, weir_channel_retain(old)), 0);
    errand_on(hands.solo.executor, do_nothing, NULL);
    move_to(&hands, weir_seconds(6));
    assert_int_equal(give(rig.pool, weir_channel_retain(young)), 0);
    move_to(&hands, weir_seconds(10));
    assert_int_equal(weir_channel_await_closed(old, PATIENCE_NS), 0);
    errand_on(hands.solo.executor, do_nothing, NULL);
    assert_int_equal(stats_of(rig.pool).idle, 1);
    assert_true(weir_channel_is_open(young));
    move_to(&hands, weir_seconds(16));
    assert_int_equal(weir_channel_await_closed(young, PATIENCE_NS), 0);
    assert_int_equal(stats_of(rig.pool).channels, 0);
    weir_channel_release(old);
    weir_channel_release(young);
    close_rig(&rig);
    hands_close(&hands);
}

/* ---- the end ---- */

TEST_EACH_LOOP(client_pool, fails_those_who_wait_when_it_is_closed)
{
    struct rig rig;
    weir_channel *out;
    weir_promise *waiting[2];

    open_rig(&rig, host, POOL(.max = 1));
    out = acquire(rig.pool);
    for (int i = 0; i < 2; i++)
        waiting[i] = ask(rig.pool);
    weir_client_pool_close(rig.pool);
    for (int i = 0; i < 2; i++)
        assert_int_equal(result(waiting[i]), WEIR_ECLOSED);
    assert_int_equal(result(ask(rig.pool)), WEIR_ECLOSED);
    assert_true(weir_channel_is_open(out));
    assert_false(weir_promise_is_done(weir_client_pool_closed(rig.pool)));
    assert_int_equal(give(rig.pool, weir_channel_retain(out)), 0);
    assert_int_equal(weir_channel_await_closed(out, PATIENCE_NS), 0);
    weir_channel_release(out);
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, closes_what_is_idle_when_it_is_closed)
{
    struct rig rig;
    weir_channel *idle;

    open_rig(&rig, host, POOL(.max = 1));
    idle = acquire(rig.pool);
    assert_int_equal(give(rig.pool, weir_channel_retain(idle)), 0);
    weir_client_pool_close(rig.pool);
    assert_int_equal(weir_channel_await_closed(idle, PATIENCE_NS), 0);
    weir_channel_release(idle);
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, gives_connections_up_when_it_is_closed)
{
    struct silence silence;
    struct rig rig = {.host = host};
    weir_promise *waiting;

    silence_make(&silence);
    weir_address_format(&silence.address, rig.address, sizeof(rig.address));
    rig.pool = make_pool(&rig, POOL(.max = 1));
    waiting = ask(rig.pool);
    host_turn(host, 2);
    weir_client_pool_close(rig.pool);
    assert_int_equal(result(waiting), WEIR_ECLOSED);
    close_pool(rig.pool);
    silence_release(&silence);
}

/* The last reference closes it; a channel that is out keeps its memory. */
TEST_EACH_LOOP(client_pool, released_by_all_closes)
{
    struct rig rig;
    weir_channel *out, *idle;

    open_rig(&rig, host, POOL(.max = 2));
    out = acquire(rig.pool);
    idle = acquire(rig.pool);
    assert_int_equal(give(rig.pool, weir_channel_retain(idle)), 0);
    weir_client_pool_release(weir_client_pool_retain(rig.pool));
    assert_true(weir_channel_is_open(idle));
    weir_client_pool_release(rig.pool);
    assert_int_equal(weir_channel_await_closed(idle, PATIENCE_NS), 0);
    weir_channel_close(out, NULL);
    assert_int_equal(weir_channel_await_closed(out, PATIENCE_NS), 0);
    weir_channel_release(idle);
    weir_channel_release(out);
    service_stop(rig.server);
}

/* All that a listener lets go of while a call of the pool's is under way. */
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

/* Who hears that the pool is closed may let go of it: nothing else keeps it any more. */
TEST_EACH_LOOP(client_pool, may_go_while_it_is_closed)
{
    struct silence silence;
    struct rig rig = {.host = host};
    struct ending ending = {.listener = {.fn = let_all_go, .user_data = &ending}};

    silence_make(&silence);
    weir_address_format(&silence.address, rig.address, sizeof(rig.address));
    ending.pool = make_pool(&rig, POOL(.max = 1, .acquire_timeout_ns = WEIR_OFF));
    assert_int_equal(weir_client_pool_acquire(ending.pool, host->loop, &ending.promise), 0);
    host_turn(host, 2);
    errand_on(host->loop, close_with_a_listener, &ending);
    silence_release(&silence);
}

static void give_with_a_listener(void *arg)
{
    struct ending *ending = arg;

    weir_promise_listen(ending->promise, &ending->listener);
    weir_client_pool_give(ending->pool, ending->channel, ending->promise);
}

/* So may who hears that the channel is back. */
TEST_EACH_LOOP(client_pool, may_go_while_it_takes_a_channel_back)
{
    struct rig rig;
    struct ending ending = {.listener = {.fn = let_all_go, .user_data = &ending}};

    open_rig(&rig, host, POOL(.max = 1, .acquire_timeout_ns = WEIR_OFF));
    ending.pool = rig.pool;
    ending.channel = acquire(rig.pool);
    ending.promise = new_promise(host->loop);
    errand_on(host->loop, give_with_a_listener, &ending);
    service_stop(rig.server);
}

TEST_EACH_LOOP(client_pool, leaves_nobody_waiting_when_its_group_ends)
{
    struct rig rig;
    struct host other;
    weir_promise *waiting[3];
    weir_channel *out;

    serve(&rig, host);
    host_open(&other, (enum backend_id)(host->backend - backends));
    rig.host = &other;
    rig.pool = make_pool(&rig, POOL(.max = 1, .acquire_timeout_ns = WEIR_OFF));
    out = acquire(rig.pool);
    for (int i = 0; i < 3; i++)
        waiting[i] = ask(rig.pool);
    host_end(&other);
    for (int i = 0; i < 3; i++) {
        int err = result(waiting[i]);

        assert_true(err == WEIR_EREJECTED || err == WEIR_ECLOSED); /* the later, the more final */
    }
    weir_channel_release(out);
    close_pool(rig.pool);
    weir_group_release(other.group);
    service_stop(rig.server);
}

TEST_EACH_LOOP(client_pool, refuses_options_that_make_no_sense)
{
    const weir_client_options *client =
        WEIR_CLIENT_OPTIONS(.group = host->group, .address = "127.0.0.1:1");
    weir_client_pool *none = NULL;

    messages_catch();
    assert_int_equal(weir_client_pool_create(NULL, &none), -EINVAL);
    assert_int_equal(weir_client_pool_create(POOL(.max = 1), &none), -EINVAL);
    assert_int_equal(weir_client_pool_create(POOL(.client = client, .max = -1), &none), -EINVAL);
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

/* A 32: each channel has a loop of its own, and the hooks run there. */
static void note_own_loop(weir_channel *channel, void *user_data)
{
    if (weir_in_executor(weir_channel_executor(channel)))
        tally_add(user_data);
}

TEST_EACH_LOOP(client_pool, may_have_a_thread_for_each_channel)
{
    struct rig rig;
    weir_group *threads = NULL;
    struct tally told = {0};
    weir_resolver *resolver = names_open(NULL);
    char address[WEIR_ADDRESS_TEXT_SIZE];
    weir_channel *channels[3];

    serve(&rig, host);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_BLOCKING), &threads), 0);
    (void)snprintf(address, sizeof(address), "here.test%s", strrchr(rig.address, ':'));
    assert_int_equal(weir_client_pool_create(
                         POOL(.max = 3, .acquired = note_own_loop, .user_data = &told,
                              .client = WEIR_CLIENT_OPTIONS(.group = threads, .address = address,
                                                            .resolver = resolver)),
                         &rig.pool),
                     0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            channels[i] = acquire(rig.pool);
        assert_ptr_not_equal(weir_channel_executor(channels[0]),
                             weir_channel_executor(channels[1]));
        for (int i = 0; i < 3; i++)
            assert_int_equal(give(rig.pool, channels[i]), 0);
    }
    assert_int_equal(told.calls, 6);
    assert_int_equal(stats_of(rig.pool).created, 3);
    close_pool(rig.pool);
    end_group(threads);
    service_stop(rig.server);
    names_close(resolver);
}

/* ---- memory, and threads ---- */

static void sweep_allocations(struct rig *rig, const weir_client_pool_options *options)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        weir_client_pool *pool = NULL;
        weir_promise *acquiring[3] = {NULL};
        weir_client_pool_options own = *options;

        own.client = WEIR_CLIENT_OPTIONS(.group = rig->host->group, .address = rig->address);
        test_memory_fail_at(n);
        if (weir_client_pool_create(&own, &pool) == 0) {
            for (int i = 0; i < 3; i++) {
                if (weir_client_pool_acquire(pool, NULL, &acquiring[i]) == 0 &&
                    weir_promise_sync(acquiring[i], PATIENCE_NS) == 0)
                    weir_client_pool_give(pool, weir_promise_value(acquiring[i]), NULL);
            }
        }
        failed = test_memory_failed();
        test_memory_fail_at(0);
        for (int i = 0; i < 3; i++)
            weir_promise_release(acquiring[i]);
        if (pool != NULL)
            close_pool(pool);
    }
}

TEST_EACH_LOOP(client_pool, survives_every_failed_allocation)
{
    struct rig rig;
    struct watch watch = {.loop = host->loop};

    messages_catch();
    serve(&rig, host);
    sweep_allocations(&rig, POOL(.max = 1, .idle_timeout_ns = weir_seconds(10)));
    sweep_allocations(
        &rig, POOL(.max = 1, .healthy = is_well, .released = on_released, .user_data = &watch));
    service_stop(rig.server);
}

#define STORM_THREADS 4
#define STORM_ROUNDS 150

struct storm {
    weir_client_pool *pool;
    unsigned seed;
    bool in_a_hurry;
    _Atomic unsigned *most; /* channels that were out at once */
    _Atomic unsigned *out;
    _Atomic unsigned *wrong;
};

/* Whoever has it, nobody else does. */
static void use(struct storm *storm, weir_channel *channel, unsigned chance)
{
    unsigned out = atomic_fetch_add(storm->out, 1) + 1, most = atomic_load(storm->most);

    while (out > most && !atomic_compare_exchange_weak(storm->most, &most, out))
        ;
    atomic_fetch_sub(storm->out, 1);
    if (chance % 13 == 0)
        weir_channel_abort(channel, NULL); /* from here on another may have taken its place */
    weir_client_pool_give(storm->pool, channel, NULL);
}

/* What may have happened to who has not got one; a promise that is not complete has been lost. */
static bool is_fair(const struct storm *storm, const weir_promise *acquiring, int err)
{
    return err == WEIR_ECANCELED || err == WEIR_ECLOSED ||
           (err == -ETIMEDOUT && storm->in_a_hurry && weir_promise_is_done(acquiring));
}

static void rage(void *arg)
{
    struct storm *storm = arg;

    for (unsigned i = 0; i < STORM_ROUNDS; i++) {
        unsigned chance = (storm->seed = storm->seed * 1103515245 + 12345) >> 16;
        weir_promise *acquiring = NULL;
        int err = weir_client_pool_acquire(storm->pool, NULL, &acquiring);

        if (err == 0 && chance % 5 == 0)
            (void)weir_promise_cancel(acquiring);
        if (err == 0)
            err = weir_promise_sync(acquiring, PATIENCE_NS);
        if (err == 0)
            use(storm, weir_promise_value(acquiring), chance);
        else if (!is_fair(storm, acquiring, err))
            atomic_fetch_add(storm->wrong, 1);
        weir_promise_release(acquiring);
    }
}

static void storm(struct host *host, const weir_client_pool_options *options, bool closes)
{
    struct rig rig;
    struct storm storms[STORM_THREADS];
    weir__thread threads[STORM_THREADS];
    _Atomic unsigned most = 0, out = 0, wrong = 0;

    open_rig(&rig, host, options);
    for (unsigned i = 0; i < STORM_THREADS; i++) {
        storms[i] = (struct storm){.pool = rig.pool,
                                   .seed = i,
                                   .in_a_hurry = options->acquire_timeout_ns > 0,
                                   .most = &most,
                                   .out = &out,
                                   .wrong = &wrong};
        assert_int_equal(weir__thread_start(&threads[i], "storm", rage, &storms[i]), 0);
    }
    if (closes) {
        while (stats_of(rig.pool).acquired < STORM_ROUNDS)
            weir__thread_yield();
        weir_client_pool_close(rig.pool);
    }
    for (unsigned i = 0; i < STORM_THREADS; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(wrong, 0);
    assert_true(most <= 2);
    while (stats_of(rig.pool).waiting > 0) /* those who have cancelled leave a moment later */
        weir__thread_yield();
    close_rig(&rig);
}

TEST_EACH_LOOP(client_pool, serves_many_threads)
{
    storm(host, POOL(.max = 2), false);
}

TEST_EACH_LOOP(client_pool, serves_many_threads_with_everybody_watching)
{
    struct watch watch = {.loop = host->loop};

    storm(host,
          POOL(.max = 2, .order = WEIR_CLIENT_POOL_FIFO, .healthy = is_well, .created = on_created,
               .acquired = on_acquired, .released = on_released, .user_data = &watch),
          false);
    assert_false(watch.elsewhere);
}

/* Timers fire all the time: some get no channel, and idle ones are closed. */
TEST_EACH_LOOP(client_pool, serves_many_threads_in_a_hurry)
{
    storm(host, POOL(.max = 2, .acquire_timeout_ns = weir_us(100), .idle_timeout_ns = weir_us(50)),
          false);
}

TEST_EACH_LOOP(client_pool, is_closed_in_the_midst_of_it)
{
    storm(host, POOL(.max = 2, .idle_timeout_ns = weir_ms(1)), true);
}
