/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monotonic clock, the manual clock and its observers.
 */
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/memory.h"

TEST(clock, a_manual_one_does_not_start_before_zero)
{
    weir_manual_clock *clock;

    assert_int_equal(weir_manual_clock_create(-1, &clock), -EINVAL);
}

TEST(clock, the_monotonic_one_does_not_go_backwards)
{
    weir_clock *clock = weir_clock_monotonic();
    int64_t before = clock->now(clock);

    assert_false(clock->manual);
    assert_true(before > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = weir__clock_now(clock);

        assert_true(now >= before);
        before = now;
    }
    assert_true(clock->now(clock) >= before);
}

TEST(clock, a_manual_one_stands_until_it_is_moved)
{
    weir_manual_clock *manual;
    weir_clock *clock;

    assert_int_equal(weir_manual_clock_create(5, &manual), 0);
    clock = weir_manual_clock_clock(manual);
    assert_true(clock->manual);
    assert_int_equal(weir__clock_now(clock), 5);
    assert_int_equal(weir_manual_clock_advance(manual, 10), 0);
    assert_int_equal(weir__clock_now(clock), 15);
    assert_int_equal(weir_manual_clock_set(manual, 100), 0);
    assert_int_equal(weir__clock_now(clock), 100);
    weir_manual_clock_release(manual);
}

TEST(clock, now_is_that_of_any_clock)
{
    int64_t before = weir__monotonic_now();
    weir_manual_clock *manual;

    assert_true(weir_clock_now(NULL) >= before);
    assert_true(weir_clock_now(weir_clock_monotonic()) >= before);
    assert_true(weir_clock_now(NULL) <= weir__monotonic_now());
    assert_int_equal(weir_manual_clock_create(5, &manual), 0);
    assert_int_equal(weir_clock_now(weir_manual_clock_clock(manual)), 5);
    weir_manual_clock_release(manual);
}

TEST(clock, a_manual_one_refuses_to_go_backwards)
{
    weir_manual_clock *manual;
    weir_clock *clock;

    assert_int_equal(weir_manual_clock_create(100, &manual), 0);
    clock = weir_manual_clock_clock(manual);
    assert_int_equal(weir_manual_clock_set(manual, 99), -EINVAL);
    assert_int_equal(weir_manual_clock_advance(manual, -1), -EINVAL);
    assert_int_equal(weir__clock_now(clock), 100);
    assert_int_equal(weir_manual_clock_set(manual, 100), 0);
    weir_manual_clock_release(manual);
}

TEST(clock, a_manual_one_stops_at_never)
{
    weir_manual_clock *manual;

    assert_int_equal(weir_manual_clock_create(100, &manual), 0);
    assert_int_equal(weir_manual_clock_advance(manual, WEIR_NEVER), 0);
    assert_true(weir__clock_now(weir_manual_clock_clock(manual)) == WEIR_NEVER);
    weir_manual_clock_release(manual);
}

TEST(clock, create_fails_without_memory)
{
    weir_manual_clock *manual = NULL;

    test_memory_fail_at(1);
    assert_int_equal(weir_manual_clock_create(0, &manual), -ENOMEM);
    assert_null(manual);
    weir_manual_clock_release(NULL);
}

struct watcher {
    weir_clock_observer observer;
    weir_clock *clock;
    int calls;
    int64_t seen_ns;
};

static void on_moved(weir_clock_observer *observer)
{
    struct watcher *watcher = WEIR_CONTAINER_OF(observer, struct watcher, observer);

    watcher->calls++;
    watcher->seen_ns = weir__clock_now(watcher->clock);
}

TEST(clock, observers_are_called_after_each_move)
{
    weir_manual_clock *manual;
    struct watcher watchers[3];

    assert_int_equal(weir_manual_clock_create(0, &manual), 0);
    for (int i = 0; i < 3; i++) {
        watchers[i] = (struct watcher){{.moved = on_moved}, weir_manual_clock_clock(manual), 0, -1};
        weir__clock_subscribe(watchers[i].clock, &watchers[i].observer);
    }
    weir_manual_clock_advance(manual, 7);
    weir__clock_unsubscribe(watchers[1].clock, &watchers[1].observer);
    weir_manual_clock_set(manual, 9);
    assert_int_equal(weir_manual_clock_set(manual, 8), -EINVAL);

    assert_int_equal(watchers[0].calls, 2);
    assert_int_equal(watchers[0].seen_ns, 9);
    assert_int_equal(watchers[1].calls, 1);
    assert_int_equal(watchers[1].seen_ns, 7);
    assert_int_equal(watchers[2].calls, 2);
    for (int i = 0; i < 3; i++)
        weir__clock_unsubscribe(watchers[i].clock, &watchers[i].observer);
    weir_manual_clock_release(manual);
}

TEST(clock, a_running_one_has_no_observers)
{
    struct watcher watcher = {{.moved = on_moved}, weir_clock_monotonic(), 0, -1};

    weir__clock_subscribe(watcher.clock, &watcher.observer);
    weir__clock_unsubscribe(watcher.clock, &watcher.observer);
    assert_int_equal(watcher.calls, 0);
}

struct slow_watcher {
    weir_clock_observer observer;
    _Atomic bool entered, leaving;
    bool left; /* plain: unsubscribe orders it */
};

static void on_moved_slowly(weir_clock_observer *observer)
{
    struct slow_watcher *watcher = WEIR_CONTAINER_OF(observer, struct slow_watcher, observer);

    atomic_store(&watcher->entered, true);
    while (!atomic_load(&watcher->leaving))
        weir__thread_yield();
    for (int i = 0; i < 100; i++)
        weir__thread_yield();
    watcher->left = true;
}

static void advance_once(void *manual)
{
    weir_manual_clock_advance(manual, 1);
}

TEST(clock, unsubscribe_waits_for_a_call_in_progress)
{
    struct slow_watcher watcher = {.observer = {.moved = on_moved_slowly}};
    weir_manual_clock *manual;
    weir__thread mover;

    assert_int_equal(weir_manual_clock_create(0, &manual), 0);
    weir__clock_subscribe(weir_manual_clock_clock(manual), &watcher.observer);
    assert_int_equal(weir__thread_start("mover", advance_once, manual, &mover), 0);
    while (!atomic_load(&watcher.entered))
        weir__thread_yield();
    atomic_store(&watcher.leaving, true);
    weir__clock_unsubscribe(weir_manual_clock_clock(manual), &watcher.observer);
    assert_true(watcher.left);
    weir__thread_join(&mover);
    weir_manual_clock_release(manual);
}

static void advance_much(void *manual)
{
    for (int i = 0; i < 1000; i++)
        weir_manual_clock_advance(manual, 1);
}

TEST(clock, moves_of_several_threads_add_up)
{
    weir_manual_clock *manual;
    weir__thread movers[3];

    assert_int_equal(weir_manual_clock_create(0, &manual), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__thread_start("mover", advance_much, manual, &movers[i]), 0);
    for (int i = 0; i < 3; i++)
        weir__thread_join(&movers[i]);
    assert_int_equal(weir__clock_now(weir_manual_clock_clock(manual)), 3000);
    weir_manual_clock_release(manual);
}
