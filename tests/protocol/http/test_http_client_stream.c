/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose content streams, in either direction, on every backend.
 */
#include <weir/http_client.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/error.h>
#include <weir/timer.h>

#include "support/executor/group.h"
#include "support/loop/sockets.h"
#include "support/protocol/http/client_fixture.h"
#include "support/protocol/http/scripted_server.h"
#include "support/test.h"

#define REPLIES(...) ((const struct scripted_reply[]){__VA_ARGS__, {0}})
#define OK SCRIPTED_OK
#define PIECE 10000

static weir_msg *piece_of(char letter, size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(length, 0, &buf), 0);
    assert_int_equal(weir_buf_write_fill(buf, (uint8_t)letter, length), 0);
    return weir_buf_msg(buf);
}

static weir_http_request *request_of(const char *method, const char *url)
{
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create(method, url, &request), 0);
    return request;
}

static weir_http_call *start(weir_http_client *client, weir_http_request *request,
                             struct streamed *streamed, weir_http_call_options options)
{
    weir_http_call *call = NULL;

    options.size = sizeof(options);
    options.events = &streamed_events;
    options.user_data = streamed;
    assert_int_equal(weir_http_client_send(client, request, NULL, &options, &call), 0);
    return call;
}

static void await_end(struct streamed *streamed, weir_http_call *call)
{
    assert_true(call_counter_await_for(&streamed->ends, 1, TEST_TIMEOUT_NS));
    weir_http_call_release(call);
}

/* ---- receiving ---- */

TEST_EACH_LOOP(http_client_stream, passes_content_on_as_it_arrives)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_client *client;
    weir_http_call *call;

    scripted_server_open(&server, host,
                         REPLIES({.text = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                                          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                          "5\r\nhello\r\n7\r\n, world\r\n0\r\nX-Sum: 42\r\n\r\n"}));
    client = client_open(host, NULL);
    call = start(client, request_of("GET", scripted_server_url(&server, "http", "/", url)),
                 &streamed, (weir_http_call_options){0});
    await_end(&streamed, call);
    assert_int_equal(streamed.err, 0);
    assert_int_equal(streamed.status, 200);
    assert_int_equal(streamed.length, 12);
    assert_int_equal(streamed.informationals.calls, 1);
    assert_int_equal(streamed.heads.calls, 1);
    assert_string_equal(streamed.trailer, "42");
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client_stream, reads_on_demand)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_client *client;
    weir_http_call *call;
    uint32_t pieces = 0;

    scripted_server_open(
        &server, host,
        REPLIES({.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "5\r\nhello\r\n5\r\nhello\r\n5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n"},
                {.text = OK(2, "ok")}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    call = start(client, request_of("GET", url), &streamed,
                 (weir_http_call_options){.read_on_demand = true});
    assert_true(call_counter_await_for(&streamed.heads, 1, TEST_TIMEOUT_NS));
    host_turn(host, 3);
    assert_int_equal(streamed.pieces.calls, 0);
    while (streamed.length < 20) {
        weir_http_call_read(call);
        assert_true(call_counter_await_for(&streamed.pieces, ++pieces, TEST_TIMEOUT_NS));
        host_turn(host, 3);
        assert_int_equal(streamed.pieces.calls, pieces);
        assert_int_equal(streamed.ends.calls, 0);
    }
    weir_http_call_read(call);
    await_end(&streamed, call);
    assert_int_equal(streamed.err, 0);
    assert_string_equal(client_get(client, url).content, "ok"); /* auto-read is on again */
    assert_int_equal(server.connections, 1);
    client_close(client);
    scripted_server_close(&server);
}

/* ---- sending ---- */

TEST_EACH_LOOP(http_client_stream, sends_content_of_unknown_length)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_request *request;
    weir_http_client *client;
    weir_http_call *call;

    scripted_server_open(&server, host, REPLIES({.text = OK(2, "ok")}));
    client = client_open(host, NULL);
    request = request_of("POST", scripted_server_url(&server, "http", "/", url));
    assert_int_equal(weir_http_request_set_content_length(request, WEIR_HTTP_UNKNOWN_LENGTH), 0);
    call = start(client, request, &streamed, (weir_http_call_options){.stream_content = true});
    assert_int_equal(weir_http_call_write(call, piece_of('a', 5), NULL), 0); /* queued, perhaps */
    assert_true(call_counter_await_for(&streamed.writables, 1, TEST_TIMEOUT_NS));
    assert_true(weir_http_call_is_writable(call));
    assert_int_equal(weir_http_call_write(call, piece_of('b', 3), NULL), 0);
    assert_int_equal(weir_http_call_end(call, NULL), 0);
    await_end(&streamed, call);
    assert_int_equal(streamed.err, 0);
    assert_int_equal(streamed.length, 2);
    assert_non_null(strstr(server.last, "Transfer-Encoding: chunked\r\n"));
    assert_non_null(strstr(server.last, "\r\n5\r\naaaaa\r\n"));
    assert_non_null(strstr(server.last, "\r\n3\r\nbbb\r\n0\r\n\r\n"));
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client_stream, sends_much_content_from_another_thread)
{
    enum { PIECES = 300 };
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_request *request;
    weir_http_client *client;
    weir_http_call *call;
    weir_promise *last;

    scripted_server_open(&server, host, REPLIES({.text = OK(2, "ok")}));
    client = client_open(host, NULL);
    request = request_of("PUT", scripted_server_url(&server, "http", "/", url));
    assert_int_equal(weir_http_request_set_content_length(request, PIECES * PIECE), 0);
    call = start(client, request, &streamed, (weir_http_call_options){.stream_content = true});
    for (unsigned i = 0; i + 1 < PIECES; i++)
        assert_int_equal(weir_http_call_write(call, piece_of('x', PIECE), NULL), 0);
    assert_int_equal(weir_promise_create(NULL, &last), 0);
    assert_int_equal(weir_http_call_write(call, piece_of('y', PIECE), last), 0);
    assert_int_equal(weir_http_call_end(call, NULL), 0);
    assert_int_equal(weir_promise_sync(last, TEST_TIMEOUT_NS), 0);
    weir_promise_release(last);
    await_end(&streamed, call);
    assert_int_equal(streamed.err, 0);
    assert_true(server.last_length > PIECES * PIECE);
    client_close(client);
    scripted_server_close(&server);
}

struct sending {
    weir_http_client *client;
    weir_http_request *request;
    struct streamed *streamed;
    weir_http_call *call;
    bool was_called; /* an event, before the call has returned */
    struct call_counter sent;
};

static void send_on_loop(void *arg, int status)
{
    struct sending *sending = arg;

    (void)status;
    IGNORE_RESULT(weir_http_client_send(sending->client, sending->request, NULL,
                                        WEIR_HTTP_CALL_OPTIONS(.events = &streamed_events,
                                                               .user_data = sending->streamed,
                                                               .stream_content = true),
                                        &sending->call));
    sending->was_called = sending->streamed->writables.calls > 0;
    call_counter_add(&sending->sent);
}

TEST_EACH_LOOP(http_client_stream, calls_no_event_before_send_has_returned)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    struct sending sending = {.streamed = &streamed};

    scripted_server_open(&server, host, REPLIES({.text = OK(2, "ok")}));
    sending.client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    assert_string_equal(client_get(sending.client, url).content, "ok"); /* leaves a connection */
    sending.request = request_of("POST", url);
    assert_int_equal(weir_http_request_set_content_length(sending.request, 5), 0);
    assert_int_equal(weir_execute(host->loop, send_on_loop, &sending), 0);
    assert_true(call_counter_await_for(&sending.sent, 1, TEST_TIMEOUT_NS));
    assert_non_null(sending.call);
    assert_false(sending.was_called);
    assert_true(call_counter_await_for(&streamed.writables, 1, TEST_TIMEOUT_NS));
    assert_int_equal(weir_http_call_write(sending.call, piece_of('x', 5), NULL), 0);
    assert_int_equal(weir_http_call_end(sending.call, NULL), 0);
    await_end(&streamed, sending.call);
    assert_int_equal(streamed.err, 0);
    assert_int_equal(server.connections, 1);
    client_close(sending.client);
    scripted_server_close(&server);
}

/* On the loop, which has the pieces of another thread in the mailbox of the call. */
static void *write_first(void *call)
{
    assert_int_equal(weir_http_call_write(call, piece_of('a', 5), NULL), 0);
    return NULL;
}

static void write_last(void *call, int status)
{
    pthread_t other;

    (void)status;
    assert_int_equal(pthread_create(&other, NULL, write_first, call), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(weir_http_call_write(call, piece_of('b', 3), NULL), 0);
    assert_int_equal(weir_http_call_end(call, NULL), 0);
}

TEST_EACH_LOOP(http_client_stream, writes_on_the_loop_after_another_thread)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_request *request;
    weir_http_client *client;
    weir_http_call *call;

    scripted_server_open(&server, host, REPLIES({.text = OK(2, "ok")}));
    client = client_open(host, NULL);
    request = request_of("POST", scripted_server_url(&server, "http", "/", url));
    assert_int_equal(weir_http_request_set_content_length(request, WEIR_HTTP_UNKNOWN_LENGTH), 0);
    call = start(client, request, &streamed, (weir_http_call_options){.stream_content = true});
    assert_true(call_counter_await_for(&streamed.writables, 1, TEST_TIMEOUT_NS));
    assert_int_equal(weir_execute(host->loop, write_last, call), 0);
    await_end(&streamed, call);
    assert_int_equal(streamed.err, 0);
    assert_non_null(strstr(server.last, "\r\n5\r\naaaaa\r\n3\r\nbbb\r\n0\r\n\r\n"));
    client_close(client);
    scripted_server_close(&server);
}

/* The content looks like a second request to the scripted server. */
TEST_EACH_LOOP(http_client_stream, sends_content_after_a_continue)
{
    static const char content[] = "the content\r\n\r\n";
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_request *request;
    weir_http_client *client;
    weir_http_call *call = NULL;
    weir_buf *buf = NULL;

    scripted_server_open(
        &server, host,
        REPLIES({.text = "HTTP/1.1 100 Continue\r\n\r\n", .at_head = true}, {.text = OK(2, "ok")}));
    client = client_open(host, NULL);
    request = request_of("PUT", scripted_server_url(&server, "http", "/", url));
    assert_int_equal(weir_http_headers_add_text(weir_http_request_headers(request),
                                                WEIR_HTTP_EXPECT, "100-continue"),
                     0);
    assert_int_equal(weir_buf_create_from(content, sizeof(content) - 1, &buf), 0);
    assert_int_equal(weir_http_client_send(
                         client, request, weir_buf_msg(buf),
                         WEIR_HTTP_CALL_OPTIONS(.events = &streamed_events, .user_data = &streamed),
                         &call),
                     0);
    await_end(&streamed, call);
    assert_int_equal(streamed.err, 0);
    assert_int_equal(streamed.informationals.calls, 1);
    assert_string_equal(server.last, content);
    client_close(client);
    scripted_server_close(&server);
}

/* What was not asked for: the connection still waits for the content when the response comes. */
TEST_EACH_LOOP(http_client_stream, keeps_the_content_when_the_server_hints_only)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_request *request;
    weir_http_client *client;
    weir_http_call *call = NULL;

    scripted_server_open(&server, host,
                         REPLIES({.text = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                                          "HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n",
                                  .at_head = true}));
    client = client_open(host, NULL);
    request = request_of("PUT", scripted_server_url(&server, "http", "/", url));
    assert_int_equal(weir_http_headers_add_text(weir_http_request_headers(request),
                                                WEIR_HTTP_EXPECT, "100-continue"),
                     0);
    assert_int_equal(weir_http_client_send(
                         client, request, piece_of('x', PIECE),
                         WEIR_HTTP_CALL_OPTIONS(.events = &streamed_events, .user_data = &streamed),
                         &call),
                     0);
    await_end(&streamed, call);
    assert_int_equal(streamed.status, 413);
    assert_int_equal(streamed.informationals.calls, 1);
    assert_int_equal(client_get(client, url).status, 413);
    assert_int_equal(server.connections, 2);
    client_close(client);
    scripted_server_close(&server);
}

static void await_input(int descriptor)
{
    struct pollfd input = {.fd = descriptor, .events = POLLIN};

    assert_int_equal(poll(&input, 1, (int)(TEST_TIMEOUT_NS / weir_ms(1))), 1);
}

/* The other end of a connection that is reset by a timer of the client's loop. */
struct resetter {
    int descriptor;
};

static void on_reset(void *arg, int status)
{
    struct resetter *resetter = arg;

    (void)status;
    socket_reset(resetter->descriptor);
}

/* A reset between the I/O of a turn and its timers: the write after the wait for status 100 is the
 * first to see it, and ends the call from within. */
static void end_in_the_timer(struct host *host, bool streams)
{
    struct address address;
    struct streamed streamed = {0};
    struct resetter resetter;
    struct host stepped = *host;
    const struct sockaddr_in *bound = (const struct sockaddr_in *)&address.storage;
    char url[64], host_text[INET_ADDRSTRLEN], bytes[4096];
    int listener = socket_listen(AF_INET, 8, &address);
    weir_manual_clock *clock = NULL;
    weir_http_client *client;
    weir_http_request *request;
    weir_http_call *call = NULL;
    weir_promise *resetting = NULL;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &clock), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = host->backend->io,
                                                          .clock = weir_manual_clock_clock(clock)),
                                       &stepped.group),
                     0);
    stepped.loop = weir_group_at(stepped.group, 0);
    client = client_open(&stepped, NULL);
    assert_non_null(inet_ntop(AF_INET, &bound->sin_addr, host_text, sizeof(host_text)));
    (void)snprintf(url, sizeof(url), "http://%s:%u/", host_text, ntohs(bound->sin_port));
    request = request_of("PUT", url);
    assert_int_equal(weir_http_headers_add_text(weir_http_request_headers(request),
                                                WEIR_HTTP_EXPECT, "100-continue"),
                     0);
    assert_int_equal(weir_http_client_send(client, request, streams ? NULL : piece_of('x', PIECE),
                                           WEIR_HTTP_CALL_OPTIONS(.stream_content = streams,
                                                                  .events = &streamed_events,
                                                                  .user_data = &streamed),
                                           &call),
                     0);
    if (streams)
        assert_int_equal(weir_http_call_write(call, piece_of('x', PIECE), NULL), 0);
    weir_http_call_release(call); /* the loop has the only reference */
    await_input(listener);
    resetter.descriptor = accept(listener, NULL, NULL);
    assert_true(resetter.descriptor >= 0);
    await_input(resetter.descriptor);
    assert_true(recv(resetter.descriptor, bytes, sizeof(bytes), 0) > 0);
    assert_int_equal(weir_schedule(stepped.loop, weir_ms(999), on_reset, &resetter, &resetting), 0);
    host_turn(&stepped, 2);
    assert_int_equal(weir_manual_clock_advance(clock, weir_ms(1001)), 0);
    assert_true(call_counter_await_for(&streamed.ends, 1, TEST_TIMEOUT_NS));
    assert_true(streamed.err < 0);
    assert_int_equal(weir_promise_sync(resetting, TEST_TIMEOUT_NS), 0);
    weir_promise_release(resetting);
    client_close(client);
    end_group(stepped.group);
    weir_manual_clock_release(clock);
    assert_int_equal(close(listener), 0);
}

TEST_EACH_LOOP(http_client_stream, survives_a_reset_when_it_has_waited_for_a_continue)
{
    end_in_the_timer(host, false);
}

TEST_EACH_LOOP(http_client_stream, survives_a_reset_when_it_streams_without_a_continue)
{
    end_in_the_timer(host, true);
}

TEST_EACH_LOOP(http_client_stream, sends_no_content_that_is_refused)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_request *request;
    weir_http_client *client;
    weir_http_call *call = NULL;

    scripted_server_open(
        &server, host,
        REPLIES({.text = "HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n", .at_head = true}));
    client = client_open(host, NULL);
    request = request_of("PUT", scripted_server_url(&server, "http", "/", url));
    assert_int_equal(weir_http_headers_add_text(weir_http_request_headers(request),
                                                WEIR_HTTP_EXPECT, "100-continue"),
                     0);
    assert_int_equal(weir_http_client_send(
                         client, request, piece_of('x', PIECE),
                         WEIR_HTTP_CALL_OPTIONS(.events = &streamed_events, .user_data = &streamed),
                         &call),
                     0);
    await_end(&streamed, call);
    assert_int_equal(streamed.err, 0);
    assert_int_equal(streamed.status, 413);
    assert_int_equal(server.requests, 1);
    assert_int_equal(client_get(client, url).status, 413);
    assert_int_equal(server.connections, 2); /* the first one waits for content */
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client_stream, gets_a_response_before_it_has_sent_everything)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_request *request;
    weir_http_client *client;
    weir_http_call *call;
    weir_promise *done;

    scripted_server_open(&server, host, REPLIES({.text = OK(5, "early"), .at_head = true}));
    client = client_open(host, NULL);
    request = request_of("POST", scripted_server_url(&server, "http", "/", url));
    assert_int_equal(weir_http_request_set_content_length(request, 1000000), 0);
    call = start(client, request, &streamed, (weir_http_call_options){.stream_content = true});
    assert_true(call_counter_await_for(&streamed.ends, 1, TEST_TIMEOUT_NS));
    assert_int_equal(streamed.err, 0);
    assert_int_equal(streamed.length, 5);
    assert_int_equal(weir_promise_create(NULL, &done), 0);
    assert_int_equal(weir_http_call_write(call, piece_of('x', 5), done), 0);
    assert_int_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), WEIR_ECLOSED);
    weir_promise_release(done);
    weir_http_call_release(call);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client_stream, cannot_repeat_streamed_content)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_request *request;
    weir_http_client *client;
    weir_http_call *call;

    scripted_server_open(
        &server, host,
        REPLIES({.text = "HTTP/1.1 307 X\r\nContent-Length: 0\r\nLocation: /b\r\n\r\n"}));
    client = client_open(host, NULL);
    request = request_of("POST", scripted_server_url(&server, "http", "/", url));
    assert_int_equal(weir_http_request_set_content_length(request, 5), 0);
    call = start(client, request, &streamed, (weir_http_call_options){.stream_content = true});
    assert_int_equal(weir_http_call_write(call, piece_of('x', 5), NULL), 0);
    assert_int_equal(weir_http_call_end(call, NULL), 0);
    await_end(&streamed, call);
    assert_int_equal(streamed.err, -ENOTSUP);
    client_close(client);
    scripted_server_close(&server);
}

/* ---- cancellation ---- */

TEST_EACH_LOOP(http_client_stream, ends_once_however_often_it_is_cancelled)
{
    struct scripted_server server;
    struct streamed streamed = {0};
    char url[256];
    weir_http_client *client;
    weir_http_call *call;

    scripted_server_open(&server, host, REPLIES({.text = OK(100, "hello")}));
    client = client_open(host, NULL);
    call = start(client, request_of("GET", scripted_server_url(&server, "http", "/", url)),
                 &streamed, (weir_http_call_options){0});
    assert_true(call_counter_await_for(&streamed.heads, 1, TEST_TIMEOUT_NS));
    weir_http_call_cancel(call);
    weir_http_call_cancel(call);
    assert_true(call_counter_await_for(&streamed.ends, 1, TEST_TIMEOUT_NS));
    weir_http_call_cancel(call);
    weir_http_call_read(call);
    assert_int_equal(weir_http_call_end(call, NULL), -EINVAL);
    host_turn(host, 2);
    assert_int_equal(streamed.ends.calls, 1);
    assert_int_equal(streamed.err, WEIR_ECANCELED);
    assert_int_equal(client_stats(client).connections, 0);
    weir_http_call_release(call);
    client_close(client);
    scripted_server_close(&server);
}

/* ---- many threads ---- */

struct fetcher {
    weir_http_client *client;
    const char *url;
    unsigned cancels; /* every n-th call */
    unsigned wrong;
};

static void *fetch_many(void *arg)
{
    struct fetcher *fetcher = arg;

    for (unsigned i = 1; i <= 100; i++) {
        weir_promise *promise;
        int result;

        if (weir_http_client_fetch(fetcher->client, WEIR_HTTP_FETCH_OPTIONS(.url = fetcher->url),
                                   &promise) < 0) {
            fetcher->wrong++;
            continue;
        }
        if (i % fetcher->cancels == 0)
            (void)weir_promise_cancel(promise);
        (void)weir_promise_await(promise, TEST_TIMEOUT_NS);
        result = weir_promise_result(promise);
        if (result != 0 && result != WEIR_ECANCELED)
            fetcher->wrong++;
        weir_promise_release(promise);
    }
    return NULL;
}

TEST_EACH_LOOP(http_client_stream, serves_many_threads)
{
    enum { THREADS = 4 };
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    pthread_t threads[THREADS];
    struct fetcher fetchers[THREADS];

    scripted_server_open(&server, host, REPLIES({.text = OK(5, "hello")}));
    client = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.max_connections = 2));
    scripted_server_url(&server, "http", "/", url);
    for (unsigned i = 0; i < THREADS; i++) {
        fetchers[i] = (struct fetcher){.client = client, .url = url, .cancels = i + 2};
        assert_int_equal(pthread_create(&threads[i], NULL, fetch_many, &fetchers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(fetchers[i].wrong, 0);
    }
    client_close(client);
    scripted_server_close(&server);
}

/* Calls on all loops end, whatever they are doing when the client is closed. */
TEST_EACH_LOOP(http_client_stream, ends_everything_on_several_loops)
{
    enum { CALLS = 60 };
    struct scripted_server server;
    char url[256];
    weir_group *group = NULL;
    weir_http_client *client = NULL;
    weir_promise *promises[CALLS];

    scripted_server_open(&server, host,
                         REPLIES({.text = OK(5, "hello")}, {.text = ""}, {.text = OK(9, "cut")}));
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 3, .io = host->backend->io), &group), 0);
    assert_int_equal(weir_http_client_create(
                         WEIR_HTTP_CLIENT_OPTIONS(.group = group, .max_connections = 4), &client),
                     0);
    for (unsigned i = 0; i < CALLS; i++) {
        /* Names of one address are different origins, on different loops. */
        (void)snprintf(url, sizeof(url), "http://127.0.0.%u:%s/", 1 + i % 7,
                       strrchr(server.address, ':') + 1);
        assert_int_equal(
            weir_http_client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url), &promises[i]), 0);
    }
    weir_http_client_close(client);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(weir_promise_await(promises[i], TEST_TIMEOUT_NS), 0);
        weir_promise_release(promises[i]);
    }
    assert_int_equal(weir_promise_sync(weir_http_client_closed(client), TEST_TIMEOUT_NS), 0);
    assert_int_equal(client_stats(client).calls, 0);
    weir_http_client_release(client);
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    weir_group_release(group);
    scripted_server_close(&server);
}
