/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A UDP channel on a host, or one of Unix datagrams, and what it hears.
 *
 *     struct datagram_endpoint here, there;
 *     endpoint_open(&here, host, NULL);              bound to a port of its own
 *     endpoint_open(&there, host, NULL);
 *     assert_int_equal(endpoint_send(&here, "x", &there.address), 0);
 *     assert_endpoint_events(&there, "read(x)");
 *     endpoint_close(&here);
 *     endpoint_close(&there);
 *
 * Handlers and their hooks run on the loop: they do not assert. A endpoint must not move.
 */
#ifndef WEIR_TEST_DATAGRAM_ENDPOINT_H
#define WEIR_TEST_DATAGRAM_ENDPOINT_H

#include <weir/channel.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "support/channel/event_wait.h"
#include "support/loop/host.h"

struct datagram_endpoint {
    weir_channel *channel;
    weir_address address;    /* its own, once it is bound or connected */
    struct event_log events; /* "active", "read(text)", "error(NAME)", ... */
    struct call_counter notes;
    struct call_counter completes; /* reads that were complete */
    struct call_counter gone;      /* its handler */
    weir_address sender; /* of the last that was noted: look after assert_endpoint_events */
    void *_Atomic user_data;

    void (*_Atomic on_read)(weir_ctx *ctx, weir_datagram *datagram); /* instead; takes it */
    void (*_Atomic on_read_complete)(weir_ctx *ctx);
};

/* Only registered; or bound to an address in words as well, or to any port. */
void endpoint_init(struct datagram_endpoint *endpoint, struct host *host,
                   const weir_channel_options *options);
int endpoint_bind(struct datagram_endpoint *endpoint, const char *address);
void endpoint_open(struct datagram_endpoint *endpoint, struct host *host,
                   const weir_channel_options *options);
void endpoint_close(struct datagram_endpoint *endpoint);

/* Of a channel that is not registered yet, behind the handlers that it has; takes it. */
void endpoint_adopt(struct datagram_endpoint *endpoint, struct host *host, weir_channel *channel);

/* The same for Unix datagrams, bound to a name that nobody has. */
void endpoint_init_unix(struct datagram_endpoint *endpoint, struct host *host,
                        const weir_channel_options *options);
void endpoint_open_unix(struct datagram_endpoint *endpoint, struct host *host,
                        const weir_channel_options *options);

/* Connects, and finds out the address. */
int endpoint_connect(struct datagram_endpoint *endpoint, const weir_address *peer);

/* The endpoint of a context's handler; writes a note, on any thread. */
struct datagram_endpoint *endpoint_of(weir_ctx *ctx);
void endpoint_note(struct datagram_endpoint *endpoint, const char *note);

/* A datagram of a text; writes one, or any other message, and returns what became of it. */
weir_msg *make_datagram(const char *text, const weir_address *recipient);
int endpoint_send(struct datagram_endpoint *endpoint, const char *text,
                  const weir_address *recipient);
int endpoint_write(struct datagram_endpoint *endpoint, weir_msg *msg);

/* A promise of the box's loop; its result, which is waited for: releases the promise. */
weir_promise *endpoint_promise(struct datagram_endpoint *endpoint);
int endpoint_result(weir_promise *promise);

/* Closes, or whatever the operation is, and returns its result. */
typedef void endpoint_operation(weir_channel *channel, weir_promise *done);
int endpoint_do(struct datagram_endpoint *endpoint, endpoint_operation *operation);

/* Waits for the last of these words; then they are all, and are forgotten. */
#define assert_endpoint_events(endpoint, words)                                              \
    do {                                                                                     \
        char said_[EVENT_LOG_SIZE];                                                          \
        assert_string_equal(                                                                 \
            events_await_all(&(endpoint)->events, &(endpoint)->notes, words, said_), words); \
    } while (0)

#endif
