/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bind, connect and disconnect.
 *
 * A connection attempt is a promise and a timer. A listener handles the cancellation of the
 * promise. It runs on the promise's executor, possibly late, so it has its own allocation.
 */
#include "channel/channel.h"

#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"
#include "channel/channel_stats.h"

struct cancel_watch {
    weir_listener listener;
    weir_channel *channel; /* retained */
};

bool weir__channel_is_connecting(const weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return extra != NULL && extra->is_connecting;
}

/* ---- an attempt ---- */

static void on_promise(weir_promise *promise, void *arg)
{
    struct cancel_watch *cancel_watch = arg;

    if (weir_promise_is_cancelled(promise))
        weir__channel_defer(cancel_watch->channel, WEIR__DEFERRED_ABORT);
    weir_channel_release(cancel_watch->channel);
    weir__free(cancel_watch);
}

static int watch_cancel(weir_channel *channel, weir_promise *done)
{
    struct cancel_watch *cancel_watch = weir__zalloc(sizeof(*cancel_watch));

    if (cancel_watch == NULL)
        return -ENOMEM;
    cancel_watch->channel = weir_channel_retain(channel);
    cancel_watch->listener = (weir_listener){.fn = on_promise, .user_data = cancel_watch};
    weir_promise_listen(done, &cancel_watch->listener);
    return 0;
}

static int begin_attempt(weir_channel *channel, const weir_address *remote, weir_promise *done)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (extra == NULL)
        return -ENOMEM;
    /* Backends read the address until their operation has finished, possibly after the attempt. */
    if (extra->destination == NULL)
        extra->destination = weir__alloc(sizeof(*remote));
    if (extra->destination == NULL)
        return -ENOMEM;
    *extra->destination = *remote;
    if (done != NULL && watch_cancel(channel, done) < 0)
        return -ENOMEM;
    extra->is_connecting = true;
    extra->connecting = done != NULL ? weir_promise_retain(done) : NULL;
    return 0;
}

/* Ends the attempt. Returns its promise, or NULL, to the caller. */
static weir_promise *finish_attempt(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    weir_promise *done = extra->connecting;

    extra->is_connecting = false;
    extra->connecting = NULL;
    (void)weir_timer_stop(&extra->timer);
    return done;
}

static void fail_attempt(weir_channel *channel, int err, const char *detail)
{
    weir_promise *done = finish_attempt(channel);

    weir__stats_count(channel, WEIR__STAT_CONNECTS_FAILED, 1);
    weir__stats_error(channel, err);
    weir__channel_report(channel, done, err, detail);
    weir_promise_release(done);
}

void weir__channel_stop_connecting(weir_channel *channel, int err)
{
    if (weir__channel_is_connecting(channel))
        fail_attempt(channel, err, NULL);
}

static void on_timeout(weir_timer *timer)
{
    weir_channel *channel = WEIR_CONTAINER_OF(timer, weir__channel_extra, timer)->channel;

    fail_attempt(channel, -ETIMEDOUT, "connection attempt timed out");
    weir__channel_begin_closing(channel, -ETIMEDOUT);
}

static int start_timer(weir_channel *channel)
{
    int64_t timeout_ns = weir__channel_options(channel)->connect_timeout_ns;

    if (timeout_ns == WEIR_NEVER)
        return 0;
    return weir_timer_start(weir__channel_executor(channel),
                            &weir__channel_extra_if_any(channel)->timer, timeout_ns, on_timeout);
}

static int check_state(const weir_channel *channel)
{
    if (weir__channel_phase(channel) != WEIR__OPEN)
        return WEIR_ECLOSED;
    if (!weir__channel_is(channel, WEIR__IS_REGISTERED))
        return -ENOTCONN;
    return weir__channel_is_detaching(channel) ? -EBUSY : 0;
}

static int check_connect(const weir_channel *channel, const weir_address *remote)
{
    int err = check_state(channel);

    if (err < 0)
        return err;
    if (remote == NULL || channel->transport->connect == NULL)
        return remote == NULL ? -EINVAL : -ENOTSUP;
    if (weir__channel_is_connecting(channel))
        return -EALREADY;
    return weir__channel_is(channel, WEIR__IS_ACTIVE) && !channel->transport->connectionless
               ? -EISCONN
               : 0;
}

/* A channel whose connection attempt failed is closed. */
void weir__channel_do_connect(weir_channel *channel, const weir_address *remote,
                              const weir_address *local, weir_promise *done)
{
    int err;

    weir__channel_end_batch(channel); /* connectionless: before the recipient changes */
    err = check_connect(channel, remote);
    if (err == 0)
        err = begin_attempt(channel, remote, done);
    if (err < 0) {
        weir__channel_report(channel, done, err, NULL);
        return;
    }
    err = start_timer(channel);
    if (err == 0)
        err = channel->transport->connect(channel, weir__channel_extra_if_any(channel)->destination,
                                          local);
    if (err == 0)
        return;
    fail_attempt(channel, err, NULL);
    weir__channel_begin_closing(channel, err);
}

/*
 * The promise completes before `active` is fired. If a listener closes the channel, or the promise
 * was cancelled, `active` is still fired first.
 */
void weir__channel_connected(weir_channel *channel, int err)
{
    weir__channel_extra *extra;
    weir_promise *done;

    if (!weir__channel_is_connecting(channel))
        return;
    if (err < 0) {
        fail_attempt(channel, err, NULL);
        weir__channel_begin_closing(channel, err);
        return;
    }
    weir__channel_do_inactive(channel); /* of a disconnect, if the mailbox has not fired it yet */
    if (!weir__channel_is_connecting(channel))
        return; /* a handler has closed the channel */
    done = finish_attempt(channel);
    extra = weir__channel_extra_if_any(channel);
    weir__free(extra->destination);
    extra->destination = NULL;
    weir__stats_count(channel, WEIR__STAT_CONNECTED, 1);
    weir__channel_set_state(channel, WEIR__IS_ACTIVE, 0);
    weir__channel_report(channel, done, 0, NULL);
    weir_promise_release(done);
    weir__channel_do_active(channel);
}

/* ---- binding ---- */

static bool is_active_when_bound(const weir_channel *channel)
{
    return channel->transport->accepts || channel->transport->connectionless;
}

/* If bind makes the channel active, `active` is fired by the mailbox. */
void weir__channel_do_bind(weir_channel *channel, const weir_address *local, weir_promise *done)
{
    int err = check_state(channel);

    if (err == 0 && local == NULL)
        err = -EINVAL;
    if (err == 0 && channel->transport->bind == NULL)
        err = -ENOTSUP;
    if (err == 0 && is_active_when_bound(channel) && weir__channel_is(channel, WEIR__IS_ACTIVE))
        err = -EALREADY;
    if (err < 0) {
        weir__channel_report(channel, done, err, NULL);
        return;
    }
    if (done != NULL && !weir_promise_set_uncancellable(done))
        return;
    err = channel->transport->bind(channel, local);
    if (err < 0) {
        weir__stats_error(channel, err);
        weir__channel_report(channel, done, err, NULL);
        weir__channel_begin_closing(channel, err);
        return;
    }
    if (is_active_when_bound(channel)) {
        weir__channel_set_state(channel, WEIR__IS_ACTIVE, 0);
        weir__channel_defer(channel, WEIR__DEFERRED_ACTIVE);
    }
    weir__channel_report(channel, done, 0, NULL);
}

void weir__channel_do_disconnect(weir_channel *channel, weir_promise *done)
{
    int err;

    weir__channel_end_batch(channel);
    err = check_state(channel);
    if (err == 0 && done != NULL && !weir_promise_set_uncancellable(done))
        return;
    if (err == 0)
        err = channel->transport->disconnect(channel);
    if (err == 0 && weir__channel_is(channel, WEIR__IS_ACTIVE) &&
        !channel->transport->is_active(channel)) {
        weir__channel_set_state(channel, 0, WEIR__IS_ACTIVE);
        weir__channel_update_reading(channel);
        weir__channel_defer(channel, WEIR__DEFERRED_CHECK);
    }
    weir__channel_report(channel, done, err, NULL);
}
