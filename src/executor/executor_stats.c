/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stats of an executor, readable by any thread without locks.
 *
 * The time awake is one word, so that it can be read while it grows. Asleep, it holds the total.
 * Awake, it holds total - now - 1 as of the waking, which is negative: the total at a later time t
 * is word + 1 + t.
 *
 * Utilisation is measured from the start of a window one to three seconds ago, or longer while the
 * executor sleeps; after a long sleep the window is moved to its last second. The two words of the
 * window are protected by a version that is odd while they change (a seqlock).
 */
#include "base/no_stack_protector.h"
#include "executor/executor.h"

#include <stdio.h>
#include <string.h>

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static int64_t active_at(int64_t word, int64_t now_ns)
{
    return word < 0 ? word + 1 + now_ns : word;
}

/* Release stores stay ordered after the odd version; the reader's acquire loads mirror them. */
static void publish_window(weir_executor *executor, int64_t start_ns, int64_t active_ns)
{
    uint32_t version = atomic_load_explicit(&executor->stats.window_version, memory_order_relaxed);

    atomic_store_explicit(&executor->stats.window_version, version + 1, memory_order_relaxed);
    atomic_store_explicit(&executor->stats.window_ns, start_ns, memory_order_release);
    atomic_store_explicit(&executor->stats.window_active_ns, active_ns, memory_order_release);
    atomic_store_explicit(&executor->stats.window_version, version + 2, memory_order_release);
}

static void begin_window(weir_executor *executor)
{
    executor->turn.window_ns = executor->turn.now_ns;
    executor->turn.window_active_ns = weir__executor_stats_active(executor, executor->turn.now_ns);
}

/* The window began less than a second before the sleep, so at two seconds the executor slept
 * through the last one. */
void weir__executor_stats_skip_window(weir_executor *executor)
{
    int64_t now_ns = executor->turn.now_ns;

    publish_window(executor, now_ns - WEIR__STATS_WINDOW_NS,
                   weir__executor_stats_active(executor, now_ns));
    begin_window(executor);
}

void weir__executor_stats_next_window(weir_executor *executor)
{
    publish_window(executor, executor->turn.window_ns, executor->turn.window_active_ns);
    begin_window(executor);
}

/* A terminated executor sleeps for ever, and its clock may have been destroyed. */
static int64_t now_unless_ended(const weir_executor *executor)
{
    return weir__executor_state(executor) < WEIR_EXECUTOR_TERMINATED ? weir__executor_now(executor)
                                                                     : 0;
}

#define TURNS_PER_SAMPLE 64

/*
 * The last clock read of a turn follows its I/O and its tasks. Only that of a blocked turn must
 * include what came later.
 */
void weir__executor_stats_sample_turn(weir_executor *executor)
{
    uint64_t turns = read_counter(&executor->stats.turns);
    bool is_blocked = read_counter(&executor->stats.sample_at) == 0;
    int64_t duration_ns;

    if (is_blocked)
        weir__executor_update_time(executor);
    duration_ns = executor->turn.now_ns -
                  atomic_load_explicit(&executor->stats.turn_began, memory_order_relaxed);
    weir__histogram_record(&executor->stats.turn_time, duration_ns);
    atomic_store_explicit(&executor->stats.sample_at,
                          turns + (weir__running_loops_are_timed() ? 1 : TURNS_PER_SAMPLE),
                          memory_order_relaxed);
    if (!is_blocked)
        return;
    atomic_store_explicit(&executor->stats.blocked_turn_ns, duration_ns, memory_order_relaxed);
    atomic_store_explicit(&executor->stats.blocked_turn, turns, memory_order_release);
}

/* Retries until the word is the same before and after the clock read. */
int64_t weir__executor_stats_read_active(const weir_executor *executor, int64_t *ret_now_ns)
{
    int64_t word, before;

    word = atomic_load_explicit(&executor->stats.active, memory_order_acquire);
    do {
        before = word;
        *ret_now_ns = now_unless_ended(executor);
        word = atomic_load_explicit(&executor->stats.active, memory_order_acquire);
    } while (word != before);
    return active_at(word, *ret_now_ns);
}

static void read_window(const weir_executor *executor, int64_t *ret_start_ns,
                        int64_t *ret_active_ns)
{
    uint32_t version;

    do {
        version = atomic_load_explicit(&executor->stats.window_version, memory_order_acquire);
        *ret_start_ns = atomic_load_explicit(&executor->stats.window_ns, memory_order_acquire);
        *ret_active_ns =
            atomic_load_explicit(&executor->stats.window_active_ns, memory_order_acquire);
    } while (version % 2 != 0 || version != atomic_load_explicit(&executor->stats.window_version,
                                                                 memory_order_relaxed));
}

WEIR__NO_STACK_PROTECTOR double weir_executor_utilisation(const weir_executor *executor)
{
    int64_t start_ns, start_active_ns, now_ns, active_ns;
    uint32_t state = weir__executor_state(executor);

    if (state == WEIR_EXECUTOR_SUSPENDED || state == WEIR_EXECUTOR_TERMINATED)
        return 0.0;
    read_window(executor, &start_ns, &start_active_ns);
    active_ns = weir__executor_stats_read_active(executor, &now_ns);
    if (now_ns <= start_ns)
        return 0.0;
    return (double)(active_ns - start_active_ns) / (double)(now_ns - start_ns);
}

/*
 * Never more than the number of tasks that were pending when the queue was read, because `taken` is
 * read before the queue and the calls after it. It is too low by the tasks that were called between
 * the loads, for example while this thread was preempted.
 *
 * Acquire: keeps the loads in this order.
 */
uint64_t weir_executor_pending(const weir_executor *executor)
{
    uint64_t taken = atomic_load_explicit(&executor->stats.taken, memory_order_acquire);
    uint64_t arrived = taken + weir__queue_count(&executor->queue);
    uint64_t popped = weir__executor_stats_popped(executor);

    return arrived > popped ? arrived - popped : 0;
}

static uint64_t wakeups_saved(const weir_executor *executor)
{
    uint64_t made = read_counter(&executor->wakeups_made);
    uint64_t submitted = read_counter(&executor->stats.submitted);

    return submitted > made ? submitted - made : 0;
}

void weir_executor_read_stats(const weir_executor *executor, weir_executor_stats *ret_stats)
{
    int64_t now_ns;

    memset(ret_stats, 0, sizeof(*ret_stats));
    ret_stats->state = weir_executor_state(executor);
    ret_stats->pending = weir_executor_pending(executor);
    ret_stats->timers = read_counter(&executor->stats.timers);
    ret_stats->tasks_run = read_counter(&executor->stats.run);
    ret_stats->tasks_cancelled = read_counter(&executor->stats.cancelled);
    ret_stats->turns = read_counter(&executor->stats.turns);
    ret_stats->wakeups_made = read_counter(&executor->wakeups_made);
    ret_stats->wakeups_saved = wakeups_saved(executor);
    ret_stats->active_ns = weir__executor_stats_read_active(executor, &now_ns);
    ret_stats->utilisation = weir_executor_utilisation(executor);
    weir_histogram_read(&executor->stats.queue_latency, &ret_stats->queue_latency_ns);
    weir_histogram_read(&executor->stats.run_time, &ret_stats->run_time_ns);
}

/* ---- the metric registry ---- */

static int64_t metric_pending(void *executor)
{
    return (int64_t)weir_executor_pending(executor);
}

static int64_t metric_tasks_run(void *executor)
{
    return (int64_t)read_counter(&((const weir_executor *)executor)->stats.run);
}

static int64_t metric_wakeups(void *executor)
{
    return (int64_t)read_counter(&((const weir_executor *)executor)->wakeups_made);
}

static int64_t metric_timers(void *executor)
{
    return (int64_t)read_counter(&((const weir_executor *)executor)->stats.timers);
}

static int64_t metric_utilisation(void *executor)
{
    return (int64_t)(weir_executor_utilisation(executor) * 1000);
}

static const struct {
    const char *family;
    enum weir_metric_kind kind;
    weir__metric_read_fn *read; /* NULL: a histogram */
} metrics[WEIR__METRIC_COUNT] = {
    [WEIR__METRIC_PENDING] = {"executor.pending", WEIR_METRIC_GAUGE, metric_pending},
    [WEIR__METRIC_TASKS_RUN] = {"executor.tasks_run", WEIR_METRIC_COUNTER, metric_tasks_run},
    [WEIR__METRIC_WAKEUPS] = {"executor.wakeups", WEIR_METRIC_COUNTER, metric_wakeups},
    [WEIR__METRIC_TIMERS] = {"executor.timers", WEIR_METRIC_GAUGE, metric_timers},
    [WEIR__METRIC_UTILISATION] = {"executor.utilisation_permille", WEIR_METRIC_GAUGE,
                                  metric_utilisation},
    [WEIR__METRIC_QUEUE_LATENCY] = {"executor.queue_latency_ns", WEIR_METRIC_HISTOGRAM, NULL},
    [WEIR__METRIC_RUN_TIME] = {"executor.run_time_ns", WEIR_METRIC_HISTOGRAM, NULL},
};

/* Names of executors are not unique: the number makes them so. */
static void make_labels(weir_executor *executor)
{
    char name[sizeof(executor->name) + 24];

    (void)snprintf(name, sizeof(name), "%s#%llu", executor->name,
                   (unsigned long long)executor->number);
    if (executor->options.group != NULL)
        weir__metric_add_label(executor->labels, sizeof(executor->labels), "group",
                               executor->options.group);
    executor->options.group = NULL;
    weir__metric_add_label(executor->labels, sizeof(executor->labels),
                           executor->type->dispatch != NULL ? "loop" : "executor", name);
}

static int init_metric(weir_executor *executor, unsigned i)
{
    weir_histogram *histogram =
        i == WEIR__METRIC_RUN_TIME ? &executor->stats.run_time : &executor->stats.queue_latency;
    weir__metric_name name = {metrics[i].family, executor->labels};

    if (metrics[i].read == NULL)
        return weir__metric_init_histogram(&executor->metrics[i], name, histogram);
    return weir__metric_init_read(&executor->metrics[i], metrics[i].kind, name, metrics[i].read,
                                  executor);
}

int weir__executor_stats_init(weir_executor *executor)
{
    static _Atomic uint64_t numbers;
    unsigned i;
    int err = 0;

    executor->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
    make_labels(executor);
    for (i = 0; i < WEIR__METRIC_COUNT && err == 0; i++)
        err = init_metric(executor, i);
    if (err < 0)
        for (i--; i > 0; i--)
            weir__metric_deinit(&executor->metrics[i - 1]);
    return err;
}

void weir__executor_stats_deinit(weir_executor *executor)
{
    for (unsigned i = 0; i < WEIR__METRIC_COUNT; i++)
        weir__metric_deinit(&executor->metrics[i]);
}
