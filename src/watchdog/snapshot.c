/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a snapshot.
 *
 * The thread may be interrupted anywhere, also while it changes a pipeline. The ring is then walked
 * as far as it is linked: a context is unlinked before it is freed, and the memory of a new one is
 * zeroed. A channel that another loop has taken over is not touched.
 */
#include "watchdog/snapshot.h"

#include <string.h>

#include "channel/channel.h"
#include "loop/loop.h"

/* Asks only sockets, by a system call: other transports may take locks. */
static bool find_address(weir_channel *channel, bool remote, weir_address *ret_address)
{
    const weir__transport *transport = channel->transport;
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    const weir_address *known = NULL;

    if (extra != NULL)
        known = atomic_load_explicit(remote ? &extra->addresses.remote : &extra->addresses.local,
                                     memory_order_acquire);
    if (known != NULL) {
        *ret_address = *known;
        return true;
    }
    if (transport->descriptor == NULL || weir__channel_phase(channel) >= WEIR__CLOSING)
        return false;
    if (remote)
        return transport->remote_address != NULL &&
               transport->remote_address(channel, ret_address) == 0;
    return transport->local_address != NULL && transport->local_address(channel, ret_address) == 0;
}

static void add_handler(weir__snapshot *snapshot, const weir_ctx *ctx, const weir__subject *subject)
{
    weir__snapshot_handler *item = &snapshot->handlers[snapshot->handler_count++];
    const char *name = weir_ctx_name(ctx);
    size_t length = strnlen(name, sizeof(item->name) - 1);

    item->handler = ctx->handler;
    item->table = *ctx->handler;
    memcpy(item->name, name, length);
    item->name[length] = '\0';
    item->call = subject != NULL && subject->ctx == ctx ? subject->call : NULL;
}

/* Remote handlers do not run on the loop. */
static void add_handlers(weir__snapshot *snapshot, weir_channel *channel,
                         const weir__subject *subject)
{
    const weir_ctx *end = weir__channel_head_tail(channel);
    const weir_ctx *ctx = end->next;

    while (ctx != NULL && ctx != end && snapshot->handler_count < WEIR__SNAPSHOT_HANDLERS) {
        if (ctx->handler != NULL && (ctx->mask & WEIR__CTX_REMOTE) == 0)
            add_handler(snapshot, ctx, subject);
        ctx = ctx->next;
    }
}

void weir__snapshot_take(weir__snapshot *snapshot, weir_executor *loop, const void *context)
{
    const weir__subject *subject = atomic_load_explicit(&loop->turn.subject, memory_order_relaxed);
    weir_channel *channel;

    snapshot->is_taken = true;
    snapshot->needs_dispatch = subject == NULL;
    weir__stack_copy_take(&snapshot->stack, context);
    if (subject == NULL)
        channel = weir__loop_io(loop) != NULL ? weir__io_channel(weir__loop_io(loop)) : NULL;
    else
        channel = subject->channel != NULL ? subject->channel : subject->ctx->channel;
    if (channel == NULL || weir__channel_executor(channel) != loop)
        return;
    snapshot->has_channel = true;
    snapshot->channel_id = channel->id;
    snapshot->is_active = weir__channel_is(channel, WEIR__IS_ACTIVE);
    snapshot->has_local = find_address(channel, false, &snapshot->local);
    snapshot->has_remote = find_address(channel, true, &snapshot->remote);
    add_handlers(snapshot, channel, subject);
}

void weir__snapshot_unwind(weir__snapshot *snapshot)
{
    bool (*dispatch)(weir__io *, int64_t) = weir__io_dispatch;
    const void *function;
    size_t i = 0;

    if (!snapshot->is_taken)
        return;
    snapshot->frame_count = weir__stack_copy_unwind(&snapshot->stack, snapshot->frames,
                                                    snapshot->functions, WEIR__SNAPSHOT_FRAMES);
    memcpy(&function, &dispatch, sizeof(function));
    while (i < snapshot->frame_count && snapshot->functions[i] != function)
        i++;
    if (!snapshot->needs_dispatch || i < snapshot->frame_count)
        return;
    snapshot->has_channel = false;
    snapshot->handler_count = 0;
}
