/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lifecycle of an executor: its states, its threads, its end.
 *
 *      from                      to              by                        the queue then
 *      -                         NOT_STARTED     weir__executor_init       closed
 *      NOT_STARTED, SUSPENDED    STARTED         weir__executor_open       open
 *      NOT_STARTED               SUSPENDED       weir_executor_suspend     closed
 *      STARTED                   SUSPENDING      weir_executor_suspend     open
 *      SUSPENDING                SUSPENDED       try_suspend               closed, if empty
 *      SUSPENDING                STARTED         stay_started              open
 *      STARTED                   SUSPENDED       try_suspend (idle_ns)     closed, if empty
 *      STARTED, SUSPENDING       SHUTTING_DOWN   weir_executor_shutdown    open
 *      SHUTTING_DOWN             SHUTDOWN        close_and_drain           closed
 *      STARTED                   SHUTDOWN        close_and_drain, if       closed
 *                                                begin() failed
 *      NOT_STARTED, SUSPENDED    SHUTDOWN        weir_executor_shutdown    closed
 *      any, if manual            SHUTDOWN        cancel_everything         closed
 *      SHUTDOWN                  TERMINATED      weir__executor_terminate  closed
 *
 * Invariants:
 *   - The state changes only under lifecycle.lock; it is read without the lock.
 *   - The queue is open in STARTED, SUSPENDING and SHUTTING_DOWN, and closed otherwise. State and
 *     queue change in the same critical section. So a failed push finds its reason under the lock,
 *     and a rejected task was never in the queue.
 *   - At most one thread accesses an executor: a thread that suspends it has detached itself when
 *     it leaves the critical section, and only then another thread is started.
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
#include "os/pages.h"
#include "os/virtual_os.h"

#define CHECK_NS weir_ms(100) /* how often a thread that shuts down checks for lazy tasks */
#define ABORT_GRACE_NS \
    weir_ms(50) /* time for aborted members to leave, before the watchdog fires */

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
    weir__histogram_init(&executor->stats.turn_time);
    atomic_init(&executor->stats.sample_at, 1);
    weir__counter_shard_open(&executor->shard);
}

/* Undoes weir__executor_init, and frees the memory. */
static void free_memory(weir_executor *executor)
{
    weir__counter_shard_close(&executor->shard);
    weir__mutex_deinit(&executor->lifecycle.lock);
    if (executor->options.in_pages)
        weir__pages_unmap(executor, weir__pages_round(executor->type->size));
    else
        weir__aligned_free(executor, executor->type->size);
}

/* Compares only the address: the promise may outlive the executor. */
static bool is_own_thread(const void *executor)
{
    return weir__current == executor;
}

/* Tasks come from the same allocator. */
static int check_address(const weir_executor *executor, const void *memory)
{
    if (weir__queue_may_hold(memory))
        return 0;
    weir__error("executor", executor->name,
                "memory at %p: addresses with tags (MTE, LAM) or more than 48 bits are not "
                "supported",
                memory);
    return -ENOTSUP;
}

int weir__executor_create(const weir__executor_type *type, const weir__executor_options *options,
                          weir_executor **ret_executor)
{
    weir_executor *executor = options->in_pages
                                  ? weir__pages_map(weir__pages_round(type->size))
                                  : weir__aligned_zalloc(alignof(weir_executor), type->size);
    int err;

    if (executor == NULL)
        return -ENOMEM;
    weir__executor_init(executor, type, options);
    executor->process = weir__process_enter(NULL);
    err = weir_promise_create(NULL, &executor->lifecycle.termination);
    if (err < 0)
        goto fail;
    weir__promise_set_guard(executor->lifecycle.termination, is_own_thread, executor);
    err = check_address(executor, executor->lifecycle.termination);
    if (err < 0)
        goto fail_termination;
    err = weir__executor_stats_init(executor);
    if (err < 0)
        goto fail_termination;
    err = type->create != NULL ? type->create(executor) : 0;
    if (err < 0)
        goto fail_stats;
    executor->options.type_options = NULL;
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
 * Only a manual executor can lose its last user while it has work. Called when the last user
 * releases it, not with the last reference, because queued work may hold weak references.
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

/* The hooks have run by now, however the executor ended. */
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
    weir__executor_leave_group(executor);
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

/* One user is the caller and one the group; each also counts in `refs`. Relaxed: the caller relies
 * only on what its own thread did. "executor" in src/base/refcount.h. */
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

/* Completes the termination once: called by the thread itself, or by the watchdog. */
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

static void on_watchdog(void *arg, int status)
{
    weir_executor *executor = arg;

    if (status == 0 && weir__executor_state(executor) < WEIR_EXECUTOR_TERMINATED) {
        weir__error("executor", executor->name,
                    "its thread has not ended by the deadline of the shutdown; "
                    "the thread and its memory are abandoned");
        report_end(executor, -ETIMEDOUT, "a thread has not ended by the deadline");
    }
    weir_executor_release(executor);
}

/* Called with the lock held, so that the thread cannot end before there is a watchdog to stop. */
static int start_watchdog(weir_executor *executor, int64_t timeout_ns)
{
    int64_t delay_ns;
    int err;

    if (timeout_ns == WEIR_NEVER || executor->options.clock->manual || executor->type->threadless)
        return 0;
    weir_executor_retain(executor);
    delay_ns = weir__deadline(timeout_ns,
                              atomic_load_explicit(&weir__shutdown_grace_ns, memory_order_relaxed));
    err = weir_schedule(weir_executor_global(), delay_ns, on_watchdog, executor,
                        &executor->lifecycle.watchdog);
    if (err < 0)
        weir_executor_release(executor);
    return err;
}

static void stop_watchdog(weir_executor *executor)
{
    weir_promise *watchdog;

    lock(executor);
    watchdog = executor->lifecycle.watchdog;
    executor->lifecycle.watchdog = NULL;
    unlock(executor);
    if (watchdog == NULL)
        return;
    (void)weir_promise_cancel(watchdog);
    weir__executor_wake(
        weir_executor_global()); /* or its task would retain the executor until the deadline */
    weir_promise_release(watchdog);
}

void weir__executor_terminate(weir_executor *executor, int err)
{
    weir__running_loops_remove(executor);
    if (weir__os_is_virtual())
        weir__virtual_os_set->executor_ended(
            executor->name, atomic_load_explicit(&executor->stats.taken, memory_order_relaxed),
            weir__executor_stats_popped(executor));
    /* From here on the clock may be destroyed: weak references may keep the executor for longer. */
    weir__executor_stats_deinit(executor);
    weir__clock_unsubscribe(executor->options.clock, &executor->observer);
    lock(executor);
    set_state(executor, WEIR_EXECUTOR_TERMINATED);
    unlock(executor);
    stop_watchdog(executor);
    report_end(executor, err, NULL);
}

/* Closes the queue and calls the remaining tasks with `status`. */
static void close_and_drain(weir_executor *executor, int status)
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

/* Only tasks that ran count as activity, not cancelled ones. */
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
    step_ns = weir__deadline(now_ns, CHECK_NS);
    if (step_ns > over_ns)
        step_ns = over_ns;
    executor->lifecycle.next_check_ns =
        step_ns < executor->lifecycle.timeout_at_ns ? step_ns : executor->lifecycle.timeout_at_ns;
    return false;
}

/*
 * Members close first, while timers and tasks still run: protocols need both to finish. Members
 * left when only the quiet period remains are aborted. Aborting takes tasks, too, so it gets
 * ABORT_GRACE_NS even without a quiet period.
 */
static bool is_drained(weir_executor *executor, int64_t now_ns)
{
    int64_t timeout_at_ns = executor->lifecycle.timeout_at_ns, abort_at_ns = timeout_at_ns;
    int64_t give_up_at_ns = weir__deadline(timeout_at_ns, ABORT_GRACE_NS);

    if (executor->lifecycle.drained || executor->type->drain == NULL)
        return true;
    if (timeout_at_ns < WEIR_NEVER)
        abort_at_ns -= executor->lifecycle.quiet_ns;
    if (executor->type->drain(executor, now_ns >= abort_at_ns) || now_ns >= give_up_at_ns) {
        executor->lifecycle.drained = true;
        executor->lifecycle.quiet_from_ns = now_ns;
        return true;
    }
    executor->lifecycle.next_check_ns = now_ns < abort_at_ns ? abort_at_ns : give_up_at_ns;
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
        close_and_drain(executor, WEIR_ECANCELED);
        return true;
    }
    if (weir__executor_has_tasks(executor))
        return false;
    if (now_ns < executor->lifecycle.timeout_at_ns && !is_quiet(executor, now_ns))
        return false;
    weir__executor_run_hooks(executor, false);
    if (weir__executor_has_tasks(executor))
        return false; /* the hooks submitted tasks */
    close_and_drain(executor, 0);
    return true;
}

/* Terminates an executor that has no thread: never started, or suspended. */
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
    int watchdog_err = 0;

    if (executor == NULL || quiet_ns < 0 || timeout_ns < quiet_ns)
        return -EINVAL;
    if (executor->options.permanent)
        return -EPERM;

    weir__executor_weak_retain(executor); /* a hook or a listener may release the last reference */
    lock(executor);
    state = weir__executor_state(executor);
    if (state < WEIR_EXECUTOR_SHUTTING_DOWN) {
        executor->lifecycle.quiet_from_ns = weir__executor_now(executor);
        executor->lifecycle.quiet_ns = quiet_ns;
        executor->lifecycle.timeout_at_ns =
            weir__deadline(executor->lifecycle.quiet_from_ns, timeout_ns);
    }
    if (state == WEIR_EXECUTOR_STARTED || state == WEIR_EXECUTOR_SUSPENDING) {
        watchdog_err = start_watchdog(executor, timeout_ns);
        set_state(executor, WEIR_EXECUTOR_SHUTTING_DOWN);
    } else if (state < WEIR_EXECUTOR_SHUTTING_DOWN) {
        set_state(executor, WEIR_EXECUTOR_SHUTDOWN);
    }
    unlock(executor);

    if (watchdog_err < 0)
        weir__warn("executor", executor->name, "no watchdog for the deadline of the shutdown: %s",
                   weir_error_text(watchdog_err));
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

/* From here on this thread must not access the executor's turn. */
static void detach(weir_executor *executor)
{
    weir__executor_stats_asleep(executor);
    atomic_store_explicit(&executor->owner, NULL, memory_order_relaxed);
    weir__executor_leave(executor, NULL);
}

static _Thread_local bool has_idled; /* this thread suspended its executor because it was idle */

/*
 * An executor with timers or handles has to go on, possibly for hours: it is not left SUSPENDING,
 * where a chooser passes it over. Only its own thread adds timers and handles, so there is no time
 * between this check and the suspension in which one can be added.
 */
static bool has_to_go_on(const weir_executor *executor)
{
    return weir__timers_count(&executor->timers) > 0 || weir__executor_handles(executor) > 0;
}

/* A shutdown may have begun meanwhile. */
static void stay_started(weir_executor *executor)
{
    lock(executor);
    if (weir__executor_state(executor) == WEIR_EXECUTOR_SUSPENDING) {
        set_state(executor, WEIR_EXECUTOR_STARTED);
        executor->turn.state = WEIR_EXECUTOR_STARTED;
    }
    unlock(executor);
}

/* Timers and handles come first: an executor that has them may always have tasks, too. */
static bool try_suspend(weir_executor *executor)
{
    bool suspended = false;

    if (has_to_go_on(executor)) {
        if (executor->turn.state == WEIR_EXECUTOR_SUSPENDING)
            stay_started(executor);
        return false;
    }
    if (weir__executor_has_tasks(executor))
        return false;

    lock(executor);
    if (weir__executor_state(executor) == executor->turn.state &&
        weir__queue_close_if_empty(&executor->queue)) {
        has_idled = executor->turn.state == WEIR_EXECUTOR_STARTED;
        weir__running_loops_remove(executor);
        weir__executor_stop_type(executor);
        detach(executor);
        set_state(executor, WEIR_EXECUTOR_SUSPENDED);
        suspended = true;
    }
    unlock(executor);
    return suspended;
}

/* An executor with open handles is never idle. */
static bool idle_time_is_up(weir_executor *executor)
{
    if (executor->options.idle_ns == WEIR_NEVER)
        return false;
    if (weir__executor_handles(executor) > 0)
        executor->lifecycle.last_task_ns = executor->turn.now_ns;
    note_activity(executor, executor->turn.now_ns);
    return executor->turn.now_ns >=
           weir__deadline(executor->lifecycle.last_task_ns, executor->options.idle_ns);
}

bool weir__executor_change_state(weir_executor *executor)
{
    switch (executor->turn.state) {
    case WEIR_EXECUTOR_STARTED:
        return idle_time_is_up(executor) && try_suspend(executor);
    case WEIR_EXECUTOR_SUSPENDING:
        return try_suspend(executor);
    case WEIR_EXECUTOR_SHUTTING_DOWN:
        return shutdown_is_over(executor);
    default:
        return true;
    }
}

int64_t weir__executor_find_next_check(const weir_executor *executor)
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

    lock(executor); /* waits for start_thread to finish */
    unlock(executor);
    (void)weir__executor_enter(executor);
    atomic_store_explicit(&executor->owner, weir__thread_self(), memory_order_relaxed);
    executor->turn.state = WEIR_EXECUTOR_STARTED;
    executor->turn.now_ns = weir__executor_now(executor);
    executor->lifecycle.last_task_ns = executor->turn.now_ns;
    weir__executor_stats_awake(executor);

    (void)snprintf(thread->name, sizeof(thread->name), "%s", executor->name);
    thread->id = weir__thread_id();
    weir__executor_set_thread(executor);
    weir__running_loop_begin(executor);
    thread->cpu = executor->options.cpu;
    if (thread->cpu >= 0 && weir__thread_set_affinity(thread->cpu) < 0) {
        weir__warn("executor", executor->name, "cannot pin its thread to CPU %d", thread->cpu);
        thread->cpu = -1;
    }
    return executor->type->begin != NULL ? executor->type->begin(executor) : 0;
}

/* Returns true if the executor ended; false if it was suspended: another thread may run it now. */
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

static void thread_main(void *arg)
{
    weir_executor *executor = arg;
    bool ends = true;
    int err = begin(executor);

    if (err < 0) {
        weir__error("executor", executor->name, "cannot run: %s", weir_error_text(err));
        close_and_drain(executor, WEIR_ECANCELED);
    } else {
        ends = run(executor);
    }
    weir_locals_remove_all(); /* if the executor has ended: still as its thread */
    if (ends) {
        detach(executor);
        weir__executor_terminate(executor, err);
    } else if (has_idled && executor->options.on_idle != NULL) {
        executor->options.on_idle(executor, executor->options.on_idle_arg);
    }
    weir_executor_release(executor);
}

static int start_thread(weir_executor *executor)
{
    const weir_thread_factory *factory = &executor->options.thread_factory;
    weir__executor_thread *thread;
    void *process;
    int err;

    weir__executor_threads_reap(&executor->lifecycle.threads);
    weir_executor_retain(executor); /* the thread's */
    process = weir__process_enter(executor->process);
    err = weir__executor_thread_start(factory->start != NULL ? factory : NULL, executor->name,
                                      thread_main, executor, &thread);
    (void)weir__process_enter(process);
    if (err < 0) {
        weir_executor_release(executor);
        return err;
    }
    thread->next = executor->lifecycle.threads;
    executor->lifecycle.threads = thread;
    atomic_store_explicit(&executor->next_wakeup, WEIR__AWAKE, memory_order_seq_cst);
    set_state(executor, WEIR_EXECUTOR_STARTED);
    weir__queue_open(&executor->queue);
    weir__running_loops_add(executor);
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
    if (err < 0) /* mailboxes ask again and again */
        weir__error_limited("executor", executor->name, "cannot start its thread: %s",
                            weir_error_text(err));
    return err;
}

weir__executor_thread *weir__executor_take_threads(weir_executor *executor)
{
    weir__executor_thread *threads;

    lock(executor);
    threads = executor->lifecycle.threads;
    executor->lifecycle.threads = NULL;
    unlock(executor);
    return threads;
}

void weir__executor_join(weir_executor *executor)
{
    weir__executor_threads_wait(weir__executor_take_threads(executor), WEIR_NEVER);
}

void weir__executor_join_until(weir_executor *executor, int64_t deadline_ns)
{
    weir__executor_threads_wait(weir__executor_take_threads(executor), deadline_ns);
}

/* A task that reads the thread's properties. It is posted, so that max_pending does not apply. */
struct thread_query {
    weir_task task;
    weir_promise *promise;
    weir_thread_properties *ret_thread;
};

static void on_thread_query(void *arg, int status)
{
    struct thread_query *query = arg;
    weir_promise *promise = query->promise; /* completing it frees the query */

    if (status == 0) {
        *query->ret_thread = weir__current->lifecycle.thread;
        (void)weir_promise_succeed(promise, NULL);
    } else {
        (void)weir_promise_fail(promise, WEIR_EREJECTED, NULL);
    }
    weir_promise_release(promise);
}

int weir_executor_thread(weir_executor *executor, weir_thread_properties *ret_thread)
{
    struct thread_query query = {.ret_thread = ret_thread};
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
    if (err == 0)
        err = weir_promise_create(executor, &query.promise);
    if (err < 0)
        return err;
    weir_task_init(&query.task, on_thread_query, &query);
    weir_promise_retain(query.promise); /* the task's */
    err = weir__executor_post(executor, &query.task, WEIR__NOW);
    if (err < 0)
        weir_promise_release(query.promise);
    else
        err = weir_promise_sync(query.promise, WEIR_NEVER);
    weir_promise_release(query.promise);
    return err;
}
