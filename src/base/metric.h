/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internals of a weir_metric, to embed metrics in an object.
 *
 * The value of a metric comes from its source: its own value, another variable, a function, or a
 * histogram. The owner calls one of the init functions when it is complete, and weir__metric_deinit
 * before any part of it is freed.
 */
#ifndef WEIR_BASE_METRIC_H
#define WEIR_BASE_METRIC_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/metric.h>

/* Runs on the thread of a reader, while it is counted in `readers`: must not block, register or
 * deinit metrics. */
typedef int64_t weir__metric_read_fn(void *arg);

struct weir_metric {
    _Atomic int64_t value;
    const _Atomic int64_t
        *source; /* its own value or another variable; NULL with read or histogram */
    weir__metric_read_fn *read;
    void *read_arg;
    weir_histogram *histogram;
    enum weir_metric_kind kind;
    char name[WEIR_METRIC_NAME_SIZE];
    /* For the registry. */
    bool registered;
    uint32_t name_hash;
    uint32_t slot;
    weir_metric *next_in_bucket;
};

/*
 * Register a counter or gauge, or a histogram, under a copy of `name`. They fail as
 * weir_metric_create does. Sources must stay valid until weir__metric_deinit.
 */
int weir__metric_init(weir_metric *metric, enum weir_metric_kind kind, const char *name);
int weir__metric_init_source(weir_metric *metric, enum weir_metric_kind kind, const char *name,
                             const _Atomic int64_t *source);
int weir__metric_init_read(weir_metric *metric, enum weir_metric_kind kind, const char *name,
                           weir__metric_read_fn *read, void *arg);
int weir__metric_init_histogram(weir_metric *metric, const char *name, weir_histogram *histogram);

/*
 * Unregisters the metric and waits until no reader uses it; must not be called from a
 * weir__metric_read_fn. Does nothing for a zeroed metric, or if init has failed.
 */
void weir__metric_deinit(weir_metric *metric);

/* ---- tables: metrics that exist as long as the process ---- */

typedef struct weir__metric_row {
    const char *name;
    enum weir_metric_kind kind; /* counter or gauge */
} weir__metric_row;

/* In static memory: its rows need no registration and no memory. */
typedef struct weir__metric_table {
    const weir__metric_row *rows;
    unsigned count;
    int64_t (*read)(unsigned row);   /* on the thread of a reader; must not register metrics */
    struct weir__metric_table *next; /* for the registry */
} weir__metric_table;

/* Adds a table permanently; called from a constructor, before names can be taken. */
void weir__metric_table_add(weir__metric_table *table);

#endif
