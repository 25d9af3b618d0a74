/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demand: which messages a handler may pass on. For every handler that can make several messages of
 * one read; its table has `buffers_reads`, and its state begins with a weir_demand.
 *
 *      open      auto-read is on, or a message was requested and not passed on yet
 *      closed    messages are held back, nothing is requested below, and the end of the input waits
 *
 * A request from behind opens the demand for one message. If none is left, the request goes on
 * towards the head. The data that answers it may be less than a message; then read_complete repeats
 * the request.
 *
 * Requests made inside `read` or `read_complete` are recorded, and the outer call on the stack
 * handles them: the stack does not grow with the number of messages.
 *
 * All of this runs on the handler's executor.
 */
#ifndef WEIR_CHANNEL_DEMAND_H
#define WEIR_CHANNEL_DEMAND_H

#include <weir/handler.h>

#include "channel/channel.h"
#include "channel/msg_queue.h"

/* The source of further messages. */
typedef struct weir__demand_source {
    /* Makes messages and passes them to weir__demand_pass while the demand is open. Called with
     * no message held back. NULL: there are no other messages. */
    void (*produce)(weir_ctx *ctx);

    /* True if something is held back, as messages or in a form that `produce` understands. */
    bool (*has_more)(weir_ctx *ctx);

    /* The outermost call is about to return: the handler may have been removed meanwhile. */
    void (*settle)(weir_ctx *ctx);
} weir__demand_source;

/* The source of handlers that hold back only messages. */
extern const weir__demand_source weir__demand_buffered;

static inline weir_demand *weir__demand_of(weir_ctx *ctx)
{
    return weir__ctx_state(ctx);
}

static inline bool weir__demand_has_auto_read(const weir_ctx *ctx)
{
    /* Relaxed, as weir_channel_auto_read: the switch guards no other memory. */
    return weir__channel_is(ctx->channel, WEIR__AUTO_READ);
}

static inline bool weir__demand_is_open(weir_ctx *ctx)
{
    return weir__demand_has_auto_read(ctx) || weir__demand_of(ctx)->is_requested;
}

/* The handler was added: takes over unanswered requests. */
void weir__demand_begin(weir_ctx *ctx);

/* Passes a message on, or holds it back if the demand is closed. Takes: msg. */
void weir__demand_pass(weir_ctx *ctx, weir_msg *msg);

/* The same for several messages, in order, with weir__demand_buffered. Takes: the messages. */
void weir__demand_pass_all(weir_ctx *ctx, weir_msg *const *msgs, size_t count);

/* Passes on the messages that may pass. `resumes`: no read_complete follows from below, so this
 * fires it. */
void weir__demand_run(weir_ctx *ctx, const weir__demand_source *source, bool resumes);

/* Releases held messages, when the channel has become inactive. */
void weir__demand_clear(weir_ctx *ctx);

/* Passes on all held messages, requested or not, for a handler that was removed. `more`, which
 * may be NULL, passes on the rest after them and returns true if there was any. */
void weir__demand_flush(weir_ctx *ctx, bool (*more)(weir_ctx *ctx));

/* ---- slots ---- */

void weir__demand_read_complete(weir_ctx *ctx, const weir__demand_source *source);
void weir__demand_request_read(weir_ctx *ctx, const weir__demand_source *source);
void weir__demand_event(weir_ctx *ctx, weir_msg *event, const weir__demand_source *source);

/* Those of weir__demand_buffered. */
void weir__demand_inactive(weir_ctx *ctx);
void weir__demand_removed(weir_ctx *ctx);

#endif
