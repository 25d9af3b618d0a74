/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group: its members, its chooser, its end.
 *
 * Two reference counts. `users` are the references of users: releasing the last one shuts the group
 * down. `refs` keep the memory: one for all users, one for each member that has not terminated,
 * because its end is reported to the group, and one for each member of a growing group.
 *
 * A growing group leases its members instead of choosing one, and creates a member when none is
 * idle.
 *
 *      weir__group_lease_next --> leased --the leases drop to 0--> idle --lease--> leased
 *
 * A member is leased by each channel or watch on it, and for one that is about to come. The member
 * that became idle last is leased first, because its thread is most likely still running. The count
 * of leases and the list of idle members change in one critical section. So a member is in the list
 * only while its count is 0, and leasing it makes the count 1 before another thread sees it: a
 * channel on its way to a member does not race with the last one leaving it.
 *
 * Until it is shut down a growing group counts itself as running, so that it does not terminate
 * when all members have. Members are created one at a time, under `lock`, and not after `closed`:
 * the thread that sets `closed` sees them all.
 *
 * A member of a growing group that has been idle for a minute retires: its last thread removes it
 * from the list and from the array, shuts it down and releases it. So before `closed`, an otherwise
 * unreferenced member may be used only under `lock`; after `closed` none retires. The first member
 * never retires. The group waits for the threads of retired members.
 */
#include "executor/group.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/timer.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "executor/executor_array.h"
#include "executor/promise.h"

#define RELEASE_TIMEOUT_NS weir_seconds(15)
#define IDLE_NS weir_seconds(60) /* of a thread without a channel, before it ends */
#define FIRST_BLOCK 16
#define TASK_CAP_NS weir_ms(10)

struct weir_group {
    const weir_chooser *chooser;
    void *chooser_state;
    bool has_own_chooser; /* given by the options, not the default */
    weir__refs refs;      /* not first, where free() writes: see weir__refs_release */
    weir__refs users;
    weir_promise *termination;
    _Atomic size_t running; /* members that have not terminated */
    _Atomic int first_err;
    weir__executor_array members;

    /* Of each member, which differ only in their name and CPU. */
    const weir__executor_type *type;
    weir__executor_options options;
    char name[11];
    bool pin;
    const int *cpus;
    size_t cpu_count;
    void *copies; /* of a growing group, of what `options` and `cpus` point to */

    bool grows;
    weir__mutex lock; /* guards the following, and changes of `members` */
    bool closed;
    weir__list idle;   /* latest first */
    size_t max_leased; /* 0: no bound */
    size_t leased;
    uint64_t refused;
    weir__executor_thread *retired; /* threads of retired members */
};

/* ---- creation ---- */

static size_t default_threads(void)
{
    const char *text = getenv("WEIR_LOOP_THREADS");
    char *end = NULL;
    long threads = text != NULL ? strtol(text, &end, 10) : 0;

    if (text != NULL && (*end != '\0' || threads < 1 || threads > INT32_MAX)) {
        weir__warn("group", "-", "WEIR_LOOP_THREADS=\"%s\" is not a number of threads; ignored",
                   text);
        threads = 0;
    }
    return threads > 0 ? (size_t)threads : 2 * (size_t)weir__cpu_count();
}

static void group_weak_release(weir_group *group)
{
    if (!weir__refs_release(&group->refs))
        return;
    weir_promise_release(group->termination);
    weir__free(group->chooser_state);
    weir__executor_array_deinit(&group->members);
    weir__free(group->copies);
    weir__executor_threads_abandon(group->retired);
    weir__mutex_deinit(&group->lock);
    weir__free(group);
}

static void add_running(weir_group *group)
{
    weir__refs_retain(&group->refs);
    atomic_fetch_add_explicit(&group->running, 1, memory_order_relaxed);
}

static void remove_running(weir_group *group, int err)
{
    int none = 0;

    if (err < 0)
        (void)atomic_compare_exchange_strong_explicit(&group->first_err, &none, err,
                                                      memory_order_relaxed, memory_order_relaxed);
    /* Acquire-release: the last one sees the first error. */
    if (atomic_fetch_sub_explicit(&group->running, 1, memory_order_acq_rel) == 1) {
        err = atomic_load_explicit(&group->first_err, memory_order_relaxed);
        if (err < 0)
            (void)weir_promise_fail(group->termination, err, NULL);
        else
            (void)weir_promise_succeed(group->termination, NULL);
    }
    group_weak_release(group);
}

static void on_member_ended(weir_executor *member, int err, void *arg)
{
    (void)member;
    remove_running(arg, err);
}

static bool takes_tasks(const weir_executor *executor)
{
    return weir__executor_state(executor) < WEIR_EXECUTOR_SHUTTING_DOWN;
}

/* The caller holds the lock. */
static void retire(weir_group *group, weir_executor *member)
{
    weir__executor_thread *thread, *threads = weir__executor_take_threads(member);

    weir__list_remove(&member->lease.link);
    weir__executor_array_remove(&group->members, member);
    weir__executor_threads_reap(&group->retired);
    while ((thread = threads) != NULL) {
        threads = thread->next;
        thread->next = group->retired;
        group->retired = thread;
    }
}

/* Called by the thread that suspended the member and still references it. */
static void on_member_idle(weir_executor *member, void *arg)
{
    weir_group *group = arg;
    bool retires;

    weir__mutex_lock(&group->lock);
    retires = !group->closed && member->lease.count == 0 && takes_tasks(member) &&
              weir__executor_is_unreferenced(member);
    if (retires)
        retire(group, member);
    weir__mutex_unlock(&group->lock);
    if (!retires)
        return;
    (void)weir_executor_shutdown(member, 0, 0);
    weir_executor_release(member); /* the group's */
}

/* Compares only the group's address: the promise may outlive the group. */
static bool is_member_thread(const void *group)
{
    const weir_executor *current = weir__current;

    return current != NULL && current->options.on_terminated_arg == group;
}

static int cpu_of(const weir_group *group, size_t index)
{
    if (!group->pin)
        return -1;
    if (group->cpus != NULL)
        return group->cpus[index % group->cpu_count];
    return weir__cpu_nth((unsigned)index);
}

/* A member of a growing group is neither leased nor idle. */
static int create_member(weir_group *group, weir_executor **ret_member)
{
    size_t index = weir__executor_array_count(&group->members);
    weir__executor_options options = group->options;
    int err = weir__executor_array_reserve(&group->members);
    char name[32];

    weir__executor_threads_reap(&group->retired);

    (void)snprintf(name, sizeof(name), "%s-%zu", group->name, index + 1);
    options.name = name;
    options.group = group->name;
    options.cpu = cpu_of(group, index);
    if (err == 0)
        err = weir__executor_create(group->type, &options, ret_member);
    if (err < 0)
        return err;
    weir__list_init(&(*ret_member)->lease.link);
    if (group->grows) {
        weir__refs_retain(&group->refs);
        (*ret_member)->lease.group = group;
    }
    add_running(group);
    weir__executor_array_append(&group->members, *ret_member);
    return 0;
}

static int create_chooser(weir_group *group, const weir_group_options *options)
{
    const void *chooser_options = options->chooser_options;

    group->chooser = options->chooser != NULL ? options->chooser : weir_chooser_round_robin();
    group->has_own_chooser = options->chooser != NULL || options->autoscale != NULL;
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

/* Closes a growing group. Returns false if it was closed, or does not grow. */
static bool stop_growing(weir_group *group)
{
    bool was_closed;

    if (!group->grows)
        return false;
    weir__mutex_lock(&group->lock);
    was_closed = group->closed;
    group->closed = true;
    weir__mutex_unlock(&group->lock);
    return !was_closed;
}

static void shut_down(weir_group *group, int64_t quiet_ns, int64_t timeout_ns)
{
    bool stopped = stop_growing(group);

    for (size_t i = 0; i < weir_group_count(group); i++)
        (void)weir_executor_shutdown(weir_group_at(group, i), quiet_ns, timeout_ns);
    if (stopped)
        remove_running(group, 0);
}

/* Joins the threads of terminated members; others are abandoned. */
static void join_members(weir_group *group)
{
    for (size_t i = 0; i < weir_group_count(group); i++) {
        weir_executor *member = weir_group_at(group, i);

        if (weir_executor_state(member) == WEIR_EXECUTOR_TERMINATED)
            weir__executor_join(member);
    }
    weir__executor_threads_wait(group->retired, WEIR_NEVER);
    group->retired = NULL;
}

static void end_members(weir_group *group)
{
    bool may_wait = weir__promise_may_wait(group->termination) == 0;

    shut_down(group, 0, RELEASE_TIMEOUT_NS);
    if (may_wait) {
        (void)weir_promise_await(group->termination, RELEASE_TIMEOUT_NS);
        join_members(group);
    }
    for (size_t i = 0; i < weir_group_count(group); i++)
        weir_executor_release(weir_group_at(group, i));
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
    if (options->cpus != NULL && !are_cpus(options->cpus, options->cpu_count))
        return weir__options_reject("group", options->name,
                                    ".cpus is empty or has a negative entry");
    if (options->thread_factory != NULL && options->thread_factory->start == NULL)
        return weir__options_reject("group", options->name, ".thread_factory has no `start`");
    if (options->chooser != NULL && options->chooser->next == NULL)
        return weir__options_reject("group", options->name, ".chooser has no `next`");
    if (options->chooser != NULL && options->autoscale != NULL)
        return weir__options_reject("group", options->name,
                                    ".chooser and .autoscale are mutually exclusive");
    return weir__options_check("group", options->name, WEIR__OPTION_FROM(options, threads, 0),
                               WEIR__OPTION_FROM(options, max_channels, 0),
                               WEIR__OPTION_FROM(options, max_pending, 0),
                               WEIR__OPTION_FROM(options, task_cap_ns, WEIR_OFF));
}

/* Borrows what the options point to. */
static void set_options(weir_group *group, const weir__executor_type *type,
                        const void *type_options, const weir_group_options *options)
{
    group->type = type;
    group->pin = options->pin;
    group->cpus = options->cpus;
    group->cpu_count = options->cpu_count;
    group->options = (weir__executor_options){
        .clock = options->clock != NULL ? options->clock : weir_clock_monotonic(),
        .max_pending = weir__queue_bound(options->max_pending),
        .rejected = options->rejected != NULL ? options->rejected : weir_reject,
        .rejected_data = options->rejected_data,
        .task_cap_ns = options->task_cap_ns == 0  ? TASK_CAP_NS
                       : options->task_cap_ns > 0 ? options->task_cap_ns
                                                  : WEIR_NEVER,
        .idle_ns = WEIR_NEVER,
        .type_options = type_options,
        .on_terminated = on_member_ended,
        .on_terminated_arg = group,
    };
    if (options->thread_factory != NULL)
        group->options.thread_factory = *options->thread_factory;
    (void)snprintf(group->name, sizeof(group->name), "%s",
                   options->name != NULL ? options->name : "weir");
}

/* Creates a group without members. */
static int create_empty(const weir__executor_type *type, const void *type_options,
                        const weir_group_options *options, size_t first_block,
                        weir_group **ret_group)
{
    int err = validate(options);
    weir_group *group = err == 0 ? weir__zalloc(sizeof(*group)) : NULL;

    if (group == NULL)
        return err < 0 ? err : -ENOMEM;
    weir__refs_init(&group->refs);
    weir__refs_init(&group->users);
    weir__mutex_init(&group->lock);
    weir__list_init(&group->idle);
    set_options(group, type, type_options, options);
    err = weir__executor_array_init(&group->members, first_block);
    if (err == 0)
        err = weir_promise_create(NULL, &group->termination);
    if (err < 0) {
        group_weak_release(group);
        return err;
    }
    weir__promise_set_guard(group->termination, is_member_thread, group);
    *ret_group = group;
    return 0;
}

int weir__group_create(const weir__executor_type *type, const void *type_options,
                       const weir_group_options *options, weir_group **ret_group)
{
    size_t threads = options->threads > 0 ? (size_t)options->threads : default_threads();
    weir_executor *member;
    weir_group *group;
    int err = create_empty(type, type_options, options, threads, &group);

    if (err < 0)
        return err;
    for (size_t i = 0; i < threads && err == 0; i++)
        err = create_member(group, &member);
    if (err == 0)
        err = create_chooser(group, options);
    if (err < 0) {
        if (weir_group_count(group) > 0)
            end_members(group);
        group_weak_release(group);
        return err;
    }
    *ret_group = group;
    return 0;
}

static weir_executor *no_next(void *state, weir_group *group)
{
    (void)state;
    (void)group;
    return NULL;
}

static const weir_chooser no_chooser = {.name = "none", .next = no_next};

/* Copies what was borrowed: members are created later. */
static int copy_options(weir_group *group, size_t type_options_size)
{
    size_t cpus_size = group->cpus != NULL ? group->cpu_count * sizeof(int) : 0;
    size_t cpus_at = (type_options_size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    char *copies = weir__alloc(cpus_at + cpus_size + 1);

    if (copies == NULL)
        return -ENOMEM;
    if (type_options_size > 0)
        group->options.type_options =
            memcpy(copies, group->options.type_options, type_options_size);
    if (cpus_size > 0)
        group->cpus = memcpy(copies + cpus_at, group->cpus, cpus_size);
    group->copies = copies;
    return 0;
}

/* Latest first. */
static void make_idle(weir_group *group, weir_executor *member)
{
    weir__list_append(group->idle.next, &member->lease.link);
}

/* Creates the first member at once, so that errors of the system fail the creation of the group. */
static int init_growing(weir_group *group, size_t type_options_size,
                        const weir_group_options *options)
{
    weir_executor *member;
    int err = copy_options(group, type_options_size);

    if (err < 0)
        return err;
    group->grows = true;
    group->chooser = &no_chooser;
    group->max_leased = (size_t)options->max_channels;
    group->options.idle_ns = IDLE_NS;
    group->options.in_pages = true;
    err = create_member(group, &member);
    if (err < 0)
        return err;
    make_idle(group, member);
    group->options.on_idle = on_member_idle; /* for all but the first */
    group->options.on_idle_arg = group;
    return 0;
}

int weir__group_create_growing(const weir__executor_type *type, const void *type_options,
                               size_t type_options_size, const weir_group_options *options,
                               weir_group **ret_group)
{
    weir_group *group;
    int err;

    if (options->chooser != NULL || options->autoscale != NULL)
        return weir__options_reject("group", options->name,
                                    ".%s is not allowed with WEIR_IO_BLOCKING",
                                    options->chooser != NULL ? "chooser" : "autoscale");
    err = create_empty(type, type_options, options, FIRST_BLOCK, &group);
    if (err < 0)
        return err;
    err = init_growing(group, type_options_size, options);
    if (err < 0) {
        group_weak_release(group);
        return err;
    }
    add_running(group); /* the group itself */
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
    if (group == NULL)
        return;
    WEIR__ASSERT_HELD(weir__refs_are_held(&group->users),
                      "weir_group_release: the group was released more often than retained");
    if (!weir__refs_release(&group->users))
        return;
    if (group->chooser->deinit != NULL)
        group->chooser->deinit(group->chooser_state);
    end_members(group);
    group_weak_release(group);
}

/* ---- members ---- */

weir_executor *weir_group_next(weir_group *group)
{
    return group->chooser->next(group->chooser_state, group);
}

size_t weir_group_count(const weir_group *group)
{
    return weir__executor_array_count(&group->members);
}

weir_executor *weir_group_at(const weir_group *group, size_t index)
{
    return weir__executor_array_at(&group->members, index);
}

static void lock_members(const weir_group *group)
{
    weir__mutex_lock(&((weir_group *)(uintptr_t)group)->lock);
}

static void unlock_members(const weir_group *group)
{
    weir__mutex_unlock(&((weir_group *)(uintptr_t)group)->lock);
}

weir_executor *weir__group_weak_retain_at(const weir_group *group, size_t index)
{
    weir_executor *member;

    lock_members(group);
    member = weir_group_at(group, index);
    if (member != NULL)
        weir__executor_weak_retain(member);
    unlock_members(group);
    return member;
}

bool weir__group_grows(const weir_group *group)
{
    return group->grows;
}

bool weir__group_has_own_chooser(const weir_group *group)
{
    return group->has_own_chooser;
}

const char *weir__group_name(const weir_group *group)
{
    return group->name;
}

/* ---- leases ---- */

/* Skips members that were shut down individually. */
static weir_executor *pop_idle(weir_group *group)
{
    weir__list *link;

    while ((link = weir__list_pop(&group->idle)) != NULL) {
        weir_executor *member = WEIR_CONTAINER_OF(link, weir_executor, lease.link);

        if (takes_tasks(member))
            return member;
    }
    return NULL;
}

/* The caller holds the lock. */
static int lease_member(weir_group *group, weir_executor **ret_member)
{
    int err = 0;

    if (group->closed)
        return WEIR_EREJECTED;
    if (group->max_leased > 0 && group->leased >= group->max_leased) {
        group->refused++;
        return WEIR_ETOOMANY;
    }
    *ret_member = pop_idle(group);
    if (*ret_member == NULL)
        err = create_member(group, ret_member);
    if (err < 0)
        return err;
    (*ret_member)->lease.count = 1;
    group->leased++;
    return 0;
}

int weir__group_lease_next(weir_group *group, weir_executor **ret_executor)
{
    weir_executor *member;
    int err;

    if (!group->grows) {
        *ret_executor = weir_group_next(group);
        return 0;
    }
    weir__mutex_lock(&group->lock);
    err = lease_member(group, &member);
    weir__mutex_unlock(&group->lock);
    if (err == 0)
        *ret_executor = member;
    return err;
}

void weir__executor_lease(weir_executor *executor)
{
    weir_group *group = executor->lease.group;

    if (group == NULL)
        return;
    weir__mutex_lock(&group->lock);
    if (executor->lease.count++ == 0) {
        group->leased++;
        weir__list_remove(&executor->lease.link);
    }
    weir__mutex_unlock(&group->lock);
}

void weir__executor_unlease(weir_executor *executor)
{
    weir_group *group = executor->lease.group;

    if (group == NULL)
        return;
    weir__mutex_lock(&group->lock);
    if (--executor->lease.count == 0) {
        group->leased--;
        if (takes_tasks(executor))
            make_idle(group, executor);
    }
    weir__mutex_unlock(&group->lock);
}

void weir__executor_leave_group(weir_executor *executor)
{
    weir_group *group = executor->lease.group;

    if (group == NULL)
        return;
    weir__mutex_lock(&group->lock);
    weir__list_remove(&executor->lease.link);
    weir__mutex_unlock(&group->lock);
    group_weak_release(group);
}

/* ---- calls to the next member ---- */

void *weir__group_chooser_state(weir_group *group)
{
    return group->chooser_state;
}

int weir_group_execute(weir_group *group, weir_task_fn *fn, void *arg)
{
    weir_executor *next = weir_group_next(group);

    return next != NULL ? weir_execute(next, fn, arg) : -ENOTSUP;
}

int weir_group_submit(weir_group *group, weir_work_fn *work, void *arg, weir_promise **ret_promise)
{
    weir_executor *next = weir_group_next(group);

    return next != NULL ? weir_submit(next, work, arg, ret_promise) : -ENOTSUP;
}

int weir_group_schedule(weir_group *group, int64_t delay_ns, weir_task_fn *fn, void *arg,
                        weir_promise **ret_promise)
{
    weir_executor *next = weir_group_next(group);

    return next != NULL ? weir_schedule(next, delay_ns, fn, arg, ret_promise) : -ENOTSUP;
}

int weir_group_schedule_at_fixed_rate(weir_group *group, int64_t initial_ns, int64_t period_ns,
                                      weir_task_fn *fn, void *arg, weir_promise **ret_promise)
{
    weir_executor *next = weir_group_next(group);

    if (next == NULL)
        return -ENOTSUP;
    return weir_schedule_at_fixed_rate(next, initial_ns, period_ns, fn, arg, ret_promise);
}

int weir_group_schedule_with_fixed_delay(weir_group *group, int64_t initial_ns, int64_t delay_ns,
                                         weir_task_fn *fn, void *arg, weir_promise **ret_promise)
{
    weir_executor *next = weir_group_next(group);

    if (next == NULL)
        return -ENOTSUP;
    return weir_schedule_with_fixed_delay(next, initial_ns, delay_ns, fn, arg, ret_promise);
}

/* ---- stats ---- */

static bool has_thread(const weir_executor *member)
{
    enum weir_executor_state state = weir_executor_state(member);

    return state != WEIR_EXECUTOR_NOT_STARTED && state != WEIR_EXECUTOR_SUSPENDED &&
           state < WEIR_EXECUTOR_TERMINATED;
}

void weir_group_read_stats(const weir_group *group, weir_group_stats *ret_stats)
{
    weir_group_stats stats = {0};

    lock_members(group);
    stats.executors = weir_group_count(group);
    for (size_t i = 0; i < stats.executors; i++) {
        const weir_executor *member = weir_group_at(group, i);

        stats.threads += has_thread(member);
        stats.active += weir__executor_handles(member) > 0;
    }
    if (group->grows)
        stats.active = group->leased;
    stats.refused = group->refused;
    unlock_members(group);
    stats.idle = stats.executors > stats.active ? stats.executors - stats.active : 0;
    *ret_stats = stats;
}

/* ---- the end ---- */

int weir_group_shutdown(weir_group *group, int64_t quiet_ns, int64_t timeout_ns)
{
    if (group == NULL || quiet_ns < 0 || timeout_ns < quiet_ns)
        return -EINVAL;
    weir_group_retain(group); /* a listener of its termination may release it */
    shut_down(group, quiet_ns, timeout_ns);
    weir_group_release(group);
    return 0;
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

    lock_members(group);
    for (size_t i = 0; i < weir_group_count(group); i++) {
        state = weir_executor_state(weir_group_at(group, i));
        if (state < least)
            least = state;
    }
    unlock_members(group);
    return least;
}
