/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel group with wires as its members, on executors that the test chooses.
 *
 *     struct group_fixture fixture;
 *     group_fixture_open(&fixture, NULL);
 *     group_fixture_add(&fixture, stepper.executor, NULL, NULL);
 *     weir_channel_group_write_and_flush(fixture.group, text_msg("x"), NULL, NULL, NULL);
 *     (void)stepper_run(&stepper);
 *     assert_wire(&fixture, 0, "x");
 *     group_fixture_close(&fixture, &stepper);
 */
#ifndef WEIR_TEST_GROUP_FIXTURE_H
#define WEIR_TEST_GROUP_FIXTURE_H

#include <weir/channel_group.h>

#include "support/channel/test_channel.h"

#define GROUP_FIXTURE_MAX 64

struct group_fixture {
    struct event_log events;
    weir_channel_group *group;
    weir_channel *members[GROUP_FIXTURE_MAX]; /* retained, also after they left the group */
    size_t count;
};

void group_fixture_open(struct group_fixture *fixture, const weir_channel_group_options *options);

/* Aborts all members and releases the group. `stepper` may be NULL. */
void group_fixture_close(struct group_fixture *fixture, struct stepper *stepper);

/* Creates a silent wire, registers it on `executor` and adds it to the group. */
weir_channel *group_fixture_add(struct group_fixture *fixture, weir_executor *executor,
                                const struct wire_options *wire,
                                const weir_channel_options *channel);

/* The bytes that a member sent since the last call. Its loop must be idle. */
#define assert_wire(fixture, index, text)                        \
    do {                                                         \
        struct wire *wire_ = group_fixture_wire(fixture, index); \
        wire_->sent[wire_->sent_length] = '\0';                  \
        assert_string_equal(wire_->sent, text);                  \
        wire_->sent_length = 0;                                  \
    } while (0)

struct wire *group_fixture_wire(struct group_fixture *fixture, size_t index);

#endif
