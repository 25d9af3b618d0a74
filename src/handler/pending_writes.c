/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/flow_control.h>

#include <errno.h>

#include <weir/channel.h>
#include <weir/error.h>

#include "channel/border.h"
#include "channel/node_pool.h"
#include "channel/outbound.h"

_Static_assert(sizeof(weir_pending_write) <= WEIR__NODE_SIZE, "a pending write is a node");

static weir_pending_write *fail_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done, int err,
                                      const char *detail)
{
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, err, detail);
    return NULL;
}

static bool may_queue(const weir_ctx *ctx, int64_t cost)
{
    weir_channel *channel = weir_ctx_channel(ctx);

    return weir__ctx_is_remote(ctx) ? weir__outbound_may_add_pending(channel, cost)
                                    : weir__outbound_admit(channel, cost) == 0;
}

weir_pending_write *weir_pending_writes_add(weir_ctx *ctx, weir_pending_writes *writes,
                                            weir_msg *msg, weir_promise *done)
{
    int64_t cost = weir__outbound_cost(msg);
    weir_pending_write *write;

    if (!may_queue(ctx, cost))
        return fail_write(ctx, msg, done, WEIR_EFULL, NULL);
    write = weir__node_alloc();
    if (write == NULL)
        return fail_write(ctx, msg, done, -ENOMEM, "no memory to queue a write");
    *write = (weir_pending_write){
        .msg = msg,
        .done = done != NULL ? weir_promise_retain(done) : NULL,
        .cost = cost,
    };
    if (writes->last != NULL)
        writes->last->next = write;
    else
        writes->first = write;
    writes->last = write;
    writes->count++;
    writes->cost += write->cost;
    weir_ctx_add_pending_bytes(ctx, write->cost);
    return write;
}

void weir_pending_writes_flush(weir_pending_writes *writes)
{
    writes->flushed = writes->count;
}

/* Unlinks the first write. */
static weir_pending_write remove_first(weir_pending_writes *writes)
{
    weir_pending_write *first = writes->first, write = *first;

    writes->first = first->next;
    if (writes->first == NULL)
        writes->last = NULL;
    writes->count--;
    if (writes->flushed > 0)
        writes->flushed--;
    writes->cost -= write.cost;
    weir__node_free(first);
    return write;
}

void weir_pending_writes_pass(weir_ctx *ctx, weir_pending_writes *writes)
{
    weir_pending_write write = remove_first(writes);

    weir_write_pending(ctx, write.msg, write.done, write.cost);
    weir_promise_release(write.done);
}

weir_msg *weir_pending_writes_take_charged(weir_pending_writes *writes, weir_promise **ret_done,
                                           int64_t *ret_cost)
{
    weir_pending_write write = remove_first(writes);

    *ret_done = write.done;
    *ret_cost = write.cost;
    return write.msg;
}

void weir_pending_writes_shorten(weir_pending_writes *writes, int64_t bytes)
{
    writes->first->cost -= bytes;
    writes->cost -= bytes;
}

weir_msg *weir_pending_writes_take(weir_ctx *ctx, weir_pending_writes *writes,
                                   weir_promise **ret_done)
{
    weir_pending_write write = remove_first(writes);

    weir_ctx_add_pending_bytes(ctx, -write.cost);
    *ret_done = write.done;
    return write.msg;
}

void weir_pending_writes_fail_first(weir_ctx *ctx, weir_pending_writes *writes, int err,
                                    const char *detail)
{
    weir_promise *done;

    weir_msg_release(weir_pending_writes_take(ctx, writes, &done));
    weir_ctx_report(ctx, done, err, detail);
    weir_promise_release(done);
}

void weir_pending_writes_fail(weir_ctx *ctx, weir_pending_writes *writes, int err,
                              const char *detail)
{
    while (writes->count > 0)
        weir_pending_writes_fail_first(ctx, writes, err, detail);
    weir_pending_writes_fail_shutdown_output(ctx, writes, err, detail);
    weir_pending_writes_run_deferred(ctx, writes);
}

/* ---- closing ---- */

/* A repeated close completes when the channel has closed. */
static void complete_when_closed(weir_ctx *ctx, weir_promise *done)
{
    weir_promise *closed;
    int err;

    if (done == NULL || !weir_promise_set_uncancellable(done))
        return;
    closed = weir_channel_closed(weir_ctx_channel(ctx));
    err = closed != NULL ? weir_promise_cascade(closed, done) : -ENOMEM;
    if (err < 0)
        weir_ctx_report(ctx, done, err, NULL);
}

void weir_pending_writes_defer_close(weir_ctx *ctx, weir_pending_writes *writes, weir_promise *done)
{
    if (writes->close_deferred) {
        complete_when_closed(ctx, done);
        return;
    }
    writes->close_deferred = true;
    writes->close_done = done != NULL ? weir_promise_retain(done) : NULL;
    weir_pending_writes_flush(writes);
}

void weir_pending_writes_close(weir_ctx *ctx, weir_pending_writes *writes, weir_promise *done)
{
    bool is_first = !writes->close_deferred;

    weir_pending_writes_defer_close(ctx, writes, done);
    if (is_first)
        weir_pending_writes_run_deferred(ctx, writes);
}

/* ---- half closure ---- */

/* A repeated half closure completes with the first one. */
static void add_shutdown_promise(weir_ctx *ctx, weir_pending_writes *writes, weir_promise *done)
{
    int err = 0;

    if (writes->shutdown_done == NULL)
        writes->shutdown_done = weir_promise_retain(done);
    else if (writes->shutdown_done != done)
        err = weir_promise_cascade(writes->shutdown_done, done);
    if (err < 0)
        weir_ctx_report(ctx, done, err, NULL);
}

void weir_pending_writes_defer_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes,
                                               weir_promise *done)
{
    if (writes->close_deferred) {
        weir_ctx_report(ctx, done, WEIR_ECLOSED, NULL);
        return;
    }
    if (done != NULL && !weir_promise_set_uncancellable(done))
        return;
    if (done != NULL)
        add_shutdown_promise(ctx, writes, done);
    writes->shutdown_deferred = true;
    weir_pending_writes_flush(writes);
}

void weir_pending_writes_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes,
                                         weir_promise *done)
{
    bool is_first = !writes->shutdown_deferred;

    weir_pending_writes_defer_shutdown_output(ctx, writes, done);
    if (is_first)
        weir_pending_writes_run_deferred(ctx, writes);
}

/* Gives: the promise. */
static weir_promise *take_shutdown(weir_pending_writes *writes)
{
    weir_promise *done = writes->shutdown_done;

    writes->shutdown_deferred = false;
    writes->shutdown_done = NULL;
    return done;
}

void weir_pending_writes_fail_shutdown_output(weir_ctx *ctx, weir_pending_writes *writes, int err,
                                              const char *detail)
{
    weir_promise *done;

    if (!writes->shutdown_deferred)
        return;
    done = take_shutdown(writes);
    if (done != NULL)
        weir_ctx_report(ctx, done, err, detail);
    weir_promise_release(done);
}

/* ---- deferred operations ---- */

bool weir_pending_writes_is_ending(const weir_pending_writes *writes)
{
    return writes->close_deferred || writes->shutdown_deferred;
}

void weir_pending_writes_run_deferred(weir_ctx *ctx, weir_pending_writes *writes)
{
    weir_promise *done;

    if (writes->count == 0 && writes->shutdown_deferred) {
        done = take_shutdown(writes);
        weir_shutdown_output(ctx, done);
        weir_promise_release(done);
    }
    if (writes->count == 0 && writes->close_deferred) {
        done = writes->close_done;
        writes->close_deferred = false;
        writes->close_done = NULL;
        weir_close(ctx, done);
        weir_promise_release(done);
    }
}
