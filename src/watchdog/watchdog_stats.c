/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of the process, and those of each handler that has blocked. Written by one thread at
 * a time, which holds the watchdog's lock; read by any.
 *
 * Handlers are in a table of fixed size, in the order of their first blocks; further ones are not
 * counted. An entry stays for good. Its metrics exist while the watchdog runs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/metric.h"
#include "channel/offload_blocking.h"
#include "executor/executor.h"
#include "watchdog/block.h"

#define HANDLERS_MAX 64

enum { BLOCKS, BLOCKED_NS, LONGEST_NS, MOVED, IS_OFFLOADED, METRIC_COUNT };

struct entry {
    const weir_handler *handler;
    char name[WEIR__HANDLER_NAME_SIZE];
    _Atomic uint64_t blocks;
    _Atomic int64_t blocked_ns;
    _Atomic int64_t longest_ns;
    char labels[2 * WEIR__HANDLER_NAME_SIZE + 16];
    weir_metric metrics[METRIC_COUNT];
};

static struct {
    _Atomic bool is_running;
    _Atomic uint64_t blocks;
    _Atomic uint64_t blocked_now;
    _Atomic int64_t blocked_ns;
    _Atomic int64_t longest_ns;
    _Atomic uint64_t without_signal;
    _Atomic uint64_t not_logged;
    _Atomic size_t handler_count; /* entries before it are complete */
    struct entry handlers[HANDLERS_MAX];
} stats;

static int64_t read_ns(const _Atomic int64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static uint64_t read_count(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void raise_to(_Atomic int64_t *longest_ns, int64_t duration_ns)
{
    if (duration_ns > read_ns(longest_ns))
        atomic_store_explicit(longest_ns, duration_ns, memory_order_relaxed);
}

/* ---- handlers ---- */

/* Acquire: the entries before the count are complete. */
static struct entry *find_entry(const weir_handler *handler)
{
    size_t count = atomic_load_explicit(&stats.handler_count, memory_order_acquire);

    for (size_t i = 0; i < count; i++)
        if (stats.handlers[i].handler == handler)
            return &stats.handlers[i];
    return NULL;
}

static void read_entry(const struct entry *entry, weir_handler_stats *ret_stats)
{
    memset(ret_stats, 0, sizeof(*ret_stats));
    ret_stats->handler = entry->handler;
    memcpy(ret_stats->name, entry->name, sizeof(entry->name));
    ret_stats->blocks = read_count(&entry->blocks);
    ret_stats->blocked_ns = read_ns(&entry->blocked_ns);
    ret_stats->longest_ns = read_ns(&entry->longest_ns);
    ret_stats->is_offloaded = weir__handler_offload_read(entry->handler, &ret_stats->moved);
}

static int64_t metric_blocks(void *entry)
{
    return (int64_t)read_count(&((const struct entry *)entry)->blocks);
}

static int64_t metric_blocked_ns(void *entry)
{
    return read_ns(&((const struct entry *)entry)->blocked_ns);
}

static int64_t metric_longest_ns(void *entry)
{
    return read_ns(&((const struct entry *)entry)->longest_ns);
}

static int64_t metric_moved(void *entry)
{
    weir_handler_stats handler;

    read_entry(entry, &handler);
    return (int64_t)handler.moved;
}

static int64_t metric_is_offloaded(void *entry)
{
    weir_handler_stats handler;

    read_entry(entry, &handler);
    return handler.is_offloaded;
}

static const struct {
    const char *family;
    enum weir_metric_kind kind;
    weir__metric_read_fn *read;
} handler_metrics[METRIC_COUNT] = {
    [BLOCKS] = {"handler.blocks", WEIR_METRIC_COUNTER, metric_blocks},
    [BLOCKED_NS] = {"handler.blocked_ns", WEIR_METRIC_COUNTER, metric_blocked_ns},
    [LONGEST_NS] = {"handler.longest_ns", WEIR_METRIC_GAUGE, metric_longest_ns},
    [MOVED] = {"handler.moved", WEIR_METRIC_COUNTER, metric_moved},
    [IS_OFFLOADED] = {"handler.is_offloaded", WEIR_METRIC_GAUGE, metric_is_offloaded},
};

/* Of two handlers with the same name only the first has metrics: the registry has the name. */
static void add_metrics(struct entry *entry)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        (void)weir__metric_init_read(&entry->metrics[i], handler_metrics[i].kind,
                                     (weir__metric_name){handler_metrics[i].family, entry->labels},
                                     handler_metrics[i].read, entry);
}

static void remove_metrics(struct entry *entry)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        weir__metric_deinit(&entry->metrics[i]);
}

static struct entry *add_entry(const weir_handler *handler, const char *name)
{
    size_t count = atomic_load_explicit(&stats.handler_count, memory_order_relaxed);
    struct entry *entry = &stats.handlers[count];

    if (count == HANDLERS_MAX)
        return NULL;
    entry->handler = handler;
    (void)snprintf(entry->name, sizeof(entry->name), "%s", name != NULL ? name : "handler");
    weir__metric_add_label(entry->labels, sizeof(entry->labels), "handler", entry->name);
    atomic_store_explicit(&stats.handler_count, count + 1, memory_order_release);
    add_metrics(entry);
    return entry;
}

int weir_handler_read_stats(const weir_handler *handler, weir_handler_stats *ret_stats)
{
    const struct entry *entry = find_entry(handler);

    if (entry == NULL)
        return -ENOENT;
    read_entry(entry, ret_stats);
    return 0;
}

void weir_handler_stats_foreach(weir_handler_stats_fn *fn, void *user_data)
{
    size_t count = atomic_load_explicit(&stats.handler_count, memory_order_acquire);
    weir_handler_stats handler;

    for (size_t i = 0; i < count; i++) {
        read_entry(&stats.handlers[i], &handler);
        fn(&handler, user_data);
    }
}

/* ---- counting ---- */

uint64_t weir__watchdog_count_block(bool answered)
{
    weir__counter_add(stats.blocks, 1);
    weir__counter_add(stats.blocked_now, 1);
    weir__counter_add(stats.without_signal, !answered);
    return read_count(&stats.blocks);
}

uint64_t weir__watchdog_count_handler(const weir_handler *handler, const char *name)
{
    struct entry *entry = find_entry(handler);

    if (entry == NULL)
        entry = add_entry(handler, name);
    if (entry == NULL)
        return 0;
    weir__counter_add(entry->blocks, 1);
    return read_count(&entry->blocks);
}

void weir__watchdog_count_end(const weir_handler *handler, int64_t duration_ns)
{
    struct entry *entry = handler != NULL ? find_entry(handler) : NULL;

    weir__counter_add(stats.blocked_now, (uint64_t)-1);
    weir__counter_add(stats.blocked_ns, duration_ns);
    raise_to(&stats.longest_ns, duration_ns);
    if (entry == NULL)
        return;
    weir__counter_add(entry->blocked_ns, duration_ns);
    raise_to(&entry->longest_ns, duration_ns);
}

void weir__watchdog_count_abandoned(void)
{
    weir__counter_add(stats.blocked_now, (uint64_t)-1);
}

void weir__watchdog_count_unlogged(void)
{
    weir__counter_add(stats.not_logged, 1);
}

void weir__watchdog_set_running(bool is_running)
{
    size_t count = atomic_load_explicit(&stats.handler_count, memory_order_relaxed);

    for (size_t i = 0; i < count; i++)
        (is_running ? add_metrics : remove_metrics)(&stats.handlers[i]);
    atomic_store_explicit(&stats.is_running, is_running, memory_order_relaxed);
}

void weir_watchdog_read_stats(weir_watchdog_stats *ret_stats)
{
    *ret_stats = (weir_watchdog_stats){
        .is_running = atomic_load_explicit(&stats.is_running, memory_order_relaxed),
        .blocks = read_count(&stats.blocks),
        .blocked_now = read_count(&stats.blocked_now),
        .blocked_ns = read_ns(&stats.blocked_ns),
        .longest_ns = read_ns(&stats.longest_ns),
        .without_signal = read_count(&stats.without_signal),
        .not_logged = read_count(&stats.not_logged),
    };
}

/* ---- the metric registry ---- */

static const weir_metric_row rows[] = {
    {"watchdog.blocks", WEIR_METRIC_COUNTER},         {"watchdog.blocked_now", WEIR_METRIC_GAUGE},
    {"watchdog.blocked_ns", WEIR_METRIC_COUNTER},     {"watchdog.longest_ns", WEIR_METRIC_GAUGE},
    {"watchdog.without_signal", WEIR_METRIC_COUNTER}, {"watchdog.not_logged", WEIR_METRIC_COUNTER},
    {"watchdog.is_running", WEIR_METRIC_GAUGE},
};

static int64_t read_row(unsigned row)
{
    weir_watchdog_stats now;

    weir_watchdog_read_stats(&now);
    switch (row) {
    case 0:
        return (int64_t)now.blocks;
    case 1:
        return (int64_t)now.blocked_now;
    case 2:
        return now.blocked_ns;
    case 3:
        return now.longest_ns;
    case 4:
        return (int64_t)now.without_signal;
    case 5:
        return (int64_t)now.not_logged;
    default:
        return now.is_running;
    }
}

__attribute__((constructor)) static void add_table(void)
{
    static weir_metric_table table = {
        .rows = rows, .count = sizeof(rows) / sizeof(rows[0]), .read = read_row};

    weir__metric_table_add(&table);
}
