/* SPDX-License-Identifier: Apache-2.0 */
#include "support/channel/group_fixture.h"

#include <string.h>

#include "support/executor/group.h"

void group_fixture_open(struct group_fixture *fixture, const weir_channel_group_options *options)
{
    memset(fixture, 0, sizeof(*fixture));
    event_log_open(&fixture->events);
    assert_int_equal(weir_channel_group_create(options, &fixture->group), 0);
}

struct wire *group_fixture_wire(struct group_fixture *fixture, size_t index)
{
    return (struct wire *)(void *)fixture->members[index];
}

weir_channel *group_fixture_add(struct group_fixture *fixture, weir_executor *executor,
                                const struct wire_options *wire,
                                const weir_channel_options *channel)
{
    struct wire_options options = wire != NULL ? *wire : (struct wire_options){0};
    weir_channel *member;
    weir_promise *registered;

    options.silent = true;
    assert_true(fixture->count < GROUP_FIXTURE_MAX);
    assert_int_equal(wire_create(&fixture->events, &options, channel, NULL, &member), 0);
    assert_int_equal(weir_promise_create(NULL, &registered), 0);
    weir_channel_register(member, executor, registered);
    assert_int_equal(weir_promise_sync(registered, TEST_TIMEOUT_NS), 0);
    weir_promise_release(registered);
    assert_int_equal(weir_channel_group_add(fixture->group, member), 0);
    fixture->members[fixture->count++] = member;
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

void group_fixture_close(struct group_fixture *fixture, struct stepper *stepper)
{
    for (size_t i = 0; i < fixture->count; i++)
        end_member(fixture->members[i], stepper);
    weir_channel_group_release(fixture->group);
    if (stepper != NULL)
        (void)stepper_run(stepper);
    event_log_close(&fixture->events);
}
