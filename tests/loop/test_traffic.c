/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random traffic, on each backend: whatever the order of sends, pauses, stops, single reads, moves,
 * rebuilds and closes, every byte arrives. The soak runs the same for longer.
 */
#include <stdio.h>

#include "support/loop/suite.h"
#include "support/loop/traffic.h"
#include "support/property.h"

#define RUNS 40
#define STEPS 80

/* What stands outside of a run: the backend, and what was wrong at the end of one. */
static const struct backend *under_test;
static char end_complaint[200];

struct run {
    struct driver driver;
    struct traffic traffic;
    bool open;
};

static void begin_run(void *state)
{
    struct run *run = state;
    char reason[256];

    run->open = driver_open(&run->driver, under_test, reason, sizeof(reason)) == 0;
    if (run->open)
        traffic_open(&run->traffic, &run->driver);
}

static bool do_step(void *state, const struct property_step *step)
{
    struct run *run = state;
    bool fine;

    PROPERTY(run->open);
    fine = traffic_step(&run->traffic, (enum traffic_kind)step->kind, step->numbers);
    if (!fine)
        print_error("%s: %s\n", under_test->name, run->driver.failure);
    PROPERTY(fine);
    return true;
}

static void describe_step(const struct property_step *step, char *text, size_t size)
{
    traffic_describe((enum traffic_kind)step->kind, step->numbers, text, size);
}

/* Whatever is under way is closed: the driver sees whether something is left. */
static void end_run(void *state)
{
    struct run *run = state;
    bool was_fine = run->driver.failure[0] == '\0';
    const char *complaint = run->open ? driver_close(&run->driver) : NULL;

    if (complaint != NULL && was_fine)
        (void)snprintf(end_complaint, sizeof(end_complaint), "%s", complaint);
}

static const struct property every_byte_arrives = {
    .name = "traffic",
    .state_size = sizeof(struct run),
    .kinds = TRAFFIC_KINDS,
    .begin = begin_run,
    .step = do_step,
    .describe = describe_step,
    .end = end_run,
};

TEST_EACH_BACKEND(traffic, of_any_kind_loses_no_byte)
{
    under_test = driver->backend;
    end_complaint[0] = '\0';
    property_check(&every_byte_arrives, RUNS, STEPS);
    assert_string_equal(end_complaint, "");
}

/* Nothing but bytes, pauses and turns, and much of them. */
TEST_EACH_BACKEND(traffic, in_large_amounts_loses_no_byte)
{
    static const enum traffic_kind kinds[] = {TRAFFIC_SEND, TRAFFIC_TURN,        TRAFFIC_START,
                                              TRAFFIC_SEND, TRAFFIC_STOP_INSIDE, TRAFFIC_STOP,
                                              TRAFFIC_TURN, TRAFFIC_ONCE,        TRAFFIC_START};
    struct traffic traffic;
    uint32_t number = 1;

    traffic_open(&traffic, driver);
    for (unsigned i = 0; traffic_delivered(&traffic) < 16 << 20; i++) {
        const uint32_t numbers[3] = {number >> 7, i % 7 == 0 ? 17 : number >> 11, number >> 3};

        number = number * 1664525 + 1013904223;
        assert_true(i < 1000000);
        if (!traffic_step(&traffic, kinds[(number >> 16) % 9], numbers))
            fail_msg("%s: %s", driver->backend->name, driver->failure);
    }
    assert_true(traffic_settle(&traffic));
    assert_true(traffic_close(&traffic));
}
