/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers in the caller's memory. The test's thread is the executor's, and sets its clock.
 */
#include <errno.h>
#include <stdlib.h>

#include <weir/error.h>
#include <weir/timer.h>

#include "os/clock.h"
#include "support/executor/call_order.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/memory.h"
#include "support/test.h"

/* A timer that writes its letter. */
struct letter_timer {
    weir_timer timer;
    struct call_order *letters;
    char letter;
};

static struct letter_timer letter_timer_init(struct call_order *letters, char letter)
{
    struct letter_timer letter_timer = {.letters = letters, .letter = letter};

    weir_timer_init(&letter_timer.timer);
    return letter_timer;
}

static void on_letter_timer(weir_timer *timer)
{
    struct letter_timer *letter_timer = WEIR_CONTAINER_OF(timer, struct letter_timer, timer);

    call_order_write(letter_timer->letters, letter_timer->letter);
}

static void start(struct stepper *stepper, struct letter_timer *letter_timer, int64_t delay_ns)
{
    assert_int_equal(
        weir_timer_start(stepper->executor, &letter_timer->timer, delay_ns, on_letter_timer), 0);
}

TEST(timer, is_no_more_than_a_line_of_the_cache_and_has_room_for_later)
{
    assert_int_equal(sizeof(weir_timer), 64);
    assert_int_equal(sizeof(((weir_timer *)0)->node.reserved), 4);
}

TEST(timer, fires_once_at_its_deadline_and_not_before)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');

    assert_false(weir_timer_is_running(&letter_timer.timer));
    start(&stepper, &letter_timer, 1000);
    assert_true(weir_timer_is_running(&letter_timer.timer));
    assert_int_equal(stepper_advance(&stepper, 999), 0);
    assert_int_equal(stepper_advance(&stepper, 1), 1);
    assert_string_equal(letters.text, "a");
    assert_false(weir_timer_is_running(&letter_timer.timer));
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    stepper_close(&stepper);
}

TEST(timer, without_delay_fires_in_the_next_turn)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer zero = letter_timer_init(&letters, 'a'),
                        negative = letter_timer_init(&letters, 'b');

    start(&stepper, &zero, 0);
    start(&stepper, &negative, -weir_seconds(5));
    assert_string_equal(letters.text, "");
    assert_int_equal(stepper_run(&stepper), 2);
    assert_string_equal(letters.text, "ab");
    stepper_close(&stepper);
}

TEST(timer, fires_in_the_order_of_deadlines_then_of_starts)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer a = letter_timer_init(&letters, 'a'), b = letter_timer_init(&letters, 'b'),
                        c = letter_timer_init(&letters, 'c'), d = letter_timer_init(&letters, 'd');

    start(&stepper, &c, weir_ms(2));
    start(&stepper, &a, weir_ms(1));
    start(&stepper, &d, weir_ms(2));
    start(&stepper, &b, weir_ms(1));
    stepper_advance(&stepper, weir_ms(3));
    assert_string_equal(letters.text, "abcd");
    stepper_close(&stepper);
}

TEST(timer, that_starts_again_comes_after_those_of_the_same_deadline)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer a = letter_timer_init(&letters, 'a'), b = letter_timer_init(&letters, 'b');

    start(&stepper, &a, weir_ms(1));
    start(&stepper, &b, weir_ms(1));
    start(&stepper, &a, weir_ms(1));
    stepper_advance(&stepper, weir_ms(1));
    assert_string_equal(letters.text, "ba");
    stepper_close(&stepper);
}

TEST(timer, runs_only_from_its_last_start)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer later = letter_timer_init(&letters, 'a'),
                        earlier = letter_timer_init(&letters, 'b');

    start(&stepper, &later, weir_ms(5));
    start(&stepper, &earlier, weir_ms(5));
    stepper_advance(&stepper, weir_ms(4));
    assert_int_equal(weir_timer_restart(&later.timer, weir_ms(5)), 0);
    assert_int_equal(weir_timer_restart(&earlier.timer, 0), 0);
    assert_int_equal(stepper_run(&stepper), 1);
    assert_string_equal(letters.text, "b");
    assert_int_equal(stepper_advance(&stepper, weir_ms(4)), 0);
    assert_int_equal(stepper_advance(&stepper, weir_ms(1)), 1);
    assert_string_equal(letters.text, "ba");
    stepper_close(&stepper);
}

TEST(timer, may_be_restarted_after_it_fired)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');

    start(&stepper, &letter_timer, 1);
    stepper_advance(&stepper, 1);
    assert_int_equal(weir_timer_restart(&letter_timer.timer, 1), 0);
    stepper_advance(&stepper, 1);
    assert_string_equal(letters.text, "aa");
    stepper_close(&stepper);
}

TEST(timer, that_is_stopped_does_not_fire)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');

    start(&stepper, &letter_timer, 1000);
    assert_int_equal(weir_timer_stop(&letter_timer.timer), 0);
    assert_false(weir_timer_is_running(&letter_timer.timer));
    assert_int_equal(weir_timer_stop(&letter_timer.timer), 0);
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    assert_string_equal(letters.text, "");
    start(&stepper, &letter_timer, 1000);
    assert_int_equal(stepper_advance(&stepper, 1000), 1);
    stepper_close(&stepper);
}

TEST(timer, that_was_never_started_may_be_stopped)
{
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');

    assert_int_equal(weir_timer_stop(&letter_timer.timer), 0);
}

/* A timer that stops another one, and starts itself again. */
struct interferer {
    weir_timer timer;
    weir_timer *victim;
    int fired;
};

static void interfere(weir_timer *timer)
{
    struct interferer *interferer = WEIR_CONTAINER_OF(timer, struct interferer, timer);

    assert_false(weir_timer_is_running(timer));
    assert_int_equal(weir_timer_stop(interferer->victim), 0);
    if (++interferer->fired < 3)
        assert_int_equal(weir_timer_restart(timer, 10), 0);
}

TEST(timer, may_start_itself_and_stop_another_that_is_due_too)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');
    struct interferer interferer = {.victim = &letter_timer.timer};

    assert_int_equal(weir_timer_start(stepper.executor, &interferer.timer, 10, interfere), 0);
    start(&stepper, &letter_timer, 10);
    assert_int_equal(stepper_advance(&stepper, 10), 1);
    assert_int_equal(stepper_advance(&stepper, 10), 1);
    assert_int_equal(stepper_advance(&stepper, 10), 1);
    assert_int_equal(interferer.fired, 3);
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    assert_string_equal(letters.text, "");
    stepper_close(&stepper);
}

static void free_own_memory(weir_timer *timer)
{
    free(timer);
}

TEST(timer, is_the_callers_again_when_it_fires)
{
    struct stepper stepper = stepper_open();
    weir_timer *timer = calloc(1, sizeof(*timer)); /* zeroed is initialized */

    assert_non_null(timer);
    assert_int_equal(weir_timer_start(stepper.executor, timer, 1, free_own_memory), 0);
    assert_int_equal(stepper_advance(&stepper, 1), 1);
    stepper_close(&stepper);
}

TEST(timer, needs_no_memory)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');
    size_t allocations = test_memory_allocations();

    for (int64_t i = 0; i < 20; i++) {
        start(&stepper, &letter_timer, i);
        assert_int_equal(weir_timer_restart(&letter_timer.timer, 2 * i), 0);
        stepper_advance(&stepper, i);
        assert_int_equal(weir_timer_stop(&letter_timer.timer), 0);
    }
    assert_int_equal(test_memory_allocations(), allocations);
    stepper_close(&stepper);
}

TEST(timer, that_overflows_never_fires)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer never = letter_timer_init(&letters, 'a'),
                        almost = letter_timer_init(&letters, 'b');

    start(&stepper, &never, WEIR_NEVER);
    start(&stepper, &almost, WEIR_NEVER - 1);
    assert_int_equal(stepper_advance(&stepper, WEIR_NEVER / 2), 0);
    assert_true(weir_timer_is_running(&never.timer));
    assert_true(weir_timer_is_running(&almost.timer));
    stepper_close(&stepper);
}

struct outsider {
    struct stepper *stepper;
    struct letter_timer *letter_timer;
    int start_err;
    int restart_err;
    int stop_err;
};

static void use_on_other_thread(void *arg)
{
    struct outsider *outsider = arg;

    outsider->start_err = weir_timer_start(outsider->stepper->executor,
                                           &outsider->letter_timer->timer, 1, on_letter_timer);
    outsider->restart_err = weir_timer_restart(&outsider->letter_timer->timer, 1);
    outsider->stop_err = weir_timer_stop(&outsider->letter_timer->timer);
}

TEST(timer, is_for_its_executors_thread_only)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');
    struct outsider outsider = {.stepper = &stepper, .letter_timer = &letter_timer};

    start(&stepper, &letter_timer, 1000);
    run_on_other_thread(use_on_other_thread, &outsider);
    assert_int_equal(outsider.start_err, WEIR_EWRONGTHREAD);
    assert_int_equal(outsider.restart_err, WEIR_EWRONGTHREAD);
    assert_int_equal(outsider.stop_err, WEIR_EWRONGTHREAD);
    assert_int_equal(stepper_advance(&stepper, 999), 0);
    assert_int_equal(stepper_advance(&stepper, 1), 1);
    stepper_close(&stepper);
}

TEST(timer, runs_on_one_executor_at_a_time)
{
    struct stepper first = stepper_open(), second = stepper_open();
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');

    start(&first, &letter_timer, 10);
    assert_int_equal(weir_timer_start(second.executor, &letter_timer.timer, 1, on_letter_timer),
                     -EBUSY);
    assert_int_equal(stepper_advance(&first, 10), 1);
    start(&second, &letter_timer, 10);
    assert_int_equal(stepper_advance(&first, 10), 0);
    assert_int_equal(stepper_advance(&second, 10), 1);
    stepper_close(&first);
    stepper_close(&second);
}

TEST(timer, refuses_bad_arguments)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer letter_timer = letter_timer_init(&letters, 'a');

    assert_int_equal(weir_timer_start(NULL, &letter_timer.timer, 1, on_letter_timer), -EINVAL);
    assert_int_equal(weir_timer_start(stepper.executor, NULL, 1, on_letter_timer), -EINVAL);
    assert_int_equal(weir_timer_start(stepper.executor, &letter_timer.timer, 1, NULL), -EINVAL);
    assert_int_equal(weir_timer_restart(NULL, 1), -EINVAL);
    assert_int_equal(weir_timer_restart(&letter_timer.timer, 1),
                     -EINVAL); /* it was never started */
    assert_int_equal(
        weir_timer_start(weir_executor_immediate(), &letter_timer.timer, 1, on_letter_timer),
        -ENOTSUP);
    assert_false(weir_timer_is_running(&letter_timer.timer));
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    stepper_close(&stepper);
}

TEST(timer, is_stopped_when_its_executor_shuts_down)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct letter_timer due = letter_timer_init(&letters, 'a'),
                        later = letter_timer_init(&letters, 'b');

    weir_executor_retain(stepper.executor);
    start(&stepper, &later, weir_seconds(1));
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, weir_seconds(1)), 0);
    stepper_run(&stepper);
    assert_false(weir_timer_is_running(&later.timer));
    assert_int_equal(weir_executor_state(stepper.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_timer_start(stepper.executor, &due.timer, 0, on_letter_timer),
                     WEIR_EREJECTED);
    assert_int_equal(weir_timer_restart(&later.timer, 0), WEIR_EREJECTED);
    assert_false(weir_timer_is_running(&due.timer));
    assert_string_equal(letters.text, "");
    weir_executor_release(stepper.executor);
    stepper_close(&stepper);
}

/* A timer on a real thread and the real clock. */
struct real_timer {
    weir_timer timer;
    weir_executor *executor;
    int64_t deadline_ns;
    int64_t fired_ns;
    weir_executor *current;
    struct call_counter fired;
};

static void on_time(weir_timer *timer)
{
    struct real_timer *real_timer = WEIR_CONTAINER_OF(timer, struct real_timer, timer);

    real_timer->fired_ns = weir__monotonic_now();
    real_timer->current = weir_executor_current();
    call_counter_add(&real_timer->fired);
}

static void start_real_timer(void *arg)
{
    struct real_timer *real_timer = arg;

    real_timer->deadline_ns = weir__monotonic_now() + weir_ms(3);
    (void)weir_timer_start(real_timer->executor, &real_timer->timer, weir_ms(3), on_time);
}

TEST(timer, fires_on_its_executors_thread_and_never_early)
{
    struct single_executor single = single_executor_open(NULL);
    struct real_timer real_timer = {.executor = single.executor};

    for (uint32_t i = 1; i <= 10; i++) {
        run_on_executor(single.executor, start_real_timer, &real_timer);
        assert_true(call_counter_await(&real_timer.fired, i));
        assert_true(real_timer.fired_ns >= real_timer.deadline_ns);
        assert_ptr_equal(real_timer.current, single.executor);
    }
    single_executor_close(&single);
}

/*
 * Long timers may count from the end of the batch of tasks that starts them: until then they are
 * running, but have no deadline.
 */
#define LONG_NS weir_ms(100)

struct batch {
    weir_executor *executor;
    struct call_order letters;
    struct letter_timer timers_of_batch[5];
    int64_t started_ns;
    int64_t fired_ns;
    int errs;
};

static void on_batch_timer(weir_timer *timer)
{
    struct letter_timer *letter_timer = WEIR_CONTAINER_OF(timer, struct letter_timer, timer);
    struct batch *batch = WEIR_CONTAINER_OF(letter_timer->letters, struct batch, letters);

    batch->fired_ns = weir__monotonic_now();
    on_letter_timer(timer);
}

static void batch_start(struct batch *batch, int i, int64_t delay_ns)
{
    batch->errs += weir_timer_start(batch->executor, &batch->timers_of_batch[i].timer, delay_ns,
                                    on_batch_timer);
    batch->errs += !weir_timer_is_running(&batch->timers_of_batch[i].timer);
}

static void start_batch(void *arg)
{
    struct batch *batch = arg;

    for (int i = 0; i < 5; i++)
        batch->timers_of_batch[i] = letter_timer_init(&batch->letters, (char)('a' + i));
    batch->started_ns = weir__monotonic_now();
    batch_start(batch, 4, LONG_NS + weir_ms(1));
    batch_start(batch, 3, LONG_NS);
    batch_start(batch, 2, LONG_NS);
    batch_start(batch, 1, 2 * LONG_NS);
    batch_start(batch, 0, LONG_NS);
    batch->errs +=
        weir_timer_restart(&batch->timers_of_batch[3].timer, LONG_NS); /* to the end of its kind */
    batch->errs += weir_timer_stop(&batch->timers_of_batch[1].timer);
    batch->errs += weir_timer_is_running(&batch->timers_of_batch[1].timer);
}

TEST(timer, that_runs_for_long_is_neither_early_nor_out_of_order)
{
    struct single_executor single = single_executor_open(NULL);
    struct batch batch = {.executor = single.executor};

    run_on_executor(single.executor, start_batch, &batch);
    assert_int_equal(batch.errs, 0);
    assert_true(call_order_await(&batch.letters, 4));
    assert_true(batch.fired_ns - batch.started_ns >= LONG_NS + weir_ms(1)); /* the last one */
    assert_string_equal(batch.letters.text, "cade");
    single_executor_close(&single);
}

static void change_batch(void *arg)
{
    struct batch *batch = arg;

    for (int i = 0; i < 5; i++)
        batch->timers_of_batch[i] = letter_timer_init(&batch->letters, (char)('a' + i));
    batch_start(batch, 0, weir_seconds(3600));
    batch_start(batch, 0, weir_us(1));
    batch_start(batch, 1, weir_us(1));
    batch_start(batch, 1, weir_seconds(3600));
    batch_start(batch, 2, weir_us(2));
}

static void record_batch(void *arg)
{
    struct batch *batch = arg;

    batch->errs += !weir_timer_is_running(&batch->timers_of_batch[1].timer);
    batch->errs += weir_timer_stop(&batch->timers_of_batch[1].timer);
    batch->errs += weir_timer_is_running(&batch->timers_of_batch[1].timer);
}

TEST(timer, may_be_restarted_to_run_for_long_or_short_in_the_same_task)
{
    struct single_executor single = single_executor_open(NULL);
    struct batch batch = {.executor = single.executor};

    run_on_executor(single.executor, change_batch, &batch);
    assert_true(call_order_await(&batch.letters, 2));
    run_on_executor(single.executor, record_batch, &batch);
    assert_int_equal(batch.errs, 0);
    assert_string_equal(batch.letters.text, "ac");
    single_executor_close(&single);
}

static void start_and_shut_down(void *arg)
{
    struct batch *batch = arg;

    batch->timers_of_batch[0] = letter_timer_init(&batch->letters, 'a');
    batch_start(batch, 0, weir_seconds(3600));
    batch->errs += weir_executor_shutdown(batch->executor, 0, weir_seconds(10));
}

TEST(timer, does_not_hold_up_the_end_of_a_thread)
{
    struct single_executor single = single_executor_open(NULL);
    struct batch batch = {.executor = single.executor};

    run_on_executor(single.executor, start_and_shut_down, &batch);
    single_executor_close(&single);
    assert_int_equal(batch.errs, 0);
    assert_false(weir_timer_is_running(&batch.timers_of_batch[0].timer));
    assert_string_equal(batch.letters.text, "");
}
