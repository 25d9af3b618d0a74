/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group: its members, its chooser, its end.
 *
 * Two counts. `users` are the references that users hold: the last one to go shuts the group down.
 * `refs` keep the memory: one for all users, and one for each member that has not ended, because a
 * member's end is reported to the group.
 */
#include "executor/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/schedule.h>

#include "base/ending.h"
#include "base/log.h"
#include "base/memory.h"
#include "executor/promise.h"

#define RELEASE_TIMEOUT_NS weir_seconds(15)
#define TASK_CAP_NS weir_ms(10)

struct weir_group {
    weir__refs refs;
    weir__refs users;
    const weir_chooser *chooser;
    void *chooser_state;
    weir_promise *termination;
    _Atomic size_t running; /* members that have not ended */
    _Atomic int first_err;
    size_t count;
    weir_executor *members[];
};

/* ---- creation ---- */

void weir_group_options_init(weir_group_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

static size_t default_threads(void)
{
    const char *text = getenv("WEIR_LOOP_THREADS");
    char *end = NULL;
    long threads = text != NULL ? strtol(text, &end, 10) : 0;

    if (text != NULL && (*end != '\0' || threads < 1 || threads > INT32_MAX)) {
        weir__warn("group", "-", "WEIR_LOOP_THREADS=\"%s\" is not a count of threads; ignored",
                   text);
        threads = 0;
    }
    return threads > 0 ? (size_t)threads : 2 * (size_t)weir__cpu_count();
}

static void group_unref(weir_group *group)
{
    if (!weir__refs_release(&group->refs))
        return;
    weir_promise_release(group->termination);
    weir__free(group->chooser_state);
    weir__free(group);
}

static void on_member_ended(weir_executor *member, int err, void *arg)
{
    weir_group *group = arg;
    int none = 0;

    (void)member;
    if (err < 0)
        (void)atomic_compare_exchange_strong_explicit(&group->first_err, &none, err,
                                                      memory_order_relaxed, memory_order_relaxed);
    /* The last one comes after all the others, and sees the first error. */
    if (atomic_fetch_sub_explicit(&group->running, 1, memory_order_acq_rel) == 1) {
        weir__ending_run();
        err = atomic_load_explicit(&group->first_err, memory_order_relaxed);
        if (err < 0)
            (void)weir_promise_fail(group->termination, err, NULL);
        else
            (void)weir_promise_succeed(group->termination, NULL);
    }
    group_unref(group);
}

/* Only compares the group's address: who asks may hold the promise alone, and the group be gone. */
static bool is_member_thread(const void *group)
{
    const weir_executor *current = weir_executor_current();

    return current != NULL && current->options.on_terminated_arg == group;
}

static int member_cpu(const weir_group_options *options, size_t index)
{
    if (!options->pin)
        return -1;
    if (options->cpus != NULL)
        return options->cpus[index % options->cpu_count];
    return weir__cpu_nth((unsigned)index);
}

static int create_member(weir_group *group, const weir__executor_type *type, const void *kind,
                         const weir_group_options *options, size_t index)
{
    char name[32];
    weir__executor_options member = {
        .name = name,
        .clock = options->clock != NULL ? options->clock : weir_clock_monotonic(),
        .max_pending = weir__bound(options->max_pending),
        .rejected = options->rejected != NULL ? options->rejected : weir_reject,
        .rejected_data = options->rejected_data,
        .task_cap_ns = options->task_cap_ns == 0 ? TASK_CAP_NS : options->task_cap_ns,
        .cpu = member_cpu(options, index),
        .idle_ns = WEIR_NEVER,
        .on_terminated = on_member_ended,
        .on_terminated_arg = group,
        .kind = kind,
    };
    int err;

    (void)snprintf(name, sizeof(name), "%.10s-%zu", options->name != NULL ? options->name : "weir",
                   index + 1);
    if (options->thread_factory != NULL)
        member.thread_factory = *options->thread_factory;
    if (member.task_cap_ns < 0)
        member.task_cap_ns = WEIR_NEVER;
    err = weir__executor_create(type, &member, &group->members[index]);
    if (err < 0)
        return err;
    group->count++;
    weir__refs_retain(&group->refs);
    atomic_fetch_add_explicit(&group->running, 1, memory_order_relaxed);
    return 0;
}

static int create_chooser(weir_group *group, const weir_group_options *options)
{
    const void *chooser_options = options->chooser_options;

    group->chooser = options->chooser != NULL ? options->chooser : weir_chooser_round_robin();
    if (options->autoscale != NULL) {
        group->chooser = &weir__chooser_autoscale;
        chooser_options = options->autoscale;
    }
    if (group->chooser->state_size > 0) {
        group->chooser_state = weir__zalloc(group->chooser->state_size);
        if (group->chooser_state == NULL)
            return -ENOMEM;
    }
    return group->chooser->init != NULL
               ? group->chooser->init(group->chooser_state, group, chooser_options)
               : 0;
}

/* A thread that did not come back is left alone; those that did are about to return. */
static void join_members(weir_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (weir_executor_state(group->members[i]) == WEIR_EXECUTOR_TERMINATED)
            weir__executor_join(group->members[i]);
}

static void end_members(weir_group *group)
{
    bool may_wait = weir__promise_may_wait(group->termination) == 0;

    for (size_t i = 0; i < group->count; i++)
        (void)weir_executor_shutdown(group->members[i], 0, RELEASE_TIMEOUT_NS);
    if (may_wait) {
        (void)weir_promise_await(group->termination, RELEASE_TIMEOUT_NS);
        join_members(group);
    }
    for (size_t i = 0; i < group->count; i++)
        weir_executor_release(group->members[i]);
}

static bool are_cpus(const int *cpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cpus[i] < 0)
            return false;
    return count > 0;
}

static int validate(const weir_group_options *options)
{
    if (options->threads < 0 || options->max_pending < 0 || options->task_cap_ns < WEIR_OFF)
        return -EINVAL;
    if (options->cpus != NULL && !are_cpus(options->cpus, options->cpu_count))
        return -EINVAL;
    if (options->thread_factory != NULL && options->thread_factory->start == NULL)
        return -EINVAL;
    if (options->chooser != NULL && (options->chooser->next == NULL || options->autoscale != NULL))
        return -EINVAL;
    return 0;
}

int weir__group_create(const weir__executor_type *type, const void *kind,
                       const weir_group_options *options, weir_group **ret_group)
{
    size_t threads;
    weir_group *group;
    int err = validate(options);

    if (err < 0)
        return err;
    threads = options->threads > 0 ? (size_t)options->threads : default_threads();
    group = weir__zalloc(sizeof(*group) + threads * sizeof(weir_executor *));
    if (group == NULL)
        return -ENOMEM;
    weir__refs_init(&group->refs);
    weir__refs_init(&group->users);
    err = weir_promise_create(NULL, &group->termination);
    if (err == 0)
        weir__promise_set_guard(group->termination, is_member_thread, group);
    for (size_t i = 0; i < threads && err == 0; i++)
        err = create_member(group, type, kind, options, i);
    if (err == 0)
        err = create_chooser(group, options);
    if (err < 0) {
        if (group->count > 0)
            end_members(group);
        group_unref(group);
        return err;
    }
    *ret_group = group;
    return 0;
}

weir_group *weir_group_retain(weir_group *group)
{
    weir__refs_retain(&group->users);
    return group;
}

void weir_group_release(weir_group *group)
{
    if (group == NULL || !weir__refs_release(&group->users))
        return;
    if (group->chooser->deinit != NULL)
        group->chooser->deinit(group->chooser_state);
    end_members(group);
    group_unref(group);
}

/* ---- members ---- */

weir_executor *weir_group_next(weir_group *group)
{
    return group->chooser->next(group->chooser_state, group);
}

size_t weir_group_count(const weir_group *group)
{
    return group->count;
}

weir_executor *weir_group_at(const weir_group *group, size_t index)
{
    return index < group->count ? group->members[index] : NULL;
}

void *weir__group_chooser_state(weir_group *group)
{
    return group->chooser_state;
}

int weir_group_execute(weir_group *group, weir_task_fn *fn, void *arg)
{
    return weir_execute(weir_group_next(group), fn, arg);
}

int weir_group_submit(weir_group *group, weir_promise **ret_promise, weir_work_fn *work, void *arg)
{
    return weir_submit(weir_group_next(group), ret_promise, work, arg);
}

int weir_group_schedule(weir_group *group, int64_t delay_ns, weir_promise **ret_promise,
                        weir_task_fn *fn, void *arg)
{
    return weir_schedule(weir_group_next(group), delay_ns, ret_promise, fn, arg);
}

int weir_group_schedule_at_fixed_rate(weir_group *group, int64_t initial_ns, int64_t period_ns,
                                      weir_promise **ret_promise, weir_task_fn *fn, void *arg)
{
    return weir_schedule_at_fixed_rate(weir_group_next(group), initial_ns, period_ns, ret_promise,
                                       fn, arg);
}

int weir_group_schedule_with_fixed_delay(weir_group *group, int64_t initial_ns, int64_t delay_ns,
                                         weir_promise **ret_promise, weir_task_fn *fn, void *arg)
{
    return weir_schedule_with_fixed_delay(weir_group_next(group), initial_ns, delay_ns, ret_promise,
                                          fn, arg);
}

/* ---- the end ---- */

int weir_group_shutdown(weir_group *group, int64_t quiet_ns, int64_t timeout_ns)
{
    int err = 0;

    if (group == NULL || quiet_ns < 0 || timeout_ns < quiet_ns)
        return -EINVAL;
    weir_group_retain(group); /* a listener of its end may release it meanwhile */
    for (size_t i = 0; i < group->count && err == 0; i++)
        err = weir_executor_shutdown(group->members[i], quiet_ns, timeout_ns);
    weir_group_release(group);
    return err;
}

weir_promise *weir_group_termination(weir_group *group)
{
    return group->termination;
}

int weir_group_await_termination(weir_group *group, int64_t timeout_ns)
{
    return weir_promise_sync(group->termination, timeout_ns);
}

enum weir_executor_state weir_group_state(const weir_group *group)
{
    enum weir_executor_state least = WEIR_EXECUTOR_TERMINATED, state;

    for (size_t i = 0; i < group->count; i++) {
        state = weir_executor_state(group->members[i]);
        if (state < least)
            least = state;
    }
    return least;
}
