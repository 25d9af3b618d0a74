/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internals of a weir_metric, to embed metrics in an object.
 *
 * The value of a metric comes from its source: its own value, another variable, a function, or a
 * histogram. The owner calls one of the init functions when it is complete, and weir__metric_deinit
 * before any part of it is freed.
 *
 * A name is stored in two parts, which belong to the owner: the families of an object are
 * constants, and its labels are the same for all of them.
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
    const char *family;
    const char *labels; /* "" or "{...}" */
    enum weir_metric_kind kind;
    /* For the registry. */
    bool registered;
    uint8_t family_length; /* what follows in `family` is no part of it */
    uint32_t name_hash;
    uint32_t slot;
    weir_metric *next_in_bucket;
};

/*
 * A family, which ends at a "{" or a NUL, and labels. Either may be NULL for none: a whole name is
 * (weir__metric_name){name}.
 */
typedef struct weir__metric_name {
    const char *family;
    const char *labels; /* NULL: those after `family`, if any */
} weir__metric_name;

/*
 * Appends ".suffix" to the family of `name`, before its labels. A name that is too long is cut off,
 * so that registering it fails.
 */
void weir__metric_name_extend(char ret_name[WEIR_METRIC_NAME_SIZE + 1], const char *name,
                              const char *suffix);

/* Fails: -EINVAL, -ENAMETOOLONG. */
int weir__metric_name_check(weir__metric_name name);

/*
 * Register a counter or gauge, or a histogram. They fail as weir_metric_create does. Names and
 * sources must stay valid until weir__metric_deinit.
 */
int weir__metric_init(weir_metric *metric, enum weir_metric_kind kind, weir__metric_name name);
int weir__metric_init_source(weir_metric *metric, enum weir_metric_kind kind,
                             weir__metric_name name, const _Atomic int64_t *source);
int weir__metric_init_read(weir_metric *metric, enum weir_metric_kind kind, weir__metric_name name,
                           weir__metric_read_fn *read, void *arg);
int weir__metric_init_histogram(weir_metric *metric, weir__metric_name name,
                                weir_histogram *histogram);

/*
 * Appends a label to `labels`, which is "" or has labels. One that does not fit is left out: an
 * escaped value has up to twice its length, a label 4 bytes more than its key and value.
 */
void weir__metric_add_label(char *labels, size_t size, const char *key, const char *value);

/*
 * Unregisters the metric and waits until no reader uses it; must not be called from a
 * weir__metric_read_fn. Does nothing for a zeroed metric, or if init has failed.
 */
void weir__metric_deinit(weir_metric *metric);

/* ---- tables: metrics that exist as long as the process ---- */

/* As weir_metric_table_add, unchecked; called from a constructor, before names can be taken. */
void weir__metric_table_add(weir_metric_table *table);

/* The first table: metrics of the process (process_metrics.c). */
extern weir_metric_table weir__process_metrics;

#endif
