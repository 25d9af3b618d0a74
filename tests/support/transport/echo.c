/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo, and its clients.
 */
#include "support/transport/echo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "os/clock.h"
#include "os/random.h"
#include "support/channel/pointer_state.h"
#include "support/executor/group.h"

#define WRITE_MAX 8000
#define PAUSE_MAX_NS weir_ms(2)
#define PAUSE_EACH 8      /* every 8th read is followed by a pause */
#define UNDER_WAY_MAX 256 /* connections that are made at a time */
#define LOOK_NS weir_ms(100)

struct echo_client {
    struct echo *echo;
    weir_channel *channel;
    weir_ctx *ctx;
    weir_executor *executor; /* the handler's */
    weir__random random;
    uint64_t seed;
    size_t to_send; /* in all exchanges so far */
    size_t sent;
    size_t received;
    int64_t received_ns; /* when it got something, or began to send */
    weir_timer pause;
};

/* ---- the server ---- */

static struct echo *echo_of(weir_ctx *ctx)
{
    return *(struct echo **)weir_ctx_state(ctx);
}

static void note_most(_Atomic int64_t *most, int64_t value)
{
    int64_t before = atomic_load_explicit(most, memory_order_relaxed);

    while (value > before &&
           !atomic_compare_exchange_weak_explicit(most, &before, value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static void on_request(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
    note_most(&echo_of(ctx)->most_pending, weir_channel_pending_bytes(weir_ctx_channel(ctx)));
}

static void on_requests(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static void on_served(weir_ctx *ctx)
{
    call_counter_add(&echo_of(ctx)->served);
}

static const weir_handler server = {
    .name = "echo",
    .state_size = sizeof(struct echo *),
    .init = pointer_keep,
    .read = on_request,
    .read_complete = on_requests,
    .writability = on_writability,
    .removed = on_served,
};

static int prepare(const struct echo *echo, weir_pipeline *pipeline, bool is_server)
{
    return echo->prepare != NULL ? echo->prepare(pipeline, is_server, echo->prepare_arg) : 0;
}

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct echo *echo = echo_of(ctx);
    weir_channel *channel = weir_channel_of(msg);

    if (prepare(echo, weir_channel_pipeline(channel), true) == 0 &&
        weir_pipeline_add_last(weir_channel_pipeline(channel), &server, echo) == 0)
        weir_group_register(echo->far, channel, NULL);
    weir_msg_release(msg);
}

/* A failed accept is ignored: its client sees it. */
static void on_trouble(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    (void)err;
    (void)detail;
}

static const weir_handler acceptor = {
    .name = "acceptor",
    .state_size = sizeof(struct echo *),
    .init = pointer_keep,
    .read = on_accepted,
    .error = on_trouble,
};

/* ---- a client ---- */

static struct echo_client *client_of(weir_ctx *ctx)
{
    return *(struct echo_client **)weir_ctx_state(ctx);
}

/* What the byte at a position is: says of each where it belongs. */
static uint8_t byte_at(const struct echo_client *client, size_t position)
{
    return (uint8_t)(((position ^ client->seed) * 0x9e3779b97f4a7c15u) >> 56);
}

static weir_msg *next_msg(struct echo_client *client)
{
    size_t left = client->to_send - client->sent;
    size_t length = 1 + weir__random_below(&client->random, WRITE_MAX);
    weir_buf *buf;
    uint8_t *bytes;

    length = length < left ? length : left;
    if (weir_buf_create(length, 0, &buf) < 0)
        return NULL;
    bytes = weir_buf_space(buf);
    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at(client, client->sent + i);
    (void)weir_buf_set_write_index(buf, length);
    client->sent += length; /* before the write, which may come back here for writability */
    return weir_buf_msg(buf);
}

static void send_some(weir_ctx *ctx)
{
    struct echo_client *client = client_of(ctx);
    weir_msg *msg;

    while (client->sent < client->to_send && weir_ctx_is_writable(ctx)) {
        msg = next_msg(client);
        if (msg == NULL)
            return;
        weir_write(ctx, msg, NULL);
    }
    weir_flush(ctx);
}

static void on_connected(weir_ctx *ctx)
{
    client_of(ctx)->ctx = ctx;
    client_of(ctx)->executor = weir_ctx_executor(ctx);
    call_counter_add(&client_of(ctx)->echo->connected);
}

static void on_pause_over(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir_ctx_set_auto_read(ctx, true);
}

static void pause_now_and_then(weir_ctx *ctx)
{
    struct echo_client *client = client_of(ctx);
    int64_t pause_ns;

    if (!client->echo->pauses || weir_timer_is_running(&client->pause) ||
        weir__random_below(&client->random, PAUSE_EACH) != 0)
        return;
    pause_ns = (int64_t)weir__random_below(&client->random, PAUSE_MAX_NS);
    if (weir_ctx_timer_start(ctx, &client->pause, pause_ns, on_pause_over) == 0)
        weir_ctx_set_auto_read(ctx, false);
}

static void note_wait(struct echo_client *client)
{
    int64_t now_ns = weir__monotonic_now();

    note_most(&client->echo->longest_wait_ns, now_ns - client->received_ns);
    client->received_ns = now_ns;
}

static void check(struct echo_client *client, const weir_buf *buf)
{
    const uint8_t *bytes = weir_buf_bytes(buf);
    size_t length = weir_buf_readable(buf), wrong = 0;

    for (size_t i = 0; i < length; i++)
        wrong += bytes[i] != byte_at(client, client->received + i);
    client->received += length;
    note_wait(client);
    atomic_fetch_add_explicit(&client->echo->wrong, wrong, memory_order_relaxed);
    atomic_fetch_add_explicit(&client->echo->received, length, memory_order_relaxed);
}

static void on_reply(weir_ctx *ctx, weir_msg *msg)
{
    struct echo_client *client = client_of(ctx);

    check(client, weir_buf_of(msg));
    weir_msg_release(msg);
    if (client->received == client->to_send)
        call_counter_add(&client->echo->through);
    pause_now_and_then(ctx);
}

static void on_failure(weir_ctx *ctx, int err, const char *detail)
{
    atomic_fetch_add(&client_of(ctx)->echo->errors, 1);
    weir_fire_error(ctx, err, detail);
}

static void on_closed(weir_ctx *ctx)
{
    call_counter_add(&client_of(ctx)->echo->closed);
}

static const weir_handler client_handler = {
    .name = "client",
    .state_size = sizeof(struct echo_client *),
    .init = pointer_keep,
    .active = on_connected,
    .read = on_reply,
    .writability = send_some,
    .error = on_failure,
    .removed = on_closed,
};

/* ---- all of them ---- */

static weir_channel_options options_of(const struct echo *echo)
{
    weir_channel_options options;

    options = *WEIR_CHANNEL_OPTIONS();
    options.low_mark = echo->low_mark;
    options.high_mark = echo->high_mark;
    options.receive_max = echo->receive_max;
    options.send_buffer = echo->socket_buffer;
    options.receive_buffer = echo->socket_buffer;
    return options;
}

static int create_listener(struct echo *echo, const weir_channel_options *options)
{
    return echo->place == NULL
               ? weir_tcp_create_server(NULL, options, &echo->listener)
               : weir_unix_create_server(echo->kind, NULL, options, &echo->listener);
}

static int open_listener(struct echo *echo)
{
    weir_channel_options options = options_of(echo);
    weir_promise *bound;
    int err = weir_address_parse(echo->place != NULL ? echo->place : "127.0.0.1:0", &echo->address);

    if (err == 0)
        err = create_listener(echo, &options);
    if (err == 0)
        err = weir_pipeline_add_last(weir_channel_pipeline(echo->listener), &acceptor, echo);
    if (err == 0)
        err = weir_promise_create(weir_group_at(echo->far, 0), &bound);
    if (err < 0)
        return err;
    weir_group_register(echo->far, echo->listener, NULL);
    weir_channel_bind(echo->listener, &echo->address, bound);
    err = weir_promise_sync(bound, TEST_TIMEOUT_NS);
    weir_promise_release(bound);
    return err == 0 ? weir_channel_local_address(echo->listener, &echo->address) : err;
}

static int open_client(struct echo *echo, unsigned number)
{
    struct echo_client *client = &echo->clients[number];
    weir_channel_options options = options_of(echo);
    int err;

    client->echo = echo;
    client->seed = (echo->seed + number) * 0x2545f4914f6cdd1du;
    weir__random_init(&client->random, client->seed);
    err = echo->place == NULL ? weir_tcp_create(&options, &client->channel)
                              : weir_unix_create(echo->kind, &options, &client->channel);
    if (err == 0)
        err = prepare(echo, weir_channel_pipeline(client->channel), false);
    if (err == 0)
        err =
            weir_pipeline_add_last(weir_channel_pipeline(client->channel), &client_handler, client);
    if (err < 0)
        return err;
    weir_group_register(echo->near, client->channel, NULL);
    weir_channel_connect(client->channel, &echo->address, NULL, NULL);
    return 0;
}

/* One by one, so that as long as something goes on it is waited for. */
static bool await_all(struct call_counter *counter, uint32_t count)
{
    for (uint32_t i = atomic_load(&counter->calls) + 1; i <= count; i++)
        if (!call_counter_await(counter, i))
            return false;
    return true;
}

int echo_open(struct echo *echo, weir_group *far, weir_group *near)
{
    int err;

    echo->far = far;
    echo->near = near;
    echo->clients = calloc(echo->connections, sizeof(*echo->clients));
    if (echo->clients == NULL)
        return -ENOMEM;
    err = open_listener(echo);
    for (unsigned i = 0; i < echo->connections && err == 0; i++) {
        err = open_client(echo, i);
        if (i >= UNDER_WAY_MAX && !await_all(&echo->connected, i - UNDER_WAY_MAX))
            return -ETIMEDOUT;
    }
    return err < 0 || await_all(&echo->connected, echo->connections) ? err : -ETIMEDOUT;
}

static void begin(void *arg, int status)
{
    struct echo_client *client = arg;

    if (status < 0)
        return;
    client->to_send += client->echo->share;
    client->received_ns = weir__monotonic_now();
    send_some(client->ctx);
}

/* However long it takes: as long as bytes come it is waited for. */
static bool await_through(struct echo *echo, uint32_t count)
{
    int64_t received_ns = weir__monotonic_now();
    uint64_t received = echo->received;

    while (!call_counter_await_for(&echo->through, count, LOOK_NS)) {
        uint64_t now_received = echo->received;
        int64_t now_ns = weir__monotonic_now();

        if (now_received != received)
            received_ns = now_ns;
        else if (now_ns - received_ns >= TEST_TIMEOUT_NS)
            return false;
        received = now_received;
    }
    return true;
}

bool echo_exchange(struct echo *echo, size_t bytes)
{
    echo->share = bytes;
    echo->exchanges++;
    for (unsigned i = 0; i < echo->connections; i++) {
        struct echo_client *client = &echo->clients[i];

        if (weir_execute(client->executor, begin, client) < 0)
            return false;
    }
    return await_through(echo, echo->connections * echo->exchanges);
}

bool echo_close(struct echo *echo)
{
    bool in_time;

    for (unsigned i = 0; i < echo->connections; i++)
        if (echo->clients[i].channel != NULL)
            weir_channel_close(echo->clients[i].channel, NULL);
    in_time = await_all(&echo->closed, echo->connections);
    in_time = in_time && await_all(&echo->served, echo->connections);
    for (unsigned i = 0; i < echo->connections; i++)
        weir_channel_release(echo->clients[i].channel);
    weir_channel_close(echo->listener, NULL);
    in_time = weir_channel_await_closed(echo->listener, TEST_TIMEOUT_NS) == 0 && in_time;
    weir_channel_release(echo->listener);
    free(echo->clients);
    return in_time;
}
