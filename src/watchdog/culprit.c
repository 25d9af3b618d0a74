/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the handler that blocks: the innermost function in the stack that is a slot of a handler of
 * the channel.
 *
 * A compiler may have split off the unlikely part of a function, as "on_read.cold", which begins at
 * an address of its own. Then symbol names are compared. A function whose last act is the
 * call that blocks may have left no frame at all (base/keep_frame.h): then no handler is found, or
 * that before it in the pipeline.
 */
#include <string.h>

#include "channel/channel.h"
#include "os/symbol.h"
#include "watchdog/snapshot.h"

#define COLD_FRAMES 32 /* whose names are looked up, in the program's file */

#define SLOT(member, is_outbound)                            \
    {                                                        \
#member, offsetof(weir_handler, member), is_outbound \
    }
#define INBOUND(member) SLOT(member, false)
#define OUTBOUND(member) SLOT(member, true)

static const struct slot {
    const char *name;
    size_t offset;
    bool is_outbound; /* runs from tail to head */
} slots[] = {
    INBOUND(read),          INBOUND(read_complete),
    INBOUND(event),         INBOUND(active),
    INBOUND(inactive),      INBOUND(error),
    INBOUND(writability),   INBOUND(registered),
    INBOUND(unregistered),  INBOUND(draining),
    INBOUND(added),         INBOUND(removed),
    INBOUND(init),          INBOUND(deinit),
    OUTBOUND(write),        OUTBOUND(flush),
    OUTBOUND(request_read), OUTBOUND(close),
    OUTBOUND(connect),      OUTBOUND(bind),
    OUTBOUND(disconnect),   OUTBOUND(shutdown_output),
    OUTBOUND(deregister),
};

#define SLOT_COUNT (sizeof(slots) / sizeof(slots[0]))

static const void *function_of(const weir_handler *table, const struct slot *slot)
{
    const void *function;

    memcpy(&function, (const char *)table + slot->offset, sizeof(function));
    return function;
}

typedef bool match_fn(const void *function, const void *arg);

/*
 * Finds the slot that `matches`; if several handlers have it, as the decoders with a common base
 * do, the `nth` of them in the direction of the event, or the last one.
 */
static bool find_slot(const weir__snapshot *snapshot, match_fn *matches, const void *arg,
                      size_t nth, weir__culprit *ret_culprit)
{
    size_t count = snapshot->handler_count, found = 0;

    for (size_t i = 0; i < SLOT_COUNT && found == 0; i++)
        for (size_t j = 0; j < count && found < nth; j++) {
            const weir__snapshot_handler *handler =
                &snapshot->handlers[slots[i].is_outbound ? count - 1 - j : j];
            const void *function = function_of(&handler->table, &slots[i]);

            if (function == NULL || !matches(function, arg))
                continue;
            *ret_culprit = (weir__culprit){handler, slots[i].name};
            found++;
        }
    return found > 0;
}

/* The number of calls of this function that have not returned, from this frame outwards. */
static size_t count_calls(const weir__snapshot *snapshot, size_t frame)
{
    size_t count = 0;

    for (size_t i = frame; i < snapshot->frame_count; i++)
        count += snapshot->functions[i] == snapshot->functions[frame];
    return count;
}

static bool is_function(const void *function, const void *wanted)
{
    return function == wanted;
}

static bool has_name(const void *function, const void *wanted)
{
    weir__symbol symbol;

    weir__symbol_find((const char *)function + 1, &symbol); /* as if it were a return address */
    return strcmp(symbol.function, wanted) == 0;
}

static bool find_cold(const weir__snapshot *snapshot, size_t frame, weir__culprit *ret_culprit)
{
    weir__symbol symbol;
    char *cold;

    weir__symbol_find(snapshot->frames[frame], &symbol);
    cold = strstr(symbol.function, ".cold");
    if (cold == NULL)
        return false;
    *cold = '\0';
    return find_slot(snapshot, has_name, symbol.function, 1, ret_culprit);
}

weir__culprit weir__snapshot_find_culprit(const weir__snapshot *snapshot)
{
    weir__culprit culprit = {.slot = ""};
    size_t i;

    for (i = 0; i < snapshot->frame_count; i++)
        if (snapshot->functions[i] != NULL &&
            find_slot(snapshot, is_function, snapshot->functions[i], count_calls(snapshot, i),
                      &culprit))
            return culprit;
    for (i = 0; i < snapshot->handler_count; i++)
        if (snapshot->handlers[i].call != NULL)
            return (weir__culprit){&snapshot->handlers[i], snapshot->handlers[i].call};
    for (i = 0; i < snapshot->frame_count && i < COLD_FRAMES && snapshot->handler_count > 0; i++)
        if (find_cold(snapshot, i, &culprit))
            return culprit;
    return culprit;
}

void weir__snapshot_format_channel(const weir__snapshot *snapshot, char *text, size_t size)
{
    weir__channel_format(snapshot->channel_id, snapshot->is_active,
                         snapshot->has_local ? &snapshot->local : NULL,
                         snapshot->has_remote ? &snapshot->remote : NULL, text, size);
}
