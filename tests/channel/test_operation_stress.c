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

#define STRESS_THREADS 8
#define STRESS_ROUNDS 40
#define STRESS_CALLS 60

static _Atomic int live_messages;
static _Atomic int live_handlers;
static _Atomic int unpaired; /* beginnings whose end a witness has not heard */

static void on_destroy(weir_msg *msg)
{
    atomic_fetch_sub(&live_messages, 1);
    free(msg);
}

static const weir_msg_type stress_type = {.name = "stress", .destroy = on_destroy};

static weir_msg *stress_msg(void)
{
    weir_msg *msg = malloc(sizeof(*msg));

    weir_msg_init(msg, &stress_type);
    atomic_fetch_add(&live_messages, 1);
    return msg;
}

struct stress {
    weir_channel *channel;
    weir_group *loops;
    weir_group *others; /* what handlers run on */
    struct call_counter promises;
    _Atomic uint32_t promised;
    uint64_t seed;
};

static void count_promise(weir_promise *promise, void *arg)
{
    (void)promise;
    call_counter_add(arg);
}

static weir_promise *stress_promise(struct stress *stress, uint64_t dice)
{
    weir_promise *promise;

    if (dice % 2 == 0 || weir_promise_create(NULL, &promise) < 0)
        return NULL;
    atomic_fetch_add(&stress->promised, 1);
    IGNORE_RESULT(weir_promise_add_listener(promise, count_promise, &stress->promises));
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

static void add_witnesses(struct stress *stress)
{
    weir_pipeline *pipeline = weir_channel_pipeline(stress->channel);
    weir_group *groups[] = {NULL, stress->others, NULL, stress->others, NULL};

    for (unsigned i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        assert_int_equal(
            weir_pipeline_add(pipeline, WEIR_PLACE(.group = groups[i]), &witness, NULL), 0);
}

static void random_write(struct stress *stress, weir__random *random, weir_promise *done)
{
    if (weir__random_below(random, 2) == 0)
        weir_channel_write(stress->channel, stress_msg(), done);
    else
        weir_channel_write_and_flush(stress->channel, stress_msg(), done);
}

static void random_call(struct stress *stress, weir__random *random)
{
    weir_promise *done = stress_promise(stress, weir__random_next(random));
    weir_channel *channel = stress->channel;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    weir_channel_options options;
    uint64_t dice = weir__random_next(random);
    bool used = true;

    switch (dice / 16 % 16) {
    case 0:
        weir_channel_close(channel, done);
        break;
    case 1:
        weir_channel_register(channel, weir_group_at(stress->loops, weir__random_below(random, 2)),
                              done);
        break;
    case 2:
        weir_channel_deregister(channel, done);
        break;
    case 3:
        used = weir_pipeline_add(pipeline,
                                 WEIR_PLACE(.done = done, .group = dice % 2 ? stress->others : NULL,
                                            .first = dice % 4 < 2),
                                 &passer, NULL) == 0;
        break;
    case 4:
        used = weir_pipeline_remove(pipeline, dice % 2 ? "passer" : "passer#2", done) == 0;
        break;
    case 5:
    case 6:
        weir_channel_get_options(channel, &options);
        (void)weir_channel_set_options(channel, WEIR_CHANNEL_OPTIONS(.high_mark = 500));
        used = false;
        break;
    case 7:
        weir_channel_fire_event(channel, stress_msg());
        used = false;
        break;
    case 8:
        weir_channel_set_auto_read(channel, weir__random_below(random, 2) == 0);
        used = false;
        break;
    case 9:
        (void)weir_channel_set_user_writable(channel, 3, weir__random_below(random, 2) == 0);
        used = false;
        break;
    case 10:
        (void)weir_channel_closed(channel);
        used = false;
        break;
    case 11:
        weir_channel_shutdown_input(channel, done);
        break;
    case 12:
        weir_channel_shutdown_output(channel, done);
        break;
    case 13:
        weir_channel_flush(channel);
        weir_channel_request_read(channel);
        used = false;
        break;
    default:
        random_write(stress, random, done);
    }
    if (!used && done != NULL)
        (void)weir_promise_cancel(done);
    weir_promise_release(done);
}

static void stress_thread(void *arg)
{
    struct stress *stress = arg;
    weir__random random;

    weir__random_init(&random, stress->seed + (uintptr_t)&random);
    for (int i = 0; i < STRESS_CALLS; i++)
        random_call(stress, &random);
    weir_channel_release(stress->channel);
}

TEST(operation, of_many_threads_on_a_channel_that_closes_ends_well)
{
    weir_group *loops = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2)),
               *others = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    static struct event_log events;

    log_capture_start();
    event_log_open(&events);
    for (int round = 0; round < STRESS_ROUNDS; round++) {
        struct stress stress = {.loops = loops, .others = others, .seed = (uint64_t)round};
        weir__thread threads[STRESS_THREADS];

        assert_int_equal(wire_create(&events, &(struct wire_options){.silent = true}, NULL, NULL,
                                     &stress.channel),
                         0);
        add_witnesses(&stress);
        weir_channel_register(stress.channel, weir_group_at(loops, 0), NULL);
        for (int i = 0; i < STRESS_THREADS; i++) {
            weir_channel_retain(stress.channel);
            assert_int_equal(weir__thread_start("stress", stress_thread, &stress, &threads[i]), 0);
        }
        for (int i = 0; i < STRESS_THREADS; i++)
            weir__thread_join(&threads[i]);
        weir_channel_abort(stress.channel, NULL);
        assert_int_equal(weir_channel_await_closed(stress.channel, TEST_TIMEOUT_NS), 0);
        weir_channel_release(stress.channel);
        assert_true(call_counter_await(&stress.promises, atomic_load(&stress.promised)));
    }
    end_group(others);
    end_group(loops);
    global_executor_stop();
    event_log_close(&events);
    assert_int_equal(atomic_load(&live_messages), 0);
    assert_int_equal(atomic_load(&live_handlers), 0);
    assert_int_equal(atomic_load(&unpaired), 0);
}
