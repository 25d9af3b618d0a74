/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener that records the reports of the watchdog, from any thread.
 *
 *     block_log_start(&blocks);
 *     ...
 *     record = block_log_await(&blocks, 0);      the first report
 *     assert_string_equal(record->slot, "read");
 *     block_log_stop(&blocks);
 */
#ifndef WEIR_TEST_BLOCK_LOG_H
#define WEIR_TEST_BLOCK_LOG_H

#include <weir/watchdog.h>

#include "support/executor/call_counter.h"

#define BLOCK_LOG_MAX 16

/* A copy of a report; the pointers of `block` to texts are not valid. */
struct block_record {
    weir_block block;
    char executor[16];
    char handler_name[64];
    char slot[32];
    char channel[160];
    bool has_peer;
    weir_address peer;
    char backtrace[8192]; /* a line per frame */
};

struct block_log {
    struct call_counter calls; /* also those that there is no room for */
    struct call_counter found;
    struct call_counter ended;
    struct block_record records[BLOCK_LOG_MAX];
};

/* Adds the listener; removes it. */
void block_log_start(struct block_log *blocks);
void block_log_stop(struct block_log *blocks);

/* Waits for the report with this index. */
const struct block_record *block_log_await(struct block_log *blocks, unsigned index);

#endif
