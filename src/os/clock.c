/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monotonic clock and the manual clock.
 *
 * The mutex of a manual clock is held while observers are called. Therefore unsubscribe, which
 * locks it, returns only when no call is in progress, and an observer may only read the clock.
 */
#include "os/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/no_stack_protector.h"
#include "os/thread.h"
#include "os/virtual_os.h"

WEIR__NO_STACK_PROTECTOR int64_t weir__monotonic_now(void)
{
    struct timespec now;

    if (weir__os_is_virtual())
        return weir__virtual_os_set->monotonic_now();
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with a known clock */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t monotonic_now(const weir_clock *clock)
{
    (void)clock;
    return weir__monotonic_now();
}

WEIR__NO_STACK_PROTECTOR int64_t weir_time_of_day(void)
{
    struct timespec now;

    if (weir__os_is_virtual())
        return weir__virtual_os_set->realtime_now();
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

WEIR__NO_STACK_PROTECTOR int64_t weir_time_of_day_coarse(void)
{
    struct timespec now;

    if (weir__os_is_virtual())
        return weir__virtual_os_set->realtime_now();
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

weir_clock weir__monotonic_clock = {.now = monotonic_now};

weir_clock *weir_clock_monotonic(void)
{
    return &weir__monotonic_clock;
}

int64_t weir_clock_now(const weir_clock *clock)
{
    return clock != NULL ? weir__clock_now(clock) : weir__monotonic_now();
}

void weir__clock_subscribe(weir_clock *clock, weir_clock_observer *observer)
{
    if (clock->manual)
        clock->subscribe(clock, observer);
}

void weir__clock_unsubscribe(weir_clock *clock, weir_clock_observer *observer)
{
    if (clock->manual)
        clock->unsubscribe(clock, observer);
}

struct weir_manual_clock {
    weir_clock clock;
    /*
     * Sequentially consistent: a sleeper publishes its deadline and then reads the time; a thread
     * that moves the clock stores the time and then, in `moved`, reads the deadline. At least one
     * of them sees the other.
     */
    _Atomic int64_t now_ns;
    weir__mutex lock; /* guards observers, and changes of now_ns */
    weir_clock_observer *observers;
};

static weir_manual_clock *manual_of(weir_clock *clock)
{
    return WEIR_CONTAINER_OF(clock, weir_manual_clock, clock);
}

static int64_t manual_now(const weir_clock *clock)
{
    /* Cast instead of WEIR_CONTAINER_OF, which would remove the const; the clock is the first
     * member. */
    return atomic_load(&((const weir_manual_clock *)clock)->now_ns);
}

static void manual_subscribe(weir_clock *clock, weir_clock_observer *observer)
{
    weir_manual_clock *manual = manual_of(clock);

    weir__mutex_lock(&manual->lock);
    observer->next = manual->observers;
    observer->pprev = &manual->observers;
    if (observer->next != NULL)
        observer->next->pprev = &observer->next;
    manual->observers = observer;
    weir__mutex_unlock(&manual->lock);
}

static void manual_unsubscribe(weir_clock *clock, weir_clock_observer *observer)
{
    weir_manual_clock *manual = manual_of(clock);

    weir__mutex_lock(&manual->lock);
    if (observer->pprev != NULL) {
        *observer->pprev = observer->next;
        if (observer->next != NULL)
            observer->next->pprev = observer->pprev;
        observer->pprev = NULL;
    }
    weir__mutex_unlock(&manual->lock);
}

int weir_manual_clock_create(int64_t start_ns, weir_manual_clock **ret_clock)
{
    weir_manual_clock *manual;

    if (start_ns < 0)
        return -EINVAL;
    manual = weir__zalloc(sizeof(*manual));
    if (manual == NULL)
        return -ENOMEM;
    manual->clock = (weir_clock){
        .now = manual_now,
        .subscribe = manual_subscribe,
        .unsubscribe = manual_unsubscribe,
        .manual = true,
    };
    atomic_init(&manual->now_ns, start_ns);
    weir__mutex_init(&manual->lock);

    *ret_clock = manual;
    return 0;
}

void weir_manual_clock_release(weir_manual_clock *clock)
{
    if (clock == NULL)
        return;
    assert(clock->observers == NULL);
    weir__mutex_deinit(&clock->lock);
    weir__free(clock);
}

weir_clock *weir_manual_clock_clock(weir_manual_clock *clock)
{
    return &clock->clock;
}

static void move_locked(weir_manual_clock *clock, int64_t now_ns)
{
    atomic_store(&clock->now_ns, now_ns);
    for (weir_clock_observer *observer = clock->observers; observer; observer = observer->next)
        observer->moved(observer);
}

int weir_manual_clock_set(weir_manual_clock *clock, int64_t now_ns)
{
    int err = -EINVAL;

    weir__mutex_lock(&clock->lock);
    if (now_ns >= atomic_load(&clock->now_ns)) {
        move_locked(clock, now_ns);
        err = 0;
    }
    weir__mutex_unlock(&clock->lock);
    return err;
}

int weir_manual_clock_advance(weir_manual_clock *clock, int64_t delta_ns)
{
    int64_t now_ns;

    if (delta_ns < 0)
        return -EINVAL;
    weir__mutex_lock(&clock->lock);
    now_ns = atomic_load(&clock->now_ns);
    move_locked(clock, now_ns > WEIR_NEVER - delta_ns ? WEIR_NEVER : now_ns + delta_ns);
    weir__mutex_unlock(&clock->lock);
    return 0;
}
