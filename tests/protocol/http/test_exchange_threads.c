/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges that are answered on other threads while clients close their connections and the server
 * drains. Nothing is asserted about a single exchange but that a response that arrives whole is
 * right; leaks and data races are found by the allocator of the tests and by sanitizers.
 */
#include <weir/http_server.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/error.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/litmus.h"
#include "support/loop/host.h"
#include "support/protocol/http/exchange_fixture.h"
#include "support/protocol/http/http_call.h"

#define CLIENTS 4
#define CONNECTIONS 250 /* of each client */

/* What a handler does with an exchange, chosen by the client. */
struct answers {
    weir_group *group; /* two plain executors */
    _Atomic unsigned lost;
    _Atomic unsigned content;
    _Atomic unsigned writable;
};

static void send_piece(weir_http_exchange *exchange)
{
    weir_buf *buf;

    if (weir_buf_create_from("abc", 3, &buf) == 0)
        (void)weir_http_exchange_write(exchange, weir_buf_msg(buf), NULL);
}

/* On an executor of the group. Takes the reference. */
static void respond_there(void *arg, int status)
{
    (void)status;
    (void)weir_http_respond_text(arg, 200, "abcabc");
    weir_http_exchange_release(arg);
}

static void end_there(void *arg, int status)
{
    (void)status;
    (void)weir_http_exchange_end(arg, NULL);
    weir_http_exchange_release(arg);
}

/* Two threads write to one response. */
static void begin_there(void *arg, int status)
{
    (void)status;
    if (weir_http_exchange_begin(arg, 200, 6) == 0) {
        send_piece(arg);
        send_piece(arg);
    }
    end_there(arg, 0);
}

static void abort_there(void *arg, int status)
{
    (void)status;
    (void)weir_http_exchange_begin(arg, 200, 6);
    weir_http_exchange_abort(arg);
    weir_http_exchange_release(arg);
}

static void drop_there(void *arg, int status)
{
    (void)status;
    weir_http_exchange_release(arg);
}

static void pass_to(struct answers *answers, weir_http_exchange *exchange, weir_task_fn *fn)
{
    if (weir_group_execute(answers->group, fn, weir_http_exchange_retain(exchange)) < 0)
        weir_http_exchange_release(exchange);
}

static void on_lost(weir_http_exchange *exchange, void *user_data)
{
    struct answers *answers = user_data;

    (void)exchange;
    answers->lost++;
}

/* Releases a reference that was held until then. */
static void on_lost_held(weir_http_exchange *exchange, void *user_data)
{
    on_lost(exchange, user_data);
    weir_http_exchange_release(exchange);
}

static void on_writable(weir_http_exchange *exchange, void *user_data)
{
    struct answers *answers = user_data;

    (void)exchange;
    answers->writable++;
}

static void watch_there(void *arg, int status)
{
    weir_http_exchange *exchange = arg;

    (void)status;
    (void)weir_http_exchange_is_writable(exchange);
    weir_http_exchange_read(exchange);
    weir_http_exchange_release(exchange);
}

static void on_request(weir_http_exchange *exchange, void *user_data)
{
    struct answers *answers = user_data;
    weir_span kind = weir_http_exchange_parameter(exchange, "kind");

    weir_http_exchange_on_lost(exchange, on_lost, answers);
    switch (kind.data[0]) {
    case 'r':
        pass_to(answers, exchange, respond_there);
        break;
    case 'R': /* both try */
        pass_to(answers, exchange, respond_there);
        (void)weir_http_respond_text(exchange, 200, "abcabc");
        break;
    case 'b':
        weir_http_exchange_on_writable(exchange, on_writable, answers);
        pass_to(answers, exchange, begin_there);
        pass_to(answers, exchange, watch_there);
        break;
    case 'a':
        pass_to(answers, exchange, abort_there);
        break;
    case 'h': /* the client resets the connection */
        weir_http_exchange_on_lost(weir_http_exchange_retain(exchange), on_lost_held, answers);
        break;
    case 'd':
        pass_to(answers, exchange, drop_there);
        break;
    default:
        (void)weir_http_respond_text(exchange, 200, "abcabc");
        break;
    }
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct answers *answers = user_data;

    answers->content++;
    if (msg != NULL) {
        weir_msg_release(msg);
        pass_to(answers, exchange, watch_there); /* reads on */
        return;
    }
    if (err == 0)
        (void)weir_http_respond_text(exchange, 200, "abcabc");
    weir_http_exchange_release(exchange);
}

static void on_stream(weir_http_exchange *exchange, void *user_data)
{
    struct answers *answers = user_data;

    weir_http_exchange_on_lost(exchange, on_lost, answers);
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_content, answers);
    pass_to(answers, exchange, watch_there);
}

/* ---- clients ---- */

struct client {
    weir_address address;
    unsigned seed;
    unsigned whole; /* responses that arrived */
    bool is_wrong;
};

static unsigned next_random(struct client *client)
{
    client->seed = client->seed * 1664525 + 1013904223;
    return client->seed >> 16;
}

static int connect_quietly(const weir_address *address)
{
    int peer = socket(weir_address_family(address), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = 10};

    (void)setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(peer, weir_address_sockaddr(address), address->length) < 0) {
        close(peer);
        return -1;
    }
    return peer;
}

static int format_request(struct client *client, char *text, size_t size)
{
    static const char kinds[] = "rRbahdx";
    char kind = kinds[next_random(client) % (sizeof(kinds) - 1)];
    const char *prefix = next_random(client) % 2 ? "here" : "there";

    if (next_random(client) % 4 == 0)
        return snprintf(text, size,
                        "POST /%s-stream HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n%s",
                        prefix, next_random(client) % 4 == 0 ? "abc" : "abcdef");
    return snprintf(text, size, "GET /%s/%c HTTP/1.1\r\nHost: x\r\n\r\n", prefix, kind);
}

/* Some requests on one connection; sometimes it leaves before the answer. */
static void visit(struct client *client)
{
    const struct linger reset = {.l_onoff = 1};
    int peer = connect_quietly(&client->address);
    char text[512], answer[2048];
    size_t length;
    ssize_t count;

    for (unsigned i = next_random(client) % 4; peer >= 0 && i < 4; i++) {
        int size = format_request(client, text, sizeof(text));
        bool is_cut = strstr(text, "Length") != NULL && strstr(text, "abcdef") == NULL;
        bool is_held = strstr(text, "/h ") != NULL;

        if (is_held)
            (void)setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        if (send(peer, text, (size_t)size, MSG_NOSIGNAL) < 0 || is_cut || is_held ||
            next_random(client) % 4 == 0)
            break;
        for (length = 0; length < sizeof(answer) - 1; length += (size_t)count) {
            count = recv(peer, answer + length, sizeof(answer) - 1 - length, 0);
            if (count <= 0)
                break;
            answer[length + (size_t)count] = '\0';
            if (strstr(answer, "\r\n\r\nabcabc") != NULL || strstr(answer, "Error\n") != NULL) {
                length = SIZE_MAX;
                break;
            }
        }
        if (length != SIZE_MAX)
            break;
        client->whole++;
        client->is_wrong = client->is_wrong || strncmp(answer, "HTTP/1.1 ", 9) != 0;
    }
    if (peer >= 0)
        close(peer);
}

static void *run_client(void *arg)
{
    for (int i = 0; i < CONNECTIONS; i++)
        visit(arg);
    return NULL;
}

static void silence(void *user_data, enum weir_log_level level, const char *subsystem,
                    const char *object, const char *message)
{
    (void)user_data;
    (void)level;
    (void)subsystem;
    (void)object;
    (void)message;
}

TEST_EACH_HOST(exchange_threads, answer_while_clients_leave_and_the_server_drains)
{
    struct answers answers = {0};
    const weir_http_route routes[] = {
        {"GET", "/here/{kind}", on_request, &answers},
        {"GET", "/there/{kind}", on_request, &answers, .group = &answers.group},
        {"POST", "/here-stream", on_stream, &answers, .streaming = true},
        {"POST", "/there-stream", on_stream, &answers, .streaming = true, .group = &answers.group},
        {0}};
    struct client clients[CLIENTS] = {{.seed = 0}};
    pthread_t threads[CLIENTS];
    weir_http_server *server = NULL;
    unsigned whole = 0;
    char answer[HTTP_CALL_SIZE];

    weir_log_set(silence, NULL); /* exchanges are dropped on purpose */
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 2, .io = WEIR_IO_NONE), &answers.group), 0);
    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                     .workers = host->group,
                                     .child_options =
                                         WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200))),
            &server),
        0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].seed = (unsigned)i + 1;
        assert_int_equal(
            weir_channel_local_address(weir_server_listener(weir_http_server_server(server), 0),
                                       &clients[i].address),
            0);
        assert_int_equal(pthread_create(&threads[i], NULL, run_client, &clients[i]), 0);
    }
    assert_int_equal(pthread_join(threads[0], NULL), 0); /* the others go on */
    http_call(server, HTTP_LAST("/here/x"), answer);
    assert_contains(answer, "abcabc");
    assert_int_equal(weir_http_server_stop(server, weir_seconds(10)), 0);
    for (int i = 1; i < CLIENTS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < CLIENTS; i++) {
        whole += clients[i].whole;
        assert_false(clients[i].is_wrong);
    }
    assert_true(whole > CONNECTIONS / 2);
    weir_http_server_release(server);
    /* Its tasks hold exchanges, whose channels hold the memory of a loop, with its descriptors.
     * They hold the server, too, and it the group: the release below may not be the last. */
    end_group(answers.group);
    weir_log_set(NULL, NULL);
    assert_true(answers.content > 0);
    assert_true(answers.lost > 0);
}

/* ---- several threads on behalf of one holder ---- */

static void keep_exchange(weir_http_exchange *exchange, void *user_data)
{
    *(weir_http_exchange **)user_data = weir_http_exchange_retain(exchange);
}

static void retain_exchange(void *exchange)
{
    weir_http_exchange_retain(exchange);
}

static void release_exchange(void *exchange)
{
    weir_http_exchange_release(exchange);
}

/* One of them is the loop. */
TEST(exchange_threads, retain_on_behalf_of_one_holder)
{
    weir_http_exchange *exchange = NULL;
    const weir_http_route routes[] = {{"GET", "/", keep_exchange, &exchange}, {0}};
    weir_embedded *embedded = exchange_open(routes);

    exchange_put(embedded, "GET", "/");
    litmus_references(retain_exchange, release_exchange, exchange);
    assert_exchange_sent(embedded, ""); /* not dropped */
    assert_int_equal(weir_http_respond_text(exchange, 200, "late"), 0);
    assert_exchange_sent(embedded, "200(4) | late | end");
    weir_http_exchange_release(exchange);
    weir_embedded_release(embedded);
}

/* ---- order ---- */

static void *begin_with_abc(void *exchange)
{
    assert_int_equal(weir_http_exchange_begin(exchange, 200, 6), 0);
    send_piece(exchange);
    return NULL;
}

static void end_with_xyz(void *arg, int status)
{
    weir_buf *buf;

    (void)status;
    assert_int_equal(weir_buf_create_from("xyz", 3, &buf), 0);
    assert_int_equal(weir_http_exchange_write(arg, weir_buf_msg(buf), NULL), 0);
    assert_int_equal(weir_http_exchange_end(arg, NULL), 0);
}

/* The loop writes before it has performed what the other thread wrote earlier. */
TEST(exchange_threads, write_on_the_loop_after_another_thread)
{
    weir_http_exchange *exchange = NULL;
    const weir_http_route routes[] = {{"GET", "/", keep_exchange, &exchange}, {0}};
    weir_embedded *embedded = exchange_open(routes);
    weir_executor *loop = weir_channel_executor(weir_embedded_channel(embedded));
    pthread_t other;

    exchange_put(embedded, "GET", "/");
    assert_int_equal(weir_execute(loop, end_with_xyz, exchange), 0);
    assert_int_equal(pthread_create(&other, NULL, begin_with_abc, exchange), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    weir_embedded_run(embedded);
    assert_exchange_sent(embedded, "200(6) | abc | xyz | end");
    weir_http_exchange_release(exchange);
    weir_embedded_run(embedded);
    weir_embedded_release(embedded);
}

/* ---- content that is read ahead ---- */

/* A handler on an executor that the test holds up. */
struct slow_reader {
    weir_group *group; /* one plain executor */
    weir_http_exchange *exchange;
    sem_t gate;
    char text[16]; /* of the pieces; "." at the end, "!" for an error */
};

static void add_piece(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct slow_reader *reader = user_data;
    size_t length = strlen(reader->text);
    const weir_http_headers *trailers = weir_http_exchange_trailers(exchange);
    weir_span etag = {0};
    weir_buf *buf = weir_buf_of(msg);

    if (trailers != NULL)
        etag = weir_http_headers_get(trailers, WEIR_HTTP_ETAG);
    if (buf != NULL)
        (void)snprintf(reader->text + length, sizeof(reader->text) - length, "%.*s",
                       (int)weir_buf_readable(buf), (const char *)weir_buf_bytes(buf));
    else
        (void)snprintf(reader->text + length, sizeof(reader->text) - length,
                       err < 0 ? "!" : ".%.*s", (int)etag.length, (const char *)etag.data);
    weir_msg_release(msg);
}

static void keep_slowly(weir_http_exchange *exchange, void *user_data)
{
    struct slow_reader *reader = user_data;

    weir_http_exchange_on_content(exchange, add_piece, reader);
    reader->exchange = weir_http_exchange_retain(exchange);
}

static void wait_at_gate(void *arg, int status)
{
    struct slow_reader *reader = arg;

    (void)status;
    while (sem_wait(&reader->gate) < 0)
        ;
}

static int do_nothing(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)ret_value;
    return status;
}

/* Runs everything that the executor and the loop have been asked to do. */
static void settle(const struct slow_reader *reader, weir_embedded *embedded)
{
    weir_promise *promise = NULL;

    weir_embedded_run(embedded);
    assert_int_equal(weir_group_submit(reader->group, do_nothing, NULL, &promise), 0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
    weir_embedded_run(embedded);
}

static void read_more(const struct slow_reader *reader, weir_embedded *embedded)
{
    weir_http_exchange_read(reader->exchange);
    weir_embedded_run(embedded);
}

static void open_reader(struct slow_reader *reader, weir_http_route *routes,
                        weir_embedded **ret_embedded)
{
    *reader = (struct slow_reader){.text = ""};
    assert_int_equal(sem_init(&reader->gate, 0, 0), 0);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &reader->group), 0);
    *ret_embedded = exchange_open(routes);
}

static void close_reader(struct slow_reader *reader, weir_embedded *embedded)
{
    settle(reader, embedded);
    weir_embedded_release(embedded);
    assert_int_equal(weir_group_shutdown(reader->group, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(reader->group, TEST_TIMEOUT_NS), 0);
    weir_group_release(reader->group);
    (void)sem_destroy(&reader->gate);
}

/* A piece that is on its way to the handler is the answer to a second request, too: the next one
 * must not take its place. */
TEST(exchange_threads, read_ahead_and_lose_nothing)
{
    struct slow_reader reader;
    weir_http_route routes[] = {
        {"POST", "/", keep_slowly, &reader, .streaming = true, .group = &reader.group}, {0}};
    weir_http_end *end = NULL;
    weir_embedded *embedded;

    open_reader(&reader, routes, &embedded);
    exchange_put_head(embedded, "POST", "/", 6, false);
    settle(&reader, embedded);
    assert_int_equal(weir_group_execute(reader.group, wait_at_gate, &reader), 0);
    read_more(&reader, embedded);
    exchange_put_content(embedded, "abc"); /* on its way */
    exchange_put_content(embedded, "def");
    assert_int_equal(weir_http_end_create(&end), 0);
    assert_int_equal(weir_http_headers_add_text(weir_http_end_trailers(end), WEIR_HTTP_ETAG, "x"),
                     0);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_http_end_msg(end)), 0);
    read_more(&reader, embedded);
    assert_int_equal(sem_post(&reader.gate), 0);
    settle(&reader, embedded);
    assert_string_equal(reader.text, "abc");
    read_more(&reader, embedded);
    settle(&reader, embedded);
    assert_string_equal(reader.text, "abcdef");
    read_more(&reader, embedded);
    settle(&reader, embedded);
    assert_string_equal(reader.text, "abcdef.x");
    assert_int_equal(weir_http_respond_text(reader.exchange, 200, "ok"), 0);
    weir_embedded_run(embedded);
    assert_exchange_sent(embedded, "200(2) | ok | end");
    weir_http_exchange_release(reader.exchange);
    close_reader(&reader, embedded);
}

/* The handler learns of the loss although it has not set its function yet. */
TEST(exchange_threads, get_events_after_their_handler)
{
    struct slow_reader reader;
    weir_http_route routes[] = {
        {"POST", "/", keep_slowly, &reader, .streaming = true, .group = &reader.group}, {0}};
    weir_embedded *embedded;

    open_reader(&reader, routes, &embedded);
    assert_int_equal(weir_group_execute(reader.group, wait_at_gate, &reader), 0);
    exchange_put_head(embedded, "POST", "/", 6, false);
    (void)weir_embedded_finish(embedded);
    assert_int_equal(sem_post(&reader.gate), 0);
    settle(&reader, embedded);
    assert_string_equal(reader.text, "!");
    weir_http_exchange_release(reader.exchange);
    close_reader(&reader, embedded);
}

static void note_loss(weir_http_exchange *exchange, void *user_data)
{
    struct slow_reader *reader = user_data;

    (void)exchange;
    reader->text[0] = 'L';
}

/* The callback is due, but its data may be gone by the time its thread runs. */
TEST(exchange_threads, get_no_callback_after_the_last_release)
{
    struct slow_reader reader;
    weir_http_route routes[] = {{"GET", "/", keep_slowly, &reader, .group = &reader.group}, {0}};
    weir_embedded *embedded;

    open_reader(&reader, routes, &embedded);
    exchange_put(embedded, "GET", "/");
    settle(&reader, embedded);
    weir_http_exchange_on_lost(reader.exchange, note_loss, &reader);
    assert_int_equal(weir_group_execute(reader.group, wait_at_gate, &reader), 0);
    (void)weir_embedded_finish(embedded);
    weir_http_exchange_release(reader.exchange);
    weir_embedded_run(embedded);
    assert_int_equal(sem_post(&reader.gate), 0);
    close_reader(&reader, embedded);
    assert_string_equal(reader.text, "");
}

/* ---- content that is written ahead ---- */

static int write_much(void *arg, int status, void **ret_value)
{
    weir_buf *buf = NULL;

    (void)ret_value;
    for (int i = 0; status == 0 && i < 2; i++) {
        status = weir_buf_create(40000, 0, &buf);
        if (status == 0)
            status = weir_buf_write_fill(buf, 'x', 40000);
        if (status == 0)
            status = weir_http_exchange_write(arg, weir_buf_msg(buf), NULL);
    }
    return status;
}

/* Neither write fills the channel, but both together: that they are sent is no event of it. */
TEST(exchange_threads, are_notified_when_posted_writes_are_sent)
{
    struct answers answers = {0};
    weir_http_exchange *exchange = NULL;
    const weir_http_route routes[] = {{"GET", "/", keep_exchange, &exchange}, {0}};
    weir_embedded *embedded = exchange_open(routes);
    weir_promise *promise = NULL;
    weir_msg *msg;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &answers.group), 0);
    exchange_put(embedded, "GET", "/");
    assert_int_equal(weir_http_exchange_begin(exchange, 200, 80000), 0);
    assert_int_equal(weir_group_submit(answers.group, write_much, exchange, &promise), 0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
    assert_false(weir_http_exchange_is_writable(exchange));
    weir_http_exchange_on_writable(exchange, on_writable, &answers);
    assert_int_equal(answers.writable, 0);
    weir_embedded_run(embedded);
    assert_int_equal(answers.writable, 1);
    assert_true(weir_http_exchange_is_writable(exchange));
    assert_int_equal(weir_http_exchange_end(exchange, NULL), 0);
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL)
        weir_msg_release(msg);
    weir_http_exchange_release(exchange);
    weir_embedded_release(embedded);
    assert_int_equal(weir_group_shutdown(answers.group, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(answers.group, TEST_TIMEOUT_NS), 0);
    weir_group_release(answers.group);
}
