/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mailboxes: order, exactly once, moves to another executor, ended executors.
 */
#include "executor/mailbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/executor/gate.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/executor/manual_fixture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/thread_factory.h"
#include "support/memory.h"
#include "support/test.h"

#define STEPS_MAX 4096
#define FEWEST_PENDING 16 /* the least that a group accepts */

enum { RED = 1 << 0, BLUE = 1 << 1, TAIL = 1 << 2 };

/* An owner that writes down what runs. */
struct owner {
    weir__mailbox box;
    weir_executor *_Atomic executor;
    atomic_int refs;
    char steps[STEPS_MAX];
    size_t count;
    int status;
    weir_executor *ran_on;
    void (*on_flags)(struct owner *owner, uint32_t flags);
};

struct letter {
    weir__mail mail;
    char name;
    struct owner *owner;
    void (*fn)(struct owner *owner);
};

static struct owner *owner_of(weir__mailbox *box)
{
    return WEIR_CONTAINER_OF(box, struct owner, box);
}

static void write_down(struct owner *owner, char step, int status)
{
    assert_true(owner->count < STEPS_MAX - 1);
    owner->steps[owner->count++] = step;
    owner->status = status;
    owner->ran_on = weir_executor_current();
}

static weir_executor *executor_of(const weir__mailbox *box)
{
    return owner_of((weir__mailbox *)(uintptr_t)box)->executor;
}

static void retain(weir__mailbox *box)
{
    atomic_fetch_add(&owner_of(box)->refs, 1);
}

static void release(weir__mailbox *box)
{
    assert_true(atomic_fetch_sub(&owner_of(box)->refs, 1) > 0);
}

static void run_flags(weir__mailbox *box, uint32_t flags, int status)
{
    struct owner *owner = owner_of(box);

    if (flags & RED)
        write_down(owner, 'R', status);
    if (flags & BLUE)
        write_down(owner, 'B', status);
    if (flags & TAIL)
        write_down(owner, 'T', status);
    if (owner->on_flags != NULL)
        owner->on_flags(owner, flags);
}

static const weir__mailbox_type insisting_type = {
    .name = "test",
    .executor = executor_of,
    .retain = retain,
    .release = release,
    .run = run_flags,
    .insists = true,
};

static const weir__mailbox_type type = {
    .name = "test",
    .executor = executor_of,
    .retain = retain,
    .release = release,
    .run = run_flags,
    .tail_flags = TAIL,
};

static void on_letter(weir__mailbox *box, weir__mail *mail, int status)
{
    struct letter *letter = WEIR_CONTAINER_OF(mail, struct letter, mail);

    write_down(owner_of(box), letter->name, status);
    if (letter->fn != NULL)
        letter->fn(owner_of(box));
}

static void open_owner(struct owner *owner, weir_executor *executor)
{
    memset(owner, 0, sizeof(*owner));
    owner->executor = executor;
    weir__mailbox_init(&owner->box, &type);
}

static void open_insisting_owner(struct owner *owner, weir_executor *executor)
{
    open_owner(owner, executor);
    weir__mailbox_init(&owner->box, &insisting_type);
}

static void close_owner(struct owner *owner)
{
    assert_true(weir__mailbox_is_empty(&owner->box));
    assert_int_equal(owner->refs, 0);
}

static void post(struct owner *owner, struct letter *letter, char name)
{
    *letter = (struct letter){.mail.fn = on_letter, .name = name};
    weir__mailbox_post(&owner->box, &letter->mail);
}

/* ---- one executor ---- */

TEST(mailbox, runs_mails_and_flags_in_order)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letters[4];

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    weir__mailbox_set(&owner.box, BLUE);
    post(&owner, &letters[0], 'a');
    post(&owner, &letters[1], 'b');
    weir__mailbox_set(&owner.box, BLUE);
    weir__mailbox_set(&owner.box, RED);
    weir__mailbox_set(&owner.box, BLUE);
    post(&owner, &letters[2], 'c');
    weir__mailbox_set(&owner.box, RED);
    assert_int_equal(owner.refs, 1);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "BabRBcR");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

TEST(mailbox, is_not_subject_to_the_bound_of_the_queue)
{
    struct single_executor single =
        single_executor_open(WEIR_GROUP_OPTIONS(.max_pending = FEWEST_PENDING));
    struct gate gate = {0};
    struct owner owners[2 * FEWEST_PENDING];

    gate_hold(&gate, single.executor);
    for (int i = 0; i < 2 * FEWEST_PENDING; i++) {
        open_owner(&owners[i], single.executor);
        weir__mailbox_set(&owners[i].box, RED);
    }
    gate_open(&gate);
    single_executor_end(&single);
    for (int i = 0; i < 2 * FEWEST_PENDING; i++) {
        assert_string_equal(owners[i].steps, "R");
        assert_int_equal(owners[i].status, 0);
        close_owner(&owners[i]);
    }
    single_executor_close(&single);
}

static void post_more(struct owner *owner)
{
    static struct letter more;

    post(owner, &more, 'm');
}

static void note(void *arg, int status)
{
    write_down(arg, '.', status);
}

/* A thread posts, then submits a task: the task comes after what was posted. */
TEST(mailbox, comes_before_tasks_that_were_submitted_later)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letters[100];

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    for (int i = 0; i < 100; i++)
        post(&owner, &letters[i], 'a');
    assert_int_equal(weir_execute(manual.executor, note, &owner), 0);
    manual_fixture_run(&manual);
    assert_int_equal(owner.count, 101);
    assert_int_equal(owner.steps[100], '.');
    close_owner(&owner);
    manual_fixture_close(&manual);
}

TEST(mailbox, runs_what_is_posted_while_it_runs)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    letter = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = post_more};
    weir__mailbox_post(&owner.box, &letter.mail);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "am");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

static void post_until_noted(struct owner *owner)
{
    static struct letter again;

    if (owner->count >= 1000 || strchr(owner->steps, '.') != NULL)
        return;
    again = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = post_until_noted};
    weir__mailbox_post(&owner->box, &again.mail);
}

/* A mailbox that is never empty is not the only one to run. */
TEST(mailbox, does_not_keep_tasks_waiting)
{
    struct manual_fixture manual;
    struct owner owner;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    post_until_noted(&owner);
    assert_int_equal(weir_execute(manual.executor, note, &owner), 0);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "a.a");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

static void post_more_then_submit(struct owner *owner)
{
    post_more(owner);
    assert_int_equal(weir_execute(owner->executor, note, owner), 0);
}

TEST(mailbox, comes_before_tasks_that_it_submits_itself_later)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    letter = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = post_more_then_submit};
    weir__mailbox_post(&owner.box, &letter.mail);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "am.");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

/* The same for tasks that are not ready yet, but in the queue. */
static void submit_note(void *arg)
{
    assert_int_equal(weir_execute(((struct owner *)arg)->executor, note, arg), 0);
}

static void submit_then_post_until_noted(struct owner *owner)
{
    run_on_other_thread(submit_note, owner);
    post_until_noted(owner);
}

TEST(mailbox, does_not_keep_tasks_of_other_threads_waiting)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    letter = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = submit_then_post_until_noted};
    weir__mailbox_post(&owner.box, &letter.mail);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "aa.a");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

/* More mails than run in one go, a task before them, and a mail and a task while they run. */
TEST(mailbox, finishes_what_it_has_taken_before_tasks)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letters[40];

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    letters[0] = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = post_more_then_submit};
    weir__mailbox_post(&owner.box, &letters[0].mail);
    for (int i = 1; i < 40; i++)
        post(&owner, &letters[i], 'a');
    assert_int_equal(weir_execute(manual.executor, note, &owner), 0);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.m.");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

static void post_from_flags(struct owner *owner, uint32_t flags)
{
    if (flags & RED)
        post_more(owner);
}

TEST(mailbox, runs_what_is_posted_by_a_flag)
{
    struct manual_fixture manual;
    struct owner owner;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    owner.on_flags = post_from_flags;
    weir__mailbox_set(&owner.box, RED);
    weir__mailbox_set(&owner.box, BLUE);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "RBm");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

static void submit_and_post(struct owner *owner)
{
    post_more(owner);
    assert_int_equal(weir_execute(weir_executor_current(), note, owner), 0);
}

/* Also what is posted during a run. */
TEST(mailbox, comes_before_tasks_that_were_submitted_after_a_post_during_a_run)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter = {.mail.fn = on_letter, .name = 'a', .fn = submit_and_post};

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    weir__mailbox_post(&owner.box, &letter.mail);
    assert_int_equal(weir_execute(manual.executor, note, &owner), 0);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "a.m.");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

TEST(mailbox, posts_a_mail_before_all_others)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letters[2];

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    assert_true(weir__mailbox_hold(&owner.box));
    assert_true(weir__mailbox_has_calls(&owner.box));
    weir__mailbox_set(&owner.box, RED);
    post(&owner, &letters[0], 'b');
    letters[1] = (struct letter){.mail.fn = on_letter, .name = 'a'};
    weir__mailbox_post_first(&owner.box, &letters[1].mail);
    weir__mailbox_resume(&owner.box);
    assert_true(weir__mailbox_has_calls(&owner.box));
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "aRb");
    assert_false(weir__mailbox_has_calls(&owner.box));
    close_owner(&owner);
    manual_fixture_close(&manual);
}

static void set_tail_once(struct owner *owner, uint32_t flags)
{
    if (flags & RED)
        weir__mailbox_set(&owner->box, TAIL);
}

static void set_tail_then_submit(struct owner *owner, uint32_t flags)
{
    set_tail_once(owner, flags);
    if (flags & RED)
        submit_note(owner);
}

TEST(mailbox, lets_tasks_pass_a_tail_flag)
{
    struct manual_fixture manual;
    struct owner owner;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    owner.on_flags = set_tail_then_submit;
    weir__mailbox_set(&owner.box, RED);
    assert_int_equal(weir_execute(manual.executor, note, &owner), 0);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "R..T");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

TEST(mailbox, toggles_flags_that_have_not_run)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    weir__mailbox_toggle(&owner.box, BLUE, RED);
    weir__mailbox_toggle(&owner.box, RED, BLUE); /* removes BLUE */
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "");
    weir__mailbox_toggle(&owner.box, BLUE, RED);
    post(&owner, &letter, 'a');
    weir__mailbox_toggle(&owner.box, RED, BLUE); /* BLUE is in front of the mail */
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "BaR");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

TEST(mailbox, does_not_run_while_it_is_held)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    assert_true(weir__mailbox_hold(&owner.box));
    assert_false(weir__mailbox_hold(&owner.box));
    post(&owner, &letter, 'a');
    weir__mailbox_set(&owner.box, RED);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "");
    weir__mailbox_resume(&owner.box);
    assert_false(weir__mailbox_hold(&owner.box));
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "aR");
    assert_true(weir__mailbox_hold(&owner.box));
    weir__mailbox_resume(&owner.box);
    close_owner(&owner);
    manual_fixture_close(&manual);
}

static void hold_and_post(void *arg, int status)
{
    struct owner *owner = arg;

    (void)status;
    assert_true(weir__mailbox_hold(&owner->box));
    post_more(owner);
    weir__mailbox_resume(&owner->box);
}

/* The task that holds it was the last one that was ready when the mailbox ran. */
TEST(mailbox, forgets_where_its_last_run_was_in_the_queue)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    post(&owner, &letter, 'a');
    assert_int_equal(weir_execute(manual.executor, hold_and_post, &owner), 0);
    assert_int_equal(weir_execute(manual.executor, note, &owner), 0);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "am.");
    close_owner(&owner);
    manual_fixture_close(&manual);
}

/* ---- many mails ---- */

struct hoard {
    struct owner owner;
    weir_manual_clock *clock;
    unsigned run;
    unsigned at_timer;
};

/* The mail may be freed in its function. */
static void on_hoarded(weir__mailbox *box, weir__mail *mail, int status)
{
    struct hoard *hoard = WEIR_CONTAINER_OF(owner_of(box), struct hoard, owner);

    assert_int_equal(status, 0);
    hoard->run++;
    weir_manual_clock_advance(hoard->clock, weir_us(1));
    free(mail);
}

static void on_hoard_timer(void *arg, int status)
{
    struct hoard *hoard = arg;

    assert_int_equal(status, 0);
    hoard->at_timer = hoard->run;
}

static void open_hoard(struct hoard *hoard, const struct manual_fixture *manual, unsigned count)
{
    *hoard = (struct hoard){.clock = manual->clock};
    open_owner(&hoard->owner, manual->executor);
    while (count-- > 0) {
        weir__mail *mail = malloc(sizeof(*mail));

        assert_non_null(mail);
        mail->fn = on_hoarded;
        weir__mailbox_post(&hoard->owner.box, mail);
    }
}

TEST(mailbox, lets_timers_run_between_many_mails)
{
    struct manual_fixture manual;
    struct hoard hoard;

    manual_fixture_open(&manual);
    open_hoard(&hoard, &manual, 10000);
    assert_int_equal(weir_schedule(manual.executor, weir_us(100), on_hoard_timer, &hoard, NULL), 0);
    manual_fixture_run(&manual);
    assert_int_equal(hoard.run, 10000);
    assert_in_range(hoard.at_timer, 100, 2000);
    close_owner(&hoard.owner);
    manual_fixture_close(&manual);
}

TEST(mailbox, ends_a_turn_whose_budget_is_spent)
{
    struct manual_fixture manual;
    struct hoard hoard;

    manual_fixture_open(&manual);
    open_hoard(&hoard, &manual, 100);
    assert_true(weir_manual_run_once(manual.executor, 0, 1) > 0);
    assert_in_range(hoard.run, 1, 16);
    manual_fixture_run(&manual);
    assert_int_equal(hoard.run, 100);
    close_owner(&hoard.owner);
    manual_fixture_close(&manual);
}

/* ---- the stats of the executor ---- */

static void check_stats(const weir_executor *executor, uint64_t run)
{
    weir_executor_stats stats;

    weir_executor_read_stats(executor, &stats);
    assert_int_equal(stats.pending, 0);
    assert_int_equal(executor->stats.taken, weir__executor_stats_popped(executor));
    assert_int_equal(stats.tasks_run, run);
    assert_int_equal(stats.tasks_cancelled, 0);
}

static void post_hundred(void *arg)
{
    struct owner *owner = arg;
    static struct letter letters[100];

    for (int i = 0; i < 100; i++)
        post(owner, &letters[i], 'a');
    weir__mailbox_set(&owner->box, RED);
}

TEST(mailbox, keeps_the_stats_of_the_executor_balanced)
{
    struct manual_fixture manual;
    struct owner owner;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    owner.on_flags = set_tail_once;
    run_on_other_thread(post_hundred, &owner);
    manual_fixture_run(&manual);
    assert_int_equal(owner.count, 102);
    check_stats(manual.executor, 7 + 1); /* six times 16 and five more, then the tail */
    close_owner(&owner);
    manual_fixture_close(&manual);
}

/* ---- two executors ---- */

static weir_executor *destination;

static void move_owner(struct owner *owner)
{
    owner->executor = destination;
}

TEST(mailbox, follows_its_owner_to_another_executor)
{
    struct manual_fixture from;
    struct single_executor to = single_executor_open(NULL);
    struct owner owner;
    struct letter letters[3];

    manual_fixture_open(&from);
    open_owner(&owner, from.executor);
    destination = to.executor;
    post(&owner, &letters[0], 'a');
    letters[1] = (struct letter){.mail.fn = on_letter, .name = 'b', .fn = move_owner};
    weir__mailbox_post(&owner.box, &letters[1].mail);
    weir__mailbox_set(&owner.box, RED);
    post(&owner, &letters[2], 'c');
    manual_fixture_run(&from);
    single_executor_end(&to);
    assert_string_equal(owner.steps, "abRc");
    assert_ptr_equal(owner.ran_on, to.executor);
    assert_int_equal(owner.status, 0);
    close_owner(&owner);
    manual_fixture_close(&from);
    single_executor_close(&to);
}

static void move_then_post(struct owner *owner)
{
    post_more(owner);
    move_owner(owner);
}

/* The task that was ready at the old executor has gone when the new one has done the rest. */
TEST(mailbox, forgets_the_queue_of_the_executor_that_its_owner_has_left)
{
    struct manual_fixture from, to;
    struct owner owner;
    struct letter letters[40];

    manual_fixture_open(&from);
    manual_fixture_open(&to);
    open_owner(&owner, from.executor);
    destination = to.executor;
    letters[0] = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = move_then_post};
    weir__mailbox_post(&owner.box, &letters[0].mail);
    for (int i = 1; i < 40; i++)
        post(&owner, &letters[i], 'a');
    assert_int_equal(weir_execute(from.executor, note, &owner), 0);
    manual_fixture_run(&from);
    assert_string_equal(owner.steps, "a.");
    manual_fixture_run(&to);
    assert_int_equal(owner.count, 42);
    assert_int_equal(owner.steps[41], 'm');
    close_owner(&owner);
    check_stats(from.executor, 2);
    manual_fixture_close(&from);
    manual_fixture_close(&to);
}

TEST(mailbox, gets_an_error_if_its_owner_moves_to_an_executor_that_has_ended)
{
    struct manual_fixture from;
    struct single_executor to = single_executor_open(NULL);
    struct owner owner;
    struct letter letters[2];

    manual_fixture_open(&from);
    single_executor_end(&to);
    open_owner(&owner, from.executor);
    destination = to.executor;
    letters[0] = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = move_owner};
    weir__mailbox_post(&owner.box, &letters[0].mail);
    post(&owner, &letters[1], 'b');
    manual_fixture_run(&from);
    global_executor_stop();
    assert_string_equal(owner.steps, "ab");
    assert_int_equal(owner.status, WEIR_EREJECTED);
    close_owner(&owner);
    manual_fixture_close(&from);
    single_executor_close(&to);
}

TEST(mailbox, is_cancelled_by_an_executor_that_ends)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    post(&owner, &letter, 'a');
    weir_executor_release(manual.executor); /* abandoned: its tasks are cancelled */
    assert_string_equal(owner.steps, "a");
    assert_int_equal(owner.status, WEIR_ECANCELED);
    weir_manual_clock_release(manual.clock);
    close_owner(&owner);
}

TEST(mailbox, is_run_by_the_global_executor_after_the_end_of_its_own)
{
    struct single_executor single = single_executor_open(NULL);
    struct owner owner;
    struct letter letter;

    open_owner(&owner, single.executor);
    single_executor_end(&single);
    post(&owner, &letter, 'a');
    weir__mailbox_set(&owner.box, RED);
    global_executor_stop();
    assert_string_equal(owner.steps, "aR");
    assert_int_equal(owner.status, WEIR_EREJECTED);
    close_owner(&owner);
    single_executor_close(&single);
}

/* The last thread of an executor runs all that is left: nothing of it goes to the global one. */
TEST(mailbox, is_run_to_the_end_by_the_last_thread)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letters[40];

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    for (int i = 0; i < 40; i++)
        post(&owner, &letters[i], 'a');
    weir_executor_release(manual.executor);
    assert_int_equal(owner.count, 40);
    assert_int_equal(owner.status, WEIR_ECANCELED);
    weir_manual_clock_release(manual.clock);
    close_owner(&owner);
}

/* A task that is cancelled, and takes its time. */
static void wait_in_drain(void *arg, int status)
{
    (void)status;
    gate_task(arg, 0);
}

static void release_executor(void *arg)
{
    weir_executor_release(arg);
}

TEST(mailbox, insists_until_the_last_thread_has_ended)
{
    struct manual_fixture manual;
    struct owner owner;
    struct letter letter;
    struct gate gate = {0};
    struct call_counter passed = {0};
    weir__thread thread;

    manual_fixture_open(&manual);
    open_insisting_owner(&owner, manual.executor);
    weir__executor_weak_retain(manual.executor);
    assert_int_equal(weir_execute(manual.executor, wait_in_drain, &gate), 0);
    assert_int_equal(weir__thread_start("last", release_executor, manual.executor, &thread), 0);
    assert_true(gate_await_arrivals(&gate, 1));
    post(&owner, &letter, 'a');
    assert_int_equal(weir_execute(weir_executor_global(), call_counter_task, &passed), 0);
    assert_true(call_counter_await(&passed, 1));
    assert_int_equal(owner.count, 0);
    gate_open(&gate);
    weir__thread_join(&thread);
    global_executor_stop();
    assert_string_equal(owner.steps, "a");
    assert_int_equal(owner.status, WEIR_EREJECTED);
    weir_manual_clock_release(manual.clock);
    close_owner(&owner);
    weir__executor_weak_release(manual.executor);
}

/* ---- no thread, no memory ---- */

struct repeated {
    weir__mail mail;
    int left;
};

static void repeat(weir__mailbox *box, weir__mail *mail, int status)
{
    struct repeated *repeated = WEIR_CONTAINER_OF(mail, struct repeated, mail);

    owner_of(box)->status = status;
    if (--repeated->left > 0)
        weir__mailbox_post(box, mail);
}

TEST(mailbox, needs_no_stack_where_no_executor_takes_it)
{
    struct thread_factory_fixture fixture;
    struct single_executor single;
    struct owner owner;
    struct repeated repeated = {.mail.fn = repeat, .left = 1000000};

    log_capture_start();
    global_executor_stop();
    thread_factory_open(&fixture);
    fixture.answer = -EAGAIN;
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    open_owner(&owner, single.executor);
    test_memory_fail_all(true);
    weir__mailbox_post(&owner.box, &repeated.mail);
    test_memory_fail_all(false);
    assert_int_equal(repeated.left, 0);
    assert_int_equal(owner.status, WEIR_EREJECTED);
    close_owner(&owner);
    single_executor_close(&single);
    thread_factory_close(&fixture);
}

TEST(mailbox, is_run_by_the_global_executor_if_no_thread_starts)
{
    struct thread_factory_fixture fixture;
    struct single_executor single;
    struct owner owner;
    struct letter letter;

    log_capture_start();
    thread_factory_open(&fixture);
    fixture.answer = -EAGAIN;
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    open_owner(&owner, single.executor);
    post(&owner, &letter, 'a');
    global_executor_stop();
    assert_string_equal(owner.steps, "a");
    assert_int_equal(owner.status, -EAGAIN);
    close_owner(&owner);
    single_executor_close(&single);
    thread_factory_close(&fixture);
}

/* An owner that insists, whose executor has no thread for the first times it is asked. */
struct patient {
    struct owner owner;
    struct letter letter;
    struct call_counter may_post;
    struct call_counter arrived;
};

static void arrive(struct owner *owner)
{
    call_counter_add(&WEIR_CONTAINER_OF(owner, struct patient, owner)->arrived);
}

static void post_letter(void *arg)
{
    struct patient *patient = arg;

    (void)call_counter_await(&patient->may_post, 1);
    patient->letter = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = arrive};
    weir__mailbox_post(&patient->owner.box, &patient->letter.mail);
}

static void check_patience(bool is_without_memory)
{
    struct thread_factory_fixture fixture;
    struct single_executor single;
    struct patient patient = {0};
    size_t before;
    weir__thread thread;

    log_capture_start();
    global_executor_stop();
    thread_factory_open(&fixture);
    fixture.answer = -EAGAIN;
    single = single_executor_open(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory));
    open_insisting_owner(&patient.owner, single.executor);
    assert_int_equal(weir__thread_start("patient", post_letter, &patient, &thread), 0);
    before = test_memory_allocations();
    test_memory_fail_all(is_without_memory);
    call_counter_add(&patient.may_post);
    while (is_without_memory ? test_memory_allocations() < before + 50 : fixture.asked < 100)
        weir__thread_yield();
    assert_int_equal(patient.arrived.calls, 0);
    assert_in_range(log_capture_count(WEIR_LOG_ERROR), 0, 49); /* not one for each attempt */
    fixture.answer = 0;
    test_memory_fail_all(false);
    assert_true(call_counter_await(&patient.arrived, 1));
    weir__thread_join(&thread);
    single_executor_end(&single);
    assert_string_equal(patient.owner.steps, "a");
    assert_int_equal(patient.owner.status, 0);
    assert_ptr_equal(patient.owner.ran_on, single.executor);
    global_executor_stop();
    close_owner(&patient.owner);
    single_executor_close(&single);
    thread_factory_close(&fixture);
}

TEST(mailbox, insists_on_a_thread_that_does_not_start)
{
    check_patience(false);
}

/* Then it is the thread that posts that asks again. */
TEST(mailbox, insists_without_memory)
{
    check_patience(true);
}
