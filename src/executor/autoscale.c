/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Autoscaling: suspends idle members of a group, and resumes them when others are busy.
 *
 * A monitor on the global executor measures all members once per window. For each busy member there
 * should be an idle one to take the next work: members are resumed while there are fewer idle than
 * busy ones, and suspended while there are more. If the numbers are equal nothing changes, however
 * long a member is busy.
 *
 * The monitor is shared with the group's chooser and may outlive it, because it may be running when
 * the group ends: the chooser's deinit sets `group` to NULL under the lock.
 */
#include "executor/group.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <weir/timer.h>

#include "base/memory.h"
#include "base/options.h"

struct load {
    int64_t active_ns; /* at the last measurement */
    int low;           /* consecutive windows below scale_down */
    int high;          /* consecutive windows above scale_up */
};

struct monitor {
    weir__refs refs;
    weir__mutex lock;
    weir_group *group; /* NULL: it has ended */
    weir_promise *schedule;
    weir_autoscale_options options;
    int64_t measured_ns;
    struct load loads[];
};

/* Numbers of members. */
struct counts {
    int active; /* not suspended */
    int spare;  /* below scale_down in the last window */
    int idle;   /* below scale_down for more than `patience` windows, and may be suspended */
    int busy;   /* above scale_up for more than `patience` windows */
};

struct autoscale {
    _Atomic uint64_t turn;
    struct monitor *monitor;
};

static bool is_suspended(const weir_executor *member)
{
    enum weir_executor_state state = weir_executor_state(member);

    return state == WEIR_EXECUTOR_SUSPENDING || state == WEIR_EXECUTOR_SUSPENDED;
}

static int validate(const weir_autoscale_options *options, int count)
{
    if (!(options->scale_down >= 0 && options->scale_down <= options->scale_up &&
          options->scale_up <= 1))
        return weir__options_reject("autoscale", NULL,
                                    "0 <= .scale_down (%g) <= .scale_up (%g) <= 1 does not hold",
                                    options->scale_down, options->scale_up);
    return weir__options_check(
        "autoscale", NULL, WEIR__OPTION(options, max_active, 1, count),
        WEIR__OPTION(options, min_active, 1, options->max_active),
        WEIR__OPTION_FROM(options, window_ns, 1), WEIR__OPTION_FROM(options, ramp_down, 1),
        WEIR__OPTION_FROM(options, ramp_up, 1), WEIR__OPTION_FROM(options, patience, 0));
}

static int read_options(weir_autoscale_options *options, const void *given, int count)
{
    int err = weir__options_read(options, sizeof(*options), given);

    if (err < 0)
        return err;
    options->min_active = options->min_active == 0 ? 1 : options->min_active;
    options->max_active = options->max_active == 0 ? count : options->max_active;
    options->window_ns = options->window_ns == 0 ? weir_ms(100) : options->window_ns;
    options->scale_down = options->scale_down == 0 ? 0.25 : options->scale_down;
    options->scale_up = options->scale_up == 0 ? 0.75 : options->scale_up;
    options->ramp_down = options->ramp_down == 0 ? 1 : options->ramp_down;
    options->ramp_up = options->ramp_up == 0 ? 1 : options->ramp_up;
    options->patience = options->patience == 0          ? 2
                        : options->patience == WEIR_OFF ? 0
                                                        : options->patience;
    return validate(options, count);
}

/* ---- the monitor ---- */

static int increment(int windows)
{
    return windows < INT_MAX ? windows + 1 : windows;
}

static void measure(struct load *load, const weir_executor *member, int64_t now_ns,
                    int64_t elapsed_ns, const weir_autoscale_options *options)
{
    int64_t active_ns = weir__executor_stats_active(member, now_ns);
    double utilisation = (double)(active_ns - load->active_ns) / (double)elapsed_ns;
    bool active = !is_suspended(member);

    load->active_ns = active_ns;
    load->low = active && utilisation < options->scale_down ? increment(load->low) : 0;
    load->high = active && utilisation > options->scale_up ? increment(load->high) : 0;
}

/* A member with timers or handles cannot end its thread. One that gets them after this check goes
 * on: lifecycle.c. */
static bool may_suspend(const struct monitor *monitor, size_t i)
{
    const weir_executor *member = weir_group_at(monitor->group, i);

    return monitor->loads[i].low > monitor->options.patience &&
           atomic_load_explicit(&member->stats.timers, memory_order_relaxed) == 0 &&
           weir__executor_handles(member) == 0;
}

static struct counts measure_all(struct monitor *monitor, int64_t now_ns)
{
    const weir_autoscale_options *options = &monitor->options;
    struct counts counts = {0};

    for (size_t i = 0; i < weir_group_count(monitor->group); i++) {
        const weir_executor *member = weir_group_at(monitor->group, i);
        struct load *load = &monitor->loads[i];

        measure(load, member, now_ns, now_ns - monitor->measured_ns, options);
        counts.active += !is_suspended(member);
        counts.spare += load->low > 0;
        counts.idle += may_suspend(monitor, i);
        counts.busy += load->high > options->patience;
    }
    return counts;
}

static void do_nothing(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static void resume_some(struct monitor *monitor, int count)
{
    for (size_t i = 0; i < weir_group_count(monitor->group) && count > 0; i++) {
        weir_executor *member = weir_group_at(monitor->group, i);

        if (weir_executor_state(member) == WEIR_EXECUTOR_SUSPENDED &&
            weir__executor_try_execute(member, do_nothing, NULL, WEIR__NOW) == 0)
            count--;
    }
}

/* From the back, so that the same members stay active. */
static void suspend_some(struct monitor *monitor, int count)
{
    for (size_t i = weir_group_count(monitor->group); i > 0 && count > 0; i--)
        if (may_suspend(monitor, i - 1) &&
            weir_executor_suspend(weir_group_at(monitor->group, i - 1)) == 0)
            count--;
}

static int least(int a, int b, int c)
{
    int ab = a < b ? a : b;

    return ab < c ? ab : c;
}

static void scale(struct monitor *monitor, int64_t now_ns)
{
    const weir_autoscale_options *options = &monitor->options;
    struct counts counts = measure_all(monitor, now_ns);

    resume_some(monitor, least(counts.busy - counts.spare, options->ramp_up,
                               options->max_active - counts.active));
    suspend_some(monitor, least(counts.idle - counts.busy, options->ramp_down,
                                counts.active - options->min_active));
}

void weir__autoscale_step(void *state)
{
    struct monitor *monitor = ((struct autoscale *)state)->monitor;
    int64_t now_ns;

    weir__mutex_lock(&monitor->lock);
    if (monitor->group != NULL) {
        now_ns = weir__executor_now(weir_group_at(monitor->group, 0));
        if (now_ns > monitor->measured_ns) {
            scale(monitor, now_ns);
            monitor->measured_ns = now_ns;
        }
    }
    weir__mutex_unlock(&monitor->lock);
}

static void monitor_release(struct monitor *monitor)
{
    if (!weir__refs_release(&monitor->refs))
        return;
    weir__mutex_deinit(&monitor->lock);
    weir__free(monitor);
}

static void on_window(void *arg, int status)
{
    struct autoscale state = {.monitor = arg};

    if (status == 0)
        weir__autoscale_step(&state);
    else
        monitor_release(arg);
}

/* ---- the chooser ---- */

static struct monitor *monitor_create(weir_group *group, const weir_autoscale_options *options)
{
    struct monitor *monitor =
        weir__zalloc(sizeof(*monitor) + weir_group_count(group) * sizeof(struct load));

    if (monitor == NULL)
        return NULL;
    weir__refs_init(&monitor->refs);
    weir__mutex_init(&monitor->lock);
    monitor->group = group;
    monitor->options = *options;
    monitor->measured_ns = weir__executor_now(weir_group_at(group, 0));
    return monitor;
}

static int autoscale_init(void *state, weir_group *group, const void *given)
{
    struct autoscale *autoscale = state;
    weir_autoscale_options options;
    struct monitor *monitor;
    int err = read_options(&options, given, (int)weir_group_count(group));

    if (err < 0)
        return err;
    monitor = monitor_create(group, &options);
    if (monitor == NULL)
        return -ENOMEM;
    weir__refs_retain(&monitor->refs); /* the schedule's */
    err = weir_schedule_with_fixed_delay(weir_executor_global(), options.window_ns,
                                         options.window_ns, on_window, monitor, &monitor->schedule);
    if (err < 0) {
        monitor_release(monitor);
        monitor_release(monitor);
        return err;
    }
    for (size_t i = (size_t)options.max_active; i < weir_group_count(group); i++)
        (void)weir_executor_suspend(weir_group_at(group, i));
    autoscale->monitor = monitor;
    return 0;
}

static size_t count_active(const weir_group *group)
{
    size_t count = 0;

    for (size_t i = 0; i < weir_group_count(group); i++)
        count += !is_suspended(weir_group_at(group, i));
    return count;
}

static weir_executor *nth_active(const weir_group *group, uint64_t n)
{
    for (size_t i = 0; i < weir_group_count(group); i++) {
        weir_executor *member = weir_group_at(group, i);

        if (!is_suspended(member) && n-- == 0)
            return member;
    }
    return weir_group_at(group, 0); /* all are suspended: the task resumes it */
}

static weir_executor *autoscale_next(void *state, weir_group *group)
{
    struct autoscale *autoscale = state;
    uint64_t turn = atomic_fetch_add_explicit(&autoscale->turn, 1, memory_order_relaxed);
    size_t active = count_active(group);

    return nth_active(group, active > 0 ? turn % active : 0);
}

static void autoscale_deinit(void *state)
{
    struct monitor *monitor = ((struct autoscale *)state)->monitor;

    weir__mutex_lock(&monitor->lock);
    monitor->group = NULL;
    weir__mutex_unlock(&monitor->lock);
    (void)weir_promise_cancel(monitor->schedule);
    weir_promise_release(monitor->schedule);
    weir__executor_wake(
        weir_executor_global()); /* or its task would retain the monitor for a window */
    monitor_release(monitor);
}

const weir_chooser weir__chooser_autoscale = {
    .name = "autoscale",
    .state_size = sizeof(struct autoscale),
    .init = autoscale_init,
    .next = autoscale_next,
    .deinit = autoscale_deinit,
};
