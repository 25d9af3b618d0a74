/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel on a stepper, with a fake transport (a wire). The test plays the peer and the kernel:
 * it decides how many bytes the wire takes, which calls fail and when a detach finishes. Calls to
 * the wire are in the event log in capitals.
 *
 *     struct test_channel tc;
 *     tc_open(&tc);                         created, not registered
 *     tc_add(&tc, "a");                     an event recorder
 *     tc_start(&tc);                        registered, and active unless .idle
 *     assert_events(&tc.events, "ATTACH a.added a.registered a.active READ");
 *     tc_close(&tc);                        aborted, and everything freed
 */
#ifndef WEIR_TEST_TEST_CHANNEL_H
#define WEIR_TEST_TEST_CHANNEL_H

#include <weir/buf.h>

#include "channel/channel.h"
#include "support/channel/event_log.h"
#include "support/channel/event_recorder.h"
#include "support/executor/stepper.h"

/* All zero: a connected wire that takes all bytes and never fails. */
struct wire_options {
    bool idle;    /* not active until it is connected or bound */
    bool accepts; /* a listener */
    bool can_disconnect;
    bool connectionless;
    bool no_linger;  /* the transport has no half closure */
    bool slow_close; /* close and detach finish with tc_finish_detach */
    int attach_err;  /* the results of the slots */
    int bind_err;
    int connect_err;
    int admit_err;
    int shut_err;
    bool acknowledges; /* the peer acknowledges what it is sent: wire.unacknowledged */
    bool silent;       /* logs nothing */
};

struct wire {
    weir_channel channel; /* first */
    struct event_log *events;
    struct wire_options options;
    bool is_active;
    bool is_attached;
    bool reads;
    bool reads_once;
    bool waits_for_room;
    bool lends;       /* a flush lends the messages until tc_end_send */
    const void *lent; /* the first byte of what is lent */
    int64_t room;     /* bytes that it still takes; -1 = unlimited */
    int budget;       /* sends per flush; 0 = unlimited */
    int flush_err;
    int64_t unacknowledged; /* with the option `acknowledges` */
    size_t vectors_max;     /* per send */
    unsigned address_calls; /* of local_address */
    size_t sent_length;
    char sent[4096];
    void (*on_flush)(struct wire *wire); /* inside the flush, before it sends */
};

struct test_channel {
    struct stepper stepper;
    struct event_log events;
    weir_channel *channel;
    weir_pipeline *pipeline;
    struct wire *wire;
    struct event_recorder listeners[16];
    unsigned listener_count;
};

/* Either of the options may be NULL. A test_channel must stay at its address. */
void tc_open_with(struct test_channel *tc, const struct wire_options *wire,
                  const weir_channel_options *channel);
void tc_open(struct test_channel *tc);
void tc_close(struct test_channel *tc);

/* Adds an event recorder at the end. */
void tc_add(struct test_channel *tc, const char *name);

/* Registers the channel and runs all tasks. */
void tc_start(struct test_channel *tc);

/* Opens, adds an event recorder named "a", starts, and clears the event log. */
void tc_open_started(struct test_channel *tc, const struct wire_options *wire,
                     const weir_channel_options *channel);

/* A promise that logs "name=result" when it completes. The caller releases it. */
weir_promise *tc_promise(struct test_channel *tc, const char *name);

/* Runs all tasks that are due. */
void tc_run(struct test_channel *tc);

/* A message with this text. */
weir_msg *text_msg(const char *text);
/* A message of `size` bytes. */
weir_msg *sized_msg(size_t size);

/* Writes a text, with a promise if `promise_name` is not NULL; releases the promise itself. */
void tc_write(struct test_channel *tc, const char *text, const char *promise_name);

/* The peer sends a text, ends its stream, takes `bytes` more bytes. */
bool tc_receive(struct test_channel *tc, const char *text);
void tc_end_input(struct test_channel *tc);
void tc_make_room(struct test_channel *tc, int64_t bytes);

/* Ends the send of lent messages: `result` is the number of bytes sent, or an error. */
void tc_end_send(struct test_channel *tc, int64_t result);

/* Finishes a slow close or detach. */
void tc_finish_detach(struct test_channel *tc);

/* Exactly these bytes were sent since the last call. */
void assert_sent(struct test_channel *tc, const char *text);

/* Creates a channel on a wire, for tests that need no test_channel around it. */
int wire_create(struct event_log *events, const struct wire_options *options,
                const weir_channel_options *channel_options, weir_channel *parent,
                weir_channel **ret_channel);

#endif
