/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_metrics.h"

#include <stdatomic.h>

#include <weir/metric.h>

enum { SUCCEEDED, RESUMED, FAILED, KIND_COUNT };

/* Of servers, then of clients. */
static const weir_metric_row rows[2 * KIND_COUNT] = {
    {"tls.handshakes{side=\"server\"}", WEIR_METRIC_COUNTER},
    {"tls.handshakes_resumed{side=\"server\"}", WEIR_METRIC_COUNTER},
    {"tls.handshakes_failed{side=\"server\"}", WEIR_METRIC_COUNTER},
    {"tls.handshakes{side=\"client\"}", WEIR_METRIC_COUNTER},
    {"tls.handshakes_resumed{side=\"client\"}", WEIR_METRIC_COUNTER},
    {"tls.handshakes_failed{side=\"client\"}", WEIR_METRIC_COUNTER},
};

static _Atomic uint64_t counters[2 * KIND_COUNT];

/* Relaxed: each counter is independent, and orders nothing. */
static void count(bool is_server, unsigned kind)
{
    atomic_fetch_add_explicit(&counters[(is_server ? 0 : KIND_COUNT) + kind], 1,
                              memory_order_relaxed);
}

void weir__tls_metrics_count(bool is_server, int err, bool is_resumed)
{
    count(is_server, err < 0 ? FAILED : SUCCEEDED);
    if (err == 0 && is_resumed)
        count(is_server, RESUMED);
}

static int64_t read_row(unsigned row)
{
    return (int64_t)atomic_load_explicit(&counters[row], memory_order_relaxed);
}

__attribute__((constructor)) static void add_table(void)
{
    static weir_metric_table table = {.rows = rows, .count = 2 * KIND_COUNT, .read = read_row};

    /* Fails if the library is loaded into a program that has taken these names. */
    (void)weir_metric_table_add(&table);
}
