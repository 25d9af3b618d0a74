/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel on a stepper, whose transport is a wire: the test is the peer and the kernel, and says
 * how much the wire takes, what fails, and when it lets go. What the wire is asked stands in the
 * diary in capitals.
 *
 *     struct rig rig;
 *     rig_open(&rig, NULL);                   made, not registered
 *     rig_add(&rig, "a");                     a spy
 *     rig_start(&rig);                        registered; active, unless .idle
 *     assert_diary(&rig.diary, "ATTACH a.added a.registered a.active READ");
 *     rig_close(&rig);                        aborted, and everything gone
 */
#ifndef WEIR_TEST_TEST_CHANNEL_H
#define WEIR_TEST_TEST_CHANNEL_H

#include <weir/buf.h>

#include "channel/channel.h"
#include "support/channel/event_log.h"
#include "support/channel/event_recorder.h"
#include "support/executor/stepper.h"

/* Zero is a wire that is connected, takes everything, and never fails. */
struct wire_options {
    bool idle;    /* not active until it is connected or bound */
    bool accepts; /* a listener */
    bool can_disconnect;
    bool no_linger;  /* has no half closure */
    bool slow_close; /* close and detach end with rig_let_go */
    int attach_err;  /* what the slots return */
    int bind_err;
    int connect_err;
    int admit_err;
    int shut_err;
    bool acknowledges; /* the peer acknowledges what it is sent: wire.unacknowledged */
    bool silent;       /* writes nothing into the diary */
};

struct wire {
    weir_channel channel; /* first */
    struct diary *diary;
    struct wire_options options;
    bool is_active;
    bool is_attached;
    bool reads;
    bool reads_once;
    bool waits_for_room;
    int64_t room; /* bytes that it takes, -1 = any number */
    int budget;   /* sends of one flush, 0 = any number */
    int flush_err;
    int64_t unacknowledged; /* what the transport says, if it has the option `acknowledges` */
    size_t vectors_max;     /* of one send */
    unsigned address_calls; /* for the local one */
    size_t sent_length;
    char sent[4096];
    void (*on_flush)(struct wire *wire); /* inside the flush, before it sends */
};

struct rig {
    struct stepper stepper;
    struct diary diary;
    weir_channel *channel;
    weir_pipeline *pipeline;
    struct wire *wire;
    struct spy listeners[16];
    unsigned listener_count;
};

/* Any of the options may be NULL. The rig must not move. */
void rig_open_with(struct rig *rig, const struct wire_options *wire,
                   const weir_channel_options *channel);
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);

/* Adds a spy at the end. */
void rig_add(struct rig *rig, const char *name);

/* Registers, and runs what there is to run. */
void rig_start(struct rig *rig);

/* All of it: open, add a spy named "a", start, and forget what was written so far. */
void rig_open_started(struct rig *rig, const struct wire_options *wire,
                      const weir_channel_options *channel);

/* A promise whose end is written into the diary under that name; released with rig_drop. */
weir_promise *rig_promise(struct rig *rig, const char *name);

/* Runs what there is to run. */
void rig_run(struct rig *rig);

/* A message with this text. */
weir_msg *text_msg(const char *text);
/* One of so many bytes. */
weir_msg *sized_msg(size_t size);

/* Writes a text; the promise, if there is a name, is not the test's to release. */
void rig_write(struct rig *rig, const char *text, const char *promise_name);

/* The peer: has sent this; has ended its stream; takes so many bytes more. */
bool rig_receive(struct rig *rig, const char *text);
void rig_end_input(struct rig *rig);
void rig_make_room(struct rig *rig, int64_t bytes);

/* What a slow close or detach waits for. */
void rig_let_go(struct rig *rig);

/* These bytes have been sent since the last look. */
void assert_sent(struct rig *rig, const char *text);

/* The transport of a wire with these options: for channels that the test makes itself. */
int wire_create(struct diary *diary, const struct wire_options *options,
                const weir_channel_options *channel_options, weir_channel *parent,
                weir_channel **ret_channel);

#endif
