/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/mailbox.h"

#include <errno.h>

#include <weir/error.h>

#include "channel/closing.h"
#include "channel/node_pool.h"
#include "channel/offload_blocking.h"
#include "loop/io.h"

/* Flags that were asked for by another thread, or by the loop after it. ABORT: something may have
 * been lost. */
#define CALLS                                                                    \
    (WEIR__DEFERRED_FLUSH | WEIR__DEFERRED_REQUEST_READ | WEIR__DEFERRED_CLOSE | \
     WEIR__DEFERRED_ABORT)

_Static_assert(WEIR__DEFERRED_OFFLOAD <= WEIR__MAILBOX_FLAGS, "flags of the mailbox");
_Static_assert(sizeof(weir__call) <= WEIR__NODE_SIZE, "a call is a node");

static weir_channel *channel_of(const weir__mailbox *box)
{
    return WEIR_CONTAINER_OF((weir__mailbox *)(uintptr_t)box, weir_channel, mailbox);
}

/* ---- flags ---- */

/* Once for each error; of two that were posted before the loop looks, the later one. */
static void report_posted(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int err = extra != NULL ? atomic_load_explicit(&extra->posted_err, memory_order_relaxed) : 0;

    if (err < 0 && atomic_compare_exchange_strong_explicit(
                       &extra->posted_err, &err, -err, memory_order_relaxed, memory_order_relaxed))
        weir__channel_report(channel, NULL, err,
                             "an operation posted by another thread did not reach the loop");
}

/* A channel between two loops reports nothing to its handlers: the log is what says why. */
static void reset(weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int err = extra != NULL ? atomic_load_explicit(&extra->posted_err, memory_order_relaxed) : 0;

    err = err > 0 ? -err : err;
    weir__channel_give_up(channel, err < 0 ? err : -ENOMEM,
                          err == -ETIMEDOUT ? "a handler has queued data for too long"
                                            : "a write or a registration did not reach its loop");
}

/* Calls that have no promise and no argument. If they cannot reach the loop, an error is reported,
 * and a close becomes an abort: it is never lost. */
static void run_call(weir_channel *channel, uint32_t flag, int status)
{
    weir_ctx *head_tail = weir__channel_head_tail(channel);

    if (status < 0 && flag == WEIR__DEFERRED_CLOSE)
        weir__channel_defer(channel, WEIR__DEFERRED_ABORT);
    else if (status < 0)
        weir__channel_fail_posted(channel, NULL, status);
    else if (flag == WEIR__DEFERRED_FLUSH)
        weir_flush(head_tail);
    else if (flag == WEIR__DEFERRED_REQUEST_READ)
        weir_request_read(head_tail);
    else
        weir_close(head_tail, NULL);
}

static void run_deferred(weir_channel *channel, uint32_t flags, int status)
{
    if (flags & WEIR__DEFERRED_RESET) /* before the report: a handler that closes sends nothing */
        channel->flags |= WEIR__QUEUE_LOST;
    if (flags & WEIR__DEFERRED_ABORT) /* nothing more is sent */
        flags &= ~(uint32_t)(WEIR__DEFERRED_WRITABILITY | WEIR__DEFERRED_SENDING);
    if (flags & WEIR__DEFERRED_ACTIVE)
        weir__channel_do_active(channel);
    if (flags & WEIR__DEFERRED_CHECK) {
        weir__outbound_check_marks(channel);
        report_posted(channel);
    }
    if (flags & WEIR__DEFERRED_WRITABILITY && weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_writability(weir__channel_head_tail(channel));
    if (flags & WEIR__DEFERRED_SENDING)
        weir__channel_resume_sending(channel);
    if (flags & WEIR__DEFERRED_FLUSH)
        run_call(channel, WEIR__DEFERRED_FLUSH, status);
    if (flags & WEIR__DEFERRED_READING)
        weir__channel_update_auto_read(channel);
    if (flags & WEIR__DEFERRED_REQUEST_READ)
        run_call(channel, WEIR__DEFERRED_REQUEST_READ, status);
    if (flags & WEIR__DEFERRED_TRANSPORT)
        channel->transport->deferred(channel);
    if (flags & WEIR__DEFERRED_CHECK && weir__channel_phase(channel) != WEIR__CLOSED)
        weir__channel_do_inactive(channel); /* of a disconnect; that of a close is CLOSED's */
    if (flags & WEIR__DEFERRED_DEREGISTER)
        weir__channel_do_detach(channel);
    if (flags & WEIR__DEFERRED_RESET)
        reset(channel);
    if (flags & WEIR__DEFERRED_ABORT)
        weir__channel_do_abort(channel, NULL, WEIR_ECLOSED);
    if (flags & WEIR__DEFERRED_CLOSE)
        run_call(channel, WEIR__DEFERRED_CLOSE, status);
    if (flags & WEIR__DEFERRED_CLOSED)
        weir__channel_fire_closed(channel);
    if (flags & WEIR__DEFERRED_SWEEP)
        weir__pipeline_sweep(&channel->pipeline);
    if (flags & WEIR__DEFERRED_OFFLOAD)
        weir__channel_offload(channel);
}

static void run_flags(weir__mailbox *box, uint32_t flags, int status)
{
    weir_channel *channel = channel_of(box);
    weir__subject subject;

    weir__channel_enter(channel, &subject);
    run_deferred(channel, flags, status);
    weir__channel_leave(&subject);
}

void weir__channel_defer(weir_channel *channel, uint32_t flags)
{
    if (weir__channel_executor(channel) == NULL)
        return;                       /* not registered yet: no event to fire, nothing to sweep */
    if (flags & WEIR__DEFERRED_ABORT) /* relaxed: what is posted from here on runs after it */
        atomic_fetch_or_explicit(&channel->state, WEIR__ABORTS, memory_order_relaxed);
    weir__mailbox_set(&channel->mailbox, flags);
}

/* ---- calls ---- */

static void on_call(weir__mailbox *box, weir__mail *mail, int status)
{
    weir_channel *channel = channel_of(box);
    weir__call *call = WEIR_CONTAINER_OF(mail, weir__call, mail);
    weir__subject subject;

    weir__channel_enter(channel, &subject);
    if (status == 0)
        call->operation->run(channel, call);
    else
        call->operation->fail(channel, call, status);
    weir__channel_leave(&subject);
    weir__call_free(call);
}

void weir__call_become(weir__call *call, const weir__operation *operation)
{
    call->mail.fn = on_call;
    call->operation = operation;
}

weir__call *weir__call_create(const weir__operation *operation, weir_promise *done, void *arg,
                              int64_t number)
{
    weir__call *call = weir__node_alloc();

    if (call == NULL)
        return NULL;
    weir__call_become(call, operation);
    call->done = done != NULL ? weir_promise_retain(done) : NULL;
    call->arg = arg;
    call->number = number;
    return call;
}

void weir__call_free(weir__call *call)
{
    weir_promise *done = call->done;

    weir__node_free(call);
    weir_promise_release(done);
}

int weir__channel_call(weir_channel *channel, const weir__operation *operation, weir_promise *done,
                       void *arg, int64_t number)
{
    weir__call *call = weir__call_create(operation, done, arg, number);

    if (call == NULL) {
        operation->fail(channel, &(weir__call){.done = done, .arg = arg, .number = number},
                        -ENOMEM);
        return -ENOMEM;
    }
    weir__mailbox_post(&channel->mailbox, &call->mail);
    return 0;
}

void weir__call_fail(weir_channel *channel, weir_promise *done, int err)
{
    if (done == NULL)
        return;
    if (weir__channel_phase(channel) == WEIR__CLOSED)
        err = WEIR_ECLOSED;
    (void)weir_promise_fail(done, err, NULL);
}

/* ---- the order ---- */

/* True if a function of the channel's handlers, or of its mailbox, is on the stack of the loop. */
static bool is_on_stack(const weir_channel *channel, weir_executor *loop)
{
    const weir__subject *subject = atomic_load_explicit(&loop->turn.subject, memory_order_relaxed);
    const weir__io *io = weir__loop_io(loop);

    for (; subject != NULL; subject = subject->outer)
        if ((subject->channel != NULL ? subject->channel : subject->ctx->channel) == channel)
            return true;
    return io != NULL && weir__io_channel(io) == channel;
}

bool weir__channel_may_overtake(const weir_channel *channel)
{
    weir_executor *loop = weir__channel_executor(channel);

    return loop == NULL || !weir__mailbox_has_calls(&channel->mailbox) ||
           is_on_stack(channel, loop);
}

/* ---- the owner ---- */

static weir_executor *executor_of(const weir__mailbox *box)
{
    return weir__channel_executor(channel_of(box));
}

static void retain(weir__mailbox *box)
{
    weir_channel_retain(channel_of(box));
}

static void release(weir__mailbox *box)
{
    weir_channel_release(channel_of(box));
}

/* A flush that has to continue first lets I/O have its turn: a peer that takes everything
 * immediately would otherwise starve other channels. */
const weir__mailbox_type weir__channel_mailbox = {
    .name = "channel",
    .executor = executor_of,
    .retain = retain,
    .release = release,
    .run = run_flags,
    .tail_flags = WEIR__DEFERRED_SENDING,
    .own_flags = WEIR__MAILBOX_FLAGS & ~CALLS,
};
