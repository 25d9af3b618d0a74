/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the tables, and rates between snapshots.
 */
#ifndef EXAMPLES_TOP_ROWS_H
#define EXAMPLES_TOP_ROWS_H

#include "top/screen.h"
#include "top/snapshot.h"

/* Snapshots that are compared. */
struct moments {
    const struct snapshot *now;
    const struct snapshot *before; /* the one before; NULL = there is none */
    const struct snapshot *first;  /* the oldest; NULL = there is none */
};

/* The sum of the metrics of a name. */
int64_t total(const struct moments *moments, const char *name);

/* What it has grown by, per second; 0 if that is unknown. */
double rate(const struct moments *moments, const char *name, const char *key, const char *value);

/* The values of a histogram since the oldest snapshot. */
struct spread spread_of(const struct moments *moments, const char *name, const char *key,
                        const char *value);

/* An event loop, or another executor. */
struct loop_row {
    const char *name;
    bool is_loop;
    int64_t permille;            /* of the time that it is busy */
    int64_t pending;             /* tasks */
    int64_t handles;             /* file descriptors */
    double tasks, turns, events; /* per second */
    struct spread turn;          /* times of turns */
    double key;                  /* the rows are ordered by */
};

struct loop_rows {
    struct loop_row *list; /* free it */
    size_t count;
};

/* The largest values first, but names in their order; or the reverse. Empty without memory. */
struct loop_rows loop_rows_make(const struct moments *moments, enum order order, bool is_reversed);

/* A handler that has blocked. */
struct handler_row {
    const char *name;
    int64_t blocks, blocked_ns, longest_ns;
    bool is_offloaded;
};

struct handler_rows {
    struct handler_row *list; /* free it */
    size_t count;
};

/* Those that blocked for longest first. Empty without memory. */
struct handler_rows handler_rows_make(const struct snapshot *now);

#endif
