/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog: its thread, and how it finds blocked loops.
 *
 * It looks at each running loop four times per threshold. A loop publishes how many turns it has
 * made, when the current one began, and whether it is awake: no more than its stats. While all
 * loops sleep, the watchdog does: the next one that wakes up ends that. A loop that is
 * awake in the same turn as at the last look has spent the time between them in it. A look adds at
 * most two periods, whatever the clock says, so time for which the process was stopped, or the
 * watchdog had no CPU, does not count; nor does time for which the loop's thread had none. If
 * the sum reaches the threshold, the loop is blocked.
 *
 * From then on the loop measures this turn exactly, when it ends
 * (weir__executor_stats_sample_turn). With different clocks the duration is what the looks have
 * added up.
 */
#include <errno.h>
#include <signal.h>

#include "base/log.h"
#include "base/options.h"
#include "executor/executor.h"
#include "loop/loop.h"
#include "os/backtrace.h"
#include "os/futex.h"
#include "watchdog/block.h"
#include "watchdog/interrupt.h"

#define THRESHOLD_NS weir_ms(100)
#define LOOKS_PER_THRESHOLD 4
#define PERIODS_PER_LOOK 2 /* that a look adds at most */
#define BLOCKS_BEFORE_OFFLOAD 3
#define LOGGED_BLOCKS 10

static struct {
    weir__mutex control; /* of starting and stopping */
    weir__mutex lock;    /* of a look, and of everything below */
    bool is_running;
    weir_clock *clock;
    int64_t threshold_ns;
    int64_t period_ns;
    weir__block_policy policy;
    uint64_t look; /* number of the current one; a new start does not reset it, so that those in
                      the watches of loops stay behind it */
    int64_t look_ns;
    int64_t elapsed_ns; /* since the last one */
    int64_t added_ns;   /* the time that this look adds */
    weir__list blocks;  /* that have not ended */
    bool saw_awake;     /* the last look saw a loop that was awake */
    weir__thread thread;
    _Atomic uint32_t is_stopping; /* a futex */
} self = {
    .control = WEIR__MUTEX_INIT,
    .lock = WEIR__MUTEX_INIT,
    .blocks = {&self.blocks, &self.blocks},
};

static _Thread_local bool is_looking;

/* ---- looking at a loop ---- */

static bool has_same_clock(const weir_executor *loop)
{
    return loop->options.clock == self.clock;
}

static uint64_t turns_of(const weir_executor *loop)
{
    return atomic_load_explicit(&loop->stats.turns, memory_order_relaxed);
}

/* Busy polling is a wait. The last steps of a loop may wait, and are not a turn. */
static bool is_awake(const weir_executor *loop)
{
    return atomic_load_explicit(&loop->stats.active, memory_order_relaxed) < 0 &&
           !weir__loop_is_busy_polling(loop) && weir__executor_state(loop) < WEIR_EXECUTOR_SHUTDOWN;
}

static pid_t thread_of(const weir_executor *loop)
{
    return atomic_load_explicit(&loop->thread_id, memory_order_relaxed);
}

static int64_t cpu_time_of(const weir_executor *loop)
{
    return weir__thread_cpu_time(atomic_load_explicit(&loop->cpu_clock, memory_order_relaxed));
}

/*
 * What a look adds that does not know for how long the thread had no CPU since the last one. It is
 * less than others may add, so that two of them do not make a block.
 */
static int64_t added_blindly(void)
{
    return weir__earlier(self.added_ns, self.period_ns);
}

/* The part of this turn that lies between the last look and this one. */
static void see_first(weir__watch *watch, const weir_executor *loop, uint64_t turns)
{
    int64_t began_ns = atomic_load_explicit(&loop->stats.turn_began, memory_order_relaxed);
    int64_t elapsed_ns = has_same_clock(loop) ? self.look_ns - began_ns : 0;

    *watch = (weir__watch){.look = self.look, .turns = turns};
    if (elapsed_ns > 0)
        watch->observed_ns = weir__earlier(elapsed_ns, added_blindly());
}

/*
 * The part of the time since the last look for which the thread slept or had a CPU. The kernel
 * counts a wait for a CPU when it ends: of a thread that is runnable only the CPU time is known.
 */
static int64_t without_run_delay(const weir__watch *watch, const weir__watch *before,
                                 bool is_runnable)
{
    int64_t delay_ns = watch->run_delay_ns - before->run_delay_ns;
    int64_t known_ns = is_runnable ? watch->cpu_ns - before->cpu_ns : self.elapsed_ns - delay_ns;

    return weir__earlier(known_ns, self.added_ns);
}

/* Time without a CPU counts with a clock that is not the real one. */
static void see_again(weir__watch *watch, const weir_executor *loop, bool is_runnable)
{
    const weir__watch before = *watch;
    int64_t added_ns = self.added_ns;

    watch->look = self.look;
    watch->cpu_ns = cpu_time_of(loop);
    watch->run_delay_ns = weir__thread_run_delay(thread_of(loop));
    if (!watch->has_times) {
        watch->has_times = true;
        watch->since_ns = weir__monotonic_now();
        watch->busy_ns = watch->cpu_ns + watch->run_delay_ns;
        added_ns = added_blindly();
    } else if (self.clock == &weir__monotonic_clock) {
        added_ns = without_run_delay(watch, &before, is_runnable);
    }
    if (added_ns > 0)
        watch->observed_ns += added_ns;
}

/* At least half of the time since the second look. */
static bool is_computing(const weir__watch *watch)
{
    int64_t busy_ns = watch->cpu_ns + watch->run_delay_ns - watch->busy_ns;

    return 2 * busy_ns >= weir__monotonic_now() - watch->since_ns;
}

static void on_blocked(weir_executor *loop, bool is_runnable)
{
    weir__watch *watch = &loop->running_loop.watch;
    weir__block *block;

    watch->is_blocked = true;
    atomic_store_explicit(&loop->stats.sample_at, 0, memory_order_relaxed);
    block = weir__block_find(&self.policy, loop, watch->observed_ns,
                             is_runnable || is_computing(watch), self.look_ns);
    if (block != NULL)
        weir__list_append(&self.blocks, &block->link);
}

/* The turns are read before the state: a loop that begins another turn meanwhile is awake, too. */
static void look_at(weir_executor *loop, void *arg)
{
    weir__watch *watch = &loop->running_loop.watch;
    uint64_t turns = turns_of(loop);
    bool is_runnable;

    (void)arg;
    if (!is_awake(loop))
        return;
    self.saw_awake = true;
    if (watch->look == 0 || watch->look + 1 != self.look || watch->turns != turns) {
        see_first(watch, loop, turns);
        return;
    }
    is_runnable = weir__thread_is_runnable(thread_of(loop));
    see_again(watch, loop, is_runnable);
    if (!watch->is_blocked && watch->observed_ns >= self.threshold_ns)
        on_blocked(loop, is_runnable);
}

/* ---- looking at a block ---- */

static bool has_ended(const weir__block *block)
{
    const weir_executor *loop = block->report.executor;

    return turns_of(loop) != block->turns || !is_awake(loop);
}

/*
 * The loop's own measurement, if there is one, and if it does not include time in which the process
 * was stopped. Acquire: with weir__executor_stats_sample_turn.
 */
static int64_t duration_of(const weir__block *block, int64_t observed_ns)
{
    const weir_executor *loop = block->report.executor;
    uint64_t measured = atomic_load_explicit(&loop->stats.blocked_turn, memory_order_acquire);
    int64_t exact_ns = atomic_load_explicit(&loop->stats.blocked_turn_ns, memory_order_relaxed);

    if (!has_same_clock(loop) || measured != block->turns + 1 || exact_ns < observed_ns)
        return observed_ns;
    return weir__earlier(exact_ns, observed_ns + self.added_ns);
}

static void look_at_blocks(void)
{
    weir_list_foreach (link, &self.blocks) {
        weir__block *block = WEIR_CONTAINER_OF(link, weir__block, link);
        const weir__watch *watch = &block->report.executor->running_loop.watch;

        if (watch->turns == block->turns)
            block->report.duration_ns = watch->observed_ns;
        if (!has_ended(block))
            continue;
        weir__list_remove(link);
        weir__block_end(block, duration_of(block, block->report.duration_ns));
    }
}

/* Blocks first: a loop that has left its blocked turn gets a new watch. */
static void look(void)
{
    int64_t now_ns = weir__clock_now(self.clock), most_ns = PERIODS_PER_LOOK * self.period_ns;

    is_looking = true;
    self.elapsed_ns = now_ns > self.look_ns ? now_ns - self.look_ns : 0;
    self.added_ns = weir__earlier(self.elapsed_ns, most_ns);
    self.look_ns = now_ns;
    self.look++;
    self.saw_awake = false;
    look_at_blocks();
    weir__running_loops_foreach(look_at, NULL);
    is_looking = false;
}

/* ---- the thread ---- */

static bool is_stopping(void)
{
    return atomic_load_explicit(&self.is_stopping, memory_order_seq_cst) != 0;
}

/* False if a loop is awake, or a block that has ended waits for its report. */
static bool all_sleep(void)
{
    bool are_asleep;

    weir__mutex_lock(&self.lock);
    are_asleep = !self.saw_awake && weir__list_is_empty(&self.blocks);
    weir__mutex_unlock(&self.lock);
    return are_asleep && weir__running_loops_set_alarm();
}

/* `stop` sets is_stopping and then rings; here it is read after the alarm was set. */
static void sleep_until_alarm(void)
{
    while (!is_stopping() &&
           atomic_load_explicit(&weir__running_loops_alarm, memory_order_seq_cst) != 0)
        weir__futex_wait(&weir__running_loops_alarm, 1, WEIR_NEVER);
    weir__running_loops_ring();
}

static void thread_main(void *arg)
{
    int64_t next_ns = weir__monotonic_now();

    (void)arg;
    while (!is_stopping()) {
        next_ns += self.period_ns;
        if (next_ns < weir__monotonic_now())
            next_ns = weir__monotonic_now() + self.period_ns; /* late: do not catch up */
        while (!is_stopping() && weir__monotonic_now() < next_ns)
            weir__futex_wait(&self.is_stopping, 0, next_ns);
        weir__mutex_lock(&self.lock);
        look();
        weir__mutex_unlock(&self.lock);
        if (all_sleep())
            sleep_until_alarm();
    }
}

int weir_watchdog_check(void)
{
    int err = 0;

    if (is_looking)
        return -EDEADLK;
    weir__mutex_lock(&self.lock);
    if (!self.is_running)
        err = -ESRCH;
    else if (!self.clock->manual)
        err = -EINVAL;
    else
        look();
    weir__mutex_unlock(&self.lock);
    return err;
}

/* ---- starting and stopping ---- */

static int read_options(const weir_watchdog_options *options, weir_watchdog_options *ret_options)
{
    int err = weir__options_read(ret_options, sizeof(*ret_options), options);

    if (err < 0)
        return err;
    if (ret_options->threshold_ns == 0)
        ret_options->threshold_ns = THRESHOLD_NS;
    if (ret_options->signal == 0)
        ret_options->signal = SIGRTMAX - 2;
    if (ret_options->blocks_before_offload == 0)
        ret_options->blocks_before_offload = BLOCKS_BEFORE_OFFLOAD;
    if (ret_options->logged_blocks == 0)
        ret_options->logged_blocks = LOGGED_BLOCKS;
    if (ret_options->clock == NULL)
        ret_options->clock = weir_clock_monotonic();
    return weir__options_check(
        "watchdog", NULL, WEIR__OPTION(ret_options, threshold_ns, weir_ms(1), weir_seconds(3600)),
        WEIR__OPTION(ret_options, backtrace, WEIR_OFF, WEIR_ON),
        WEIR__OPTION(ret_options, signal, 1, SIGRTMAX),
        WEIR__OPTION_FROM(ret_options, blocks_before_offload, 1),
        WEIR__OPTION_FROM(ret_options, logged_blocks, 1));
}

static void configure(const weir_watchdog_options *options)
{
    self.clock = options->clock;
    self.threshold_ns = options->threshold_ns;
    self.period_ns = options->threshold_ns / LOOKS_PER_THRESHOLD;
    self.policy = (weir__block_policy){
        .has_backtrace = options->backtrace != WEIR_OFF && weir__stack_copy_is_available(),
        .blocks_before_offload = (uint64_t)options->blocks_before_offload,
        .logged_blocks = (uint64_t)options->logged_blocks,
    };
    weir__block_reset_log();
    self.look += 2; /* no watch is of the look before */
    self.look_ns = weir__clock_now(self.clock);
}

static int start(const weir_watchdog_options *options)
{
    int err = 0;

    configure(options);
    if (self.policy.has_backtrace)
        err = weir__interrupt_open(options->signal);
    if (err < 0)
        return err;
    atomic_store_explicit(&self.is_stopping, 0, memory_order_relaxed);
    if (!self.clock->manual)
        err = weir__thread_start("weir-watchdog", thread_main, NULL, &self.thread);
    if (err < 0) {
        if (self.policy.has_backtrace)
            weir__interrupt_close();
        return err;
    }
    if (self.policy.has_backtrace)
        weir__running_loops_allow_signal(options->signal);
    self.is_running = true;
    weir__watchdog_set_running(true);
    return 0;
}

int weir_watchdog_start(const weir_watchdog_options *options)
{
    weir_watchdog_options given;
    int err = read_options(options, &given);

    if (err < 0)
        return err;
    weir__mutex_lock(&self.control);
    weir__mutex_lock(&self.lock);
    err = self.is_running ? -EALREADY : start(&given);
    weir__mutex_unlock(&self.lock);
    weir__mutex_unlock(&self.control);
    if (err == -EBUSY)
        weir__error("watchdog", NULL, "signal %d has a handler of the program; choose another one",
                    given.signal);
    return err;
}

static void stop(void)
{
    weir__list *link;

    atomic_store_explicit(&self.is_stopping, 1, memory_order_seq_cst);
    weir__futex_wake(&self.is_stopping, 1);
    weir__running_loops_ring();
    if (!self.clock->manual)
        weir__thread_join(&self.thread);
    weir__mutex_lock(&self.lock);
    self.is_running = false;
    weir__watchdog_set_running(false);
    while ((link = weir__list_pop(&self.blocks)) != NULL)
        weir__block_abandon(WEIR_CONTAINER_OF(link, weir__block, link));
    if (self.policy.has_backtrace) {
        weir__running_loops_allow_signal(0);
        weir__interrupt_close();
    }
    weir__mutex_unlock(&self.lock);
}

void weir_watchdog_stop(void)
{
    weir__mutex_lock(&self.control);
    if (self.is_running)
        stop();
    weir__mutex_unlock(&self.control);
}
