/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn of an event loop.
 *
 *      strategy -> wait -> AWAKE, clock -> rebuild, I/O -> timers, tasks, tail tasks -> state
 *
 * I/O stops at the cap; the rest of the batch is dispatched in the next turn, which does not wait.
 * Tasks then get the time that I/O took, times (100 - ratio) / ratio, at most the cap. So neither
 * can starve the other.
 *
 * On shutdown the members begin to close, and the loop keeps turning until all of them have left
 * and no handle is attached. Only then executor/lifecycle.c cancels timers and begins the quiet
 * period.
 */
#include "loop/loop.h"

#include <errno.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/turn_hooks.h"

#define END_TIMEOUT_NS weir_seconds(1)

/* Shared by all loops. */
static _Atomic unsigned cpus;         /* available to the process */
static _Atomic unsigned busy_polling; /* loops that are busy polling now */

static weir__loop *loop_of(weir_executor *executor)
{
    return WEIR_CONTAINER_OF(executor, weir__loop, executor);
}

static int loop_create(weir_executor *executor);

weir__loop *weir__loop_of(const weir_executor *executor)
{
    if (executor->type->create != loop_create)
        return NULL;
    return WEIR_CONTAINER_OF((weir_executor *)(uintptr_t)executor, weir__loop, executor);
}

weir__io *weir__loop_io(const weir_executor *executor)
{
    const weir__loop *loop = weir__loop_of(executor);

    return loop != NULL ? loop->io : NULL;
}

enum weir_io weir_loop_io(const weir_executor *executor)
{
    const weir__loop *loop = executor != NULL ? weir__loop_of(executor) : NULL;

    return loop != NULL ? loop->options.io : WEIR_IO_NONE;
}

int64_t weir_loop_now(const weir_executor *executor)
{
    return weir__executor_state(executor) < WEIR_EXECUTOR_TERMINATED ? weir__executor_now(executor)
                                                                     : 0;
}

/* ---- lifecycle ---- */

/* A pinned thread sees one CPU only, so the maximum seen by any thread counts. */
static void count_cpus(void)
{
    unsigned count = weir__cpu_count(), most = atomic_load_explicit(&cpus, memory_order_relaxed);

    while (count > most && !atomic_compare_exchange_weak_explicit(
                               &cpus, &most, count, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static int loop_create(weir_executor *executor)
{
    weir__loop *loop = loop_of(executor);
    const weir__loop_options *options = executor->options.type_options;
    const weir__io_options io = {
        .name = executor->name,
        .is_embedded = options->is_embedded,
    };
    int err;

    count_cpus();
    loop->options = *options;
    loop->options.reason = NULL;
    weir__adaptive_init(&loop->adaptive, options->adaptive_limit_ns, options->adaptive_credit_ns,
                        executor->turn.now_ns);
    weir__loop_health_init(loop);
    err = weir__io_create(options->backend, &io, &loop->io, options->reason, options->reason_size);
    if (err < 0)
        return err;
    err = weir__loop_stats_init(loop);
    if (err < 0)
        weir__io_destroy(loop->io);
    return err;
}

static int loop_begin(weir_executor *executor)
{
    weir__loop *loop = loop_of(executor);
    int err = weir__io_begin(loop->io);

    if (err < 0) {
        weir__error("loop", executor->name, "cannot start the %s backend: %s", loop->io->type->name,
                    weir_error_text(err));
        weir__loop_back_off(loop);
    }
    if (atomic_load_explicit(&loop->stats.begun_ns, memory_order_relaxed) == 0)
        atomic_store_explicit(&loop->stats.begun_ns, executor->turn.now_ns + 1,
                              memory_order_relaxed);
    return 0; /* without a backend a loop still runs tasks and timers */
}

/* A member may have no handle (yet), and a handle no member. */
static uint64_t loop_handles(const weir_executor *executor)
{
    const weir__loop *loop = weir__loop_of(executor);
    uint64_t members = weir__members_count(executor);
    uint64_t handles = atomic_load_explicit(&loop->io->stats.handles, memory_order_relaxed);

    return members > handles ? members : handles;
}

static void loop_wake(weir_executor *executor)
{
    weir__io_wake(loop_of(executor)->io);
}

static void loop_flush(weir_executor *executor)
{
    weir__io *io = loop_of(executor)->io;

    if (!io->broken && io->type->flush != NULL)
        io->type->flush(io);
}

/* ---- waiting ---- */

static enum weir_wait call_strategy(weir__loop *loop)
{
    weir_executor *executor = &loop->executor;
    bool has_work = weir__executor_has_tasks(executor) ||
                    weir__timers_next(&executor->timers) <= executor->turn.now_ns;

    return loop->options.strategy_fn(executor, has_work, loop->options.strategy_data);
}

/* Calls a strategy of the user's once per turn. */
static enum weir_wait choose(weir__loop *loop)
{
    const weir__loop_options *options = &loop->options;

    if (options->strategy_fn == NULL && options->strategy != WEIR_STRATEGY_BUSY_WAIT)
        return WEIR_WAIT_SELECT;
    if (loop->chosen)
        return loop->choice;
    if (weir__executor_state(&loop->executor) >= WEIR_EXECUTOR_SHUTTING_DOWN)
        loop->choice = WEIR_WAIT_SELECT;
    else
        loop->choice = options->strategy_fn != NULL ? call_strategy(loop) : WEIR_WAIT_POLL;
    loop->chosen = true;
    return loop->choice;
}

static void wait_for_events(weir__loop *loop, int64_t deadline_ns)
{
    int result = weir__io_wait(loop->io, deadline_ns);

    if (result <= 0) {
        weir__loop_check_wait(loop, deadline_ns, result);
        return;
    }
    loop->ready_events += (unsigned)result;
    loop->health.premature = 0;
    loop->health.backoff_ns = 0;
}

static void loop_wait(weir_executor *executor, int64_t deadline_ns)
{
    weir__loop *loop = loop_of(executor);

    if (loop->has_leftover || choose(loop) == WEIR_WAIT_CONTINUE)
        return;
    wait_for_events(loop, weir__earlier(deadline_ns, loop->health.retry_at_ns));
}

/* Something to dispatch or to rebuild. */
static bool has_io(const weir__loop *loop)
{
    return loop->has_leftover || loop->ready_events > 0 || loop->health.err < 0 ||
           weir__io_has_pending(loop->io);
}

static bool loop_has_work(weir_executor *executor)
{
    return has_io(loop_of(executor));
}

static bool poll_io(weir__loop *loop)
{
    const weir__io_type *type = loop->io->type;

    if (loop->io->broken || type->peek == NULL || type->peek(loop->io))
        wait_for_events(loop, 0);
    return has_io(loop);
}

/* Work found by the first poll was there already, and says nothing about the benefit of polling. */
static bool busy_poll(weir__loop *loop, int64_t limit_ns, int64_t deadline_ns)
{
    int64_t start_ns = weir__executor_now(&loop->executor), now_ns;
    int64_t end_ns = weir__deadline(start_ns, limit_ns);
    bool found;

    wait_for_events(loop, 0);
    if (has_io(loop) || weir__executor_is_notified(&loop->executor, deadline_ns))
        return true;
    atomic_store_explicit(&loop->stats.is_busy_polling, true, memory_order_relaxed);
    do {
        weir__cpu_relax();
        found = weir__executor_is_notified(&loop->executor, deadline_ns) || poll_io(loop);
        now_ns = weir__executor_now(&loop->executor);
    } while (!found && now_ns < weir__earlier(end_ns, deadline_ns));
    atomic_store_explicit(&loop->stats.is_busy_polling, false, memory_order_relaxed);
    found = found || now_ns >= deadline_ns;
    weir__adaptive_record(&loop->adaptive, now_ns - start_ns, found);
    weir__counter_add(loop->stats.busy_polls, 1);
    weir__counter_add(loop->stats.busy_poll_hits, found);
    weir__counter_add(loop->stats.busy_poll_ns, now_ns - start_ns);
    return found;
}

bool weir__loop_is_busy_polling(const weir_executor *executor)
{
    const weir__loop *loop = weir__loop_of(executor);

    return loop != NULL && atomic_load_explicit(&loop->stats.is_busy_polling, memory_order_relaxed);
}

/* At most as many loops poll at a time as there are CPUs; none if there is only one. */
static bool busy_poll_adaptively(weir__loop *loop, int64_t deadline_ns)
{
    weir_executor *executor = &loop->executor;
    int64_t limit_ns = weir__adaptive_limit(&loop->adaptive, executor->turn.now_ns);
    unsigned most = atomic_load_explicit(&cpus, memory_order_relaxed);
    bool found = false;

    if (limit_ns == 0 || most == 1 || loop->io->broken || executor->options.clock->manual)
        return false;
    (void)weir__turn_hooks_run(false, executor->turn.now_ns);
    if (atomic_fetch_add_explicit(&busy_polling, 1, memory_order_relaxed) < most)
        found = busy_poll(loop, limit_ns, deadline_ns);
    atomic_fetch_sub_explicit(&busy_polling, 1, memory_order_relaxed);
    return found;
}

static bool loop_busy_poll(weir_executor *executor, int64_t deadline_ns)
{
    weir__loop *loop = loop_of(executor);

    switch (choose(loop)) {
    case WEIR_WAIT_CONTINUE:
        (void)weir__turn_hooks_run(false, executor->turn.now_ns);
        return true;
    case WEIR_WAIT_POLL:
        if (loop->io->broken)
            return false;
        (void)weir__turn_hooks_run(false, executor->turn.now_ns);
        wait_for_events(loop, 0);
        return true;
    default:
        return loop->options.strategy == WEIR_STRATEGY_ADAPTIVE &&
               busy_poll_adaptively(loop, deadline_ns);
    }
}

/* ---- I/O ---- */

/* A budget of 0 lets 64 tasks run. */
static int64_t task_budget(const weir__loop *loop, int64_t io_ns)
{
    int64_t cap_ns = loop->executor.options.task_cap_ns, ratio = loop->options.io_ratio;

    if (ratio == 100)
        return cap_ns;
    return weir__earlier(io_ns > 0 ? io_ns * (100 - ratio) / ratio : 0, cap_ns);
}

/* By the clock that the backend reads. */
static int64_t end_of_io(const weir_executor *executor)
{
    int64_t now_ns = executor->options.clock == &weir__monotonic_clock ? executor->turn.now_ns
                                                                       : weir__monotonic_now();

    return weir__deadline(now_ns, executor->options.task_cap_ns);
}

static int64_t loop_dispatch(weir_executor *executor)
{
    weir__loop *loop = loop_of(executor);
    int64_t start_ns = executor->turn.now_ns;
    bool skips_io = loop->chosen && loop->choice == WEIR_WAIT_CONTINUE, had_io;
    int64_t retry_at_ns;
    unsigned events;

    loop->chosen = false;
    if (loop->health.err < 0 || loop->health.premature > 0 ||
        loop->health.retry_at_ns != WEIR_NEVER)
        weir__loop_rebuild(loop);
    if (skips_io)
        return 0;
    had_io = has_io(loop);
    events = loop->ready_events;
    loop->ready_events = 0;
    retry_at_ns = loop->io->retry_at_ns;
    loop->has_leftover = weir__io_dispatch(loop->io, end_of_io(executor));
    if (!had_io && loop->io->retry_at_ns == retry_at_ns) /* and no parked handle was retried */
        return task_budget(loop, 0);
    weir__counter_add(executor->stats.events, events > 0 ? events : 1);
    weir__executor_update_time(executor);
    weir__counter_add(loop->stats.io_ns, executor->turn.now_ns - start_ns);
    return task_budget(loop, executor->turn.now_ns - start_ns);
}

/* ---- the end ---- */

static bool loop_drain(weir_executor *executor, bool abort)
{
    return weir__members_drain(executor, abort) &&
           weir__list_is_empty(&weir__loop_io(executor)->handles);
}

/* A handle that is being detached is not closed: its descriptor belongs to another owner. */
static void close_handles(weir__loop *loop)
{
    weir_list_foreach (link, &loop->io->handles) {
        weir__io_handle *handle = WEIR_CONTAINER_OF(link, weir__io_handle, link);

        if (handle->state < WEIR__IO_DETACHING)
            weir__io_close(handle);
    }
}

/*
 * Waits only until the kernel returns lent memory. Handles that it keeps longer are abandoned.
 * Pending callbacks are delivered even if the backend cannot wait.
 */
static void close_remaining(weir__loop *loop)
{
    int64_t end_ns = weir__monotonic_now() + END_TIMEOUT_NS;

    close_handles(loop);
    do {
        (void)weir__io_dispatch(loop->io, WEIR_NEVER);
    } while (!weir__list_is_empty(&loop->io->handles) && weir__monotonic_now() < end_ns &&
             (weir__io_has_pending(loop->io) || weir__io_wait(loop->io, end_ns) >= 0));
    if (!weir__list_is_empty(&loop->io->handles))
        weir__error("loop", loop->executor.name,
                    "ended with %llu handles still used by the kernel; their memory is not freed",
                    (unsigned long long)loop_handles(&loop->executor));
}

static void loop_end(weir_executor *executor)
{
    weir__loop *loop = loop_of(executor);

    if (!loop_drain(executor, true))
        close_remaining(loop);
    weir__io_suspend(loop->io);
    weir__loop_health_init(loop);
    loop->has_leftover = false;
    loop->ready_events = 0;
    if (weir__executor_state(executor) < WEIR_EXECUTOR_SHUTDOWN)
        return;
    atomic_store_explicit(&loop->stats.ended_ns, weir__executor_now(executor) + 1,
                          memory_order_relaxed);
    weir__loop_stats_deinit(loop);
}

static void loop_destroy(weir_executor *executor)
{
    weir__loop *loop = loop_of(executor);

    weir__loop_stats_deinit(loop);
    weir__io_destroy(loop->io);
}

#define LOOP_SLOTS                                                                              \
    .size = sizeof(weir__loop), .create = loop_create, .begin = loop_begin,                     \
    .has_work = loop_has_work, .busy_poll = loop_busy_poll, .wait = loop_wait,                  \
    .dispatch = loop_dispatch, .flush = loop_flush, .wake = loop_wake, .handles = loop_handles, \
    .drain = loop_drain, .end = loop_end, .destroy = loop_destroy

const weir__executor_type weir__loop_type = {.name = "loop", .is_loop = true, LOOP_SLOTS};
const weir__executor_type weir__manual_loop_type = {
    .name = "manual loop", .is_loop = true, .threadless = true, LOOP_SLOTS};

/* Blocking its thread delays no other channel. */
const weir__executor_type weir__channel_loop_type = {.name = "channel loop", LOOP_SLOTS};
