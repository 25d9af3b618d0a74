/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each task has one byte, its outcome, whose address is the task's argument. Running, cancelling or
 * rejecting the task adds a number to it. It is not atomic, because only one of them may happen. No
 * sum of several numbers is one of the numbers.
 */
#include "support/executor/submit_stress.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <weir/error.h>
#include <weir/group.h>

#include "executor/executor.h"
#include "os/random.h"
#include "support/executor/plain_group.h"

#define SUBMITTERS 4
#define TEST_TIMEOUT_NS weir_seconds(100)

enum {
    RUN = 1,
    CANCELLED = 10,
    REFUSED = 100,
};

/* How the n-th task is submitted. */
enum way {
    EXECUTE,
    EXECUTE_LAZY,
    EXECUTE_TASK,
    EXECUTE_AFTER_TURN,
    SUBMIT,
};

struct submitter {
    weir__thread thread;
    uint32_t first, end; /* its tasks */
    _Atomic uint32_t next;
    uint32_t last_called; /* accessed by the executor: the last task called of those that keep the
                             order */
    bool disorder;        /* accessed by the executor */
};

static struct {
    weir_group *group;
    weir_executor *executor;
    uint8_t *fates;
    weir_task *tasks; /* of those submitted by EXECUTE_TASK, every eighth */
    struct submitter submitters[SUBMITTERS];
    weir__random random;
} sky;

static enum way way_of(uint32_t task)
{
    static const enum way ways[8] = {EXECUTE, EXECUTE,      EXECUTE, EXECUTE_TASK,
                                     EXECUTE, EXECUTE_LAZY, EXECUTE, EXECUTE_AFTER_TURN};

    return task % 64 == 6 ? SUBMIT : ways[task % 8];
}

/* ---- the tasks ---- */

static struct submitter *submitter_of(uint32_t task)
{
    struct submitter *submitter = sky.submitters;

    while (task >= submitter->end)
        submitter++;
    return submitter;
}

static void check_order(uint32_t task)
{
    struct submitter *submitter = submitter_of(task);

    if (submitter->last_called > task)
        submitter->disorder = true;
    submitter->last_called = task;
}

static void on_task(void *arg, int status)
{
    uint8_t *fate = arg;
    uint32_t task = (uint32_t)(fate - sky.fates);

    *fate = (uint8_t)(*fate + (status == 0 ? RUN : CANCELLED));
    if (way_of(task) != EXECUTE_AFTER_TURN)
        check_order(task);
}

static int on_work(void *arg, int status, void **ret_value)
{
    (void)ret_value;
    on_task(arg, status);
    return 0;
}

/* ---- submitters ---- */

static int submit(uint32_t task)
{
    uint8_t *fate = &sky.fates[task];

    switch (way_of(task)) {
    case EXECUTE_LAZY:
        return weir_execute_lazy(sky.executor, on_task, fate);
    case EXECUTE_TASK:
        weir_task_init(&sky.tasks[task / 8], on_task, fate);
        return weir_execute_task(sky.executor, &sky.tasks[task / 8]);
    case EXECUTE_AFTER_TURN:
        return weir_execute_after_turn(sky.executor, on_task, fate);
    case SUBMIT:
        return weir_submit(sky.executor, on_work, fate, NULL);
    default:
        return weir_execute(sky.executor, on_task, fate);
    }
}

static void submit_all(void *arg)
{
    struct submitter *submitter = arg;

    for (uint32_t task = submitter->first; task < submitter->end; task++) {
        if (submit(task) < 0)
            sky.fates[task] = (uint8_t)(sky.fates[task] + REFUSED);
        atomic_store_explicit(&submitter->next, task + 1, memory_order_relaxed);
    }
}

static uint32_t submitted_so_far(void)
{
    uint32_t count = 0;

    for (int i = 0; i < SUBMITTERS; i++)
        count += atomic_load_explicit(&sky.submitters[i].next, memory_order_relaxed) -
                 sky.submitters[i].first;
    return count;
}

/* ---- who shuts it down: this thread, the fifth ---- */

static uint64_t draw(uint64_t limit)
{
    return weir__random_below(&sky.random, limit);
}

static int shut_down_at(uint32_t count)
{
    const int64_t timeouts_ns[] = {0, weir_ms(2), TEST_TIMEOUT_NS};
    int64_t timeout_ns = timeouts_ns[draw(3)];
    int64_t quiet_ns = timeout_ns > 0 && draw(2) == 0 ? weir_ms(1) : 0;
    bool suspends = draw(2) == 0;

    while (submitted_so_far() < count) {
        if (suspends)
            (void)weir_executor_suspend(sky.executor);
        weir__thread_yield();
    }
    return weir_executor_shutdown(sky.executor, quiet_ns, timeout_ns);
}

/* ---- the stress ---- */

static const char *begin(const struct submit_stress *stress)
{
    int (*make_group)(const weir_group_options *, weir_group **) =
        stress->make_group != NULL ? stress->make_group : plain_group_create;
    weir_group_options options;

    weir__random_init(&sky.random, stress->seed);
    options = *WEIR_GROUP_OPTIONS();
    options.threads = 1;
    options.io = WEIR_IO_NONE;
    options.max_pending = draw(8) == 0 ? 10000 : 0;
    sky.fates = calloc(stress->tasks, sizeof(*sky.fates));
    sky.tasks = malloc((stress->tasks / 8 + 1) * sizeof(*sky.tasks));
    if (sky.fates == NULL || sky.tasks == NULL)
        return "there is no memory";
    if (make_group(&options, &sky.group) < 0)
        return "the group cannot be made";
    sky.executor = weir_group_at(sky.group, 0);
    return NULL;
}

/* A thread may be late for a deadline, with so much to cancel; but it comes. */
static const char *await_end(void)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    int err = weir_executor_await_termination(sky.executor, TEST_TIMEOUT_NS);

    if (err < 0 && err != -ETIMEDOUT)
        return "it has not ended well";
    while (weir_executor_state(sky.executor) != WEIR_EXECUTOR_TERMINATED) {
        if (weir__monotonic_now() > end_ns)
            return "it has not ended";
        weir__thread_yield();
    }
    weir__executor_join(sky.executor);
    return NULL;
}

static const char *run_stress(const struct submit_stress *stress)
{
    uint32_t each = stress->tasks / SUBMITTERS;
    const char *fault;

    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        struct submitter *submitter = &sky.submitters[i];

        *submitter = (struct submitter){
            .first = i * each,
            .end = i + 1 < SUBMITTERS ? (i + 1) * each : stress->tasks,
            .next = i * each,
            .last_called = i * each,
        };
        if (weir__thread_start("submitter", submit_all, submitter, &submitter->thread) < 0)
            abort(); /* the others use what would be freed */
    }
    if (shut_down_at((uint32_t)draw(stress->tasks)) < 0)
        abort();
    fault = await_end();
    for (int i = 0; i < SUBMITTERS; i++)
        weir__thread_join(&sky.submitters[i].thread);
    return fault;
}

static const char *count_fates(struct submit_stress *stress)
{
    for (uint32_t i = 0; i < stress->tasks; i++) {
        stress->run += sky.fates[i] == RUN;
        stress->cancelled += sky.fates[i] == CANCELLED;
        stress->refused += sky.fates[i] == REFUSED;
    }
    for (int i = 0; i < SUBMITTERS; i++)
        if (sky.submitters[i].disorder)
            return "the tasks of one thread were not called in order";
    return stress->run + stress->cancelled + stress->refused == stress->tasks
               ? NULL
               : "a task met no fate, or several";
}

static const char *compare_stats(const struct submit_stress *stress)
{
    weir_executor_stats stats;

    weir_executor_read_stats(sky.executor, &stats);
    return stats.tasks_run == stress->run && stats.tasks_cancelled == stress->cancelled &&
                   stats.pending == 0
               ? NULL
               : "the executor's stats are wrong";
}

const char *submit_stress_run(struct submit_stress *stress)
{
    const char *fault = begin(stress);

    stress->run = stress->cancelled = stress->refused = 0;
    if (fault == NULL)
        fault = run_stress(stress);
    if (fault == NULL)
        fault = count_fates(stress);
    if (fault == NULL)
        fault = compare_stats(stress);
    weir_group_release(sky.group);
    free(sky.tasks);
    free(sky.fates);
    sky.group = NULL;
    sky.tasks = NULL;
    sky.fates = NULL;
    return fault;
}
