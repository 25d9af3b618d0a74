/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel group and wires that are in it, on executors of the test's choice.
 *
 *     struct room room;
 *     room_open(&room, NULL);
 *     room_admit(&room, stepper.executor, NULL);      a wire that joins
 *     weir_channel_group_write_and_flush(room.group, text_msg("x"), NULL, NULL, NULL);
 *     room_run(&room, ...);
 *     assert_wire(&room, 0, "x");
 *     room_close(&room);
 */
#ifndef WEIR_TEST_CHANNEL_ROOM_H
#define WEIR_TEST_CHANNEL_ROOM_H

#include <weir/channel_group.h>

#include "support/channel/test_channel.h"

#define ROOM_MAX 64

struct room {
    struct diary diary;
    weir_channel_group *group;
    weir_channel *members[ROOM_MAX]; /* kept, also when they have left */
    size_t count;
};

void room_open(struct room *room, const weir_channel_group_options *options);

/* Everybody is aborted, and the group given back. Executors that the test steps are stepped. */
void room_close(struct room *room, struct stepper *stepper);

/* Makes a wire on that executor, silent; waits until it is registered, and has joined. */
weir_channel *room_admit(struct room *room, weir_executor *executor,
                         const struct wire_options *wire, const weir_channel_options *channel);

/* What a member's wire has sent since the last look; its loop has nothing to do meanwhile. */
#define assert_wire(room, index, text)               \
    do {                                             \
        struct wire *wire_ = room_wire(room, index); \
        wire_->sent[wire_->sent_length] = '\0';      \
        assert_string_equal(wire_->sent, text);      \
        wire_->sent_length = 0;                      \
    } while (0)

struct wire *room_wire(struct room *room, size_t index);

#endif
