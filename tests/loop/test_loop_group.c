/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of event loops: their backend, and that they start, grow and shrink like groups of plain
 * executors.
 */
#include "executor/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/loop.h>

#include "support/executor/call_counter.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/faults.h"
#include "support/loop/fd_event.h"
#include "support/loop/host.h"
#include "support/memory.h"
#include "support/test.h"

static weir_group *make(const weir_group_options *options)
{
    weir_group *group = NULL;

    assert_int_equal(weir_group_create(options, &group), 0);
    assert_non_null(group);
    return group;
}

/* ---- which backend ---- */

static bool uring_can_be_had(void)
{
    weir_group *group = NULL;
    int err;

    log_capture_start();
    err = weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_URING, .threads = 1), &group);
    weir_group_release(group);
    return err == 0;
}

TEST(loop_group, by_default_is_of_loops_on_the_best_backend)
{
    enum weir_io best = uring_can_be_had() ? WEIR_IO_URING : WEIR_IO_EPOLL;
    weir_group *group;

    assert_int_equal(setenv("WEIR_LOOP_THREADS", "3", 1), 0);
    group = make(NULL);
    assert_int_equal(unsetenv("WEIR_LOOP_THREADS"), 0);
    assert_int_equal(weir_group_count(group), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(weir_loop_io(weir_group_at(group, i)), best);
        assert_int_equal(weir_executor_state(weir_group_at(group, i)), WEIR_EXECUTOR_NOT_STARTED);
    }
    end_group(group);
}

TEST_EACH_LOOP(loop_group, is_of_the_backend_that_was_asked_for)
{
    weir_group *group = make(WEIR_GROUP_OPTIONS(.io = weir_loop_io(host->loop), .threads = 2));

    for (size_t i = 0; i < 2; i++)
        assert_ptr_equal(weir__loop_io(weir_group_at(group, i))->type, host->backend->type);
    end_group(group);
}

/* ---- WEIR_IO and valgrind ---- */

static enum weir_io backend_by_default(void)
{
    weir_group *group = make(WEIR_GROUP_OPTIONS(.threads = 1));
    enum weir_io io = weir_loop_io(weir_group_at(group, 0));

    end_group(group);
    return io;
}

TEST(loop_group, by_default_is_on_the_backend_that_the_environment_names)
{
    enum weir_io best = uring_can_be_had() ? WEIR_IO_URING : WEIR_IO_EPOLL;
    const struct {
        const char *value;
        enum weir_io io;
    } rows[] = {{"epoll", WEIR_IO_EPOLL}, {"poll", WEIR_IO_POLL}, {"auto", best}, {"", best}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(setenv("WEIR_IO", rows[i].value, 1), 0);
        assert_int_equal(backend_by_default(), rows[i].io);
    }
    if (best == WEIR_IO_URING) {
        assert_int_equal(setenv("WEIR_IO", "uring", 1), 0);
        assert_int_equal(backend_by_default(), WEIR_IO_URING);
    }
    assert_int_equal(unsetenv("WEIR_IO"), 0);
}

TEST(loop_group, that_names_its_backend_does_not_ask_the_environment)
{
    weir_group *group;

    assert_int_equal(setenv("WEIR_IO", "poll", 1), 0);
    group = make(WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .threads = 1));
    assert_int_equal(unsetenv("WEIR_IO"), 0);
    assert_int_equal(weir_loop_io(weir_group_at(group, 0)), WEIR_IO_EPOLL);
    end_group(group);
}

TEST(loop_group, is_refused_if_the_environment_names_no_backend)
{
    weir_group *group = NULL;

    log_capture_start();
    assert_int_equal(setenv("WEIR_IO", "kqueue", 1), 0);
    assert_int_equal(weir_group_create(NULL, &group), -EINVAL);
    assert_int_equal(unsetenv("WEIR_IO"), 0);
    assert_null(group);
    assert_log_contains("WEIR_IO is \"kqueue\"");
    assert_log_contains("expected auto, epoll, uring or poll");
}

TEST(loop_group, by_default_is_on_epoll_under_valgrind)
{
    const char *preloaded = getenv("LD_PRELOAD");
    char before[1024];

    log_capture_start();
    (void)snprintf(before, sizeof(before), "%s", preloaded != NULL ? preloaded : "");
    assert_int_equal(setenv("LD_PRELOAD", "/x/vgpreload_core-amd64-linux.so:/x/other.so", 1), 0);
    assert_int_equal(backend_by_default(), WEIR_IO_EPOLL);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    if (preloaded != NULL)
        assert_int_equal(setenv("LD_PRELOAD", before, 1), 0);
    else
        assert_int_equal(unsetenv("LD_PRELOAD"), 0);
}

#ifdef WEIR_WITH_URING
/* The rule is fixed; the refusal is logged once per process. */
TEST(loop_group, takes_epoll_where_io_uring_is_refused)
{
    weir_group *group;

    if (!uring_can_be_had())
        WEIR_TEST_SKIP("earlier tests have logged that io_uring is not available");
    log_capture_start();
    faults_install();
    faults_inject(FAULT_RING_SETUP, 5, UINT64_C(1) << 32, EPERM); /* the third of four, probed */
    for (int i = 0; i < 2; i++) {
        group = make(WEIR_GROUP_OPTIONS(.threads = 4));
        for (size_t member = 0; member < 4; member++)
            assert_int_equal(weir_loop_io(weir_group_at(group, member)), WEIR_IO_EPOLL);
        end_group(group);
    }
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 0);
    assert_true(log_capture_last_contains("io_uring"));
    faults_remove();
}

TEST(loop_group, that_requests_io_uring_logs_why_it_is_refused)
{
    weir_group *group = NULL;

    log_capture_start();
    faults_install();
    faults_inject(FAULT_RING_SETUP, 1, 1, EPERM);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_URING), &group), -EPERM);
    assert_null(group);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_true(log_capture_last_contains("io_uring is not available"));
    faults_remove();
}
#else
TEST(loop_group, that_requests_io_uring_logs_that_it_was_not_built)
{
    weir_group *group = NULL;

    log_capture_start();
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_URING), &group), -ENOTSUP);
    assert_null(group);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_true(log_capture_last_contains("built without liburing"));
}
#endif

TEST(loop_group, is_not_made_if_a_backend_is_refused)
{
    weir_group *group = NULL;

    log_capture_start();
    faults_install();
    faults_inject(FAULT_EPOLL_CREATE1, 3, 1, EMFILE);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .threads = 4), &group), -EMFILE);
    assert_null(group);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_true(log_capture_last_contains("ulimit"));
    faults_remove();
}

TEST(loop_group, may_still_be_of_plain_executors)
{
    weir_group *group = make(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 1));

    assert_int_equal(weir_loop_io(weir_group_at(group, 0)), WEIR_IO_NONE);
    end_group(group);
}

TEST_EACH_LOOP(loop_group, is_not_made_without_memory)
{
    weir_group_options options = {
        .size = sizeof(options), .io = weir_loop_io(host->loop), .threads = 2};
    weir_group *group = NULL;
    size_t live = test_memory_live();
    int err;

    log_capture_start();
    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_group_create(&options, &group);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        assert_int_equal(test_memory_live(), live);
    }
    test_memory_fail_at(0);
    assert_int_equal(err, 0);
    end_group(group);
}

/* ---- its members ---- */

TEST_EACH_LOOP(loop_group, starts_its_threads_when_they_are_needed)
{
    weir_group *group =
        make(WEIR_GROUP_OPTIONS(.io = weir_loop_io(host->loop), .threads = 3, .name = "io"));
    weir_thread_properties thread;

    assert_int_equal(weir_executor_thread(weir_group_at(group, 1), &thread), 0);
    assert_string_equal(thread.name, "io-2");
    assert_int_equal(weir_executor_state(weir_group_at(group, 0)), WEIR_EXECUTOR_NOT_STARTED);
    assert_int_equal(weir_executor_state(weir_group_at(group, 1)), WEIR_EXECUTOR_STARTED);
    end_group(group);
}

TEST_EACH_LOOP(loop_group, is_pinned_if_asked)
{
    const int cpus[] = {weir__cpu_nth(0)};
    weir_group *group = make(WEIR_GROUP_OPTIONS(.io = weir_loop_io(host->loop), .threads = 2,
                                                .pin = true, .cpus = cpus, .cpu_count = 1));
    weir_thread_properties thread;

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(weir_executor_thread(weir_group_at(group, i), &thread), 0);
        assert_int_equal(thread.cpu, cpus[0]);
    }
    end_group(group);
}

static int suspended_in(const weir_group *group)
{
    int count = 0;

    for (size_t i = 0; i < weir_group_count(group); i++)
        count += weir_executor_state(weir_group_at(group, i)) == WEIR_EXECUTOR_SUSPENDED;
    return count;
}

/* Idle loops are suspended, but not one that has a handle. */
TEST_EACH_LOOP(loop_group, that_scales_by_itself_keeps_loops_with_handles)
{
    weir_autoscale_options scale;
    weir_group *group;
    struct fd_event event = {0};
    struct call_counter counter = {0};

    scale = *WEIR_AUTOSCALE_OPTIONS();
    scale.window_ns = weir_seconds(3600); /* the test is the monitor */
    scale.patience = WEIR_OFF;
    group =
        make(WEIR_GROUP_OPTIONS(.io = weir_loop_io(host->loop), .threads = 3, .autoscale = &scale));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(weir_execute(weir_group_at(group, i), call_counter_task, &counter), 0);
    fd_event_open(&event, weir_group_at(group, 2)); /* the first that would go */
    assert_true(call_counter_await(&counter, 3));
    while (suspended_in(group) < 2) {
        weir__thread_sleep(weir_ms(2));
        weir__autoscale_step(weir__group_chooser_state(group));
    }
    assert_int_equal(weir_executor_state(weir_group_at(group, 2)), WEIR_EXECUTOR_STARTED);
    fd_event_trigger(&event);
    assert_true(call_counter_await(&event.triggered, 1));
    fd_event_close(&event);
    end_group(group);
}

/* ---- many loops, many threads ---- */

struct traveller {
    weir_group *group;
    uint32_t hops;
    struct call_counter *arrived;
};

static void hop(void *arg, int status)
{
    struct traveller *traveller = arg;

    if (status == 0 && traveller->hops-- > 0 &&
        weir_group_execute(traveller->group, hop, traveller) == 0)
        return;
    call_counter_task(traveller->arrived, status);
}

TEST_EACH_LOOP(loop_group, passes_tasks_from_loop_to_loop)
{
    weir_group *group = make(WEIR_GROUP_OPTIONS(.io = weir_loop_io(host->loop), .threads = 4));
    struct call_counter arrived = {0};
    struct traveller travellers[8];

    for (int i = 0; i < 8; i++) {
        travellers[i] = (struct traveller){group, 500, &arrived};
        assert_int_equal(weir_group_execute(group, hop, &travellers[i]), 0);
    }
    assert_true(call_counter_await(&arrived, 8));
    assert_int_equal(atomic_load(&arrived.run), 8);
    end_group(group);
}
