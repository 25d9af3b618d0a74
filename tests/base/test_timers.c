/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel: first single cases, then a million random steps compared with a model that scans
 * an array. A failure of these prints its seed; WEIR_SEED repeats it.
 */
#include "base/timers.h"

#include "support/test.h"

#include "os/random.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define DAY (86400 * SECOND)
#define YEAR (365 * DAY)

static void assert_next(weir__timers *timers, int64_t expected_ns)
{
    assert_true(weir__timers_next(timers) == expected_ns);
}

static void assert_expire_in_order(weir__timers *timers, weir_timer_node *nodes, int count,
                                   int64_t now_ns)
{
    for (int i = 0; i < count; i++)
        assert_ptr_equal(weir__timers_expire(timers, now_ns), &nodes[i]);
    assert_null(weir__timers_expire(timers, now_ns));
}

TEST(timers, none_means_nothing_due_and_no_deadline)
{
    weir__timers timers;

    weir__timers_init(&timers, 1000);
    assert_null(weir__timers_expire(&timers, 1000));
    assert_null(weir__timers_expire(&timers, WEIR_NEVER));
    assert_null(weir__timers_pop_any(&timers));
    assert_next(&timers, WEIR_NEVER);
    assert_int_equal(weir__timers_count(&timers), 0);
}

TEST(timers, that_are_not_due_let_the_position_lag_by_less_than_a_millisecond)
{
    weir__timers timers;
    weir_timer_node node = {0};

    weir__timers_init(&timers, SECOND);
    weir__timers_start(&timers, &node, 3600 * SECOND);
    for (int64_t now_ns = SECOND; now_ns < 2 * SECOND; now_ns += 300 * 1000) {
        assert_null(weir__timers_expire(&timers, now_ns));
        assert_true(now_ns - timers.position_ns < MS);
    }
}

static void assert_due_exactly_at(int64_t position_ns, int64_t at_ns)
{
    weir__timers timers;
    weir_timer_node node = {0};

    weir__timers_init(&timers, position_ns);
    weir__timers_start(&timers, &node, at_ns);
    assert_next(&timers, at_ns);
    assert_null(weir__timers_expire(&timers, at_ns - 1));
    assert_next(&timers, at_ns);
    assert_ptr_equal(weir__timers_expire(&timers, at_ns), &node);
    assert_false(weir__timers_is_linked(&node));
}

TEST(timers, are_due_at_their_nanosecond_on_both_sides_of_every_bit)
{
    for (int position_bit = 0; position_bit < 62; position_bit += 2) {
        int64_t position_ns = (INT64_C(1) << position_bit) - 1;

        for (int bit = position_bit; bit < 63; bit++) {
            int64_t at_ns = INT64_C(1) << bit;

            assert_due_exactly_at(position_ns, at_ns - 1);
            assert_due_exactly_at(position_ns, at_ns);
            assert_due_exactly_at(position_ns, at_ns + 1);
        }
    }
}

TEST(timers, far_away_are_due_at_their_nanosecond)
{
    assert_due_exactly_at(12345, 46 * DAY);
    assert_due_exactly_at(12345, 46 * DAY + 1);
    assert_due_exactly_at(YEAR, 100 * YEAR);
    assert_due_exactly_at(0, WEIR_NEVER - 1);
}

TEST(timers, approached_in_ever_smaller_steps_are_due_at_their_nanosecond)
{
    weir__timers timers;
    weir_timer_node node = {0};
    int64_t at_ns = 3 * DAY + 7;

    weir__timers_init(&timers, 0);
    weir__timers_start(&timers, &node, at_ns);
    for (int64_t left = at_ns; left > 0; left -= left / 5 + 1) {
        assert_null(weir__timers_expire(&timers, at_ns - left));
        assert_next(&timers, at_ns);
    }
    assert_ptr_equal(weir__timers_expire(&timers, at_ns), &node);
}

TEST(timers, expire_in_order_of_deadline)
{
    static const int64_t at_ns[] = {1, 20, 5000, 2 * MS, 3 * SECOND, DAY, YEAR};
    weir__timers timers;
    weir_timer_node nodes[7] = {{0}};

    weir__timers_init(&timers, 0);
    for (int i = 6; i >= 0; i--)
        weir__timers_start(&timers, &nodes[i], at_ns[i]);
    assert_expire_in_order(&timers, nodes, 7, 2 * YEAR);
}

TEST(timers, with_equal_deadlines_expire_in_order_of_start)
{
    static const int64_t at_ns[] = {0, 100, 101, MS, INT64_C(1) << 36, 46 * DAY};
    weir__timers timers;
    weir_timer_node nodes[300] = {{0}};

    for (size_t i = 0; i < sizeof(at_ns) / sizeof(at_ns[0]); i++) {
        weir__timers_init(&timers, 100);
        for (int n = 0; n < 300; n++)
            weir__timers_start(&timers, &nodes[n], at_ns[i]);
        assert_expire_in_order(&timers, nodes, 300, YEAR);
    }
}

TEST(timers, keep_their_order_when_the_sequence_wraps_around)
{
    weir__timers timers;
    weir_timer_node nodes[6] = {0};

    weir__timers_init(&timers, 0);
    timers.starts = timers.ends = UINT32_MAX - 2;
    for (int i = 0; i < 6; i++)
        weir__timers_start(&timers, &nodes[i], 5 * SECOND);
    assert_expire_in_order(&timers, nodes, 6, 5 * SECOND);
}

TEST(timers, go_behind_their_equals_when_restarted)
{
    weir__timers timers;
    weir_timer_node nodes[3] = {{0}};

    weir__timers_init(&timers, 0);
    weir__timers_start(&timers, &nodes[1], SECOND);     /* postponed: stays in its slot */
    weir__timers_start(&timers, &nodes[2], 3 * SECOND); /* moved forward */
    weir__timers_start(&timers, &nodes[0], 2 * SECOND);
    weir__timers_start(&timers, &nodes[1], 2 * SECOND);
    weir__timers_start(&timers, &nodes[2], 2 * SECOND);
    assert_int_equal(weir__timers_count(&timers), 3);
    assert_expire_in_order(&timers, nodes, 3, 2 * SECOND);

    for (int i = 2; i >= 0; i--)
        weir__timers_start(&timers, &nodes[i], 5 * SECOND);
    for (int i = 0; i < 3; i++)
        weir__timers_start(&timers, &nodes[i], 5 * SECOND); /* to the same deadline */
    assert_expire_in_order(&timers, nodes, 3, 5 * SECOND);
}

TEST(timers, postponed_again_and_again_are_due_only_at_the_last_deadline)
{
    weir__timers timers;
    weir_timer_node node = {0};
    int64_t now_ns = 0;

    weir__timers_init(&timers, now_ns);
    for (int i = 0; i < 1000; i++, now_ns += 333 * MS) {
        weir__timers_start(&timers, &node, now_ns + SECOND);
        assert_null(weir__timers_expire(&timers, now_ns + 332 * MS));
    }
    now_ns -= 333 * MS;
    assert_next(&timers, now_ns + SECOND);
    assert_null(weir__timers_expire(&timers, now_ns + SECOND - 1));
    assert_ptr_equal(weir__timers_expire(&timers, now_ns + SECOND), &node);
    assert_int_equal(weir__timers_count(&timers), 0);
}

TEST(timers, postponed_past_others_do_not_hide_them)
{
    weir__timers timers;
    weir_timer_node nodes[3] = {{0}};

    weir__timers_init(&timers, 0);
    weir__timers_start(&timers, &nodes[2], SECOND);
    weir__timers_start(&timers, &nodes[1], 3 * SECOND);
    weir__timers_start(&timers, &nodes[0], 2 * SECOND);
    weir__timers_start(&timers, &nodes[2], 4 * SECOND);
    assert_next(&timers, 2 * SECOND);
    assert_null(weir__timers_expire(&timers, SECOND));
    assert_next(&timers, 2 * SECOND);
    assert_expire_in_order(&timers, nodes, 3, 4 * SECOND);
}

TEST(timers, stopped_are_never_handed_out)
{
    weir__timers timers;
    weir_timer_node nodes[3] = {{0}};

    weir__timers_init(&timers, 0);
    for (int i = 0; i < 3; i++)
        weir__timers_start(&timers, &nodes[i], MS * (i + 1));
    weir__timers_stop(&timers, &nodes[0]);
    weir__timers_stop(&timers, &nodes[0]);
    assert_false(weir__timers_is_linked(&nodes[0]));
    assert_int_equal(weir__timers_count(&timers), 2);
    assert_next(&timers, 2 * MS);
    assert_expire_in_order(&timers, &nodes[1], 2, 3 * MS);
}

TEST(timers, that_are_due_and_waiting_can_be_stopped)
{
    weir__timers timers;
    weir_timer_node nodes[6] = {{0}};

    weir__timers_init(&timers, 0);
    for (int i = 0; i < 6; i++)
        weir__timers_start(&timers, &nodes[i], 100 + i);
    assert_ptr_equal(weir__timers_expire(&timers, SECOND), &nodes[0]);
    weir__timers_stop(&timers, &nodes[1]);
    weir__timers_stop(&timers, &nodes[3]);
    weir__timers_stop(&timers, &nodes[5]);
    assert_int_equal(weir__timers_count(&timers), 2);
    assert_next(&timers, 102);
    assert_ptr_equal(weir__timers_expire(&timers, SECOND), &nodes[2]);
    assert_ptr_equal(weir__timers_expire(&timers, SECOND), &nodes[4]);
    assert_null(weir__timers_expire(&timers, SECOND));
    assert_next(&timers, WEIR_NEVER);
}

TEST(timers, that_are_due_and_waiting_can_be_restarted)
{
    weir__timers timers;
    weir_timer_node nodes[5] = {{0}};

    weir__timers_init(&timers, 0);
    for (int i = 0; i < 5; i++)
        weir__timers_start(&timers, &nodes[i], 100 + i);
    assert_ptr_equal(weir__timers_expire(&timers, 1000), &nodes[0]);
    weir__timers_start(&timers, &nodes[1], 103);  /* later, still due: behind its equal */
    weir__timers_start(&timers, &nodes[2], 2000); /* not due any more */
    weir__timers_start(&timers, &nodes[4], 5);    /* earlier */
    assert_ptr_equal(weir__timers_expire(&timers, 1000), &nodes[4]);
    assert_ptr_equal(weir__timers_expire(&timers, 1000), &nodes[3]);
    assert_ptr_equal(weir__timers_expire(&timers, 1000), &nodes[1]);
    assert_null(weir__timers_expire(&timers, 1999));
    assert_ptr_equal(weir__timers_expire(&timers, 2000), &nodes[2]);
}

TEST(timers, started_between_two_expirations_take_their_place_among_the_due)
{
    weir__timers timers;
    weir_timer_node waiting[3] = {{0}};
    weir_timer_node nodes[4] = {{0}};

    weir__timers_init(&timers, 0);
    for (int i = 0; i < 3; i++)
        weir__timers_start(&timers, &waiting[i], 100 + 10 * i);
    assert_ptr_equal(weir__timers_expire(&timers, 500), &waiting[0]);

    weir__timers_start(&timers, &nodes[0], 500); /* now */
    weir__timers_start(&timers, &nodes[1], 115);
    weir__timers_start(&timers, &nodes[2],
                       110); /* the same deadline as a ready timer, but started later */
    weir__timers_start(&timers, &nodes[3], 50); /* earlier than one that has expired */
    assert_next(&timers, 50);
    assert_ptr_equal(weir__timers_expire(&timers, 500), &nodes[3]);
    assert_ptr_equal(weir__timers_expire(&timers, 500), &waiting[1]);
    assert_ptr_equal(weir__timers_expire(&timers, 500), &nodes[2]);
    assert_ptr_equal(weir__timers_expire(&timers, 500), &nodes[1]);
    assert_ptr_equal(weir__timers_expire(&timers, 500), &waiting[2]);
    assert_ptr_equal(weir__timers_expire(&timers, 500), &nodes[0]);
    assert_null(weir__timers_expire(&timers, 500));
}

TEST(timers, started_in_the_past_are_due_at_once_in_order)
{
    weir__timers timers;
    weir_timer_node nodes[1000] = {{0}};

    weir__timers_init(&timers, SECOND);
    for (int i = 0; i < 1000; i++) {
        int late = i * 617 % 1000; /* every number below 1000 once */

        weir__timers_start(&timers, &nodes[late], SECOND - MS + late);
    }
    assert_next(&timers, SECOND - MS);
    assert_expire_in_order(&timers, nodes, 1000, SECOND);
}

TEST(timers, with_a_negative_deadline_expire_at_zero)
{
    weir__timers timers;
    weir_timer_node nodes[3] = {{0}};

    weir__timers_init(&timers, -5);
    weir__timers_start(&timers, &nodes[0], INT64_MIN);
    weir__timers_start(&timers, &nodes[1], -1);
    weir__timers_start(&timers, &nodes[2], 0);
    assert_next(&timers, 0);
    assert_expire_in_order(&timers, nodes, 3, 0);
    assert_due_exactly_at(INT64_MIN, 100);
}

TEST(timers, at_never_are_never_due)
{
    weir__timers timers;
    weir_timer_node nodes[2] = {{0}};

    weir__timers_init(&timers, 0);
    weir__timers_start(&timers, &nodes[1], WEIR_NEVER);
    weir__timers_start(&timers, &nodes[0], SECOND);
    assert_ptr_equal(weir__timers_expire(&timers, WEIR_NEVER), &nodes[0]);
    assert_null(weir__timers_expire(&timers, WEIR_NEVER));
    assert_next(&timers, WEIR_NEVER);
    assert_true(weir__timers_is_linked(&nodes[1]));

    weir__timers_start(&timers, &nodes[1], WEIR_NEVER - 1);
    assert_ptr_equal(weir__timers_expire(&timers, WEIR_NEVER), &nodes[1]);
}

TEST(timers, can_be_postponed_to_never)
{
    weir__timers timers;
    weir_timer_node node = {0};

    weir__timers_init(&timers, 0);
    weir__timers_start(&timers, &node, SECOND);
    weir__timers_start(&timers, &node, WEIR_NEVER);
    assert_next(&timers, WEIR_NEVER);
    assert_null(weir__timers_expire(&timers, YEAR));
    assert_int_equal(weir__timers_count(&timers), 1);
}

TEST(timers, tolerate_a_clock_that_goes_backwards)
{
    weir__timers timers;
    weir_timer_node nodes[3] = {{0}};

    weir__timers_init(&timers, SECOND);
    assert_null(weir__timers_expire(&timers, 2 * SECOND));
    weir__timers_start(&timers, &nodes[0], SECOND + 5);
    weir__timers_start(&timers, &nodes[1], SECOND + 6);
    weir__timers_start(&timers, &nodes[2], 2 * SECOND + 1);
    assert_null(weir__timers_expire(&timers, SECOND));
    assert_next(&timers, SECOND + 5);
    assert_ptr_equal(weir__timers_expire(&timers, SECOND + 5), &nodes[0]);
    assert_null(weir__timers_expire(&timers, SECOND + 5));
    assert_expire_in_order(&timers, &nodes[1], 2, 3 * SECOND);

    weir__timers_start(&timers, &nodes[0], 3 * SECOND + 1);
    assert_null(weir__timers_expire(&timers, 0));
    weir__timers_start(&timers, &nodes[1], 3 * SECOND + 2);
    assert_next(&timers, 3 * SECOND + 1);
    assert_expire_in_order(&timers, nodes, 2, 4 * SECOND);
}

TEST(timers, started_with_a_delay_count_from_the_next_resolve)
{
    weir__timers timers;
    weir_timer_node nodes[3] = {{0}, {0}, {0}};

    weir__timers_init(&timers, 1000);
    weir__timers_start_after(&timers, &nodes[0], 50);
    weir__timers_start_after(&timers, &nodes[1], 50);
    weir__timers_start_after(&timers, &nodes[2], WEIR_NEVER);
    assert_int_equal(weir__timers_count(&timers), 3);
    assert_true(weir__timers_has_relative(&timers));
    assert_null(weir__timers_expire(&timers, 2000));
    weir__timers_resolve(&timers, 2000);
    assert_false(weir__timers_has_relative(&timers));
    assert_next(&timers, 2050);
    assert_null(weir__timers_expire(&timers, 2049));
    assert_expire_in_order(&timers, nodes, 2, 2050);
    assert_next(&timers, WEIR_NEVER);
    assert_int_equal(weir__timers_count(&timers), 1);
}

TEST(timers, that_are_relative_can_be_stopped_and_restarted)
{
    weir__timers timers;
    weir_timer_node stopped = {0}, restarted = {0}, again = {0};

    weir__timers_init(&timers, 1000);
    weir__timers_start_after(&timers, &stopped, 10);
    weir__timers_start_after(&timers, &restarted, 10);
    weir__timers_start(&timers, &again, 1005);
    weir__timers_stop(&timers, &stopped);
    weir__timers_start(&timers, &restarted, 1020);
    weir__timers_start_after(&timers, &again, 100);
    weir__timers_resolve(&timers, 1010);
    assert_false(weir__timers_is_linked(&stopped));
    assert_ptr_equal(weir__timers_expire(&timers, 1109), &restarted);
    assert_null(weir__timers_expire(&timers, 1109));
    assert_ptr_equal(weir__timers_expire(&timers, 1110), &again);
    assert_int_equal(weir__timers_count(&timers), 0);
}

TEST(timers, can_all_be_popped_at_any_deadline)
{
    static const int64_t at_ns[] = {0, 5, 300, MS, 4 * MS, SECOND, DAY, YEAR, WEIR_NEVER};
    weir__timers timers;
    weir_timer_node nodes[9] = {{0}};

    weir__timers_init(&timers, 100);
    for (int i = 0; i < 9; i++)
        weir__timers_start(&timers, &nodes[i], at_ns[i]);
    for (int left = 9; left > 0; left--) {
        weir_timer_node *node = weir__timers_pop_any(&timers);

        assert_true(node >= &nodes[0] && node <= &nodes[8]);
        assert_false(weir__timers_is_linked(node));
        assert_int_equal(weir__timers_count(&timers), left - 1);
    }
    assert_null(weir__timers_pop_any(&timers));
    assert_next(&timers, WEIR_NEVER);
}

/* Sleeps until `next`, as an executor does; returns the number of wake-ups without an expired
 * timer. */
static int sleep_until_first(weir__timers *timers, weir_timer_node **ret_node)
{
    int early = 0;

    while ((*ret_node = weir__timers_expire(timers, weir__timers_next(timers))) == NULL)
        early++;
    return early;
}

TEST(timers, that_crowd_a_slot_wake_the_sleeper_early_once_a_level_at_most)
{
    weir__timers timers;
    weir_timer_node nodes[500] = {{0}};
    weir_timer_node *first;

    weir__timers_init(&timers, 0);
    for (int i = 0; i < 500; i++)
        weir__timers_start(&timers, &nodes[i], DAY + 77 + i);
    assert_true(weir__timers_next(&timers) <= DAY + 77);
    assert_in_range(sleep_until_first(&timers, &first), 0, 8);
    assert_ptr_equal(first, &nodes[0]);
    assert_next(&timers, DAY + 78);
}

TEST(timers, fire_on_time_for_a_sleeper_that_trusts_next)
{
    weir__timers timers;
    weir__random random;
    weir_timer_node nodes[2000] = {{0}};
    int64_t last_ns = 0;
    int early = 0;

    weir__random_init(&random, 1);
    weir__timers_init(&timers, 0);
    for (int i = 0; i < 2000; i++)
        weir__timers_start(&timers, &nodes[i], (int64_t)weir__random_below(&random, 60 * SECOND));
    while (weir__timers_count(&timers) > 0) {
        weir_timer_node *node;

        early += sleep_until_first(&timers, &node);
        assert_true(node->at_ns >= last_ns);
        last_ns = node->at_ns;
    }
    assert_in_range(early, 0, 1000);
}

TEST(timers, of_a_crowded_slot_have_an_exact_next_once_it_is_open)
{
    weir__timers timers;
    weir_timer_node nodes[100] = {{0}};

    weir__timers_init(&timers, 0);
    for (int i = 0; i < 100; i++)
        weir__timers_start(&timers, &nodes[i], SECOND + i);
    weir__timers_stop(&timers, &nodes[0]);
    assert_true(weir__timers_next(&timers) <= SECOND + 1);
    assert_ptr_equal(weir__timers_expire(&timers, 2 * SECOND), &nodes[1]);
    assert_next(&timers, SECOND + 2);
}

TEST(timers, stopped_in_a_crowded_slot_do_not_keep_the_sleeper_awake)
{
    weir__timers timers;
    weir_timer_node nodes[100] = {{0}};
    int64_t next_ns;

    weir__timers_init(&timers, 0);
    for (int i = 0; i < 100; i++)
        weir__timers_start(&timers, &nodes[i], SECOND + i);
    weir__timers_stop(&timers, &nodes[0]);
    next_ns = weir__timers_next(&timers);
    for (int i = 1; i < 100; i++)
        weir__timers_stop(&timers, &nodes[i]);
    assert_null(weir__timers_expire(&timers, next_ns));
    assert_next(&timers, WEIR_NEVER);
}

/*
 * Random steps. A trial stores the expected state of each node, and finds the next timer by
 * scanning all of them.
 */

#define TRIAL_TIMERS_MAX 400
#define TRIAL_STEPS 250000

struct subject {
    weir_timer_node node;
    bool running;
    int64_t at_ns;
    uint64_t started; /* order of start */
};

struct trial {
    weir__timers timers;
    weir__random random;
    uint64_t seed;
    int step;
    int64_t now_ns;
    uint64_t starts;
    size_t running;
    size_t subject_count;
    int64_t (*draw_duration)(struct trial *trial);
    struct subject subjects[TRIAL_TIMERS_MAX];
};

static int64_t draw(struct trial *trial, int64_t limit)
{
    return (int64_t)weir__random_below(&trial->random, (uint64_t)limit);
}

static void require(struct trial *trial, bool holds, const char *what)
{
    if (!holds)
        fail_msg("not true that %s: WEIR_SEED=%llu, step %d", what, (unsigned long long)trial->seed,
                 trial->step);
}

static struct subject *draw_subject(struct trial *trial)
{
    return &trial->subjects[draw(trial, (int64_t)trial->subject_count)];
}

static bool is_before(const struct subject *a, const struct subject *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->started < b->started);
}

static struct subject *first_running(struct trial *trial)
{
    struct subject *first = NULL;

    for (size_t i = 0; i < trial->subject_count; i++) {
        struct subject *candidate = &trial->subjects[i];

        if (candidate->running && (first == NULL || is_before(candidate, first)))
            first = candidate;
    }
    return first;
}

static void start(struct trial *trial, struct subject *subject, int64_t at_ns)
{
    weir__timers_start(&trial->timers, &subject->node, at_ns);
    trial->running += !subject->running;
    subject->running = true;
    subject->at_ns = at_ns > 0 ? at_ns : 0;
    subject->started = trial->starts++;
}

/* Its deadline counts from the time of the next resolve. */
static void start_after(struct trial *trial, struct subject *subject, int64_t delay_ns)
{
    weir__timers_start_after(&trial->timers, &subject->node, delay_ns);
    trial->running += !subject->running;
    subject->running = true;
    subject->at_ns = trial->now_ns + delay_ns;
    subject->started = trial->starts++;
}

static void resolve(struct trial *trial)
{
    weir__timers_resolve(&trial->timers, trial->now_ns);
}

static void step_start(struct trial *trial)
{
    struct subject *subject = draw_subject(trial);
    int64_t duration_ns = trial->draw_duration(trial);

    switch (draw(trial, 16)) {
    case 0:
        start(trial, subject, trial->now_ns - duration_ns);
        break;
    case 1:
        start(trial, subject, trial->now_ns);
        break;
    case 2:
        start(trial, subject, WEIR_NEVER);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        start_after(trial, subject, duration_ns);
        break;
    default:
        start(trial, subject, trial->now_ns + duration_ns);
    }
}

static void step_postpone(struct trial *trial)
{
    struct subject *subject = draw_subject(trial);
    int64_t duration_ns = trial->draw_duration(trial);

    if (subject->running && subject->at_ns < WEIR_NEVER - duration_ns)
        start(trial, subject, subject->at_ns + duration_ns);
}

static void step_stop(struct trial *trial)
{
    struct subject *subject = draw_subject(trial);

    weir__timers_stop(&trial->timers, &subject->node);
    trial->running -= subject->running;
    subject->running = false;
}

static void step_next(struct trial *trial)
{
    struct subject *first = first_running(trial);
    int64_t next_ns;

    resolve(trial);
    next_ns = weir__timers_next(&trial->timers);
    if (first == NULL)
        require(trial, next_ns == WEIR_NEVER, "next is never without timers");
    else if (trial->running <= 4)
        require(trial, next_ns == first->at_ns, "next is exact with few timers");
    else
        require(trial, next_ns <= first->at_ns, "next is not late");
}

static int64_t draw_now(struct trial *trial)
{
    struct subject *first = first_running(trial);
    int64_t to_ns = trial->now_ns;

    switch (draw(trial, 4)) {
    case 0:
        to_ns += trial->draw_duration(trial) >> draw(trial, 10);
        break;
    case 1:
        to_ns = weir__timers_next(&trial->timers);
        break;
    case 2:
        to_ns = first != NULL ? first->at_ns : to_ns;
        break;
    default:
        to_ns = first != NULL ? first->at_ns - 1 : to_ns;
    }
    return to_ns > trial->now_ns && to_ns < WEIR_NEVER / 2 ? to_ns : trial->now_ns;
}

static void change_something(struct trial *trial)
{
    switch (draw(trial, 8)) {
    case 0:
    case 1:
        step_start(trial);
        break;
    case 2:
        step_postpone(trial);
        break;
    default:
        step_stop(trial);
    }
}

static void expire_all(struct trial *trial, int64_t now_ns)
{
    weir_timer_node *node;

    for (;;) {
        struct subject *first = first_running(trial);

        resolve(trial);
        node = weir__timers_expire(&trial->timers, now_ns);
        if (first == NULL || first->at_ns > now_ns)
            break;
        require(trial, node == &first->node, "the first timer due is handed out");
        require(trial, !weir__timers_is_linked(node), "a timer handed out is not filed");
        first->running = false;
        trial->running--;
        if (draw(trial, 2) == 0)
            change_something(trial);
    }
    require(trial, node == NULL, "no timer is early");
    require(trial, weir__timers_next(&trial->timers) > now_ns, "next lies ahead");
}

static void step_expire(struct trial *trial)
{
    resolve(trial);
    if (draw(trial, 16) == 0)
        expire_all(trial,
                   trial->now_ns - trial->draw_duration(trial)); /* the clock went backwards */
    trial->now_ns = draw_now(trial);
    expire_all(trial, trial->now_ns);
}

static void step(struct trial *trial)
{
    switch (draw(trial, 8)) {
    case 0:
    case 1:
    case 2:
        step_start(trial);
        break;
    case 3:
    case 4:
        step_postpone(trial);
        break;
    case 5:
        step_stop(trial);
        break;
    case 6:
        step_next(trial);
        break;
    default:
        step_expire(trial);
    }
    require(trial, weir__timers_count(&trial->timers) == trial->running, "the count is exact");
}

static void take_all(struct trial *trial)
{
    weir_timer_node *node;

    while ((node = weir__timers_pop_any(&trial->timers)) != NULL) {
        struct subject *taken = WEIR_CONTAINER_OF(node, struct subject, node);

        require(trial, taken->running, "only a running timer is taken");
        taken->running = false;
        trial->running--;
    }
    require(trial, trial->running == 0, "all timers were taken");
}

static void run_trial(size_t subject_count, int64_t (*draw_duration)(struct trial *trial))
{
    static struct trial trial; /* too large for some stacks */

    trial = (struct trial){
        .seed = weir__random_process_seed(),
        .subject_count = subject_count,
        .draw_duration = draw_duration,
    };
    weir__random_init(&trial.random, trial.seed);
    trial.now_ns = draw(&trial, YEAR);
    weir__timers_init(&trial.timers, trial.now_ns);
    for (trial.step = 0; trial.step < TRIAL_STEPS; trial.step++)
        step(&trial);
    take_all(&trial);
}

/* Durations of every order of magnitude, from 0 to 46 days. */
static int64_t draw_any_duration(struct trial *trial)
{
    int64_t duration_ns = draw(trial, INT64_C(1) << draw(trial, 53));

    return duration_ns < 46 * DAY ? duration_ns : 46 * DAY;
}

static int64_t draw_short_duration(struct trial *trial)
{
    return draw(trial, 3 * MS);
}

/* One of a few times, so that very many timers share a slot or a nanosecond. */
static int64_t draw_crowded_duration(struct trial *trial)
{
    int64_t grain_ns = INT64_C(1) << (draw(trial, 2) == 0 ? 20 : 28);
    int64_t moment_ns = (trial->now_ns / grain_ns + draw(trial, 4)) * grain_ns + draw(trial, 3);

    return moment_ns > trial->now_ns ? moment_ns - trial->now_ns : 0;
}

TEST(timers, agree_with_a_scan_when_few_and_of_any_duration)
{
    run_trial(6, draw_any_duration);
}

TEST(timers, agree_with_a_scan_when_many_and_of_any_duration)
{
    run_trial(TRIAL_TIMERS_MAX, draw_any_duration);
}

TEST(timers, agree_with_a_scan_when_many_and_short)
{
    run_trial(TRIAL_TIMERS_MAX, draw_short_duration);
}

TEST(timers, agree_with_a_scan_when_crowded)
{
    run_trial(TRIAL_TIMERS_MAX, draw_crowded_duration);
}
