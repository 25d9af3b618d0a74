/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on a channel from many threads, all at once.
 */
#include <stdlib.h>
#include <string.h>

#include "os/random.h"
#include "support/channel/test_channel.h"
#include "support/executor/call_counter.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"

#define STORM_THREADS 8
#define STORM_ROUNDS 40
#define STORM_CALLS 60

static _Atomic int live_messages;
static _Atomic int live_handlers;
static _Atomic int unpaired; /* beginnings whose end a witness has not heard */

static void on_destroy(weir_msg *msg)
{
    atomic_fetch_sub(&live_messages, 1);
    free(msg);
}

static const weir_msg_type storm_type = {.name = "storm", .destroy = on_destroy};

static weir_msg *storm_msg(void)
{
    weir_msg *msg = malloc(sizeof(*msg));

    weir_msg_init(msg, &storm_type);
    atomic_fetch_add(&live_messages, 1);
    return msg;
}

struct storm {
    weir_channel *channel;
    weir_group *loops;
    weir_group *others; /* what handlers run on */
    struct call_counter promises;
    _Atomic uint32_t promised;
    uint64_t seed;
};

static void hear(weir_promise *promise, void *arg)
{
    (void)promise;
    call_counter_add(arg);
}

static weir_promise *storm_promise(struct storm *storm, uint64_t dice)
{
    weir_promise *promise;

    if (dice % 2 == 0 || weir_promise_create(NULL, &promise) < 0)
        return NULL;
    atomic_fetch_add(&storm->promised, 1);
    IGNORE_RESULT(weir_promise_add_listener(promise, hear, &storm->promises));
    return promise;
}

static void pass_event(weir_ctx *ctx, weir_msg *event)
{
    weir_fire_event(ctx, event);
}

static void pass_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_write(ctx, msg, done);
}

static void pass_flush(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void count_added(weir_ctx *ctx)
{
    *(bool *)weir_ctx_state(ctx) = true;
    atomic_fetch_add(&live_handlers, 1);
}

static void count_removed(weir_ctx *ctx)
{
    if (*(bool *)weir_ctx_state(ctx)) /* never without the other */
        atomic_fetch_sub(&live_handlers, 1);
    else
        atomic_fetch_add(&live_handlers, 1000000);
}

static const weir_handler passer = {
    .name = "passer",
    .state_size = sizeof(bool),
    .added = count_added,
    .removed = count_removed,
    .event = pass_event,
    .write = pass_write,
    .flush = pass_flush,
};

/* Hears of the ends of what it has heard begin, before it is removed; wherever it stands. */
struct witness {
    int registered;
    int active;
};

static void on_registered(weir_ctx *ctx)
{
    ((struct witness *)weir_ctx_state(ctx))->registered++;
    weir_fire_registered(ctx);
}

static void on_unregistered(weir_ctx *ctx)
{
    ((struct witness *)weir_ctx_state(ctx))->registered--;
    weir_fire_unregistered(ctx);
}

static void on_active(weir_ctx *ctx)
{
    ((struct witness *)weir_ctx_state(ctx))->active++;
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    ((struct witness *)weir_ctx_state(ctx))->active--;
    weir_fire_inactive(ctx);
}

static void look_back(weir_ctx *ctx)
{
    const struct witness *self = weir_ctx_state(ctx);

    if (self->registered != 0 || self->active != 0)
        atomic_fetch_add(&unpaired, 1);
}

static const weir_handler witness = {
    .name = "witness",
    .state_size = sizeof(struct witness),
    .removed = look_back,
    .registered = on_registered,
    .unregistered = on_unregistered,
    .active = on_active,
    .inactive = on_inactive,
};

static void add_witnesses(struct storm *storm)
{
    weir_pipeline *pipeline = weir_channel_pipeline(storm->channel);
    weir_group *groups[] = {NULL, storm->others, NULL, storm->others, NULL};

    for (unsigned i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        assert_int_equal(
            weir_pipeline_add(pipeline, WEIR_PLACE(.group = groups[i]), &witness, NULL), 0);
}

static void say(struct storm *storm, weir__random *random, weir_promise *done)
{
    if (weir__random_below(random, 2) == 0)
        weir_channel_write(storm->channel, storm_msg(), done);
    else
        weir_channel_write_and_flush(storm->channel, storm_msg(), done);
}

static void blow(struct storm *storm, weir__random *random)
{
    weir_promise *done = storm_promise(storm, weir__random_next(random));
    weir_pipeline *pipeline = weir_channel_pipeline(storm->channel);
    weir_channel_options options;
    uint64_t dice = weir__random_next(random);
    bool used = true;

    switch (dice / 16 % 16) {
    case 0:
        weir_channel_close(storm->channel, done);
        break;
    case 1:
        weir_channel_register(storm->channel,
                              weir_group_at(storm->loops, weir__random_below(random, 2)), done);
        break;
    case 2:
        weir_channel_deregister(storm->channel, done);
        break;
    case 3:
        used = weir_pipeline_add(pipeline,
                                 WEIR_PLACE(.done = done, .group = dice % 2 ? storm->others : NULL,
                                            .first = dice % 4 < 2),
                                 &passer, NULL) == 0;
        break;
    case 4:
        used = weir_pipeline_remove(pipeline, dice % 2 ? "passer" : "passer#2", done) == 0;
        break;
    case 5:
        weir_channel_get_options(storm->channel, &options);
        used = false;
        break;
    case 6:
        (void)weir_channel_set_options(storm->channel, WEIR_CHANNEL_OPTIONS(.high_mark = 500));
        used = false;
        break;
    case 7:
        weir_channel_fire_event(storm->channel, storm_msg());
        used = false;
        break;
    case 8:
        weir_channel_set_auto_read(storm->channel, weir__random_below(random, 2) == 0);
        used = false;
        break;
    case 9:
        (void)weir_channel_set_user_writable(storm->channel, 3, weir__random_below(random, 2) == 0);
        used = false;
        break;
    case 10:
        (void)weir_channel_closed(storm->channel);
        used = false;
        break;
    case 11:
        weir_channel_shutdown_input(storm->channel, done);
        break;
    case 12:
        weir_channel_shutdown_output(storm->channel, done);
        break;
    case 13:
        weir_channel_flush(storm->channel);
        weir_channel_request_read(storm->channel);
        used = false;
        break;
    default:
        say(storm, random, done);
    }
    if (!used && done != NULL)
        (void)weir_promise_cancel(done);
    weir_promise_release(done);
}

static void storm_thread(void *arg)
{
    struct storm *storm = arg;
    weir__random random;

    weir__random_init(&random, storm->seed + (uintptr_t)&random);
    for (int i = 0; i < STORM_CALLS; i++)
        blow(storm, &random);
    weir_channel_release(storm->channel);
}

/* D 56 */
TEST(operation, of_many_threads_on_a_channel_that_closes_ends_well)
{
    weir_group *loops = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2)),
               *others = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    static struct event_log events;

    log_capture_start();
    event_log_open(&events);
    for (int round = 0; round < STORM_ROUNDS; round++) {
        struct storm storm = {.loops = loops, .others = others, .seed = (uint64_t)round};
        weir__thread threads[STORM_THREADS];

        assert_int_equal(wire_create(&events, &(struct wire_options){.silent = true}, NULL, NULL,
                                     &storm.channel),
                         0);
        add_witnesses(&storm);
        weir_channel_register(storm.channel, weir_group_at(loops, 0), NULL);
        for (int i = 0; i < STORM_THREADS; i++) {
            weir_channel_retain(storm.channel);
            assert_int_equal(weir__thread_start("storm", storm_thread, &storm, &threads[i]), 0);
        }
        for (int i = 0; i < STORM_THREADS; i++)
            weir__thread_join(&threads[i]);
        weir_channel_abort(storm.channel, NULL);
        assert_int_equal(weir_channel_await_closed(storm.channel, TEST_TIMEOUT_NS), 0);
        weir_channel_release(storm.channel);
        assert_true(call_counter_await(&storm.promises, atomic_load(&storm.promised)));
    }
    end_group(others);
    end_group(loops);
    global_executor_stop();
    event_log_close(&events);
    assert_int_equal(atomic_load(&live_messages), 0);
    assert_int_equal(atomic_load(&live_handlers), 0);
    assert_int_equal(atomic_load(&unpaired), 0);
}
