/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submitting, the turn, and how an executor sleeps and is woken. Its states are in test_life.c.
 */
#include <errno.h>
#include <stdlib.h>

#include <weir/error.h>
#include <weir/schedule.h>

#include "executor/executor.h"
#include "support/executor/gate.h"
#include "support/executor/letters.h"
#include "support/executor/solo.h"
#include "support/memory.h"
#include "support/test.h"

#define BATCH 64 /* tasks between two looks at the clock */

static int execute_letter(weir_executor *executor, struct letters *letters, char letter)
{
    return weir_execute(executor, letters_task, letters_arg(letters, letter));
}

/* Keeps the executor's thread at the gate. */
static void occupy(struct solo *solo, struct gate *gate)
{
    assert_int_equal(weir_execute(solo->executor, gate_task, gate), 0);
    assert_true(gate_await_arrivals(gate, 1));
}

/* ---- submitting ---- */

struct whereabouts {
    weir_executor *executor;
    weir_executor *current;
    bool in_executor;
    struct tally told;
};

static void look_around(void *arg, int status)
{
    struct whereabouts *whereabouts = arg;

    whereabouts->current = weir_executor_current();
    whereabouts->in_executor = weir_in_executor(whereabouts->executor);
    tally_task(&whereabouts->told, status);
}

TEST(executor, runs_a_task_on_its_own_thread)
{
    struct solo solo = solo_open(NULL);
    struct whereabouts whereabouts = {.executor = solo.executor};

    assert_null(weir_executor_current());
    assert_false(weir_in_executor(solo.executor));
    assert_int_equal(weir_execute(solo.executor, look_around, &whereabouts), 0);
    assert_true(tally_await(&whereabouts.told, 1));
    assert_int_equal(whereabouts.told.run, 1);
    assert_ptr_equal(whereabouts.current, solo.executor);
    assert_true(whereabouts.in_executor);
    solo_close(&solo);
}

TEST(executor, refuses_a_task_without_a_function_or_an_executor_and_changes_nothing)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    weir_task task;

    weir_task_init(&task, NULL, &tally);
    assert_int_equal(weir_execute(solo.executor, NULL, &tally), -EINVAL);
    assert_int_equal(weir_execute(NULL, tally_task, &tally), -EINVAL);
    assert_int_equal(weir_execute_lazy(solo.executor, NULL, &tally), -EINVAL);
    assert_int_equal(weir_execute_task(solo.executor, NULL), -EINVAL);
    assert_int_equal(weir_execute_task(solo.executor, &task), -EINVAL);
    assert_int_equal(weir_execute_task_lazy(solo.executor, &task), -EINVAL);
    assert_int_equal(weir_execute_after_turn(solo.executor, NULL, &tally), -EINVAL);
    assert_int_equal(weir_execute_after_turn(NULL, tally_task, &tally), -EINVAL);
    assert_int_equal(weir_execute_after_turn(weir_executor_immediate(), tally_task, &tally),
                     -ENOTSUP);
    assert_int_equal(weir_executor_state(solo.executor), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_executor_pending(solo.executor), 0);
    solo_close(&solo);
    assert_int_equal(tally.calls, 0);
}

struct again {
    weir_task task;
    weir_executor *executor;
    int left;
    struct tally runs;
};

static void submit_again(void *arg, int status)
{
    struct again *again = arg;

    if (status == 0 && --again->left > 0)
        (void)weir_execute_task(again->executor, &again->task);
    tally_task(&again->runs, status);
}

TEST(executor, takes_a_task_of_the_users_memory_again_from_its_own_function)
{
    struct solo solo = solo_open(NULL);
    struct again again = {.executor = solo.executor, .left = 3};
    size_t allocations;

    assert_int_equal(weir_execute(solo.executor, tally_task, &again.runs), 0);
    assert_true(tally_await(&again.runs, 1));
    allocations = test_memory_allocations();
    weir_task_init(&again.task, submit_again, &again);
    assert_int_equal(weir_execute_task(solo.executor, &again.task), 0);
    assert_true(tally_await(&again.runs, 4));
    assert_int_equal(test_memory_allocations(), allocations);
    solo_close(&solo);
    assert_int_equal(again.runs.run, 4);
}

struct own_end {
    weir_task task;
    struct tally *runs;
};

static void free_itself(void *arg, int status)
{
    struct own_end *own_end = arg;
    struct tally *runs = own_end->runs;

    free(own_end);
    tally_task(runs, status);
}

TEST(executor, does_not_touch_a_task_whose_function_was_called)
{
    struct solo solo = solo_open(NULL);
    struct tally runs = {0};

    for (int i = 0; i < 100; i++) {
        struct own_end *own_end = malloc(sizeof(*own_end));

        assert_non_null(own_end);
        own_end->runs = &runs;
        weir_task_init(&own_end->task, free_itself, own_end);
        assert_int_equal(weir_execute_task(solo.executor, &own_end->task), 0);
    }
    solo_close(&solo);
    assert_int_equal(runs.run, 100);
}

/* ---- order ---- */

#define SUBMITTERS 4
#define TASKS_EACH 5000

struct numbered {
    struct submitter *submitter;
    int number;
};

struct submitter {
    weir__thread thread;
    weir_executor *executor;
    struct numbered tasks[TASKS_EACH];
    int next;     /* the executor's: the number that is to come */
    int disorder; /* the executor's */
    _Atomic int refused;
};

static void check_number(void *arg, int status)
{
    struct numbered *numbered = arg;
    struct submitter *submitter = numbered->submitter;

    submitter->disorder += status != 0 || numbered->number != submitter->next;
    submitter->next++;
}

/* Every way of submitting keeps the same order. */
static int submit_numbered(weir_executor *executor, struct numbered *numbered)
{
    return numbered->number % 3 == 0 ? weir_execute_lazy(executor, check_number, numbered)
                                     : weir_execute(executor, check_number, numbered);
}

static void submit_in_order(void *arg)
{
    struct submitter *submitter = arg;

    for (int i = 0; i < TASKS_EACH; i++) {
        submitter->tasks[i] = (struct numbered){submitter, i};
        if (submit_numbered(submitter->executor, &submitter->tasks[i]) < 0)
            submitter->refused++;
    }
}

TEST(executor, runs_the_tasks_of_each_thread_in_the_order_submitted)
{
    static struct submitter submitters[SUBMITTERS];
    struct solo solo = solo_open(NULL);

    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i].executor = solo.executor;
        assert_int_equal(
            weir__thread_start(&submitters[i].thread, "submitter", submit_in_order, &submitters[i]),
            0);
    }
    for (int i = 0; i < SUBMITTERS; i++)
        weir__thread_join(&submitters[i].thread);
    solo_close(&solo);
    for (int i = 0; i < SUBMITTERS; i++) {
        assert_int_equal(submitters[i].refused, 0);
        assert_int_equal(submitters[i].next, TASKS_EACH);
        assert_int_equal(submitters[i].disorder, 0);
    }
}

/* Submits b from the executor's thread, then d, each time after the test has done its part. */
struct dialogue {
    weir_executor *executor;
    struct letters letters;
    struct gate first, second;
    int err;
};

static void speak_twice(void *arg, int status)
{
    struct dialogue *dialogue = arg;

    gate_task(&dialogue->first, status);
    dialogue->err |= execute_letter(dialogue->executor, &dialogue->letters, 'b');
    gate_task(&dialogue->second, status);
    dialogue->err |= execute_letter(dialogue->executor, &dialogue->letters, 'd');
}

TEST(executor, lets_no_submission_of_its_own_thread_overtake_what_is_queued)
{
    struct solo solo = solo_open(NULL);
    struct dialogue dialogue = {.executor = solo.executor};

    assert_int_equal(weir_execute(solo.executor, speak_twice, &dialogue), 0);
    assert_true(gate_await_arrivals(&dialogue.first, 1));
    assert_int_equal(execute_letter(solo.executor, &dialogue.letters, 'a'), 0);
    gate_open(&dialogue.first);
    assert_true(gate_await_arrivals(&dialogue.second, 1));
    assert_int_equal(execute_letter(solo.executor, &dialogue.letters, 'c'), 0);
    gate_open(&dialogue.second);
    assert_true(letters_await(&dialogue.letters, 4));
    assert_int_equal(dialogue.err, 0);
    assert_string_equal(dialogue.letters.text, "abcd");
    solo_close(&solo);
}

/* ---- lazy tasks ---- */

/* D 7 */
TEST(executor, runs_lazy_tasks_when_something_else_wakes_it_and_before_that)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};
    weir_task task;

    assert_int_equal(execute_letter(solo.executor, &letters, 'a'), 0);
    assert_true(letters_await(&letters, 1));
    assert_true(solo_await_sleep(&solo, WEIR_NEVER));

    weir_task_init(&task, letters_task, letters_arg(&letters, 'c'));
    assert_int_equal(weir_execute_lazy(solo.executor, letters_task, letters_arg(&letters, 'b')), 0);
    assert_int_equal(weir_execute_task_lazy(solo.executor, &task), 0);
    assert_true(solo_await_sleep(&solo, WEIR_NEVER)); /* still */
    assert_string_equal(letters.text, "a");
    assert_int_equal(weir_executor_pending(solo.executor), 2);

    assert_int_equal(execute_letter(solo.executor, &letters, 'd'), 0);
    assert_true(letters_await(&letters, 4));
    assert_string_equal(letters.text, "abcd");
    solo_close(&solo);
}

TEST(executor, started_by_a_lazy_task_runs_it)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};

    assert_int_equal(weir_execute_lazy(solo.executor, letters_task, letters_arg(&letters, 'a')), 0);
    assert_true(letters_await(&letters, 1));
    solo_close(&solo);
}

/* ---- tail tasks ---- */

/* Runs on the executor's thread: two tail tasks among two tasks. */
static void submit_both_kinds(void *arg, int status)
{
    struct dialogue *dialogue = arg;
    weir_executor *executor = dialogue->executor;
    struct letters *letters = &dialogue->letters;

    (void)status;
    dialogue->err |= weir_execute_after_turn(executor, letters_task, letters_arg(letters, 'x'));
    dialogue->err |= execute_letter(executor, letters, 'a');
    dialogue->err |= weir_execute_after_turn(executor, letters_task, letters_arg(letters, 'y'));
    dialogue->err |= execute_letter(executor, letters, 'b');
}

/* D 21 */
TEST(executor, runs_tail_tasks_once_after_all_tasks_of_the_turn)
{
    struct solo solo = solo_open(NULL);
    struct dialogue dialogue = {.executor = solo.executor};

    assert_int_equal(weir_execute(solo.executor, submit_both_kinds, &dialogue), 0);
    assert_true(letters_await(&dialogue.letters, 4));
    assert_int_equal(execute_letter(solo.executor, &dialogue.letters, 'c'), 0);
    assert_true(letters_await(&dialogue.letters, 5));
    assert_int_equal(dialogue.err, 0);
    assert_string_equal(dialogue.letters.text, "abxyc");
    solo_close(&solo);
}

/* D 21 */
TEST(executor, runs_the_tail_task_of_another_thread_after_the_tasks_queued_behind_it)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};
    struct gate gate = {0};

    occupy(&solo, &gate);
    assert_int_equal(
        weir_execute_after_turn(solo.executor, letters_task, letters_arg(&letters, 'x')), 0);
    assert_int_equal(execute_letter(solo.executor, &letters, 'a'), 0);
    assert_int_equal(execute_letter(solo.executor, &letters, 'b'), 0);
    gate_open(&gate);
    assert_true(letters_await(&letters, 3));
    assert_string_equal(letters.text, "abx");
    solo_close(&solo);
    assert_string_equal(letters.text, "abx");
}

TEST(executor, is_woken_by_a_tail_task)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};

    assert_int_equal(execute_letter(solo.executor, &letters, 'a'), 0);
    assert_true(letters_await(&letters, 1));
    assert_true(solo_await_sleep(&solo, WEIR_NEVER));
    assert_int_equal(
        weir_execute_after_turn(solo.executor, letters_task, letters_arg(&letters, 'b')), 0);
    assert_true(letters_await(&letters, 2));
    solo_close(&solo);
}

/* Which turn it was, seen from within. */
struct turns {
    weir_executor *executor;
    uint64_t first, second;
    struct tally told;
    int err;
};

static uint64_t turns_so_far(const weir_executor *executor)
{
    weir_executor_stats stats;

    weir_executor_read_stats(executor, &stats);
    return stats.turns;
}

static void note_second_turn(void *arg, int status)
{
    struct turns *turns = arg;

    turns->second = turns_so_far(turns->executor);
    tally_task(&turns->told, status);
}

static void note_first_turn(void *arg, int status)
{
    struct turns *turns = arg;

    turns->first = turns_so_far(turns->executor);
    turns->err = weir_execute_after_turn(turns->executor, note_second_turn, turns);
    tally_task(&turns->told, status);
}

TEST(executor, runs_the_tail_task_of_a_tail_task_in_the_next_turn)
{
    struct solo solo = solo_open(NULL);
    struct turns turns = {.executor = solo.executor};

    assert_int_equal(weir_execute_after_turn(solo.executor, note_first_turn, &turns), 0);
    assert_true(tally_await(&turns.told, 2));
    assert_int_equal(turns.err, 0);
    assert_int_equal(turns.second, turns.first + 1);
    solo_close(&solo);
}

TEST(executor, counts_a_tail_task_of_whatever_thread_as_one_task)
{
    struct solo solo = solo_open(NULL);
    struct dialogue dialogue = {.executor = solo.executor};
    struct gate gate = {0};

    occupy(&solo, &gate);
    assert_int_equal(
        weir_execute_after_turn(solo.executor, letters_task, letters_arg(&dialogue.letters, 'z')),
        0);
    assert_int_equal(weir_execute(solo.executor, submit_both_kinds, &dialogue), 0);
    assert_int_equal(weir_executor_pending(solo.executor), 2);
    gate_open(&gate);
    assert_true(letters_await(&dialogue.letters, 5));
    solo_end(&solo);
    assert_int_equal(solo_stats(&solo).tasks_run, 7);
    solo_close(&solo);
}

/* ---- the length of a turn ---- */

/* Tasks that take a millisecond each, by a clock of the test's. */
struct work {
    weir_manual_clock *clock;
    weir_executor *executor;
    int done;
    int done_before_tail; /* the end of the turn */
    int left;
    struct tally ended;
};

static void work_a_millisecond(void *arg, int status)
{
    struct work *work = arg;

    (void)status;
    (void)weir_manual_clock_advance(work->clock, weir_ms(1));
    if (++work->done == work->left)
        tally_add(&work->ended);
}

static void note_end_of_turn(void *arg, int status)
{
    struct work *work = arg;

    work->done_before_tail = work->done;
    tally_task(&work->ended, status);
}

/* The first task of the turn: it is counted in the batch. */
static void submit_work(void *arg, int status)
{
    struct work *work = arg;

    (void)status;
    (void)weir_execute_after_turn(work->executor, note_end_of_turn, work);
    for (int i = 0; i < work->left; i++)
        (void)weir_execute(work->executor, work_a_millisecond, work);
}

static int tasks_of_a_turn(int64_t task_cap_ns)
{
    struct work work = {.left = 1000};
    struct solo solo;

    assert_int_equal(weir_manual_clock_create(1, &work.clock), 0);
    solo = solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(work.clock),
                                        .task_cap_ns = task_cap_ns));
    work.executor = solo.executor;
    assert_int_equal(weir_execute(solo.executor, submit_work, &work), 0);
    assert_true(tally_await(&work.ended, 2));
    assert_int_equal(work.done, 1000);
    solo_close(&solo);
    weir_manual_clock_release(work.clock);
    return work.done_before_tail;
}

/* Each batch has a place or two for the task that submitted the work, and for the probe. */
static void assert_batches(int tasks, int batches)
{
    assert_in_range(tasks, batches * (BATCH - 2), batches * BATCH);
}

TEST(executor, looks_at_the_clock_every_64_tasks_and_ends_the_turn_when_its_time_is_up)
{
    assert_batches(tasks_of_a_turn(0), 1); /* the default is 10 ms */
    assert_batches(tasks_of_a_turn(weir_ms(1)), 1);
    assert_batches(tasks_of_a_turn(weir_ms(70)), 2);
    assert_batches(tasks_of_a_turn(weir_ms(140)), 3);
}

TEST(executor, without_a_cap_ends_the_turn_when_nothing_is_left)
{
    assert_int_equal(tasks_of_a_turn(WEIR_OFF), 1000);
}

struct treadmill {
    weir_executor *executor;
    _Atomic bool stop;
    struct tally stopped;
    uint64_t rounds;
};

static void keep_going(void *arg, int status)
{
    struct treadmill *treadmill = arg;

    treadmill->rounds++;
    if (status < 0 || atomic_load(&treadmill->stop) ||
        weir_execute(treadmill->executor, keep_going, treadmill) < 0)
        tally_task(&treadmill->stopped, status);
}

static void stop_treadmill(void *arg, int status)
{
    struct treadmill *treadmill = arg;

    (void)status;
    atomic_store(&treadmill->stop, true);
}

/* D 9 */
TEST(executor, fires_a_timer_although_the_queue_is_never_empty)
{
    const int64_t caps[] = {0, WEIR_OFF};

    for (int i = 0; i < 2; i++) {
        weir_manual_clock *clock;
        struct treadmill treadmill = {0};
        struct solo solo;

        assert_int_equal(weir_manual_clock_create(1, &clock), 0);
        solo = solo_open(
            WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock), .task_cap_ns = caps[i]));
        treadmill.executor = solo.executor;
        assert_int_equal(weir_execute(solo.executor, keep_going, &treadmill), 0);
        assert_int_equal(weir_schedule(solo.executor, weir_ms(1), NULL, stop_treadmill, &treadmill),
                         0);
        assert_int_equal(weir_manual_clock_advance(clock, weir_ms(1)), 0);
        assert_true(tally_await(&treadmill.stopped, 1));
        solo_close(&solo);
        weir_manual_clock_release(clock);
    }
}

TEST(executor, runs_due_timers_before_the_tasks_of_a_turn)
{
    struct letters letters = {0};
    weir_manual_clock *clock;
    struct solo solo;

    assert_int_equal(weir_manual_clock_create(1, &clock), 0);
    solo = solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock)));
    assert_int_equal(
        weir_schedule(solo.executor, 10, NULL, letters_task, letters_arg(&letters, 'b')), 0);
    assert_int_equal(
        weir_schedule(solo.executor, 9, NULL, letters_task, letters_arg(&letters, 'a')), 0);
    assert_true(solo_await_sleep(&solo, 10));
    assert_int_equal(weir_execute_lazy(solo.executor, letters_task, letters_arg(&letters, 'c')), 0);
    assert_int_equal(weir_manual_clock_set(clock, 11), 0);
    assert_true(letters_await(&letters, 3));
    assert_string_equal(letters.text, "abc");
    solo_close(&solo);
    weir_manual_clock_release(clock);
}

/* ---- the bound of the queue ---- */

/* How many of `tries` tasks an executor takes that is at the gate. */
static int count_accepted(struct solo *solo, struct tally *tally, int tries)
{
    int accepted = 0, err;

    for (int i = 0; i < tries; i++) {
        err = i % 2 == 0 ? weir_execute(solo->executor, tally_task, tally)
                         : weir_execute_lazy(solo->executor, tally_task, tally);
        if (err == 0)
            accepted++;
        else
            assert_int_equal(err, WEIR_EFULL);
    }
    return accepted;
}

static void check_bound(int64_t max_pending, int expected)
{
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.max_pending = max_pending));
    struct tally tally = {0};

    for (int round = 0; round < 2; round++) {
        struct gate gate = {0};

        occupy(&solo, &gate);
        assert_int_equal(count_accepted(&solo, &tally, expected + 10), expected);
        assert_int_equal(weir_executor_pending(solo.executor), expected);
        gate_open(&gate);
        assert_true(tally_await(&tally, (uint32_t)(expected * (round + 1))));
    }
    solo_close(&solo);
    assert_int_equal(tally.run, 2 * expected);
}

TEST(executor, with_a_bound_takes_exactly_as_many_tasks)
{
    check_bound(17, 17);
    check_bound(100, 100);
}

TEST(executor, raises_a_bound_to_16_and_no_further)
{
    check_bound(1, 16);
    check_bound(15, 16);
    check_bound(16, 16);
}

/* Fills the queue from the executor's own thread, with tasks and with tail tasks. */
struct filler {
    weir_executor *executor;
    struct tally tally;
    int accepted;
    int tail_accepted;
    struct gate gate;
};

static void fill(void *arg, int status)
{
    struct filler *filler = arg;

    for (int i = 0; i < 30; i++)
        filler->accepted += weir_execute(filler->executor, tally_task, &filler->tally) == 0;
    filler->tail_accepted =
        weir_execute_after_turn(filler->executor, tally_task, &filler->tally) == 0;
    gate_task(&filler->gate, status);
}

static void fill_tail(void *arg, int status)
{
    struct filler *filler = arg;

    for (int i = 0; i < 30; i++)
        filler->tail_accepted +=
            weir_execute_after_turn(filler->executor, tally_task, &filler->tally) == 0;
    gate_task(&filler->gate, status);
}

TEST(executor, bounds_the_submissions_of_its_own_thread_too)
{
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.max_pending = 20));
    struct filler filler = {.executor = solo.executor};

    assert_int_equal(weir_execute(solo.executor, fill, &filler), 0);
    assert_true(gate_await_arrivals(&filler.gate, 1));
    assert_int_equal(filler.accepted, 20);
    assert_int_equal(filler.tail_accepted, 0);
    assert_int_equal(weir_execute(solo.executor, tally_task, &filler.tally), WEIR_EFULL);
    gate_open(&filler.gate);
    assert_true(tally_await(&filler.tally, 20));
    solo_close(&solo);
}

TEST(executor, bounds_tail_tasks_with_the_others)
{
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.max_pending = 20));
    struct filler filler = {.executor = solo.executor};

    assert_int_equal(weir_execute(solo.executor, fill_tail, &filler), 0);
    assert_true(gate_await_arrivals(&filler.gate, 1));
    assert_int_equal(filler.tail_accepted, 20);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &filler.tally), WEIR_EFULL);
    gate_open(&filler.gate);
    assert_true(tally_await(&filler.tally, 20));

    for (int i = 0; i < 16; i++) /* and there is room again */
        assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &filler.tally), 0);
    assert_true(tally_await(&filler.tally, 36));
    solo_close(&solo);
}

struct crowd {
    weir__thread thread;
    struct solo *solo;
    struct tally *tally;
    int accepted;
};

static void crowd_in(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < 500; i++)
        crowd->accepted += weir_execute(crowd->solo->executor, tally_task, crowd->tally) == 0;
}

TEST(executor, does_not_exceed_its_bound_when_several_threads_fill_it)
{
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.max_pending = 1000));
    struct crowd crowds[SUBMITTERS];
    struct tally tally = {0};
    struct gate gate = {0};
    int accepted = 0;

    occupy(&solo, &gate);
    for (int i = 0; i < SUBMITTERS; i++) {
        crowds[i] = (struct crowd){.solo = &solo, .tally = &tally};
        assert_int_equal(weir__thread_start(&crowds[i].thread, "crowd", crowd_in, &crowds[i]), 0);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        weir__thread_join(&crowds[i].thread);
        accepted += crowds[i].accepted;
    }
    assert_int_equal(accepted, 1000);
    gate_open(&gate);
    solo_close(&solo);
    assert_int_equal(tally.run, 1000);
}

/* ---- sleeping and waking ---- */

TEST(executor, is_woken_at_most_once_by_a_thousand_tasks)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    struct gate gate = {0};
    uint64_t made;

    occupy(&solo, &gate);
    made = solo_stats(&solo).wakeups_made;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
    assert_int_equal(solo_stats(&solo).wakeups_made, made);
    gate_open(&gate);
    assert_true(tally_await(&tally, 1000));
    assert_true(solo_await_sleep(&solo, WEIR_NEVER));

    assert_int_equal(solo_stats(&solo).wakeups_made, made);
    assert_int_equal(solo_stats(&solo).wakeups_saved, 1001 - made);
    solo_close(&solo);
}

TEST(executor, that_sleeps_is_woken_by_one_call)
{
    struct solo solo = solo_open(NULL);
    struct tally tally = {0};
    uint64_t made;

    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 1));
    made = solo_stats(&solo).wakeups_made;
    for (uint32_t i = 1; i <= 10; i++) {
        assert_true(solo_await_sleep(&solo, WEIR_NEVER));
        assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
        assert_int_equal(solo_stats(&solo).wakeups_made, made + i);
        assert_true(tally_await(&tally, i + 1));
    }
    solo_close(&solo);
}

TEST(executor, is_woken_by_an_earlier_timer_and_not_by_a_later_one)
{
    struct letters letters = {0};
    weir_manual_clock *clock;
    weir_promise *late;
    struct solo solo;
    uint64_t made;

    assert_int_equal(weir_manual_clock_create(0, &clock), 0);
    solo = solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock)));
    assert_int_equal(
        weir_schedule(solo.executor, weir_ms(20), NULL, letters_task, letters_arg(&letters, 'b')),
        0);
    assert_true(solo_await_sleep(&solo, weir_ms(20)));
    made = solo_stats(&solo).wakeups_made;

    assert_int_equal(
        weir_schedule(solo.executor, weir_ms(30), &late, letters_task, letters_arg(&letters, 'c')),
        0);
    assert_int_equal(
        weir_schedule(solo.executor, weir_ms(20), NULL, letters_task, letters_arg(&letters, 'd')),
        0);
    assert_int_equal(weir_promise_cancel(late), 0);
    assert_int_equal(solo_stats(&solo).wakeups_made, made);
    assert_true(solo_await_sleep(&solo, weir_ms(20))); /* still */

    assert_int_equal(
        weir_schedule(solo.executor, weir_ms(10), NULL, letters_task, letters_arg(&letters, 'a')),
        0);
    assert_int_equal(solo_stats(&solo).wakeups_made, made + 1);
    assert_true(solo_await_sleep(&solo, weir_ms(10)));
    assert_int_equal(weir_manual_clock_set(clock, weir_ms(40)), 0);
    assert_true(letters_await(&letters, 4));
    assert_string_equal(letters.text, "Cabd"); /* the cancelled one when it was found */
    weir_promise_release(late);
    solo_close(&solo);
    weir_manual_clock_release(clock);
}

/* Submits one task at a time and waits for it, so that the executor is about to sleep each time. */
struct caller {
    weir__thread thread;
    weir_executor *executor;
    int lost;
};

static void call_again_and_again(void *arg)
{
    struct caller *caller = arg;

    for (int i = 0; i < 2000 && caller->lost == 0; i++) {
        struct tally tally = {0};

        if (weir_execute(caller->executor, tally_task, &tally) < 0 || !tally_await(&tally, 1))
            caller->lost++;
    }
}

TEST(executor, loses_no_wake_up)
{
    struct solo solo = solo_open(NULL);
    struct caller callers[2];

    for (int i = 0; i < 2; i++) {
        callers[i] = (struct caller){.executor = solo.executor};
        assert_int_equal(
            weir__thread_start(&callers[i].thread, "caller", call_again_and_again, &callers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        weir__thread_join(&callers[i].thread);
        assert_int_equal(callers[i].lost, 0);
    }
    solo_close(&solo);
}

TEST(executor, sleeps_although_its_clock_is_at_its_end)
{
    weir_manual_clock *clock;
    struct tally due = {0}, never = {0};
    struct solo solo;

    assert_int_equal(weir_manual_clock_create(1, &clock), 0);
    solo = solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock)));
    assert_int_equal(weir_schedule(solo.executor, weir_ms(1), NULL, tally_task, &due), 0);
    assert_int_equal(weir_schedule(solo.executor, WEIR_NEVER, NULL, tally_task, &never), 0);
    assert_int_equal(weir_manual_clock_advance(clock, WEIR_NEVER), 0);
    assert_true(tally_await(&due, 1));
    assert_true(solo_await_sleep(&solo, WEIR_NEVER));
    assert_int_equal(never.calls, 0);
    solo_close(&solo);
    weir_manual_clock_release(clock);
}

static int64_t ahead(const weir_clock *clock)
{
    (void)clock;
    return weir__monotonic_now() + weir_seconds(1000);
}

static int64_t behind(const weir_clock *clock)
{
    (void)clock;
    return weir__monotonic_now() / 2;
}

/* The kernel knows one clock only; deadlines are of the executor's. */
static void check_sleep_by(int64_t (*now)(const weir_clock *clock))
{
    weir_clock clock = {.now = now};
    struct solo solo = solo_open(WEIR_GROUP_OPTIONS(.clock = &clock));
    weir_executor_stats stats;
    weir_promise *promise;
    struct tally tally = {0};

    assert_int_equal(weir_schedule(solo.executor, weir_ms(20), &promise, tally_task, &tally), 0);
    assert_int_equal(weir_promise_sync(promise, weir_seconds(10)), 0);
    stats = solo_stats(&solo);
    assert_true(stats.turns < 100);
    weir_promise_release(promise);
    solo_close(&solo);
}

TEST(executor, sleeps_by_whatever_clock_it_has)
{
    check_sleep_by(ahead);
    check_sleep_by(behind);
}

/* A clock that is moved while the thread goes to sleep: it sees that its time has come. */
TEST(executor, misses_no_move_of_a_manual_clock)
{
    weir_manual_clock *clock;
    struct solo solo;

    assert_int_equal(weir_manual_clock_create(1, &clock), 0);
    solo = solo_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock)));
    for (int i = 0; i < 2000; i++) {
        struct tally tally = {0};

        assert_int_equal(weir_schedule(solo.executor, 1, NULL, tally_task, &tally), 0);
        assert_int_equal(weir_manual_clock_advance(clock, 1), 0);
        assert_true(tally_await(&tally, 1));
    }
    solo_close(&solo);
    weir_manual_clock_release(clock);
}

/*
 * What happens between a thread's decision to sleep and its sleep. The only call that it makes
 * there is a look at its clock; so the clock is a trap that a tail task sets, and that springs when
 * the thread looks: another thread does something then, and finds it still awake.
 */
struct trap {
    weir_clock clock;
    struct solo solo;
    _Atomic int64_t now_ns;
    weir_clock_observer *observer;
    void (*spring)(void *trap); /* on another thread */
    _Atomic bool set;
    weir_timer timer;
    struct tally sprung;
};

static int64_t look_into_trap(const weir_clock *clock)
{
    struct trap *trap = container_of((uintptr_t)clock, struct trap, clock);
    int64_t now_ns = atomic_load(&trap->now_ns);
    weir__thread thread;

    if (atomic_load(&trap->set) && weir_in_executor(trap->solo.executor)) {
        atomic_store(&trap->set, false);
        if (weir__thread_start(&thread, "spring", trap->spring, trap) < 0)
            abort();
        weir__thread_join(&thread);
    }
    return now_ns;
}

static void fire_never(weir_timer *timer)
{
    (void)timer;
    abort();
}

/* The last task of a turn. A timer that waits for the time makes the thread look at its clock. */
static void set_trap(void *arg, int status)
{
    struct trap *trap = arg;

    (void)status;
    atomic_store(&trap->set, true);
    trap->timer.fn = fire_never;
    trap->timer.executor = trap->solo.executor;
    weir__timers_start_after(&trap->solo.executor->timers, &trap->timer.node, weir_seconds(1));
}

static void subscribe(weir_clock *clock, weir_clock_observer *observer)
{
    container_of(clock, struct trap, clock)->observer = observer;
}

static void unsubscribe(weir_clock *clock, weir_clock_observer *observer)
{
    (void)clock;
    (void)observer;
}

static void open_trap(struct trap *trap, void (*spring)(void *trap))
{
    *trap = (struct trap){
        .clock = {look_into_trap, subscribe, unsubscribe, true},
        .spring = spring,
        .now_ns = 1,
    };
    weir_timer_init(&trap->timer);
    trap->solo = solo_open(WEIR_GROUP_OPTIONS(.clock = &trap->clock));
}

static void submit_a_task(void *arg)
{
    struct trap *trap = arg;

    (void)weir_execute(trap->solo.executor, tally_task, &trap->sprung);
}

TEST(executor, that_is_about_to_sleep_sees_a_task)
{
    struct trap trap;

    open_trap(&trap, submit_a_task);
    assert_int_equal(weir_execute_after_turn(trap.solo.executor, set_trap, &trap), 0);
    assert_true(tally_await(&trap.sprung, 1));
    solo_close(&trap.solo);
}

static void shut_down(void *arg)
{
    struct trap *trap = arg;

    (void)weir_executor_shutdown(trap->solo.executor, 0, weir_seconds(1));
}

TEST(executor, that_is_about_to_sleep_sees_a_change_of_its_state)
{
    struct trap trap;

    open_trap(&trap, shut_down);
    assert_int_equal(weir_execute_after_turn(trap.solo.executor, set_trap, &trap), 0);
    assert_int_equal(weir_executor_await_termination(trap.solo.executor, weir_seconds(10)), 0);
    solo_close(&trap.solo);
}

static void move_clock(void *arg)
{
    struct trap *trap = arg;

    atomic_store(&trap->now_ns, weir_ms(2));
    trap->observer->moved(trap->observer);
}

TEST(executor, that_is_about_to_sleep_sees_a_move_of_its_clock)
{
    struct trap trap;

    open_trap(&trap, move_clock);
    assert_int_equal(weir_schedule(trap.solo.executor, weir_ms(1), NULL, tally_task, &trap.sprung),
                     0);
    assert_int_equal(weir_execute_after_turn(trap.solo.executor, set_trap, &trap), 0);
    assert_true(tally_await(&trap.sprung, 1));
    assert_int_equal(trap.sprung.run, 1);
    solo_close(&trap.solo);
}
