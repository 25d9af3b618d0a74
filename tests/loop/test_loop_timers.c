/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers of a loop are never early, at any resolution, set from any thread, and whatever wakes the
 * loop meanwhile. The benchmark measures how late they are.
 */
#include <weir/timer.h>

#include "loop/loop.h"
#include "os/random.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/fd_event.h"
#include "support/loop/host.h"

#define ALARMS 300
#define SPREAD_NS weir_ms(20)

struct alarm {
    int64_t due_ns;
    int64_t fired_ns;
    weir_timer timer;
};

struct alarms {
    weir_executor *loop;
    struct call_counter fired;
    struct alarm each[ALARMS];
};

static struct alarms set;

/* Whole milliseconds, microseconds and nanoseconds: backends round, and must do so upwards. */
static int64_t draw_delay(weir__random *random)
{
    const int64_t units_ns[] = {weir_ms(1), weir_us(1), 1};
    int64_t unit_ns = units_ns[weir__random_below(random, 3)];

    return (int64_t)weir__random_below(random, (uint64_t)(SPREAD_NS / unit_ns)) * unit_ns;
}

static void fire(struct alarm *alarm)
{
    alarm->fired_ns = weir__monotonic_now();
    call_counter_add(&set.fired);
}

static void on_schedule(void *arg, int status)
{
    (void)status;
    fire(arg);
}

static void on_timer(weir_timer *timer)
{
    fire(WEIR_CONTAINER_OF(timer, struct alarm, timer));
}

static void begin(weir_executor *loop)
{
    set = (struct alarms){.loop = loop};
}

/* Rings until all have fired, so that the loop wakes for other reasons, too. */
static void await_all(struct fd_event *event)
{
    uint32_t rung = 0;

    while (atomic_load(&set.fired.calls) < ALARMS) {
        fd_event_trigger(event);
        assert_true(call_counter_await(&event->triggered, ++rung));
    }
    for (int i = 0; i < ALARMS; i++)
        assert_true(set.each[i].fired_ns >= set.each[i].due_ns);
}

TEST_EACH_LOOP(loop_timers, of_other_threads_are_never_early)
{
    weir__random random;
    struct fd_event event = {0};

    weir__random_init(&random, weir__random_process_seed());
    begin(host->loop);
    fd_event_open(&event, host->loop);
    for (int i = 0; i < ALARMS; i++) {
        int64_t delay_ns = draw_delay(&random);

        set.each[i].due_ns = weir__monotonic_now() + delay_ns;
        assert_int_equal(weir_schedule(host->loop, delay_ns, on_schedule, &set.each[i], NULL), 0);
    }
    await_all(&event);
    fd_event_close(&event);
}

static void start_timers(void *arg)
{
    (void)arg;
    for (int i = 0; i < ALARMS; i++) {
        int64_t delay_ns = draw_delay(weir__random_thread());

        set.each[i].due_ns = weir__monotonic_now() + delay_ns;
        (void)weir_timer_start(set.loop, &set.each[i].timer, delay_ns, on_timer);
    }
}

TEST_EACH_LOOP(loop_timers, of_its_own_thread_are_never_early)
{
    struct fd_event event = {0};

    begin(host->loop);
    fd_event_open(&event, host->loop);
    run_on_executor(host->loop, start_timers, NULL);
    await_all(&event);
    fd_event_close(&event);
}

/* Without the event, so that each wait ends by its deadline. */
TEST_EACH_LOOP(loop_timers, alone_are_never_early)
{
    begin(host->loop);
    run_on_executor(host->loop, start_timers, NULL);
    assert_true(call_counter_await(&set.fired, ALARMS));
    for (int i = 0; i < ALARMS; i++)
        assert_true(set.each[i].fired_ns >= set.each[i].due_ns);
}
