/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a weir_metric, so that an object of the library keeps its figures in its own memory.
 *
 * Where a metric's number comes from is its source: its own value, a value elsewhere, a function,
 * or a histogram elsewhere. The object calls one of the init functions when it is complete, and
 * weir__metric_deinit before any part of it goes.
 */
#ifndef WEIR_BASE_METRIC_H
#define WEIR_BASE_METRIC_H

#include <stdatomic.h>
#include <stdint.h>

#include <weir/metric.h>

/* Runs on a reader's thread, inside the reader's announcement: may not block, register or deinit.
 */
typedef int64_t weir__metric_read_fn(void *arg);

struct weir_metric {
    _Atomic int64_t value;
    const _Atomic int64_t *source; /* own value, or one elsewhere; NULL with read or histogram */
    weir__metric_read_fn *read;
    void *read_arg;
    weir_histogram *histogram;
    enum weir_metric_kind kind;
    char name[WEIR_METRIC_NAME_SIZE];
    /* The registry's. */
    bool registered;
    uint32_t name_hash;
    uint32_t slot;
    weir_metric *next_in_bucket;
};

/*
 * Each registers a counter or gauge (the last one: a histogram) under a copy of `name`, and fails
 * as weir_metric_create does. What they point at must stay until weir__metric_deinit.
 */
int weir__metric_init(weir_metric *metric, enum weir_metric_kind kind, const char *name);
int weir__metric_init_source(weir_metric *metric, enum weir_metric_kind kind, const char *name,
                             const _Atomic int64_t *source);
int weir__metric_init_read(weir_metric *metric, enum weir_metric_kind kind, const char *name,
                           weir__metric_read_fn *read, void *arg);
int weir__metric_init_histogram(weir_metric *metric, const char *name, weir_histogram *histogram);

/*
 * Unregisters, and waits until no reader looks at the metric; not from a weir__metric_read_fn. Does
 * nothing to a metric that is zero, or whose init failed.
 */
void weir__metric_deinit(weir_metric *metric);

/* ---- tables: figures that are there for as long as the process ---- */

typedef struct weir__metric_row {
    const char *name;
    enum weir_metric_kind kind; /* counter or gauge */
} weir__metric_row;

/* In static memory; no registration, and so no memory, for each of its rows. */
typedef struct weir__metric_table {
    const weir__metric_row *rows;
    unsigned count;
    int64_t (*read)(unsigned row);   /* on a reader's thread; may not register a metric */
    struct weir__metric_table *next; /* the registry's */
} weir__metric_table;

/* Adds a table for good, once: from a constructor, so that nobody has taken its names before. */
void weir__metric_table_add(weir__metric_table *table);

#endif
