/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel with a handler that takes notes.
 */
#include "support/transport/datagram_endpoint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/transport.h>

#include "support/channel/pointer_state.h"
#include "support/channel/test_channel.h"
#include "support/executor/group.h"
#include "support/loop/sockets.h"

/* ---- the handler ---- */

/* The last that touches the mailbox: a note is in the event log before it is counted. */
static void deinit(void *state)
{
    call_counter_add(&(*(struct mailbox **)state)->gone);
}

struct mailbox *mailbox_of(weir_ctx *ctx)
{
    return *(struct mailbox **)weir_ctx_state(ctx);
}

void mailbox_note(struct mailbox *box, const char *note)
{
    event_log_write(&box->events, "%s", note);
    call_counter_add(&box->notes);
}

static void on_active(weir_ctx *ctx)
{
    mailbox_note(mailbox_of(ctx), "active");
}

static void on_inactive(weir_ctx *ctx)
{
    mailbox_note(mailbox_of(ctx), "inactive");
}

static void on_unregistered(weir_ctx *ctx)
{
    mailbox_note(mailbox_of(ctx), "unregistered");
}

static void note_read(struct mailbox *box, weir_datagram *datagram)
{
    const weir_buf *buf = weir_datagram_buf(datagram);

    box->sender = *weir_datagram_sender(datagram);
    event_log_write(&box->events, "read(%.*s)", (int)weir_buf_readable(buf),
                    (const char *)weir_buf_bytes(buf));
    weir_datagram_release(datagram);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct mailbox *box = mailbox_of(ctx);
    void (*hook)(weir_ctx *, weir_datagram *) = box->on_read; /* copied: see line.c */

    if (hook != NULL)
        hook(ctx, weir_datagram_of(msg));
    else
        note_read(box, weir_datagram_of(msg));
    call_counter_add(&box->notes);
}

static void on_read_complete(weir_ctx *ctx)
{
    struct mailbox *box = mailbox_of(ctx);
    void (*hook)(weir_ctx *) = box->on_read_complete;

    call_counter_add(&box->completes);
    if (hook != NULL)
        hook(ctx);
}

static void on_writability(weir_ctx *ctx)
{
    mailbox_note(mailbox_of(ctx), weir_ctx_is_writable(ctx) ? "writable" : "unwritable");
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct mailbox *box = mailbox_of(ctx);

    event_log_write(&box->events, "error(%s)", weir_error_name(err));
    call_counter_add(&box->notes);
    weir_fire_error(ctx, err, detail);
}

static const weir_handler handler = {
    .name = "mailbox",
    .state_size = sizeof(struct mailbox *),
    .init = pointer_keep,
    .deinit = deinit,
    .unregistered = on_unregistered,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
    .error = on_error,
};

/* ---- promises ---- */

weir_promise *mailbox_promise(struct mailbox *box)
{
    weir_promise *promise;

    assert_int_equal(weir_promise_create(weir_channel_executor(box->channel), &promise), 0);
    return promise;
}

int mailbox_result(weir_promise *promise)
{
    int result;

    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    result = weir_promise_result(promise);
    weir_promise_release(promise);
    return result;
}

int mailbox_do(struct mailbox *box, mailbox_operation *operation)
{
    weir_promise *promise = mailbox_promise(box);

    operation(box->channel, promise);
    return mailbox_result(promise);
}

/* ---- life ---- */

void mailbox_take(struct mailbox *box, struct host *host, weir_channel *channel)
{
    memset(box, 0, sizeof(*box));
    event_log_open(&box->events);
    box->channel = channel;
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(box->channel), &handler, box), 0);
    weir_group_register(host->group, box->channel, NULL);
}

void mailbox_make(struct mailbox *box, struct host *host, const weir_channel_options *options)
{
    weir_channel *channel;

    assert_int_equal(weir_udp_create(options, &channel), 0);
    mailbox_take(box, host, channel);
}

void mailbox_make_unix(struct mailbox *box, struct host *host, const weir_channel_options *options)
{
    weir_channel *channel;

    assert_int_equal(weir_unix_create(WEIR_KIND_DATAGRAM, options, &channel), 0);
    mailbox_take(box, host, channel);
}

int mailbox_bind(struct mailbox *box, const char *address)
{
    weir_promise *bound = mailbox_promise(box);
    weir_address local;
    int err;

    assert_int_equal(weir_address_parse(address, &local), 0);
    weir_channel_bind(box->channel, &local, bound);
    err = mailbox_result(bound);
    if (err == 0)
        err = weir_channel_local_address(box->channel, &box->address);
    return err;
}

void mailbox_open(struct mailbox *box, struct host *host, const weir_channel_options *options)
{
    mailbox_make(box, host, options);
    assert_int_equal(mailbox_bind(box, own_loopback_text()), 0);
    assert_mail(box, "active");
}

void mailbox_open_unix(struct mailbox *box, struct host *host, const weir_channel_options *options)
{
    static _Atomic unsigned boxes;
    char name[WEIR_ADDRESS_TEXT_SIZE];

    (void)snprintf(name, sizeof(name), "unix:@weir-mailbox-%d-%u", (int)getpid(), boxes++);
    mailbox_make_unix(box, host, options);
    assert_int_equal(mailbox_bind(box, name), 0);
    assert_mail(box, "active");
}

int mailbox_connect(struct mailbox *box, const weir_address *peer)
{
    weir_promise *connected = mailbox_promise(box);
    int err;

    weir_channel_connect(box->channel, peer, NULL, connected);
    err = mailbox_result(connected);
    if (err == 0)
        err = weir_channel_local_address(box->channel, &box->address);
    return err;
}

void mailbox_close(struct mailbox *box)
{
    weir_channel_abort(box->channel, NULL);
    assert_true(call_counter_await(&box->gone, 1));
    weir_channel_release(box->channel);
    event_log_close(&box->events);
}

/* ---- mail ---- */

weir_msg *letter(const char *text, const weir_address *recipient)
{
    weir_datagram *datagram;

    assert_int_equal(weir_datagram_create(text_msg(text), recipient, &datagram), 0);
    return weir_datagram_msg(datagram);
}

int mailbox_write(struct mailbox *box, weir_msg *msg)
{
    weir_promise *written = mailbox_promise(box);

    weir_channel_write_and_flush(box->channel, msg, written);
    return mailbox_result(written);
}

int mailbox_post(struct mailbox *box, const char *text, const weir_address *recipient)
{
    return mailbox_write(box, letter(text, recipient));
}
