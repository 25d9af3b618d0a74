/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduled tasks: each runs once, not before its time; periodic ones run until they are cancelled;
 * promises of cancelled ones complete.
 */
#include <errno.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define TASKS 20
#define PERIOD_NS weir_ms(10)
#define DURATION_NS weir_seconds(2)
#define LATE_NS weir_ms(500) /* longer than any thread gets no CPU */

struct once {
    weir_promise *promise;
    int64_t due_ns;
    unsigned calls;
    int status;
};

struct periodic {
    int64_t last_ns;
    unsigned calls;
};

static struct once tasks[TASKS];
static struct periodic periodic[2];

static void run_once(void *arg, int status)
{
    struct once *task = arg;

    task->calls++;
    task->status = status;
    if (status == 0 && weir_sim_now(weir_sim_current()) < task->due_ns)
        weir_sim_fail(weir_sim_current(), "a task has run too early");
}

static void run_again(void *arg, int status)
{
    struct periodic *self = arg;

    if (status < 0)
        return;
    self->calls++;
    self->last_ns = weir_sim_now(weir_sim_current());
}

static int schedule_tasks(weir_group *group)
{
    weir_sim *sim = weir_sim_current();
    int err = 0;

    for (unsigned i = 0; i < TASKS && err == 0; i++) {
        int64_t delay_ns = (int64_t)weir_sim_random(sim, DURATION_NS);

        tasks[i].due_ns = weir_sim_now(sim) + delay_ns;
        err =
            weir_schedule(weir_group_next(group), delay_ns, run_once, &tasks[i], &tasks[i].promise);
        weir_sim_sleep((int64_t)weir_sim_random(sim, weir_ms(1)));
    }
    return err;
}

static void finish_task(struct once *task, bool cancels)
{
    weir_sim *sim = weir_sim_current();
    int err;

    if (task->promise == NULL)
        return;
    if (cancels)
        (void)weir_promise_cancel(task->promise);
    err = weir_promise_sync(task->promise, WEIR_NEVER);
    if (err == 0 && (task->calls != 1 || task->status != 0))
        weir_sim_fail(sim, "a task was called %u times, status %d", task->calls, task->status);
    if (err < 0 && err != WEIR_ECANCELED)
        weir_sim_fail(sim, "a task ended with %s", weir_error_text(err));
    weir_promise_release(task->promise);
}

static void check_periodic(const struct periodic *self)
{
    weir_sim *sim = weir_sim_current();

    if (weir_sim_now(sim) - self->last_ns > LATE_NS)
        weir_sim_fail(sim, "a periodic task has stopped after %u calls", self->calls);
}

static int timers_main(void *arg)
{
    weir_sim *sim = weir_sim_current();
    weir_promise *repeating[2] = {NULL, NULL};
    weir_group *group = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "timers", .threads = 2), &group);

    (void)arg;
    if (err == 0)
        err = weir_schedule_at_fixed_rate(weir_group_next(group), PERIOD_NS, PERIOD_NS, run_again,
                                          &periodic[0], &repeating[0]);
    if (err == 0)
        err = weir_schedule_with_fixed_delay(weir_group_next(group), PERIOD_NS, PERIOD_NS,
                                             run_again, &periodic[1], &repeating[1]);
    if (err == 0)
        err = schedule_tasks(group);
    for (unsigned i = 0; i < TASKS; i++)
        finish_task(&tasks[i], weir_sim_random(sim, 2) == 0);
    weir_sim_calm(sim, true);
    weir_sim_sleep(LATE_NS);
    for (unsigned i = 0; i < 2 && err == 0; i++)
        check_periodic(&periodic[i]);
    for (unsigned i = 0; i < 2; i++) {
        if (repeating[i] != NULL)
            (void)weir_promise_cancel(repeating[i]);
        weir_promise_release(repeating[i]);
    }
    sim_end_group(group);
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    weir_sim_process *process;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    memset(tasks, 0, sizeof(tasks));
    memset(periodic, 0, sizeof(periodic));
    if (err == 0)
        err = weir_sim_start(host, "timers", timers_main, arg, &process);
    return err < 0 ? err : weir_sim_join(process);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed, SIM_KIND(SLOW) | SIM_KIND(PREEMPT) | SIM_KIND(CLOCK_STEP), options);
}

SIM_PROGRAM(timers, "scheduled and periodic tasks", configure, run)
