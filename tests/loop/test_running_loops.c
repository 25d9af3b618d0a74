/* SPDX-License-Identifier: Apache-2.0 */
/* The list of running event loops: which executors are in it, and what an iteration allows. */
#include <weir/loop.h>
#include <weir/manual.h>

#include "executor/executor.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/test.h"

#define LOOPS_MAX 8

struct visit {
    weir_executor *loops[LOOPS_MAX]; /* compared, not used */
    size_t count;
    weir_executor *ends; /* released by the first call */
};

static void on_loop(weir_executor *loop, void *arg)
{
    struct visit *visit = arg;

    if (visit->count < LOOPS_MAX)
        visit->loops[visit->count++] = loop;
    weir_executor_release(visit->ends);
    visit->ends = NULL;
}

static bool has_visited(const struct visit *visit, const weir_executor *loop)
{
    for (size_t i = 0; i < visit->count; i++)
        if (visit->loops[i] == loop)
            return true;
    return false;
}

static bool is_running_loop(const weir_executor *loop)
{
    struct visit visit = {0};

    weir__running_loops_foreach(on_loop, &visit);
    return has_visited(&visit, loop);
}

static weir_executor *make_loop(void)
{
    weir_executor *loop = NULL;

    assert_int_equal(weir_loop_create(NULL, &loop), 0);
    return loop;
}

TEST(running_loops, has_embedded_loops_until_their_release)
{
    weir_executor *loop = make_loop();

    assert_true(is_running_loop(loop));
    weir_executor_release(loop);
    assert_false(is_running_loop(loop));
}

static void do_nothing(void *arg)
{
    (void)arg;
}

TEST_EACH_LOOP(running_loops, has_loops_with_a_thread_while_it_runs)
{
    weir_executor *loop = host->loop;

    assert_false(is_running_loop(loop));
    run_on_executor(loop, do_nothing, NULL);
    assert_true(is_running_loop(loop));
    assert_int_equal(weir_executor_suspend(loop), 0);
    weir__executor_join(loop);
    assert_false(is_running_loop(loop));
    run_on_executor(loop, do_nothing, NULL);
    assert_true(is_running_loop(loop));
    host_end(host);
    assert_false(is_running_loop(loop));
}

TEST(running_loops, does_not_have_other_executors)
{
    weir_executor *manual;

    assert_int_equal(weir_manual_create(NULL, &manual), 0);
    assert_false(is_running_loop(manual));
    weir_executor_release(manual);
}

/* Ends the visited loop, the next one, or the last one, while it visits the first of three. */
TEST(running_loops, may_end_during_an_iteration)
{
    for (unsigned which = 0; which < 3; which++) {
        weir_executor *loops[] = {make_loop(), make_loop(), make_loop()};
        struct visit visit = {.ends = loops[which]};

        weir__running_loops_foreach(on_loop, &visit);
        assert_int_equal(visit.count, which == 0 ? 3 : 2);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(has_visited(&visit, loops[i]), i == 0 || i != which);
            if (i != which)
                weir_executor_release(loops[i]);
        }
    }
}
