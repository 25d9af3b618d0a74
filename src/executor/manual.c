/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor on the caller's thread. It is STARTED from its creation, and asleep between two calls
 * of weir_manual_run_once: next_wakeup then holds a deadline, and the thread that exchanges it for
 * WEIR__AWAKE calls `.wakeup`.
 */
#include "executor/manual.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>

#include "base/options.h"
#include "base/turn_hooks.h"

struct manual {
    weir_executor executor;
    weir__manual manual;
    void (*wakeup)(void *user_data);
    void *wakeup_data;
};

/* ---- shared with manual event loops ---- */

void weir__manual_open(weir_executor *executor, weir__manual *manual, bool owned)
{
    manual->hooks_at_ns = WEIR_NEVER;
    if (owned) {
        atomic_store_explicit(&executor->owner, weir__thread_self(), memory_order_relaxed);
        weir__executor_set_thread(executor);
    }
    atomic_store_explicit(&executor->state, WEIR_EXECUTOR_STARTED, memory_order_seq_cst);
    executor->turn.state = WEIR_EXECUTOR_STARTED;
    weir__queue_open(&executor->queue);
    atomic_store_explicit(&executor->next_wakeup, WEIR_NEVER, memory_order_seq_cst);
    weir__running_loops_add(executor);
}

int weir__manual_claim(weir_executor *executor)
{
    const void *nobody = NULL;

    if (!atomic_compare_exchange_strong_explicit(&executor->owner, &nobody, weir__thread_self(),
                                                 memory_order_relaxed, memory_order_relaxed))
        return -EALREADY;
    weir__executor_set_thread(executor);
    return 0;
}

static int may_run(weir_executor *executor, const weir__manual *manual)
{
    const void *owner = atomic_load_explicit(&executor->owner, memory_order_relaxed);

    if (weir__executor_state(executor) == WEIR_EXECUTOR_TERMINATED)
        return WEIR_ETERMINATED;
    if (owner != weir__thread_self())
        return owner == NULL ? WEIR_ENOOWNER : WEIR_EWRONGTHREAD;
    return manual->running ? -EBUSY : 0;
}

/*
 * True if the turn did nothing but it is too early to return: a slow waker from before the run
 * ended the wait, or a task has just arrived.
 */
static bool must_continue(weir_executor *executor, int64_t limit_ns, int64_t budget_ns)
{
    if (weir__executor_state(executor) != executor->turn.state)
        return false;
    if (weir__executor_deadline(executor, limit_ns) > 0)
        return true;
    return (budget_ns >= 0 || budget_ns == WEIR__TYPE_BUDGET) &&
           weir__executor_deadline(executor, WEIR_NEVER) == 0;
}

/* Turns until the number of calls is no longer `calls`, or the time is up. */
static void run_turn(weir_executor *executor, int64_t max_wait_ns, int64_t budget_ns,
                     uint64_t calls)
{
    bool limited = budget_ns > 0 && budget_ns < WEIR_NEVER;
    int64_t limit_ns = 0; /* such a turn reads the clock itself */

    executor->turn.batch = limited ? 1 : 64; /* a budget is checked after every task */
    atomic_store_explicit(&executor->next_wakeup, WEIR__AWAKE, memory_order_relaxed);
    if (max_wait_ns > 0) {
        executor->turn.now_ns = weir__executor_now(executor);
        weir__executor_stats_awake(executor);
        limit_ns = weir__earlier(weir__deadline(executor->turn.now_ns, max_wait_ns),
                                 weir__executor_next_check(executor));
    }
    do {
        weir__executor_turn(executor, limit_ns, budget_ns);
    } while (weir__executor_stats_calls(executor) == calls &&
             must_continue(executor, limit_ns, budget_ns));
}

/* Marks the executor as asleep until the next run, and calls `wake` if it has work already. */
static void go_to_sleep(weir_executor *executor, weir__manual *manual)
{
    int64_t deadline_ns;
    bool busy;

    if (executor->type->flush != NULL)
        executor->type->flush(executor);
    deadline_ns = weir__executor_deadline(executor, weir__executor_next_check(executor));
    busy = deadline_ns == 0;
    manual->hooks_at_ns = weir__turn_hooks_run(!busy, executor->turn.now_ns);
    weir__executor_stats_asleep(executor);
    deadline_ns = busy ? WEIR_NEVER : weir__earlier(deadline_ns, manual->hooks_at_ns);
    if (!weir__executor_publish_deadline(executor, deadline_ns) || busy)
        weir__executor_wake(executor);
}

static void end(weir_executor *executor)
{
    weir__executor_stop_type(executor);
    (void)weir__turn_hooks_run(false, executor->turn.now_ns);
    weir__executor_stats_asleep(executor);
    weir__executor_terminate(executor, 0);
}

int weir__manual_run_once(weir_executor *executor, weir__manual *manual, int64_t max_wait_ns,
                          int64_t budget_ns)
{
    weir_executor *before;
    uint64_t calls;
    int err = may_run(executor, manual);

    if (err == WEIR_ETERMINATED && weir__in_executor(executor))
        manual->end_reported = true;
    if (err < 0)
        return err;
    if (max_wait_ns < 0)
        return -EINVAL;
    calls = weir__executor_stats_calls(executor);
    weir_executor_retain(executor); /* its tasks may release it */
    before = weir__executor_enter(executor);
    manual->running = true;
    run_turn(executor, max_wait_ns, budget_ns, calls);
    if (weir__executor_update_state(executor))
        end(executor);
    else
        go_to_sleep(executor, manual);
    manual->running = false;
    weir__executor_leave(executor, before);
    calls = weir__executor_stats_calls(executor) - calls;
    weir_executor_release(executor);
    return (int)calls;
}

int64_t weir__manual_timeout(weir_executor *executor, weir__manual *manual)
{
    int64_t deadline_ns;
    int err = may_run(executor, manual);

    if (err == WEIR_ETERMINATED && !manual->end_reported)
        return 0; /* or an owner that sleeps until there is work would never see the end */
    if (err < 0)
        return WEIR_NEVER;
    executor->turn.now_ns = weir__executor_now(executor);
    deadline_ns = weir__executor_deadline(
        executor, weir__earlier(weir__executor_next_check(executor), manual->hooks_at_ns));
    if (deadline_ns == 0 || weir__executor_state(executor) != executor->turn.state)
        return 0;
    return deadline_ns == WEIR_NEVER ? WEIR_NEVER : deadline_ns - executor->turn.now_ns;
}

/* ---- the manual executor without I/O ---- */

static struct manual *manual_of(weir_executor *executor)
{
    return WEIR_CONTAINER_OF(executor, struct manual, executor);
}

static void manual_wake(weir_executor *executor)
{
    struct manual *manual = manual_of(executor);

    weir__plain_type.wake(executor);
    if (manual->wakeup != NULL)
        manual->wakeup(manual->wakeup_data);
}

static void manual_wait(weir_executor *executor, int64_t deadline_ns)
{
    weir__plain_type.wait(executor, deadline_ns);
}

static const weir__executor_type type = {
    .name = "manual",
    .size = sizeof(struct manual),
    .threadless = true,
    .wait = manual_wait,
    .wake = manual_wake,
};

static bool is_manual(const weir_executor *executor)
{
    return executor != NULL && executor->type == &type;
}

int weir_manual_create(const weir_manual_options *options, weir_executor **ret_executor)
{
    weir_manual_options given;
    weir_executor *executor;
    struct manual *manual;
    int err = weir__options_read(&given, sizeof(given), options);

    if (err < 0)
        return err;
    err = weir__options_check("manual", NULL, WEIR__OPTION_FROM(&given, max_pending, 0));
    if (err < 0)
        return err;
    err = weir__executor_create(
        &type,
        &(const weir__executor_options){
            .name = given.name != NULL ? given.name : "manual",
            .clock = given.clock != NULL ? given.clock : weir_clock_monotonic(),
            .max_pending = weir__queue_bound(given.max_pending),
            .rejected = given.rejected != NULL ? given.rejected : weir_reject,
            .rejected_data = given.rejected_data,
            .task_cap_ns = WEIR_NEVER,
            .cpu = -1,
            .idle_ns = WEIR_NEVER,
        },
        &executor);
    if (err < 0)
        return err;
    manual = manual_of(executor);
    manual->wakeup = given.wakeup;
    manual->wakeup_data = given.wakeup_data;
    weir__manual_open(executor, &manual->manual, !given.claim_later);
    *ret_executor = executor;
    return 0;
}

int weir_manual_claim(weir_executor *executor)
{
    return is_manual(executor) ? weir__manual_claim(executor) : -EINVAL;
}

/* Any negative budget means no tasks, even WEIR__TYPE_BUDGET. */
static int64_t turn_budget(int64_t budget_ns)
{
    return budget_ns > 0 ? budget_ns : budget_ns == 0 ? WEIR_NEVER : -1;
}

int weir_manual_run_once(weir_executor *executor, int64_t max_wait_ns, int64_t budget_ns)
{
    if (!is_manual(executor))
        return -EINVAL;
    return weir__manual_run_once(executor, &manual_of(executor)->manual, max_wait_ns,
                                 turn_budget(budget_ns));
}

int64_t weir_manual_timeout(weir_executor *executor)
{
    if (!is_manual(executor))
        return WEIR_NEVER;
    return weir__manual_timeout(executor, &manual_of(executor)->manual);
}
