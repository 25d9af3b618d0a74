/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/event_mail.h"

#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"
#include "channel/channel.h"
#include "channel/node_pool.h"

_Static_assert(sizeof(weir__event_mail) <= WEIR__NODE_SIZE, "an event is a node");
_Static_assert((WEIR__EVENT_FLAGS & ~WEIR__MAILBOX_FLAGS) == 0, "the slots are flags of mailboxes");

/* ---- bytes ---- */

static int64_t low_mark(const weir_channel *channel)
{
    return atomic_load_explicit(&weir__channel_config(channel)->low_mark, memory_order_relaxed);
}

bool weir__channel_may_read(const weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return atomic_load_explicit(&extra->under_way, memory_order_relaxed) < low_mark(channel);
}

static int count(weir_channel *channel, const weir__event_mail *mail)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int64_t before;

    if (mail->slot == WEIR__WRITE)
        return weir__outbound_reserve(channel, mail->bytes);
    if (mail->slot != WEIR__READ)
        return 0;
    before = atomic_fetch_add_explicit(&extra->under_way, mail->bytes, memory_order_relaxed);
    if (weir__channel_in_loop(channel) &&
        before + mail->bytes > weir__channel_options(channel)->high_mark) {
        channel->flags |= WEIR__INPUT_THROTTLED;
        weir__channel_update_reading(channel);
    }
    return 0;
}

/* The thread that crosses the low mark wakes the loop, which may have paused reading. */
static void uncount_read(const weir__event_mail *mail, weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int64_t low = low_mark(channel), before;

    before = atomic_fetch_sub_explicit(&extra->under_way, mail->bytes, memory_order_relaxed);
    if (before >= low && before - mail->bytes < low)
        weir__channel_defer(channel, WEIR__DEFERRED_READING);
}

/* ---- mails ---- */

/* Copies what is only lent: the detail of an error, the addresses of a bind or connect. */
static int copy_extra(const weir__event *event, void **ret_extra)
{
    weir_address *addresses;

    *ret_extra = NULL;
    if (event->detail != NULL) {
        *ret_extra = weir__strdup(event->detail);
    } else if ((event->slot & (WEIR__BIND | WEIR__CONNECT)) != 0) {
        *ret_extra = addresses = weir__zalloc(2 * sizeof(*addresses));
        if (addresses != NULL && event->remote != NULL)
            addresses[0] = *event->remote;
        if (addresses != NULL && event->local != NULL)
            addresses[1] = *event->local;
    } else {
        return 0;
    }
    return *ret_extra != NULL ? 0 : -ENOMEM;
}

static int fill(weir__event_mail *mail, weir_channel *channel, const weir__event *event)
{
    int err;

    mail->slot = event->slot;
    mail->err = event->err;
    mail->msg = event->msg;
    mail->bytes = event->msg != NULL ? weir__outbound_cost(event->msg) : 0;
    err = copy_extra(event, &mail->extra);
    if (err == 0)
        err = count(channel, mail);
    if (err < 0) {
        weir__free(mail->extra);
        return err;
    }
    mail->done = event->done != NULL ? weir_promise_retain(event->done) : NULL;
    return 0;
}

static void lose(weir_channel *channel, const weir__event *event, int err)
{
    weir_msg_release(event->msg);
    if (event->slot == WEIR__WRITE)
        weir__channel_fail_posted_write(channel, event->done, err);
    else
        weir__channel_fail_posted(channel, event->done, err);
    if (err == -ENOMEM)
        weir__channel_defer(channel, WEIR__DEFERRED_ABORT);
}

weir__event_mail *weir__event_mail_create(weir_channel *channel, const weir__event *event,
                                          weir__mail_fn *fn)
{
    weir__event_mail *mail = weir__node_alloc();
    int err = mail != NULL ? fill(mail, channel, event) : -ENOMEM;

    if (err < 0) {
        if (mail != NULL)
            weir__node_free(mail);
        lose(channel, event, err);
        return NULL;
    }
    mail->mail.fn = fn;
    return mail;
}

void weir__event_mail_open(weir__mail *mail, weir_channel *channel, weir__event_mail *ret_mail)
{
    weir__event_mail *posted = WEIR_CONTAINER_OF(mail, weir__event_mail, mail);

    *ret_mail = *posted;
    weir__node_free(posted);
    if (ret_mail->slot == WEIR__WRITE)
        weir__outbound_cancel_reserve(channel, ret_mail->bytes);
}

weir__event weir__event_mail_event(const weir__event_mail *mail)
{
    weir__event event = {
        .slot = mail->slot, .err = mail->err, .msg = mail->msg, .done = mail->done};
    const weir_address *addresses;

    if (mail->slot == WEIR__ERROR) {
        event.detail = mail->extra;
    } else if (mail->extra != NULL) {
        addresses = mail->extra;
        event.remote = &addresses[0];
        event.local = addresses[1].length > 0 ? &addresses[1] : NULL;
    }
    return event;
}

void weir__event_mail_close(const weir__event_mail *mail, weir_channel *channel)
{
    if (mail->slot == WEIR__READ)
        uncount_read(mail, channel);
    weir_promise_release(mail->done);
    weir__free(mail->extra);
}
