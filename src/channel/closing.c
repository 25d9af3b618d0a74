/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress means that the transport takes data from the queue (last_sent.c), or that the peer
 * acknowledges data: a full socket takes nothing before a third of it is free, which may take a
 * slow reader minutes. Unacknowledged data has to be polled: at first often, because most peers
 * acknowledge soon, then at least SAMPLES times within a timeout. A close gives up late by up to
 * one sample, and never early.
 */
#include "channel/closing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "base/memory.h"
#include "channel/channel_stats.h"
#include "channel/last_sent.h"

#define SAMPLES 8
#define FIRST_SAMPLE_NS weir_ms(10) /* then twice as late each time */

/* 0 if the loop has ended, and with it perhaps its clock: then no timer starts, either. */
static int64_t now_of(const weir_channel *channel)
{
    const weir_executor *loop = weir__channel_executor(channel);

    return weir__executor_state(loop) < WEIR_EXECUTOR_SHUTDOWN ? weir__executor_now(loop) : 0;
}

static int64_t unacknowledged(const weir_channel *channel)
{
    return channel->transport->unacknowledged != NULL ? channel->transport->unacknowledged(channel)
                                                      : 0;
}

/* ---- progress ---- */

void weir__closing_watch(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    (void)weir__last_sent_watch(channel); /* without memory nothing counts as progress */
    if (extra != NULL && weir__channel_in_loop(channel))
        extra->unacknowledged = unacknowledged(channel);
}

int64_t weir__closing_progress_at(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int64_t sent_at = weir__last_sent_of_bytes(channel), left;

    if (extra == NULL || !weir__channel_in_loop(channel))
        return sent_at;
    left = unacknowledged(channel);
    if (left < extra->unacknowledged)
        extra->progress_at = now_of(channel);
    extra->unacknowledged = left;
    return sent_at > extra->progress_at ? sent_at : extra->progress_at;
}

int64_t weir__closing_poll_ns(const weir_channel *channel, int64_t timeout_ns)
{
    bool samples = channel->transport->unacknowledged != NULL && timeout_ns != WEIR_NEVER;

    return samples ? timeout_ns / SAMPLES + 1 : timeout_ns;
}

/* ---- giving up ---- */

int weir__closing_error(const weir_channel *channel, const char **ret_reason)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    *ret_reason = extra != NULL ? extra->close_reason : NULL;
    return extra != NULL ? extra->close_err : 0;
}

void weir__closing_describe(const weir_channel *channel, const char *what, char *text, size_t size)
{
    int64_t timeout_ns = weir__channel_options(channel)->close_send_timeout_ns;
    bool is_whole = timeout_ns % weir_seconds(1) == 0;

    (void)snprintf(text, size, "%s for %" PRId64 " %s after the close", what,
                   timeout_ns / (is_whole ? weir_seconds(1) : weir_ms(1)), is_whole ? "s" : "ms");
}

/* Rate-limited: a peer causes these by not reading. */
static void log_giving_up(weir_channel *channel, const char *reason)
{
    static weir__log_limit limit;
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];
    weir__log_note note;

    if (weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("channel", weir__channel_log_name(channel, name), "%s: %s%s", reason,
                   channel->transport->reset != NULL ? "the connection is reset"
                                                     : "the channel is closed",
                   note.text);
}

void weir__channel_give_up(weir_channel *channel, int err, const char *reason)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (weir__channel_phase(channel) >= WEIR__CLOSING)
        return;
    log_giving_up(channel, reason);
    weir__stats_error(channel, err);
    if (extra != NULL) {
        extra->close_err = err;
        extra->close_reason =
            weir__strdup(reason); /* NULL without memory: the text of the error replaces it */
    }
    channel->flags |= WEIR__QUEUE_LOST;
    weir__channel_begin_closing(channel, err);
}

/* ---- the timer ---- */

static void on_close_timer(weir_timer *timer);

static bool start_timer(weir_channel *channel, int64_t timeout_ns)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (timeout_ns == WEIR_NEVER)
        return true;
    return extra != NULL && weir_timer_start(weir__channel_executor(channel), &extra->timer,
                                             timeout_ns, on_close_timer) == 0;
}

static void start_timer_or_close(weir_channel *channel, int64_t timeout_ns)
{
    if (!start_timer(channel, timeout_ns))
        weir__channel_begin_closing(channel, WEIR_ECLOSED);
}

/* The delay of the next sample, `quiet_ns` after the last progress. */
static int64_t sample_after(const weir_channel *channel, int64_t timeout_ns, int64_t quiet_ns)
{
    int64_t delay_ns = quiet_ns > FIRST_SAMPLE_NS ? quiet_ns : FIRST_SAMPLE_NS;

    return weir__earlier(delay_ns, weir__closing_poll_ns(channel, timeout_ns));
}

static void check_progress(weir_channel *channel)
{
    int64_t timeout_ns = weir__channel_options(channel)->close_send_timeout_ns;
    int64_t progress_at = weir__closing_progress_at(channel), now_ns = now_of(channel);
    int64_t left_ns = weir__deadline(progress_at, timeout_ns) - now_ns;
    char what[WEIR__CLOSE_REASON_SIZE / 2], reason[WEIR__CLOSE_REASON_SIZE];

    if (left_ns > 0) {
        start_timer_or_close(channel, weir__earlier(left_ns, sample_after(channel, timeout_ns,
                                                                          now_ns - progress_at)));
        return;
    }
    (void)snprintf(what, sizeof(what), "the peer took none of the last %" PRId64 " bytes",
                   weir__outbound_left(channel) + unacknowledged(channel));
    weir__closing_describe(channel, what, reason, sizeof(reason));
    weir__channel_give_up(channel, -ETIMEDOUT, reason);
}

/* The peer has acknowledged everything. If it did so only now, its time to end the stream starts
 * now. */
static void check_peer_end(weir_channel *channel, weir__channel_extra *extra)
{
    int64_t timeout_ns = weir__channel_options(channel)->close_timeout_ns;

    if (extra->unacknowledged == 0 && timeout_ns != WEIR_NEVER) {
        weir__channel_begin_closing(channel, WEIR_ECLOSED);
        return;
    }
    extra->unacknowledged = 0;
    start_timer_or_close(channel, timeout_ns);
}

static void on_close_timer(weir_timer *timer)
{
    weir__channel_extra *extra = WEIR_CONTAINER_OF(timer, weir__channel_extra, timer);
    weir_channel *channel = extra->channel;

    if (weir__channel_phase(channel) == WEIR__LINGERING && unacknowledged(channel) == 0)
        check_peer_end(channel, extra);
    else
        check_progress(channel);
}

bool weir__closing_start_send_timeout(weir_channel *channel)
{
    int64_t timeout_ns = weir__channel_options(channel)->close_send_timeout_ns;
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (timeout_ns == WEIR_NEVER)
        return true;
    if (extra == NULL || weir__last_sent_watch(channel) < 0)
        return false;
    extra->progress_at = now_of(channel);
    /* The first sample always counts as progress: earlier values are unknown. */
    extra->unacknowledged = channel->transport->unacknowledged != NULL ? INT64_MAX : 0;
    return start_timer(channel, weir__closing_poll_ns(channel, timeout_ns));
}

/* If close_timeout_ns is off, close_send_timeout_ns may still apply. */
bool weir__closing_start_linger_timeout(weir_channel *channel)
{
    const weir_channel_options *options = weir__channel_options(channel);
    int64_t timeout_ns = options->close_timeout_ns;
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (timeout_ns == WEIR_NEVER && channel->transport->unacknowledged != NULL)
        timeout_ns = weir__closing_poll_ns(channel, options->close_send_timeout_ns);
    if (timeout_ns == WEIR_NEVER)
        return true;
    if (extra == NULL)
        return false;
    extra->progress_at = now_of(channel);
    extra->unacknowledged = 0;
    return start_timer(channel, timeout_ns);
}
