/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of the watchdog and of handlers that block, and their metrics. */
#include <errno.h>
#include <string.h>

#include <weir/metric.h>

#include "executor/executor.h"
#include "support/watchdog/watched_loop.h"

#define STATE .state_size = sizeof(struct watched_loop *), .init = watched_init

static void block_in_read(weir_ctx *ctx, weir_msg *msg)
{
    watched_block(watched_of(ctx), weir_ms(125));
    weir_msg_release(msg);
}

static const weir_handler app = {.name = "stats-app", STATE, .read = block_in_read};
static const weir_handler innocent = {.name = "innocent", STATE, .read = block_in_read};

static void block_in_task(void *arg, int status)
{
    if (status == 0)
        watched_block(arg, weir_ms(200));
}

TEST_EACH_LOOP(watchdog_stats, count_blocks_and_their_time)
{
    struct watched_loop watched;
    weir_watchdog_stats before, after;

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.blocks_before_offload = 1000));
    watched_add(&watched, "app", &app);
    weir_watchdog_read_stats(&before);
    assert_true(before.is_running);
    watched_receive(&watched);
    weir_watchdog_read_stats(&after);
    assert_int_equal(after.blocks, before.blocks + 1);
    assert_int_equal(after.blocked_now, 1);
    assert_int_equal(after.blocked_ns, before.blocked_ns);
    watched_check();
    assert_int_equal(weir_execute(watched.loop, block_in_task, &watched), 0);
    watched_run(&watched);
    watched_check();
    weir_watchdog_read_stats(&after);
    assert_int_equal(after.blocks, before.blocks + 2);
    assert_int_equal(after.blocked_now, 0);
    assert_int_equal(after.blocked_ns, before.blocked_ns + weir_ms(325));
    assert_int_equal(after.longest_ns, weir_ms(200));
    assert_int_equal(after.without_signal, before.without_signal);
    watched_close(&watched);
}

struct search {
    const weir_handler *wanted;
    unsigned count;
    weir_handler_stats stats;
};

static void on_stats(const weir_handler_stats *stats, void *user_data)
{
    struct search *search = user_data;

    if (stats->handler != search->wanted)
        return;
    search->count++;
    search->stats = *stats;
}

TEST_EACH_LOOP(watchdog_stats, have_the_blocks_of_each_handler)
{
    struct watched_loop watched;
    weir_handler_stats before = {0}, after;
    struct search search = {.wanted = &app};

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.blocks_before_offload = 1000));
    watched_add(&watched, "app", &app);
    watched_add(&watched, "innocent", &innocent);
    (void)weir_handler_read_stats(&app, &before);
    watched_receive(&watched);
    watched_check();
    assert_int_equal(weir_handler_read_stats(&app, &after), 0);
    assert_ptr_equal(after.handler, &app);
    assert_string_equal(after.name, "stats-app");
    assert_int_equal(after.blocks, before.blocks + 1);
    assert_int_equal(after.blocked_ns, before.blocked_ns + weir_ms(125));
    assert_int_equal(after.longest_ns, weir_ms(125));
    assert_false(after.is_offloaded);
    assert_int_equal(after.moved, 0);
    assert_int_equal(weir_handler_read_stats(&innocent, &after), -ENOENT);
    weir_handler_stats_foreach(on_stats, &search);
    assert_int_equal(search.count, 1);
    assert_int_equal(search.stats.blocks, before.blocks + 1);
    watched_close(&watched);
}

/* The table is in the list of handlers that move, whether or not a pipeline has a group for it. */
TEST_EACH_LOOP(watchdog_stats, say_that_a_handler_is_offloaded)
{
    static const weir_handler moves[BACKEND_COUNT] = {
        {.name = "moves", STATE, .read = block_in_read},
        {.name = "moves", STATE, .read = block_in_read},
        {.name = "moves", STATE, .read = block_in_read},
    };
    const weir_handler *handler = &moves[host->backend - backends];
    struct watched_loop watched;
    weir_handler_stats stats;

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.blocks_before_offload = 2));
    watched_add(&watched, "app", handler);
    for (uint64_t blocks = 1; blocks <= 3; blocks++) {
        watched_receive(&watched);
        watched_check();
        assert_int_equal(weir_handler_read_stats(handler, &stats), 0);
        assert_int_equal(stats.blocks, blocks);
        assert_int_equal(stats.is_offloaded, blocks > 2);
    }
    watched_close(&watched);
}

/* ---- metrics ---- */

static int64_t value_of(const char *name)
{
    weir_metric_value value;

    assert_int_equal(weir_metric_read(name, &value), 0);
    return value.value;
}

TEST_EACH_LOOP(watchdog_stats, are_metrics)
{
    struct watched_loop watched;
    weir_metric_value gone;
    weir_watchdog_stats stats;

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.blocks_before_offload = 1000));
    watched_add(&watched, "app", &app);
    watched_receive(&watched);
    assert_int_equal(value_of("watchdog.is_running"), 1);
    assert_int_equal(value_of("watchdog.blocked_now"), 1);
    watched_check();
    weir_watchdog_read_stats(&stats);
    assert_int_equal(value_of("watchdog.blocks"), stats.blocks);
    assert_int_equal(value_of("watchdog.blocked_now"), 0);
    assert_int_equal(value_of("watchdog.blocked_ns"), stats.blocked_ns);
    assert_int_equal(value_of("watchdog.longest_ns"), stats.longest_ns);
    assert_int_equal(value_of("watchdog.without_signal"), stats.without_signal);
    assert_int_equal(value_of("watchdog.not_logged"), stats.not_logged);
    watched_close(&watched);
    assert_int_equal(value_of("watchdog.is_running"), 0);
    assert_int_equal(weir_metric_read("handler.blocks{handler=\"stats-app\"}", &gone), -ENOENT);
}

TEST_EACH_LOOP(watchdog_stats, are_metrics_of_handlers_while_it_runs)
{
    struct watched_loop watched;
    weir_handler_stats stats;

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.blocks_before_offload = 1000));
    watched_add(&watched, "app", &app);
    watched_receive(&watched);
    watched_check();
    assert_int_equal(weir_handler_read_stats(&app, &stats), 0);
    assert_int_equal(value_of("handler.blocks{handler=\"stats-app\"}"), stats.blocks);
    assert_int_equal(value_of("handler.blocked_ns{handler=\"stats-app\"}"), stats.blocked_ns);
    assert_int_equal(value_of("handler.longest_ns{handler=\"stats-app\"}"), weir_ms(125));
    assert_int_equal(value_of("handler.moved{handler=\"stats-app\"}"), 0);
    assert_int_equal(value_of("handler.is_offloaded{handler=\"stats-app\"}"), 0);
    watched_close(&watched);
}

/* Only the first of them has metrics; the stats have both. */
TEST_EACH_LOOP(watchdog_stats, distinguish_handlers_with_the_same_name)
{
    static const weir_handler same = {.name = "stats-app", STATE, .read = block_in_read};
    struct watched_loop watched;
    weir_handler_stats stats;

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.blocks_before_offload = 1000));
    watched_add(&watched, "app", &same);
    watched_receive(&watched);
    watched_check();
    assert_int_equal(weir_handler_read_stats(&same, &stats), 0);
    assert_ptr_equal(stats.handler, &same);
    assert_string_equal(stats.name, "stats-app");
    watched_close(&watched);
}

/* The histogram has every 64th turn, and each blocked one. */
TEST_EACH_LOOP(watchdog_stats, have_blocked_turns_in_the_histogram)
{
    struct watched_loop watched;
    const weir_histogram *turns;

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.blocks_before_offload = 1000));
    watched_add(&watched, "app", &app);
    watched_receive(&watched);
    turns = &watched.loop->stats.turn_time;
    assert_true(weir_histogram_percentile(turns, 100) >= weir_ms(125));
    watched_close(&watched);
}
