/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mailboxes: order, exactly once, moves to another executor, ended executors.
 */
#include "executor/mailbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "executor/executor.h"
#include "support/executor/gate.h"
#include "support/executor/global_executor.h"
#include "support/executor/manual_fixture.h"
#include "support/executor/single_executor.h"
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

static struct letter again;

static void post_again(struct owner *owner)
{
    if (owner->count < 100)
        weir__mailbox_post(&owner->box, &again.mail);
}

TEST(mailbox, lets_tasks_pass_while_it_is_always_in_use)
{
    struct manual_fixture manual;
    struct owner owner;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    again = (struct letter){.mail.fn = on_letter, .name = 'a', .fn = post_again};
    weir__mailbox_post(&owner.box, &again.mail);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_execute(manual.executor, note, &owner), 0);
    manual_fixture_run(&manual);
    assert_memory_equal(owner.steps, "a...aaaaaaaa", 12);
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

TEST(mailbox, lets_tasks_pass_a_tail_flag)
{
    struct manual_fixture manual;
    struct owner owner;

    manual_fixture_open(&manual);
    open_owner(&owner, manual.executor);
    owner.on_flags = set_tail_once;
    weir__mailbox_set(&owner.box, RED);
    assert_int_equal(weir_execute(manual.executor, note, &owner), 0);
    manual_fixture_run(&manual);
    assert_string_equal(owner.steps, "R.T");
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
