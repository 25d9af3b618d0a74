/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short mixed load on each backend; ./dev soak loop runs long ones. And stress: the stress tests
 * of executors on a loop with I/O.
 */
#include "support/loop/mixed_load.h"

#include "loop/loop.h"
#include "os/random.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/executor/submit_stress.h"
#include "support/loop/suite.h"
#include "support/loop/workload.h"

#define BUSTLE_NS weir_ms(300)
#define STORMS 8
#define STORM_TASKS 20000

TEST_EACH_BACKEND(mixed_load, leaves_nothing_behind)
{
    struct mixed_load load = {
        .backend = driver->backend,
        .seed = weir__random_process_seed(),
        .duration_ns = BUSTLE_NS,
    };
    const char *fault;

    log_capture_start();
    fault = mixed_load_run(&load);
    if (fault != NULL)
        fail_msg("%s, seed %llu: %s", driver->backend->name, (unsigned long long)load.seed, fault);
    global_executor_stop(); /* it may hold a loop that it was to watch over */
    assert_true(load.suspensions > 0);
    assert_true(load.tasks > 0);
}

/* ---- storms ---- */

static struct {
    const struct backend *backend;
    struct workload *workload;
    weir_executor *loop;
    weir_task task;
    bool over;
} scene;

static void on_over(void *arg)
{
    (void)arg;
    scene.over = true;
}

static void start_workload(void *arg, int status)
{
    (void)arg;
    if (status == 0)
        workload_start(scene.workload, weir__loop_io(scene.loop), on_over, NULL);
    else
        scene.over = true;
}

/* A loop that does I/O from its start on, whatever else comes. */
static int make_busy_loop(const weir_group_options *options, weir_group **ret_group)
{
    weir_group_options given = *options;
    int err;

    given.io = scene.backend->io;
    err = weir_group_create(&given, ret_group);
    if (err < 0)
        return err;
    scene.loop = weir_group_at(*ret_group, 0);
    weir_task_init(&scene.task, start_workload, NULL);
    scene.task.reserved = WEIR__TASK_UNCOUNTED; /* the stress counts what it has submitted itself */
    return weir__executor_post(scene.loop, &scene.task, WEIR__NOW);
}

TEST_EACH_BACKEND(stress, over_a_loop_with_io_meets_every_task_once)
{
    uint64_t seed = weir__random_process_seed();

    log_capture_start();
    scene.backend = driver->backend;
    for (unsigned i = 0; i < STORMS; i++) {
        struct submit_stress stress = {
            .seed = seed + i, .tasks = STORM_TASKS, .make_group = make_busy_loop};
        const char *fault;

        scene.over = false;
        scene.workload = workload_open();
        fault = submit_stress_run(&stress);
        if (fault == NULL)
            fault = workload_fault(scene.workload);
        if (fault != NULL)
            fail_msg("%s, seed %llu: %s", scene.backend->name, (unsigned long long)stress.seed,
                     fault);
        assert_true(scene.over);
        workload_close(scene.workload);
    }
    global_executor_stop();
}
