/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is in a channel group.
 */
#include <weir/channel_group.h>

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/channel_room.h"
#include "support/memory.h"

struct hall {
    struct stepper stepper;
    struct room room;
    weir_channel_group *group;
};

static void open_hall(struct hall *hall, const weir_channel_group_options *options, int members)
{
    hall->stepper = stepper_open();
    room_open(&hall->room, options);
    hall->group = hall->room.group;
    for (int i = 0; i < members; i++)
        (void)room_admit(&hall->room, hall->stepper.executor, NULL, NULL);
}

static void close_hall(struct hall *hall)
{
    room_close(&hall->room, &hall->stepper);
    stepper_close(&hall->stepper);
}

static weir_channel *member(struct hall *hall, size_t index)
{
    return hall->room.members[index];
}

TEST(channel_group, knows_its_members)
{
    struct hall hall;
    weir_channel *found;

    open_hall(&hall, NULL, 3);
    assert_int_equal(weir_channel_group_size(hall.group), 3);
    assert_true(weir_channel_group_contains(hall.group, member(&hall, 1)));
    found = weir_channel_group_find(hall.group, weir_channel_id(member(&hall, 2)));
    assert_ptr_equal(found, member(&hall, 2));
    weir_channel_release(found);

    assert_int_equal(weir_channel_group_remove(hall.group, member(&hall, 1)), 0);
    assert_int_equal(weir_channel_group_remove(hall.group, member(&hall, 1)), -ENOENT);
    assert_int_equal(weir_channel_group_size(hall.group), 2);
    assert_false(weir_channel_group_contains(hall.group, member(&hall, 1)));
    assert_null(weir_channel_group_find(hall.group, weir_channel_id(member(&hall, 1))));
    assert_true(weir_channel_is_open(member(&hall, 1)));
    close_hall(&hall);
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

TEST(channel_group, is_left_by_who_closes)
{
    struct hall hall;

    open_hall(&hall, NULL, 2);
    weir_channel_abort(member(&hall, 0), NULL);
    (void)stepper_run(&hall.stepper);
    assert_int_equal(weir_channel_group_size(hall.group), 1);
    assert_false(weir_channel_group_contains(hall.group, member(&hall, 0)));
    close_hall(&hall);
}

TEST(channel_group, takes_nobody_twice_and_none_that_is_closed_or_new)
{
    struct hall hall;
    weir_channel *fresh;

    open_hall(&hall, NULL, 1);
    assert_int_equal(weir_channel_group_add(hall.group, member(&hall, 0)), -EEXIST);
    weir_channel_abort(member(&hall, 0), NULL);
    (void)stepper_run(&hall.stepper);
    assert_int_equal(weir_channel_group_add(hall.group, member(&hall, 0)), WEIR_ECLOSED);
    assert_int_equal(weir_channel_group_size(hall.group), 0);

    assert_int_equal(
        wire_create(&hall.room.diary, &(struct wire_options){.silent = true}, NULL, NULL, &fresh),
        0);
    assert_int_equal(weir_channel_group_add(hall.group, fresh), -EINVAL);
    weir_channel_release(fresh);
    close_hall(&hall);
}

TEST(channel_group, leaves_nothing_behind_in_a_channel_that_has_been_in_many)
{
    struct hall hall;
    weir_channel_group *other;
    size_t live;

    open_hall(&hall, NULL, 1);
    live = test_memory_live();
    for (int i = 0; i < 10; i++) {
        assert_int_equal(weir_channel_group_create(NULL, &other), 0);
        assert_int_equal(weir_channel_group_add(other, member(&hall, 0)), 0);
        if (i % 2 == 0)
            assert_int_equal(weir_channel_group_remove(other, member(&hall, 0)), 0);
        weir_channel_group_release(other);
    }
    assert_int_equal(test_memory_live(), live);
    close_hall(&hall);
}

static void note_size(weir_promise *closed, void *user_data)
{
    struct hall *hall = user_data;

    (void)closed;
    diary_write(&hall->room.diary, "%zu", weir_channel_group_size(hall->group));
}

TEST(channel_group, has_been_left_when_the_end_of_a_channel_is_told)
{
    struct hall hall;

    open_hall(&hall, NULL, 1);
    weir_channel_group_remove(hall.group, member(&hall, 0));
    assert_int_equal(
        weir_promise_add_listener(weir_channel_closed(member(&hall, 0)), note_size, &hall), 0);
    assert_int_equal(weir_channel_group_add(hall.group, member(&hall, 0)), 0);
    weir_channel_abort(member(&hall, 0), NULL);
    (void)stepper_run(&hall.stepper);
    assert_diary(&hall.room.diary, "0");
    close_hall(&hall);
}

TEST(channel_group, remembers_one_that_comes_and_goes_only_once)
{
    struct hall hall;
    size_t live;

    open_hall(&hall, NULL, 1);
    live = test_memory_live();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir_channel_group_remove(hall.group, member(&hall, 0)), 0);
        assert_int_equal(weir_channel_group_add(hall.group, member(&hall, 0)), 0);
    }
    assert_int_equal(test_memory_live(), live);
    assert_int_equal(weir_channel_group_size(hall.group), 1);
    close_hall(&hall);
}

TEST(channel_group, lets_go_of_a_channel_that_was_removed)
{
    struct hall hall;
    uint32_t refs;

    open_hall(&hall, NULL, 1);
    refs = weir_msg_refs(weir__channel_msg(member(&hall, 0)));
    assert_int_equal(weir_channel_group_remove(hall.group, member(&hall, 0)), 0);
    assert_int_equal(weir_msg_refs(weir__channel_msg(member(&hall, 0))), refs - 1);
    close_hall(&hall);
}

TEST(channel_group, leaves_its_members_open_when_it_goes)
{
    struct hall hall;

    open_hall(&hall, NULL, 3);
    weir_channel_group_release(weir_channel_group_retain(hall.group));
    assert_int_equal(weir_channel_group_size(hall.group), 3);
    weir_channel_group_release(hall.group);
    hall.room.group = NULL;
    for (size_t i = 0; i < 3; i++)
        assert_true(weir_channel_is_open(member(&hall, i)));
    close_hall(&hall);
}

/* ---- walking ---- */

struct visit {
    struct hall *hall;
    weir_channel *seen[8];
    size_t count;
    void (*on_first)(struct hall *hall);
};

static void visit(weir_channel *channel, void *user_data)
{
    struct visit *self = user_data;

    self->seen[self->count++] = channel;
    if (self->count == 1 && self->on_first != NULL)
        self->on_first(self->hall);
}

static void assert_visits(struct hall *hall, void (*on_first)(struct hall *hall),
                          const char *members)
{
    struct visit self = {.hall = hall, .on_first = on_first};

    weir_channel_group_foreach(hall->group, visit, &self);
    assert_int_equal(self.count, strlen(members));
    for (size_t i = 0; i < self.count; i++)
        assert_ptr_equal(self.seen[i], member(hall, (size_t)(members[i] - '0')));
}

static void remove_the_next(struct hall *hall)
{
    assert_int_equal(weir_channel_group_remove(hall->group, member(hall, 1)), 0);
}

static void remove_the_first(struct hall *hall)
{
    assert_int_equal(weir_channel_group_remove(hall->group, member(hall, 0)), 0);
}

static void move_the_next_to_the_end(struct hall *hall)
{
    remove_the_next(hall);
    assert_int_equal(weir_channel_group_add(hall->group, member(hall, 1)), 0);
}

static void admit_one(struct hall *hall)
{
    (void)room_admit(&hall->room, hall->stepper.executor, NULL, NULL);
}

static void close_the_last(struct hall *hall)
{
    weir_channel_abort(member(hall, 2), NULL);
    (void)stepper_run(&hall->stepper);
}

static void visit_all_again(struct hall *hall)
{
    assert_visits(hall, NULL, "012");
}

TEST(channel_group, is_walked_through_while_it_changes)
{
    static const struct {
        void (*on_first)(struct hall *hall);
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
        struct hall hall;

        open_hall(&hall, NULL, 3);
        assert_visits(&hall, cases[i].on_first, cases[i].visited);
        assert_visits(&hall, NULL, cases[i].afterwards);
        close_hall(&hall);
    }
}

static void give_up_the_group(struct hall *hall)
{
    weir_channel_group_release(hall->group);
    hall->room.group = NULL;
}

TEST(channel_group, is_walked_through_also_if_nobody_wants_it_any_more)
{
    struct hall hall;

    open_hall(&hall, NULL, 3);
    assert_visits(&hall, give_up_the_group, "012");
    close_hall(&hall);
}

TEST(channel_group, of_nobody_is_walked_through_at_once)
{
    struct hall hall;

    open_hall(&hall, NULL, 0);
    assert_visits(&hall, NULL, "");
    close_hall(&hall);
}

/* ---- closing for good ---- */

static void try_to_join(struct hall *hall, int expected, bool is_open)
{
    weir_channel *late;

    assert_int_equal(
        wire_create(&hall->room.diary, &(struct wire_options){.silent = true}, NULL, NULL, &late),
        0);
    weir_channel_register(late, hall->stepper.executor, NULL);
    assert_int_equal(weir_channel_group_add(hall->group, late), expected);
    (void)stepper_run(&hall->stepper);
    assert_int_equal(weir_channel_is_open(late), is_open);
    weir_channel_abort(late, NULL);
    (void)stepper_run(&hall->stepper);
    weir_channel_release(late);
}

TEST(channel_group, that_stays_closed_closes_who_wants_to_join)
{
    struct hall hall;

    open_hall(&hall, WEIR_CHANNEL_GROUP_OPTIONS(.stay_closed = true), 1);
    try_to_join(&hall, 0, true);
    weir_channel_group_close(hall.group, NULL, NULL, NULL);
    try_to_join(&hall, WEIR_ECLOSED, false);
    close_hall(&hall);

    open_hall(&hall, NULL, 1);
    weir_channel_group_close(hall.group, NULL, NULL, NULL);
    try_to_join(&hall, 0, true);
    close_hall(&hall);
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
    struct hall hall;
    weir_channel *fresh;
    unsigned n;
    int err;

    open_hall(&hall, NULL, 0);
    for (n = 1;; n++) {
        assert_int_equal(wire_create(&hall.room.diary, &(struct wire_options){.silent = true}, NULL,
                                     NULL, &fresh),
                         0);
        weir_channel_register(fresh, hall.stepper.executor, NULL);
        test_memory_fail_at(n);
        err = weir_channel_group_add(hall.group, fresh);
        if (!test_memory_failed())
            break;
        test_memory_fail_at(0);
        assert_int_equal(weir_channel_group_contains(hall.group, fresh), err == 0);
        weir_channel_abort(fresh, NULL);
        (void)stepper_run(&hall.stepper);
        weir_channel_release(fresh);
    }
    test_memory_fail_at(0);
    assert_in_range(n, 3, 5); /* what few channels need, a record, a larger table */
    hall.room.members[hall.room.count++] = fresh;
    close_hall(&hall);
}
