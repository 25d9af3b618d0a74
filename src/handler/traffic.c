/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit is one timestamp per direction: the time until which everything so far is paid. A message
 * advances it by its cost, bytes / rate. The timestamp lies at most `burst` in the past, which is
 * the saved capacity, and at most `max_delay` in the future. It is one atomic word, so there is no
 * lock.
 *
 *      now - burst ........ now ........ now + max_delay
 *             <-- saved ----->|<-- owed -->
 */
#include "handler/traffic.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "executor/executor.h"

#define DEFAULT_BURST_NS weir_ms(100)
#define DEFAULT_MAX_DELAY_NS weir_seconds(15)

struct direction {
    _Atomic int64_t rate;
    _Atomic int64_t paid_until;
};

struct weir_traffic {
    weir__refs refs;
    int64_t burst_ns;
    int64_t max_delay_ns;
    struct direction reading;
    struct direction writing;
    _Atomic uint64_t bytes_read;
    _Atomic uint64_t bytes_written;
    _Atomic uint64_t reads_paused;
    _Atomic uint64_t writes_delayed;
    _Atomic int64_t bytes_waiting;
};

/* ---- lifecycle ---- */

static int read_options(const weir_traffic_options *given, weir_traffic_options *ret_options)
{
    int err = weir__options_read(ret_options, sizeof(*ret_options), given);

    if (err < 0)
        return err;
    return weir__options_check("traffic", NULL, WEIR__OPTION_FROM(ret_options, read_rate, 0),
                               WEIR__OPTION_FROM(ret_options, write_rate, 0),
                               WEIR__OPTION_FROM(ret_options, burst_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(ret_options, max_delay_ns, 0));
}

int weir_traffic_create(const weir_traffic_options *options, weir_traffic **ret_traffic)
{
    weir_traffic_options own;
    weir_traffic *traffic;
    int err = read_options(options, &own);

    if (err < 0)
        return err;
    traffic = weir__zalloc(sizeof(*traffic));
    if (traffic == NULL)
        return -ENOMEM;
    weir__refs_init(&traffic->refs);
    traffic->burst_ns = own.burst_ns == 0 ? DEFAULT_BURST_NS : own.burst_ns > 0 ? own.burst_ns : 0;
    traffic->max_delay_ns = own.max_delay_ns > 0 ? own.max_delay_ns : DEFAULT_MAX_DELAY_NS;
    (void)weir_traffic_set_rates(traffic, own.read_rate, own.write_rate);
    *ret_traffic = traffic;
    return 0;
}

weir_traffic *weir_traffic_retain(weir_traffic *traffic)
{
    weir__refs_retain(&traffic->refs);
    return traffic;
}

void weir_traffic_release(weir_traffic *traffic)
{
    if (traffic != NULL && weir__refs_release(&traffic->refs))
        weir__free(traffic);
}

/* ---- rates: all accesses are relaxed, since no other memory depends on them ---- */

int weir_traffic_set_rates(weir_traffic *traffic, int64_t read_rate, int64_t write_rate)
{
    if (read_rate < 0 || write_rate < 0)
        return weir__options_reject("traffic", NULL,
                                    "negative rate: read_rate is %lld, write_rate is %lld",
                                    (long long)read_rate, (long long)write_rate);
    atomic_store_explicit(&traffic->reading.rate, read_rate, memory_order_relaxed);
    atomic_store_explicit(&traffic->writing.rate, write_rate, memory_order_relaxed);
    return 0;
}

/* The time that `bytes` bytes take, at most max_delay. */
static int64_t cost_of(const weir_traffic *traffic, const struct direction *direction,
                       int64_t bytes)
{
    int64_t rate = atomic_load_explicit(&direction->rate, memory_order_relaxed);
    double cost_ns = rate > 0 ? (double)bytes / (double)rate * 1e9 : 0;

    if (cost_ns >= (double)traffic->max_delay_ns)
        return traffic->max_delay_ns;
    return (int64_t)cost_ns + (bytes > 0); /* rounded up: many small ones cost something, too */
}

/* Advances the timestamp, and returns its old and new value. */
static void pay(const weir_traffic *traffic, struct direction *direction, int64_t bytes,
                int64_t now_ns, int64_t *ret_before, int64_t *ret_after)
{
    int64_t cost_ns = cost_of(traffic, direction, bytes);
    int64_t paid_until = atomic_load_explicit(&direction->paid_until, memory_order_relaxed);
    int64_t earliest = traffic->burst_ns < now_ns ? now_ns - traffic->burst_ns : 0;
    int64_t latest = weir__deadline(now_ns, traffic->max_delay_ns), before, after;

    do {
        before = paid_until < earliest ? earliest : paid_until;
        after = weir__deadline(before, cost_ns);
        if (after > latest)
            after = latest;
    } while (!atomic_compare_exchange_weak_explicit(&direction->paid_until, &paid_until, after,
                                                    memory_order_relaxed, memory_order_relaxed));
    *ret_before = before;
    *ret_after = after;
}

int64_t weir__traffic_reserve(weir_traffic *traffic, int64_t bytes, int64_t now_ns)
{
    int64_t before, after;

    if (atomic_load_explicit(&traffic->writing.rate, memory_order_relaxed) == 0)
        return now_ns;
    pay(traffic, &traffic->writing, bytes, now_ns, &before, &after);
    return before;
}

int64_t weir__traffic_charge(weir_traffic *traffic, int64_t bytes, int64_t now_ns)
{
    int64_t before, after;

    atomic_fetch_add_explicit(&traffic->bytes_read, (uint64_t)bytes, memory_order_relaxed);
    if (atomic_load_explicit(&traffic->reading.rate, memory_order_relaxed) == 0)
        return now_ns;
    pay(traffic, &traffic->reading, bytes, now_ns, &before, &after);
    return after;
}

/* ---- stats ---- */

void weir__traffic_count_written(weir_traffic *traffic, int64_t bytes)
{
    atomic_fetch_add_explicit(&traffic->bytes_written, (uint64_t)bytes, memory_order_relaxed);
}

void weir__traffic_count_paused(weir_traffic *traffic)
{
    atomic_fetch_add_explicit(&traffic->reads_paused, 1, memory_order_relaxed);
}

void weir__traffic_begin_waiting(weir_traffic *traffic, int64_t bytes)
{
    atomic_fetch_add_explicit(&traffic->writes_delayed, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&traffic->bytes_waiting, bytes, memory_order_relaxed);
}

void weir__traffic_end_waiting(weir_traffic *traffic, int64_t bytes)
{
    atomic_fetch_sub_explicit(&traffic->bytes_waiting, bytes, memory_order_relaxed);
}

void weir__traffic_cancel_waiting(weir_traffic *traffic, int64_t bytes)
{
    atomic_fetch_sub_explicit(&traffic->writes_delayed, 1, memory_order_relaxed);
    weir__traffic_end_waiting(traffic, bytes);
}

void weir_traffic_read_stats(const weir_traffic *traffic, weir_traffic_stats *ret_stats)
{
    *ret_stats = (weir_traffic_stats){
        .bytes_read = atomic_load_explicit(&traffic->bytes_read, memory_order_relaxed),
        .bytes_written = atomic_load_explicit(&traffic->bytes_written, memory_order_relaxed),
        .reads_paused = atomic_load_explicit(&traffic->reads_paused, memory_order_relaxed),
        .writes_delayed = atomic_load_explicit(&traffic->writes_delayed, memory_order_relaxed),
        .bytes_waiting =
            (uint64_t)atomic_load_explicit(&traffic->bytes_waiting, memory_order_relaxed),
    };
}
