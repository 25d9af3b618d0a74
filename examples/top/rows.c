/* SPDX-License-Identifier: Apache-2.0 */
#include "top/rows.h"

#include <stdlib.h>
#include <string.h>

int64_t total(const struct moments *moments, const char *name)
{
    return snapshot_sum(moments->now, name, NULL, NULL);
}

double rate(const struct moments *moments, const char *name, const char *key, const char *value)
{
    double seconds, growth;

    if (moments->before == NULL)
        return 0;
    seconds = moments->now->time - moments->before->time;
    growth = (double)(snapshot_sum(moments->now, name, key, value) -
                      snapshot_sum(moments->before, name, key, value));
    return seconds > 0 && growth > 0 ? growth / seconds : 0;
}

struct spread spread_of(const struct moments *moments, const char *name, const char *key,
                        const char *value)
{
    const struct metric *before = NULL;

    if (moments->first != NULL)
        before = snapshot_find(moments->first, name, key, value);
    return spread_between(before, snapshot_find(moments->now, name, key, value));
}

/* ---- loops ---- */

static int compare_numbers(double a, double b)
{
    return (a < b) - (a > b);
}

/* What rows are ordered by; equal ones are in the order of their names. */
static double order_key(const struct loop_row *row, enum order order)
{
    switch (order) {
    case ORDER_UTILISATION:
        return (double)row->permille;
    case ORDER_QUEUE:
        return (double)row->pending;
    case ORDER_TURNS:
        return row->turns;
    case ORDER_TURN_TIME:
        return (double)row->turn.p99;
    case ORDER_HANDLES:
        return (double)row->handles;
    case ORDER_NAME:
        break;
    }
    return 0;
}

static int compare_loops(const void *left, const void *right)
{
    const struct loop_row *a = left, *b = right;
    int result = compare_numbers(a->key, b->key);

    return result != 0 ? result : strverscmp(a->name, b->name); /* worker-2 before worker-10 */
}

static struct loop_row make_loop(const struct moments *moments, const struct metric *busy,
                                 enum order order)
{
    const char *loop = metric_label(busy, "loop");
    const char *key = loop != NULL ? "loop" : "executor";
    const char *name = metric_label(busy, key);
    struct loop_row row = {
        .name = name,
        .is_loop = loop != NULL,
        .permille = busy->value,
        .pending = snapshot_sum(moments->now, "executor.pending", key, name),
        .handles = snapshot_sum(moments->now, "loop.handles", key, name),
        .tasks = rate(moments, "executor.tasks_run", key, name),
        .turns = rate(moments, "loop.turns", key, name),
        .events = rate(moments, "loop.events", key, name),
        .turn = spread_of(moments, "loop.turn_ns", key, name),
    };

    row.key = order_key(&row, order);
    return row;
}

static void reverse(struct loop_rows *rows)
{
    for (size_t i = 0; i < rows->count / 2; i++) {
        struct loop_row row = rows->list[i];

        rows->list[i] = rows->list[rows->count - 1 - i];
        rows->list[rows->count - 1 - i] = row;
    }
}

struct loop_rows loop_rows_make(const struct moments *moments, enum order order, bool is_reversed)
{
    const struct snapshot *now = moments->now;
    struct loop_rows rows = {.list = calloc(now->count + 1, sizeof(*rows.list))};

    for (size_t i = 0; i < now->count && rows.list != NULL; i++) {
        const struct metric *metric = &now->metrics[i];

        if (strcmp(metric->name, "executor.utilisation_permille") == 0 &&
            (metric_label(metric, "loop") != NULL || metric_label(metric, "executor") != NULL))
            rows.list[rows.count++] = make_loop(moments, metric, order);
    }
    if (rows.count > 0)
        qsort(rows.list, rows.count, sizeof(*rows.list), compare_loops);
    if (is_reversed)
        reverse(&rows);
    return rows;
}

/* ---- handlers ---- */

static int compare_handlers(const void *left, const void *right)
{
    const struct handler_row *a = left, *b = right;
    int result = compare_numbers((double)a->blocked_ns, (double)b->blocked_ns);

    return result != 0 ? result : strcmp(a->name, b->name);
}

struct handler_rows handler_rows_make(const struct snapshot *now)
{
    struct handler_rows rows = {.list = calloc(now->count + 1, sizeof(*rows.list))};

    for (size_t i = 0; i < now->count && rows.list != NULL; i++) {
        const struct metric *blocks = &now->metrics[i];
        const char *name = metric_label(blocks, "handler");

        if (name == NULL || strcmp(blocks->name, "handler.blocks") != 0)
            continue;
        rows.list[rows.count++] = (struct handler_row){
            .name = name,
            .blocks = blocks->value,
            .blocked_ns = snapshot_sum(now, "handler.blocked_ns", "handler", name),
            .longest_ns = snapshot_sum(now, "handler.longest_ns", "handler", name),
            .is_offloaded = snapshot_sum(now, "handler.is_offloaded", "handler", name) > 0,
        };
    }
    if (rows.count > 0)
        qsort(rows.list, rows.count, sizeof(*rows.list), compare_handlers);
    return rows;
}
