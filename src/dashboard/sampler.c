/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The task that makes the statistics, for all visitors at once. It ends when the last one is gone.
 */
#include "dashboard/dashboard.h"

#include <weir/executor.h>
#include <weir/loop.h>
#include <weir/timer.h>

#include "dashboard/visitor.h"

static weir_task_fn sample;

/* Loops measure every turn meanwhile, not only some. The caller has the mutex. */
static void set_sampling(weir__dashboard *dashboard, bool is_sampling)
{
    if (is_sampling && !dashboard->is_sampling)
        weir_loops_begin_timing();
    else if (!is_sampling && dashboard->is_sampling)
        weir_loops_end_timing();
    dashboard->is_sampling = is_sampling;
}

/* The caller has the mutex. */
static void schedule(weir__dashboard *dashboard, int64_t delay_ns)
{
    weir_promise_release(dashboard->sampler);
    dashboard->sampler = NULL;
    set_sampling(dashboard, weir_schedule(weir_executor_global(), delay_ns, sample, dashboard,
                                          &dashboard->sampler) == 0);
}

/* The caller has the mutex. */
static void send_to_all(weir__dashboard *dashboard, weir_ws_message *message)
{
    weir_ws_message *old = dashboard->stats;

    dashboard->stats = message;
    if (old != NULL)
        weir_msg_release(weir_ws_message_msg(old));
    weir__visitors_offer_stats(dashboard, message);
}

/* The dashboard lives until this has ended: see weir__dashboard_stop_sampler. */
static void sample(void *arg, int status)
{
    weir__dashboard *dashboard = arg;
    weir_ws_message *message = NULL;
    weir_promise *ended = NULL;

    if (status == 0) {
        weir__visitors_offer(dashboard,
                             weir__dashboard_log_message(dashboard->log, &dashboard->sampled_line));
        message = weir__dashboard_stats_message();
    }

    weir__mutex_lock(&dashboard->mutex);
    if (message != NULL)
        send_to_all(dashboard, message);
    if (status == 0 && dashboard->visitor_count > 0 && !dashboard->is_closed)
        schedule(dashboard, dashboard->options.interval_ns);
    else
        set_sampling(dashboard, false);
    if (dashboard->is_closed)
        ended = weir_promise_retain(dashboard->ended);
    weir__mutex_unlock(&dashboard->mutex);
    if (ended != NULL)
        (void)weir_promise_succeed(ended, NULL);
    weir_promise_release(ended);
}

void weir__dashboard_start_sampler(weir__dashboard *dashboard)
{
    if (!dashboard->is_sampling && !dashboard->is_closed)
        schedule(dashboard, 0);
}

static void do_nothing(void *arg, int status)
{
    (void)arg;
    (void)status;
}

/* A cancelled task ends when its executor wakes up: at once, or without memory when it was due. */
static void cancel(weir_promise *sampler)
{
    int err;

    (void)weir_promise_cancel(sampler);
    err = weir_execute(weir_executor_global(), do_nothing, NULL);
    (void)err;
}

void weir__dashboard_stop_sampler(weir__dashboard *dashboard)
{
    weir_promise *sampler;
    bool is_sampling;

    weir__mutex_lock(&dashboard->mutex);
    dashboard->is_closed = true;
    is_sampling = dashboard->is_sampling;
    sampler = dashboard->sampler;
    dashboard->sampler = NULL;
    weir__mutex_unlock(&dashboard->mutex);
    if (is_sampling) {
        cancel(sampler);
        (void)weir_promise_await(dashboard->ended, WEIR_NEVER);
    }
    weir_promise_release(sampler);
}
