/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A UDP or Unix datagram channel on a host, and a log of its events.
 *
 *     struct datagram_endpoint here, there;
 *     endpoint_open(&here, host, NULL);              bound to a port of its own
 *     endpoint_open(&there, host, NULL);
 *     assert_int_equal(endpoint_send(&here, "x", &there.address), 0);
 *     assert_endpoint_events(&there, "read(x)");
 *     endpoint_close(&here);
 *     endpoint_close(&there);
 *
 * Handlers and their hooks run on the loop: they must not assert. A endpoint must not move.
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
    weir_address address;    /* once it is bound or connected */
    struct event_log events; /* "active", "read(text)", "error(NAME)", ... */
    struct call_counter notes;
    struct call_counter completes; /* read_complete events */
    struct call_counter gone;      /* its handler was removed */
    weir_address sender; /* of the last that was noted: look after assert_endpoint_events */
    void *_Atomic user_data;

    void (*_Atomic on_read)(weir_ctx *ctx,
                            weir_datagram *datagram); /* instead of logging; takes it */
    void (*_Atomic on_read_complete)(weir_ctx *ctx);
};

/* Registers a channel; binds it to an address; or does both, with any port. */
void endpoint_init(struct datagram_endpoint *endpoint, struct host *host,
                   const weir_channel_options *options);
int endpoint_bind(struct datagram_endpoint *endpoint, const char *address);
void endpoint_open(struct datagram_endpoint *endpoint, struct host *host,
                   const weir_channel_options *options);
void endpoint_close(struct datagram_endpoint *endpoint);

/* For a channel that is not registered yet; takes it. */
void endpoint_adopt(struct datagram_endpoint *endpoint, struct host *host, weir_channel *channel);

/* The same for Unix datagrams, bound to a unique name. */
void endpoint_init_unix(struct datagram_endpoint *endpoint, struct host *host,
                        const weir_channel_options *options);
void endpoint_open_unix(struct datagram_endpoint *endpoint, struct host *host,
                        const weir_channel_options *options);

/* Connects, and reads the local address. */
int endpoint_connect(struct datagram_endpoint *endpoint, const weir_address *peer);

/* The endpoint of a context's handler; writes a note, on any thread. */
struct datagram_endpoint *endpoint_of(weir_ctx *ctx);
void endpoint_note(struct datagram_endpoint *endpoint, const char *note);

/* Creates a datagram; writes one, or any message, and waits for the result. */
weir_msg *make_datagram(const char *text, const weir_address *recipient);
int endpoint_send(struct datagram_endpoint *endpoint, const char *text,
                  const weir_address *recipient);
int endpoint_write(struct datagram_endpoint *endpoint, weir_msg *msg);

/* A promise of the box's loop; its result, which is waited for: releases the promise. */
weir_promise *endpoint_promise(struct datagram_endpoint *endpoint);
int endpoint_result(weir_promise *promise);

/* Calls an operation, such as a close, and waits for its result. */
typedef void endpoint_operation(weir_channel *channel, weir_promise *done);
int endpoint_do(struct datagram_endpoint *endpoint, endpoint_operation *operation);

/* Waits for the last of these words; then compares the whole log, and clears it. */
#define assert_endpoint_events(endpoint, words)                                              \
    do {                                                                                     \
        char said_[EVENT_LOG_SIZE];                                                          \
        assert_string_equal(                                                                 \
            events_await_all(&(endpoint)->events, &(endpoint)->notes, words, said_), words); \
    } while (0)

#endif
