/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submitting to an executor, its turn, and how it sleeps.
 *
 * One turn:  wait -> I/O -> due timers and tasks, 64 at a time, until none is left or the budget is
 * spent -> tail tasks; then lifecycle.c updates the state.
 *
 * The sleep protocol is one word, next_wakeup: WEIR__AWAKE, or the time until which the thread
 * sleeps (WEIR_NEVER: until woken).
 *
 *      the thread                                  a producer
 *      0. may busy-poll for work                   1. push the task
 *      1. next_wakeup := deadline                  2. next_wakeup later than the task's `when`?
 *      2. queue empty, state unchanged?            3. if so, exchange it for AWAKE; the producer
 *      3. if so, sleep                                that got another value wakes the thread
 *      4. next_wakeup := AWAKE
 *      5. I/O, timers, tasks
 *
 * Steps 1 and 2 of both sides are sequentially consistent. In their total order, either the
 * thread's step 2 comes after the producer's step 1, and the thread sees the task; or the
 * producer's step 2 comes after the thread's step 1, and the producer sees the deadline. So no
 * wakeup is lost, and each sleep is ended by at most one call of `wake`. A change of the state
 * follows the producer's steps, with the state in place of the queue. Step 4 may be relaxed: a
 * producer that still sees the deadline makes one superfluous call; a producer that sees AWAKE has
 * pushed before the next step 2. tools/models/executor.pml checks this. During busy polling and I/O
 * the word is AWAKE: producers make no call, and steps 0, 5 or 2 find their tasks.
 *
 * Only the consumer, the thread named by `consumer`, accesses `turn`. Its own submissions are
 * appended to `turn.ready`, after the contents of the queue: no task is overtaken.
 */
#include "executor/executor.h"

#include <errno.h>

#include <weir/error.h>

#include "base/turn_hooks.h"
#include "os/futex.h"
#include "os/virtual_os.h"

#define TURN_TASKS_MAX 65536 /* bounds a turn when the clock does not advance */
#define SAMPLE_EVERY_NS weir_ms(1)
#define WAKEUPS_PER_SAMPLE 8
#define NOBODY_YET UINT64_MAX /* no look at the queue after the moment of the sample */
#define CATCH_UP_BATCH 128    /* a consumer that takes fewer tasks at a time ... */
#define CATCH_UP_PAUSES 40    /* ... pauses this often */

#define INLINE inline __attribute__((always_inline)) /* makes the path of a task one function */
#define COLD __attribute__((noinline, cold))

/* The definitions repeat the model: gcc would take that of a shared library in this file. */
#define THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

THREAD_LOCAL weir_executor *weir__current;
THREAD_LOCAL unsigned weir__loop_depth;
THREAD_LOCAL uintptr_t weir__fiber;

weir_executor *weir_executor_current(void)
{
    return weir__immediate_is_running() ? weir_executor_immediate() : weir__current;
}

bool weir_in_executor(const weir_executor *executor)
{
    return weir__in_executor(executor);
}

/* ---- submitting ---- */

/*
 * Tells the thread when it was woken up, for a part of the wake-ups. Only by the system's clock:
 * another may have been destroyed by a thread that saw the task first. A slow producer may write
 * this during the next sleep, which it then ends.
 */
static void note_wakeup(weir_executor *executor, uint64_t number)
{
    bool is_sample =
        number % WAKEUPS_PER_SAMPLE == 0 && executor->options.clock == &weir__monotonic_clock;

    atomic_store_explicit(&executor->woken_ns,
                          is_sample ? weir__monotonic_now() : WEIR__WOKEN_UNTIMED,
                          memory_order_relaxed);
}

void weir__executor_wake(weir_executor *executor)
{
    if (atomic_load_explicit(&executor->next_wakeup, memory_order_seq_cst) == WEIR__AWAKE)
        return;
    if (atomic_exchange_explicit(&executor->next_wakeup, WEIR__AWAKE, memory_order_seq_cst) ==
        WEIR__AWAKE)
        return;
    note_wakeup(executor,
                atomic_fetch_add_explicit(&executor->wakeups_made, 1, memory_order_relaxed));
    executor->type->wake(executor);
}

static void take_queue(weir_executor *executor)
{
    uint64_t count = weir__queue_take(&executor->queue, &executor->turn.ready);

    executor->turn.last_taken = count;
    weir__counter_add(executor->stats.taken, count);
    weir__counter_add(executor->stats.submitted, count);
}

static void append(weir_executor *executor, weir__chain *chain, weir_task *task)
{
    weir__chain_append(chain, &task->node);
    weir__counter_add(executor->stats.taken, 1);
}

int weir__executor_post_after_turn(weir_executor *executor, weir_task *task)
{
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    append(executor, &executor->turn.tail, task);
    return 0;
}

/* The queue is taken so that the task does not come before those in it again and again. */
int weir__executor_post_first(weir_executor *executor, weir_task *task, weir_queue_node *after)
{
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    if (executor->turn.ready.first == NULL)
        take_queue(executor);
    weir__chain_insert(&executor->turn.ready, after, &task->node);
    weir__counter_add(executor->stats.taken, 1);
    return 0;
}

static int post_own(weir_executor *executor, weir_task *task)
{
    if ((task->reserved & WEIR__TASK_TAIL) != 0) {
        task->reserved &= ~WEIR__TASK_TAIL;
        return weir__executor_post_after_turn(executor, task);
    }
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    if (!weir__queue_is_empty(&executor->queue))
        take_queue(executor);
    append(executor, &executor->turn.ready, task);
    return 0;
}

/* Wakes an executor that would sleep beyond the time of a task that was pushed. */
static INLINE void wake_for(weir_executor *executor, int64_t when_ns)
{
    if (when_ns < atomic_load_explicit(&executor->next_wakeup, memory_order_seq_cst))
        weir__executor_wake(executor);
}

/*
 * The usual case of weir__executor_post: the current executor is not behind with its queue, or the
 * queue of another is open. Returns false, without effect, in other cases. A loop whose task runs
 * another executor is not the current one: its thread pushes as others do.
 */
static INLINE bool fast_post(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    if (weir__current == executor) {
        if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN ||
            !weir__queue_is_empty(&executor->queue))
            return false;
        append(executor, &executor->turn.ready, task);
        return true;
    }
    if (!weir__queue_push(&executor->queue, &task->node))
        return false;
    wake_for(executor, when_ns);
    return true;
}

/*
 * A closed queue: the executor has none, has to be started, or accepts no more tasks. A started
 * thread may already sleep when the task is pushed: wake it even for a lazy task.
 */
int weir__executor_post(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    int err;

    if (weir__executor_is_consumer(executor))
        return post_own(executor, task);
    if (executor->type->run_inline != NULL) {
        executor->type->run_inline(executor, task);
        return 0;
    }
    while (!weir__queue_push(&executor->queue, &task->node)) {
        err = weir__executor_open(executor);
        if (err < 0)
            return err;
        when_ns = WEIR__NOW;
    }
    wake_for(executor, when_ns);
    return 0;
}

/* Compare and exchange, so that the bound is never exceeded. */
static int admit(weir_executor *executor, weir_task *task)
{
    int64_t count = atomic_load_explicit(&executor->admitted, memory_order_relaxed);

    if (executor->options.max_pending == 0)
        return 0;
    do {
        if (count >= executor->options.max_pending)
            return WEIR_EFULL;
    } while (!atomic_compare_exchange_weak_explicit(&executor->admitted, &count, count + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    task->reserved |= WEIR__TASK_ADMITTED;
    return 0;
}

static void unadmit(weir_executor *executor, weir_task *task)
{
    if ((task->reserved & WEIR__TASK_ADMITTED) == 0)
        return;
    task->reserved &= ~WEIR__TASK_ADMITTED;
    atomic_fetch_sub_explicit(&executor->admitted, 1, memory_order_relaxed);
}

/* Frees a pooled task if it fails. */
static int submit(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    int err = admit(executor, task);

    if (err == 0)
        err = weir__executor_post(executor, task, when_ns);
    if (err == 0)
        return 0;
    unadmit(executor, task);
    if (task->reserved != 0)
        weir__task_free_own(task);
    return err;
}

static COLD int submit_or_reject(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    weir_task_fn *fn = task->fn;
    void *arg = task->arg;
    int err = submit(executor, task, when_ns);

    if (err != WEIR_EFULL && err != WEIR_EREJECTED)
        return err;
    return executor->options.rejected(executor, fn, arg, err, executor->options.rejected_data);
}

int weir__executor_try_execute(weir_executor *executor, weir_task_fn *fn, void *arg,
                               int64_t when_ns)
{
    weir_task *task = weir__task_alloc(fn, arg);

    return task != NULL ? submit(executor, task, when_ns) : -ENOMEM;
}

static COLD int alloc_and_submit(weir_executor *executor, weir_task_fn *fn, void *arg,
                                 int64_t when_ns)
{
    weir_task *task = weir__task_alloc(fn, arg);

    return task != NULL ? submit_or_reject(executor, task, when_ns) : -ENOMEM;
}

/* Nothing is needed after a call, so that the usual way saves no registers. */
static INLINE int execute_task(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    if (executor->options.max_pending == 0 && fast_post(executor, task, when_ns))
        return 0;
    return submit_or_reject(executor, task, when_ns);
}

static INLINE int execute(weir_executor *executor, weir_task_fn *fn, void *arg, int64_t when_ns)
{
    if (executor == NULL || fn == NULL)
        return -EINVAL;
    if (!weir__task_is_at_hand())
        return alloc_and_submit(executor, fn, arg, when_ns);
    return execute_task(executor, weir__task_take(weir__task_pool_own, fn, arg), when_ns);
}

static INLINE int execute_own(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    if (executor == NULL || task == NULL || task->fn == NULL)
        return -EINVAL;
    task->reserved = 0;
    return execute_task(executor, task, when_ns);
}

int weir_execute(weir_executor *executor, weir_task_fn *fn, void *arg)
{
    return execute(executor, fn, arg, WEIR__NOW);
}

int weir_execute_lazy(weir_executor *executor, weir_task_fn *fn, void *arg)
{
    return execute(executor, fn, arg, WEIR__LAZY);
}

int weir_execute_task(weir_executor *executor, weir_task *task)
{
    return execute_own(executor, task, WEIR__NOW);
}

int weir_execute_task_lazy(weir_executor *executor, weir_task *task)
{
    return execute_own(executor, task, WEIR__LAZY);
}

int weir_execute_after_turn(weir_executor *executor, weir_task_fn *fn, void *arg)
{
    weir_task *task;

    if (executor == NULL || fn == NULL)
        return -EINVAL;
    if (executor->type->run_inline != NULL)
        return -ENOTSUP;
    task = weir__task_alloc(fn, arg);
    if (task == NULL)
        return -ENOMEM;
    task->reserved |= WEIR__TASK_TAIL;
    return submit_or_reject(executor, task, WEIR__NOW);
}

/* ---- the turn ---- */

/* Returns false if the task is not to be called yet: a tail task, on its way through the queue. */
static COLD bool may_call_flagged(weir_executor *executor, weir_task *task, int status)
{
    if ((task->reserved & WEIR__TASK_TAIL) != 0 && status == 0) {
        task->reserved &= ~WEIR__TASK_TAIL;
        weir__chain_append(&executor->turn.tail, &task->node);
        return false;
    }
    if ((task->reserved & WEIR__TASK_UNCOUNTED) != 0)
        weir__counter_add(executor->stats.uncounted, 1);
    else
        weir__executor_stats_count_task(executor, status);
    unadmit(executor, task);
    return true;
}

static inline void call(weir_executor *executor, weir_task *task, int status)
{
    weir_task_fn *fn = task->fn;
    void *arg = task->arg;

    if ((task->reserved & WEIR__TASK_FLAGS) == 0)
        weir__executor_stats_count_task(executor, status);
    else if (!may_call_flagged(executor, task, status))
        return;
    if (task->reserved > WEIR__TASK_FLAGS)
        weir__task_free(&executor->turn.returns, task);
    fn(arg, status); /* the task may be freed from here on */
}

/*
 * A consumer that keeps up with its producers takes one or two tasks at a time and competes with
 * them for the cache line of the newest task. So if it has just taken a few and finds more, it
 * pauses briefly and then takes many. A consumer that finds none goes to sleep at once.
 */
static weir_queue_node *take_next(weir_executor *executor)
{
    if (executor->turn.last_taken > 0 && executor->turn.last_taken < CATCH_UP_BATCH)
        for (int i = 0; i < CATCH_UP_PAUSES; i++)
            weir__cpu_relax();
    take_queue(executor);
    return weir__chain_pop(&executor->turn.ready);
}

static inline weir_task *next_task(weir_executor *executor)
{
    weir_queue_node *node = weir__chain_pop(&executor->turn.ready);

    if (node == NULL && !weir__queue_is_empty(&executor->queue))
        node = take_next(executor);
    return node != NULL ? WEIR_CONTAINER_OF(node, weir_task, node) : NULL;
}

static int64_t update_time(weir_executor *executor)
{
    int64_t now_ns = executor->turn.now_ns = weir__executor_now(executor);

    weir__timers_resolve(&executor->timers, now_ns);
    return now_ns;
}

void weir__executor_update_time(weir_executor *executor)
{
    (void)update_time(executor);
}

static void begin_turn(weir_executor *executor)
{
    atomic_store_explicit(&executor->stats.turn_began, update_time(executor), memory_order_relaxed);
}

/* Not inlined: its caller would get a stack protector for the subject. */
static __attribute__((noinline)) void fire_handler_timer(weir_executor *executor, weir_timer *timer)
{
    weir__subject subject = {.ctx = timer->ctx, .call = "timer"};

    weir__executor_enter_subject(executor, &subject);
    timer->ctx_fn(timer->ctx, timer);
    weir__executor_leave_subject(executor, &subject);
}

/* Calls the function of a due timer. */
static void fire_timer(weir_executor *executor, weir_timer *timer)
{
    if (timer->ctx == NULL)
        timer->fn(timer);
    else
        fire_handler_timer(executor, timer);
}

static COLD bool time_is_up(weir_executor *executor)
{
    return update_time(executor) >= executor->lifecycle.timeout_at_ns;
}

/*
 * The time of a shutdown is over, which may have begun in this turn. `timeout_at_ns` is set before
 * the state, and not changed afterwards.
 */
static inline bool is_past_timeout(weir_executor *executor)
{
    return weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTTING_DOWN && time_is_up(executor);
}

/* Runs up to `batch` tasks and measures the first. */
static unsigned run_batch(weir_executor *executor, unsigned batch)
{
    weir_task *task = next_task(executor);
    int64_t start_ns = executor->turn.now_ns;
    unsigned count;

    if (task == NULL)
        return 0;
    call(executor, task, 0);
    (void)update_time(executor);
    weir__histogram_record(&executor->stats.run_time, executor->turn.now_ns - start_ns);

    for (count = 1;
         count < batch && !is_past_timeout(executor) && (task = next_task(executor)) != NULL;
         count++)
        call(executor, task, 0);
    if (count > 1)
        (void)update_time(executor);
    weir__task_flush(&executor->turn.returns);
    return count;
}

static unsigned run_due_timers(weir_executor *executor, unsigned batch)
{
    weir_timer_node *node;
    weir_timer *timer;
    unsigned count = 0;

    while (count < batch && weir__timers_may_expire(&executor->timers, executor->turn.now_ns) &&
           !is_past_timeout(executor) &&
           (node = weir__timers_expire_due(&executor->timers, executor->turn.now_ns)) != NULL) {
        timer = WEIR_CONTAINER_OF(node, weir_timer, node);
        if (!weir__schedule_owns(timer))
            weir__executor_stats_count_timer(executor, 0);
        fire_timer(executor, timer);
        count++;
    }
    if (count > 0)
        (void)update_time(executor);
    return count;
}

/* A turn without a budget ends when the state of an executor with a thread has changed. */
static bool budget_is_spent(const weir_executor *executor, int64_t budget_ns, unsigned count)
{
    if (budget_ns != WEIR_NEVER)
        return count >= TURN_TASKS_MAX;
    return !executor->type->threadless && weir__executor_state(executor) != executor->turn.state;
}

/* ---- the queue latency ---- */

/*
 * The time that a task would wait that is submitted at a moment which the executor does not choose:
 * a millisecond after the last sample. The first look at the queue after that moment counts the
 * tasks that have arrived; when they have run, the wait is over. Those that arrived between the
 * moment and the look make it longer than it would be. The thread alone does this, so that it costs
 * a producer nothing, and a loop that nobody submits to is measured as well.
 *
 * Nothing waits while the thread sleeps or polls for work. So a moment of that time moves to its
 * end: to the call that woke the thread, which then may be slow to get a CPU, or to the I/O or
 * timer that did. No task is before it. A wake-up that was not timed gives no sample.
 */
static COLD void sample_queue_latency(weir_executor *executor)
{
    int64_t now_ns = executor->turn.now_ns;

    if (executor->turn.sample.at_ns < executor->turn.sample.woke_ns) {
        int64_t woken_ns = atomic_load_explicit(&executor->woken_ns, memory_order_relaxed);

        if (woken_ns == WEIR__WOKEN_UNTIMED) {
            executor->turn.sample.behind = NOBODY_YET;
            executor->turn.sample.at_ns = weir__deadline(now_ns, SAMPLE_EVERY_NS);
            return;
        }
        executor->turn.sample.at_ns = woken_ns > 0 ? woken_ns : executor->turn.sample.woke_ns;
        executor->turn.sample.behind = 0;
    } else if (executor->turn.sample.behind == NOBODY_YET) {
        executor->turn.sample.behind =
            atomic_load_explicit(&executor->stats.taken, memory_order_relaxed) +
            weir__queue_count(&executor->queue);
    }
    if (weir__executor_stats_popped(executor) < executor->turn.sample.behind)
        return;
    weir__histogram_record(&executor->stats.queue_latency, now_ns - executor->turn.sample.at_ns);
    executor->turn.sample.behind = NOBODY_YET;
    executor->turn.sample.at_ns = weir__deadline(now_ns, SAMPLE_EVERY_NS);
}

static void run_tasks(weir_executor *executor, int64_t budget_ns)
{
    int64_t end_ns = weir__deadline(executor->turn.now_ns, budget_ns);
    unsigned batch = executor->turn.batch, count, total = 0;

    do {
        count = run_due_timers(executor, batch);
        if (executor->turn.now_ns >= executor->turn.sample.at_ns)
            sample_queue_latency(executor);
        count += run_batch(executor, batch);
        total += count;
    } while (count > 0 && executor->turn.now_ns < end_ns && !is_past_timeout(executor) &&
             !budget_is_spent(executor, budget_ns, total));
}

/*
 * Tail tasks added by tail tasks run in the next turn. After the timeout of a shutdown the rest
 * stays, to be cancelled.
 */
static void run_tail(weir_executor *executor, int status)
{
    weir__chain tail = executor->turn.tail;
    weir_queue_node *node;

    executor->turn.tail = (weir__chain){0};
    while ((node = weir__chain_pop(&tail)) != NULL) {
        call(executor, WEIR_CONTAINER_OF(node, weir_task, node), status);
        if (status == 0 && tail.first != NULL && is_past_timeout(executor)) {
            weir__chain_prepend(&executor->turn.tail, &tail);
            break;
        }
    }
    weir__task_flush(&executor->turn.returns);
}

static bool has_work(weir_executor *executor)
{
    return weir__executor_has_tasks(executor) ||
           (executor->type->has_work != NULL && executor->type->has_work(executor));
}

int64_t weir__executor_deadline(weir_executor *executor, int64_t limit_ns)
{
    int64_t deadline_ns;

    if (has_work(executor))
        return 0;
    if (weir__timers_has_relative(&executor->timers))
        (void)update_time(executor);
    deadline_ns = weir__earlier(weir__timers_next(&executor->timers), limit_ns);
    return deadline_ns > executor->turn.now_ns ? deadline_ns : 0;
}

/* Converts a deadline to CLOCK_MONOTONIC, by which the kernel sleeps. */
static int64_t to_kernel_clock(const weir_executor *executor, int64_t deadline_ns)
{
    const weir_clock *clock = executor->options.clock;

    if (clock == &weir__monotonic_clock || deadline_ns == WEIR_NEVER)
        return deadline_ns;
    if (clock->manual)
        return WEIR_NEVER;
    return weir__deadline(weir__monotonic_now(), deadline_ns - weir__executor_now(executor));
}

static void sleep_until(weir_executor *executor, int64_t deadline_ns)
{
    deadline_ns = weir__earlier(deadline_ns, weir__turn_hooks_run(true, executor->turn.now_ns));
    weir__executor_stats_asleep(executor);
    weir__preempt();
    if (weir__executor_publish_deadline(executor, deadline_ns))
        deadline_ns = to_kernel_clock(executor, deadline_ns);
    else
        deadline_ns = 0;
    executor->type->wait(executor, deadline_ns);
    atomic_store_explicit(&executor->next_wakeup, WEIR__AWAKE, memory_order_relaxed);
    begin_turn(executor);
    weir__executor_stats_awake(executor);
}

/*
 * Updates the time for the following dispatch. A limit of 0 begins a run of a manual executor,
 * whose last run has called the hooks.
 */
static void wait_for_work(weir_executor *executor, int64_t limit_ns)
{
    const weir__executor_type *type = executor->type;
    int64_t deadline_ns = limit_ns > 0 ? weir__executor_deadline(executor, limit_ns) : 0;

    if (deadline_ns > 0 && (type->busy_poll == NULL || !type->busy_poll(executor, deadline_ns))) {
        sleep_until(executor, deadline_ns);
        return;
    }
    if (deadline_ns == 0 && limit_ns > 0)
        (void)weir__turn_hooks_run(false, executor->turn.now_ns);
    if (deadline_ns == 0)
        type->wait(executor, 0);
    if (type->dispatch != NULL || limit_ns == 0)
        begin_turn(executor);
    if (limit_ns == 0)
        weir__executor_stats_awake(executor);
    else if (deadline_ns > 0)
        executor->turn.sample.woke_ns = executor->turn.now_ns;
}

void weir__executor_turn(weir_executor *executor, int64_t limit_ns, int64_t budget_ns)
{
    int64_t type_budget_ns = executor->options.task_cap_ns;

    wait_for_work(executor, limit_ns);
    if (executor->type->dispatch != NULL)
        type_budget_ns = executor->type->dispatch(executor);
    executor->turn.last_taken = 0;
    if (budget_ns == WEIR__TYPE_BUDGET)
        budget_ns = type_budget_ns;
    if (budget_ns >= 0) {
        run_tasks(executor, budget_ns);
        if (executor->turn.tail.first != NULL)
            run_tail(executor, 0);
    }
    weir__executor_stats_turn(executor);
}

uint64_t weir__executor_drain(weir_executor *executor, int status)
{
    uint64_t before = atomic_load_explicit(&executor->stats.cancelled, memory_order_relaxed);
    weir_queue_node *node;

    while (executor->turn.ready.first != NULL || executor->turn.tail.first != NULL) {
        while ((node = weir__chain_pop(&executor->turn.ready)) != NULL)
            call(executor, WEIR_CONTAINER_OF(node, weir_task, node), status);
        run_tail(executor, status);
    }
    weir__task_flush(&executor->turn.returns);
    return atomic_load_explicit(&executor->stats.cancelled, memory_order_relaxed) - before;
}

void weir__executor_cancel_timers(weir_executor *executor)
{
    size_t left = weir__timers_count(&executor->timers); /* cancelling may start others */
    weir_timer_node *node;
    weir_timer *timer;

    while (left-- > 0 && (node = weir__timers_pop_any(&executor->timers)) != NULL) {
        timer = WEIR_CONTAINER_OF(node, weir_timer, node);
        if (weir__schedule_owns(timer))
            weir__schedule_cancelled(timer);
    }
    atomic_store_explicit(&executor->stats.timers, weir__timers_count(&executor->timers),
                          memory_order_relaxed);
}

/* ---- the plain executor: sleeps on a futex ---- */

/*
 * The token is set after next_wakeup was exchanged, and cleared after the sleep. The clearing
 * cannot lose a wakeup: a token for the next sleep is set only after the next deadline was
 * published.
 */
static void plain_wait(weir_executor *executor, int64_t deadline_ns)
{
    if (deadline_ns == 0)
        return;
    weir__futex_wait(&executor->token, 0, deadline_ns);
    atomic_store_explicit(&executor->token, 0, memory_order_relaxed);
}

static void plain_wake(weir_executor *executor)
{
    atomic_store_explicit(&executor->token, 1, memory_order_release);
    weir__futex_wake(&executor->token, 1);
}

static void plain_end(weir_executor *executor)
{
    (void)weir__members_drain(executor, true); /* no more waiting */
}

const weir__executor_type weir__plain_type = {
    .name = "plain",
    .size = sizeof(weir_executor),
    .wait = plain_wait,
    .wake = plain_wake,
    .handles = weir__members_count,
    .drain = weir__members_drain,
    .end = plain_end,
};
