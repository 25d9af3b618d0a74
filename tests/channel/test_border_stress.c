/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of events between two handlers on one executor while others are added and removed
 * between them.
 */
#include "channel/border.h"

#include <stdlib.h>

#include "os/random.h"
#include "support/channel/test_channel.h"
#include "support/executor/call_counter.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"

#define ROUNDS 20
#define NUMBERS 400
#define BETWEEN 3 /* handlers that are added and removed */

/* ---- numbers ---- */

struct number {
    weir_msg msg;
    unsigned value;
};

static void on_destroy(weir_msg *msg)
{
    free(msg);
}

static const weir_msg_type number_type = {.name = "number", .destroy = on_destroy};

static weir_msg *number(unsigned value)
{
    struct number *made = malloc(sizeof(*made));

    weir_msg_init(&made->msg, &number_type);
    made->value = value;
    return &made->msg;
}

/* ---- handlers ---- */

/* The numbers that have arrived in one direction. */
struct order {
    unsigned expected;
    unsigned wrong;
    struct call_counter seen;
};

static void check_order(struct order *order, weir_msg *msg)
{
    const struct number *came = (const struct number *)msg;

    order->wrong += came->value != order->expected;
    order->expected = came->value + 1;
    weir_msg_release(msg);
    call_counter_add(&order->seen);
}

static struct order in, out;

static void check_event(weir_ctx *ctx, weir_msg *event)
{
    (void)ctx;
    check_order(&in, event);
}

static void check_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    (void)ctx;
    (void)done;
    check_order(&out, msg);
}

static void pass_event(weir_ctx *ctx, weir_msg *event)
{
    weir_fire_event(ctx, event);
}

static void pass_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_write(ctx, msg, done);
}

static const weir_handler front = {.name = "front", .event = pass_event, .write = check_write};
static const weir_handler back = {.name = "back", .event = check_event, .write = pass_write};
static const weir_handler passer = {.name = "passer", .event = pass_event, .write = pass_write};

/* ---- load ---- */

/* Adds or removes a handler between the two: on the loop, on their executor or on another. */
static void change(weir_channel *channel, weir_group *const groups[], weir__random *random)
{
    static const char *const names[BETWEEN] = {"x", "y", "z"};
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    const char *name = names[weir__random_below(random, BETWEEN)];
    weir_group *group = groups[weir__random_below(random, 3)];

    if (weir__random_below(random, 2) == 0)
        (void)weir_pipeline_remove(pipeline, name, NULL);
    else
        IGNORE_RESULT(weir_pipeline_add(
            pipeline, WEIR_PLACE(.name = name, .after = "front", .group = group), &passer, NULL));
}

static void run_load(weir_channel *channel, weir_group *const groups[], uint64_t seed)
{
    weir__random random;

    weir__random_init(&random, seed);
    in = (struct order){0};
    out = (struct order){0};
    for (unsigned i = 0; i < NUMBERS; i++) {
        weir_channel_fire_event(channel, number(i));
        weir_channel_write(channel, number(i), NULL);
        if (weir__random_below(&random, 4) == 0)
            change(channel, groups, &random);
        if (weir__random_below(&random, 16) == 0)
            (void)call_counter_await(&in.seen, i + 1);
    }
    weir_channel_flush(channel); /* a write alone does not wake the loop */
}

TEST(border, keeps_the_order_while_others_are_added_and_removed)
{
    weir_group *loops = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1)),
               *groups[] = {NULL, make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1)),
                            make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1))};
    static struct event_log events;
    weir_channel *channel;

    log_capture_start(); /* changes that fail are logged */
    event_log_open(&events);
    for (unsigned round = 0; round < ROUNDS; round++) {
        assert_int_equal(
            wire_create(&events, &(struct wire_options){.silent = true}, NULL, NULL, &channel), 0);
        assert_int_equal(weir_pipeline_add(weir_channel_pipeline(channel),
                                           WEIR_PLACE(.group = groups[1]), &front, NULL),
                         0);
        assert_int_equal(weir_pipeline_add(weir_channel_pipeline(channel),
                                           WEIR_PLACE(.group = groups[1]), &back, NULL),
                         0);
        weir_channel_register(channel, weir_group_at(loops, 0), NULL);
        run_load(channel, groups, round);
        assert_true(call_counter_await(&in.seen, NUMBERS));
        assert_true(call_counter_await(&out.seen, NUMBERS));
        assert_int_equal(in.wrong, 0);
        assert_int_equal(out.wrong, 0);
        weir_channel_abort(channel, NULL);
        assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
        weir_channel_release(channel);
    }
    end_group(groups[1]);
    end_group(groups[2]);
    end_group(loops);
    global_executor_stop();
    event_log_close(&events);
}
