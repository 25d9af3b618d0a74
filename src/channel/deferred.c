/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deferred task of a channel: work that must happen later, or on the loop, and must not fail.
 * There is one task, and a word of bits that say what it has to do. The thread that sets the first
 * bit posts the task and retains the channel for it. While the task runs the word is not zero
 * (BUSY): bits that are set then are handled by posting the same task again. A flush that has to
 * continue first lets I/O have its turn: a peer that takes everything at once would otherwise
 * starve other channels.
 *
 * If the loop ends before the channel is closed - a manual executor that was abandoned - the global
 * executor replaces it.
 */
#include "channel/channel.h"

#include <errno.h>

#include <weir/error.h>

#include "base/log.h"
#include "channel/closing.h"
#include "channel/last_sent.h"
#include "channel/offload_blocking.h"

#define BUSY (1u << 31)

static void post(weir_channel *channel, bool after_turn);

/* The task releases its reference: the poster needs one of its own meanwhile. */
static void post_again(weir_channel *channel, uint32_t bits)
{
    weir_channel_retain(channel);
    post(channel, bits == (BUSY | WEIR__DEFERRED_FLUSH));
    weir_channel_release(channel);
}

static int posted_err(weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return extra != NULL ? atomic_load_explicit(&extra->posted_err, memory_order_relaxed) : 0;
}

/* A channel between two loops reports nothing to its handlers: the log is what says why. */
static void reset(weir_channel *channel)
{
    int err = posted_err(channel);

    weir__channel_give_up(channel, err < 0 ? err : -ENOMEM,
                          "a write or a registration did not reach its loop");
}

static void run_deferred(weir_channel *channel, uint32_t bits)
{
    if (bits & WEIR__DEFERRED_RESET) /* before the report: a handler that closes sends nothing */
        channel->flags |= WEIR__OUTPUT_STOPPED | WEIR__RESETS;
    if (bits & WEIR__DEFERRED_ABORT) /* nothing more is sent */
        bits &= ~(uint32_t)(WEIR__DEFERRED_WRITABILITY | WEIR__DEFERRED_FLUSH);
    if (bits & WEIR__DEFERRED_ACTIVE)
        weir__channel_do_active(channel);
    if (bits & WEIR__DEFERRED_WATCH) /* not weir__last_sent_watch, which would defer it again */
        channel->flags |= WEIR__WATCHED;
    if (bits & WEIR__DEFERRED_MARKS)
        weir__outbound_check_marks(channel);
    if (bits & WEIR__DEFERRED_REPORT)
        weir__channel_report(channel, NULL, posted_err(channel),
                             "an operation posted by another thread did not reach the loop");
    if (bits & WEIR__DEFERRED_WRITABILITY && weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_writability(weir__channel_head_tail(channel));
    if (bits & WEIR__DEFERRED_FLUSH)
        weir__channel_resume_sending(channel);
    if (bits & WEIR__DEFERRED_READING)
        weir__channel_update_auto_read(channel);
    if (bits & WEIR__DEFERRED_TRANSPORT)
        channel->transport->deferred(channel);
    if (bits & WEIR__DEFERRED_INACTIVE)
        weir__channel_do_inactive(channel);
    if (bits & WEIR__DEFERRED_DEREGISTER)
        weir__channel_do_detach(channel);
    if (bits & WEIR__DEFERRED_GIVE_UP)
        weir__channel_give_up(channel, -ETIMEDOUT, "a handler has queued data for too long");
    if (bits & WEIR__DEFERRED_RESET)
        reset(channel);
    if (bits & WEIR__DEFERRED_ABORT)
        weir__channel_do_abort(channel, NULL, WEIR_ECLOSED);
    if (bits & WEIR__DEFERRED_CLOSED)
        weir__channel_fire_closed(channel);
    if (bits & WEIR__DEFERRED_SWEEP)
        weir__pipeline_sweep(&channel->pipeline);
    if (bits & WEIR__DEFERRED_OFFLOAD)
        weir__channel_offload(channel);
}

static bool has_moved(const weir_channel *channel)
{
    const weir_executor *executor = weir__channel_executor(channel);

    return !weir__in_executor(executor) && weir__executor_state(executor) < WEIR_EXECUTOR_SHUTDOWN;
}

/* Fails if the new loop takes no task, because its thread cannot be started: then it has never
 * had the channel. */
static bool forward(weir_channel *channel)
{
    int err;

    weir_channel_retain(channel); /* the task may finish before the post returns */
    err = weir__executor_post(weir__channel_executor(channel), &channel->deferred_task, WEIR__NOW);
    weir_channel_release(channel);
    return err == 0;
}

/* Runs on cancellation, too: the work must be done, and this is the executor's thread. */
static void on_deferred_task(void *arg, int status)
{
    weir_channel *channel = arg;
    weir__subject subject;
    uint32_t bits;

    (void)status;
    if (has_moved(channel) && forward(channel))
        return;
    /* Acquire: pairs with the threads that set the bits. */
    bits = atomic_exchange_explicit(&channel->deferred, BUSY, memory_order_acquire);
    weir__channel_enter(channel, &subject);
    run_deferred(channel, bits);
    weir__channel_leave(&subject);
    if (bits & WEIR__DEFERRED_MOVE) /* last: after it another loop may own the channel */
        weir__channel_do_moves(channel);
    weir__channel_resume_deferred(channel);
}

void weir__channel_resume_deferred(weir_channel *channel)
{
    uint32_t bits = BUSY;

    /* Release: the next run of the task sees this one's writes to the channel. */
    if (atomic_compare_exchange_strong_explicit(&channel->deferred, &bits, 0, memory_order_acq_rel,
                                                memory_order_relaxed))
        weir_channel_release(channel);
    else
        post_again(channel, bits);
}

static void post(weir_channel *channel, bool after_turn)
{
    weir_executor *executor = weir__channel_executor(channel);

    weir_task_init(&channel->deferred_task, on_deferred_task, channel);
    if (after_turn && executor != NULL && weir__executor_is_consumer(executor) &&
        weir__executor_post_after_turn(executor, &channel->deferred_task) == 0)
        return;
    if (executor != NULL && weir__executor_post(executor, &channel->deferred_task, WEIR__NOW) == 0)
        return;
    if (weir__executor_post(weir_executor_global(), &channel->deferred_task, WEIR__NOW) == 0)
        return;
    weir__error_limited("channel", "-",
                        "no executor takes the deferred task: running it on the current thread");
    on_deferred_task(channel, 0);
}

void weir__channel_defer(weir_channel *channel, uint32_t bits)
{
    if (weir__channel_executor(channel) == NULL)
        return; /* not registered yet: no event to fire, nothing to sweep */
    if (atomic_fetch_or_explicit(&channel->deferred, bits, memory_order_acq_rel) != 0)
        return;
    weir_channel_retain(channel);
    post(channel, false);
}

bool weir__channel_pause_deferred(weir_channel *channel)
{
    uint32_t none = 0;

    if (!atomic_compare_exchange_strong_explicit(&channel->deferred, &none, BUSY,
                                                 memory_order_acq_rel, memory_order_relaxed))
        return false;
    weir_channel_retain(channel);
    return true;
}
