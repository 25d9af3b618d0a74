/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools whose connections are looked at: whether they are well, and who else wants to know; then
 * the same without memory, and by many threads. Each test has a server on the same loop.
 */
#include <weir/client.h>

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "os/thread.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/pool_fixture.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/single_executor.h"
#include "support/loop/host.h"
#include "support/memory.h"

/* ---- health, and who else wants to know ---- */

struct watch {
    weir_executor *loop;
    weir_channel *_Atomic sick;
    struct call_counter checks, created, acquired, released;
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
    call_counter_add(&watch->checks);
    return channel != watch->sick;
}

static void on_created(weir_channel *channel, void *user_data)
{
    (void)channel;
    note_thread(user_data);
    call_counter_add(&((struct watch *)user_data)->created);
}

static void on_acquired(weir_channel *channel, void *user_data)
{
    (void)channel;
    note_thread(user_data);
    call_counter_add(&((struct watch *)user_data)->acquired);
}

static void on_released(weir_channel *channel, void *user_data)
{
    (void)channel;
    note_thread(user_data);
    call_counter_add(&((struct watch *)user_data)->released);
}

TEST_EACH_LOOP(client_pool, closes_a_channel_that_is_not_healthy_and_tries_the_next)
{
    struct pool_fixture fixture;
    struct watch watch = {.loop = host->loop};
    weir_channel *channels[2], *channel;

    pool_fixture_open(&fixture, host, POOL(.max = 2, .healthy = is_well, .user_data = &watch));
    for (int i = 0; i < 2; i++)
        channels[i] = pool_fixture_acquire(fixture.pool);
    assert_int_equal(watch.checks.calls, 0); /* they are fresh */
    for (int i = 0; i < 2; i++)
        assert_int_equal(pool_fixture_return(fixture.pool, weir_channel_retain(channels[i])), 0);
    watch.sick = channels[1];
    channel = pool_fixture_acquire(fixture.pool);
    assert_ptr_equal(channel, channels[0]);
    assert_int_equal(watch.checks.calls, 2);
    assert_int_equal(weir_channel_await_closed(channels[1], TEST_TIMEOUT_NS), 0);
    assert_int_equal(pool_fixture_stats(fixture.pool).unhealthy, 1);
    watch.sick = channels[0];
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    channel = pool_fixture_acquire(fixture.pool); /* a new one */
    assert_ptr_not_equal(channel, channels[0]);
    assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    assert_int_equal(pool_fixture_stats(fixture.pool).created, 3);
    for (int i = 0; i < 2; i++)
        weir_channel_release(channels[i]);
    pool_fixture_close(&fixture);
    assert_false(watch.elsewhere);
}

TEST_EACH_LOOP(client_pool, checks_no_more_than_it_needs)
{
    struct pool_fixture fixture;
    struct watch watch = {.loop = host->loop};
    weir_channel *channels[3];

    pool_fixture_open(&fixture, host, POOL(.max = 3, .healthy = is_well, .user_data = &watch));
    for (int i = 0; i < 3; i++)
        channels[i] = pool_fixture_acquire(fixture.pool);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pool_fixture_return(fixture.pool, channels[i]), 0);
    channels[0] = pool_fixture_acquire(fixture.pool);
    host_turn(host, 2);
    assert_int_equal(watch.checks.calls, 1);
    assert_int_equal(pool_fixture_return(fixture.pool, channels[0]), 0);
    pool_fixture_close(&fixture);
}

TEST_EACH_LOOP(client_pool, tells_of_each_step_on_the_channels_loop)
{
    struct pool_fixture fixture;
    struct watch watch = {.loop = host->loop};

    pool_fixture_open(&fixture, host,
                      POOL(.max = 1, .created = on_created, .acquired = on_acquired,
                           .released = on_released, .user_data = &watch));
    for (int i = 0; i < 3; i++) {
        weir_channel *channel = pool_fixture_acquire(fixture.pool);

        assert_int_equal(watch.acquired.calls, i + 1);
        assert_int_equal(watch.released.calls, i);
        assert_int_equal(pool_fixture_return(fixture.pool, channel), 0);
    }
    assert_int_equal(watch.released.calls, 3);
    assert_int_equal(watch.created.calls, 1);
    pool_fixture_close(&fixture);
    assert_false(watch.elsewhere);
}

/* The time that each may wait takes no room once he has what he waited for. */
TEST_EACH_LOOP(client_pool, keeps_nothing_for_those_who_were_served)
{
    struct pool_fixture fixture;
    struct watch watch = {.loop = host->loop};
    struct single_executor single = single_executor_open(NULL);

    pool_fixture_open(
        &fixture, host,
        POOL(.max = 1, .executor = single.executor, .healthy = is_well, .user_data = &watch));
    assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_acquire(fixture.pool)), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(pool_fixture_return(fixture.pool, pool_fixture_acquire(fixture.pool)), 0);
    assert_true(weir_executor_pending(single.executor) <= 1);
    pool_fixture_close(&fixture);
    single_executor_close(&single);
}

/* ---- memory, and threads ---- */

static void sweep_allocations(struct pool_fixture *fixture, const weir_client_pool_options *options)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        weir_client_pool *pool = NULL;
        weir_promise *acquiring[3] = {NULL};
        weir_client_pool_options own = *options;

        own.client =
            WEIR_CLIENT_OPTIONS(.group = fixture->host->group, .address = fixture->address);
        test_memory_fail_at(n);
        if (weir_client_pool_create(&own, &pool) == 0) {
            for (int i = 0; i < 3; i++) {
                if (weir_client_pool_acquire(pool, NULL, &acquiring[i]) == 0 &&
                    weir_promise_sync(acquiring[i], TEST_TIMEOUT_NS) == 0)
                    weir_client_pool_return(pool, weir_promise_value(acquiring[i]), NULL);
            }
        }
        failed = test_memory_failed();
        test_memory_fail_at(0);
        for (int i = 0; i < 3; i++)
            weir_promise_release(acquiring[i]);
        if (pool != NULL)
            pool_fixture_close_pool(pool);
    }
}

TEST_EACH_LOOP(client_pool, survives_every_failed_allocation)
{
    struct pool_fixture fixture;
    struct watch watch = {.loop = host->loop};

    log_capture_start();
    pool_fixture_start_server(&fixture, host);
    sweep_allocations(&fixture, POOL(.max = 1, .idle_timeout_ns = weir_seconds(10)));
    sweep_allocations(
        &fixture, POOL(.max = 1, .healthy = is_well, .released = on_released, .user_data = &watch));
    echo_service_stop(fixture.server);
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
    if (chance % 13 == 0) { /* the next one must not get it before it is closed */
        weir_channel_abort(channel, NULL);
        (void)weir_channel_await_closed(channel, TEST_TIMEOUT_NS);
    }
    weir_client_pool_return(storm->pool, channel, NULL);
}

/* True for the allowed errors of an acquisition; an incomplete promise has been lost. */
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
            err = weir_promise_sync(acquiring, TEST_TIMEOUT_NS);
        if (err == 0)
            use(storm, weir_promise_value(acquiring), chance);
        else if (!is_fair(storm, acquiring, err))
            atomic_fetch_add(storm->wrong, 1);
        weir_promise_release(acquiring);
    }
}

static void storm(struct host *host, const weir_client_pool_options *options, bool closes)
{
    struct pool_fixture fixture;
    struct storm storms[STORM_THREADS];
    weir__thread threads[STORM_THREADS];
    _Atomic unsigned most = 0, out = 0, wrong = 0;

    pool_fixture_open(&fixture, host, options);
    for (unsigned i = 0; i < STORM_THREADS; i++) {
        storms[i] = (struct storm){.pool = fixture.pool,
                                   .seed = i,
                                   .in_a_hurry = options->acquire_timeout_ns > 0,
                                   .most = &most,
                                   .out = &out,
                                   .wrong = &wrong};
        assert_int_equal(weir__thread_start("storm", rage, &storms[i], &threads[i]), 0);
    }
    if (closes) {
        while (pool_fixture_stats(fixture.pool).acquired < STORM_ROUNDS)
            weir__thread_yield();
        weir_client_pool_close(fixture.pool);
    }
    for (unsigned i = 0; i < STORM_THREADS; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(wrong, 0);
    assert_true(most <= 2);
    while (pool_fixture_stats(fixture.pool).waiting >
           0) /* those who have cancelled leave a moment later */
        weir__thread_yield();
    pool_fixture_close(&fixture);
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
