/* SPDX-License-Identifier: Apache-2.0 */
/* Copies reports. The watchdog makes one call at a time; the counter publishes the record. */
#include "support/watchdog/block_log.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"

static void copy(char *ret_text, size_t size, const char *text)
{
    (void)snprintf(ret_text, size, "%s", text);
}

static void copy_backtrace(struct block_record *record, const weir_block *block)
{
    size_t used = 0, size = sizeof(record->backtrace);

    for (size_t i = 0; i < block->frame_count && used + 256 < size; i++) {
        used += weir_block_format_frame(block, i, record->backtrace + used, 255);
        record->backtrace[used++] = '\n';
        record->backtrace[used] = '\0';
    }
}

static void on_block(const weir_block *block, void *user_data)
{
    struct block_log *blocks = user_data;
    uint32_t index = atomic_load(&blocks->calls.calls);

    if (index < BLOCK_LOG_MAX) {
        struct block_record *record = &blocks->records[index];

        record->block = *block;
        copy(record->executor, sizeof(record->executor), weir_executor_name(block->executor));
        copy(record->handler_name, sizeof(record->handler_name), block->handler_name);
        copy(record->slot, sizeof(record->slot), block->slot);
        copy(record->channel, sizeof(record->channel), block->channel);
        record->has_peer = block->peer != NULL;
        if (block->peer != NULL)
            record->peer = *block->peer;
        if (!block->has_ended)
            copy_backtrace(record, block);
    }
    call_counter_add(block->has_ended ? &blocks->ended : &blocks->found);
    call_counter_add(&blocks->calls);
}

void block_log_start(struct block_log *blocks)
{
    memset(blocks, 0, sizeof(*blocks));
    assert_int_equal(weir_watchdog_add_listener(on_block, blocks), 0);
}

void block_log_stop(struct block_log *blocks)
{
    assert_int_equal(weir_watchdog_remove_listener(on_block, blocks), 0);
}

const struct block_record *block_log_await(struct block_log *blocks, unsigned index)
{
    assert_true(call_counter_await(&blocks->calls, index + 1));
    return &blocks->records[index];
}
