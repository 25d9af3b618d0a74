/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A blocked turn, from the moment it is found until it has ended, and its reports: the log, the
 * counters, the listeners, the move of its handler.
 */
#ifndef WEIR_WATCHDOG_BLOCK_H
#define WEIR_WATCHDOG_BLOCK_H

#include <weir/watchdog.h>

#include "base/list.h"
#include "channel/channel.h"
#include "watchdog/snapshot.h"

typedef struct weir__block {
    weir__list link;
    weir_block report;
    uint64_t turns; /* of the loop before this one */
    weir_address peer;
    char handler_name[WEIR__HANDLER_NAME_SIZE];
    char channel[WEIR__CHANNEL_LOG_NAME_SIZE];
    bool is_logged;
} weir__block;

/* How blocks are reported, until the watchdog is stopped. */
typedef struct weir__block_policy {
    bool has_backtrace;
    uint64_t blocks_before_offload;
    uint64_t logged_blocks; /* per WEIR__BLOCK_LOG_PERIOD_NS */
} weir__block_policy;

#define WEIR__BLOCK_LOG_PERIOD_NS weir_seconds(10)

/* The watchdog starts: no block was logged. */
void weir__block_reset_log(void);

/*
 * Reports that a loop is blocked, at a time of the watchdog's clock. Interrupts its thread. The
 * result retains the loop weakly. NULL: no memory; then the block is counted and not described.
 */
weir__block *weir__block_find(const weir__block_policy *policy, weir_executor *loop,
                              int64_t duration_ns, bool is_computing, int64_t now_ns);

/* Reports its end and frees it. */
void weir__block_end(weir__block *block, int64_t duration_ns);

/* Frees it without a report: the watchdog is stopped. */
void weir__block_abandon(weir__block *block);

/* ---- the listeners (listeners.c) ---- */

/* Calls all of them. One thread at a time. */
void weir__listeners_call(const weir_block *report);

/* ---- the counters (watchdog_stats.c) ---- */

/* One thread at a time. The first returns the number of the block, the second the number of blocks
 * of the handler; 0: there are too many handlers. */
uint64_t weir__watchdog_count_block(bool answered);
uint64_t weir__watchdog_count_handler(const weir_handler *handler, const char *name);
void weir__watchdog_count_end(const weir_handler *handler, int64_t duration_ns);
void weir__watchdog_count_abandoned(void);
void weir__watchdog_count_unlogged(void);

/* The metrics of the handlers exist while the watchdog runs. */
void weir__watchdog_set_running(bool is_running);

#endif
