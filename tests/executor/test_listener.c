/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners of promises: where, when and in which order they are called.
 *
 * A stepper is owned by the test's thread, so the test completes promises on their executor.
 */
#include <errno.h>
#include <string.h>

#include <weir/manual.h>
#include <weir/promise.h>

#include "executor/executor.h"
#include "os/thread.h"
#include "support/executor/fake_loop.h"
#include "support/executor/gate.h"
#include "support/executor/log_capture.h"
#include "support/executor/promises.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/memory.h"
#include "support/test.h"

#define CHAIN_LENGTH 5000

TEST(listener, runs_in_order_inside_a_completion_on_the_executor)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise = new_promise(stepper.executor);
    struct call_order letters = {0};

    call_order_listen(promise, &letters, 'a');
    call_order_listen(promise, &letters, 'b');
    call_order_listen(promise, &letters, 'c');
    assert_string_equal(letters.text, "");
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_string_equal(letters.text, "abc");
    assert_int_equal(stepper_run(&stepper), 0);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

static void succeed_promise(void *arg)
{
    (void)weir_promise_succeed(arg, NULL);
}

TEST(listener, of_a_promise_that_completes_on_another_thread_runs_as_a_task)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise = new_promise(stepper.executor);
    struct call_order letters = {0};

    call_order_listen(promise, &letters, 'a');
    call_order_listen(promise, &letters, 'b');
    run_on_other_thread(succeed_promise, promise);
    assert_true(weir_promise_is_done(promise));
    assert_string_equal(letters.text, "");
    assert_int_equal(stepper_run(&stepper), 1);
    assert_string_equal(letters.text, "ab");
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(listener, runs_on_the_promises_executor)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *promise = new_promise(single.executor);
    struct completion_record record = {0};

    assert_int_equal(weir_promise_add_listener(promise, record_completion, &record), 0);
    assert_int_equal(weir_promise_fail(promise, -EIO, NULL), 0);
    assert_true(call_counter_await(&record.calls, 1));
    assert_ptr_equal(record.current, single.executor);
    assert_int_equal(record.result, -EIO);
    weir_promise_release(promise);
    single_executor_close(&single);
}

TEST(listener, that_comes_late_is_posted)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise = new_promise(stepper.executor);
    struct call_order letters = {0};

    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    call_order_listen(promise, &letters, 'a');
    call_order_listen(promise, &letters, 'b');
    assert_string_equal(letters.text, "");
    assert_int_equal(weir_execute(stepper.executor, call_order_task, call_order_arg(&letters, 'c')),
                     0);
    call_order_listen(promise, &letters, 'd');
    stepper_run(&stepper);
    assert_string_equal(letters.text, "abdc");
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(listener, of_a_promise_that_was_created_complete_is_posted)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise;
    struct call_order letters = {0};

    assert_int_equal(weir_promise_create_completed(stepper.executor, -EIO, NULL, &promise), 0);
    call_order_listen(promise, &letters, 'a');
    assert_string_equal(letters.text, "");
    stepper_run(&stepper);
    assert_string_equal(letters.text, "a");
    weir_promise_release(promise);
    stepper_close(&stepper);
}

struct nested_add {
    struct call_order *letters;
    weir_executor *executor;
};

static void add_and_execute(weir_promise *promise, void *user_data)
{
    struct nested_add *nested = user_data;

    call_order_write(nested->letters, 'c');
    call_order_listen(promise, nested->letters, 'd');
    assert_int_equal(
        weir_execute(nested->executor, call_order_task, call_order_arg(nested->letters, 't')), 0);
    call_order_listen(promise, nested->letters, 'e');
}

TEST(listener, that_a_listener_adds_runs_after_all_others_and_before_later_tasks)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise = new_promise(stepper.executor);
    struct call_order letters = {0};
    struct nested_add nested = {&letters, stepper.executor};

    call_order_listen(promise, &letters, 'a');
    assert_int_equal(weir_promise_add_listener(promise, add_and_execute, &nested), 0);
    call_order_listen(promise, &letters, 'b');
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_string_equal(letters.text, "acb");
    stepper_run(&stepper);
    assert_string_equal(letters.text, "acbdet");
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(listener, that_a_listener_adds_on_the_immediate_executor_runs_right_after_the_others)
{
    weir_promise *promise = new_promise(weir_executor_immediate());
    struct call_order letters = {0};
    struct nested_add nested = {&letters, weir_executor_immediate()};

    assert_int_equal(weir_promise_add_listener(promise, add_and_execute, &nested), 0);
    call_order_listen(promise, &letters, 'b');
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_string_equal(letters.text, "ctbde");
    call_order_listen(promise, &letters, 'f');
    assert_string_equal(letters.text, "ctbdef");
    weir_promise_release(promise);
}

TEST(listener, without_a_function_is_refused)
{
    weir_promise *promise = new_promise(NULL);

    assert_int_equal(weir_promise_add_listener(promise, NULL, NULL), -EINVAL);
    weir_promise_release(promise);
}

TEST(listener, without_a_promise_is_refused)
{
    struct completion_record record = {0};

    assert_int_equal(weir_promise_add_listener(NULL, record_completion, &record), -EINVAL);
    assert_int_equal(record.calls.calls, 0);
}

struct reusable {
    weir_listener listener;
    int calls;
};

static void listen_once_more(weir_promise *promise, void *user_data)
{
    struct reusable *reusable = user_data;

    if (++reusable->calls < 3)
        weir_promise_listen(promise, &reusable->listener);
}

TEST(listener, in_the_callers_memory_is_the_callers_again_when_it_is_called)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise = new_promise(stepper.executor);
    struct reusable reusable = {.listener = {.fn = listen_once_more, .user_data = &reusable}};
    size_t allocations = test_memory_allocations();

    weir_promise_listen(promise, &reusable.listener);
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_int_equal(reusable.calls, 1);
    stepper_run(&stepper);
    assert_int_equal(reusable.calls, 3);
    assert_int_equal(test_memory_allocations(), allocations);
    weir_promise_release(promise);
    stepper_close(&stepper);
}

TEST(listener, needs_no_memory_if_it_is_the_first)
{
    weir_promise *promise = new_promise(weir_executor_immediate());
    size_t allocations = test_memory_allocations();
    struct call_counter counter = {0};

    assert_int_equal(weir_promise_add_listener(promise, count_completion, &counter), 0);
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_int_equal(counter.calls, 1);
    assert_int_equal(test_memory_allocations(), allocations);
    weir_promise_release(promise);
}

static void release_it(weir_promise *promise, void *user_data)
{
    (void)user_data;
    weir_promise_release(promise);
}

TEST(listener, may_release_the_last_reference)
{
    weir_promise *promise = new_promise(weir_executor_immediate());
    struct call_order letters = {0};

    assert_int_equal(weir_promise_add_listener(promise, release_it, NULL), 0);
    call_order_listen(promise, &letters, 'a');
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_string_equal(letters.text, "a");

    promise = new_promise(weir_executor_immediate());
    assert_int_equal(weir_promise_add_listener(promise, release_it, NULL), 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
}

/*
 * The wakeup is the last access of a post. By then the notification may have run on the executor's
 * thread, its listener may have released the promise, and the executor may have ended.
 */
static _Atomic(weir_executor *) ends_at_wakeup;
static struct call_counter releases;

static void release_and_count(weir_promise *promise, void *user_data)
{
    weir_promise_release(promise);
    call_counter_add(user_data);
}

static void end_and_wake(weir_executor *executor)
{
    weir_executor *expected = executor;

    weir__plain_type.wake(executor);
    if (!atomic_compare_exchange_strong(&ends_at_wakeup, &expected, NULL))
        return;
    assert_true(call_counter_await(&releases, 1));
    assert_int_equal(weir_executor_shutdown(executor, 0, WEIR_NEVER), 0);
    assert_int_equal(weir_executor_await_termination(executor, TEST_TIMEOUT_NS), 0);
    weir__executor_join(executor);
    weir_executor_release(executor);
    weir__plain_type.wake(executor);
}

TEST(listener, that_comes_late_may_release_the_callers_reference)
{
    static weir__executor_type type;
    const weir__executor_options options = {
        .name = "late",
        .clock = weir_clock_monotonic(),
        .rejected = weir_reject,
        .task_cap_ns = WEIR_NEVER,
        .cpu = -1,
        .idle_ns = WEIR_NEVER,
    };
    struct single_executor single = {0};
    weir_promise *promise;

    memset(&releases, 0, sizeof(releases));
    type = weir__plain_type;
    type.wake = end_and_wake;
    assert_int_equal(weir__executor_create(&type, &options, &single.executor), 0);
    single_executor_run_one(&single);
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));
    assert_int_equal(weir_promise_create_completed(single.executor, 0, NULL, &promise), 0);
    atomic_store(&ends_at_wakeup, single.executor);
    assert_int_equal(weir_promise_add_listener(promise, release_and_count, &releases), 0);
    assert_null(atomic_load(&ends_at_wakeup));
}

TEST(listener, whose_executor_has_ended_runs_on_the_global_one)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *promise = new_promise(single.executor);
    struct completion_record early = {0}, late = {0};

    assert_int_equal(weir_promise_add_listener(promise, record_completion, &early), 0);
    single_executor_close(&single);
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_true(call_counter_await(&early.calls, 1));
    assert_ptr_equal(early.current, weir_executor_global());

    assert_int_equal(weir_promise_add_listener(promise, record_completion, &late), 0);
    assert_true(call_counter_await(&late.calls, 1));
    assert_ptr_equal(late.current, weir_executor_global());
    weir_promise_release(promise);
}

TEST(listener, runs_though_its_executor_cancels_what_it_has_queued)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise = new_promise(stepper.executor);
    struct call_order letters = {0};

    log_capture_start();
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    call_order_listen(promise, &letters, 'a');
    assert_int_equal(weir_execute(stepper.executor, call_order_task, call_order_arg(&letters, 'b')),
                     0);
    assert_int_equal(weir_executor_shutdown(stepper.executor, 0, 0), 0);
    (void)weir_manual_run_once(stepper.executor, 0, -1);
    assert_string_equal(letters.text, "aB");
    weir_promise_release(promise);
    stepper_close(&stepper);
}

static weir_executor *ended_executor(void)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor *executor = weir_executor_retain(single.executor);

    single_executor_close(&single);
    return executor;
}

TEST(listener, runs_on_the_completing_thread_if_no_executor_accepts_it)
{
    weir_executor *ended = ended_executor();
    weir_promise *promise = new_promise(ended);
    struct call_order letters = {0};

    log_capture_start();
    call_order_listen(promise, &letters, 'a');
    test_memory_fail_at(1); /* the global executor's thread cannot start */
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_true(test_memory_failed());
    assert_string_equal(letters.text, "a");
    assert_true(log_capture_count(WEIR_LOG_ERROR) > 0);
    weir_promise_release(promise);
    weir_executor_release(ended);
}

/* ---- nesting ---- */

/* Promises where the listener of each completes the next. */
struct chain {
    weir_promise *promises[CHAIN_LENGTH];
    unsigned length;
    unsigned done;
    unsigned depth;
    unsigned depth_max;
    struct call_counter end;
};

static void complete_next(weir_promise *promise, void *user_data)
{
    struct chain *chain = user_data;
    unsigned next = ++chain->done;

    (void)promise;
    if (++chain->depth > chain->depth_max)
        chain->depth_max = chain->depth;
    if (next < chain->length)
        (void)weir_promise_succeed(chain->promises[next], NULL);
    else
        call_counter_add(&chain->end);
    chain->depth--;
}

static void chain_open(struct chain *chain, weir_executor *executor, unsigned length)
{
    memset(chain, 0, sizeof(*chain));
    chain->length = length;
    for (unsigned i = 0; i < length; i++) {
        chain->promises[i] = new_promise(executor);
        assert_int_equal(weir_promise_add_listener(chain->promises[i], complete_next, chain), 0);
    }
}

static void chain_close(struct chain *chain)
{
    assert_int_equal(chain->done, chain->length);
    for (unsigned i = 0; i < chain->length; i++)
        weir_promise_release(chain->promises[i]);
}

static void start_chain(void *arg)
{
    struct chain *chain = arg;

    (void)weir_promise_succeed(chain->promises[0], NULL);
}

TEST(listener, nests_eight_deep_and_is_posted_beyond)
{
    static struct chain chain;
    struct stepper stepper = stepper_open();

    chain_open(&chain, stepper.executor, 20);
    start_chain(&chain);
    assert_int_equal(chain.done, 8);
    assert_int_equal(chain.depth_max, 8);
    assert_int_equal(stepper_run(&stepper), 2);
    assert_int_equal(chain.depth_max, 8);
    chain_close(&chain);
    stepper_close(&stepper);
}

TEST(listener, chains_do_not_grow_the_stack_of_a_loop)
{
    static struct chain chain;
    weir_executor *loop = fake_loop_open();

    chain_open(&chain, loop, CHAIN_LENGTH);
    run_on_executor(loop, start_chain, &chain);
    assert_true(call_counter_await(&chain.end, 1));
    assert_true(chain.depth_max <= 8);
    chain_close(&chain);
    fake_loop_close(loop);
}

TEST(listener, chains_that_start_on_another_thread_do_not_grow_the_stack_of_a_loop)
{
    static struct chain chain;
    weir_executor *loop = fake_loop_open();

    chain_open(&chain, loop, CHAIN_LENGTH);
    start_chain(&chain);
    assert_true(call_counter_await(&chain.end, 1));
    fake_loop_close(loop);
    assert_true(chain.depth_max <= 8);
    chain_close(&chain);
}

TEST(listener, chains_do_not_grow_the_stack_of_the_immediate_executor)
{
    static struct chain chain;

    chain_open(&chain, weir_executor_immediate(), CHAIN_LENGTH);
    start_chain(&chain);
    assert_int_equal(chain.end.calls, 1);
    assert_int_equal(chain.depth_max, 8);
    chain_close(&chain);
}

/* ---- races ---- */

#define ADDERS 3
#define ADDS 200

struct added {
    struct crowd *crowd;
    unsigned adder;
    unsigned number;
};

/* Threads that add listeners while another completes the promise. */
struct crowd {
    weir_promise *promise;
    _Atomic unsigned ready;
    _Atomic bool inside;
    _Atomic unsigned faults; /* out of order, or concurrent */
    unsigned heard[ADDERS];
    struct added added[ADDERS][ADDS];
    struct call_counter calls;
    _Atomic unsigned next_adder;
};

static void on_crowd_listener(weir_promise *promise, void *user_data)
{
    const struct added *added = user_data;
    struct crowd *crowd = added->crowd;

    if (atomic_exchange(&crowd->inside, true) || promise != crowd->promise ||
        crowd->heard[added->adder]++ != added->number)
        atomic_fetch_add(&crowd->faults, 1);
    atomic_store(&crowd->inside, false);
    call_counter_add(&crowd->calls);
}

static void collect_metrics(struct crowd *crowd)
{
    atomic_fetch_add(&crowd->ready, 1);
    while (atomic_load(&crowd->ready) < ADDERS + 1)
        weir__thread_yield();
}

static void add_to_crowd(void *arg)
{
    struct crowd *crowd = arg;
    unsigned adder = atomic_fetch_add(&crowd->next_adder, 1);

    collect_metrics(crowd);
    for (unsigned i = 0; i < ADDS; i++) {
        crowd->added[adder][i] = (struct added){crowd, adder, i};
        IGNORE_RESULT(
            weir_promise_add_listener(crowd->promise, on_crowd_listener, &crowd->added[adder][i]));
    }
}

static void complete_crowd(void *arg)
{
    struct crowd *crowd = arg;

    collect_metrics(crowd);
    for (unsigned i = 0; i < ADDS; i++)
        weir__cpu_relax();
    (void)weir_promise_succeed(crowd->promise, NULL);
}

static void race_listeners(weir_executor *executor, weir_executor *completer)
{
    static struct crowd crowd;
    weir__thread threads[ADDERS];

    memset(&crowd, 0, sizeof(crowd));
    crowd.promise = new_promise(executor);
    for (unsigned i = 0; i < ADDERS; i++)
        assert_int_equal(weir__thread_start("adder", add_to_crowd, &crowd, &threads[i]), 0);
    if (completer != NULL)
        run_on_executor(completer, complete_crowd, &crowd);
    else
        complete_crowd(&crowd);
    for (unsigned i = 0; i < ADDERS; i++)
        weir__thread_join(&threads[i]);
    assert_true(call_counter_await(&crowd.calls, ADDERS * ADDS));
    assert_int_equal(crowd.faults, 0);
    weir_promise_release(crowd.promise);
}

TEST(listener, runs_once_in_order_and_alone_when_many_threads_add)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor *ended = ended_executor();

    for (int i = 0; i < 20; i++) {
        race_listeners(single.executor, single.executor);
        race_listeners(single.executor, NULL);
        race_listeners(weir_executor_immediate(), NULL);
        race_listeners(ended, NULL);
    }
    weir_executor_release(ended);
    single_executor_close(&single);
}

static void wait_at_gate(weir_promise *promise, void *user_data)
{
    (void)promise;
    gate_task(user_data, 0);
}

TEST(listener, that_comes_late_runs_before_later_tasks_though_others_run_at_the_moment)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *promise = new_promise(single.executor);
    struct gate gate = {0};
    struct call_order letters = {0};

    assert_int_equal(weir_promise_add_listener(promise, wait_at_gate, &gate), 0);
    call_order_listen(promise, &letters, 'a');
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    assert_true(gate_await_arrivals(&gate, 1));
    call_order_listen(promise, &letters, 'b');
    assert_int_equal(weir_execute(single.executor, call_order_task, call_order_arg(&letters, 'c')),
                     0);
    call_order_listen(promise, &letters, 'd');
    gate_open(&gate);
    assert_true(call_order_await(&letters, 4));
    assert_string_equal(letters.text, "abdc");
    weir_promise_release(promise);
    single_executor_close(&single);
}
