/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the messages to watch, and triggers the search for leaks.
 *
 *     creation --countdown--> weir__leak_sample --selected--> a record (buffer/leak_record.c)
 *     exit, weir_leak_check, end of a scope --> reports (buffer/leak_report.c)
 *
 * The distance between two samples is random, 128 on average: otherwise a program that creates
 * messages periodically might always have the same one watched. A backtrace takes 3 us, and a
 * thread that creates a message every few nanoseconds would spend most of its time on them:
 * therefore two samples within a millisecond double the distance, up to 64 times.
 */
#include "buffer/leak.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

#include "base/log.h"
#include "buffer/leak_record.h"
#include "buffer/leak_report.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/random.h"
#include "os/thread.h"

#define INTERVAL 128u
#define INTERVAL_MAX (64 * INTERVAL)
#define SAMPLE_GAP_NS weir_ms(1)

static weir__once level_once = WEIR__ONCE_INIT;
static _Atomic int current_level = WEIR_LEAK_SIMPLE;

static weir__once exit_once = WEIR__ONCE_INIT;
static pid_t watcher; /* the process that has watched a message */

static _Thread_local struct {
    uint32_t interval; /* 0 = not started */
    int64_t sampled_ns;
    unsigned scopes;
} sampler;

/* ---- the level ---- */

static const char *const level_names[] = {
    [WEIR_LEAK_OFF] = "off",
    [WEIR_LEAK_SIMPLE] = "simple",
    [WEIR_LEAK_ADVANCED] = "advanced",
    [WEIR_LEAK_PARANOID] = "paranoid",
};

int weir__leak_parse_level(const char *text, enum weir_leak_level *ret_level)
{
    for (int level = WEIR_LEAK_OFF; level <= WEIR_LEAK_PARANOID; level++) {
        if (strcasecmp(text, level_names[level]) == 0) {
            *ret_level = (enum weir_leak_level)level;
            return 0;
        }
    }
    return -EINVAL;
}

static void read_environment(void)
{
    const char *text = getenv("WEIR_LEAK_LEVEL");
    enum weir_leak_level level;

    if (text == NULL)
        return;
    if (weir__leak_parse_level(text, &level) == 0)
        atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
    else
        weir__warn("leak", NULL,
                   "WEIR_LEAK_LEVEL ignored, not off, simple, advanced or paranoid: %s", text);
}

enum weir_leak_level weir_leak_level(void)
{
    weir__once_run(&level_once, read_environment);
    /* Relaxed: the level publishes no other data. */
    return (enum weir_leak_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

static void restart_sampling(void)
{
    sampler.interval = 0;
    weir__pool_thread_now.leak_countdown = 0;
}

int weir_leak_set_level(enum weir_leak_level level)
{
    if ((int)level < WEIR_LEAK_OFF || level > WEIR_LEAK_PARANOID)
        return -EINVAL;
    weir__once_run(&level_once, read_environment);
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
    weir__leak_sites_reset();
    restart_sampling();
    return 0;
}

/* ---- sampling ---- */

static uint32_t next_interval(void)
{
    int64_t now_ns = weir__monotonic_now();
    bool too_soon = sampler.interval > 0 && now_ns - sampler.sampled_ns < SAMPLE_GAP_NS;

    sampler.sampled_ns = now_ns;
    if (!too_soon)
        return INTERVAL;
    return sampler.interval < INTERVAL_MAX ? sampler.interval * 2 : INTERVAL_MAX;
}

/* True if the message at the end of the countdown is a sample; starts the next countdown. */
static bool is_sample(void)
{
    bool started = sampler.interval > 0;

    sampler.interval = next_interval();
    weir__pool_thread_now.leak_countdown =
        (int32_t)weir__random_below(weir__random_thread(), 2 * sampler.interval - 1);
    return started; /* the first countdown was not random */
}

/*
 * A message whose thread has ended may be held by any other thread, so it is lost for certain only
 * when none is left. A child of fork has the records of its parent, and not its threads.
 */
static void at_exit(void)
{
    if (watcher == weir__process_kernel_id() && !weir__leak_others_run())
        (void)weir_leak_check();
}

static void check_at_exit(void)
{
    watcher = weir__process_kernel_id();
    (void)atexit(at_exit);
}

static void watch(weir_msg *msg, bool detailed)
{
    weir__once_run(&exit_once, check_at_exit);
    weir__leak_record_add(msg, detailed);
}

void weir__leak_sample(weir_msg *msg)
{
    enum weir_leak_level level = weir_leak_level();

    if (sampler.scopes > 0 || level == WEIR_LEAK_PARANOID) {
        weir__pool_thread_now.leak_countdown = 0;
        watch(msg, true);
    } else if (level == WEIR_LEAK_OFF) {
        weir__pool_thread_now.leak_countdown = INTERVAL - 1;
    } else if (is_sample()) {
        watch(msg, level == WEIR_LEAK_ADVANCED);
    }
}

/* ---- searching ---- */

size_t weir_leak_check(void)
{
    return weir__leak_report_all(&(weir__leak_search){.only_ended = true});
}

size_t weir_leak_check_all(void)
{
    return weir__leak_report_all(&(weir__leak_search){.only_ended = false});
}

/* ---- scopes ---- */

void weir_leak_scope_begin(weir_leak_scope *scope)
{
    *scope = (weir_leak_scope){.first = weir__leak_records_next_number()};
    sampler.scopes++;
    restart_sampling();
}

size_t weir_leak_scope_end(weir_leak_scope *scope)
{
    sampler.scopes--;
    restart_sampling();
    return weir__leak_report_all(&(weir__leak_search){
        .maker = weir__thread_id(),
        .first = scope->first,
        .repeat_reported = true,
    });
}
