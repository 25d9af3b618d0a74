/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing events from handler to handler.
 *
 * The hot ones - read, read_complete, write, flush - are written out: find the next context with
 * the bit and call its function, without allocation, atomic operation or any test but that of the
 * mask. head_tail has every slot, and so have the contexts that stand for the other side of a
 * border (border.h): a search always ends, and stays on one executor.
 */
#include "channel/invoke.h"

#include <weir/error.h>

#include "channel/border.h"
#include "channel/channel.h"

#define COLD __attribute__((noinline, cold))

static inline weir_ctx *next_with(const weir_ctx *ctx, uint32_t slot)
{
    weir_ctx *next = ctx->next;

    while ((next->mask & slot) == 0)
        next = next->next;
    return next;
}

static inline weir_ctx *prev_with(const weir_ctx *ctx, uint32_t slot)
{
    weir_ctx *prev = ctx->prev;

    while ((prev->mask & slot) == 0)
        prev = prev->prev;
    return prev;
}

/* ---- weir__event ---- */

static void invoke_in(weir_ctx *ctx, const weir__event *event)
{
    const weir_handler *handler = ctx->handler;

    switch (event->slot) {
    case WEIR__REGISTERED:
        handler->registered(ctx);
        break;
    case WEIR__UNREGISTERED:
        handler->unregistered(ctx);
        break;
    case WEIR__ACTIVE:
        handler->active(ctx);
        break;
    case WEIR__INACTIVE:
        handler->inactive(ctx);
        break;
    case WEIR__READ:
        handler->read(ctx, event->msg);
        break;
    case WEIR__READ_COMPLETE:
        handler->read_complete(ctx);
        break;
    case WEIR__EVENT:
        handler->event(ctx, event->msg);
        break;
    case WEIR__WRITABILITY:
        handler->writability(ctx);
        break;
    case WEIR__ERROR:
        handler->error(ctx, event->err, event->detail);
        break;
    default:
        handler->draining(ctx);
    }
}

static void invoke_out(weir_ctx *ctx, const weir__event *event)
{
    const weir_handler *handler = ctx->handler;

    switch (event->slot) {
    case WEIR__BIND:
        handler->bind(ctx, event->local, event->done);
        break;
    case WEIR__CONNECT:
        handler->connect(ctx, event->remote, event->local, event->done);
        break;
    case WEIR__DISCONNECT:
        handler->disconnect(ctx, event->done);
        break;
    case WEIR__CLOSE:
        handler->close(ctx, event->done);
        break;
    case WEIR__DEREGISTER:
        handler->deregister(ctx, event->done);
        break;
    case WEIR__REQUEST_READ:
        handler->request_read(ctx);
        break;
    case WEIR__WRITE:
        handler->write(ctx, event->msg, event->done);
        break;
    case WEIR__SHUTDOWN_OUTPUT:
        handler->shutdown_output(ctx, event->done);
        break;
    default:
        handler->flush(ctx);
    }
}

void weir__invoke(weir_ctx *ctx, const weir__event *event)
{
    if (event->slot < WEIR__BIND)
        invoke_in(ctx, event);
    else
        invoke_out(ctx, event);
}

void weir__pass(weir_ctx *ctx, const weir__event *event)
{
    weir_ctx *target =
        event->slot < WEIR__BIND ? next_with(ctx, event->slot) : prev_with(ctx, event->slot);

    if ((target->mask & WEIR__CTX_BORDER) != 0)
        weir__border_pass(target, event);
    else
        weir__invoke(target, event);
}

static COLD void fire(weir_ctx *ctx, const weir__event *event)
{
    assert(weir__ctx_in_executor(ctx));
    weir__pass(ctx, event);
}

/* ---- inbound ---- */

void weir_fire_registered(weir_ctx *ctx)
{
    fire(ctx, &(const weir__event){.slot = WEIR__REGISTERED});
}

void weir_fire_unregistered(weir_ctx *ctx)
{
    fire(ctx, &(const weir__event){.slot = WEIR__UNREGISTERED});
}

void weir_fire_active(weir_ctx *ctx)
{
    fire(ctx, &(const weir__event){.slot = WEIR__ACTIVE});
}

void weir_fire_inactive(weir_ctx *ctx)
{
    fire(ctx, &(const weir__event){.slot = WEIR__INACTIVE});
}

void weir_fire_writability(weir_ctx *ctx)
{
    fire(ctx, &(const weir__event){.slot = WEIR__WRITABILITY});
}

void weir_fire_draining(weir_ctx *ctx)
{
    fire(ctx, &(const weir__event){.slot = WEIR__DRAINING});
}

void weir_fire_event(weir_ctx *ctx, weir_msg *event)
{
    fire(ctx, &(const weir__event){.slot = WEIR__EVENT, .msg = event});
}

void weir_fire_error(weir_ctx *ctx, int err, const char *detail)
{
    fire(ctx, &(const weir__event){.slot = WEIR__ERROR, .err = err, .detail = detail});
}

void weir_fire_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx *next;

    assert(weir__ctx_in_executor(ctx));
    next = next_with(ctx, WEIR__READ);
    next->handler->read(next, msg);
}

void weir_fire_read_complete(weir_ctx *ctx)
{
    weir_ctx *next;

    assert(weir__ctx_in_executor(ctx));
    next = next_with(ctx, WEIR__READ_COMPLETE);
    next->handler->read_complete(next);
}

/* ---- outbound ---- */

static bool may_begin(weir_ctx *ctx, weir_promise *done)
{
    return done == NULL || weir__channel_may_begin(ctx->channel, done);
}

static inline void pass_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_ctx *prev = prev_with(ctx, WEIR__WRITE);

    prev->handler->write(prev, msg, done);
}

static __attribute__((noinline)) void write_with_promise(weir_ctx *ctx, weir_msg *msg,
                                                         weir_promise *done)
{
    if (may_begin(ctx, done))
        pass_write(ctx, msg, done);
    else
        weir_msg_release(msg);
}

weir_ctx *weir_ctx_next_writer(const weir_ctx *ctx)
{
    weir_ctx *prev;

    assert(weir__ctx_in_executor(ctx));
    prev = prev_with(ctx, WEIR__WRITE);
    return (prev->mask & WEIR__CTX_BORDER) != 0 || prev->handler == &weir__head_tail ? NULL : prev;
}

/* Most writes have no promise: this path saves no registers. */
void weir_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    assert(weir__ctx_in_executor(ctx));
    if (done == NULL)
        pass_write(ctx, msg, NULL);
    else
        write_with_promise(ctx, msg, done);
}

void weir_flush(weir_ctx *ctx)
{
    weir_ctx *prev;

    assert(weir__ctx_in_executor(ctx));
    prev = prev_with(ctx, WEIR__FLUSH);
    prev->handler->flush(prev);
}

void weir_write_and_flush(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_write(ctx, msg, done);
    weir_flush(ctx);
}

void weir_request_read(weir_ctx *ctx)
{
    fire(ctx, &(const weir__event){.slot = WEIR__REQUEST_READ});
}

void weir_bind(weir_ctx *ctx, const weir_address *local, weir_promise *done)
{
    if (may_begin(ctx, done))
        fire(ctx, &(const weir__event){.slot = WEIR__BIND, .local = local, .done = done});
}

void weir_connect(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                  weir_promise *done)
{
    if (may_begin(ctx, done))
        fire(ctx, &(const weir__event){
                      .slot = WEIR__CONNECT, .remote = remote, .local = local, .done = done});
}

void weir_disconnect(weir_ctx *ctx, weir_promise *done)
{
    if (!ctx->channel->transport->has_disconnect)
        weir_close(ctx, done);
    else if (may_begin(ctx, done))
        fire(ctx, &(const weir__event){.slot = WEIR__DISCONNECT, .done = done});
}

void weir_close(weir_ctx *ctx, weir_promise *done)
{
    if (may_begin(ctx, done))
        fire(ctx, &(const weir__event){.slot = WEIR__CLOSE, .done = done});
}

void weir_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    if (may_begin(ctx, done))
        fire(ctx, &(const weir__event){.slot = WEIR__SHUTDOWN_OUTPUT, .done = done});
}

void weir_deregister(weir_ctx *ctx, weir_promise *done)
{
    if (may_begin(ctx, done))
        fire(ctx, &(const weir__event){.slot = WEIR__DEREGISTER, .done = done});
}

/* ---- at the head ---- */

void weir_pipeline_fire_read(weir_pipeline *pipeline, weir_msg *msg)
{
    weir_fire_read(&pipeline->head_tail, msg);
}

void weir_pipeline_fire_read_complete(weir_pipeline *pipeline)
{
    weir_fire_read_complete(&pipeline->head_tail);
}

void weir_pipeline_fire_event(weir_pipeline *pipeline, weir_msg *event)
{
    weir_fire_event(&pipeline->head_tail, event);
}

void weir_pipeline_fire_error(weir_pipeline *pipeline, int err, const char *detail)
{
    weir_fire_error(&pipeline->head_tail, err, detail);
}
