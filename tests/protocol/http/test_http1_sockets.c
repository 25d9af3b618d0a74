/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides of the codec over TCP, on every backend.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <weir/channel.h>
#include <weir/client.h>
#include <weir/error.h>
#include <weir/http1.h>
#include <weir/server.h>

#include "support/bootstrap/raw_client.h"
#include "support/channel/pointer_state.h"
#include "support/codec/feed.h"
#include "support/executor/call_counter.h"
#include "support/loop/host.h"
#include "support/test.h"

/* ---- a server that sends content back while it arrives ---- */

static void echo_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_http_request *request = weir_http_request_of(msg);
    weir_http_response *response = NULL;

    if (request == NULL) {
        weir_write(ctx, msg, NULL);
        return;
    }
    if (weir_http_response_create(200, &response) == 0) {
        (void)weir_http_response_set_content_length(response,
                                                    weir_http_request_content_length(request));
        weir_write(ctx, weir_http_response_msg(response), NULL);
    }
    weir_msg_release(msg);
}

static void echo_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo", .read = echo_read, .read_complete = echo_read_complete};

static int init_child(weir_channel *channel, void *user_data)
{
    int err = weir_http1_server_add(weir_channel_pipeline(channel), user_data);

    return err == 0 ? weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL) : err;
}

static weir_server *start(struct host *host)
{
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                .init_child = init_child,
                                .child_options =
                                    WEIR_CHANNEL_OPTIONS(.half_closure = true,
                                                         .close_timeout_ns = weir_seconds(8))),
            &server),
        0);
    return server;
}

static void stop(weir_server *server)
{
    (void)weir_server_stop(server, 0, weir_seconds(10));
    weir_server_release(server);
}

/* ---- a client that checks what comes back ---- */

static const size_t sizes[] = {0, 1, 1000, 1024, 1025, 65536, 300000, 5, 0};

#define COUNT (sizeof(sizes) / sizeof(sizes[0]))
#define PIECE 20000

struct caller {
    struct call_counter ended;
    uint8_t *content;
    size_t sent_requests;
    size_t position; /* in the content of the response */
    int wrong;
};

static struct caller *caller_of(weir_ctx *ctx)
{
    return *(struct caller **)weir_ctx_state(ctx);
}

/* Every second request is chunked. */
static void send_next(weir_ctx *ctx, struct caller *caller)
{
    size_t size = sizes[caller->sent_requests];
    bool is_chunked = caller->sent_requests % 2 == 1;
    weir_http_request *request = NULL;
    weir_buf *buf;

    caller->sent_requests++;
    caller->position = 0;
    if (weir_http_request_create("POST", "http://localhost/", &request) < 0)
        return;
    (void)weir_http_request_set_content_length(request, is_chunked ? WEIR_HTTP_UNKNOWN_LENGTH
                                                                   : (int64_t)size);
    weir_write(ctx, weir_http_request_msg(request), NULL);
    for (size_t at = 0; at < size; at += PIECE)
        if (weir_buf_create_from(caller->content + at, size - at < PIECE ? size - at : PIECE,
                                 &buf) == 0)
            weir_write(ctx, weir_buf_msg(buf), NULL);
    weir_write_and_flush(ctx, weir_http_end_static(), NULL);
}

static void caller_active(weir_ctx *ctx)
{
    send_next(ctx, caller_of(ctx));
}

static void caller_read(weir_ctx *ctx, weir_msg *msg)
{
    struct caller *caller = caller_of(ctx);
    weir_buf *buf = weir_buf_of(msg);

    if (buf != NULL) {
        size_t length = weir_buf_readable(buf);

        if (caller->position + length > 300000 ||
            memcmp(weir_buf_bytes(buf), caller->content + caller->position, length) != 0)
            caller->wrong++;
        caller->position += length;
    } else if (weir_http_end_of(msg) != NULL) {
        if (caller->position != sizes[caller->sent_requests - 1])
            caller->wrong++;
        if (caller->sent_requests < COUNT)
            send_next(ctx, caller);
        else
            weir_close(ctx, NULL);
    }
    weir_msg_release(msg);
}

static void caller_inactive(weir_ctx *ctx)
{
    call_counter_add(&caller_of(ctx)->ended);
}

static const weir_handler calling = {.name = "calling",
                                     .state_size = sizeof(struct caller *),
                                     .init = pointer_keep,
                                     .active = caller_active,
                                     .read = caller_read,
                                     .inactive = caller_inactive};

static int init_client(weir_channel *channel, void *user_data)
{
    int err = weir_http1_client_add(weir_channel_pipeline(channel), NULL);

    return err == 0 ? weir_pipeline_add_last(weir_channel_pipeline(channel), &calling, user_data)
                    : err;
}

TEST_EACH_HOST(http1_sockets, echo_content_of_all_sizes)
{
    weir_server *server = start(host);
    struct caller caller = {.content = malloc(300000)};
    weir_channel *channel = NULL;
    weir_address address;

    for (size_t i = 0; i < 300000; i++)
        caller.content[i] = (uint8_t)(i * 7 + i / 256);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = host->group, .addresses = &address,
                                                     .address_count = 1, .init = init_client,
                                                     .user_data = &caller),
                                 &channel),
        0);
    assert_true(call_counter_await(&caller.ended, 1));
    assert_int_equal(caller.sent_requests, COUNT);
    assert_int_equal(caller.wrong, 0);
    weir_channel_release(channel);
    stop(server);
    free(caller.content);
}

/* ---- raw clients ---- */

static size_t occurrences(const char *text, const char *word)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        count++;
    return count;
}

TEST_EACH_HOST(http1_sockets, answer_all_requests_of_a_client_that_ends_its_stream)
{
    weir_server *server = start(host);
    int peer = raw_client_connect(server);
    char *text = malloc(100000);

    for (int i = 0; i < 100; i++)
        raw_client_send(peer, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(shutdown(peer, SHUT_WR), 0);
    raw_client_receive_all(peer, text, 100000);
    assert_int_equal(occurrences(text, "HTTP/1.1 200 OK\r\n"), 100);
    raw_client_close(peer);
    free(text);
    stop(server);
}

/* Unread input would make the kernel reset the connection, and the answer would be lost. */
TEST_EACH_HOST(http1_sockets, deliver_the_answer_to_a_refused_request)
{
    weir_server *server = start(host);
    int peer = raw_client_connect(server);
    char *text = malloc(100000);

    memset(text, 'x', 99999);
    text[99999] = '\0';
    raw_client_send(peer, "GET / HTTP/1.1\r\n\r\n");
    raw_client_send(peer, text);
    assert_int_equal(shutdown(peer, SHUT_WR), 0);
    raw_client_receive_all(peer, text, 100000);
    assert_memory_equal(text, "HTTP/1.1 400 Bad Request\r\n", 26);
    assert_int_equal(occurrences(text, "HTTP/1.1"), 1);
    raw_client_close(peer);
    free(text);
    stop(server);
}

/* Idle connections do not delay the end; a request that has begun is answered. */
TEST_EACH_LOOP(http1_sockets, drain)
{
    weir_server *server = start(host);
    int idle = raw_client_connect(server), busy = raw_client_connect(server);
    char *text = malloc(100000);

    raw_client_send(idle, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    raw_client_receive(idle, "HTTP/1.1 200 OK\r\n");
    raw_client_send(busy, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na");
    raw_client_receive(busy, "HTTP/1.1 200 OK\r\n"); /* the head has been read */
    weir_group_shutdown(host->group, 0, weir_seconds(10));
    raw_client_receive_all(idle, text, 100000);
    raw_client_send(busy, "b");
    raw_client_receive_all(busy, text, 100000);
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\nab");
    raw_client_close(idle);
    raw_client_close(busy);
    free(text);
    stop(server);
}
