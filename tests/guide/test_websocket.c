/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/34-websocket.md shows.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/embedded.h>
#include <weir/websocket.h>

#include "guide/guide_fixture.h"
#include "support/executor/call_counter.h"

/* ---- messages ---- */

/* doc:begin messages */
/* Adds up the numbers that it reads, one in each text. */
struct sum {
    long total;
};

static void on_number(weir_ctx *ctx, weir_msg *msg)
{
    struct sum *sum = weir_ctx_state(ctx);
    const weir_ws_message *message = weir_ws_message_of(msg);
    weir_span bytes = weir_ws_message_bytes(message);
    char text[32];

    if (weir_ws_message_type(message) != WEIR_WS_TEXT || bytes.length >= sizeof(text)) {
        weir_ws_close(weir_ctx_channel(ctx), WEIR_WS_UNSUPPORTED, "a number in text", NULL);
    } else {
        memcpy(text, bytes.data, bytes.length);
        text[bytes.length] = '\0';
        sum->total += strtol(text, NULL, 10);
        (void)snprintf(text, sizeof(text), "%ld", sum->total);
        weir_ws_write_text(ctx, text, NULL);
    }
    weir_msg_release(msg);
}

static const weir_handler sum_handler = {
    .name = "sum", .state_size = sizeof(struct sum), .read = on_number};
/* doc:end */

static int add_sum(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &sum_handler, NULL);
}

/* doc:begin accept */
static void open_sum(weir_http_exchange *exchange, void *user_data)
{
    static const char *const protocols[] = {"sum.v2", "sum.v1", NULL};
    static const char *const origins[] = {"https://example.org", NULL};

    (void)user_data;
    if (!weir_http_exchange_query(exchange, "token").data) {
        weir_http_respond_error(exchange, 401, "expected ?token=");
        return;
    }
    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_sum, .protocols = protocols,
                                                   .origins = origins, .max_message = 1024,
                                                   .ping_interval_ns = weir_seconds(20)));
}
/* doc:end */

/* ---- parts ---- */

/* doc:begin stream */
/* Counts the bytes of messages of any length, without collecting them. */
static void on_part(weir_ctx *ctx, weir_msg *msg)
{
    uint64_t *total = weir_ctx_state(ctx);
    const weir_ws_message *part = weir_ws_message_of(msg);
    char text[32];

    if (weir_ws_message_is_first(part))
        *total = 0;
    *total += weir_ws_message_bytes(part).length;
    if (weir_ws_message_is_last(part)) {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)*total);
        weir_ws_write_text(ctx, text, NULL);
    }
    weir_msg_release(msg);
}

static const weir_handler count_handler = {
    .name = "count", .state_size = sizeof(uint64_t), .read = on_part};

static int add_count(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &count_handler, NULL);
}

static void open_count(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_count, .stream = true,
                                                   .max_message = (uint64_t)1 << 40));
}
/* doc:end */

/* ---- compression ---- */

/* doc:begin deflate */
static void open_compressed(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_ws_accept(exchange,
                         WEIR_WS_OPTIONS(.init = add_count, .deflate = true, .deflate_level = 1,
                                         .inflate_window_bits = 12, .no_context_takeover = true));
}
/* doc:end */

/* ---- a client ---- */

/* What the client has received, for the tests. */
static struct call_counter answers, ends;
static char last_answer[64];
static unsigned last_code;

static void notice_answer(weir_span bytes)
{
    (void)snprintf(last_answer, sizeof(last_answer), "%.*s", (int)bytes.length,
                   (const char *)bytes.data);
    call_counter_add(&answers);
}

static void notice_end(unsigned code)
{
    last_code = code;
    call_counter_add(&ends);
}

/* doc:begin client */
static void on_answer(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    notice_answer(weir_ws_message_bytes(weir_ws_message_of(msg)));
    weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_ws_opened *opened = weir_ws_opened_of(event);
    const weir_ws_closed *closed = weir_ws_closed_of(event);

    if (opened != NULL && strcmp(opened->protocol, "sum.v1") == 0)
        weir_ws_write_text(ctx, "40", NULL);
    if (closed != NULL)
        notice_end(closed->code); /* WEIR_WS_LOST: no closing handshake */
    weir_fire_event(ctx, event);
}

static const weir_handler client_handler = {.name = "client", .read = on_answer, .event = on_event};

static int add_client(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &client_handler, NULL);
}

static int open_client(weir_group *group, const char *url, weir_channel **ret_channel)
{
    static const char *const protocols[] = {"sum.v1", NULL};
    weir_promise *done = NULL;
    int err = weir_promise_create(weir_executor_global(), &done);

    if (!err)
        err = weir_ws_connect(
            WEIR_WS_CLIENT_OPTIONS(.url = url, .group = group,
                                   .ws = WEIR_WS_OPTIONS(.init = add_client, .protocols = protocols,
                                                         .deflate = true)),
            done);
    if (!err)
        err = weir_promise_sync(done, weir_seconds(10));
    if (!err)
        *ret_channel = weir_channel_retain(weir_promise_value(done));
    else if (done != NULL)
        fprintf(stderr, "%s\n", weir_promise_detail(done));
    weir_promise_release(done);
    return err;
}
/* doc:end */

/* ---- closing ---- */

/* doc:begin close */
static void say_goodbye(weir_channel *channel)
{
    weir_ws_send_text(channel, "2", NULL); /* still sent, and answered */
    weir_ws_close(channel, WEIR_WS_NORMAL, "that is all", NULL);
}
/* doc:end */

/* ---- a server that sends ---- */

/* doc:begin push */
/* Sends numbers for as long as the client reads them. */
static void send_numbers(weir_ctx *ctx)
{
    int *next = weir_ctx_state(ctx);
    char text[16];

    while (weir_ctx_is_writable(ctx) && *next < 1000) {
        (void)snprintf(text, sizeof(text), "%d", ++*next);
        weir_ws_write_text(ctx, text, NULL);
    }
    if (*next == 1000)
        weir_close(ctx, NULL); /* behind the numbers, with the code 1000 */
}

static void on_opened(weir_ctx *ctx, weir_msg *event)
{
    if (weir_ws_opened_of(event) != NULL)
        send_numbers(ctx);
    weir_fire_event(ctx, event);
}

static const weir_handler numbers_handler = {
    .name = "numbers", .state_size = sizeof(int), .event = on_opened, .writability = send_numbers};
/* doc:end */

static int add_numbers(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &numbers_handler, NULL);
}

static void open_numbers(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_numbers));
}

/* ---- tests ---- */

static const weir_http_route routes[] = {
    WEIR_HTTP_ROUTE("GET", "/sum", open_sum), WEIR_HTTP_ROUTE("GET", "/count", open_count),
    WEIR_HTTP_ROUTE("GET", "/compressed", open_compressed),
    WEIR_HTTP_ROUTE("GET", "/numbers", open_numbers), WEIR_HTTP_ROUTES_END};

static weir_http_server *start(void)
{
    weir_http_server *server = NULL;

    answers.calls = 0;
    ends.calls = 0;
    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes, .threads = 1),
            &server),
        0);
    return server;
}

static weir_channel *open_path(weir_http_server *server, weir_group *group, const char *path)
{
    weir_channel *listener = weir_server_listener(weir_http_server_server(server), 0);
    char place[WEIR_ADDRESS_TEXT_SIZE], url[2 * WEIR_ADDRESS_TEXT_SIZE];
    weir_channel *channel = NULL;
    weir_address address;

    assert_int_equal(weir_channel_local_address(listener, &address), 0);
    weir_address_format(&address, place, sizeof(place));
    (void)snprintf(url, sizeof(url), "ws://%s%s", place, path);
    return open_client(group, url, &channel) == 0 ? channel : NULL;
}

TEST(guide_websocket, a_sum_and_a_goodbye)
{
    weir_http_server *server = start();
    weir_group *group = make_loops(1);
    weir_channel *channel = open_path(server, group, "/sum?token=x");

    assert_non_null(channel);
    assert_true(call_counter_await(&answers, 1));
    assert_string_equal(last_answer, "40");
    say_goodbye(channel);
    assert_true(call_counter_await(&ends, 1));
    assert_string_equal(last_answer, "42");
    assert_int_equal(last_code, WEIR_WS_NORMAL);
    weir_channel_release(channel);
    assert_null(open_path(server, group, "/sum")); /* 401 */
    weir_http_server_release(server);
    end_group(group);
}

static void assert_counts(const char *path)
{
    static char bytes[100000];
    weir_http_server *server = start();
    weir_group *group = make_loops(1);
    weir_channel *channel = open_path(server, group, path);

    assert_non_null(channel);
    weir_ws_send_binary(channel, bytes, sizeof(bytes), NULL);
    assert_true(call_counter_await(&answers, 1));
    assert_string_equal(last_answer, "100000");
    weir_channel_release(channel);
    weir_http_server_release(server); /* drains: 1001 */
    assert_true(call_counter_await(&ends, 1));
    assert_int_equal(last_code, WEIR_WS_GOING_AWAY);
    end_group(group);
}

TEST(guide_websocket, parts)
{
    assert_counts("/count");
}

TEST(guide_websocket, compression)
{
    assert_counts("/compressed");
}

TEST(guide_websocket, a_server_that_sends)
{
    weir_http_server *server = start();
    weir_group *group = make_loops(1);
    weir_channel *channel = open_path(server, group, "/numbers");

    assert_non_null(channel);
    assert_true(call_counter_await(&ends, 1));
    assert_int_equal(answers.calls, 1000);
    assert_string_equal(last_answer, "1000");
    weir_channel_release(channel);
    weir_http_server_release(server);
    end_group(group);
}

/* ---- to many ---- */

/* doc:begin lossless */
#define BEHIND_MAX (1024 * 1024) /* bytes that wait for a client */

/* Everybody gets every message. A client that has fallen behind is disconnected instead. */
static bool keeps_up(weir_channel *channel, void *user_data)
{
    (void)user_data;
    if (weir_channel_pending_bytes(channel) < BEHIND_MAX)
        return true;
    weir_channel_abort(channel, NULL); /* it leaves the group */
    return false;
}

static void send_to_all(weir_channel_group *clients, weir_buf *text)
{
    weir_ws_message *message;

    if (weir_ws_message_create(WEIR_WS_TEXT, text, &message) == 0)
        weir_channel_group_write_and_flush(clients, weir_ws_message_msg(message), NULL, keeps_up,
                                           NULL);
}
/* doc:end */

static size_t take_all(weir_embedded *embedded)
{
    weir_msg *msg;
    size_t count = 0;

    for (; (msg = weir_embedded_read_outbound(embedded)) != NULL; count++)
        weir_msg_release(msg);
    return count;
}

/* One client reads, the other pauses for a while: it loses nothing. Then it stays away. */
TEST(guide_websocket, to_all_without_loss)
{
    weir_embedded *reader, *sleeper;
    weir_channel_group *clients;
    const char text[1000] = "";
    size_t read = 0;
    weir_buf *buf;

    assert_int_equal(weir_embedded_create(NULL, &reader), 0);
    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.socket_space = 1), &sleeper), 0);
    assert_int_equal(weir_channel_group_create(NULL, &clients), 0);
    assert_int_equal(weir_channel_group_add(clients, weir_embedded_channel(reader)), 0);
    assert_int_equal(weir_channel_group_add(clients, weir_embedded_channel(sleeper)), 0);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(weir_buf_create_from(text, sizeof(text), &buf), 0);
        send_to_all(clients, buf);
        weir_embedded_run(reader);
        weir_embedded_run(sleeper);
        read += take_all(reader);
        if (i == 499) {
            assert_false(weir_channel_is_writable(weir_embedded_channel(sleeper)));
            weir_embedded_make_space(sleeper, 500 * 1100);
            assert_int_equal(take_all(sleeper), 500);
        }
    }
    assert_int_equal(read, 2000);
    assert_int_equal(weir_channel_group_size(clients), 1);
    assert_false(weir_channel_is_open(weir_embedded_channel(sleeper)));
    weir_channel_group_release(clients);
    weir_embedded_release(reader);
    weir_embedded_release(sleeper);
}

/* doc:begin embedded */
static void assert_answers(weir_embedded *embedded, const char *number, const char *sum)
{
    weir_ws_message *message = NULL;
    weir_msg *answer;
    weir_span bytes;

    assert_int_equal(weir_ws_message_create_from(WEIR_WS_TEXT, number, strlen(number), &message),
                     0);
    weir_embedded_write_inbound(embedded, weir_ws_message_msg(message));
    answer = weir_embedded_read_outbound(embedded);
    assert_non_null(answer);
    bytes = weir_ws_message_bytes(weir_ws_message_of(answer));
    assert_int_equal(bytes.length, strlen(sum));
    assert_memory_equal(bytes.data, sum, bytes.length);
    weir_msg_release(answer);
}

TEST(guide_websocket, without_a_socket)
{
    weir_embedded *embedded = embed(&sum_handler, NULL);

    assert_answers(embedded, "40", "40");
    assert_answers(embedded, "2", "42");
    weir_embedded_release(embedded);
}
/* doc:end */
