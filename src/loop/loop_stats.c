/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a loop says of itself, to any thread, without locks.
 */
#include "loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint64_t read_figure(const _Atomic uint64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

static int64_t read_time(const _Atomic int64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

static int64_t or_zero(int64_t time_ns)
{
    return time_ns > 0 ? time_ns : 0;
}

/* What was neither I/O nor looking was tasks; what was not active was asleep. */
static void read_times(const weir__loop *loop, weir_loop_stats *ret_stats)
{
    int64_t begun_ns = read_time(&loop->figures.begun_ns), now_ns;
    int64_t active_ns = weir__executor_stats_read_active(&loop->executor, &now_ns);
    int64_t ended_ns = read_time(&loop->figures.ended_ns);

    ret_stats->io_ns = read_time(&loop->figures.io_ns);
    ret_stats->look_ns = read_time(&loop->figures.look_ns);
    ret_stats->task_ns = or_zero(active_ns - ret_stats->io_ns - ret_stats->look_ns);
    if (begun_ns > 0)
        ret_stats->idle_ns = or_zero((ended_ns > 0 ? ended_ns : now_ns + 1) - begun_ns - active_ns);
}

static void read_calls(const weir__io_stats *figures, weir_loop_stats *ret_stats)
{
    ret_stats->waits = read_figure(&figures->waits);
    ret_stats->controls = read_figure(&figures->controls);
    ret_stats->accepts = read_figure(&figures->accepts);
    ret_stats->connects = read_figure(&figures->connects);
    ret_stats->receives = read_figure(&figures->receives);
    ret_stats->sends = read_figure(&figures->sends);
    ret_stats->closes = read_figure(&figures->closes);
}

int weir_loop_read_stats(const weir_executor *executor, weir_loop_stats *ret_stats)
{
    const weir__loop *loop = executor != NULL ? weir__loop_of(executor) : NULL;

    if (loop == NULL || ret_stats == NULL)
        return -EINVAL;
    memset(ret_stats, 0, sizeof(*ret_stats));
    ret_stats->turns = read_figure(&executor->stats.turns);
    ret_stats->events = read_figure(&loop->io->figures.events);
    ret_stats->wakeups = read_figure(&executor->wakeups_made);
    ret_stats->rebuilds = read_figure(&loop->figures.rebuilds);
    ret_stats->handles = read_figure(&loop->io->figures.handles);
    ret_stats->looks = read_figure(&loop->figures.looks);
    ret_stats->hits = read_figure(&loop->figures.hits);
    read_times(loop, ret_stats);
    read_calls(&loop->io->figures, ret_stats);
    return 0;
}

/* ---- the metric registry ---- */

static int64_t metric_events(void *loop)
{
    return (int64_t)read_figure(&((const weir__loop *)loop)->io->figures.events);
}

static int64_t metric_io_time(void *loop)
{
    return read_time(&((const weir__loop *)loop)->figures.io_ns);
}

static int64_t metric_handles(void *loop)
{
    return (int64_t)read_figure(&((const weir__loop *)loop)->io->figures.handles);
}

static int64_t metric_waits(void *loop)
{
    return (int64_t)read_figure(&((const weir__loop *)loop)->io->figures.waits);
}

static int64_t metric_rebuilds(void *loop)
{
    return (int64_t)read_figure(&((const weir__loop *)loop)->figures.rebuilds);
}

static const struct {
    const char *name;
    enum weir_metric_kind kind;
    weir__metric_read_fn *read;
} metrics[WEIR__LOOP_METRIC_COUNT] = {
    [WEIR__LOOP_METRIC_EVENTS] = {"events", WEIR_METRIC_COUNTER, metric_events},
    [WEIR__LOOP_METRIC_IO_TIME] = {"io_ns", WEIR_METRIC_COUNTER, metric_io_time},
    [WEIR__LOOP_METRIC_HANDLES] = {"handles", WEIR_METRIC_GAUGE, metric_handles},
    [WEIR__LOOP_METRIC_WAITS] = {"waits", WEIR_METRIC_COUNTER, metric_waits},
    [WEIR__LOOP_METRIC_REBUILDS] = {"rebuilds", WEIR_METRIC_COUNTER, metric_rebuilds},
};

int weir__loop_stats_init(weir__loop *loop)
{
    char name[WEIR_METRIC_NAME_SIZE];
    int err = 0;

    for (unsigned i = 0; i < WEIR__LOOP_METRIC_COUNT && err == 0; i++) {
        (void)snprintf(name, sizeof(name), "loop.%s#%llu.%s", loop->executor.name,
                       (unsigned long long)loop->executor.number, metrics[i].name);
        err =
            weir__metric_init_read(&loop->metrics[i], metrics[i].kind, name, metrics[i].read, loop);
    }
    if (err < 0)
        weir__loop_stats_deinit(loop);
    return err;
}

void weir__loop_stats_deinit(weir__loop *loop)
{
    for (unsigned i = 0; i < WEIR__LOOP_METRIC_COUNT; i++)
        weir__metric_deinit(&loop->metrics[i]);
}
