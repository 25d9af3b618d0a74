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
struct bell {
    weir_timer timer;
    struct call_order *letters;
    char letter;
};

static struct bell bell_open(struct call_order *letters, char letter)
{
    struct bell bell = {.letters = letters, .letter = letter};

    weir_timer_init(&bell.timer);
    return bell;
}

static void ring(weir_timer *timer)
{
    struct bell *bell = WEIR_CONTAINER_OF(timer, struct bell, timer);

    call_order_write(bell->letters, bell->letter);
}

static void start(struct stepper *stepper, struct bell *bell, int64_t delay_ns)
{
    assert_int_equal(weir_timer_start(stepper->executor, &bell->timer, delay_ns, ring), 0);
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
    struct bell bell = bell_open(&letters, 'a');

    assert_false(weir_timer_is_running(&bell.timer));
    start(&stepper, &bell, 1000);
    assert_true(weir_timer_is_running(&bell.timer));
    assert_int_equal(stepper_advance(&stepper, 999), 0);
    assert_int_equal(stepper_advance(&stepper, 1), 1);
    assert_string_equal(letters.text, "a");
    assert_false(weir_timer_is_running(&bell.timer));
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    stepper_close(&stepper);
}

TEST(timer, without_delay_fires_in_the_next_turn)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct bell zero = bell_open(&letters, 'a'), negative = bell_open(&letters, 'b');

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
    struct bell a = bell_open(&letters, 'a'), b = bell_open(&letters, 'b'),
                c = bell_open(&letters, 'c'), d = bell_open(&letters, 'd');

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
    struct bell a = bell_open(&letters, 'a'), b = bell_open(&letters, 'b');

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
    struct bell later = bell_open(&letters, 'a'), earlier = bell_open(&letters, 'b');

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
    struct bell bell = bell_open(&letters, 'a');

    start(&stepper, &bell, 1);
    stepper_advance(&stepper, 1);
    assert_int_equal(weir_timer_restart(&bell.timer, 1), 0);
    stepper_advance(&stepper, 1);
    assert_string_equal(letters.text, "aa");
    stepper_close(&stepper);
}

TEST(timer, that_is_stopped_does_not_fire)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct bell bell = bell_open(&letters, 'a');

    start(&stepper, &bell, 1000);
    assert_int_equal(weir_timer_stop(&bell.timer), 0);
    assert_false(weir_timer_is_running(&bell.timer));
    assert_int_equal(weir_timer_stop(&bell.timer), 0);
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    assert_string_equal(letters.text, "");
    start(&stepper, &bell, 1000);
    assert_int_equal(stepper_advance(&stepper, 1000), 1);
    stepper_close(&stepper);
}

TEST(timer, that_was_never_started_may_be_stopped)
{
    struct call_order letters = {0};
    struct bell bell = bell_open(&letters, 'a');

    assert_int_equal(weir_timer_stop(&bell.timer), 0);
}

/* A timer that stops another one, and starts itself again. */
struct meddler {
    weir_timer timer;
    weir_timer *victim;
    int fired;
};

static void meddle(weir_timer *timer)
{
    struct meddler *meddler = WEIR_CONTAINER_OF(timer, struct meddler, timer);

    assert_false(weir_timer_is_running(timer));
    assert_int_equal(weir_timer_stop(meddler->victim), 0);
    if (++meddler->fired < 3)
        assert_int_equal(weir_timer_restart(timer, 10), 0);
}

TEST(timer, may_start_itself_and_stop_another_that_is_due_too)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct bell bell = bell_open(&letters, 'a');
    struct meddler meddler = {.victim = &bell.timer};

    assert_int_equal(weir_timer_start(stepper.executor, &meddler.timer, 10, meddle), 0);
    start(&stepper, &bell, 10);
    assert_int_equal(stepper_advance(&stepper, 10), 1);
    assert_int_equal(stepper_advance(&stepper, 10), 1);
    assert_int_equal(stepper_advance(&stepper, 10), 1);
    assert_int_equal(meddler.fired, 3);
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
    struct bell bell = bell_open(&letters, 'a');
    size_t allocations = test_memory_allocations();

    for (int64_t i = 0; i < 20; i++) {
        start(&stepper, &bell, i);
        assert_int_equal(weir_timer_restart(&bell.timer, 2 * i), 0);
        stepper_advance(&stepper, i);
        assert_int_equal(weir_timer_stop(&bell.timer), 0);
    }
    assert_int_equal(test_memory_allocations(), allocations);
    stepper_close(&stepper);
}

TEST(timer, that_overflows_never_fires)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct bell never = bell_open(&letters, 'a'), almost = bell_open(&letters, 'b');

    start(&stepper, &never, WEIR_NEVER);
    start(&stepper, &almost, WEIR_NEVER - 1);
    assert_int_equal(stepper_advance(&stepper, WEIR_NEVER / 2), 0);
    assert_true(weir_timer_is_running(&never.timer));
    assert_true(weir_timer_is_running(&almost.timer));
    stepper_close(&stepper);
}

struct stranger {
    struct stepper *stepper;
    struct bell *bell;
    int start_err;
    int restart_err;
    int stop_err;
};

static void use_from_elsewhere(void *arg)
{
    struct stranger *stranger = arg;

    stranger->start_err =
        weir_timer_start(stranger->stepper->executor, &stranger->bell->timer, 1, ring);
    stranger->restart_err = weir_timer_restart(&stranger->bell->timer, 1);
    stranger->stop_err = weir_timer_stop(&stranger->bell->timer);
}

TEST(timer, is_for_its_executors_thread_only)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct bell bell = bell_open(&letters, 'a');
    struct stranger stranger = {.stepper = &stepper, .bell = &bell};

    start(&stepper, &bell, 1000);
    run_on_other_thread(use_from_elsewhere, &stranger);
    assert_int_equal(stranger.start_err, WEIR_EWRONGTHREAD);
    assert_int_equal(stranger.restart_err, WEIR_EWRONGTHREAD);
    assert_int_equal(stranger.stop_err, WEIR_EWRONGTHREAD);
    assert_int_equal(stepper_advance(&stepper, 999), 0);
    assert_int_equal(stepper_advance(&stepper, 1), 1);
    stepper_close(&stepper);
}

TEST(timer, runs_on_one_executor_at_a_time)
{
    struct stepper first = stepper_open(), second = stepper_open();
    struct call_order letters = {0};
    struct bell bell = bell_open(&letters, 'a');

    start(&first, &bell, 10);
    assert_int_equal(weir_timer_start(second.executor, &bell.timer, 1, ring), -EBUSY);
    assert_int_equal(stepper_advance(&first, 10), 1);
    start(&second, &bell, 10);
    assert_int_equal(stepper_advance(&first, 10), 0);
    assert_int_equal(stepper_advance(&second, 10), 1);
    stepper_close(&first);
    stepper_close(&second);
}

TEST(timer, refuses_bad_arguments)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct bell bell = bell_open(&letters, 'a');

    assert_int_equal(weir_timer_start(NULL, &bell.timer, 1, ring), -EINVAL);
    assert_int_equal(weir_timer_start(stepper.executor, NULL, 1, ring), -EINVAL);
    assert_int_equal(weir_timer_start(stepper.executor, &bell.timer, 1, NULL), -EINVAL);
    assert_int_equal(weir_timer_restart(NULL, 1), -EINVAL);
    assert_int_equal(weir_timer_restart(&bell.timer, 1), -EINVAL); /* it was never started */
    assert_int_equal(weir_timer_start(weir_executor_immediate(), &bell.timer, 1, ring), -ENOTSUP);
    assert_false(weir_timer_is_running(&bell.timer));
    assert_int_equal(stepper_advance(&stepper, weir_seconds(1)), 0);
    stepper_close(&stepper);
}

TEST(timer, is_stopped_when_its_executor_shuts_down)
{
    struct stepper stepper = stepper_open();
    struct call_order letters = {0};
    struct bell due = bell_open(&letters, 'a'), later = bell_open(&letters, 'b');

    weir_executor_retain(stepper.executor);
    start(&stepper, &later, weir_seconds(1));
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, weir_seconds(1)), 0);
    stepper_run(&stepper);
    assert_false(weir_timer_is_running(&later.timer));
    assert_int_equal(weir_executor_state(stepper.executor), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_timer_start(stepper.executor, &due.timer, 0, ring), WEIR_EREJECTED);
    assert_int_equal(weir_timer_restart(&later.timer, 0), WEIR_EREJECTED);
    assert_false(weir_timer_is_running(&due.timer));
    assert_string_equal(letters.text, "");
    weir_executor_release(stepper.executor);
    stepper_close(&stepper);
}

/* A timer on a real thread and the real clock. */
struct punctual {
    weir_timer timer;
    weir_executor *executor;
    int64_t deadline_ns;
    int64_t fired_ns;
    weir_executor *current;
    struct call_counter fired;
};

static void on_time(weir_timer *timer)
{
    struct punctual *punctual = WEIR_CONTAINER_OF(timer, struct punctual, timer);

    punctual->fired_ns = weir__monotonic_now();
    punctual->current = weir_executor_current();
    call_counter_add(&punctual->fired);
}

static void start_punctual(void *arg)
{
    struct punctual *punctual = arg;

    punctual->deadline_ns = weir__monotonic_now() + weir_ms(3);
    (void)weir_timer_start(punctual->executor, &punctual->timer, weir_ms(3), on_time);
}

TEST(timer, fires_on_its_executors_thread_and_never_early)
{
    struct single_executor single = single_executor_open(NULL);
    struct punctual punctual = {.executor = single.executor};

    for (uint32_t i = 1; i <= 10; i++) {
        run_on_executor(single.executor, start_punctual, &punctual);
        assert_true(call_counter_await(&punctual.fired, i));
        assert_true(punctual.fired_ns >= punctual.deadline_ns);
        assert_ptr_equal(punctual.current, single.executor);
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
    struct bell bells[5];
    int64_t started_ns;
    int64_t fired_ns;
    int errs;
};

static void ring_batch(weir_timer *timer)
{
    struct bell *bell = WEIR_CONTAINER_OF(timer, struct bell, timer);
    struct batch *batch = WEIR_CONTAINER_OF(bell->letters, struct batch, letters);

    batch->fired_ns = weir__monotonic_now();
    ring(timer);
}

static void batch_start(struct batch *batch, int i, int64_t delay_ns)
{
    batch->errs += weir_timer_start(batch->executor, &batch->bells[i].timer, delay_ns, ring_batch);
    batch->errs += !weir_timer_is_running(&batch->bells[i].timer);
}

static void start_batch(void *arg)
{
    struct batch *batch = arg;

    for (int i = 0; i < 5; i++)
        batch->bells[i] = bell_open(&batch->letters, (char)('a' + i));
    batch->started_ns = weir__monotonic_now();
    batch_start(batch, 4, LONG_NS + weir_ms(1));
    batch_start(batch, 3, LONG_NS);
    batch_start(batch, 2, LONG_NS);
    batch_start(batch, 1, 2 * LONG_NS);
    batch_start(batch, 0, LONG_NS);
    batch->errs += weir_timer_restart(&batch->bells[3].timer, LONG_NS); /* to the end of its kind */
    batch->errs += weir_timer_stop(&batch->bells[1].timer);
    batch->errs += weir_timer_is_running(&batch->bells[1].timer);
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
        batch->bells[i] = bell_open(&batch->letters, (char)('a' + i));
    batch_start(batch, 0, weir_seconds(3600));
    batch_start(batch, 0, weir_us(1));
    batch_start(batch, 1, weir_us(1));
    batch_start(batch, 1, weir_seconds(3600));
    batch_start(batch, 2, weir_us(2));
}

static void look_at_batch(void *arg)
{
    struct batch *batch = arg;

    batch->errs += !weir_timer_is_running(&batch->bells[1].timer);
    batch->errs += weir_timer_stop(&batch->bells[1].timer);
    batch->errs += weir_timer_is_running(&batch->bells[1].timer);
}

TEST(timer, may_be_restarted_to_run_for_long_or_short_in_the_same_task)
{
    struct single_executor single = single_executor_open(NULL);
    struct batch batch = {.executor = single.executor};

    run_on_executor(single.executor, change_batch, &batch);
    assert_true(call_order_await(&batch.letters, 2));
    run_on_executor(single.executor, look_at_batch, &batch);
    assert_int_equal(batch.errs, 0);
    assert_string_equal(batch.letters.text, "ac");
    single_executor_close(&single);
}

static void start_and_shut_down(void *arg)
{
    struct batch *batch = arg;

    batch->bells[0] = bell_open(&batch->letters, 'a');
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
    assert_false(weir_timer_is_running(&batch.bells[0].timer));
    assert_string_equal(batch.letters.text, "");
}
