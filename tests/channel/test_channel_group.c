/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is in a channel group.
 */
#include <weir/channel_group.h>

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/group_fixture.h"
#include "support/memory.h"

struct setup {
    struct stepper stepper;
    struct group_fixture fixture;
    weir_channel_group *group;
};

static void open_setup(struct setup *setup, const weir_channel_group_options *options, int members)
{
    setup->stepper = stepper_open();
    group_fixture_open(&setup->fixture, options);
    setup->group = setup->fixture.group;
    for (int i = 0; i < members; i++)
        (void)group_fixture_add(&setup->fixture, setup->stepper.executor, NULL, NULL);
}

static void close_setup(struct setup *setup)
{
    group_fixture_close(&setup->fixture, &setup->stepper);
    stepper_close(&setup->stepper);
}

static weir_channel *member(struct setup *setup, size_t index)
{
    return setup->fixture.members[index];
}

TEST(channel_group, knows_its_members)
{
    struct setup setup;
    weir_channel *found;

    open_setup(&setup, NULL, 3);
    assert_int_equal(weir_channel_group_size(setup.group), 3);
    assert_true(weir_channel_group_contains(setup.group, member(&setup, 1)));
    found = weir_channel_group_find(setup.group, weir_channel_id(member(&setup, 2)));
    assert_ptr_equal(found, member(&setup, 2));
    weir_channel_release(found);

    assert_int_equal(weir_channel_group_remove(setup.group, member(&setup, 1)), 0);
    assert_int_equal(weir_channel_group_remove(setup.group, member(&setup, 1)), -ENOENT);
    assert_int_equal(weir_channel_group_size(setup.group), 2);
    assert_false(weir_channel_group_contains(setup.group, member(&setup, 1)));
    assert_null(weir_channel_group_find(setup.group, weir_channel_id(member(&setup, 1))));
    assert_true(weir_channel_is_open(member(&setup, 1)));
    close_setup(&setup);
}

TEST(channel_group, has_a_name)
{
    weir_channel_group *group;

    assert_int_equal(weir_channel_group_create(NULL, &group), 0);
    assert_string_equal(weir_channel_group_name(group), "channels");
    weir_channel_group_release(group);
    assert_int_equal(weir_channel_group_create(WEIR_CHANNEL_GROUP_OPTIONS(.name = "room"), &group),
                     0);
    assert_string_equal(weir_channel_group_name(weir_channel_group_retain(group)), "room");
    weir_channel_group_release(group);
    weir_channel_group_release(group);
    weir_channel_group_release(NULL);
}

TEST(channel_group, is_left_by_a_channel_that_closes)
{
    struct setup setup;

    open_setup(&setup, NULL, 2);
    weir_channel_abort(member(&setup, 0), NULL);
    (void)stepper_run(&setup.stepper);
    assert_int_equal(weir_channel_group_size(setup.group), 1);
    assert_false(weir_channel_group_contains(setup.group, member(&setup, 0)));
    close_setup(&setup);
}

TEST(channel_group, rejects_members_closed_and_unregistered_channels)
{
    struct setup setup;
    weir_channel *fresh;

    open_setup(&setup, NULL, 1);
    assert_int_equal(weir_channel_group_add(setup.group, member(&setup, 0)), -EEXIST);
    weir_channel_abort(member(&setup, 0), NULL);
    (void)stepper_run(&setup.stepper);
    assert_int_equal(weir_channel_group_add(setup.group, member(&setup, 0)), WEIR_ECLOSED);
    assert_int_equal(weir_channel_group_size(setup.group), 0);

    assert_int_equal(wire_create(&setup.fixture.events, &(struct wire_options){.silent = true},
                                 NULL, NULL, &fresh),
                     0);
    assert_int_equal(weir_channel_group_add(setup.group, fresh), -EINVAL);
    weir_channel_release(fresh);
    close_setup(&setup);
}

TEST(channel_group, leaves_nothing_behind_in_a_channel_that_has_been_in_many)
{
    struct setup setup;
    weir_channel_group *other;
    size_t live;

    open_setup(&setup, NULL, 1);
    live = test_memory_live();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(weir_channel_group_create(NULL, &other), 0);
        assert_int_equal(weir_channel_group_add(other, member(&setup, 0)), 0);
        if (i % 2 == 0)
            assert_int_equal(weir_channel_group_remove(other, member(&setup, 0)), 0);
        weir_channel_group_release(other);
    }
    assert_int_equal(test_memory_live(), live);
    close_setup(&setup);
}

static void note_size(weir_promise *closed, void *user_data)
{
    struct setup *setup = user_data;

    (void)closed;
    event_log_write(&setup->fixture.events, "%zu", weir_channel_group_size(setup->group));
}

TEST(channel_group, is_left_before_the_closed_promise_completes)
{
    struct setup setup;

    open_setup(&setup, NULL, 1);
    weir_channel_group_remove(setup.group, member(&setup, 0));
    assert_int_equal(
        weir_promise_add_listener(weir_channel_closed(member(&setup, 0)), note_size, &setup), 0);
    assert_int_equal(weir_channel_group_add(setup.group, member(&setup, 0)), 0);
    weir_channel_abort(member(&setup, 0), NULL);
    (void)stepper_run(&setup.stepper);
    assert_events(&setup.fixture.events, "0");
    close_setup(&setup);
}

TEST(channel_group, keeps_no_memory_of_a_channel_that_joins_and_leaves)
{
    struct setup setup;
    size_t live;

    open_setup(&setup, NULL, 1);
    live = test_memory_live();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir_channel_group_remove(setup.group, member(&setup, 0)), 0);
        assert_int_equal(weir_channel_group_add(setup.group, member(&setup, 0)), 0);
    }
    assert_int_equal(test_memory_live(), live);
    assert_int_equal(weir_channel_group_size(setup.group), 1);
    close_setup(&setup);
}

TEST(channel_group, releases_a_removed_channel)
{
    struct setup setup;
    uint32_t refs;

    open_setup(&setup, NULL, 1);
    refs = weir_msg_refs(weir__channel_msg(member(&setup, 0)));
    assert_int_equal(weir_channel_group_remove(setup.group, member(&setup, 0)), 0);
    assert_int_equal(weir_msg_refs(weir__channel_msg(member(&setup, 0))), refs - 1);
    close_setup(&setup);
}

TEST(channel_group, leaves_its_members_open_when_it_is_released)
{
    struct setup setup;

    open_setup(&setup, NULL, 3);
    weir_channel_group_release(weir_channel_group_retain(setup.group));
    assert_int_equal(weir_channel_group_size(setup.group), 3);
    weir_channel_group_release(setup.group);
    setup.fixture.group = NULL;
    for (size_t i = 0; i < 3; i++)
        assert_true(weir_channel_is_open(member(&setup, i)));
    close_setup(&setup);
}

/* ---- walking ---- */

struct visit {
    struct setup *setup;
    weir_channel *seen[8];
    size_t count;
    void (*on_first)(struct setup *setup);
};

static void visit(weir_channel *channel, void *user_data)
{
    struct visit *self = user_data;

    self->seen[self->count++] = channel;
    if (self->count == 1 && self->on_first != NULL)
        self->on_first(self->setup);
}

static void assert_visits(struct setup *setup, void (*on_first)(struct setup *setup),
                          const char *members)
{
    struct visit self = {.setup = setup, .on_first = on_first};

    weir_channel_group_foreach(setup->group, visit, &self);
    assert_int_equal(self.count, strlen(members));
    for (size_t i = 0; i < self.count; i++)
        assert_ptr_equal(self.seen[i], member(setup, (size_t)(members[i] - '0')));
}

static void remove_the_next(struct setup *setup)
{
    assert_int_equal(weir_channel_group_remove(setup->group, member(setup, 1)), 0);
}

static void remove_the_first(struct setup *setup)
{
    assert_int_equal(weir_channel_group_remove(setup->group, member(setup, 0)), 0);
}

static void move_the_next_to_the_end(struct setup *setup)
{
    remove_the_next(setup);
    assert_int_equal(weir_channel_group_add(setup->group, member(setup, 1)), 0);
}

static void admit_one(struct setup *setup)
{
    (void)group_fixture_add(&setup->fixture, setup->stepper.executor, NULL, NULL);
}

static void close_the_last(struct setup *setup)
{
    weir_channel_abort(member(setup, 2), NULL);
    (void)stepper_run(&setup->stepper);
}

static void visit_all_again(struct setup *setup)
{
    assert_visits(setup, NULL, "012");
}

TEST(channel_group, is_walked_through_while_it_changes)
{
    static const struct {
        void (*on_first)(struct setup *setup);
        const char *visited;
        const char *afterwards;
    } cases[] = {
        {NULL, "012", "012"},
        {remove_the_next, "02", "02"},
        {remove_the_first, "012", "12"},
        {move_the_next_to_the_end, "02", "021"},
        {admit_one, "012", "0123"},
        {close_the_last, "01", "01"},
        {visit_all_again, "012", "012"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct setup setup;

        open_setup(&setup, NULL, 3);
        assert_visits(&setup, cases[i].on_first, cases[i].visited);
        assert_visits(&setup, NULL, cases[i].afterwards);
        close_setup(&setup);
    }
}

static void give_up_the_group(struct setup *setup)
{
    weir_channel_group_release(setup->group);
    setup->fixture.group = NULL;
}

TEST(channel_group, can_be_released_during_a_walk)
{
    struct setup setup;

    open_setup(&setup, NULL, 3);
    assert_visits(&setup, give_up_the_group, "012");
    close_setup(&setup);
}

TEST(channel_group, without_members_has_an_empty_walk)
{
    struct setup setup;

    open_setup(&setup, NULL, 0);
    assert_visits(&setup, NULL, "");
    close_setup(&setup);
}

/* ---- closing for good ---- */

static void try_to_join(struct setup *setup, int expected, bool is_open)
{
    weir_channel *late;

    assert_int_equal(wire_create(&setup->fixture.events, &(struct wire_options){.silent = true},
                                 NULL, NULL, &late),
                     0);
    weir_channel_register(late, setup->stepper.executor, NULL);
    assert_int_equal(weir_channel_group_add(setup->group, late), expected);
    (void)stepper_run(&setup->stepper);
    assert_int_equal(weir_channel_is_open(late), is_open);
    weir_channel_abort(late, NULL);
    (void)stepper_run(&setup->stepper);
    weir_channel_release(late);
}

TEST(channel_group, that_stays_closed_closes_channels_added_later)
{
    struct setup setup;

    open_setup(&setup, WEIR_CHANNEL_GROUP_OPTIONS(.stay_closed = true), 1);
    try_to_join(&setup, 0, true);
    weir_channel_group_close(setup.group, NULL, NULL, NULL);
    try_to_join(&setup, WEIR_ECLOSED, false);
    close_setup(&setup);

    open_setup(&setup, NULL, 1);
    weir_channel_group_close(setup.group, NULL, NULL, NULL);
    try_to_join(&setup, 0, true);
    close_setup(&setup);
}

/* ---- no memory ---- */

TEST(channel_group, is_not_made_without_memory)
{
    weir_channel_group *group;

    for (unsigned n = 1; n <= 2; n++) {
        test_memory_fail_at(n);
        assert_int_equal(weir_channel_group_create(NULL, &group), -ENOMEM);
    }
    test_memory_fail_at(0);
}

TEST(channel_group, does_not_take_a_member_without_memory)
{
    struct setup setup;
    weir_channel *fresh;
    unsigned n;
    int err;

    open_setup(&setup, NULL, 0);
    for (n = 1;; n++) {
        assert_int_equal(wire_create(&setup.fixture.events, &(struct wire_options){.silent = true},
                                     NULL, NULL, &fresh),
                         0);
        weir_channel_register(fresh, setup.stepper.executor, NULL);
        test_memory_fail_at(n);
        err = weir_channel_group_add(setup.group, fresh);
        if (!test_memory_failed())
            break;
        test_memory_fail_at(0);
        assert_int_equal(weir_channel_group_contains(setup.group, fresh), err == 0);
        weir_channel_abort(fresh, NULL);
        (void)stepper_run(&setup.stepper);
        weir_channel_release(fresh);
    }
    test_memory_fail_at(0);
    assert_in_range(n, 3, 5); /* what few channels need, a record, a larger table */
    setup.fixture.members[setup.fixture.count++] = fresh;
    close_setup(&setup);
}
