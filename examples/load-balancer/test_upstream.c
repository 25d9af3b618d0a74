/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which upstream is next.
 */
#include "support/upstream.h"

#include "support/test.h"

static void make(struct upstreams *upstreams, enum balance balance)
{
    *upstreams = (struct upstreams){.balance = balance};
    assert_true(upstreams_add(upstreams, "a"));
    assert_true(upstreams_add(upstreams, "b"));
    assert_true(upstreams_add(upstreams, "c"));
}

/* For a client that has not tried any. */
static const char *next(struct upstreams *upstreams)
{
    uint64_t tried = 0;

    return upstreams_choose(upstreams, &tried)->address;
}

TEST(upstream, round_robin_takes_turns)
{
    struct upstreams upstreams;

    make(&upstreams, BALANCE_ROUND_ROBIN);
    atomic_store(&upstreams.list[1].connections, 7); /* which does not matter */
    for (int i = 0; i < 3; i++) {
        assert_string_equal(next(&upstreams), "a");
        assert_string_equal(next(&upstreams), "b");
        assert_string_equal(next(&upstreams), "c");
    }
}

TEST(upstream, with_the_fewest_connections_is_next)
{
    struct upstreams upstreams;

    make(&upstreams, BALANCE_LEAST_CONNECTIONS);
    atomic_store(&upstreams.list[0].connections, 2);
    atomic_store(&upstreams.list[1].connections, 1);
    atomic_store(&upstreams.list[2].connections, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(next(&upstreams), "b");
}

TEST(upstream, that_are_equal_take_turns)
{
    struct upstreams upstreams;

    make(&upstreams, BALANCE_LEAST_CONNECTIONS);
    assert_string_equal(next(&upstreams), "a");
    assert_string_equal(next(&upstreams), "b");
}

TEST(upstream, that_is_down_comes_last)
{
    struct upstreams upstreams;
    uint64_t tried = 0;

    make(&upstreams, BALANCE_LEAST_CONNECTIONS);
    atomic_store(&upstreams.list[0].is_up, false);
    atomic_store(&upstreams.list[1].connections, 100);
    atomic_store(&upstreams.list[2].connections, 100);
    assert_string_not_equal(upstreams_choose(&upstreams, &tried)->address, "a");
    assert_string_not_equal(upstreams_choose(&upstreams, &tried)->address, "a");
    assert_string_equal(upstreams_choose(&upstreams, &tried)->address, "a");
}

TEST(upstream, is_tried_once)
{
    struct upstreams upstreams;
    uint64_t tried = 0;

    make(&upstreams, BALANCE_ROUND_ROBIN);
    for (int i = 0; i < 3; i++)
        assert_non_null(upstreams_choose(&upstreams, &tried));
    assert_int_equal(tried, 7);
    assert_null(upstreams_choose(&upstreams, &tried));
}

TEST(upstream, number_is_limited)
{
    struct upstreams upstreams = {.count = 0};

    for (int i = 0; i < UPSTREAMS_MAX; i++)
        assert_true(upstreams_add(&upstreams, "a"));
    assert_false(upstreams_add(&upstreams, "a"));
}
