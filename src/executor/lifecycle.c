/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor's life: its states, its threads, its end.
 *
 *      from                      to              by                        the queue then
 *      -                         NOT_STARTED     weir__executor_init       closed
 *      NOT_STARTED, SUSPENDED    STARTED         weir__executor_open       open
 *      NOT_STARTED               SUSPENDED       weir_executor_suspend     closed
 *      STARTED                   SUSPENDING      weir_executor_suspend     open
 *      SUSPENDING                SUSPENDED       try_suspend               closed, if empty
 *      STARTED                   SUSPENDED       try_suspend (idle_ns)     closed, if empty
 *      STARTED, SUSPENDING       SHUTTING_DOWN   weir_executor_shutdown    open
 *      SHUTTING_DOWN             SHUTDOWN        finish                    closed
 *      STARTED                   SHUTDOWN        finish (begin failed)     closed
 *      NOT_STARTED, SUSPENDED    SHUTDOWN        weir_executor_shutdown    closed
 *      any of a manual one       SHUTDOWN        cancel_everything         closed
 *      SHUTDOWN                  TERMINATED      weir__executor_terminate        closed
 *
 * Invariants:
 *   - The state changes only under lifecycle.lock; it is read without.
 *   - The queue is open in STARTED, SUSPENDING and SHUTTING_DOWN, and closed otherwise; both change
 *     in the same critical section. So a push that fails finds the reason under the lock, and a
 *     submission that is refused was never in the queue.
 *   - An executor has at most one thread that touches it: a thread that suspends has let go of it
 *     when it leaves the critical section, and only then another is started.
 */
#include "executor/executor.h"

#include <errno.h>
#include <stdio.h>

#include <weir/error.h>
#include <weir/thread.h>
#include <weir/timer.h>

#include "base/log.h"
#include "base/memory.h"
#include "executor/promise.h"
#include "executor/shutdown_grace.h"
#include "os/pages.h"

#define STEP_NS weir_ms(100)   /* a thread that shuts down looks for lazy tasks this often */
#define PARTING_NS weir_ms(50) /* what was aborted may take so long, before the watch strikes */

_Atomic int64_t weir__shutdown_grace_ns = 100000000;

static void lock(weir_executor *executor)
{
    weir__mutex_lock(&executor->lifecycle.lock);
}

static void unlock(weir_executor *executor)
{
    weir__mutex_unlock(&executor->lifecycle.lock);
}

static void set_state(weir_executor *executor, enum weir_executor_state state)
{
    atomic_store_explicit(&executor->state, (uint32_t)state, memory_order_seq_cst);
}

/* ---- creation and the last reference ---- */

static void on_clock_moved(weir_clock_observer *observer)
{
    weir_executor *executor = WEIR_CONTAINER_OF(observer, weir_executor, observer);
    int64_t next_ns = atomic_load_explicit(&executor->next_wakeup, memory_order_seq_cst);

    if (next_ns != WEIR__AWAKE && weir__executor_now(executor) >= next_ns)
        weir__executor_wake(executor);
}

static void on_probe(void *arg, int status)
{
    weir_executor *executor = arg;
    int64_t since_ns = atomic_load_explicit(&executor->probe.submitted_ns, memory_order_relaxed);

    if (status == 0)
        weir__histogram_record(&executor->stats.queue_latency,
                               weir__executor_now(executor) + 1 - since_ns);
    if (executor->probe.from_outside)
        weir__counter_add(executor->stats.submitted, (uint64_t)-1); /* not one of the user's */
    atomic_store_explicit(&executor->probe.submitted_ns, 0, memory_order_release);
}

void weir__executor_init(weir_executor *executor, const weir__executor_type *type,
                         const weir__executor_options *options)
{
    executor->type = type;
    executor->options = *options;
    executor->options.name = executor->name;
    (void)snprintf(executor->name, sizeof(executor->name), "%s", options->name);
    atomic_init(&executor->state, WEIR_EXECUTOR_NOT_STARTED);
    weir__queue_init(&executor->queue);
    atomic_init(&executor->next_wakeup, WEIR__AWAKE);
    executor->turn.now_ns = weir__executor_now(executor);
    executor->turn.batch = 64;
    weir_task_init(&executor->probe.task, on_probe, executor);
    executor->probe.task.reserved = WEIR__TASK_UNCOUNTED;
    weir__mutex_init(&executor->lifecycle.lock);
    weir__list_init(&executor->lifecycle.hooks);
    weir__members_init(&executor->members);
    executor->lifecycle.next_check_ns = WEIR_NEVER;
    executor->observer.moved = on_clock_moved;
    weir__refs_init(&executor->refs);
    atomic_init(&executor->users, 1);
    weir__timers_init(&executor->timers, executor->turn.now_ns);
    weir__histogram_init(&executor->stats.queue_latency);
    weir__histogram_init(&executor->stats.run_time);
    weir__counter_shard_open(&executor->shard);
}

static weir_executor *alloc_memory(const weir__executor_type *type, bool in_pages)
{
    return in_pages ? weir__pages_map(weir__pages_round(type->size))
                    : weir__aligned_zalloc(alignof(weir_executor), type->size);
}

/* Undoes weir__executor_init. */
static void free_memory(weir_executor *executor)
{
    weir__counter_shard_close(&executor->shard);
    weir__mutex_deinit(&executor->lifecycle.lock);
    if (executor->options.in_pages)
        weir__pages_unmap(executor, weir__pages_round(executor->type->size));
    else
        weir__aligned_free(executor);
}

/* Only compares the address: who asks may hold the promise alone, and the executor be gone. */
static bool is_current(const void *executor)
{
    return weir__current == executor;
}

int weir__executor_create(const weir__executor_type *type, const weir__executor_options *options,
                          weir_executor **ret_executor)
{
    weir_executor *executor = alloc_memory(type, options->in_pages);
    int err;

    if (executor == NULL)
        return -ENOMEM;
    weir__executor_init(executor, type, options);
    err = weir_promise_create(NULL, &executor->lifecycle.termination);
    if (err < 0)
        goto fail;
    weir__promise_set_guard(executor->lifecycle.termination, is_current, executor);
    err = weir__executor_stats_init(executor);
    if (err < 0)
        goto fail_termination;
    err = type->create != NULL ? type->create(executor) : 0;
    if (err < 0)
        goto fail_stats;
    executor->options.kind = NULL;
    weir__clock_subscribe(executor->options.clock, &executor->observer);
    *ret_executor = executor;
    return 0;

fail_stats:
    weir__executor_stats_deinit(executor);
fail_termination:
    weir_promise_release(executor->lifecycle.termination);
fail:
    free_memory(executor);
    return err;
}

void weir__executor_weak_retain(weir_executor *executor)
{
    weir__refs_retain(&executor->refs);
}

weir_executor *weir_executor_retain(weir_executor *executor)
{
    atomic_fetch_add_explicit(&executor->users, 1, memory_order_relaxed);
    weir__executor_weak_retain(executor);
    return executor;
}

void weir__executor_stop_type(weir_executor *executor)
{
    if (executor->type->end != NULL)
        executor->type->end(executor);
}

/*
 * Only an executor without a thread can be released for good while it has work: a manual one. Its
 * work may hold its memory, so this comes with the last user, not with the last reference.
 */
static void cancel_everything(weir_executor *executor)
{
    weir_executor *before = weir__executor_enter(executor);

    lock(executor);
    set_state(executor, WEIR_EXECUTOR_SHUTDOWN);
    (void)weir__queue_close(&executor->queue, &executor->turn.ready);
    unlock(executor);
    weir__executor_run_hooks(executor, true);
    weir__executor_cancel_timers(executor);
    (void)weir__executor_drain(executor, WEIR_ECANCELED);
    weir__executor_stop_type(executor);
    weir__executor_leave(executor, before);
}

/* Its hooks have run by now, whichever way it ended. */
static void destroy(weir_executor *executor)
{
    if (weir__executor_state(executor) < WEIR_EXECUTOR_SHUTDOWN)
        cancel_everything(executor);
    if (weir__executor_state(executor) < WEIR_EXECUTOR_TERMINATED) {
        weir__executor_stats_deinit(executor);
        weir__clock_unsubscribe(executor->options.clock, &executor->observer);
    }
    if (executor->type->destroy != NULL)
        executor->type->destroy(executor);
    (void)weir_promise_fail(executor->lifecycle.termination, WEIR_EABANDONED, NULL);
    weir_promise_release(executor->lifecycle.termination);
    weir__executor_threads_abandon(executor->lifecycle.threads);
    weir__leases_remove(executor);
    free_memory(executor);
}

void weir__executor_weak_release(weir_executor *executor)
{
    if (weir__refs_release(&executor->refs))
        destroy(executor);
}

void weir_executor_release(weir_executor *executor)
{
    if (executor == NULL)
        return;
    WEIR__ASSERT_HELD(atomic_load_explicit(&executor->users, memory_order_relaxed) > 0,
                      "weir_executor_release: the executor was released more often than retained");
    if (atomic_fetch_sub_explicit(&executor->users, 1, memory_order_acq_rel) == 1 &&
        executor->type->threadless && weir__executor_state(executor) < WEIR_EXECUTOR_SHUTDOWN) {
        cancel_everything(executor);
        weir__executor_terminate(executor, WEIR_EABANDONED);
    }
    weir__executor_weak_release(executor);
}

/* The caller's and the group's: each lets somebody use it, and each keeps the memory. Relaxed: the
 * caller comes after all that its own thread did, and what others do is not relied upon. */
bool weir__executor_is_unreferenced(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->users, memory_order_relaxed) == 2 &&
           atomic_load_explicit(&executor->refs.count, memory_order_relaxed) == 2;
}

const char *weir_executor_name(const weir_executor *executor)
{
    return executor->name;
}

enum weir_executor_state weir_executor_state(const weir_executor *executor)
{
    return (enum weir_executor_state)weir__executor_state(executor);
}

weir_promise *weir_executor_termination(weir_executor *executor)
{
    return executor->lifecycle.termination;
}

int weir_executor_await_termination(weir_executor *executor, int64_t timeout_ns)
{
    if (executor->options.permanent)
        return -EPERM;
    if (weir_in_executor(executor) && !weir_promise_is_done(executor->lifecycle.termination))
        return -EDEADLK;
    return weir_promise_sync(executor->lifecycle.termination, timeout_ns);
}

/* ---- the end ---- */

/* Tells who waits for the end, once: the thread itself, or the watch that gave it up. */
static void report_end(weir_executor *executor, int err, const char *detail)
{
    if (atomic_exchange_explicit(&executor->lifecycle.reported, true, memory_order_acq_rel))
        return;
    if (err < 0)
        (void)weir_promise_fail(executor->lifecycle.termination, err, detail);
    else
        (void)weir_promise_succeed(executor->lifecycle.termination, NULL);
    if (executor->options.on_terminated != NULL)
        executor->options.on_terminated(executor, err, executor->options.on_terminated_arg);
}

static void on_watch(void *arg, int status)
{
    weir_executor *executor = arg;

    if (status == 0 && weir__executor_state(executor) < WEIR_EXECUTOR_TERMINATED) {
        weir__error("executor", executor->name,
                    "its thread has not come back by the deadline of the shutdown; "
                    "it is left alone, and so is its memory");
        report_end(executor, -ETIMEDOUT, "a thread did not come back by the deadline");
    }
    weir_executor_release(executor);
}

/* Under the lock, so that the thread cannot end before there is a watch to cancel. */
static int set_watch(weir_executor *executor, int64_t timeout_ns)
{
    int64_t late_ns;
    int err;

    if (timeout_ns == WEIR_NEVER || executor->options.clock->manual || executor->type->threadless)
        return 0;
    weir_executor_retain(executor);
    late_ns = weir__deadline(timeout_ns,
                             atomic_load_explicit(&weir__shutdown_grace_ns, memory_order_relaxed));
    err = weir_schedule(weir_executor_global(), late_ns, on_watch, executor,
                        &executor->lifecycle.watchdog);
    if (err < 0)
        weir_executor_release(executor);
    return err;
}

static void cancel_watch(weir_executor *executor)
{
    weir_promise *watch;

    lock(executor);
    watch = executor->lifecycle.watchdog;
    executor->lifecycle.watchdog = NULL;
    unlock(executor);
    if (watch == NULL)
        return;
    (void)weir_promise_cancel(watch);
    weir__executor_wake(weir_executor_global()); /* or it would keep us until the deadline */
    weir_promise_release(watch);
}

void weir__executor_terminate(weir_executor *executor, int err)
{
    /* Its clock may go now: a promise can keep an executor for longer than anybody knows. */
    weir__executor_stats_deinit(executor);
    weir__clock_unsubscribe(executor->options.clock, &executor->observer);
    lock(executor);
    set_state(executor, WEIR_EXECUTOR_TERMINATED);
    unlock(executor);
    cancel_watch(executor);
    report_end(executor, err, NULL);
}

/* Closes the queue and calls what is left in it. */
static void finish(weir_executor *executor, int status)
{
    uint64_t count;

    weir__executor_run_hooks(executor, true);
    lock(executor);
    set_state(executor, WEIR_EXECUTOR_SHUTDOWN);
    count = weir__queue_close(&executor->queue, &executor->turn.ready);
    unlock(executor);
    weir__counter_add(executor->stats.taken, count);
    weir__counter_add(executor->stats.submitted, count);

    count = weir__executor_drain(executor, status);
    if (status < 0 && count > 0)
        weir__warn("executor", executor->name, "%llu tasks were cancelled at shutdown",
                   (unsigned long long)count);
    weir__executor_cancel_timers(executor);
}

/* What was run counts, what was cancelled does not. */
static void note_activity(weir_executor *executor, int64_t now_ns)
{
    uint64_t run = atomic_load_explicit(&executor->stats.run, memory_order_relaxed);

    if (run == executor->lifecycle.last_run)
        return;
    executor->lifecycle.last_run = run;
    executor->lifecycle.last_task_ns = now_ns;
}

static bool is_quiet(weir_executor *executor, int64_t now_ns)
{
    int64_t since_ns = executor->lifecycle.last_task_ns, over_ns, step_ns;

    if (since_ns < executor->lifecycle.quiet_from_ns)
        since_ns = executor->lifecycle.quiet_from_ns;
    over_ns = weir__deadline(since_ns, executor->lifecycle.quiet_ns);
    if (now_ns >= over_ns)
        return true;
    step_ns = weir__deadline(now_ns, STEP_NS);
    if (step_ns > over_ns)
        step_ns = over_ns;
    executor->lifecycle.next_check_ns =
        step_ns < executor->lifecycle.timeout_at_ns ? step_ns : executor->lifecycle.timeout_at_ns;
    return false;
}

/*
 * What the kind has open goes first, with timers and tasks still running: a protocol's last words
 * take both. What is still there when only the quiet period is left is aborted: that is done by
 * tasks, too, so where there is no quiet period they get a moment. Then nothing is waited for.
 */
static bool is_drained(weir_executor *executor, int64_t now_ns)
{
    int64_t timeout_at_ns = executor->lifecycle.timeout_at_ns, abort_at_ns = timeout_at_ns;
    int64_t over_at_ns = weir__deadline(timeout_at_ns, PARTING_NS);

    if (executor->lifecycle.drained || executor->type->drain == NULL)
        return true;
    if (timeout_at_ns < WEIR_NEVER)
        abort_at_ns -= executor->lifecycle.quiet_ns;
    if (executor->type->drain(executor, now_ns >= abort_at_ns) || now_ns >= over_at_ns) {
        executor->lifecycle.drained = true;
        executor->lifecycle.quiet_from_ns = now_ns;
        return true;
    }
    executor->lifecycle.next_check_ns = now_ns < abort_at_ns ? abort_at_ns : over_at_ns;
    return false;
}

static bool shutdown_is_over(weir_executor *executor)
{
    int64_t now_ns = weir__executor_now(executor);

    note_activity(executor, now_ns);
    if (!is_drained(executor, now_ns))
        return false;
    weir__executor_cancel_timers(executor);
    if (now_ns >= executor->lifecycle.timeout_at_ns && weir__executor_has_tasks(executor)) {
        finish(executor, WEIR_ECANCELED);
        return true;
    }
    if (weir__executor_has_tasks(executor))
        return false;
    if (now_ns < executor->lifecycle.timeout_at_ns && !is_quiet(executor, now_ns))
        return false;
    weir__executor_run_hooks(executor, false);
    if (weir__executor_has_tasks(executor))
        return false; /* the hooks left work */
    finish(executor, 0);
    return true;
}

/* Nobody else will: no thread was ever started, or the last one is suspended. */
static void end_without_thread(weir_executor *executor)
{
    weir_executor *before = weir__executor_enter(executor);

    weir__executor_run_hooks(executor, true);
    weir__executor_leave(executor, before);
    weir__executor_terminate(executor, 0);
}

int weir_executor_shutdown(weir_executor *executor, int64_t quiet_ns, int64_t timeout_ns)
{
    uint32_t state;
    int unwatched = 0;

    if (executor == NULL || quiet_ns < 0 || timeout_ns < quiet_ns)
        return -EINVAL;
    if (executor->options.permanent)
        return -EPERM;

    weir__executor_weak_retain(
        executor); /* a hook, or a listener of its end, may release it meanwhile */
    lock(executor);
    state = weir__executor_state(executor);
    if (state < WEIR_EXECUTOR_SHUTTING_DOWN) {
        executor->lifecycle.quiet_from_ns = weir__executor_now(executor);
        executor->lifecycle.quiet_ns = quiet_ns;
        executor->lifecycle.timeout_at_ns =
            weir__deadline(executor->lifecycle.quiet_from_ns, timeout_ns);
    }
    if (state == WEIR_EXECUTOR_STARTED || state == WEIR_EXECUTOR_SUSPENDING) {
        unwatched = set_watch(executor, timeout_ns);
        set_state(executor, WEIR_EXECUTOR_SHUTTING_DOWN);
    } else if (state < WEIR_EXECUTOR_SHUTTING_DOWN) {
        set_state(executor, WEIR_EXECUTOR_SHUTDOWN);
    }
    unlock(executor);

    if (unwatched < 0)
        weir__warn("executor", executor->name, "nobody watches over its shutdown's deadline: %s",
                   weir_error_text(unwatched));
    if (state == WEIR_EXECUTOR_NOT_STARTED || state == WEIR_EXECUTOR_SUSPENDED)
        end_without_thread(executor);
    else
        weir__executor_wake(executor);
    weir__executor_weak_release(executor);
    return 0;
}

/* ---- suspension ---- */

int weir_executor_suspend(weir_executor *executor)
{
    uint32_t state;

    if (executor == NULL)
        return -EINVAL;
    if (executor->type->threadless)
        return -ENOTSUP;
    lock(executor);
    state = weir__executor_state(executor);
    if (state == WEIR_EXECUTOR_NOT_STARTED)
        set_state(executor, WEIR_EXECUTOR_SUSPENDED);
    else if (state == WEIR_EXECUTOR_STARTED)
        set_state(executor, WEIR_EXECUTOR_SUSPENDING);
    unlock(executor);
    if (state >= WEIR_EXECUTOR_SHUTTING_DOWN)
        return WEIR_EREJECTED;
    weir__executor_wake(executor);
    return 0;
}

/* From here on this thread is a stranger to the executor. */
static void let_go(weir_executor *executor)
{
    weir__executor_stats_asleep(executor);
    atomic_store_explicit(&executor->owner, NULL, memory_order_relaxed);
    weir__executor_leave(executor, NULL);
}

static _Thread_local bool has_idled; /* of a thread that has suspended its executor: by itself */

static bool try_suspend(weir_executor *executor)
{
    bool suspended = false;

    if (weir__executor_has_tasks(executor) || weir__timers_count(&executor->timers) > 0)
        return false;
    if (weir__executor_handles(executor) > 0)
        return false;

    lock(executor);
    if (weir__executor_state(executor) == executor->turn.state &&
        weir__queue_close_if_empty(&executor->queue)) {
        has_idled = executor->turn.state == WEIR_EXECUTOR_STARTED;
        weir__executor_stop_type(executor);
        let_go(executor);
        set_state(executor, WEIR_EXECUTOR_SUSPENDED);
        suspended = true;
    }
    unlock(executor);
    return suspended;
}

/* Who has something open does not idle, however long nothing happens. */
static bool has_idled_enough(weir_executor *executor)
{
    if (executor->options.idle_ns == WEIR_NEVER)
        return false;
    if (weir__executor_handles(executor) > 0)
        executor->lifecycle.last_task_ns = executor->turn.now_ns;
    note_activity(executor, executor->turn.now_ns);
    return executor->turn.now_ns >=
           weir__deadline(executor->lifecycle.last_task_ns, executor->options.idle_ns);
}

bool weir__executor_update_state(weir_executor *executor)
{
    executor->turn.state = weir__executor_state(executor);
    switch (executor->turn.state) {
    case WEIR_EXECUTOR_STARTED:
        return has_idled_enough(executor) && try_suspend(executor);
    case WEIR_EXECUTOR_SUSPENDING:
        return try_suspend(executor);
    case WEIR_EXECUTOR_SHUTTING_DOWN:
        return shutdown_is_over(executor);
    default:
        return true;
    }
}

int64_t weir__executor_next_check(const weir_executor *executor)
{
    if (executor->turn.state == WEIR_EXECUTOR_SHUTTING_DOWN)
        return executor->lifecycle.next_check_ns;
    if (executor->options.idle_ns != WEIR_NEVER && weir__timers_count(&executor->timers) == 0 &&
        weir__executor_handles(executor) == 0)
        return weir__deadline(executor->lifecycle.last_task_ns, executor->options.idle_ns);
    return WEIR_NEVER;
}

/* ---- the thread ---- */

static int begin(weir_executor *executor)
{
    weir_thread_properties *thread = &executor->lifecycle.thread;

    lock(executor); /* whoever started us is through now */
    unlock(executor);
    (void)weir__executor_enter(executor);
    atomic_store_explicit(&executor->owner, &weir__self, memory_order_relaxed);
    executor->turn.state = WEIR_EXECUTOR_STARTED;
    executor->turn.now_ns = weir__executor_now(executor);
    executor->lifecycle.last_task_ns = executor->turn.now_ns;
    weir__executor_stats_awake(executor);

    (void)snprintf(thread->name, sizeof(thread->name), "%s", executor->name);
    thread->id = weir__thread_id();
    thread->cpu = executor->options.cpu;
    if (thread->cpu >= 0 && weir__thread_set_affinity(thread->cpu) < 0) {
        weir__warn("executor", executor->name, "cannot be pinned to CPU %d", thread->cpu);
        thread->cpu = -1;
    }
    return executor->type->begin != NULL ? executor->type->begin(executor) : 0;
}

/* Until it ends: true; or until it is suspended: false, and another thread may have it by now. */
static bool run(weir_executor *executor)
{
    do {
        weir__executor_turn(executor, weir__executor_next_check(executor), WEIR__TYPE_BUDGET);
    } while (!weir__executor_update_state(executor));
    if (weir__current == NULL)
        return false;
    weir__executor_stop_type(executor);
    return true;
}

static void tell_idle(weir_executor *executor)
{
    if (has_idled && executor->options.on_idle != NULL)
        executor->options.on_idle(executor, executor->options.on_idle_arg);
}

static void thread_main(void *arg)
{
    weir_executor *executor = arg;
    bool ends = true;
    int err = begin(executor);

    if (err < 0) {
        weir__error("executor", executor->name, "cannot run: %s", weir_error_text(err));
        finish(executor, WEIR_ECANCELED);
    } else {
        ends = run(executor);
    }
    weir_locals_remove_all(); /* of an executor that ends, still as its thread */
    if (ends) {
        let_go(executor);
        weir__executor_terminate(executor, err);
    } else {
        tell_idle(executor);
    }
    weir_executor_release(executor);
}

static int start_thread(weir_executor *executor)
{
    const weir_thread_factory *factory = &executor->options.thread_factory;
    weir__executor_thread *worker;
    int err;

    weir__executor_threads_reap(&executor->lifecycle.threads);
    weir_executor_retain(executor); /* the thread's */
    err = weir__executor_thread_start(factory->start != NULL ? factory : NULL, executor->name,
                                      thread_main, executor, &worker);
    if (err < 0) {
        weir_executor_release(executor);
        return err;
    }
    worker->next = executor->lifecycle.threads;
    executor->lifecycle.threads = worker;
    atomic_store_explicit(&executor->next_wakeup, WEIR__AWAKE, memory_order_seq_cst);
    set_state(executor, WEIR_EXECUTOR_STARTED);
    weir__queue_open(&executor->queue);
    return 0;
}

int weir__executor_open(weir_executor *executor)
{
    uint32_t state;
    int err = 0;

    lock(executor);
    state = weir__executor_state(executor);
    if (state == WEIR_EXECUTOR_NOT_STARTED || state == WEIR_EXECUTOR_SUSPENDED)
        err = start_thread(executor);
    unlock(executor);
    if (state >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    if (err < 0)
        weir__error("executor", executor->name, "cannot start its thread: %s",
                    weir_error_text(err));
    return err;
}

weir__executor_thread *weir__executor_take_threads(weir_executor *executor)
{
    weir__executor_thread *workers;

    lock(executor);
    workers = executor->lifecycle.threads;
    executor->lifecycle.threads = NULL;
    unlock(executor);
    return workers;
}

void weir__executor_join(weir_executor *executor)
{
    weir__executor_threads_wait(weir__executor_take_threads(executor), WEIR_NEVER);
}

void weir__executor_join_until(weir_executor *executor, int64_t deadline_ns)
{
    weir__executor_threads_wait(weir__executor_take_threads(executor), deadline_ns);
}

/* No bound and no rejection policy stands between a question and its thread. */
struct question {
    weir_task task;
    weir_promise *answered;
    weir_thread_properties *ret_thread;
};

static void tell_thread(void *arg, int status)
{
    struct question *question = arg;
    weir_promise *answered = question->answered; /* the question is gone when it is complete */

    if (status == 0) {
        *question->ret_thread = weir__current->lifecycle.thread;
        (void)weir_promise_succeed(answered, NULL);
    } else {
        (void)weir_promise_fail(answered, WEIR_EREJECTED, NULL);
    }
    weir_promise_release(answered);
}

static int ask_thread(weir_executor *executor, weir_thread_properties *ret_thread)
{
    struct question question = {.ret_thread = ret_thread};
    int err = weir_promise_create(executor, &question.answered);

    if (err < 0)
        return err;
    weir_task_init(&question.task, tell_thread, &question);
    weir_promise_retain(question.answered); /* the task's */
    err = weir__executor_post(executor, &question.task, WEIR__NOW);
    if (err < 0)
        weir_promise_release(question.answered);
    else
        err = weir_promise_sync(question.answered, WEIR_NEVER);
    weir_promise_release(question.answered);
    return err;
}

int weir_executor_thread(weir_executor *executor, weir_thread_properties *ret_thread)
{
    int err;

    if (executor == NULL || ret_thread == NULL)
        return -EINVAL;
    if (executor->type->threadless)
        return -ENOTSUP;
    if (weir_in_executor(executor)) {
        *ret_thread = executor->lifecycle.thread;
        return 0;
    }
    err = weir__promise_may_wait(NULL);
    return err < 0 ? err : ask_thread(executor, ret_thread);
}
