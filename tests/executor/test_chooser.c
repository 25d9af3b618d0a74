/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choosers of the library, except autoscaling: see test_autoscale.c.
 */
#include "support/test.h"

#include <stdatomic.h>

#include "executor/group.h"
#include "os/random.h"
#include "support/executor/call_counter.h"
#include "support/executor/gate.h"
#include "support/executor/plain_group.h"
#include "support/executor/run_on_thread.h"

#define MEMBERS_MAX 9

static weir_group *make_group(int threads, const weir_chooser *chooser)
{
    weir_group *group = NULL;

    assert_int_equal(
        plain_group_create(
            WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = threads, .chooser = chooser), &group),
        0);
    return group;
}

/* The number of the member that is next. */
static size_t next_index(weir_group *group)
{
    const weir_executor *next = weir_group_next(group);

    for (size_t i = 0; i < weir_group_count(group); i++)
        if (weir_group_at(group, i) == next)
            return i;
    fail_msg("not a member");
    return SIZE_MAX;
}

/* ---- round robin ---- */

static _Atomic uint64_t *turn_of(weir_group *group)
{
    return weir__group_chooser_state(group);
}

TEST(chooser, round_robin_picks_each_in_turn)
{
    for (int count = 1; count <= MEMBERS_MAX; count++) {
        weir_group *group = make_group(count, weir_chooser_round_robin());

        for (size_t i = 0; i < 3 * (size_t)count; i++)
            assert_int_equal(next_index(group), i % (size_t)count);
        weir_group_release(group);
    }
}

TEST(chooser, round_robin_is_the_default)
{
    weir_group *group = make_group(3, NULL);

    for (size_t i = 0; i < 6; i++)
        assert_int_equal(next_index(group), i % 3);
    weir_group_release(group);
}

/* A 32-bit counter would wrap here, and pick some members twice in a row. */
TEST(chooser, round_robin_does_not_wrap_at_32_bits)
{
    for (int count = 1; count <= MEMBERS_MAX; count++) {
        weir_group *group = make_group(count, weir_chooser_round_robin());
        uint64_t turn = UINT32_MAX - 5;

        atomic_store(turn_of(group), turn);
        for (; turn < UINT64_C(1) + UINT32_MAX + 10; turn++)
            assert_int_equal(next_index(group), turn % (size_t)count);
        weir_group_release(group);
    }
}

TEST(chooser, round_robin_over_a_power_of_two_survives_a_wrap_at_64_bits)
{
    for (int count = 1; count <= 8; count *= 2) {
        weir_group *group = make_group(count, weir_chooser_round_robin());
        uint64_t turn = UINT64_MAX - 5;

        atomic_store(turn_of(group), turn);
        for (int i = 0; i < 16; i++, turn++)
            assert_int_equal(next_index(group), turn % (size_t)count);
        weir_group_release(group);
    }
}

struct resolve_caller {
    weir__thread thread;
    weir_group *group;
    unsigned visits[MEMBERS_MAX];
};

static void resolve_often(void *arg)
{
    struct resolve_caller *resolve_caller = arg;

    for (int i = 0; i < 3000; i++) {
        const weir_executor *next = weir_group_next(resolve_caller->group);

        for (size_t j = 0; j < weir_group_count(resolve_caller->group); j++)
            resolve_caller->visits[j] += weir_group_at(resolve_caller->group, j) == next;
    }
}

static void resolve_on_four_threads(weir_group *group, unsigned visits[MEMBERS_MAX])
{
    struct resolve_caller askers[4] = {0};

    for (int i = 0; i < 4; i++) {
        askers[i].group = group;
        assert_int_equal(weir__thread_start("asker", resolve_often, &askers[i], &askers[i].thread),
                         0);
    }
    for (int i = 0; i < 4; i++) {
        weir__thread_join(&askers[i].thread);
        for (size_t j = 0; j < weir_group_count(group); j++)
            visits[j] += askers[i].visits[j];
    }
}

TEST(chooser, round_robin_is_fair_to_the_last_one_from_several_threads)
{
    for (int count = 2; count <= 5; count++) {
        unsigned visits[MEMBERS_MAX] = {0};
        weir_group *group = make_group(count, weir_chooser_round_robin());

        resolve_on_four_threads(group, visits);
        for (int i = 0; i < count; i++)
            assert_int_equal(visits[i], 12000 / count);
        weir_group_release(group);
    }
}

/* ---- by handles ---- */

static uint64_t handles[MEMBERS_MAX];

/* Members are named NAME-1, NAME-2, ... */
static uint64_t handles_of(const weir_executor *executor)
{
    return handles[executor->name[5] - '1'];
}

TEST(chooser, least_handles_picks_the_one_with_the_fewest)
{
    static weir__executor_type type;
    weir_group *group = NULL;

    type = weir__plain_type;
    type.handles = handles_of;
    assert_int_equal(weir__group_create(&type, NULL,
                                        WEIR_GROUP_OPTIONS(.threads = 4, .name = "weir",
                                                           .chooser = weir_chooser_least_handles()),
                                        &group),
                     0);
    for (size_t least = 0; least < 4; least++) {
        for (size_t i = 0; i < 4; i++)
            handles[i] = i == least ? 3 : 4 + i;
        for (int i = 0; i < 5; i++)
            assert_int_equal(next_index(group), least);
    }
    for (size_t i = 0; i < 4; i++)
        handles[i] = 7;
    for (size_t first = next_index(group), i = 1; i < 8; i++)
        assert_int_equal(next_index(group), (first + i) % 4);
    weir_group_release(group);
}

/* ---- by CPU ---- */

struct membership {
    weir_group *group;
    int cpu;
    size_t seen[6];
};

static void choose_on_cpu(void *arg)
{
    struct membership *membership = arg;

    if (weir__thread_set_affinity(membership->cpu) < 0)
        return;
    for (size_t i = 0; i < 6; i++)
        membership->seen[i] = next_index(membership->group);
}

TEST(chooser, by_cpu_picks_one_pinned_to_the_callers_cpu)
{
    const int cpus[] = {weir__cpu_nth(0), weir__cpu_nth(1)};
    struct membership membership = {0};

    if (cpus[0] == cpus[1])
        WEIR_TEST_SKIP("there is only one CPU");
    assert_int_equal(
        plain_group_create(WEIR_GROUP_OPTIONS(.threads = 4, .pin = true, .cpus = cpus,
                                              .cpu_count = 2, .chooser = weir_chooser_by_cpu()),
                           &membership.group),
        0);
    for (size_t cpu = 0; cpu < 2; cpu++) {
        membership.cpu = cpus[cpu];
        run_on_other_thread(choose_on_cpu, &membership);
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(membership.seen[i] % 2, cpu);
    }
    weir_group_release(membership.group);
}

TEST(chooser, by_cpu_is_round_robin_where_no_member_is_pinned)
{
    weir_group *group = make_group(3, weir_chooser_by_cpu());

    for (size_t i = 0; i < 6; i++)
        assert_int_equal(next_index(group), i % 3);
    weir_group_release(group);
}

/* ---- by load ---- */

/* Holds every member at the gate and queues these numbers of tasks behind it. */
static void load(weir_group *group, struct gate *gate, struct call_counter *counter,
                 const int *pending)
{
    for (size_t i = 0; i < weir_group_count(group); i++) {
        assert_int_equal(weir_execute(weir_group_at(group, i), gate_task, gate), 0);
        assert_true(gate_await_arrivals(gate, (uint32_t)i + 1));
        for (int j = 0; j < pending[i]; j++)
            assert_int_equal(weir_execute(weir_group_at(group, i), call_counter_task, counter), 0);
    }
}

static void unload(weir_group *group, struct gate *gate)
{
    gate_open(gate);
    weir_group_release(group);
}

TEST(chooser, least_pending_picks_the_one_with_the_fewest_tasks)
{
    static const int pending[] = {5, 2, 9, 3};
    struct call_counter counter = {0};
    struct gate gate = {0};
    weir_group *group = make_group(4, weir_chooser_least_pending());

    load(group, &gate, &counter, pending);
    for (int i = 0; i < 9; i++)
        assert_int_equal(next_index(group), 1);

    /* With one more task it is level with the last one, so they alternate. */
    assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    assert_int_equal(weir_executor_pending(weir_group_at(group, 1)), 4);
    assert_int_equal(weir_executor_pending(weir_group_at(group, 3)), 4);
    unload(group, &gate);
    assert_int_equal(atomic_load(&counter.run), 5 + 2 + 9 + 3 + 3);
}

TEST(chooser, least_pending_goes_round_among_equals)
{
    unsigned visits[3] = {0};
    weir_group *group = make_group(3, weir_chooser_least_pending());

    for (int i = 0; i < 30; i++)
        visits[next_index(group)]++;
    for (int i = 0; i < 3; i++)
        assert_int_equal(visits[i], 10);
    weir_group_release(group);
}

TEST(chooser, least_pending_levels_a_load_out)
{
    static const int nothing[] = {0, 0, 0, 0};
    struct call_counter counter = {0};
    struct gate gate = {0};
    weir_group *group = make_group(4, weir_chooser_least_pending());

    load(group, &gate, &counter, nothing);
    for (int i = 0; i < 40; i++)
        assert_int_equal(weir_group_execute(group, call_counter_task, &counter), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(weir_executor_pending(weir_group_at(group, i)), 10);
    unload(group, &gate);
}

TEST(chooser, two_choices_of_two_takes_the_one_with_fewer_tasks)
{
    static const int pending[] = {1, 3};
    struct call_counter counter = {0};
    struct gate gate = {0};
    weir_group *group = make_group(2, weir_chooser_two_choices());

    load(group, &gate, &counter, pending);
    for (int i = 0; i < 100; i++)
        assert_int_equal(next_index(group), 0);
    unload(group, &gate);
}

TEST(chooser, two_choices_never_takes_the_most_loaded_one)
{
    static const int pending[] = {2, 7, 2, 1, 2};
    struct call_counter counter = {0};
    struct gate gate = {0};
    unsigned visits[5] = {0};
    weir_group *group = make_group(5, weir_chooser_two_choices());

    print_message("WEIR_SEED=%#llx\n", (unsigned long long)weir__random_process_seed());
    load(group, &gate, &counter, pending);
    for (int i = 0; i < 2000; i++)
        visits[next_index(group)]++;
    assert_int_equal(visits[1], 0);
    /* The least loaded one is picked whenever it is drawn, 2 times in 5; 8 sigma are 176. */
    assert_in_range(visits[3], 800 - 176, 800 + 176);
    assert_int_equal(visits[0] + visits[2] + visits[3] + visits[4], 2000);
    unload(group, &gate);
}

/* Equal queues; the thread at the gate is awake while time passes. */
TEST(chooser, two_choices_between_equal_queues_takes_the_one_that_is_less_busy)
{
    struct gate gate = {0};
    weir_manual_clock *clock;
    weir_group *group;

    assert_int_equal(weir_manual_clock_create(0, &clock), 0);
    assert_int_equal(plain_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 2,
                                                           .chooser = weir_chooser_two_choices(),
                                                           .clock = weir_manual_clock_clock(clock)),
                                        &group),
                     0);
    gate_hold(&gate, weir_group_at(group, 1));
    assert_int_equal(weir_manual_clock_advance(clock, weir_ms(500)), 0);
    assert_int_equal(weir_executor_pending(weir_group_at(group, 1)), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(next_index(group), 0);
    unload(group, &gate);
    weir_manual_clock_release(clock);
}

TEST(chooser, two_choices_of_one_is_that_one)
{
    weir_group *group = make_group(1, weir_chooser_two_choices());

    assert_int_equal(next_index(group), 0);
    assert_int_equal(next_index(group), 0);
    weir_group_release(group);
}

struct submitter {
    weir__thread thread;
    weir_group *group;
    struct call_counter *counter;
};

static void submit_often(void *arg)
{
    struct submitter *submitter = arg;

    for (int i = 0; i < 2000; i++)
        if (weir_group_execute(submitter->group, call_counter_task, submitter->counter) < 0)
            return; /* checked by the count */
}

TEST(chooser, all_of_them_serve_several_threads_at_once)
{
    const weir_chooser *choosers[] = {weir_chooser_round_robin(), weir_chooser_least_pending(),
                                      weir_chooser_two_choices()};

    for (size_t i = 0; i < sizeof(choosers) / sizeof(choosers[0]); i++) {
        struct submitter submitters[3];
        struct call_counter counter = {0};
        weir_group *group = make_group(3, choosers[i]);

        for (int j = 0; j < 3; j++) {
            submitters[j].group = group;
            submitters[j].counter = &counter;
            assert_int_equal(weir__thread_start("submitter", submit_often, &submitters[j],
                                                &submitters[j].thread),
                             0);
        }
        for (int j = 0; j < 3; j++)
            weir__thread_join(&submitters[j].thread);
        weir_group_release(group);
        assert_int_equal(atomic_load(&counter.run), 6000);
    }
}
