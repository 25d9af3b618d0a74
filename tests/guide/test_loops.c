/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snippets of docs/guide/04-loops.md: groups, tasks, choosers, and loops driven by their owner.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/weir.h>

#include "support/executor/group.h"
#include "support/test.h"

static int create(weir_group **ret_group)
{
    weir_group *group = NULL;
    /* doc:begin create */
    int err = weir_group_create(
        WEIR_GROUP_OPTIONS(.threads = 2, .name = "net", .chooser = weir_chooser_two_choices()),
        &group);
    /* doc:end */

    *ret_group = group;
    return err;
}

/* doc:begin task */
static void count(void *arg, int status)
{
    _Atomic int *counter = arg;

    if (status == 0)
        atomic_fetch_add(counter, 1);
    /* otherwise WEIR_ECANCELED: it will never run, only free resources here */
}
/* doc:end */

static int give_work(weir_group *group, _Atomic int *counter, weir_promise **ret_late)
{
    /* doc:begin work */
    int err = weir_group_execute(group, count, counter); /* now, on the next executor */

    if (!err)
        err = weir_group_schedule(group, weir_ms(20), count, counter, ret_late); /* once, later */
    if (!err)
        err = weir_group_schedule_at_fixed_rate(group, 0, weir_seconds(1), count, counter, NULL);
    /* doc:end */
    return err;
}

TEST(loops, run_tasks_now_and_later)
{
    weir_group *group = NULL;
    weir_promise *late = NULL;
    _Atomic int counter = 0;

    assert_int_equal(create(&group), 0);
    assert_string_equal(weir_executor_name(weir_group_at(group, 0)), "net-1");
    assert_int_equal(give_work(group, &counter, &late), 0);
    assert_int_equal(weir_promise_sync(late, TEST_TIMEOUT_NS), 0);
    assert_true(atomic_load(&counter) >= 1); /* how often depends on how long that took */
    weir_promise_release(late);
    end_group(group);
}

/* doc:begin wait */
static void wait_for_itself(void *arg, int status)
{
    weir_promise *promise = arg;

    (void)status;
    (void)weir_promise_fail(promise, weir_promise_sync(promise, WEIR_NEVER), NULL);
    weir_promise_release(promise);
}
/* doc:end */

TEST(loops, do_not_wait)
{
    weir_group *group = NULL;
    weir_promise *promise = NULL;

    assert_int_equal(create(&group), 0);
    assert_int_equal(weir_promise_create(NULL, &promise), 0);
    assert_int_equal(weir_group_execute(group, wait_for_itself, weir_promise_retain(promise)), 0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), -EDEADLK);
    weir_promise_release(promise);
    end_group(group);
}

/* doc:begin chooser */
static weir_executor *second(void *state, weir_group *group)
{
    (void)state;
    return weir_group_at(group, 1 % weir_group_count(group));
}

static const weir_chooser always_the_second = {.name = "second", .next = second};
/* doc:end */

TEST(loops, use_a_custom_chooser)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(.threads = 3, .chooser = &always_the_second));

    assert_ptr_equal(weir_group_next(group), weir_group_at(group, 1));
    assert_ptr_equal(weir_group_next(group), weir_group_at(group, 1));
    end_group(group);
}

static weir_group *scaling(void)
{
    weir_group *group = NULL;
    /* doc:begin autoscale */
    int err = weir_group_create(
        WEIR_GROUP_OPTIONS(.threads = 16, .autoscale = WEIR_AUTOSCALE_OPTIONS(.min_active = 2)),
        &group);
    /* doc:end */

    assert_int_equal(err, 0);
    return group;
}

TEST(loops, scale)
{
    weir_group *group = scaling();

    assert_int_equal(weir_group_count(group), 16);
    end_group(group);
}

/* doc:begin turn */
static int turn(weir_executor *loop, struct pollfd *fds, nfds_t count)
{
    int64_t wait_ns = weir_loop_timeout(loop); /* WEIR_NEVER: wait for the descriptor only */
    int wait_ms = wait_ns / 1000000 >= INT_MAX ? -1 : (int)((wait_ns + 999999) / 1000000);

    fds[0] = (struct pollfd){.fd = weir_loop_descriptor(loop), .events = POLLIN};
    (void)poll(fds, count, wait_ms); /* fds[1] and so on are the application's own */
    return weir_loop_run_once(loop, 0);
}
/* doc:end */

TEST(loops, can_be_embedded)
{
    weir_executor *loop = NULL;
    struct pollfd fds[1];
    _Atomic int counter = 0;
    int err = 0;

    assert_int_equal(weir_loop_create(WEIR_LOOP_OPTIONS(.io = WEIR_IO_EPOLL), &loop), 0);
    assert_int_equal(weir_schedule(loop, weir_ms(1), count, &counter, NULL), 0);
    while (atomic_load(&counter) == 0)
        assert_true(turn(loop, fds, 1) >= 0);
    assert_int_equal(weir_executor_shutdown(loop, 0, weir_seconds(1)), 0);
    while ((err = turn(loop, fds, 1)) >= 0)
        continue;
    assert_int_equal(err, WEIR_ETERMINATED);
    weir_executor_release(loop);
}

/* doc:begin child */
static void on_ended(weir_child *child, const weir_child_exit *exit, void *user_data)
{
    (void)child;
    if (exit->err == 0)
        weir_promise_succeed(user_data, (void *)(intptr_t)exit->status);
    else
        weir_promise_fail(user_data, exit->err, NULL);
}

static int run_program(weir_executor *loop, char *const *argv, weir_promise *ended)
{
    return weir_child_spawn(
        loop, WEIR_CHILD_OPTIONS(.argv = argv, .exited = on_ended, .user_data = ended), NULL);
}
/* doc:end */

TEST(loops, report_the_exit_of_a_program)
{
    char shell[] = "sh", option[] = "-c", command[] = "exit 3";
    char *argv[] = {shell, option, command, NULL};
    weir_group *group = NULL;
    weir_promise *ended = NULL;

    assert_int_equal(create(&group), 0);
    assert_int_equal(weir_promise_create(NULL, &ended), 0);
    assert_int_equal(run_program(weir_group_next(group), argv, ended), 0);
    assert_int_equal(weir_promise_sync(ended, TEST_TIMEOUT_NS), 0);
    assert_int_equal((intptr_t)weir_promise_value(ended), 3);
    end_group(group);
    weir_promise_release(ended);
}
