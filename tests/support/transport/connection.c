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

#include "os/file_writer.h"
#include "support/channel/event_wait.h"
#include "support/channel/test_channel.h"
#include "support/executor/global_executor.h"
#include "support/loop/sockets.h"
#include "support/timeout.h"

/* ---- handlers ---- */

/* A hook is copied before it is called: to gcc a call through an atomic pointer reads it as if it
 * were none. */
typedef void hook_fn(weir_ctx *ctx);

struct state {
    struct connection_end *end;
};

static int init(void *state, const void *options)
{
    ((struct state *)state)->end = (struct connection_end *)(uintptr_t)options;
    return 0;
}

struct connection_end *connection_end_of(weir_ctx *ctx)
{
    return ((struct state *)weir_ctx_state(ctx))->end;
}

void connection_note(struct connection_end *end, const char *note)
{
    event_log_write(&end->events, "%s", note);
    call_counter_add(&end->notes);
}

void connection_discard(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

static void on_registered(weir_ctx *ctx)
{
    connection_note(connection_end_of(ctx), "registered");
}

static void on_unregistered(weir_ctx *ctx)
{
    connection_note(connection_end_of(ctx), "unregistered");
}

static void on_active(weir_ctx *ctx)
{
    struct connection_end *end = connection_end_of(ctx);
    hook_fn *hook = end->on_active;

    connection_note(end, "active");
    if (hook != NULL)
        hook(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    connection_note(connection_end_of(ctx), "inactive");
}

static const weir_buf *bytes_of(weir_msg *msg)
{
    return weir_descriptors_of(msg) != NULL ? weir_descriptors_bytes(weir_descriptors_of(msg))
                                            : weir_buf_of(msg);
}

static void note_read(struct connection_end *end, weir_msg *msg)
{
    const weir_buf *buf = bytes_of(msg);

    event_log_write(&end->events, "%s(%.*s)", weir_descriptors_of(msg) != NULL ? "passed" : "read",
                    (int)weir_buf_readable(buf), (const char *)weir_buf_bytes(buf));
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct connection_end *end = connection_end_of(ctx);
    void (*hook)(weir_ctx *, weir_msg *) = end->on_read;

    atomic_fetch_add(&end->received, weir_buf_readable(bytes_of(msg)));
    if (hook != NULL) {
        hook(ctx, msg);
    } else {
        note_read(end, msg);
        weir_msg_release(msg);
    }
    call_counter_add(&end->notes); /* connection_await_received */
}

static void on_read_complete(weir_ctx *ctx)
{
    struct connection_end *end = connection_end_of(ctx);
    hook_fn *hook = end->on_read_complete;

    call_counter_add(&end->completes);
    if (hook != NULL)
        hook(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct connection_end *end = connection_end_of(ctx);
    void (*hook)(weir_ctx *, const weir_msg *) = end->on_event;

    connection_note(end, event->type->name);
    if (hook != NULL)
        hook(ctx, event);
    weir_msg_release(event);
}

static void on_writability(weir_ctx *ctx)
{
    struct connection_end *end = connection_end_of(ctx);
    hook_fn *hook = end->on_writability;

    if (hook != NULL)
        hook(ctx);
    else
        connection_note(end, weir_ctx_is_writable(ctx) ? "writable" : "unwritable");
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct connection_end *end = connection_end_of(ctx);

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
    struct connection_end *end = connection_end_of(ctx);
    weir_channel *channel = weir_channel_of(msg);

    if (end->channel == NULL) {
        end->channel = weir_channel_retain(channel);
        IGNORE_RESULT(weir_pipeline_add_last(weir_channel_pipeline(channel), &taker_of_notes, end));
        weir_group_register(end->connection->far.group, channel, NULL);
    }
    weir_msg_release(msg);
    call_counter_add(&end->connection->accepted);
}

static const weir_handler acceptor = {
    .name = "acceptor",
    .state_size = sizeof(struct state),
    .init = init,
    .read = on_accepted,
};

/* ---- promises ---- */

weir_promise *connection_promise(struct connection_end *end)
{
    weir_promise *promise;
    struct host *host =
        end == &end->connection->client ? &end->connection->near : &end->connection->far;

    assert_int_equal(weir_promise_create(host->loop, &promise), 0);
    return promise;
}

int connection_result(weir_promise *promise)
{
    int result;

    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    result = weir_promise_result(promise);
    weir_promise_release(promise);
    return result;
}

int connection_do(struct connection_end *end, connection_operation *operation)
{
    weir_promise *promise = connection_promise(end);

    operation(end->channel, promise);
    return connection_result(promise);
}

/* ---- the line ---- */

bool connection_is_unix(void)
{
    const char *kind = getenv("WEIR_TEST_CONNECTION");

    return kind != NULL && strcmp(kind, "unix") == 0;
}

/* An address where nobody is. */
static void choose_address(struct connection *connection)
{
    static _Atomic unsigned lines;
    char text[WEIR_ADDRESS_TEXT_SIZE];

    (void)snprintf(text, sizeof(text), "unix:@weir-line-%d-%u", (int)getpid(), lines++);
    assert_int_equal(
        weir_address_parse(connection->medium == CONNECTION_TCP ? own_loopback_text() : text,
                           &connection->address),
        0);
}

static enum weir_kind kind_of(const struct connection *connection)
{
    return connection->medium == CONNECTION_SEQPACKET ? WEIR_KIND_SEQPACKET : WEIR_KIND_STREAM;
}

static int create_listener(struct connection *connection)
{
    const struct connection_options *options = &connection->options;

    if (connection->medium == CONNECTION_TCP)
        return weir_tcp_create_server(options->listener, options->server, &connection->listener);
    return weir_unix_create_server(kind_of(connection), options->listener, options->server,
                                   &connection->listener);
}

static int create_client(struct connection *connection)
{
    if (connection->medium == CONNECTION_TCP)
        return weir_tcp_create(connection->options.client, &connection->client.channel);
    return weir_unix_create(kind_of(connection), connection->options.client,
                            &connection->client.channel);
}

static void open_listener(struct connection *connection)
{
    weir_promise *bound = connection_promise(&connection->server);

    choose_address(connection);
    assert_int_equal(create_listener(connection), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(connection->listener), &acceptor,
                                            &connection->server),
                     0);
    weir_group_register(connection->far.group, connection->listener, NULL);
    weir_channel_bind(connection->listener, &connection->address, bound);
    assert_int_equal(connection_result(bound), 0);
    assert_int_equal(weir_channel_local_address(connection->listener, &connection->address), 0);
}

void connection_make_client(struct connection *connection)
{
    weir_channel_release(connection->client.channel);
    assert_int_equal(create_client(connection), 0);
    if (connection->options.add != NULL)
        assert_int_equal(connection->options.add(weir_channel_pipeline(connection->client.channel),
                                                 connection->options.arg),
                         0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(connection->client.channel),
                                            &taker_of_notes, &connection->client),
                     0);
}

void connection_prepare(struct connection *connection, const struct connection_options *options)
{
    if (options != NULL)
        connection->options = *options;
    open_listener(connection);
    connection_make_client(connection);
    weir_group_register(connection->near.group, connection->client.channel, NULL);
    assert_end_events(&connection->client, "registered");
}

void connection_start(struct connection *connection)
{
    weir_promise *connected = connection_promise(&connection->client);

    weir_channel_connect(connection->client.channel, &connection->address, NULL, connected);
    assert_int_equal(connection_result(connected), 0);
}

struct saying {
    struct connection *connection;
    const char *text;
};

static void say_when_connected(weir_promise *connected, void *saying_)
{
    struct saying *saying = saying_;

    if (weir_promise_result(connected) == 0)
        connection_send(&saying->connection->client, saying->text);
    connection_note(&saying->connection->client, "said");
}

/* The listener runs where the promise completes: on the client's loop. */
void connection_start_and_send(struct connection *connection, const char *text)
{
    struct saying saying = {connection, text};
    weir_promise *connected = NULL;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &connected), 0);
    assert_int_equal(weir_promise_add_listener(connected, say_when_connected, &saying), 0);
    weir_channel_connect(connection->client.channel, &connection->address, NULL, connected);
    assert_int_equal(connection_result(connected), 0);
    connection_await(&connection->client, "said", 1);
}

void connection_connect(struct connection *connection)
{
    connection_start(connection);
    assert_end_events(&connection->client, "active");
    assert_end_events(&connection->server, "registered active");
}

void connection_open(struct connection *connection, const struct connection_options *options)
{
    connection_prepare(connection, options);
    connection_connect(connection);
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

void connection_close(struct connection *connection)
{
    drop(&connection->listener);
    drop(&connection->client.channel);
    drop(&connection->server.channel);
}

void connection_send(struct connection_end *end, const char *text)
{
    weir_channel_write_and_flush(end->channel, text_msg(text), NULL);
}

/* ---- waiting for events ---- */

void connection_await(struct connection_end *end, const char *word, unsigned count)
{
    events_await(&end->events, &end->notes, word, count);
}

void connection_await_received(struct connection_end *end, uint64_t bytes)
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

const char *connection_events(struct connection_end *end, const char *words, char *said)
{
    return events_await_all(&end->events, &end->notes, words, said);
}

/* ---- around every test ---- */

static void end_open(struct connection_end *end, struct connection *connection)
{
    end->connection = connection;
    event_log_open(&end->events);
}

/* Each has memory of its own: a test that fails leaves its loops running. */
void connection_run(enum backend_id far, enum backend_id near, connection_body *body)
{
    size_t descriptors = descriptors_open();
    struct connection *connection = calloc(1, sizeof(*connection));

    assert_non_null(connection);
    connection->medium = connection_is_unix() ? CONNECTION_UNIX : CONNECTION_TCP;
    end_open(&connection->client, connection);
    end_open(&connection->server, connection);
    host_open(&connection->far, far);
    host_open(&connection->near, near);
    body(connection);
    connection_close(connection);
    host_close(&connection->near);
    host_close(&connection->far);
    event_log_close(&connection->client.events);
    event_log_close(&connection->server.events);
    free(connection);
    global_executor_stop(); /* it may hold the loops that it was to watch over */
    (void)weir__file_writers_wait(TEST_TIMEOUT_NS); /* they close the files of captures */
    assert_true(descriptors_await(descriptors));
}
