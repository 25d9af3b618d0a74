/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random stacks of handlers that queue messages, random streams, and a consumer that switches auto-
 * read and requests reads at any point. Bytes arrive in order and complete, and no message arrives
 * without a request.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/codec.h>
#include <weir/composite.h>
#include <weir/embedded.h>
#include <weir/flow_control.h>
#include <weir/handler.h>

#include "support/codec/feed.h"
#include "support/property.h"

#define LAYERS_MAX 6

/* Actions of the consumer in `read` and `read_complete`. */
enum act { NOTHING, REQUEST, OFF, OFF_AND_ON, OFF_AND_ON_LATER, ON, ACTS };

struct world {
    weir_embedded *embedded;
    weir_channel *channel;
    unsigned layers;
    size_t sent;     /* in bytes: byte n is n modulo 251 */
    size_t received; /* in order */
    size_t messages;
    bool has_request;
    bool is_out_of_order;
    bool is_unasked;
    bool is_lenient; /* a handler is being removed: the messages that it forwards answer no request
                        that was passed on before */
    bool has_end;
    bool ends; /* the input was closed */
    enum act in_read;
    enum act in_complete;
};

static struct world *current;

/* ---- layers: all of them pass on the bytes that they get, in messages of another size ---- */

static int take(weir_buf *in, size_t size, weir_msg **ret_msg)
{
    weir_buf *part;

    if (weir_buf_readable(in) < size)
        return 0;
    if (weir_buf_read_slice(in, size, &part) < 0)
        return -ENOMEM;
    *ret_msg = weir_buf_msg(part);
    return 1;
}

static int take_one(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    (void)ctx;
    return take(in, 1, ret_msg);
}

static int take_three(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    return weir_buf_readable(in) < 3 ? weir_decoder_need(ctx, 3) : take(in, 3, ret_msg);
}

static int take_rest(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    (void)ctx;
    return weir_buf_readable(in) > 0 ? take(in, weir_buf_readable(in), ret_msg) : 0;
}

static const weir_decoder ones = {
    .handler = {.name = "ones", WEIR_DECODER_SLOTS(weir_decoder_state)}, .decode = take_one};

static const weir_decoder threes = {
    .handler = {.name = "threes", WEIR_DECODER_SLOTS(weir_decoder_state)},
    .decode = take_three,
    .decode_last = take_rest};

/* The bytes of a buffer, or of a composite: a removed decoder may forward either. */
static weir_buf *flat_of(weir_msg *msg)
{
    weir_buf *flat = weir_buf_of(msg);
    size_t length = weir_msg_size(msg);

    if (flat != NULL)
        return weir_buf_retain(flat);
    assert_int_equal(weir_buf_create(length, 0, &flat), 0);
    (void)weir_composite_read_bytes(weir_composite_of(msg), weir_buf_space(flat), length);
    (void)weir_buf_advance(flat, length);
    return flat;
}

static int split(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    weir_buf *in = flat_of(msg);
    weir_msg *part = NULL;
    int err = 0;

    (void)ctx;
    while (err == 0 && weir_buf_readable(in) > 0) {
        err = take(in, weir_buf_readable(in) < 2 ? 1 : 2, &part);
        err = err < 0 ? err : weir_msg_list_add(out, part);
    }
    weir_buf_release(in);
    return err;
}

static const weir_msg_decoder twos = {
    .handler = {.name = "twos", WEIR_MSG_DECODER_SLOTS(weir_msg_decoder_state)}, .decode = split};

static void add_layer(struct world *world, uint32_t which)
{
    static const weir_handler *const handlers[] = {&ones.handler, &threes.handler, &twos.handler};
    weir_pipeline *pipeline = weir_embedded_pipeline(world->embedded);

    if (world->layers == LAYERS_MAX)
        return;
    IGNORE_RESULT(
        weir_pipeline_add(pipeline, WEIR_PLACE(.before = "consumer"), handlers[which % 3], NULL));
    world->layers++;
}

static void remove_layer(struct world *world)
{
    weir_pipeline *pipeline = weir_embedded_pipeline(world->embedded);
    static const char *const names[] = {"ones", "threes", "twos"};

    world->is_lenient = true;
    for (size_t i = 0; i < 3; i++)
        if (weir_pipeline_find(pipeline, names[i]) != NULL) {
            (void)weir_pipeline_remove(pipeline, names[i], NULL);
            world->layers--;
            break;
        }
    weir_embedded_run(world->embedded);
    world->is_lenient = false;
}

/* ---- the consumer ---- */

static void go_on(void *arg, int status)
{
    (void)status;
    weir_channel_set_auto_read(arg, true);
}

static void act(weir_ctx *ctx, enum act what)
{
    switch (what) {
    case REQUEST:
        current->has_request = true;
        weir_request_read(ctx);
        break;
    case OFF:
        weir_ctx_set_auto_read(ctx, false);
        break;
    case OFF_AND_ON:
        weir_ctx_set_auto_read(ctx, false);
        weir_ctx_set_auto_read(ctx, true);
        break;
    case OFF_AND_ON_LATER:
        weir_ctx_set_auto_read(ctx, false);
        IGNORE_RESULT(
            weir_execute(weir_channel_executor(current->channel), go_on, current->channel));
        break;
    case ON:
        weir_ctx_set_auto_read(ctx, true);
        break;
    default:
        break;
    }
}

static void consume(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = flat_of(msg);

    if (!current->is_lenient) {
        if (!weir_channel_auto_read(current->channel) && !current->has_request)
            current->is_unasked = true;
        current->has_request = false;
    }
    current->messages++;
    if (current->has_end)
        current->is_out_of_order = true;
    for (size_t i = 0; i < weir_buf_readable(buf); i++, current->received++)
        if (weir_buf_bytes(buf)[i] != current->received % 251)
            current->is_out_of_order = true;
    weir_buf_release(buf);
    weir_msg_release(msg);
    act(ctx, current->in_read);
}

static void consume_complete(weir_ctx *ctx)
{
    act(ctx, current->in_complete);
}

static void consume_event(weir_ctx *ctx, weir_msg *event)
{
    (void)ctx;
    if (event == weir_event_input_closed())
        current->has_end = true;
    weir_msg_release(event);
}

static const weir_handler consumer = {
    .name = "consumer", .read = consume, .read_complete = consume_complete, .event = consume_event};

/* ---- steps ---- */

enum kind { PUT, ASK, AUTO_ON, AUTO_OFF, IN_READ, IN_COMPLETE, ADD, REMOVE, KINDS };

static void begin(void *state)
{
    struct world *world = current = state;
    weir_pipeline *pipeline;

    if (weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &world->embedded) < 0)
        abort();
    world->channel = weir_embedded_channel(world->embedded);
    pipeline = weir_embedded_pipeline(world->embedded);
    if (weir_flow_control_add(pipeline) < 0)
        abort();
    IGNORE_RESULT(weir_pipeline_add_last(pipeline, &ones.handler, NULL));
    IGNORE_RESULT(weir_pipeline_add_last(pipeline, &consumer, NULL));
}

static void put(struct world *world, size_t length)
{
    uint8_t bytes[32];

    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(world->sent++ % 251);
    (void)weir_embedded_write_inbound(world->embedded, feed_bytes(bytes, length));
}

static void ask(struct world *world)
{
    world->has_request = true;
    weir_channel_request_read(world->channel);
    weir_embedded_run(world->embedded);
}

static void set_auto_read(struct world *world, bool on)
{
    weir_channel_set_auto_read(world->channel, on);
    weir_embedded_run(world->embedded);
}

static bool is_well(const struct world *world)
{
    PROPERTY(!world->is_out_of_order);
    PROPERTY(!world->is_unasked);
    PROPERTY(world->received <= world->sent);
    return true;
}

static bool step(void *state, const struct property_step *step)
{
    struct world *world = current = state;

    switch (step->kind) {
    case PUT:
        put(world, step->numbers[0] % 32 + 1);
        break;
    case ASK:
        ask(world);
        break;
    case AUTO_ON:
    case AUTO_OFF:
        set_auto_read(world, step->kind == AUTO_ON);
        break;
    case IN_READ:
        world->in_read = step->numbers[0] % ACTS;
        break;
    case IN_COMPLETE:
        world->in_complete = step->numbers[0] % ACTS;
        break;
    case ADD:
        add_layer(world, step->numbers[0]);
        break;
    default:
        if (step->numbers[0] % 4 == 0)
            remove_layer(world);
    }
    return is_well(world);
}

/* Requests alone deliver everything, one message each; then the end follows. */
static bool drain(struct world *world)
{
    size_t before;

    world->in_read = world->in_complete = NOTHING;
    set_auto_read(world, false);
    weir_embedded_end_input(world->embedded);
    while (world->received < world->sent) {
        before = world->messages;
        PROPERTY(!world->has_end);
        ask(world);
        PROPERTY(world->messages == before + 1);
    }
    ask(world);
    PROPERTY(world->has_end);
    return is_well(world);
}

static bool step_or_drain(void *state, const struct property_step *one)
{
    struct world *world = state;

    if (world->ends)
        return true;
    if (one->numbers[2] % 40 != 0)
        return step(state, one);
    world->ends = true;
    return step(state, one) && drain(world);
}

static void describe(const struct property_step *step, char *text, size_t size)
{
    static const char *const names[] = {"put",     "ask",         "auto on", "auto off",
                                        "in read", "in complete", "add",     "remove"};

    (void)snprintf(text, size, "%s %u%s", names[step->kind], step->numbers[0],
                   step->numbers[2] % 40 == 0 ? ", then drain" : "");
}

static void end(void *state)
{
    struct world *world = current = state;

    world->is_lenient = true;
    weir_embedded_release(world->embedded);
}

static const struct property in_order_and_asked_for = {
    .name = "demand",
    .state_size = sizeof(struct world),
    .kinds = KINDS,
    .begin = begin,
    .step = step_or_drain,
    .describe = describe,
    .end = end,
};

TEST(demand, holds_through_any_stack_of_handlers)
{
    property_check(&in_order_and_asked_for, 400, 60);
}
