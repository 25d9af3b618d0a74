/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the credit for busy polling; then the strategies on loops. */
#include "loop/strategy.h"

#include <errno.h>

#include <weir/timer.h>

#include "base/turn_hooks.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/loop/fd_event.h"
#include "support/loop/host.h"
#include "support/test.h"

#define LIMIT_NS weir_us(50)
#define WORTH_NS weir_us(50)
#define START_NS weir_seconds(100)

static weir__adaptive adaptive;
static int64_t now_ns;

static void begin(void)
{
    now_ns = START_NS;
    weir__adaptive_init(&adaptive, LIMIT_NS, WORTH_NS, now_ns);
}

static int64_t allowed_after(int64_t elapsed_ns)
{
    now_ns += elapsed_ns;
    return weir__adaptive_limit(&adaptive, now_ns);
}

/* ---- the credit ---- */

TEST(adaptive, begins_without_credit)
{
    begin();
    assert_int_equal(allowed_after(0), 0);
    assert_int_equal(adaptive.credit_ns, 0);
}

TEST(adaptive, polls_if_a_whole_poll_is_affordable)
{
    begin();
    assert_int_equal(allowed_after(500 * LIMIT_NS - 1), 0);
    assert_int_equal(allowed_after(1), LIMIT_NS);
}

TEST(adaptive, loses_no_credit_to_rounding)
{
    begin();
    for (int i = 0; i < 1000; i++)
        (void)allowed_after(499);
    assert_int_equal(adaptive.credit_ns, 998);
    (void)allowed_after(1000);
    assert_int_equal(adaptive.credit_ns, 1000);
}

TEST(adaptive, has_a_most_that_idling_brings)
{
    begin();
    assert_int_equal(allowed_after(weir_seconds(3600)), LIMIT_NS);
    assert_int_equal(adaptive.credit_ns, weir_us(200));
}

TEST(adaptive, pays_for_a_futile_poll)
{
    begin();
    (void)allowed_after(weir_seconds(1));
    for (int looks = 0; looks < 3; looks++) {
        weir__adaptive_record(&adaptive, LIMIT_NS, false);
        assert_int_equal(allowed_after(0), LIMIT_NS);
    }
    weir__adaptive_record(&adaptive, LIMIT_NS, false);
    assert_int_equal(adaptive.credit_ns, 0);
    assert_int_equal(allowed_after(0), 0);
}

TEST(adaptive, earns_what_a_sleep_is_worth)
{
    begin();
    (void)allowed_after(500 * LIMIT_NS);
    weir__adaptive_record(&adaptive, LIMIT_NS, true);
    assert_int_equal(adaptive.credit_ns, LIMIT_NS + WORTH_NS);
    for (int i = 0; i < 10; i++)
        weir__adaptive_record(&adaptive, 1, true);
    assert_int_equal(adaptive.credit_ns, weir_us(200));
}

/* Dense traffic: as long as it finds something it goes on, credit or not. */
TEST(adaptive, goes_on_after_a_hit_until_it_is_deep_in_debt)
{
    begin();
    adaptive.hit = true;
    adaptive.credit_ns = -weir_us(200) + 1;
    assert_int_equal(allowed_after(0), LIMIT_NS);
    adaptive.credit_ns--;
    assert_int_equal(allowed_after(0), 0);
    adaptive.credit_ns = LIMIT_NS - 1;
    adaptive.hit = false;
    assert_int_equal(allowed_after(0), 0);
}

TEST(adaptive, stops_after_a_miss)
{
    begin();
    (void)allowed_after(500 * LIMIT_NS);
    weir__adaptive_record(&adaptive, LIMIT_NS - 1, false);
    assert_int_equal(adaptive.credit_ns, 1);
    assert_int_equal(allowed_after(weir_us(10)), 0);
}

/* A thread that was not allowed to run has not looked: the worst is 150 ms from the next look. */
TEST(adaptive, pays_at_most_for_a_whole_poll)
{
    begin();
    adaptive.hit = true;
    adaptive.credit_ns = -weir_us(200) + 1;
    weir__adaptive_record(&adaptive, weir_seconds(10), false);
    assert_int_equal(allowed_after(weir_ms(150) - 1000), 0);
    assert_int_equal(allowed_after(1000), LIMIT_NS);
}

TEST(adaptive, affords_a_poll_that_is_longer_than_usual)
{
    begin();
    weir__adaptive_init(&adaptive, weir_ms(1), WORTH_NS, now_ns);
    assert_int_equal(allowed_after(weir_seconds(10)), weir_ms(1));
}

/* What the rule is for: a day of nothing but misses wastes 0.2 % of it. */
TEST(adaptive, wastes_little_where_nothing_comes)
{
    int64_t wasted_ns = 0;

    begin();
    for (int i = 0; i < 1000000; i++) {
        if (allowed_after(weir_us(300)) == 0)
            continue;
        weir__adaptive_record(&adaptive, LIMIT_NS, false);
        wasted_ns += LIMIT_NS;
    }
    assert_true(wasted_ns > 0);
    assert_true(wasted_ns <= (now_ns - START_NS) / 500 + weir_us(450));
}

/* ---- on a loop ---- */

static weir_group *make_loops(const struct host *host, weir_group_options *options)
{
    weir_group *group = NULL;

    options->size = sizeof(*options);
    options->threads = 1;
    options->io = weir_loop_io(host->loop);
    assert_int_equal(weir_group_create(options, &group), 0);
    return group;
}

static weir_loop_stats stats_of(const weir_executor *loop)
{
    weir_loop_stats stats;

    assert_int_equal(weir_loop_read_stats(loop, &stats), 0);
    return stats;
}

/* Tasks, timers and I/O all come through, whatever the strategy. */
static void exercise(weir_executor *loop)
{
    struct call_counter counter = {0};
    struct fd_event event = {0};

    fd_event_open(&event, loop);
    for (uint32_t i = 1; i <= 50; i++) {
        fd_event_trigger(&event);
        assert_true(call_counter_await(&event.triggered, i));
        assert_int_equal(weir_execute(loop, call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, 2 * i - 1));
        assert_int_equal(weir_schedule(loop, weir_us(20), call_counter_task, &counter, NULL), 0);
        assert_true(call_counter_await(&counter, 2 * i));
    }
    fd_event_close(&event);
}

TEST_EACH_LOOP(strategy, busy_wait_never_sleeps)
{
    weir_group_options options = {.strategy = WEIR_STRATEGY_BUSY_WAIT};
    weir_group *group = make_loops(host, &options);
    weir_executor *loop = weir_group_at(group, 0);

    exercise(loop);
    assert_int_equal(stats_of(loop).wakeups, 0);
    end_group(group);
}

static _Atomic uint32_t hook_calls;

static int64_t count_hook_call(bool sleeps, int64_t time_ns)
{
    (void)sleeps;
    (void)time_ns;
    atomic_fetch_add(&hook_calls, 1);
    return WEIR_NEVER;
}

static void await_hook_calls(unsigned count)
{
    uint32_t before = atomic_load(&hook_calls);

    while (atomic_load(&hook_calls) - before < count)
        weir__thread_yield();
}

TEST_EACH_LOOP(strategy, busy_wait_calls_the_turn_hooks)
{
    weir_group_options options = {.strategy = WEIR_STRATEGY_BUSY_WAIT};
    weir_group *group = make_loops(host, &options);

    weir__turn_hook_add(count_hook_call);
    exercise(weir_group_at(group, 0));
    await_hook_calls(3);
    end_group(group);
}

TEST_EACH_LOOP(strategy, busy_wait_can_be_suspended)
{
    weir_group_options options = {.strategy = WEIR_STRATEGY_BUSY_WAIT};
    weir_group *group = make_loops(host, &options);
    weir_executor *loop = weir_group_at(group, 0);

    exercise(loop);
    assert_int_equal(weir_executor_suspend(loop), 0);
    while (weir_executor_state(loop) != WEIR_EXECUTOR_SUSPENDED)
        weir__thread_yield();
    exercise(loop);
    end_group(group);
}

/* Work that comes while the loop looks is found, and nobody makes a call. */
TEST_EACH_LOOP(strategy, adaptive_polls_before_it_sleeps)
{
    weir_group_options options = {
        .strategy = WEIR_STRATEGY_ADAPTIVE,
        .adaptive_limit_ns = weir_seconds(5),
        .adaptive_credit_ns = weir_seconds(5),
    };
    weir_group *group;
    weir_executor *loop;
    weir_loop_stats stats;

    if (weir__cpu_count() == 1)
        WEIR_TEST_SKIP("loops look only where there is more than one CPU");
    group = make_loops(host, &options);
    loop = weir_group_at(group, 0);
    weir__loop_of(loop)->adaptive.credit_ns = weir_seconds(5); /* it has not begun */
    weir__turn_hook_add(count_hook_call);
    atomic_store(&hook_calls, 0);
    exercise(loop);
    assert_true(atomic_load(&hook_calls) > 0);
    stats = stats_of(loop);
    assert_true(stats.busy_polls > 0);
    assert_true(stats.busy_poll_hits > 0);
    assert_true(stats.busy_poll_hits <= stats.busy_polls);
    assert_true(stats.busy_poll_ns > 0);
    end_group(group);
}

TEST_EACH_LOOP(strategy, select_does_not_poll)
{
    exercise(host->loop);
    assert_int_equal(stats_of(host->loop).busy_polls, 0);
}

struct own {
    _Atomic enum weir_wait answer;
    _Atomic unsigned asked;
    _Atomic unsigned with_work;
};

static enum weir_wait own_strategy(weir_executor *loop, bool has_work, void *user_data)
{
    struct own *own = user_data;

    (void)loop;
    atomic_fetch_add(&own->asked, 1);
    atomic_fetch_add(&own->with_work, has_work);
    return atomic_load(&own->answer);
}

TEST_EACH_LOOP(strategy, of_ones_own_is_asked_once_a_turn)
{
    struct own own = {.answer = WEIR_WAIT_SELECT};
    weir_group_options options = {.strategy_fn = own_strategy, .strategy_data = &own};
    weir_group *group = make_loops(host, &options);
    weir_executor *loop = weir_group_at(group, 0);
    struct gate gate = {0};
    struct call_counter counter = {0};

    exercise(loop);
    atomic_store(&own.answer, WEIR_WAIT_POLL);
    exercise(loop);
    assert_int_equal(weir_execute(loop, gate_task, &gate), 0);
    for (int i = 0; i < 200; i++) /* more than a turn's */
        assert_int_equal(weir_execute(loop, call_counter_task, &counter), 0);
    gate_open(&gate);
    assert_true(call_counter_await(&counter, 200));
    assert_true(atomic_load(&own.with_work) > 0);
    assert_int_equal(weir_executor_shutdown(loop, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(loop, TEST_TIMEOUT_NS), 0);
    assert_true(atomic_load(&own.asked) <= stats_of(loop).turns);
    weir_group_release(group);
}

/* No I/O, until the strategy thinks better of it. */
TEST_EACH_LOOP(strategy, of_ones_own_may_leave_out_io)
{
    struct own own = {.answer = WEIR_WAIT_SELECT};
    weir_group_options options = {.strategy_fn = own_strategy, .strategy_data = &own};
    weir_group *group = make_loops(host, &options);
    weir_executor *loop = weir_group_at(group, 0);
    struct fd_event event = {0};
    struct call_counter counter = {0};

    fd_event_open(&event, loop);
    atomic_store(&own.answer, WEIR_WAIT_CONTINUE);
    for (uint32_t i = 1; i <= 3; i++) { /* the turn that goes on looks for the last time */
        assert_int_equal(weir_execute(loop, call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, i));
    }
    fd_event_trigger(&event);
    for (uint32_t i = 4; i <= 100; i++) {
        assert_int_equal(weir_execute(loop, call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, i));
    }
    assert_int_equal(atomic_load(&event.triggered.calls), 0);
    atomic_store(&own.answer, WEIR_WAIT_SELECT);
    assert_true(call_counter_await(&event.triggered, 1));
    atomic_store(&own.answer, WEIR_WAIT_CONTINUE); /* which a shutdown does not heed */
    assert_int_equal(weir_executor_shutdown(loop, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(loop, TEST_TIMEOUT_NS), 0);
    fd_event_free(&event);
    weir_group_release(group);
}

static enum weir_wait work_first(weir_executor *loop, bool has_work, void *user_data)
{
    (void)loop;
    (void)user_data;
    return has_work ? WEIR_WAIT_CONTINUE : WEIR_WAIT_SELECT;
}

/* What is due of I/O is no work, or it would put itself off for ever. */
TEST_EACH_LOOP(strategy, that_puts_work_first_comes_to_io_in_the_end)
{
    weir_group_options options = {.strategy_fn = work_first};
    weir_group *group = make_loops(host, &options);

    exercise(weir_group_at(group, 0)); /* taking the event down makes something due */
    end_group(group);
}

TEST_EACH_LOOP(strategy, that_puts_work_first_does_io_in_a_run_that_does_not_wait)
{
    struct fd_event event = {0};
    weir_executor *loop = NULL;

    assert_int_equal(
        weir_loop_create(
            WEIR_LOOP_OPTIONS(.io = weir_loop_io(host->loop), .strategy_fn = work_first), &loop),
        0);
    fd_event_open(&event, loop);
    fd_event_trigger(&event);
    for (int i = 0; i < 1000 && atomic_load(&event.triggered.calls) == 0; i++)
        (void)weir_loop_run_once(loop, 0);
    assert_int_equal(atomic_load(&event.triggered.calls), 1);
    weir_executor_release(loop);
    fd_event_free(&event);
}

TEST(strategy, that_is_none_is_refused)
{
    const weir_group_options *const wrong[] = {
        WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .io_ratio = -1),
        WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .io_ratio = 101),
        WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .strategy = (enum weir_strategy)3),
        WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .strategy = WEIR_STRATEGY_BUSY_WAIT,
                           .strategy_fn = own_strategy),
        WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .adaptive_limit_ns = -1),
        WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .adaptive_credit_ns = -1),
        WEIR_GROUP_OPTIONS(.io = (enum weir_io)6),
    };
    weir_group *group = NULL;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(weir_group_create(wrong[i], &group), -EINVAL);
    assert_null(group);
}
