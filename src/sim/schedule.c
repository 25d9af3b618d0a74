/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which fiber runs next, and when.
 *
 * A fiber runs until it waits or yields. Then the seed selects one of those that can run. Events of
 * the network and deadlines happen when their time has come. Time advances a little with each
 * switch and each look at the clock, and if no fiber can run it jumps to the next event. If there
 * is none either, every fiber waits for ever: a deadlock.
 *
 * There is no fiber for the scheduler: the one that stops running selects its successor, so that a
 * fiber that continues costs no switch.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/thread.h>

#include "sim/world.h"

#define SWITCH_NS 200
#define SWITCH_JITTER_NS 800

/* ---- the heap of events ---- */

static bool is_before(const weir__sim_event *a, const weir__sim_event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static void place(size_t slot, weir__sim_event *event)
{
    weir__sim->events[slot] = event;
    event->slot = slot + 1;
}

static void sift_up(size_t slot, weir__sim_event *event)
{
    while (slot > 0 && is_before(event, weir__sim->events[(slot - 1) / 2])) {
        place(slot, weir__sim->events[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    place(slot, event);
}

static void sift_down(size_t slot, weir__sim_event *event)
{
    size_t child;

    while ((child = 2 * slot + 1) < weir__sim->event_count) {
        if (child + 1 < weir__sim->event_count &&
            is_before(weir__sim->events[child + 1], weir__sim->events[child]))
            child++;
        if (!is_before(weir__sim->events[child], event))
            break;
        place(slot, weir__sim->events[child]);
        slot = child;
    }
    place(slot, event);
}

/* Without memory for an event no simulation is possible. */
static void *grow(void *array, size_t *size, size_t element)
{
    size_t wanted = *size > 0 ? *size * 2 : 64;
    void *grown = realloc(array, wanted * element);

    if (grown == NULL) {
        (void)fputs("weir-sim: no memory\n", stderr);
        abort();
    }
    *size = wanted;
    return grown;
}

void weir__sim_event_add(weir__sim_event *event, int64_t time_ns, weir__sim_event_fn *fn)
{
    weir_sim *sim = weir__sim;

    weir__sim_event_remove(event);
    event->time_ns = time_ns > sim->now_ns ? time_ns : sim->now_ns;
    event->number = sim->next_event++;
    event->fn = fn;
    if (sim->event_count == sim->event_size)
        sim->events = grow(sim->events, &sim->event_size, sizeof(*sim->events));
    sift_up(sim->event_count++, event);
}

void weir__sim_event_remove(weir__sim_event *event)
{
    weir_sim *sim = weir__sim;
    size_t slot = event->slot;
    weir__sim_event *last;

    if (slot-- == 0)
        return;
    event->slot = 0;
    last = sim->events[--sim->event_count];
    if (last == event)
        return;
    if (slot > 0 && is_before(last, sim->events[(slot - 1) / 2]))
        sift_up(slot, last);
    else
        sift_down(slot, last);
}

static void run_event(void)
{
    weir__sim_event *event = weir__sim->events[0];

    if (event->time_ns > weir__sim->now_ns)
        weir__sim->now_ns = event->time_ns;
    weir__sim_event_remove(event);
    event->fn(event);
}

/* ---- runnable fibers ---- */

static void add_runnable(weir__sim_fiber *fiber)
{
    weir_sim *sim = weir__sim;

    if (sim->runnable_count == sim->runnable_size)
        sim->runnable = grow(sim->runnable, &sim->runnable_size, sizeof(*sim->runnable));
    fiber->state = WEIR__SIM_RUNNABLE;
    fiber->slot = sim->runnable_count;
    sim->runnable[sim->runnable_count++] = fiber;
}

static void remove_runnable(weir__sim_fiber *fiber)
{
    weir_sim *sim = weir__sim;
    weir__sim_fiber *last = sim->runnable[--sim->runnable_count];

    sim->runnable[fiber->slot] = last;
    last->slot = fiber->slot;
}

void weir__sim_wake_fiber(weir__sim_fiber *fiber)
{
    if (fiber->state != WEIR__SIM_WAITING)
        return;
    weir__sim_event_remove(&fiber->timeout);
    weir__list_remove(&fiber->wait_link);
    add_runnable(fiber);
}

static void on_timeout(weir__sim_event *event)
{
    weir__sim_wake_fiber(WEIR_CONTAINER_OF(event, weir__sim_fiber, timeout));
}

static void report_deadlock(void)
{
    char text[2048];
    size_t length = 0;

    for (weir__list *link = weir__sim->fibers.next; link != &weir__sim->fibers; link = link->next) {
        const weir__sim_fiber *fiber = WEIR_CONTAINER_OF(link, weir__sim_fiber, link);

        if (length < sizeof(text))
            length += (size_t)snprintf(
                text + length, sizeof(text) - length, "\n  %s on %s (process %s): %s", fiber->name,
                fiber->process->host->name, fiber->process->name,
                fiber->state == WEIR__SIM_WAITING ? fiber->wait_kind : "stopped");
    }
    weir_sim_fail(weir__sim, "deadlock: every fiber waits, and nothing will happen%s", text);
}

static bool is_over(void)
{
    return weir__list_is_empty(&weir__sim->fibers);
}

/* The next fiber that runs; the root if the world is over. */
static weir__sim_fiber *next_fiber(void)
{
    weir_sim *sim = weir__sim;

    for (;;) {
        weir__sim_fiber *fiber;

        if (sim->failure != NULL || is_over())
            return &sim->root;
        while (sim->event_count > 0 && sim->events[0]->time_ns <= sim->now_ns)
            run_event();
        if (sim->failure != NULL || is_over())
            return &sim->root;
        if (sim->runnable_count == 0) {
            if (sim->event_count == 0)
                report_deadlock();
            else if (sim->events[0]->time_ns > sim->options.max_time_ns)
                weir_sim_fail(sim, "virtual time exceeds the limit of %lld s",
                              (long long)(sim->options.max_time_ns / 1000000000));
            else
                run_event();
            continue;
        }
        fiber = sim->runnable[sim->runnable_count > 1 ? weir__sim_below(sim->runnable_count) : 0];
        if (fiber->process->host->stops > 0) { /* looks again later */
            remove_runnable(fiber);
            fiber->state = WEIR__SIM_WAITING;
            fiber->wait_kind = "continuation of its host";
            weir__sim_event_add(&fiber->timeout, sim->now_ns + weir_ms(1), on_timeout);
            continue;
        }
        remove_runnable(fiber);
        return fiber;
    }
}

/* Suspends the calling fiber in its state and runs another, or itself. */
static void run_others(void)
{
    weir_sim *sim = weir__sim;
    weir__sim_fiber *self = sim->current, *next;

    weir__sim_run_checks(false);
    if (++sim->steps > sim->options.max_steps)
        weir_sim_fail(sim, "more than %llu switches between fibers: no end in sight",
                      (unsigned long long)sim->options.max_steps);
    sim->now_ns += SWITCH_NS + (int64_t)weir__sim_below(SWITCH_JITTER_NS);
    next = next_fiber();
    if (next != self) {
        weir__sim_trace_named("run", next->process, next->name, next->number, sim->runnable_count);
        sim->current = next;
        weir__sim_fiber_switch(self, next);
    }
}

void weir__sim_wait(const char *kind, const void *object, int64_t deadline_ns)
{
    weir__sim_fiber *self = weir__sim->current;

    self->state = WEIR__SIM_WAITING;
    self->wait_kind = kind;
    self->wait_object = object;
    if (deadline_ns != WEIR_NEVER)
        weir__sim_event_add(&self->timeout, deadline_ns, on_timeout);
    run_others();
}

void weir__sim_yield(void)
{
    add_runnable(weir__sim->current);
    run_others();
}

void weir__sim_preempt(void)
{
    if (weir__sim_fault(WEIR_SIM_FAULT_SLOW))
        weir__sim_wait("a CPU", NULL,
                       weir__sim->now_ns + weir__sim_duration(weir__sim->options.max_slow_ns));
    else if (weir__sim_fault(WEIR_SIM_FAULT_PREEMPT))
        weir__sim_yield();
}

/* ---- the life of a fiber ---- */

static uint64_t last_handle;

weir__sim_fiber *weir__sim_fiber_start(weir_sim_process *process, const char *name,
                                       weir_thread_fn *fn, void *arg)
{
    weir__sim_fiber *fiber = calloc(1, sizeof(*fiber));

    if (fiber == NULL)
        return NULL;
    if (weir__sim_fiber_prepare(fiber) < 0) {
        free(fiber);
        return NULL;
    }
    fiber->number = ++weir__sim->next_fiber;
    fiber->handle = ++last_handle;
    (void)snprintf(fiber->name, sizeof(fiber->name), "%s", name);
    fiber->fn = fn;
    fiber->arg = arg;
    fiber->process = process;
    process->fibers++;
    weir__sim->seams->random_init(&fiber->random,
                                  weir__sim->options.seed * 1000003 + fiber->number);
    weir__list_init(&fiber->wait_link);
    weir__list_append(&weir__sim->fibers, &fiber->link);
    add_runnable(fiber);
    weir__sim_trace_named("start", process, fiber->name, fiber->number, process->number);
    return fiber;
}

static void free_fiber(weir__sim_fiber *fiber)
{
    weir__sim_fiber_unprepare(fiber);
    free(fiber);
}

static weir__sim_fiber *to_free; /* ended, but its stack was in use until the switch */

void weir__sim_fiber_main(void)
{
    weir__sim_fiber *self = weir__sim->current;

    weir__sim->seams->set_fiber(self->number);
    self->fn(self->arg);
    weir_locals_remove_all();

    weir__sim_trace_named("end", self->process, self->name, self->number, 0);
    self->state = WEIR__SIM_ENDED;
    weir__sim_process_leave(self->process);
    weir__list_remove(&self->link);
    if (!self->detached) {
        weir__list_append(&weir__sim->ended, &self->link);
        for (weir__list *link = weir__sim->joiners.next, *next; link != &weir__sim->joiners;
             link = next) {
            weir__sim_fiber *joiner = WEIR_CONTAINER_OF(link, weir__sim_fiber, wait_link);

            next = link->next;
            if (joiner->wait_object == self)
                weir__sim_wake_fiber(joiner);
        }
    } else {
        if (to_free != NULL)
            free_fiber(to_free);
        to_free = self;
    }
    run_others(); /* does not return */
    abort();
}

void weir__sim_fiber_join(weir__sim_fiber *fiber)
{
    while (fiber->state != WEIR__SIM_ENDED) {
        weir__list_append(&weir__sim->joiners, &weir__sim->current->wait_link);
        weir__sim_wait("the end of a thread", fiber, WEIR_NEVER);
    }
    weir__list_remove(&fiber->link);
    free_fiber(fiber);
}

void weir__sim_fiber_detach(weir__sim_fiber *fiber)
{
    if (fiber->state == WEIR__SIM_ENDED) {
        weir__list_remove(&fiber->link);
        free_fiber(fiber);
    } else {
        fiber->detached = true;
    }
}

/* Frees the fibers that have ended and were not joined. Returns one that should have been. */
const char *weir__sim_free_ended(void)
{
    static char name[32];
    const char *result = NULL;
    weir__list *link;

    while ((link = weir__list_pop(&weir__sim->ended)) != NULL) {
        weir__sim_fiber *fiber = WEIR_CONTAINER_OF(link, weir__sim_fiber, link);

        if (fiber->process != weir__sim->world_process) { /* not the global executor's */
            memcpy(name, fiber->name, sizeof(name));
            result = name;
        }
        free_fiber(fiber);
    }
    return result;
}

void weir__sim_run_all(void)
{
    weir_sim *sim = weir__sim;
    weir__sim_fiber *next = next_fiber();

    sim->current = next;
    if (next != &sim->root)
        weir__sim_fiber_switch(&sim->root, next);
    sim->current = NULL;
    if (to_free != NULL)
        free_fiber(to_free);
    to_free = NULL;
}
