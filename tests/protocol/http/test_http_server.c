/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP servers over sockets, on every backend: options, routes on groups, streaming, drain.
 */
#include <weir/http_server.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <weir/clock.h>
#include <weir/error.h>
#include <weir/http_client.h>
#include <weir/http_files.h>
#include <weir/loop.h>
#include <weir/proxy_protocol.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/executor/gate.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/memory.h"
#include "support/protocol/http/disk_tree.h"
#include "support/protocol/http/http_call.h"

static const weir_channel_options quick = {.size = sizeof(quick),
                                           .close_timeout_ns = 200 * 1000 * 1000};

static weir_http_server *start(weir_group *group, const weir_http_route *routes)
{
    weir_http_server *server = NULL;

    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = group, .child_options = &quick),
                               &server),
        0);
    return server;
}

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond_text(exchange, 200, "hello");
}

static void repeat(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_respond(exchange, 200,
                            weir_buf_msg(weir_buf_retain(weir_http_exchange_content(exchange))));
}

static const weir_http_route routes[] = {
    {"GET", "/", hello}, {"POST", "/repeat", repeat, .max_content = 10000}, {0}};

TEST_EACH_HOST(http_server, answers)
{
    weir_http_server *server = start(host->group, routes);
    char answer[HTTP_CALL_SIZE];

    http_call(server, HTTP_LAST("/"), answer);
    assert_contains(answer, "HTTP/1.1 200 OK\r\n");
    assert_contains(answer, "Content-Length: 5\r\n");
    assert_contains(answer, "\r\n\r\nhello");
    http_call(server, HTTP_LAST("/none"), answer);
    assert_contains(answer, "HTTP/1.1 404 Not Found\r\n");
    http_call(server,
              HTTP_CALL("POST /repeat") "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                                        "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
              answer);
    assert_contains(answer, "\r\n\r\nabcdefg");
    weir_http_server_release(server);
}

/* Asks on one connection, and receives each answer before the next request. */
static void ask_often(int peer, int times)
{
    char answer[512];
    size_t length;

    for (int i = 0; i < times; i++) {
        raw_client_send(peer, HTTP_CALL("GET /") "\r\n");
        length = 0;
        do {
            raw_client_receive_bytes(peer, answer + length++, 1);
        } while (length < 9 || memcmp(answer + length - 9, "\r\n\r\nhello", 9) != 0);
    }
}

/* Head, exchange and response are blocks of the pool. */
TEST_EACH_HOST(http_server, allocates_nothing_for_a_request)
{
    weir_http_server *server = start(host->group, routes);
    int peer = raw_client_connect(weir_http_server_server(server));
    size_t allocations;

    ask_often(peer, 100);
    allocations = test_memory_allocations();
    ask_often(peer, 500);
    assert_int_equal(test_memory_allocations(), allocations);
    raw_client_close(peer);
    weir_http_server_release(server);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

TEST_EACH_HOST(http_server, answers_pipelined_requests_in_order)
{
    weir_http_server *server = start(host->group, routes);
    char answer[HTTP_CALL_SIZE];
    const char *second;

    http_call(server,
              HTTP_GET("/")
                  HTTP_CALL("POST /repeat") "Content-Length: 3\r\n\r\nabc" HTTP_GET("/none")
                      HTTP_LAST("/"),
              answer);
    assert_int_equal(count_of(answer, "HTTP/1.1 "), 4);
    second = strstr(answer, "\r\n\r\nabc");
    assert_non_null(second);
    assert_non_null(strstr(second, "404 Not Found"));
    assert_contains(answer, "Connection: close");
    weir_http_server_release(server);
}

static _Atomic(weir_http_exchange *) begun;

static int write_text(weir_http_exchange *exchange, const char *text)
{
    weir_buf *piece = NULL;
    int err = weir_buf_create_from(text, strlen(text), &piece);

    return err < 0 ? err : weir_http_exchange_write(exchange, weir_buf_msg(piece), NULL);
}

static void begin_five(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    begun = weir_http_exchange_retain(exchange);
    (void)weir_http_exchange_begin(exchange, 200, 5);
    (void)write_text(exchange, "abc");
}

/* Even if everything before has been sent. */
TEST_EACH_HOST(http_server, resets_a_response_that_is_not_as_long_as_it_said)
{
    static const weir_http_route table[] = {{"GET", "/", begin_five}, {0}};
    weir_http_server *server = start(host->group, table);
    int peer = raw_client_connect(weir_http_server_server(server));
    char answer[HTTP_CALL_SIZE];

    raw_client_send(peer, HTTP_GET("/"));
    http_call_receive_one(peer, 3, answer);
    assert_contains(answer, "abc");
    assert_int_equal(write_text(begun, "defg"), 0); /* one byte too many: fails on the loop */
    weir_http_exchange_release(begun);
    assert_false(http_call_receive(peer, answer));
    raw_client_close(peer);
    weir_http_server_release(server);
}

/* ---- handlers on another group ---- */

struct elsewhere {
    weir_group *group;
    _Atomic bool is_wrong; /* something ran on another thread */
    struct call_counter lost;
    struct call_counter content;
    char text[64];
};

static void note_thread(struct elsewhere *elsewhere, weir_http_exchange *exchange)
{
    weir_executor *loop = weir_channel_executor(weir_http_exchange_channel(exchange));
    bool is_member = false;

    for (size_t i = 0; i < weir_group_count(elsewhere->group); i++)
        is_member = is_member || weir_in_executor(weir_group_at(elsewhere->group, i));
    if (!is_member || weir_in_executor(loop))
        elsewhere->is_wrong = true;
}

static void answer_elsewhere(weir_http_exchange *exchange, void *user_data)
{
    weir_buf *content = weir_http_exchange_content(exchange);
    weir_span name = weir_http_exchange_parameter(exchange, "name");
    char text[64];

    note_thread(user_data, exchange);
    snprintf(text, sizeof(text), "%.*s %.*s", (int)name.length, (const char *)name.data,
             (int)weir_buf_readable(content), (const char *)weir_buf_bytes(content));
    (void)weir_http_respond_text(exchange, 200, text);
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct elsewhere *elsewhere = user_data;
    weir_buf *buf = weir_buf_of(msg);
    size_t length = strlen(elsewhere->text);

    note_thread(elsewhere, exchange);
    if (buf != NULL) {
        snprintf(elsewhere->text + length, sizeof(elsewhere->text) - length, "%.*s",
                 (int)weir_buf_readable(buf), (const char *)weir_buf_bytes(buf));
        weir_msg_release(msg);
        call_counter_add(&elsewhere->content);
        weir_http_exchange_read(exchange);
        return;
    }
    if (err < 0)
        return; /* on_lost comes after it */
    (void)weir_http_respond_text(exchange, 200, elsewhere->text);
    weir_http_exchange_release(exchange);
}

static void on_lost(weir_http_exchange *exchange, void *user_data)
{
    struct elsewhere *elsewhere = user_data;

    note_thread(elsewhere, exchange);
    weir_http_exchange_release(exchange);
    call_counter_add(&elsewhere->lost);
}

static void stream_elsewhere(weir_http_exchange *exchange, void *user_data)
{
    struct elsewhere *elsewhere = user_data;

    note_thread(elsewhere, exchange);
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_content, elsewhere);
    weir_http_exchange_on_lost(exchange, on_lost, elsewhere);
    weir_http_exchange_read(exchange);
}

static void forget(weir_http_exchange *exchange, void *user_data)
{
    note_thread(user_data, exchange);
}

TEST_EACH_HOST(http_server, runs_handlers_on_their_group)
{
    struct elsewhere elsewhere = {0};
    const weir_http_route table[] = {
        {"POST", "/{name}", answer_elsewhere, &elsewhere, .group = &elsewhere.group},
        {"POST", "/stream", stream_elsewhere, &elsewhere, true, .group = &elsewhere.group},
        {"GET", "/forget", forget, &elsewhere, .group = &elsewhere.group},
        {0}};
    weir_http_server *server;
    char answer[HTTP_CALL_SIZE];
    int peer;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 2, .io = WEIR_IO_NONE), &elsewhere.group),
        0);
    server = start(host->group, table);
    http_call(server, HTTP_CALL("POST /a%20b") "Connection: close\r\nContent-Length: 3\r\n\r\nxyz",
              answer);
    assert_contains(answer, "\r\n\r\na b xyz");

    peer = raw_client_connect(weir_http_server_server(server));
    raw_client_send(peer, HTTP_CALL("POST /stream") "Content-Length: 6\r\n\r\nabc");
    assert_true(call_counter_await(&elsewhere.content, 1));
    raw_client_send(peer, "def");
    http_call_receive_one(peer, 6, answer);
    assert_contains(answer, "\r\n\r\nabcdef");
    raw_client_send(peer, HTTP_CALL("POST /stream") "Content-Length: 6\r\n\r\nabc");
    assert_true(call_counter_await(&elsewhere.content, 3));
    raw_client_close(peer);
    assert_true(call_counter_await(&elsewhere.lost, 1));

    log_capture_start();
    http_call(server, HTTP_LAST("/forget"), answer);
    assert_contains(answer, "HTTP/1.1 500 ");
    assert_log_contains("without a response");

    /* A group that has ended. */
    assert_int_equal(weir_group_shutdown(elsewhere.group, 0, weir_seconds(5)), 0);
    assert_int_equal(weir_group_await_termination(elsewhere.group, weir_seconds(5)), 0);
    http_call(server, HTTP_LAST("/forget"), answer);
    assert_contains(answer, "HTTP/1.1 503 ");
    assert_false(elsewhere.is_wrong);
    weir_http_server_release(server);
    weir_group_release(elsewhere.group);
}

/* ---- streaming both ways ---- */

static void echo_piece(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    (void)user_data;
    if (msg != NULL && weir_http_exchange_write(exchange, msg, NULL) == 0) {
        weir_http_exchange_read(exchange);
        return;
    }
    if (err == 0)
        (void)weir_http_exchange_end(exchange, NULL);
    weir_http_exchange_release(exchange);
}

/* Begins the response before it reads. */
static void echo(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), echo_piece, NULL);
    (void)weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH);
    weir_http_exchange_read(exchange);
}

TEST_EACH_HOST(http_server, echoes_content_that_waits_for_a_status)
{
    const weir_http_route table[] = {{"POST", "/", echo, NULL, true}, {0}};
    weir_http_server *server = start(host->group, table);
    int peer = raw_client_connect(weir_http_server_server(server));
    char answer[HTTP_CALL_SIZE];

    raw_client_send(peer, HTTP_CALL("POST /") "Content-Length: 6\r\nExpect: 100-continue\r\n\r\n");
    http_call_receive_one(peer, 0, answer);
    assert_contains(answer, "HTTP/1.1 200 OK\r\n");
    raw_client_send(peer, "abcdef");
    assert_true(http_call_receive(peer, answer));
    assert_string_equal(answer, "6\r\nabcdef\r\n0\r\n\r\n");
    raw_client_close(peer);
    weir_http_server_release(server);
}

/* ---- streamed responses under back-pressure ---- */

#define PIECES 400
#define PIECE_SIZE 16384

struct source {
    weir_http_exchange *exchange;
    int written;
    int pauses;
};

static void write_more(weir_http_exchange *exchange, void *user_data)
{
    struct source *source = user_data;
    weir_buf *buf;

    while (source->written < PIECES) {
        if (!weir_http_exchange_is_writable(exchange)) {
            source->pauses++;
            weir_http_exchange_on_writable(exchange, write_more, source);
            return;
        }
        if (weir_buf_create(PIECE_SIZE, 0, &buf) < 0)
            break;
        (void)weir_buf_write_fill(buf, (uint8_t)('a' + source->written % 26), PIECE_SIZE);
        if (weir_http_exchange_write(exchange, weir_buf_msg(buf), NULL) < 0)
            break;
        source->written++;
    }
    if (source->written == PIECES)
        (void)weir_http_exchange_end(exchange, NULL);
    weir_http_exchange_release(exchange);
}

static void stream_much(weir_http_exchange *exchange, void *user_data)
{
    if (weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH) == 0)
        write_more(weir_http_exchange_retain(exchange), user_data);
}

static void stream_through(struct host *host, weir_group *const *group)
{
    struct source source = {0};
    const weir_http_route table[] = {{"GET", "/", stream_much, &source, .group = group}, {0}};
    weir_http_server *server = start(host->group, table);
    static char bytes[1 << 16];
    int peer = raw_client_connect(weir_http_server_server(server));
    size_t total = 0;
    ssize_t count;

    raw_client_send(peer, HTTP_LAST("/"));
    while ((count = recv(peer, bytes, sizeof(bytes), 0)) > 0 || (count < 0 && errno == EINTR))
        total += count > 0 ? (size_t)count : 0;
    assert_int_equal(count, 0);
    assert_true(total > (size_t)PIECES * PIECE_SIZE);
    raw_client_close(peer);
    weir_http_server_release(server);
    assert_int_equal(source.written, PIECES);
    assert_true(source.pauses > 0);
}

TEST_EACH_HOST(http_server, streams_as_fast_as_the_client_reads)
{
    stream_through(host, NULL);
}

TEST_EACH_HOST(http_server, streams_from_another_group)
{
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    stream_through(host, &group);
    weir_group_release(group);
}

/* ---- options ---- */

static int refused(const weir_http_server_options *options)
{
    weir_http_server *none = NULL;
    int err = weir_http_server_start(options, &none);

    assert_null(none);
    return err;
}

/* ---- a loop of the caller ---- */

static void run_until_done(weir_executor *loop, const weir_promise *promise)
{
    for (int i = 0; i < 1000 && !weir_promise_is_done(promise); i++)
        assert_true(weir_loop_run_once(loop, weir_ms(10)) >= 0);
    assert_true(weir_promise_is_done(promise));
}

TEST_EACH_LOOP(http_server, runs_with_a_client_on_a_loop_of_the_caller)
{
    weir_http_server *server = NULL;
    weir_http_client *client = NULL;
    weir_promise *fetching = NULL;
    weir_executor *loop = NULL;
    char url[WEIR_ADDRESS_TEXT_SIZE + 8], text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;
    const weir_http_full *full;

    assert_int_equal(weir_loop_create(WEIR_LOOP_OPTIONS(.io = host->backend->io), &loop), 0);
    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .loop = loop,
                                                        .routes = routes, .child_options = &quick),
                               &server),
        0);
    assert_int_equal(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.loop = loop), &client), 0);
    assert_int_equal(weir_channel_local_address(
                         weir_server_listener(weir_http_server_server(server), 0), &address),
                     0);
    (void)snprintf(url, sizeof(url), "http://%s/",
                   weir_address_format(&address, text, sizeof(text)));
    assert_int_equal(weir_http_client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url), &fetching),
                     0);
    run_until_done(loop, fetching);
    assert_int_equal(weir_promise_result(fetching), 0);
    full = weir_promise_value(fetching);
    assert_true(
        weir_span_equal(weir_buf_span(weir_http_full_content(full)), weir_span_of_text("hello")));
    weir_promise_release(fetching);
    weir_http_client_close(client);
    run_until_done(loop, weir_http_client_closed(client));
    weir_http_client_release(client);
    assert_int_equal(weir_http_server_stop(server, weir_seconds(10)), 0);
    assert_int_equal(weir_executor_state(loop), WEIR_EXECUTOR_TERMINATED);
    weir_http_server_release(server);
    weir_executor_release(loop);
}

/* A client whose loop ends before it is closed. */
TEST_EACH_LOOP(http_server, outlives_the_loop_of_a_client)
{
    weir_http_client *client = NULL;
    weir_promise *fetching = NULL;

    assert_int_equal(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.loop = host->loop), &client),
                     0);
    host_end(host);
    assert_true(weir_http_client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = "http://127.0.0.1:1"),
                                       &fetching) < 0);
    weir_http_client_close(client);
    assert_int_equal(weir_promise_await(weir_http_client_closed(client), weir_seconds(10)), 0);
    weir_http_client_release(client);
}

TEST(http_server, rejects_invalid_options)
{
#define REFUSED(...) refused(WEIR_HTTP_SERVER_OPTIONS(__VA_ARGS__))
    assert_options_rejected(REFUSED(.address = "127.0.0.1:0"), "one of .routes and .router");
    assert_options_rejected(REFUSED(.routes = routes), ".address or .tls_address is required");
    assert_options_rejected(REFUSED(.routes = routes, .tls_address = "127.0.0.1:0"),
                            ".tls_address needs .tls and .add_tls");
    assert_options_rejected(REFUSED(.routes = routes, .address = "127.0.0.1:0", .threads = -1),
                            "threads is -1");
    assert_options_rejected(REFUSED(.routes = routes, .address = "127.0.0.1:0", .threads = 1,
                                    .loop = weir_executor_global()),
                            ".loop and .boss, .workers, .threads or .io are mutually exclusive");
    assert_int_equal(REFUSED(.routes = routes, .address = "nowhere"), -EINVAL);
#undef REFUSED
}

static int count_connection(weir_channel *channel, void *user_data)
{
    (void)channel;
    call_counter_add(user_data);
    return 0;
}

TEST(http_server, has_a_group_of_its_own_and_several_addresses)
{
    static const char *const more[] = {"127.0.0.1:0", NULL};
    struct call_counter connections = {0};
    weir_http_server *server = NULL;
    char answer[HTTP_CALL_SIZE];
    int peer;

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .addresses = more, .routes = routes,
                                     .threads = 1, .init_connection = count_connection,
                                     .user_data = &connections, .child_options = &quick),
            &server),
        0);
    assert_int_equal(weir_server_listener_count(weir_http_server_server(server)), 2);
    for (size_t i = 0; i < 2; i++) {
        weir_channel *listener = weir_server_listener(weir_http_server_server(server), i);

        assert_int_equal(weir_server_address_index(listener), i);
        peer = raw_client_connect_listener(listener);
        raw_client_send(peer, HTTP_LAST("/"));
        assert_true(http_call_receive(peer, answer));
        assert_contains(answer, "hello");
        raw_client_close(peer);
    }
    assert_int_equal(connections.calls, 2);
    assert_int_equal(weir_http_server_stop(server, weir_seconds(5)), 0);
    weir_http_server_release(server);
}

/* A text that is worth compressing. */
static void say_much(weir_http_exchange *exchange, void *user_data)
{
    char text[4096];

    (void)user_data;
    memset(text, 'x', sizeof(text));
    (void)weir_http_respond_bytes(exchange, 200, "text/plain", text, sizeof(text));
}

TEST_EACH_LOOP(http_server, adds_filters)
{
    static const weir_http_route table[] = {{"GET", "/", say_much}, {0}};
    char origin[] = "https://example.org", policy[] = "no-referrer";
    const char *const origins[] = {origin, NULL};
    weir_http_server *server = NULL;
    char answer[HTTP_CALL_SIZE];

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(
                    .address = "127.0.0.1:0", .routes = table, .workers = host->group,
                    .child_options = &quick, .compression = WEIR_HTTP_COMPRESSION_OPTIONS(),
                    .cors = WEIR_HTTP_CORS_OPTIONS(.origins = origins),
                    .security = WEIR_HTTP_SECURITY_OPTIONS(.referrer_policy = policy),
                    .client_limits = WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 1),
                    .request_ids = true),
            &server),
        0);
    memset(origin, '?', sizeof(origin) - 1); /* they have been copied */
    memset(policy, '?', sizeof(policy) - 1);
    http_call(server,
              HTTP_CALL("GET /") "Accept-Encoding: gzip\r\nOrigin: https://example.org\r\n"
                                 "X-Request-Id: abc\r\nConnection: close\r\n\r\n",
              answer);
    assert_contains(answer, "HTTP/1.1 200 OK\r\n");
    assert_contains(answer, "Content-Encoding: gzip\r\n");
    assert_contains(answer, "Access-Control-Allow-Origin: https://example.org\r\n");
    assert_contains(answer, "Referrer-Policy: no-referrer\r\n");
    assert_contains(answer, "X-Request-Id: abc\r\n");
    assert_null(strstr(answer, "Strict-Transport-Security")); /* over TLS only */
    http_call(server, HTTP_LAST("/"), answer);
    assert_contains(answer, "HTTP/1.1 429 ");
    weir_http_server_release(server);
}

/* Copies a field of an answer; "" if it has none. */
static void copy_field(const char *answer, const char *name, char ret_value[128])
{
    const char *field = strcasestr(answer, name);

    (void)snprintf(ret_value, 128, "%.*s", field != NULL ? (int)strcspn(field, "\r") : 0,
                   field != NULL ? field : "");
}

/* Compressed here, not compressible, compressed before. */
TEST_EACH_LOOP(http_server, answers_304_with_the_validators_of_the_content)
{
    static const char *const paths[] = {"/a.txt", "/a.png", "/b.txt"};
    char bytes[5000], answer[HTTP_CALL_SIZE], call[512], etag[128], vary[128], found[128];
    disk_tree *tree = disk_tree_create();
    weir_http_files_root *root = NULL;
    weir_http_server *server = NULL;

    memset(bytes, 'x', sizeof(bytes));
    disk_tree_bytes(tree, "root/a.txt", bytes, sizeof(bytes));
    disk_tree_bytes(tree, "root/a.png", bytes, sizeof(bytes));
    disk_tree_bytes(tree, "root/b.txt", bytes, sizeof(bytes));
    disk_tree_file(tree, "root/b.txt.gz", "coded");
    assert_int_equal(weir_http_files_root_create(
                         WEIR_HTTP_FILES_OPTIONS(.root = disk_tree_path(tree, "root")), &root),
                     0);
    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .workers = host->group,
                                     .child_options = &quick,
                                     .compression = WEIR_HTTP_COMPRESSION_OPTIONS(),
                                     .routes = (const weir_http_route[]){{"GET", "/{path*}",
                                                                          weir_http_files,
                                                                          .user_data = root},
                                                                         {0}}),
            &server),
        0);
    for (size_t i = 0; i < 6; i++) {
        const char *coding = i % 2 == 0 ? "Accept-Encoding: gzip\r\n" : "";

        (void)snprintf(call, sizeof(call),
                       "GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s\r\n", paths[i / 2],
                       coding);
        http_call(server, call, answer);
        assert_contains(answer, "HTTP/1.1 200 OK\r\n");
        copy_field(answer, "ETag: ", etag);
        copy_field(answer, "Vary: ", vary);
        assert_true(strlen(etag) > 6);
        (void)snprintf(call, sizeof(call),
                       "GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%s"
                       "If-None-Match: %s\r\n\r\n",
                       paths[i / 2], coding, etag + 6);
        http_call(server, call, answer);
        assert_contains(answer, "HTTP/1.1 304 Not Modified\r\n");
        copy_field(answer, "ETag: ", found);
        assert_string_equal(found, etag);
        copy_field(answer, "Vary: ", found);
        assert_string_equal(found, vary);
        copy_field(answer, "Content-Length: ", found);
        assert_string_equal(found, i == 0   ? ""
                                   : i == 4 ? "Content-Length: 5"
                                            : "Content-Length: 5000");
        assert_null(strstr(answer, "Content-Type"));
        assert_null(strstr(answer, "Content-Encoding"));
    }
    weir_http_server_release(server);
    weir_http_files_root_release(root);
    disk_tree_destroy(tree);
}

static void say_client(weir_http_exchange *exchange, void *user_data)
{
    char text[WEIR_ADDRESS_TEXT_SIZE] = "";
    weir_address address;

    (void)user_data;
    if (weir_proxy_source(weir_http_exchange_channel(exchange), &address) == 0)
        (void)weir_address_format(&address, text, sizeof(text));
    (void)weir_http_respond_text(exchange, 200, text);
}

TEST_EACH_LOOP(http_server, reads_the_proxy_header)
{
    static const weir_http_route table[] = {{"GET", "/", say_client}, {0}};
    weir_http_server *server = NULL;
    char answer[HTTP_CALL_SIZE];

    assert_int_equal(weir_http_server_start(
                         WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = table,
                                                  .workers = host->group, .proxy_protocol = true,
                                                  .child_options = &quick),
                         &server),
                     0);
    http_call(server, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n" HTTP_LAST("/"), answer);
    assert_contains(answer, "\r\n\r\n192.0.2.7:4711");
    weir_http_server_release(server);
}

TEST(http_server, survives_a_lack_of_memory)
{
    static const char *const origins[] = {"https://example.org", NULL};
    weir_http_server *server = NULL;
    bool failed = true;
    int err;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        test_memory_fail_at(n);
        err = weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes, .threads = 1,
                                     .io = WEIR_IO_EPOLL,
                                     .cors = WEIR_HTTP_CORS_OPTIONS(.origins = origins),
                                     .security =
                                         WEIR_HTTP_SECURITY_OPTIONS(.frame_options = "SAMEORIGIN")),
            &server);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        if (err == 0) {
            weir_http_server_release(server);
            server = NULL;
        } else {
            assert_true(failed);
        }
    }
    assert_int_equal(err, 0);
}

/* ---- clients that leave ---- */

/* An exchange that is answered when the test says so. */
struct held {
    struct call_counter arrived;
    struct call_counter lost;
    _Atomic(weir_http_exchange *) exchange;
};

static void count_lost(weir_http_exchange *exchange, void *user_data)
{
    (void)exchange;
    call_counter_add(&((struct held *)user_data)->lost);
}

static void hold(weir_http_exchange *exchange, void *user_data)
{
    struct held *held = user_data;

    held->exchange = weir_http_exchange_retain(exchange);
    weir_http_exchange_on_lost(exchange, count_lost, held);
    call_counter_add(&held->arrived);
}

/* Neither route reads anything while the response is made. */
static const char *const lines[] = {HTTP_GET("/"),
                                    HTTP_CALL("POST /stream") "Content-Length: 1000000\r\n\r\nabc"};

/* The i-th request of a test; also below. */
static int ask_and_wait(weir_http_server *server, uint32_t i, struct held *held)
{
    int peer = raw_client_connect(weir_http_server_server(server));

    raw_client_send(peer, lines[i]);
    assert_true(call_counter_await(&held->arrived, i + 1));
    return peer;
}

static void assert_lost(struct held *held, uint32_t i)
{
    assert_true(call_counter_await(&held->lost, i + 1));
    assert_int_equal(weir_http_respond_text(held->exchange, 200, "late"), WEIR_ECLOSED);
    weir_http_exchange_release(held->exchange);
}

TEST_EACH_HOST(http_server, notices_that_a_client_closes)
{
    struct held held = {0};
    const weir_http_route table[] = {
        {"GET", "/", hold, &held}, {"POST", "/stream", hold, &held, true}, {0}};
    weir_http_server *server = start(host->group, table);

    for (uint32_t i = 0; i < 2; i++) {
        raw_client_close(ask_and_wait(server, i, &held));
        assert_lost(&held, i);
    }
    weir_http_server_release(server);
}

TEST_EACH_HOST(http_server, notices_that_a_client_resets_the_connection)
{
    const struct linger at_once = {.l_onoff = 1};
    struct held held = {0};
    const weir_http_route table[] = {
        {"GET", "/", hold, &held}, {"POST", "/stream", hold, &held, true}, {0}};
    weir_http_server *server = start(host->group, table);

    for (uint32_t i = 0; i < 2; i++) {
        int peer = ask_and_wait(server, i, &held);

        assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
        raw_client_close(peer);
        assert_lost(&held, i);
    }
    weir_http_server_release(server);
}

TEST_EACH_HOST(http_server, keeps_half_closed_clients_if_told_to)
{
    struct held held = {0};
    const weir_http_route table[] = {
        {"GET", "/", hold, &held}, {"POST", "/stream", hold, &held, true}, {0}};
    weir_http_server *server = NULL;
    char answer[HTTP_CALL_SIZE];

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = table,
                                     .workers = host->group, .child_options = &quick,
                                     .http1 = WEIR_HTTP1_OPTIONS(.keep_half_closed = true)),
            &server),
        0);
    for (uint32_t i = 0; i < 2; i++) {
        int peer = ask_and_wait(server, i, &held);

        assert_int_equal(shutdown(peer, SHUT_WR), 0);
        host_turn(host, 3);
        assert_int_equal(atomic_load(&held.lost.calls), 0);
        assert_int_equal(weir_http_respond_text(held.exchange, 200, "late"), 0);
        weir_http_exchange_release(held.exchange);
        (void)http_call_receive(peer, answer);
        assert_contains(answer, "\r\n\r\nlate");
        raw_client_close(peer);
    }
    weir_http_server_release(server);
}

/* ---- drain ---- */

/* Count connections that were accepted, and those that drain. */
static struct call_counter accepted, draining;

static void on_draining(weir_ctx *ctx)
{
    call_counter_add(&draining);
    weir_fire_draining(ctx);
}

static int add_drain_counter(weir_channel *channel, void *user_data)
{
    static const weir_handler counter = {.name = "drain-counter", .draining = on_draining};

    (void)user_data;
    call_counter_add(&accepted);
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &counter, NULL);
}

static weir_http_server *start_counted(weir_group *group, const weir_http_route *table)
{
    weir_http_server *server = NULL;

    accepted = draining = (struct call_counter){0};
    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = table, .workers = group,
                                     .init_connection = add_drain_counter, .child_options = &quick),
            &server),
        0);
    return server;
}

struct stopping {
    weir_http_server *server;
    int64_t timeout_ns;
    int err;
};

static void *stop(void *arg)
{
    struct stopping *stopping = arg;

    stopping->err = weir_http_server_stop(stopping->server, stopping->timeout_ns);
    return NULL;
}

TEST_EACH_HOST(http_server, answers_what_it_has_read_before_it_stops)
{
    struct held held = {0};
    const weir_http_route table[] = {{"GET", "/", hello}, {"GET", "/held", hold, &held}, {0}};
    struct stopping stopping = {start_counted(host->group, table), weir_seconds(10), -1};
    char answer[HTTP_CALL_SIZE];
    pthread_t thread;
    int idle, busy;

    idle = raw_client_connect(weir_http_server_server(stopping.server));
    busy = raw_client_connect(weir_http_server_server(stopping.server));
    raw_client_send(idle, HTTP_GET("/"));
    http_call_receive_one(idle, 5, answer);
    raw_client_send(busy, HTTP_GET("/held"));
    assert_true(call_counter_await(&held.arrived, 1));
    assert_int_equal(pthread_create(&thread, NULL, stop, &stopping), 0);
    assert_true(http_call_receive(idle, answer)); /* closed at once, without a reset */
    assert_string_equal(answer, "");
    raw_client_close(idle);
    assert_true(call_counter_await(&draining, 2));
    assert_int_equal(weir_http_respond_text(held.exchange, 200, "late"), 0);
    weir_http_exchange_release(held.exchange);
    assert_true(http_call_receive(busy, answer));
    assert_contains(answer, "Connection: close\r\n");
    assert_contains(answer, "\r\n\r\nlate");
    raw_client_close(busy);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(stopping.err, 0);
    weir_http_server_release(stopping.server);
}

/* Their clients have connected in order to send a request, which may be on its way. */
TEST_EACH_HOST(http_server, answers_the_first_request_of_connections_before_it_stops)
{
    enum { FRESH = 20 };
    struct stopping stopping = {start_counted(host->group, routes), weir_seconds(10), -1};
    char answer[HTTP_CALL_SIZE];
    pthread_t thread;
    int peers[FRESH];

    for (int i = 0; i < FRESH; i++)
        peers[i] = raw_client_connect(weir_http_server_server(stopping.server));
    assert_true(call_counter_await(&accepted, FRESH));
    assert_int_equal(pthread_create(&thread, NULL, stop, &stopping), 0);
    assert_true(call_counter_await(&draining, FRESH));
    for (int i = 0; i < FRESH; i++) {
        raw_client_send(peers[i], HTTP_GET("/"));
        assert_true(http_call_receive(peers[i], answer));
        assert_contains(answer, "Connection: close\r\n");
        assert_contains(answer, "\r\n\r\nhello");
        raw_client_close(peers[i]);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(stopping.err, 0);
    weir_http_server_release(stopping.server);
}

TEST_EACH_HOST(http_server, stops_in_time_if_an_exchange_is_never_answered)
{
    struct held held = {0};
    const weir_http_route table[] = {{"GET", "/held", hold, &held}, {0}};
    weir_http_server *server = start(host->group, table);
    int peer = raw_client_connect(weir_http_server_server(server));
    char answer[HTTP_CALL_SIZE];

    raw_client_send(peer, HTTP_GET("/held"));
    assert_true(call_counter_await(&held.arrived, 1));
    assert_int_equal(weir_http_server_stop(server, weir_ms(50)), 0);
    (void)http_call_receive(peer, answer);
    assert_string_equal(answer, "");
    raw_client_close(peer);
    weir_http_server_release(server);
    /* The loop has ended: the last reference frees the exchange. */
    assert_int_equal(weir_http_respond_text(held.exchange, 200, "late"), WEIR_ECLOSED);
    weir_http_exchange_release(held.exchange);
}

/* The loop ends when the time to close its channels is over, and the global executor closes them:
 * the exchange must not be answered beside that. */
TEST_EACH_HOST(http_server, frees_an_exchange_behind_what_is_left_of_its_loop)
{
    struct held held = {0};
    const weir_http_route table[] = {{"GET", "/held", hold, &held}, {0}};
    weir_http_server *server = start(host->group, table);
    int peer = raw_client_connect(weir_http_server_server(server));
    struct gate global = {0}, loop = {0};

    raw_client_send(peer, HTTP_GET("/held"));
    assert_true(call_counter_await(&held.arrived, 1));
    gate_hold(&global, weir_executor_global());
    gate_hold(&loop, weir_channel_executor(weir_http_exchange_channel(held.exchange)));
    assert_int_equal(weir_group_shutdown(host->group, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(host->group, weir_ms(60)), -ETIMEDOUT);
    gate_open(&loop);
    assert_int_equal(weir_group_await_termination(host->group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_http_respond_text(held.exchange, 200, "late"), WEIR_ECLOSED);
    log_capture_start();
    weir_http_exchange_release(held.exchange);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    gate_open(&global);
    raw_client_close(peer);
    weir_http_server_release(server);
    global_executor_stop();
}
