/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, logging and ending blocks. */
#include "watchdog/block.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "channel/offload_blocking.h"
#include "os/symbol.h"
#include "os/thread.h"
#include "watchdog/interrupt.h"

#define SUBSYSTEM "watchdog"
#define LOGGED_FRAMES 16
#define SNAPSHOT_RETRIES 5

/* ---- the log ---- */

/* Guarded by the watchdog's lock, as everything here. */
static struct {
    int64_t began_ns; /* of the current period */
    uint64_t logged;  /* blocks in it */
    uint64_t left_out;
} log_period;

void weir__block_reset_log(void)
{
    memset(&log_period, 0, sizeof(log_period));
}

/* Returns true if a block that begins now is logged. */
static bool admit_to_log(const weir__block_policy *policy, int64_t now_ns)
{
    if (log_period.logged == 0 || now_ns - log_period.began_ns >= WEIR__BLOCK_LOG_PERIOD_NS ||
        now_ns < log_period.began_ns) {
        log_period.began_ns = now_ns;
        log_period.logged = 0;
    }
    if (log_period.logged < policy->logged_blocks) {
        log_period.logged++;
        return true;
    }
    log_period.left_out++;
    weir__watchdog_count_unlogged();
    return false;
}

/* "312 ms", "1.5 ms" */
static const char *duration_text(int64_t duration_ns, char text[32])
{
    if (duration_ns >= weir_ms(10))
        (void)snprintf(text, 32, "%" PRId64 " ms", (duration_ns + 500000) / 1000000);
    else
        (void)snprintf(text, 32, "%.1f ms", (double)duration_ns / 1e6);
    return text;
}

static void log_frames(const weir_block *report)
{
    char text[256];

    for (size_t i = 0; i < report->frame_count && i < LOGGED_FRAMES; i++) {
        (void)weir_block_format_frame(report, i, text, sizeof(text));
        weir__warn(SUBSYSTEM, report->executor->name, "  #%zu %s", i, text);
    }
}

static void log_found(const weir_block *report)
{
    char duration[32], culprit[WEIR__HANDLER_NAME_SIZE + 40] = "", left_out[64] = "";
    bool has_channel = report->channel[0] != '\0';

    if (report->handler != NULL)
        (void)snprintf(culprit, sizeof(culprit), " by handler \"%s\" in %s", report->handler_name,
                       report->slot);
    if (log_period.left_out > 0)
        (void)snprintf(left_out, sizeof(left_out), " (%" PRIu64 " blocks before it not logged)",
                       log_period.left_out);
    log_period.left_out = 0;
    weir__warn(SUBSYSTEM, report->executor->name, "blocked for %s%s%s%s; the thread is %s%s",
               duration_text(report->duration_ns, duration), culprit,
               has_channel ? ", channel " : "", report->channel,
               report->is_computing ? "computing" : "sleeping", left_out);
    log_frames(report);
}

static void log_ended(const weir_block *report)
{
    char duration[32];

    if (report->handler != NULL)
        weir__warn(SUBSYSTEM, report->executor->name, "handler \"%s\" blocked for %s",
                   report->handler_name, duration_text(report->duration_ns, duration));
    else
        weir__warn(SUBSYSTEM, report->executor->name, "was blocked for %s",
                   duration_text(report->duration_ns, duration));
}

size_t weir_block_format_frame(const weir_block *block, size_t index, char *buffer, size_t size)
{
    weir__symbol symbol;

    if (block == NULL || index >= block->frame_count) {
        if (size > 0)
            buffer[0] = '\0';
        return 0;
    }
    weir__symbol_find(block->frames[index], &symbol);
    return weir__symbol_describe(&symbol, buffer, size);
}

/* ---- describing ---- */

static void copy_name(char *ret_name, const char *name)
{
    (void)snprintf(ret_name, WEIR__HANDLER_NAME_SIZE, "%s", name);
}

static void describe(weir__block *block, const weir__snapshot *snapshot)
{
    weir_block *report = &block->report;
    weir__culprit culprit = weir__snapshot_find_culprit(snapshot);
    size_t count = snapshot->frame_count;

    report->frame_count = count < WEIR_BLOCK_FRAMES_MAX ? count : WEIR_BLOCK_FRAMES_MAX;
    memcpy(report->frames, snapshot->frames, report->frame_count * sizeof(report->frames[0]));
    memcpy(report->functions, snapshot->functions,
           report->frame_count * sizeof(report->functions[0]));
    report->slot = culprit.slot;
    if (culprit.handler != NULL) {
        report->handler = culprit.handler->handler;
        copy_name(block->handler_name, culprit.handler->name);
    }
    if (!snapshot->has_channel)
        return;
    report->channel_id = snapshot->channel_id;
    weir__snapshot_format_channel(snapshot, block->channel, sizeof(block->channel));
    if (snapshot->has_remote) {
        block->peer = snapshot->remote;
        report->peer = &block->peer;
    }
}

/* ---- the handler ---- */

/* The copy of its table: that in the pipeline may be gone. */
static const weir_handler *table_of(const weir__snapshot *snapshot, const weir_handler *handler)
{
    size_t i = 0;

    while (snapshot->handlers[i].handler != handler)
        i++;
    return &snapshot->handlers[i].table;
}

/* Its `blocks`-th block; 0: there are too many handlers to count. */
static void move_handler(const weir__block_policy *policy, const weir__snapshot *snapshot,
                         const weir_handler *handler, uint64_t blocks)
{
    const weir_handler *table = table_of(snapshot, handler);

    if (table->blocked != NULL)
        weir__handler_count_moved(handler,
                                  table->blocked(snapshot->functions, snapshot->frame_count,
                                                 policy->blocks_before_offload));
    else if (blocks > policy->blocks_before_offload)
        weir__handler_offload(handler, blocks);
}

static weir__block *create(weir_executor *loop)
{
    weir__block *block = weir__zalloc(sizeof(*block));

    if (block == NULL)
        return NULL;
    weir__list_init(&block->link);
    weir__executor_weak_retain(loop);
    block->turns = loop->running_loop.watch.turns;
    block->report.executor = loop;
    block->report.handler_name = block->handler_name;
    block->report.slot = "";
    block->report.channel = block->channel;
    return block;
}

/* A thread that is interrupted in code without unwind tables, such as a jump of the linker, has one
 * frame: it is asked again. */
static const weir__snapshot *take_snapshot(weir_executor *loop)
{
    uint64_t turns = loop->running_loop.watch.turns;
    const weir__snapshot *snapshot = weir__interrupt_take(loop, turns);

    for (int i = 0; i < SNAPSHOT_RETRIES && snapshot != NULL && snapshot->frame_count == 1; i++) {
        weir__thread_sleep(weir_us(200)); /* lets it get further */
        snapshot = weir__interrupt_take(loop, turns);
    }
    return snapshot;
}

weir__block *weir__block_find(const weir__block_policy *policy, weir_executor *loop,
                              int64_t duration_ns, bool is_computing, int64_t now_ns)
{
    const weir__snapshot *snapshot = NULL;
    weir__block *block = create(loop);
    const weir_handler *handler;
    uint64_t blocks = 0, number;

    if (policy->has_backtrace)
        snapshot = take_snapshot(loop);
    number = weir__watchdog_count_block(snapshot != NULL || !policy->has_backtrace);
    if (block == NULL) {
        weir__watchdog_count_abandoned();
        weir__error(SUBSYSTEM, loop->name, "is blocked; no memory to describe it");
        return NULL;
    }
    block->report.number = number;
    block->report.duration_ns = duration_ns;
    block->report.is_computing = is_computing;
    if (snapshot != NULL)
        describe(block, snapshot);
    handler = block->report.handler;
    if (handler != NULL) /* the stats have the name of the table: that in the pipeline may differ */
        blocks = weir__watchdog_count_handler(handler, table_of(snapshot, handler)->name);
    block->is_logged = admit_to_log(policy, now_ns);
    if (block->is_logged)
        log_found(&block->report);
    weir__listeners_call(&block->report);
    if (handler != NULL)
        move_handler(policy, snapshot, handler, blocks);
    return block;
}

void weir__block_end(weir__block *block, int64_t duration_ns)
{
    weir_block *report = &block->report;

    report->has_ended = true;
    report->duration_ns = duration_ns;
    weir__watchdog_count_end(report->handler, duration_ns);
    if (block->is_logged)
        log_ended(report);
    weir__listeners_call(report);
    weir__executor_weak_release(report->executor);
    weir__free(block);
}

void weir__block_abandon(weir__block *block)
{
    weir__watchdog_count_abandoned();
    weir__executor_weak_release(block->report.executor);
    weir__free(block);
}
