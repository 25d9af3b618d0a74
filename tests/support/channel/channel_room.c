/* SPDX-License-Identifier: Apache-2.0 */
#include "support/channel/channel_room.h"

#include <string.h>

#include "support/executor/group.h"

void room_open(struct room *room, const weir_channel_group_options *options)
{
    memset(room, 0, sizeof(*room));
    diary_open(&room->diary);
    assert_int_equal(weir_channel_group_create(options, &room->group), 0);
}

struct wire *room_wire(struct room *room, size_t index)
{
    return (struct wire *)(void *)room->members[index];
}

weir_channel *room_admit(struct room *room, weir_executor *executor,
                         const struct wire_options *wire, const weir_channel_options *channel)
{
    struct wire_options options = wire != NULL ? *wire : (struct wire_options){0};
    weir_channel *member;
    weir_promise *registered;

    options.silent = true;
    assert_true(room->count < ROOM_MAX);
    assert_int_equal(wire_create(&room->diary, &options, channel, NULL, &member), 0);
    assert_int_equal(weir_promise_create(NULL, &registered), 0);
    weir_channel_register(member, executor, registered);
    assert_int_equal(weir_promise_sync(registered, TEST_TIMEOUT_NS), 0);
    weir_promise_release(registered);
    assert_int_equal(weir_channel_group_add(room->group, member), 0);
    room->members[room->count++] = member;
    return member;
}

static void end_member(weir_channel *member, struct stepper *stepper)
{
    weir_channel_abort(member, NULL);
    if (stepper != NULL)
        (void)stepper_run(stepper);
    else
        assert_int_equal(weir_channel_await_closed(member, TEST_TIMEOUT_NS), 0);
    weir_channel_release(member);
}

void room_close(struct room *room, struct stepper *stepper)
{
    for (size_t i = 0; i < room->count; i++)
        end_member(room->members[i], stepper);
    weir_channel_group_release(room->group);
    if (stepper != NULL)
        (void)stepper_run(stepper);
    diary_close(&room->diary);
}
