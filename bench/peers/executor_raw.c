/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of the executor suite: what one would write by hand for these cases and no other.
 *
 * Tasks: a stack that the loop takes whole and reverses, and a word that says whether it sleeps, so
 * that one eventfd write wakes it. A loop that keeps up with its producers takes them one by one
 * and fights them for the newest task's cache line; so after a small take that left something
 * behind it pauses for well under a microsecond.
 *
 * Timers: a hierarchical wheel, 6 x 64 slots of 1 ms and up; no order within a millisecond.
 */
#include "executor/competitor.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- tasks ---- */

struct task {
    alignas(BENCH_LINE) struct task *next;
    task_fn *fn;
    void *arg;
};

struct loop {
    alignas(BENCH_LINE) _Atomic(struct task *) newest;
    alignas(BENCH_LINE) atomic_bool asleep;
    alignas(BENCH_LINE) int epoll_fd;
    int wakeup_fd;
    bool stopping;
    struct task stop;
    pthread_t thread;
};

enum { BATCH_SMALL = 128, PAUSES = 40 };

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/*
 * The push and the look at `asleep` are sequentially consistent with the sleeper's store to it and
 * its second look at `newest`: one of the two sees the other.
 */
static inline void loop_post(struct loop *loop, struct task *task, task_fn *fn, void *arg)
{
    task->fn = fn;
    task->arg = arg;
    task->next = atomic_load_explicit(&loop->newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&loop->newest, &task->next, task))
        ;
    if (atomic_load(&loop->asleep) && atomic_exchange(&loop->asleep, false))
        bench_require(eventfd_write(loop->wakeup_fd, 1) == 0, "eventfd_write");
}

static struct task *oldest_first(struct task *task)
{
    struct task *reversed = NULL;

    while (task != NULL) {
        struct task *next = task->next;

        task->next = reversed;
        reversed = task;
        task = next;
    }
    return reversed;
}

static void run_batch(struct loop *loop, struct task *task)
{
    size_t count = 0;

    for (struct task *next; task != NULL; task = next, count++) {
        next = task->next;
        task->fn(task->arg, 0);
    }
    if (count < BATCH_SMALL && atomic_load_explicit(&loop->newest, memory_order_relaxed) != NULL)
        for (int i = 0; i < PAUSES; i++)
            pause_cpu();
}

/* The eventfd is edge-triggered and never read. */
static void sleep_unless_posted(struct loop *loop)
{
    struct epoll_event event;

    atomic_store(&loop->asleep, true);
    if (atomic_load(&loop->newest) == NULL)
        epoll_wait(loop->epoll_fd, &event, 1, -1);
    atomic_store_explicit(&loop->asleep, false, memory_order_relaxed);
}

static void *loop_body(void *arg)
{
    struct loop *loop = arg;

    while (!loop->stopping) {
        if (atomic_load_explicit(&loop->newest, memory_order_relaxed) == NULL)
            sleep_unless_posted(loop);
        else
            run_batch(loop, oldest_first(atomic_exchange(&loop->newest, NULL)));
    }
    return NULL;
}

static void loop_start(struct loop *loop, bench_round *round, int cpu)
{
    struct epoll_event wakeup = {.events = EPOLLIN | EPOLLET};

    (void)round;
    atomic_init(&loop->newest, NULL);
    atomic_init(&loop->asleep, false);
    loop->stopping = false;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bench_require(loop->epoll_fd >= 0 && loop->wakeup_fd >= 0, "epoll_create1 or eventfd");
    bench_require(epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wakeup_fd, &wakeup) == 0,
                  "epoll_ctl");
    bench_thread_start(&loop->thread, cpu, loop_body, loop);
}

static void on_stop(void *arg, int status)
{
    struct loop *loop = arg;

    (void)status;
    loop->stopping = true;
}

static void loop_stop(struct loop *loop)
{
    loop_post(loop, &loop->stop, on_stop, loop);
    bench_thread_join(loop->thread);
    close(loop->wakeup_fd);
    close(loop->epoll_fd);
}

/* ---- timers ---- */

enum { LEVELS = 6, LEVEL_BITS = 6, LEVEL_SLOTS = 1 << LEVEL_BITS, TICK_US = 1000 };

struct timer {
    struct timer *next;
    struct timer **pprev;
    uint64_t tick; /* when it is due */
    void (*fn)(struct timer *timer);
};

struct timer_loop {
    uint64_t tick; /* all that was due by then has fired */
    uint64_t now;
    struct timer *slots[LEVELS][LEVEL_SLOTS];
};

static uint64_t tick_now(void)
{
    return (uint64_t)bench_now_ns() / (TICK_US * 1000);
}

static void on_timer(struct timer *timer)
{
    (void)timer;
    timers_fired++;
}

/* A timer lies at the level of the highest digit in which it differs from the wheel's position. */
static inline void file_timer(struct timer_loop *loop, struct timer *timer)
{
    unsigned level = (63u - (unsigned)__builtin_clzll((timer->tick ^ loop->tick) | 1)) / LEVEL_BITS;
    struct timer **slot =
        &loop->slots[level][timer->tick >> level * LEVEL_BITS & (LEVEL_SLOTS - 1)];

    timer->next = *slot;
    if (timer->next != NULL)
        timer->next->pprev = &timer->next;
    timer->pprev = slot;
    *slot = timer;
}

static void timer_init(struct timer_loop *loop, struct timer *timer)
{
    (void)loop;
    timer->fn = on_timer;
}

static inline void timer_start(struct timer_loop *loop, struct timer *timer, int64_t delay_us)
{
    timer->tick = loop->now + (uint64_t)delay_us / TICK_US + 1;
    file_timer(loop, timer);
}

static inline void timer_stop(struct timer_loop *loop, struct timer *timer)
{
    (void)loop;
    *timer->pprev = timer->next;
    if (timer->next != NULL)
        timer->next->pprev = timer->pprev;
}

static struct timer *take_slot(struct timer_loop *loop, unsigned level)
{
    struct timer **slot = &loop->slots[level][loop->tick >> level * LEVEL_BITS & (LEVEL_SLOTS - 1)];
    struct timer *timers = *slot;

    *slot = NULL;
    return timers;
}

/* The position enters a slot of each level below the highest digit that changed: deal them out. */
static void cascade(struct timer_loop *loop)
{
    unsigned level = (unsigned)__builtin_ctzll(loop->tick) / LEVEL_BITS;

    for (level = level < LEVELS ? level : LEVELS - 1; level > 0; level--)
        for (struct timer *next, *timer = take_slot(loop, level); timer != NULL; timer = next) {
            next = timer->next;
            file_timer(loop, timer);
        }
}

static void timers_run_due(struct timer_loop *loop)
{
    loop->now = tick_now();
    while (loop->tick < loop->now) {
        loop->tick++;
        cascade(loop);
        for (struct timer *next, *timer = take_slot(loop, 0); timer != NULL; timer = next) {
            next = timer->next;
            timer->fn(timer);
        }
    }
}

static void timers_call(struct timer_loop *loop, void (*body)(void *arg), void *arg)
{
    timers_run_due(loop);
    body(arg);
}

static void timers_open(struct timer_loop *loop)
{
    loop->tick = loop->now = tick_now();
}

static void timers_close(struct timer_loop *loop, struct timer *timers, size_t count)
{
    (void)loop;
    (void)timers;
    (void)count;
}

#include "executor/cases.h"
