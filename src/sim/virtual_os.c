/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, futexes, clocks, signals, names and random numbers of weir, as those of the world.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "sim/child.h"
#include "sim/network.h"
#include "sim/world.h"

#define CLOCK_READ_NS 20                            /* virtual duration of a look at the clock */
#define EPOCH_NS (INT64_C(1700000000) * 1000000000) /* wall clock at the start of a world */
#define LOOKUP_MAX_NS weir_ms(20)

/* ---- time ---- */

static int64_t monotonic_now(void)
{
    return weir__sim->now_ns += CLOCK_READ_NS;
}

static int64_t realtime_now(void)
{
    return EPOCH_NS + weir__sim->now_ns + weir__sim_process()->host->clock_offset_ns;
}

static weir__random *random_of_fiber(void)
{
    return &weir__sim->current->random;
}

/* ---- threads ---- */

/* The global executor and the default resolver serve all processes. */
static weir_sim_process *process_of_thread(const char *name)
{
    return strcmp(name, "weir-global") == 0 || strncmp(name, "weir-dns", 8) == 0
               ? weir__sim->world_process
               : weir__sim_process();
}

static void *process_enter(void *process)
{
    weir_sim_process *before = weir__sim->current->process;

    if (process != NULL)
        weir__sim->current->process = process;
    return before;
}

static int thread_start(const char *name, weir_thread_fn *fn, void *arg, uint64_t *ret_thread)
{
    weir__sim_fiber *fiber = weir__sim_fiber_start(process_of_thread(name), name, fn, arg);

    if (fiber == NULL)
        return -ENOMEM;
    *ret_thread = fiber->handle;
    return 0;
}

/* NULL for a thread of an earlier world. */
static weir__sim_fiber *fiber_of(uint64_t handle)
{
    weir__list *lists[] = {&weir__sim->fibers, &weir__sim->ended};

    for (unsigned i = 0; i < 2; i++) {
        weir_list_foreach (link, lists[i]) {
            weir__sim_fiber *fiber = WEIR_CONTAINER_OF(link, weir__sim_fiber, link);

            if (fiber->handle == handle)
                return fiber;
        }
    }
    return NULL;
}

static void thread_join(uint64_t thread)
{
    weir__sim_fiber *fiber = fiber_of(thread);

    if (fiber != NULL)
        weir__sim_fiber_join(fiber);
}

static void thread_detach(uint64_t thread)
{
    weir__sim_fiber *fiber = fiber_of(thread);

    if (fiber != NULL)
        weir__sim_fiber_detach(fiber);
}

static uint64_t thread_current(void)
{
    return weir__sim->current->handle;
}

static const char *thread_name(void)
{
    return weir__sim->current->name;
}

static void thread_sleep(int64_t duration_ns)
{
    int64_t now_ns = weir__sim->now_ns;

    weir__sim_wait("the end of a sleep", NULL,
                   duration_ns > WEIR_NEVER - now_ns ? WEIR_NEVER : now_ns + duration_ns);
}

/* ---- futexes ---- */

static void futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    weir__sim_preempt();
    if (atomic_load(word) != expected || deadline_ns <= weir__sim->now_ns)
        return;
    weir__list_append(&weir__sim->futexes, &weir__sim->current->wait_link);
    weir__sim_wait("a promise, task or lock", (const void *)(uintptr_t)word, deadline_ns);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
    weir_list_foreach (link, &weir__sim->futexes) {
        weir__sim_fiber *fiber = WEIR_CONTAINER_OF(link, weir__sim_fiber, wait_link);

        if (fiber->wait_object == (const void *)(uintptr_t)word && count-- > 0)
            weir__sim_wake_fiber(fiber);
    }
}

/* ---- signals ---- */

static int lowest_signal(uint64_t set)
{
    return __builtin_ctzll(set) + 1;
}

static int signal_wait(uint64_t set, int *ret_number, bool *ret_is_own)
{
    weir__sim_fiber *self = weir__sim->current;
    weir_sim_process *process = self->process;

    while ((self->own_signals & set) == 0 && (process->pending_signals & set) == 0) {
        self->signals = set;
        weir__sim_wait("a signal", NULL, WEIR_NEVER);
        self->signals = 0;
    }
    *ret_is_own = (self->own_signals & set) != 0;
    if (*ret_is_own) {
        *ret_number = lowest_signal(self->own_signals & set);
        self->own_signals &= ~(UINT64_C(1) << (*ret_number - 1));
    } else {
        *ret_number = lowest_signal(process->pending_signals & set);
        process->pending_signals &= ~(UINT64_C(1) << (*ret_number - 1));
    }
    return 0;
}

static void signal_thread(int number, uint64_t thread)
{
    weir__sim_fiber *fiber = fiber_of(thread);

    if (fiber == NULL)
        return;
    fiber->own_signals |= UINT64_C(1) << (number - 1);
    if ((fiber->signals & fiber->own_signals) != 0)
        weir__sim_wake_fiber(fiber);
}

/* ---- names ---- */

static int host_lookup(const char *name, int family, weir_address *ret_addresses, size_t max,
                       size_t *ret_count)
{
    const weir_sim_host *host = weir__sim_host_by_name(name);
    size_t count = 0;

    weir__sim_wait("a name lookup", NULL, weir__sim->now_ns + weir__sim_duration(LOOKUP_MAX_NS));
    if (weir__sim_fault(WEIR_SIM_FAULT_LOOKUP) || weir_sim_is_dying())
        return WEIR_ELOOKUP;
    for (size_t i = 0; host != NULL && i < host->address_count && count < max; i++) {
        const weir_address *address = &host->addresses[i];

        if (family == AF_UNSPEC || weir_address_sockaddr(address)->sa_family == family)
            ret_addresses[count++] = *address;
    }
    *ret_count = count;
    return count > 0 ? 0 : WEIR_ENOHOST;
}

static void executor_ended(const char *name, uint64_t taken, uint64_t called)
{
    if (taken != called)
        weir_sim_fail(weir__sim, "executor %s has ended with %llu tasks that were never called",
                      name, (unsigned long long)(taken - called));
}

const weir__virtual_os weir__sim_virtual_os = {
    .monotonic_now = monotonic_now,
    .realtime_now = realtime_now,
    .random = random_of_fiber,
    .thread_start = thread_start,
    .thread_join = thread_join,
    .thread_detach = thread_detach,
    .thread_current = thread_current,
    .thread_name = thread_name,
    .thread_sleep = thread_sleep,
    .thread_yield = weir__sim_yield,
    .futex_wait = futex_wait,
    .futex_wake = futex_wake,
    .preempt = weir__sim_preempt,
    .signal_wait = signal_wait,
    .signal_thread = signal_thread,
    .executor_ended = executor_ended,
    .host_lookup = host_lookup,
    .process_id = weir__sim_process_id,
    .process_start = weir__sim_process_start,
    .process_first_descriptor = weir__sim_first_descriptor,
    .environment_get = weir__sim_environment_get,
    .environment_put = weir__sim_environment_put,
    .environment_unset = weir__sim_environment_unset,
    .environment_entries = weir__sim_environment_entries,
    .process_static = weir__sim_process_static,
    .process_enter = process_enter,
};
