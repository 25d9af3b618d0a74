/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener and two channels on two loops, and handlers that take notes.
 */
#include "support/transport/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/buf.h>
#include <weir/descriptors.h>
#include <weir/error.h>
#include <weir/transport.h>

#include "support/channel/event_wait.h"
#include "support/channel/test_channel.h"
#include "support/executor/global_executor.h"
#include "support/loop/sockets.h"

/* ---- handlers ---- */

/* A hook is copied before it is called: to gcc a call through an atomic pointer reads it as if it
 * were none. */
typedef void hook_fn(weir_ctx *ctx);

struct state {
    struct line_end *end;
};

static int init(void *state, const void *options)
{
    ((struct state *)state)->end = (struct line_end *)(uintptr_t)options;
    return 0;
}

struct line_end *line_end_of(weir_ctx *ctx)
{
    return ((struct state *)weir_ctx_state(ctx))->end;
}

void line_note(struct line_end *end, const char *note)
{
    event_log_write(&end->events, "%s", note);
    call_counter_add(&end->notes);
}

void line_discard(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

static void on_registered(weir_ctx *ctx)
{
    line_note(line_end_of(ctx), "registered");
}

static void on_unregistered(weir_ctx *ctx)
{
    line_note(line_end_of(ctx), "unregistered");
}

static void on_active(weir_ctx *ctx)
{
    struct line_end *end = line_end_of(ctx);
    hook_fn *hook = end->on_active;

    line_note(end, "active");
    if (hook != NULL)
        hook(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    line_note(line_end_of(ctx), "inactive");
}

static const weir_buf *bytes_of(weir_msg *msg)
{
    return weir_descriptors_of(msg) != NULL ? weir_descriptors_bytes(weir_descriptors_of(msg))
                                            : weir_buf_of(msg);
}

static void note_read(struct line_end *end, weir_msg *msg)
{
    const weir_buf *buf = bytes_of(msg);

    event_log_write(&end->events, "%s(%.*s)", weir_descriptors_of(msg) != NULL ? "passed" : "read",
                    (int)weir_buf_readable(buf), (const char *)weir_buf_bytes(buf));
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct line_end *end = line_end_of(ctx);
    void (*hook)(weir_ctx *, weir_msg *) = end->on_read;

    atomic_fetch_add(&end->received, weir_buf_readable(bytes_of(msg)));
    if (hook != NULL) {
        hook(ctx, msg);
    } else {
        note_read(end, msg);
        weir_msg_release(msg);
    }
    call_counter_add(&end->notes); /* line_await_received */
}

static void on_read_complete(weir_ctx *ctx)
{
    struct line_end *end = line_end_of(ctx);
    hook_fn *hook = end->on_read_complete;

    call_counter_add(&end->completes);
    if (hook != NULL)
        hook(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct line_end *end = line_end_of(ctx);
    void (*hook)(weir_ctx *, const weir_msg *) = end->on_event;

    line_note(end, event->type->name);
    if (hook != NULL)
        hook(ctx, event);
    weir_msg_release(event);
}

static void on_writability(weir_ctx *ctx)
{
    struct line_end *end = line_end_of(ctx);
    hook_fn *hook = end->on_writability;

    if (hook != NULL)
        hook(ctx);
    else
        line_note(end, weir_ctx_is_writable(ctx) ? "writable" : "unwritable");
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct line_end *end = line_end_of(ctx);

    event_log_write(&end->events, "error(%s)", weir_error_name(err));
    call_counter_add(&end->notes);
    weir_fire_error(ctx, err, detail);
}

static const weir_handler taker_of_notes = {
    .name = "notes",
    .state_size = sizeof(struct state),
    .init = init,
    .registered = on_registered,
    .unregistered = on_unregistered,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
    .writability = on_writability,
    .error = on_error,
};

/* The first that comes is the server; others are not wanted. */
static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct line_end *end = line_end_of(ctx);
    weir_channel *channel = weir_channel_of(msg);

    if (end->channel == NULL) {
        end->channel = weir_channel_retain(channel);
        (void)weir_pipeline_add_last(weir_channel_pipeline(channel), &taker_of_notes, end);
        weir_group_register(end->line->far.group, channel, NULL);
    }
    weir_msg_release(msg);
    call_counter_add(&end->line->accepted);
}

static const weir_handler acceptor = {
    .name = "acceptor",
    .state_size = sizeof(struct state),
    .init = init,
    .read = on_accepted,
};

/* ---- promises ---- */

weir_promise *line_promise(struct line_end *end)
{
    weir_promise *promise;
    struct host *host = end == &end->line->client ? &end->line->near : &end->line->far;

    assert_int_equal(weir_promise_create(host->loop, &promise), 0);
    return promise;
}

int line_result(weir_promise *promise)
{
    int result;

    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    result = weir_promise_result(promise);
    weir_promise_release(promise);
    return result;
}

int line_do(struct line_end *end, line_operation *operation)
{
    weir_promise *promise = line_promise(end);

    operation(end->channel, promise);
    return line_result(promise);
}

/* ---- the line ---- */

bool line_is_unix(void)
{
    const char *kind = getenv("WEIR_TEST_LINE");

    return kind != NULL && strcmp(kind, "unix") == 0;
}

/* An address where nobody is. */
static void choose_address(struct line *line)
{
    static _Atomic unsigned lines;
    char text[WEIR_ADDRESS_TEXT_SIZE];

    (void)snprintf(text, sizeof(text), "unix:@weir-line-%d-%u", (int)getpid(), lines++);
    assert_int_equal(
        weir_address_parse(line->medium == LINE_TCP ? own_loopback_text() : text, &line->address),
        0);
}

static enum weir_kind kind_of(const struct line *line)
{
    return line->medium == LINE_SEQPACKET ? WEIR_KIND_SEQPACKET : WEIR_KIND_STREAM;
}

static int create_listener(struct line *line)
{
    const struct line_options *options = &line->options;

    if (line->medium == LINE_TCP)
        return weir_tcp_create_server(options->listener, options->server, &line->listener);
    return weir_unix_create_server(kind_of(line), options->listener, options->server,
                                   &line->listener);
}

static int create_client(struct line *line)
{
    if (line->medium == LINE_TCP)
        return weir_tcp_create(line->options.client, &line->client.channel);
    return weir_unix_create(kind_of(line), line->options.client, &line->client.channel);
}

static void open_listener(struct line *line)
{
    weir_promise *bound = line_promise(&line->server);

    choose_address(line);
    assert_int_equal(create_listener(line), 0);
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(line->listener), &acceptor, &line->server), 0);
    weir_group_register(line->far.group, line->listener, NULL);
    weir_channel_bind(line->listener, &line->address, bound);
    assert_int_equal(line_result(bound), 0);
    assert_int_equal(weir_channel_local_address(line->listener, &line->address), 0);
}

void line_make_client(struct line *line)
{
    weir_channel_release(line->client.channel);
    assert_int_equal(create_client(line), 0);
    if (line->options.add != NULL)
        assert_int_equal(
            line->options.add(weir_channel_pipeline(line->client.channel), line->options.arg), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(line->client.channel),
                                            &taker_of_notes, &line->client),
                     0);
}

void line_prepare(struct line *line, const struct line_options *options)
{
    if (options != NULL)
        line->options = *options;
    open_listener(line);
    line_make_client(line);
    weir_group_register(line->near.group, line->client.channel, NULL);
    assert_heard(&line->client, "registered");
}

void line_call(struct line *line)
{
    weir_promise *connected = line_promise(&line->client);

    weir_channel_connect(line->client.channel, &line->address, NULL, connected);
    assert_int_equal(line_result(connected), 0);
}

struct saying {
    struct line *line;
    const char *text;
};

static void say_when_connected(weir_promise *connected, void *saying_)
{
    struct saying *saying = saying_;

    if (weir_promise_result(connected) == 0)
        line_say(&saying->line->client, saying->text);
    line_note(&saying->line->client, "said");
}

/* The listener runs where the promise completes: on the client's loop. */
void line_call_saying(struct line *line, const char *text)
{
    struct saying saying = {line, text};
    weir_promise *connected = NULL;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &connected), 0);
    assert_int_equal(weir_promise_add_listener(connected, say_when_connected, &saying), 0);
    weir_channel_connect(line->client.channel, &line->address, NULL, connected);
    assert_int_equal(line_result(connected), 0);
    line_await(&line->client, "said", 1);
}

void line_connect(struct line *line)
{
    line_call(line);
    assert_heard(&line->client, "active");
    assert_heard(&line->server, "registered active");
}

void line_open(struct line *line, const struct line_options *options)
{
    line_prepare(line, options);
    line_connect(line);
}

static void drop(weir_channel **channel)
{
    if (*channel == NULL)
        return;
    weir_channel_abort(*channel, NULL);
    assert_int_equal(weir_channel_await_closed(*channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(*channel);
    *channel = NULL;
}

void line_close(struct line *line)
{
    drop(&line->listener);
    drop(&line->client.channel);
    drop(&line->server.channel);
}

void line_say(struct line_end *end, const char *text)
{
    weir_channel_write_and_flush(end->channel, text_msg(text), NULL);
}

/* ---- hearing ---- */

void line_await(struct line_end *end, const char *word, unsigned count)
{
    events_await(&end->events, &end->notes, word, count);
}

void line_await_received(struct line_end *end, uint64_t bytes)
{
    for (;;) {
        uint32_t notes = atomic_load(&end->notes.calls);

        if (atomic_load(&end->received) >= bytes)
            return;
        if (!call_counter_await(&end->notes, notes + 1))
            fail_msg("waiting for %llu bytes, received %llu", (unsigned long long)bytes,
                     (unsigned long long)atomic_load(&end->received));
    }
}

const char *line_heard(struct line_end *end, const char *words, char *said)
{
    return events_await_all(&end->events, &end->notes, words, said);
}

/* ---- around every test ---- */

static void end_open(struct line_end *end, struct line *line)
{
    end->line = line;
    event_log_open(&end->events);
}

/* Each has memory of its own: a test that fails leaves its loops running. */
void line_run(enum backend_id far, enum backend_id near, line_body *body)
{
    size_t descriptors = descriptors_open();
    struct line *line = calloc(1, sizeof(*line));

    assert_non_null(line);
    line->medium = line_is_unix() ? LINE_UNIX : LINE_TCP;
    end_open(&line->client, line);
    end_open(&line->server, line);
    host_open(&line->far, far);
    host_open(&line->near, near);
    body(line);
    line_close(line);
    host_close(&line->near);
    host_close(&line->far);
    event_log_close(&line->client.events);
    event_log_close(&line->server.events);
    free(line);
    global_executor_stop(); /* it may hold the loops that it was to watch over */
    assert_int_equal(descriptors_open(), descriptors);
}
