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
#include "executor/schedule.h"
#include "executor/timer.h"
#include "os/futex.h"
#include "os/virtual_os.h"

#define TURN_TASKS_MAX 65536 /* bounds a turn when the clock does not advance */
#define PROBE_EVERY 64       /* submissions of a thread */
#define CATCH_UP_BATCH 128   /* a consumer that takes fewer tasks at a time ... */
#define CATCH_UP_PAUSES 40   /* ... pauses this often */

#define THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

#define INLINE inline __attribute__((always_inline)) /* makes the path of a task one function */
#define COLD __attribute__((noinline, cold))

_Thread_local weir_executor *weir__current;
_Thread_local unsigned weir__loop_depth;
static THREAD_LOCAL unsigned submissions;
_Thread_local uintptr_t weir__fiber;

weir_executor *weir_executor_current(void)
{
    return weir__immediate_is_running() ? weir_executor_immediate() : weir__current;
}

bool weir_in_executor(const weir_executor *executor)
{
    return weir__in_executor(executor);
}

/* ---- submitting ---- */

void weir__executor_wake(weir_executor *executor)
{
    if (atomic_load_explicit(&executor->next_wakeup, memory_order_seq_cst) == WEIR__AWAKE)
        return;
    if (atomic_exchange_explicit(&executor->next_wakeup, WEIR__AWAKE, memory_order_seq_cst) ==
        WEIR__AWAKE)
        return;
    atomic_fetch_add_explicit(&executor->wakeups_made, 1, memory_order_relaxed);
    executor->type->wake(executor);
}

static void take_queue(weir_executor *executor)
{
    uint64_t count = weir__queue_take(&executor->queue, &executor->turn.ready);

    executor->turn.last_taken = count;
    weir__counter_add(executor->stats.taken, count);
    weir__counter_add(executor->stats.submitted, count);
}

/*
 * The queue was closed: the executor has no queue, has to be started, or accepts no more tasks. A
 * started thread may already sleep when the task is pushed: wake it even for a lazy task.
 */
static int post_to_closed(weir_executor *executor, weir_task *task)
{
    int err;

    if (executor->type->run_inline != NULL) {
        executor->type->run_inline(executor, task);
        return 0;
    }
    do {
        err = weir__executor_open(executor);
        if (err < 0)
            return err;
    } while (!weir__queue_push(&executor->queue, &task->node));
    weir__executor_wake(executor);
    return 0;
}

static void append(weir_executor *executor, weir_task *task)
{
    weir__chain_append(&executor->turn.ready, &task->node);
    weir__counter_add(executor->stats.taken, 1);
}

/* Queues a task that post_now has left. */
static COLD int post_otherwise(weir_executor *executor, weir_task *task)
{
    if (!weir__executor_is_consumer(executor))
        return post_to_closed(executor, task);
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    take_queue(executor);
    append(executor, task);
    return 0;
}

/* Queues a task. Returns false, without effect, in the cases of post_otherwise. */
static INLINE bool post_now(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    if (weir__executor_is_consumer(executor)) {
        if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN ||
            !weir__queue_is_empty(&executor->queue))
            return false;
        append(executor, task);
        return true;
    }
    if (!weir__queue_push(&executor->queue, &task->node))
        return false;
    if (when_ns < atomic_load_explicit(&executor->next_wakeup, memory_order_seq_cst))
        weir__executor_wake(executor);
    return true;
}

static INLINE int post(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    return post_now(executor, task, when_ns) ? 0 : post_otherwise(executor, task);
}

int weir__executor_post(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    return post(executor, task, when_ns);
}

/* Sends the probe ahead of a task, unless it is in flight. Acquire pairs with the release in
 * on_probe. */
static COLD void send_probe(weir_executor *executor)
{
    int64_t none = 0, now_ns;

    if (executor->type->run_inline != NULL ||
        weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return;
    now_ns = weir__executor_now(executor) + 1;
    if (!atomic_compare_exchange_strong_explicit(&executor->probe.submitted_ns, &none, now_ns,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    executor->probe.from_outside = !weir__executor_is_consumer(executor);
    if (weir__executor_post(executor, &executor->probe.task, WEIR__LAZY) < 0)
        atomic_store_explicit(&executor->probe.submitted_ns, 0, memory_order_release);
}

/* Compare and exchange, so that the bound is never exceeded. */
static COLD int admit(weir_executor *executor, weir_task *task)
{
    int64_t count = atomic_load_explicit(&executor->admitted, memory_order_relaxed);

    do {
        if (count >= executor->options.max_pending)
            return WEIR_EFULL;
    } while (!atomic_compare_exchange_weak_explicit(&executor->admitted, &count, count + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    task->reserved |= WEIR__TASK_ADMITTED;
    return 0;
}

static COLD void unadmit(weir_executor *executor, weir_task *task)
{
    if ((task->reserved & WEIR__TASK_ADMITTED) == 0)
        return;
    task->reserved &= ~WEIR__TASK_ADMITTED;
    atomic_fetch_sub_explicit(&executor->admitted, 1, memory_order_relaxed);
}

/* Counts a submission. Returns true if it is neither bounded nor has to send the probe. */
static INLINE bool count_submission(const weir_executor *executor)
{
    return ++submissions % PROBE_EVERY != 0 && executor->options.max_pending == 0;
}

/* The submission was counted. */
static COLD int submit(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    bool bounded = executor->options.max_pending > 0;
    int err;

    if (bounded && admit(executor, task) < 0)
        return WEIR_EFULL;
    if (submissions % PROBE_EVERY == 0 && when_ns == WEIR__NOW)
        send_probe(executor);
    err = post(executor, task, when_ns);
    if (err < 0 && bounded)
        unadmit(executor, task);
    return err;
}

static COLD int rejected(weir_executor *executor, weir_task_fn *fn, void *arg, int err)
{
    if (err != WEIR_EFULL && err != WEIR_EREJECTED)
        return err;
    return executor->options.rejected(executor, fn, arg, err, executor->options.rejected_data);
}

static COLD int execute_unusual(weir_executor *executor, weir_task_fn *fn, void *arg,
                                int64_t when_ns)
{
    weir_task *task = weir__task_alloc(fn, arg);
    int err = task != NULL ? submit(executor, task, when_ns) : -ENOMEM;

    if (task != NULL && err < 0)
        weir__task_free_own(task);
    return err;
}

int weir__executor_try_execute(weir_executor *executor, weir_task_fn *fn, void *arg,
                               int64_t when_ns)
{
    (void)count_submission(executor);
    return execute_unusual(executor, fn, arg, when_ns);
}

static COLD int execute_or_reject(weir_executor *executor, weir_task_fn *fn, void *arg,
                                  int64_t when_ns)
{
    int err = execute_unusual(executor, fn, arg, when_ns);

    return err < 0 ? rejected(executor, fn, arg, err) : 0;
}

static COLD int post_or_reject(weir_executor *executor, weir_task *task)
{
    weir_task_fn *fn = task->fn;
    void *arg = task->arg;
    int err = post_otherwise(executor, task);

    if (err == 0)
        return 0;
    if (task->reserved != 0)
        weir__task_free_own(task);
    return rejected(executor, fn, arg, err);
}

static COLD int submit_or_reject(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    int err = submit(executor, task, when_ns);

    return err < 0 ? rejected(executor, task->fn, task->arg, err) : 0;
}

/* The usual way calls nothing that returns here, so that it saves no registers. */
static INLINE int execute(weir_executor *executor, weir_task_fn *fn, void *arg, int64_t when_ns)
{
    weir_task *task;

    if (executor == NULL || fn == NULL)
        return -EINVAL;
    if (!count_submission(executor) || !weir__task_is_at_hand())
        return execute_or_reject(executor, fn, arg, when_ns);
    task = weir__task_take(weir__task_pool_own, fn, arg);
    return post_now(executor, task, when_ns) ? 0 : post_or_reject(executor, task);
}

static INLINE int execute_task(weir_executor *executor, weir_task *task, int64_t when_ns)
{
    if (executor == NULL || task == NULL || task->fn == NULL)
        return -EINVAL;
    task->reserved = 0;
    if (!count_submission(executor))
        return submit_or_reject(executor, task, when_ns);
    return post_now(executor, task, when_ns) ? 0 : post_or_reject(executor, task);
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
    return execute_task(executor, task, WEIR__NOW);
}

int weir_execute_task_lazy(weir_executor *executor, weir_task *task)
{
    return execute_task(executor, task, WEIR__LAZY);
}

/* ---- the turn ---- */

static COLD void count_flagged(weir_executor *executor, weir_task *task, int status)
{
    if ((task->reserved & WEIR__TASK_UNCOUNTED) == 0)
        weir__executor_stats_count_call(executor, status);
    unadmit(executor, task);
}

static INLINE void call(weir_executor *executor, weir_task *task, int status)
{
    weir_task_fn *fn = task->fn;
    void *arg = task->arg;

    weir__counter_add(executor->stats.popped, 1);
    if ((task->reserved & WEIR__TASK_FLAGS) != 0)
        count_flagged(executor, task, status);
    else
        weir__executor_stats_count_call(executor, status);
    if (task->reserved > WEIR__TASK_FLAGS)
        weir__task_free(&executor->turn.returns, task);
    fn(arg, status); /* the task may be freed from here on */
}

/*
 * A consumer that keeps up with its producers takes one or two tasks at a time and competes with
 * them for the cache line of the newest task. So if it has just taken a few and finds more, it
 * pauses briefly and then takes many. A consumer that finds none goes to sleep at once.
 */
static weir_task *next_task(weir_executor *executor)
{
    weir_queue_node *node = weir__chain_pop(&executor->turn.ready);

    if (node == NULL && !weir__queue_is_empty(&executor->queue)) {
        if (executor->turn.last_taken > 0 && executor->turn.last_taken < CATCH_UP_BATCH)
            for (int i = 0; i < CATCH_UP_PAUSES; i++)
                weir__cpu_relax();
        take_queue(executor);
        node = weir__chain_pop(&executor->turn.ready);
    }
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

/*
 * The time of a shutdown is over, which may have begun in this turn. `timeout_at_ns` is set before
 * the state, and not changed afterwards.
 */
static INLINE bool is_past_timeout(weir_executor *executor)
{
    return weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTTING_DOWN &&
           update_time(executor) >= executor->lifecycle.timeout_at_ns;
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
            weir__executor_stats_count_call(executor, 0);
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

static void run_tasks(weir_executor *executor, int64_t budget_ns)
{
    int64_t end_ns = weir__deadline(executor->turn.now_ns, budget_ns);
    unsigned batch = executor->turn.batch, count, total = 0;

    do {
        count = run_due_timers(executor, batch);
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

/* ---- tail tasks ---- */

int weir__executor_post_after_turn(weir_executor *executor, weir_task *task)
{
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    weir__chain_append(&executor->turn.tail, &task->node);
    weir__counter_add(executor->stats.taken, 1);
    return 0;
}

int weir__executor_post_first(weir_executor *executor, weir_task *task)
{
    weir__chain front = {&task->node, &task->node};

    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    weir__chain_prepend(&executor->turn.ready, &front);
    weir__counter_add(executor->stats.taken, 1);
    return 0;
}

void weir__executor_mark(weir_executor *executor, const void *owner)
{
    if (!weir__queue_is_empty(&executor->queue))
        take_queue(executor);
    executor->turn.mark.last =
        executor->turn.ready.first != NULL ? executor->turn.ready.last : NULL;
    executor->turn.mark.owner = owner;
}

int weir__executor_post_at_mark(weir_executor *executor, weir_task *task, const void *owner)
{
    weir_queue_node *last = executor->turn.mark.last;

    if (executor->turn.mark.owner != owner || last == NULL)
        return weir__executor_post_first(executor, task);
    if (weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    executor->turn.mark.owner = NULL;
    task->node.next = last->next;
    last->next = &task->node;
    if (executor->turn.ready.last == last)
        executor->turn.ready.last = &task->node;
    weir__counter_add(executor->stats.taken, 1);
    return 0;
}

/* Appends the carried task to the tail. */
static void on_tail_carrier(void *arg, int status)
{
    weir_executor *executor = weir__current;
    weir_task *task = arg;

    weir__counter_add(executor->stats.taken, 1);
    if (status < 0)
        call(executor, task, status);
    else
        weir__chain_append(&executor->turn.tail, &task->node);
}

/* Queues a tail task from another thread: an uncounted task carries it to the tail. */
static int carry_to_tail(weir_executor *executor, weir_task *task)
{
    weir_task *carrier = weir__task_alloc(on_tail_carrier, task);
    int err;

    if (carrier == NULL)
        return -ENOMEM;
    carrier->reserved |= WEIR__TASK_UNCOUNTED;
    err = post(executor, carrier, WEIR__NOW);
    if (err < 0)
        weir__task_free_own(carrier);
    return err;
}

static int submit_tail(weir_executor *executor, weir_task *task)
{
    bool bounded = executor->options.max_pending > 0;
    int err;

    if (bounded && admit(executor, task) < 0)
        return WEIR_EFULL;
    if (weir__executor_is_consumer(executor))
        err = weir__executor_post_after_turn(executor, task);
    else
        err = carry_to_tail(executor, task);
    if (err < 0 && bounded)
        unadmit(executor, task);
    return err;
}

int weir_execute_after_turn(weir_executor *executor, weir_task_fn *fn, void *arg)
{
    weir_task *task;
    int err;

    if (executor == NULL || fn == NULL)
        return -EINVAL;
    if (executor->type->run_inline != NULL)
        return -ENOTSUP;
    task = weir__task_alloc(fn, arg);
    if (task == NULL)
        return -ENOMEM;
    err = submit_tail(executor, task);
    if (err == 0)
        return 0;
    weir__task_free_own(task);
    return rejected(executor, fn, arg, err);
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
