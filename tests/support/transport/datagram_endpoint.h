/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A UDP channel on a host, or one of Unix datagrams, and what it hears.
 *
 *     struct mailbox here, there;
 *     mailbox_open(&here, host, NULL);              bound to a port of its own
 *     mailbox_open(&there, host, NULL);
 *     assert_int_equal(mailbox_post(&here, "x", &there.address), 0);
 *     assert_mail(&there, "read(x)");
 *     mailbox_close(&here);
 *     mailbox_close(&there);
 *
 * Handlers and their hooks run on the loop: they do not assert. A mailbox must not move.
 */
#ifndef WEIR_TEST_DATAGRAM_ENDPOINT_H
#define WEIR_TEST_DATAGRAM_ENDPOINT_H

#include <weir/channel.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "support/channel/event_wait.h"
#include "support/loop/host.h"

struct mailbox {
    weir_channel *channel;
    weir_address address;    /* its own, once it is bound or connected */
    struct event_log events; /* "active", "read(text)", "error(NAME)", ... */
    struct call_counter notes;
    struct call_counter completes; /* reads that were complete */
    struct call_counter gone;      /* its handler */
    weir_address sender;           /* of the last that was noted: look after assert_mail */
    void *_Atomic user_data;

    void (*_Atomic on_read)(weir_ctx *ctx, weir_datagram *datagram); /* instead; takes it */
    void (*_Atomic on_read_complete)(weir_ctx *ctx);
};

/* Only registered; or bound to an address in words as well, or to any port. */
void mailbox_make(struct mailbox *box, struct host *host, const weir_channel_options *options);
int mailbox_bind(struct mailbox *box, const char *address);
void mailbox_open(struct mailbox *box, struct host *host, const weir_channel_options *options);
void mailbox_close(struct mailbox *box);

/* Of a channel that is not registered yet, behind the handlers that it has; takes it. */
void mailbox_take(struct mailbox *box, struct host *host, weir_channel *channel);

/* The same for Unix datagrams, bound to a name that nobody has. */
void mailbox_make_unix(struct mailbox *box, struct host *host, const weir_channel_options *options);
void mailbox_open_unix(struct mailbox *box, struct host *host, const weir_channel_options *options);

/* Connects, and finds out the address. */
int mailbox_connect(struct mailbox *box, const weir_address *peer);

/* The mailbox of a context's handler; writes a note, on any thread. */
struct mailbox *mailbox_of(weir_ctx *ctx);
void mailbox_note(struct mailbox *box, const char *note);

/* A datagram of a text; writes one, or any other message, and returns what became of it. */
weir_msg *letter(const char *text, const weir_address *recipient);
int mailbox_post(struct mailbox *box, const char *text, const weir_address *recipient);
int mailbox_write(struct mailbox *box, weir_msg *msg);

/* A promise of the box's loop; its result, which is waited for: releases the promise. */
weir_promise *mailbox_promise(struct mailbox *box);
int mailbox_result(weir_promise *promise);

/* Closes, or whatever the operation is, and returns its result. */
typedef void mailbox_operation(weir_channel *channel, weir_promise *done);
int mailbox_do(struct mailbox *box, mailbox_operation *operation);

/* Waits for the last of these words; then they are all, and are forgotten. */
#define assert_mail(box, words)                                                                    \
    do {                                                                                           \
        char said_[EVENT_LOG_SIZE];                                                                \
        assert_string_equal(events_await_all(&(box)->events, &(box)->notes, words, said_), words); \
    } while (0)

#endif
