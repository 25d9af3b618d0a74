/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two connected in-process channels, on one stepper or on two, and a log of their events.
 *
 *     struct pair pair;
 *     pair_open(&pair, NULL);                       a listener; a client that is registered
 *     pair_connect(&pair);                          and now connected
 *     assert_events(&pair.events, "server.active connect=ok client.active");
 *     pair_send(&pair.client, "x", NULL);
 *     pair_run(&pair);
 *     assert_events(&pair.events, "server.read(x)");
 *     pair_close(&pair);
 *
 * The server is the accepted channel.
 */
#ifndef WEIR_TEST_PAIR_H
#define WEIR_TEST_PAIR_H

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/pipeline.h>

#include "support/channel/event_log.h"
#include "support/channel/event_recorder.h"
#include "support/executor/stepper.h"

struct pair;

struct pair_end {
    struct pair *pair;
    char name[16];
    weir_channel *channel;
    void (*on_read)(weir_ctx *ctx, weir_msg *msg); /* after it was noted; takes msg */
    void (*on_active)(weir_ctx *ctx);
};

struct pair_options {
    bool apart;   /* the server has a stepper of its own */
    bool refuses; /* what is accepted is not registered */
    const weir_channel_options *listener;
    const weir_channel_options *server;
    const weir_channel_options *client;
};

struct pair {
    struct pair_options options;
    struct stepper near; /* the client's */
    struct stepper far;  /* the listener's and the server's, if they are apart */
    struct event_log events;
    weir_address address; /* the listener's: "inproc:pair" and a number */
    weir_channel *listener;
    struct pair_end client;
    struct pair_end server;
    struct event_recorder listeners[16];
    unsigned listener_count;
};

/* The pair must not move. */
void pair_open(struct pair *pair, const struct pair_options *options);

/* A test for both ends on one executor, and for each on its own. */
extern const struct pair_options pair_together;
extern const struct pair_options pair_apart;
void pair_for_both(void (*test)(const struct pair_options *options));

/* An address in words, which are right. */
weir_address pair_address(const char *text);

/* Aborts what is open; everything is gone. */
void pair_close(struct pair *pair);

/* Asks the client to connect; "connect=..." will be written. */
void pair_call(struct pair *pair);

/* Does so, runs, and forgets what was written. */
void pair_connect(struct pair *pair);

/* All of it. */
void pair_open_connected(struct pair *pair, const struct pair_options *options);

/* Runs both until nothing is left to run. */
void pair_run(struct pair *pair);

/* A promise whose end is written into the event log under that name; the caller releases it. */
weir_promise *pair_promise(struct pair *pair, const char *name);

/* Writes a text, and flushes or not; the promise, if there is a name, is not the test's. */
void pair_write(struct pair_end *end, const char *text, const char *promise_name);
void pair_send(struct pair_end *end, const char *text, const char *promise_name);

/* Writes `size` bytes, and flushes. */
void pair_send_bytes(struct pair_end *end, size_t size);

/* Closes it, and runs. */
void pair_close_end(struct pair_end *end);

/* Closes and releases any channel of a stepper. */
void pair_end_channel(struct stepper *stepper, weir_channel *channel);

#endif
