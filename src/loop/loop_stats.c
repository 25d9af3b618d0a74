/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a loop, readable from any thread without locks. */
#include "loop/loop.h"

#include <errno.h>
#include <string.h>

#include "executor/running_loops.h"

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static int64_t read_time(const _Atomic int64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static int64_t or_zero(int64_t time_ns)
{
    return time_ns > 0 ? time_ns : 0;
}

/* Active time that was neither I/O nor busy polling was tasks; inactive time was idle. */
static void read_times(const weir__loop *loop, weir_loop_stats *ret_stats)
{
    int64_t begun_ns = read_time(&loop->stats.begun_ns), now_ns;
    int64_t active_ns = weir__executor_stats_read_active(&loop->executor, &now_ns);
    int64_t ended_ns = read_time(&loop->stats.ended_ns);

    ret_stats->io_ns = read_time(&loop->stats.io_ns);
    ret_stats->busy_poll_ns = read_time(&loop->stats.busy_poll_ns);
    ret_stats->task_ns = or_zero(active_ns - ret_stats->io_ns - ret_stats->busy_poll_ns);
    if (begun_ns > 0)
        ret_stats->idle_ns = or_zero((ended_ns > 0 ? ended_ns : now_ns + 1) - begun_ns - active_ns);
}

static void read_calls(const weir__io_stats *stats, weir_loop_stats *ret_stats)
{
    ret_stats->waits = read_counter(&stats->waits);
    ret_stats->controls = read_counter(&stats->controls);
    ret_stats->accepts = read_counter(&stats->accepts);
    ret_stats->connects = read_counter(&stats->connects);
    ret_stats->receives = read_counter(&stats->receives);
    ret_stats->sends = read_counter(&stats->sends);
    ret_stats->closes = read_counter(&stats->closes);
}

int weir_loop_read_stats(const weir_executor *executor, weir_loop_stats *ret_stats)
{
    const weir__loop *loop = executor != NULL ? weir__loop_of(executor) : NULL;

    if (loop == NULL || ret_stats == NULL)
        return -EINVAL;
    memset(ret_stats, 0, sizeof(*ret_stats));
    ret_stats->turns = read_counter(&executor->stats.turns);
    ret_stats->events = read_counter(&loop->io->stats.events);
    ret_stats->wakeups = read_counter(&executor->wakeups_made);
    ret_stats->rebuilds = read_counter(&loop->stats.rebuilds);
    ret_stats->handles = read_counter(&loop->io->stats.handles);
    ret_stats->busy_polls = read_counter(&loop->stats.busy_polls);
    ret_stats->busy_poll_hits = read_counter(&loop->stats.busy_poll_hits);
    read_times(loop, ret_stats);
    read_calls(&loop->io->stats, ret_stats);
    return 0;
}

void weir_loops_begin_timing(void)
{
    weir__running_loops_begin_timing();
}

void weir_loops_end_timing(void)
{
    weir__running_loops_end_timing();
}

/* ---- the metric registry ---- */

static int64_t metric_events(void *loop)
{
    return (int64_t)read_counter(&((const weir__loop *)loop)->io->stats.events);
}

static int64_t metric_io_time(void *loop)
{
    return read_time(&((const weir__loop *)loop)->stats.io_ns);
}

static int64_t metric_handles(void *loop)
{
    return (int64_t)read_counter(&((const weir__loop *)loop)->io->stats.handles);
}

static int64_t metric_waits(void *loop)
{
    return (int64_t)read_counter(&((const weir__loop *)loop)->io->stats.waits);
}

static int64_t metric_receives(void *loop)
{
    return (int64_t)read_counter(&((const weir__loop *)loop)->io->stats.receives);
}

static int64_t metric_sends(void *loop)
{
    return (int64_t)read_counter(&((const weir__loop *)loop)->io->stats.sends);
}

static int64_t metric_turns(void *loop)
{
    return (int64_t)read_counter(&((const weir__loop *)loop)->executor.stats.turns);
}

static int64_t metric_rebuilds(void *loop)
{
    return (int64_t)read_counter(&((const weir__loop *)loop)->stats.rebuilds);
}

static const struct {
    const char *family;
    enum weir_metric_kind kind;
    weir__metric_read_fn *read; /* NULL: the histogram of turn times */
} metrics[WEIR__LOOP_METRIC_COUNT] = {
    [WEIR__LOOP_METRIC_EVENTS] = {"loop.events", WEIR_METRIC_COUNTER, metric_events},
    [WEIR__LOOP_METRIC_IO_TIME] = {"loop.io_ns", WEIR_METRIC_COUNTER, metric_io_time},
    [WEIR__LOOP_METRIC_HANDLES] = {"loop.handles", WEIR_METRIC_GAUGE, metric_handles},
    [WEIR__LOOP_METRIC_WAITS] = {"loop.waits", WEIR_METRIC_COUNTER, metric_waits},
    [WEIR__LOOP_METRIC_RECEIVES] = {"loop.receives", WEIR_METRIC_COUNTER, metric_receives},
    [WEIR__LOOP_METRIC_SENDS] = {"loop.sends", WEIR_METRIC_COUNTER, metric_sends},
    [WEIR__LOOP_METRIC_TURNS] = {"loop.turns", WEIR_METRIC_COUNTER, metric_turns},
    [WEIR__LOOP_METRIC_REBUILDS] = {"loop.rebuilds", WEIR_METRIC_COUNTER, metric_rebuilds},
    [WEIR__LOOP_METRIC_TURN_TIME] = {"loop.turn_ns", WEIR_METRIC_HISTOGRAM, NULL},
};

static int init_metric(weir__loop *loop, unsigned i)
{
    weir__metric_name name = {metrics[i].family, loop->executor.labels};

    if (metrics[i].read == NULL)
        return weir__metric_init_histogram(&loop->metrics[i], name,
                                           &loop->executor.stats.turn_time);
    return weir__metric_init_read(&loop->metrics[i], metrics[i].kind, name, metrics[i].read, loop);
}

int weir__loop_stats_init(weir__loop *loop)
{
    int err = 0;

    for (unsigned i = 0; i < WEIR__LOOP_METRIC_COUNT && err == 0; i++)
        err = init_metric(loop, i);
    if (err < 0)
        weir__loop_stats_deinit(loop);
    return err;
}

void weir__loop_stats_deinit(weir__loop *loop)
{
    for (unsigned i = 0; i < WEIR__LOOP_METRIC_COUNT; i++)
        weir__metric_deinit(&loop->metrics[i]);
}
