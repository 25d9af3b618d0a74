/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages wait in a queue. What the handlers behind ask for while they are given something is seen
 * to by who gives, so that the stack does not grow with the queue.
 */
#include <weir/flow_control.h>

#include <errno.h>

#include <weir/channel.h>
#include <weir/ctx.h>
#include <weir/pipeline.h>

#include "channel/msg_queue.h"

struct flow_control {
    weir__msg_queue queue;
    bool is_wanted;     /* a message was asked for, and not given */
    bool is_giving;     /* somebody further out on the stack does */
    bool has_given;     /* since the last read_complete */
    bool owes_complete; /* read_complete, when what may pass has passed */
    bool owes_request;  /* a request, if there is nothing to be given */
};

static bool may_pass(weir_ctx *ctx)
{
    const struct flow_control *state = weir_ctx_state(ctx);

    return state->is_wanted || weir_channel_auto_read(weir_ctx_channel(ctx));
}

static void give(weir_ctx *ctx)
{
    struct flow_control *state = weir_ctx_state(ctx);

    while (!weir__msg_queue_is_empty(&state->queue) && may_pass(ctx)) {
        state->is_wanted = false;
        state->has_given = true;
        weir_fire_read(ctx, weir__msg_queue_pop(&state->queue));
    }
    if (state->owes_complete) {
        state->owes_complete = false;
        state->has_given = false;
        weir_fire_read_complete(ctx);
    }
}

/* Whether all that was asked for could be done: a request may come with each message. */
static bool is_settled(weir_ctx *ctx)
{
    const struct flow_control *state = weir_ctx_state(ctx);

    return !state->owes_complete && (weir__msg_queue_is_empty(&state->queue) || !may_pass(ctx));
}

static void run(weir_ctx *ctx)
{
    struct flow_control *state = weir_ctx_state(ctx);
    bool asks;

    if (state->is_giving)
        return;
    state->is_giving = true;
    do
        give(ctx);
    while (!is_settled(ctx));
    state->is_giving = false;
    asks = state->owes_request && weir__msg_queue_is_empty(&state->queue) && may_pass(ctx);
    state->owes_request = false;
    if (asks)
        weir_request_read(ctx);
}

/* ---- slots ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct flow_control *state = weir_ctx_state(ctx);

    if (!weir__msg_queue_push(&state->queue, msg)) {
        weir_msg_release(msg);
        weir_fire_error(ctx, -ENOMEM, "there is no memory to keep a message");
        return;
    }
    run(ctx);
}

/* With messages left the read is not complete for those behind, unless they have had some of it. */
static void on_read_complete(weir_ctx *ctx)
{
    struct flow_control *state = weir_ctx_state(ctx);

    if (weir__msg_queue_is_empty(&state->queue) || state->has_given)
        state->owes_complete = true;
    run(ctx);
}

static void on_request_read(weir_ctx *ctx)
{
    struct flow_control *state = weir_ctx_state(ctx);

    if (!weir_channel_auto_read(weir_ctx_channel(ctx)))
        state->is_wanted = true;
    if (!weir__msg_queue_is_empty(&state->queue))
        state->owes_complete = true;
    state->owes_request = true;
    run(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    struct flow_control *state = weir_ctx_state(ctx);

    weir__msg_queue_clear(&state->queue);
    weir_fire_inactive(ctx);
}

static void on_removed(weir_ctx *ctx)
{
    struct flow_control *state = weir_ctx_state(ctx);
    bool has_some = !weir__msg_queue_is_empty(&state->queue);

    while (!weir__msg_queue_is_empty(&state->queue))
        weir_fire_read(ctx, weir__msg_queue_pop(&state->queue));
    if (has_some)
        weir_fire_read_complete(ctx);
}

static int init(void *state, const void *options)
{
    (void)options;
    weir__msg_queue_init(&((struct flow_control *)state)->queue);
    return 0;
}

static void deinit(void *state)
{
    weir__msg_queue_clear(&((struct flow_control *)state)->queue);
}

static const weir_handler flow_control = {
    .name = "flow-control",
    .state_size = sizeof(struct flow_control),
    .init = init,
    .deinit = deinit,
    .removed = on_removed,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .request_read = on_request_read,
};

int weir_flow_control_add(weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &flow_control, NULL);
}
