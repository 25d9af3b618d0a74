/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing events from handler to handler.
 *
 * The hot ones - read, read_complete, write, flush - are written out: find the next context with
 * the bit and call its function, without allocation, atomic operation or any test but that of the
 * mask. A context on another executor has the mark WEIR__CTX_REMOTE and stops every search, because
 * events must not overtake it. head_tail has every slot, so a search always ends.
 */
#include "channel/invoke.h"

#include <weir/error.h>

#include "channel/channel.h"
#include "channel/remote_handler.h"

#define COLD __attribute__((noinline, cold))
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

static inline weir_ctx *next_with(const weir_ctx *ctx, uint32_t slot)
{
    weir_ctx *next = ctx->next;

    while ((next->mask & (slot | WEIR__CTX_REMOTE)) == 0)
        next = next->next;
    return next;
}

static inline weir_ctx *prev_with(const weir_ctx *ctx, uint32_t slot)
{
    weir_ctx *prev = ctx->prev;

    while ((prev->mask & (slot | WEIR__CTX_REMOTE)) == 0)
        prev = prev->prev;
    return prev;
}

static inline bool is_remote(const weir_ctx *ctx)
{
    return UNLIKELY((ctx->mask & WEIR__CTX_REMOTE) != 0);
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

    if (is_remote(target))
        weir__remote_enter(target, event);
    else
        weir__invoke(target, event);
}

static COLD void fire(weir_ctx *ctx, const weir__event *event)
{
    assert(weir__ctx_in_executor(ctx));
    if (is_remote(ctx))
        weir__remote_leave(ctx, event);
    else
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

/* An event leaves the segment of a remote handler, or enters the one of the next handler. */
static COLD void leave_read(weir_ctx *ctx, weir_msg *msg)
{
    weir__remote_leave(ctx, &(const weir__event){.slot = WEIR__READ, .msg = msg});
}

static COLD void enter_read(weir_ctx *next, weir_msg *msg)
{
    weir__remote_enter(next, &(const weir__event){.slot = WEIR__READ, .msg = msg});
}

void weir_fire_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx *next;

    assert(weir__ctx_in_executor(ctx));
    if (is_remote(ctx)) {
        leave_read(ctx, msg);
        return;
    }
    next = next_with(ctx, WEIR__READ);
    if (is_remote(next))
        enter_read(next, msg);
    else
        next->handler->read(next, msg);
}

static COLD void leave_without_contents(weir_ctx *ctx, uint32_t slot)
{
    weir__remote_leave(ctx, &(const weir__event){.slot = slot});
}

static COLD void enter_without_contents(weir_ctx *target, uint32_t slot)
{
    weir__remote_enter(target, &(const weir__event){.slot = slot});
}

void weir_fire_read_complete(weir_ctx *ctx)
{
    weir_ctx *next;

    assert(weir__ctx_in_executor(ctx));
    if (is_remote(ctx)) {
        leave_without_contents(ctx, WEIR__READ_COMPLETE);
        return;
    }
    next = next_with(ctx, WEIR__READ_COMPLETE);
    if (is_remote(next))
        enter_without_contents(next, WEIR__READ_COMPLETE);
    else
        next->handler->read_complete(next);
}

/* ---- outbound ---- */

static bool may_begin(weir_ctx *ctx, weir_promise *done)
{
    return done == NULL || weir__channel_may_begin(ctx->channel, done);
}

static COLD void leave_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir__remote_leave(ctx, &(const weir__event){.slot = WEIR__WRITE, .msg = msg, .done = done});
}

static COLD void enter_write(weir_ctx *prev, weir_msg *msg, weir_promise *done)
{
    weir__remote_enter(prev, &(const weir__event){.slot = WEIR__WRITE, .msg = msg, .done = done});
}

static inline void pass_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_ctx *prev;

    if (is_remote(ctx)) {
        leave_write(ctx, msg, done);
        return;
    }
    prev = prev_with(ctx, WEIR__WRITE);
    if (is_remote(prev))
        enter_write(prev, msg, done);
    else
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
    if (is_remote(ctx))
        return NULL; /* only the loop walks the ring */
    prev = prev_with(ctx, WEIR__WRITE);
    return is_remote(prev) || prev->handler == &weir__head_tail ? NULL : prev;
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
    if (is_remote(ctx)) {
        leave_without_contents(ctx, WEIR__FLUSH);
        return;
    }
    prev = prev_with(ctx, WEIR__FLUSH);
    if (is_remote(prev))
        enter_without_contents(prev, WEIR__FLUSH);
    else
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

void weir__auto_request_read(weir_ctx *ctx)
{
    fire(ctx, &(const weir__event){.slot = WEIR__REQUEST_READ, .is_auto = true});
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
