/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http_counters.h"

#include <string.h>

#include <weir/memory.h>
#include <weir/metric.h>
#include <weir/thread.h>

#include "os/mutex.h"

_Thread_local weir__http_counts *weir__http_counts_own;

static struct {
    weir__mutex lock; /* guards the list; held while shards are added up, so that none is closed */
    weir__list shards;
} registry = {.lock = WEIR__MUTEX_INIT, .shards = {&registry.shards, &registry.shards}};

static weir__http_counts shared = {.request_time = {.min = INT64_MAX, .max = -1}};

/* ---- shards ---- */

static void add_shared(unsigned counter, uint64_t n)
{
    atomic_fetch_add_explicit(&shared.counters[counter], n, memory_order_release);
}

static void close_shard(void *arg)
{
    weir__http_counts *shard = arg;

    weir__http_counts_own = NULL;
    weir__mutex_lock(&registry.lock);
    weir__list_remove(&shard->link);
    for (unsigned i = 0; i < WEIR__HTTP_COUNTER_COUNT; i++)
        add_shared(i, atomic_load_explicit(&shard->counters[i], memory_order_relaxed));
    weir_histogram_merge(&shared.request_time, &shard->request_time);
    weir__mutex_unlock(&registry.lock);
    weir_memory_free(shard);
}

/* Creates the counts of this thread. False if there is no memory. */
static bool open_shard(void)
{
    weir__http_counts *shard = weir_memory_alloc(sizeof(*shard));

    if (shard == NULL)
        return false;
    memset(shard, 0, sizeof(*shard));
    atomic_init(&shard->request_time.min, INT64_MAX);
    atomic_init(&shard->request_time.max, -1);
    if (weir_thread_on_exit(close_shard, shard) < 0) {
        weir_memory_free(shard);
        return false;
    }
    weir__mutex_lock(&registry.lock);
    weir__list_append(&registry.shards, &shard->link);
    weir__mutex_unlock(&registry.lock);
    weir__http_counts_own = shard;
    return true;
}

__attribute__((cold)) void weir__http_count_first(unsigned counter, uint64_t n)
{
    if (open_shard())
        weir__http_counts_add(weir__http_counts_own, counter, n);
    else
        add_shared(counter, n);
}

__attribute__((cold)) void weir__http_record_first(int64_t duration_ns, uint64_t count)
{
    if (open_shard())
        weir__histogram_record_many(&weir__http_counts_own->request_time, duration_ns, count);
    else
        for (; count > 0; count--)
            weir_histogram_record(&shared.request_time, duration_ns);
}

/* ---- the metric registry ---- */

/* In the order of the counters; a gauge is in the place of the counter that it subtracts. */
static const weir_metric_row rows[] = {
    {"http.connections_open", WEIR_METRIC_GAUGE},
    {"http.connections", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"other\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"GET\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"HEAD\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"POST\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"PUT\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"DELETE\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"CONNECT\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"OPTIONS\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"TRACE\"}", WEIR_METRIC_COUNTER},
    {"http.requests{method=\"PATCH\"}", WEIR_METRIC_COUNTER},
    {"http.responses{status=\"1xx\"}", WEIR_METRIC_COUNTER},
    {"http.responses{status=\"2xx\"}", WEIR_METRIC_COUNTER},
    {"http.responses{status=\"3xx\"}", WEIR_METRIC_COUNTER},
    {"http.responses{status=\"4xx\"}", WEIR_METRIC_COUNTER},
    {"http.responses{status=\"5xx\"}", WEIR_METRIC_COUNTER},
    {"http.requests_refused", WEIR_METRIC_COUNTER},
    {"http.upgrades", WEIR_METRIC_COUNTER},
    {"http.bytes_received", WEIR_METRIC_COUNTER},
    {"http.bytes_sent", WEIR_METRIC_COUNTER},
    {"websocket.connections_open{side=\"server\"}", WEIR_METRIC_GAUGE},
    {"websocket.connections_open{side=\"client\"}", WEIR_METRIC_GAUGE},
    {"websocket.connections{side=\"server\"}", WEIR_METRIC_COUNTER},
    {"websocket.connections{side=\"client\"}", WEIR_METRIC_COUNTER},
    {"websocket.messages_received{side=\"server\"}", WEIR_METRIC_COUNTER},
    {"websocket.messages_received{side=\"client\"}", WEIR_METRIC_COUNTER},
    {"websocket.bytes_received{side=\"server\"}", WEIR_METRIC_COUNTER},
    {"websocket.bytes_received{side=\"client\"}", WEIR_METRIC_COUNTER},
    {"websocket.messages_sent{side=\"server\"}", WEIR_METRIC_COUNTER},
    {"websocket.messages_sent{side=\"client\"}", WEIR_METRIC_COUNTER},
    {"websocket.bytes_sent{side=\"server\"}", WEIR_METRIC_COUNTER},
    {"websocket.bytes_sent{side=\"client\"}", WEIR_METRIC_COUNTER},
    {"http.request_ns", WEIR_METRIC_HISTOGRAM},
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

_Static_assert(ROW_COUNT == WEIR__HTTP_COUNTER_COUNT + 1, "each counter has its metric");

/*
 * A connection is counted as closed after it was counted as opened, on whichever threads. Acquire
 * pairs with the release of that: if this sum includes the closing, a later sum includes the
 * opening, and their difference is not negative.
 */
static uint64_t sum_of(unsigned counter)
{
    uint64_t sum;

    weir__mutex_lock(&registry.lock);
    sum = atomic_load_explicit(&shared.counters[counter], memory_order_acquire);
    weir_list_foreach (link, &registry.shards)
        sum += atomic_load_explicit(
            &WEIR_CONTAINER_OF(link, weir__http_counts, link)->counters[counter],
            memory_order_acquire);
    weir__mutex_unlock(&registry.lock);
    return sum;
}

static int64_t read_row(unsigned row)
{
    uint64_t sum = sum_of(row);

    if (row == WEIR__HTTP_CONNECTIONS_CLOSED)
        sum = sum_of(WEIR__HTTP_CONNECTIONS) - sum;
    else if (row >= WEIR__WS_CONNECTIONS_CLOSED && row < WEIR__WS_CONNECTIONS)
        sum = sum_of(row + 2) - sum;
    return (int64_t)sum;
}

static void merge_row(unsigned row, weir_histogram *histogram)
{
    (void)row;
    weir__mutex_lock(&registry.lock);
    weir_histogram_merge(histogram, &shared.request_time);
    weir_list_foreach (link, &registry.shards)
        weir_histogram_merge(histogram,
                             &WEIR_CONTAINER_OF(link, weir__http_counts, link)->request_time);
    weir__mutex_unlock(&registry.lock);
}

__attribute__((constructor)) static void add_table(void)
{
    static weir_metric_table table = {
        .rows = rows, .count = ROW_COUNT, .read = read_row, .merge = merge_row};

    /* Fails if the library is loaded into a program that has taken these names. */
    (void)weir_metric_table_add(&table);
}
