/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener, a client and a server, with a handler each that takes notes.
 */
#include "support/transport/pair.h"

#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/transport.h>

#include "support/channel/test_channel.h"

const struct pair_options pair_together = {0};
const struct pair_options pair_apart = {.apart = true};

void pair_for_both(void (*test)(const struct pair_options *options))
{
    test(&pair_together);
    test(&pair_apart);
}

weir_address pair_address(const char *text)
{
    weir_address address;

    assert_int_equal(weir_address_parse(text, &address), 0);
    return address;
}

/* ---- handlers ---- */

struct state {
    struct pair_end *end;
};

static int init(void *state, const void *options)
{
    ((struct state *)state)->end = (struct pair_end *)(uintptr_t)options;
    return 0;
}

static struct pair_end *end_of(weir_ctx *ctx)
{
    return ((struct state *)weir_ctx_state(ctx))->end;
}

static void note(weir_ctx *ctx, const char *word)
{
    event_log_write(&end_of(ctx)->pair->events, "%s.%s", end_of(ctx)->name, word);
}

static void on_active(weir_ctx *ctx)
{
    note(ctx, "active");
    if (end_of(ctx)->on_active != NULL)
        end_of(ctx)->on_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    note(ctx, "inactive");
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct pair_end *end = end_of(ctx);
    weir_buf *buf = weir_buf_of(msg);

    if (buf == NULL)
        event_log_write(&end->pair->events, "%s.read(%s)", end->name, msg->type->name);
    else if (weir_buf_readable(buf) > 64)
        event_log_write(&end->pair->events, "%s.read(%zu)", end->name, weir_buf_readable(buf));
    else
        event_log_write(&end->pair->events, "%s.read(%.*s)", end->name, (int)weir_buf_readable(buf),
                        (const char *)weir_buf_bytes(buf));
    if (end->on_read != NULL)
        end->on_read(ctx, msg);
    else
        weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    event_log_write(&end_of(ctx)->pair->events, "%s.%s", end_of(ctx)->name, event->type->name);
    weir_msg_release(event);
}

static void on_writability(weir_ctx *ctx)
{
    note(ctx, weir_ctx_is_writable(ctx) ? "writable" : "unwritable");
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)detail;
    event_log_write(&end_of(ctx)->pair->events, "%s.error(%s)", end_of(ctx)->name,
                    weir_error_name(err));
}

static const weir_handler taker_of_notes = {
    .name = "notes",
    .state_size = sizeof(struct state),
    .init = init,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .event = on_event,
    .writability = on_writability,
    .error = on_error,
};

static weir_executor *executor_of_server(const struct pair *pair)
{
    return pair->options.apart ? pair->far.executor : pair->near.executor;
}

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct pair *pair = end_of(ctx)->pair;
    weir_channel *channel = weir_channel_of(msg);

    if (pair->options.refuses) {
        weir_msg_release(msg);
        return;
    }
    weir_channel_release(pair->server.channel);
    pair->server.channel = weir_channel_retain(channel);
    IGNORE_RESULT(
        weir_pipeline_add_last(weir_channel_pipeline(channel), &taker_of_notes, &pair->server));
    weir_channel_register(channel, executor_of_server(pair), NULL);
    weir_msg_release(msg);
}

static const weir_handler acceptor = {
    .name = "acceptor",
    .state_size = sizeof(struct state),
    .init = init,
    .read = on_accepted,
};

/* ---- the pair ---- */

void pair_run(struct pair *pair)
{
    while (stepper_run(&pair->near) + (pair->options.apart ? stepper_run(&pair->far) : 0) > 0)
        ;
}

static void open_listener(struct pair *pair)
{
    static unsigned number; /* a test that failed may have left a listener */
    char name[32];

    (void)snprintf(name, sizeof(name), "inproc:pair%u", ++number);
    pair->address = pair_address(name);
    assert_int_equal(
        weir_inproc_create_server(pair->options.listener, pair->options.server, &pair->listener),
        0);
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(pair->listener), &acceptor, &pair->server), 0);
    weir_channel_register(pair->listener, executor_of_server(pair), NULL);
    weir_channel_bind(pair->listener, &pair->address, NULL);
}

void pair_open(struct pair *pair, const struct pair_options *options)
{
    memset(pair, 0, sizeof(*pair));
    if (options != NULL)
        pair->options = *options;
    pair->near = stepper_open();
    if (pair->options.apart)
        pair->far = stepper_open();
    event_log_open(&pair->events);
    pair->client = (struct pair_end){.pair = pair, .name = "client"};
    pair->server = (struct pair_end){.pair = pair, .name = "server"};
    open_listener(pair);
    assert_int_equal(weir_inproc_create(pair->options.client, &pair->client.channel), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(pair->client.channel),
                                            &taker_of_notes, &pair->client),
                     0);
    weir_channel_register(pair->client.channel, pair->near.executor, NULL);
    pair_run(pair);
}

static void drop(weir_channel *channel)
{
    if (channel != NULL)
        weir_channel_abort(channel, NULL);
    weir_channel_release(channel);
}

void pair_close(struct pair *pair)
{
    drop(pair->client.channel);
    drop(pair->server.channel);
    drop(pair->listener);
    pair_run(pair);
    stepper_close(&pair->near);
    if (pair->options.apart)
        stepper_close(&pair->far);
    event_log_close(&pair->events);
}

void pair_call(struct pair *pair)
{
    weir_promise *promise = pair_promise(pair, "connect");

    weir_channel_connect(pair->client.channel, &pair->address, NULL, promise);
    weir_promise_release(promise);
}

void pair_connect(struct pair *pair)
{
    pair_call(pair);
    pair_run(pair);
    assert_true(weir_channel_is_active(pair->client.channel));
    event_log_clear(&pair->events);
}

void pair_open_connected(struct pair *pair, const struct pair_options *options)
{
    pair_open(pair, options);
    pair_connect(pair);
}

weir_promise *pair_promise(struct pair *pair, const char *name)
{
    struct event_recorder *listener = &pair->listeners[pair->listener_count++ % 16];
    weir_promise *promise;

    listener->events = &pair->events;
    strncpy(listener->name, name, sizeof(listener->name) - 1);
    assert_int_equal(weir_promise_create(pair->near.executor, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, event_recorder_listen, listener), 0);
    return promise;
}

void pair_write(struct pair_end *end, const char *text, const char *promise_name)
{
    weir_promise *promise = promise_name != NULL ? pair_promise(end->pair, promise_name) : NULL;

    weir_channel_write(end->channel, text_msg(text), promise);
    weir_promise_release(promise);
}

void pair_send(struct pair_end *end, const char *text, const char *promise_name)
{
    pair_write(end, text, promise_name);
    weir_channel_flush(end->channel);
}

void pair_send_bytes(struct pair_end *end, size_t size)
{
    weir_channel_write_and_flush(end->channel, sized_msg(size), NULL);
}

void pair_close_end(struct pair_end *end)
{
    weir_channel_close(end->channel, NULL);
    pair_run(end->pair);
}

void pair_end_channel(struct stepper *stepper, weir_channel *channel)
{
    weir_channel_close(channel, NULL);
    (void)stepper_run(stepper);
    weir_channel_release(channel);
}
