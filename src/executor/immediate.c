/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The immediate executor has no thread and no queue: tasks run on the submitting thread. A task
 * submitted by such a task runs after it has returned, so that chains do not grow the stack.
 */
#include "executor/executor.h"

static _Thread_local struct {
    weir__chain waiting;
    bool running;
    weir_executor *outer; /* weir__current when the first task was submitted */
} local __attribute__((tls_model("initial-exec")));

static weir_executor immediate;
static weir__once once = WEIR__ONCE_INIT;

static void call(weir_executor *executor, weir_task *task)
{
    weir_task_fn *fn = task->fn;
    void *arg = task->arg;

    /* Its only counter. Unlike that of other executors it has many writers. */
    atomic_fetch_add_explicit(&executor->stats.run, 1, memory_order_relaxed);
    if (task->reserved != 0)
        weir__task_free_own(task); /* allocated on this thread */
    fn(arg, 0);
}

static void run_inline(weir_executor *executor, weir_task *task)
{
    weir_queue_node *node;

    weir__chain_append(&local.waiting, &task->node);
    if (local.running)
        return;
    local.running = true;
    local.outer = weir__current;
    while ((node = weir__chain_pop(&local.waiting)) != NULL)
        call(executor, WEIR_CONTAINER_OF(node, weir_task, node));
    local.running = false;
}

/* False while one of its tasks runs another, manual executor. */
bool weir__immediate_is_running(void)
{
    return local.running && local.outer == weir__current;
}

static const weir__executor_type type = {
    .name = "immediate",
    .size = sizeof(weir_executor),
    .threadless = true,
    .run_inline = run_inline,
};

static void init(void)
{
    const weir__executor_options options = {
        .name = "immediate",
        .clock = weir_clock_monotonic(),
        .rejected = weir_reject,
        .cpu = -1,
        .idle_ns = WEIR_NEVER,
        .permanent = true,
    };

    weir__executor_init(&immediate, &type, &options);
    atomic_store_explicit(&immediate.state, WEIR_EXECUTOR_STARTED, memory_order_relaxed);
}

weir_executor *weir_executor_immediate(void)
{
    weir__once_run(&once, init);
    return &immediate;
}
