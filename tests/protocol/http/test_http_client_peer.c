/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to a server that the test plays itself, on blocking sockets and by a clock of its own: the
 * time of each phase, what is sent again, which connections are used again.
 */
#include <weir/http_client.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/file_range.h>

#include "os/clock.h"
#include "support/executor/group.h"
#include "support/loop/sockets.h"
#include "support/protocol/http/client_fixture.h"
#include "support/test.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define HINT "HTTP/1.1 103 Early Hints\r\n\r\n"
#define POLL_MS ((int)(TEST_TIMEOUT_NS / weir_ms(1)))

/* A client on a loop whose clock the test advances, and the server's listener. */
struct stage {
    struct host host;
    weir_manual_clock *clock;
    weir_http_client *client;
    int listener;
    char authority[64];
    char url[80];
    struct streamed streamed;
    weir_http_call *call; /* NULL = none */
};

static void open_stage(struct stage *s, const struct host *host,
                       const weir_http_client_options *options)
{
    char text[INET_ADDRSTRLEN];
    struct address address;
    const struct sockaddr_in *bound = (const struct sockaddr_in *)&address.storage;

    memset(s, 0, sizeof(*s));
    s->host = *host;
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &s->clock), 0);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = host->backend->io,
                                             .clock = weir_manual_clock_clock(s->clock)),
                          &s->host.group),
        0);
    s->host.loop = weir_group_at(s->host.group, 0);
    s->listener = socket_listen(AF_INET, 64, &address);
    assert_non_null(inet_ntop(AF_INET, &bound->sin_addr, text, sizeof(text)));
    (void)snprintf(s->authority, sizeof(s->authority), "%s:%u", text, ntohs(bound->sin_port));
    (void)snprintf(s->url, sizeof(s->url), "http://%s/", s->authority);
    s->client = options != NULL ? client_open(&s->host, options) : NULL;
}

static void close_stage(struct stage *s)
{
    weir_http_call_release(s->call);
    client_close(s->client);
    end_group(s->host.group);
    weir_manual_clock_release(s->clock);
    assert_int_equal(close(s->listener), 0);
}

static void pass_time(const struct stage *s, int ms)
{
    assert_int_equal(weir_manual_clock_advance(s->clock, weir_ms(ms)), 0);
    host_turn((struct host *)(uintptr_t)&s->host, 3);
}

/* ---- the server ---- */

static void await_input(int descriptor)
{
    struct pollfd input = {.fd = descriptor, .events = POLLIN};

    assert_int_equal(poll(&input, 1, POLL_MS), 1);
}

static bool has_input(int descriptor)
{
    struct pollfd input = {.fd = descriptor, .events = POLLIN};

    return poll(&input, 1, 0) == 1;
}

static int accept_one(const struct stage *s)
{
    int peer;

    await_input(s->listener);
    peer = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(peer >= 0);
    return peer;
}

/* Receives up to the end of a head, or of another text. Returns all of it. */
static const char *hear_until(int peer, const char *last)
{
    static char text[8192];
    size_t length = 0;

    do {
        ssize_t count;

        assert_true(length < sizeof(text) - 1);
        await_input(peer);
        count = recv(peer, text + length, sizeof(text) - 1 - length, 0);
        assert_true(count > 0);
        length += (size_t)count;
        text[length] = '\0';
    } while (strstr(text, last) == NULL);
    return text;
}

static const char *hear(int peer)
{
    return hear_until(peer, "\r\n\r\n");
}

static void say(int peer, const char *text)
{
    assert_int_equal(send(peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The client closes, or resets, and sends nothing before. */
static void assert_hung_up(int peer)
{
    char byte;

    await_input(peer);
    assert_true(recv(peer, &byte, 1, 0) <= 0);
    assert_int_equal(close(peer), 0);
}

/* ---- calls ---- */

static void start_with(struct stage *s, const char *method, const char *const *fields,
                       weir_msg *content, weir_http_call_options options)
{
    weir_http_request *request = NULL;

    memset(&s->streamed, 0, sizeof(s->streamed));
    weir_http_call_release(s->call);
    s->call = NULL;
    options.size = sizeof(options);
    options.events = &streamed_events;
    options.user_data = &s->streamed;
    assert_int_equal(weir_http_request_create(method, s->url, &request), 0);
    for (; fields != NULL && *fields != NULL; fields += 2)
        assert_int_equal(weir_http_headers_add_named(weir_http_request_headers(request),
                                                     weir_span_of_text(fields[0]),
                                                     weir_span_of_text(fields[1])),
                         0);
    if (options.stream_content)
        assert_int_equal(weir_http_request_set_content_length(request, WEIR_HTTP_UNKNOWN_LENGTH),
                         0);
    assert_int_equal(weir_http_client_send(s->client, request, content, &options, &s->call), 0);
}

static void start(struct stage *s, weir_http_call_options options)
{
    start_with(s, options.stream_content ? "POST" : "GET", NULL, NULL, options);
}

static weir_msg *piece(size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(length, 0, &buf), 0);
    assert_int_equal(weir_buf_write_fill(buf, 'x', length), 0);
    return weir_buf_msg(buf);
}

static void write_piece(const struct stage *s, size_t length)
{
    weir_promise *done = NULL;

    assert_int_equal(weir_promise_create(NULL, &done), 0);
    assert_int_equal(weir_http_call_write(s->call, piece(length), done), 0);
    assert_int_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), 0);
    weir_promise_release(done);
}

static void await(struct call_counter *counter, uint32_t calls)
{
    assert_true(call_counter_await_for(counter, calls, TEST_TIMEOUT_NS));
}

/* It goes on, whatever time has passed. */
static void assert_alive(const struct stage *s)
{
    assert_int_equal(s->streamed.ends.calls, 0);
}

/* It ended in the turns since. */
static void assert_ended(const struct stage *s, int err, const char *detail)
{
    assert_int_equal(s->streamed.ends.calls, 1);
    assert_int_equal(s->streamed.err, err);
    if (strstr(s->streamed.detail, detail) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", s->streamed.detail, detail);
}

static weir_promise *fetch(const struct stage *s)
{
    weir_promise *promise = NULL;

    assert_int_equal(
        weir_http_client_fetch(s->client, WEIR_HTTP_FETCH_OPTIONS(.url = s->url), &promise), 0);
    return promise;
}

/* Leaves idle connections; their other ends. */
static void open_connections(const struct stage *s, int *peers, unsigned count)
{
    weir_promise *promises[16];

    assert_true(count <= 16);
    for (unsigned i = 0; i < count; i++)
        promises[i] = fetch(s);
    for (unsigned i = 0; i < count; i++) {
        peers[i] = accept_one(s);
        (void)hear(peers[i]);
    }
    for (unsigned i = 0; i < count; i++)
        say(peers[i], OK);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(client_await(promises[i]).err, 0);
}

/* The one that gets the next request, whose head is read; NULL if the promise is done. */
static int *next_request(int *peers, unsigned count, weir_promise *promise)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (weir__monotonic_now() < end_ns && !weir_promise_is_done(promise))
        for (unsigned i = 0; i < count; i++)
            if (peers[i] >= 0 && has_input(peers[i])) {
                (void)hear(peers[i]);
                return &peers[i];
            }
    assert_true(weir_promise_is_done(promise));
    return NULL;
}

static void lose(int *peer)
{
    assert_non_null(peer);
    assert_int_equal(close(*peer), 0);
    *peer = -1;
}

static void close_peers(const int *peers, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (peers[i] >= 0)
            assert_int_equal(close(peers[i]), 0);
}

/* ---- time ---- */

TEST_EACH_LOOP(http_client_peer, content_has_time_as_long_as_it_arrives)
{
    struct stage s;
    int peer;

    open_stage(&s, host,
               WEIR_HTTP_CLIENT_OPTIONS(.head_timeout_ns = weir_ms(100),
                                        .progress_timeout_ns = weir_ms(300)));
    start(&s, (weir_http_call_options){0});
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n0");
    for (uint32_t i = 1; i <= 4; i++) {
        await(&s.streamed.pieces, i);
        pass_time(&s, 200);
        assert_alive(&s);
        if (i < 4)
            say(peer, "x");
    }
    pass_time(&s, 101);
    assert_ended(&s, -ETIMEDOUT, ": response content: no progress in time");
    assert_hung_up(peer);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, a_piece_has_time_from_its_request_on)
{
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS(.progress_timeout_ns = weir_ms(300)));
    start(&s, (weir_http_call_options){.read_on_demand = true});
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    await(&s.streamed.heads, 1);
    pass_time(&s, 10000);
    assert_alive(&s);
    weir_http_call_read(s.call);
    host_turn(&s.host, 1);
    pass_time(&s, 299);
    assert_alive(&s);
    pass_time(&s, 2);
    assert_ended(&s, -ETIMEDOUT, ": response content: no progress in time");
    assert_hung_up(peer);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, an_upload_has_time_as_long_as_it_is_written)
{
    struct stage s;
    int peer;

    open_stage(&s, host,
               WEIR_HTTP_CLIENT_OPTIONS(.connect_timeout_ns = WEIR_OFF,
                                        .progress_timeout_ns = weir_ms(300)));
    start(&s, (weir_http_call_options){.stream_content = true});
    peer = accept_one(&s);
    (void)hear(peer);
    for (int i = 0; i < 4; i++) {
        pass_time(&s, 200);
        assert_alive(&s);
        write_piece(&s, 5);
        (void)hear_until(peer, "xxxxx");
    }
    pass_time(&s, 301);
    assert_ended(&s, -ETIMEDOUT, ": request: no progress in time");
    assert_hung_up(peer);
    close_stage(&s);
}

/* The peer has read some of it. */
TEST_EACH_LOOP(http_client_peer, an_upload_has_time_as_long_as_it_drains)
{
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS(.progress_timeout_ns = weir_ms(300)));
    start(&s, (weir_http_call_options){.stream_content = true});
    await(&s.streamed.writables, 1);
    peer = accept_one(&s);
    assert_int_equal(weir_http_call_write(s.call, piece(16 << 20), NULL), 0);
    host_turn(&s.host, 2);
    assert_false(weir_http_call_is_writable(s.call));
    pass_time(&s, 200);
    assert_alive(&s);
    while (s.streamed.writables.calls < 2)
        if (has_input(peer))
            (void)socket_drain(peer);
    pass_time(&s, 200);
    assert_alive(&s);
    pass_time(&s, 101);
    assert_ended(&s, -ETIMEDOUT, ": request: no progress in time");
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, a_hint_gives_the_head_more_time)
{
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS(.head_timeout_ns = weir_ms(300)));
    start(&s, (weir_http_call_options){0});
    peer = accept_one(&s);
    (void)hear(peer);
    for (uint32_t i = 1; i <= 3; i++) {
        pass_time(&s, 200);
        assert_alive(&s);
        say(peer, HINT);
        await(&s.streamed.informationals, i);
        host_turn(&s.host, 1);
    }
    pass_time(&s, 301);
    assert_ended(&s, -ETIMEDOUT, ": response head: no progress in time");
    assert_hung_up(peer);
    close_stage(&s);
}

/* The time for the head begins at the end of the request. */
static void hint_at_an_upload(const struct host *host, const char *const *fields, const char *hint)
{
    struct stage s;
    int peer;

    open_stage(&s, host,
               WEIR_HTTP_CLIENT_OPTIONS(.head_timeout_ns = weir_ms(100),
                                        .progress_timeout_ns = weir_ms(1000)));
    start_with(&s, "POST", fields, NULL, (weir_http_call_options){.stream_content = true});
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, hint);
    await(&s.streamed.informationals, 1);
    await(&s.streamed.writables, 1);
    host_turn(&s.host, 1);
    pass_time(&s, 200);
    assert_alive(&s);
    assert_int_equal(weir_http_call_end(s.call, NULL), 0);
    (void)hear_until(peer, "0\r\n\r\n");
    pass_time(&s, 101);
    assert_ended(&s, -ETIMEDOUT, ": response head: no progress in time");
    assert_hung_up(peer);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, a_hint_does_not_hurry_an_upload)
{
    hint_at_an_upload(host, NULL, HINT);
}

TEST_EACH_LOOP(http_client_peer, a_continue_does_not_hurry_an_upload)
{
    const char *const fields[] = {"Expect", "100-continue", NULL};

    hint_at_an_upload(host, fields, "HTTP/1.1 100 Continue\r\n\r\n");
}

/* The timer of a longer limit is running already. */
TEST_EACH_LOOP(http_client_peer, a_call_has_a_limit_of_its_own)
{
    struct stage s;
    int peer;

    open_stage(&s, host,
               WEIR_HTTP_CLIENT_OPTIONS(.connect_timeout_ns = weir_ms(500),
                                        .head_timeout_ns = weir_ms(400)));
    start(&s, (weir_http_call_options){.timeout_ns = weir_ms(150)});
    peer = accept_one(&s);
    (void)hear(peer);
    pass_time(&s, 149);
    assert_alive(&s);
    pass_time(&s, 2);
    assert_ended(&s, -ETIMEDOUT, "the call took too long");
    assert_hung_up(peer);
    close_stage(&s);
}

/* A server that answers at once, and breaks off, does not get the content that it did not ask for.
 */
TEST_EACH_LOOP(http_client_peer, content_is_not_sent_behind_an_answer)
{
    const char *const fields[] = {"Expect", "100-continue", NULL};
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS(.progress_timeout_ns = weir_ms(300)));
    start_with(&s, "PUT", fields, piece(5), (weir_http_call_options){0});
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx");
    await(&s.streamed.pieces, 1);
    host_turn(&s.host, 1);
    pass_time(&s, 301);
    assert_ended(&s, -ETIMEDOUT, ": response content: no progress in time");
    assert_hung_up(peer);
    close_stage(&s);
}

/* The timer of the head is running. Bytes come with the 101. */
static int open_tunnel(struct stage *s, const struct host *host, bool on_demand)
{
    const char *const fields[] = {"Connection", "upgrade", "Upgrade", "x", NULL};
    int peer;

    open_stage(s, host,
               WEIR_HTTP_CLIENT_OPTIONS(.head_timeout_ns = weir_ms(100),
                                        .progress_timeout_ns = weir_ms(100)));
    start_with(s, "GET", fields, NULL,
               (weir_http_call_options){.upgrades = true, .read_on_demand = on_demand});
    peer = accept_one(s);
    (void)hear(peer);
    say(peer, "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nbytes");
    await(&s->streamed.heads, 1);
    return peer;
}

static void be_silent(const struct stage *s)
{
    host_turn((struct host *)(uintptr_t)&s->host, 1);
    pass_time(s, 10000);
    assert_alive(s);
}

static void close_tunnel(struct stage *s, int peer)
{
    assert_int_equal(close(peer), 0);
    await(&s->streamed.ends, 1);
    assert_int_equal(s->streamed.err, 0);
    close_stage(s);
}

TEST_EACH_LOOP(http_client_peer, a_tunnel_may_be_silent)
{
    struct stage s;
    int peer = open_tunnel(&s, host, false);

    await(&s.streamed.pieces, 1);
    be_silent(&s);
    say(peer, "bytes");
    await(&s.streamed.pieces, 2);
    be_silent(&s);
    close_tunnel(&s, peer);
}

TEST_EACH_LOOP(http_client_peer, a_tunnel_that_is_read_on_demand_may_be_silent)
{
    struct stage s;
    int peer = open_tunnel(&s, host, true);

    be_silent(&s);
    weir_http_call_read(s.call);
    await(&s.streamed.pieces, 1);
    be_silent(&s);
    weir_http_call_read(s.call);
    be_silent(&s);
    say(peer, "bytes");
    await(&s.streamed.pieces, 2);
    weir_http_call_read(s.call);
    close_tunnel(&s, peer);
}

/* The proxy takes its time with the second connection. */
TEST_EACH_LOOP(http_client_peer, a_request_that_is_sent_again_has_time_to_connect)
{
    char proxy[80], greeting[3];
    struct stage s;
    int peer;

    open_stage(&s, host, NULL);
    (void)snprintf(proxy, sizeof(proxy), "socks5://%s", s.authority);
    s.client = client_open(&s.host, WEIR_HTTP_CLIENT_OPTIONS(.proxy = proxy,
                                                             .connect_timeout_ns = weir_ms(1000),
                                                             .head_timeout_ns = weir_ms(100)));
    (void)snprintf(s.url, sizeof(s.url), "http://192.0.2.1/");
    start(&s, (weir_http_call_options){0});
    peer = accept_one(&s);
    await_input(peer);
    assert_int_equal(recv(peer, greeting, 3, MSG_WAITALL), 3);
    assert_int_equal(send(peer, "\5\0", 2, MSG_NOSIGNAL), 2);
    await_input(peer);
    assert_int_equal(socket_drain(peer), 10);
    assert_int_equal(send(peer, "\5\0\0\1\12\0\0\1\0\120", 10, MSG_NOSIGNAL), 10);
    (void)hear(peer);
    say(peer, OK);
    await(&s.streamed.ends, 1);
    assert_int_equal(s.streamed.err, 0);
    start(&s, (weir_http_call_options){0});
    (void)hear(peer);
    assert_int_equal(close(peer), 0);
    peer = accept_one(&s);
    await_input(peer);
    pass_time(&s, 500);
    assert_alive(&s);
    pass_time(&s, 501);
    assert_ended(&s, -ETIMEDOUT, ": connect: ");
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

/* ---- what is sent again ---- */

TEST_EACH_LOOP(http_client_peer, a_request_is_sent_again_three_times)
{
    int peers[6], *peer;
    weir_promise *promise;
    unsigned lost = 0;
    struct stage s;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    open_connections(&s, peers, 6);
    promise = fetch(&s);
    while (lost < 5 && (peer = next_request(peers, 6, promise)) != NULL) {
        lose(peer);
        lost++;
    }
    assert_int_equal(lost, 4);
    assert_int_equal(client_await(promise).err, WEIR_ECLOSED);
    close_peers(peers, 6);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, a_redirected_request_is_sent_again_as_often)
{
    int peers[8], *peer;
    weir_promise *promise;
    struct stage s;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    open_connections(&s, peers, 8);
    promise = fetch(&s);
    for (int i = 0; i < 2; i++)
        lose(next_request(peers, 8, promise));
    peer = next_request(peers, 8, promise);
    assert_non_null(peer);
    say(*peer, "HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: /b\r\n\r\n");
    for (int i = 0; i < 3; i++)
        lose(next_request(peers, 8, promise));
    peer = next_request(peers, 8, promise);
    assert_non_null(peer);
    say(*peer, OK);
    assert_string_equal(client_await(promise).content, "ok");
    close_peers(peers, 8);
    close_stage(&s);
}

/* The redirected request waits on the connection whose server sends too much. */
TEST_EACH_LOOP(http_client_peer, a_request_that_was_not_sent_is_not_sent_again)
{
    int peers[6], *peer;
    weir_promise *promise;
    struct stage s;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    open_connections(&s, peers, 6);
    promise = fetch(&s);
    peer = next_request(peers, 6, promise);
    assert_non_null(peer);
    say(*peer, "HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: /b\r\n\r\n" OK);
    assert_hung_up(*peer);
    *peer = -1;
    for (int i = 0; i < 3; i++)
        lose(next_request(peers, 6, promise));
    peer = next_request(peers, 6, promise);
    assert_non_null(peer);
    say(*peer, OK);
    assert_string_equal(client_await(promise).content, "ok");
    assert_int_equal(client_stats(s.client).retried, 4);
    close_peers(peers, 6);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, a_request_is_sent_again_after_a_reset)
{
    weir_promise *promise;
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    open_connections(&s, &peer, 1);
    promise = fetch(&s);
    (void)hear(peer);
    socket_reset(peer);
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, OK);
    assert_string_equal(client_await(promise).content, "ok");
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

/* The server has seen the request. */
TEST_EACH_LOOP(http_client_peer, the_first_request_of_a_connection_is_not_sent_again)
{
    weir_promise *promise;
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    promise = fetch(&s);
    peer = accept_one(&s);
    (void)hear(peer);
    assert_int_equal(close(peer), 0);
    assert_int_equal(client_await(promise).err, WEIR_ECLOSED);
    assert_false(has_input(s.listener));
    assert_int_equal(client_stats(s.client).retried, 0);
    close_stage(&s);
}

/* ---- connections that are not used again ---- */

TEST_EACH_LOOP(http_client_peer, a_connection_that_closes_is_not_tried)
{
    weir_promise *promise;
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    promise = fetch(&s);
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, "HTTP/1.1 302 X\r\nContent-Length: 0\r\nConnection: close\r\nLocation: /b\r\n\r\n");
    assert_hung_up(peer);
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, OK);
    assert_string_equal(client_await(promise).content, "ok");
    assert_int_equal(client_stats(s.client).retried, 0);
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, a_connection_within_a_request_is_not_used_again)
{
    weir_promise *promise;
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    start(&s, (weir_http_call_options){.stream_content = true});
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, OK);
    await(&s.streamed.ends, 1);
    assert_int_equal(s.streamed.err, 0);
    assert_hung_up(peer);
    promise = fetch(&s);
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, OK);
    assert_string_equal(client_await(promise).content, "ok");
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

/* A redirection before the content: the request follows on another connection. */
static void redirect_early(const struct host *host, const char *const *fields)
{
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    start_with(&s, "POST", fields, NULL, (weir_http_call_options){.stream_content = true});
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, "HTTP/1.1 307 X\r\nContent-Length: 0\r\nLocation: /b\r\n\r\n");
    assert_hung_up(peer);
    peer = accept_one(&s);
    assert_non_null(strstr(hear(peer), "POST /b HTTP/1.1\r\n"));
    say(peer, OK);
    await(&s.streamed.ends, 1);
    assert_int_equal(s.streamed.err, 0);
    assert_int_equal(client_stats(s.client).retried, 0);
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, a_connection_that_waits_for_content_is_not_tried)
{
    const char *const fields[] = {"Expect", "100-continue", NULL};

    redirect_early(host, NULL);
    redirect_early(host, fields);
}

/* Otherwise the shutdown would wait for it until its timeout. */
TEST_EACH_LOOP(http_client_peer, a_connection_of_a_loop_that_drains_is_closed_after_its_call)
{
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    start(&s, (weir_http_call_options){0});
    peer = accept_one(&s);
    (void)hear(peer);
    assert_int_equal(weir_group_shutdown(s.host.group, 0, weir_seconds(3600)), 0);
    host_turn(&s.host, 2);
    say(peer, OK);
    await(&s.streamed.ends, 1);
    assert_int_equal(s.streamed.err, 0);
    assert_hung_up(peer);
    assert_int_equal(weir_group_await_termination(s.host.group, TEST_TIMEOUT_NS), 0);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, few_connections_stay_idle)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    struct stage s;
    int peers[4];

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS(.max_idle = 2));
    open_connections(&s, peers, 4);
    while (client_stats(s.client).connections > 2 && weir__monotonic_now() < end_ns)
        for (int i = 0; i < 4; i++)
            if (peers[i] >= 0 && has_input(peers[i])) {
                assert_hung_up(peers[i]);
                peers[i] = -1;
            }
    host_turn(&s.host, 3);
    assert_int_equal(client_stats(s.client).connections, 2);
    assert_int_equal(client_stats(s.client).idle, 2);
    close_peers(peers, 4);
    close_stage(&s);
}

/* More origins than are remembered, through a proxy. The pool of the first one goes on. */
TEST_EACH_LOOP(http_client_peer, an_origin_with_calls_is_remembered)
{
    enum { MAX = 256 };
    weir_promise *first, *waiting, *other;
    char proxy[80];
    struct stage s;
    int peer, answering;

    open_stage(&s, host, NULL);
    (void)snprintf(proxy, sizeof(proxy), "http://%s", s.authority);
    s.client = client_open(&s.host, WEIR_HTTP_CLIENT_OPTIONS(.proxy = proxy, .max_connections = 1,
                                                             .connect_timeout_ns = WEIR_OFF));
    (void)snprintf(s.url, sizeof(s.url), "http://first.test/");
    first = fetch(&s);
    peer = accept_one(&s);
    (void)hear(peer);
    waiting = fetch(&s);
    for (int i = 0; i <= MAX; i++) {
        (void)snprintf(s.url, sizeof(s.url), "http://o%d.test/", i);
        other = fetch(&s);
        answering = accept_one(&s);
        (void)hear(answering);
        say(answering, "HTTP/1.1 204 X\r\nConnection: close\r\n\r\n");
        assert_int_equal(client_await(other).err, 0);
        assert_int_equal(close(answering), 0);
    }
    assert_false(weir_promise_is_done(waiting));
    say(peer, OK);
    assert_string_equal(client_await(first).content, "ok");
    (void)hear(peer);
    say(peer, OK);
    assert_string_equal(client_await(waiting).content, "ok");
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

/* ---- content ---- */

TEST_EACH_LOOP(http_client_peer, an_announced_length_costs_no_memory)
{
    weir_promise *promise;
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    promise = fetch(&s);
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 1125899906842624\r\n\r\na");
    host_turn(&s.host, 3);
    say(peer, "b");
    host_turn(&s.host, 3);
    assert_false(weir_promise_is_done(promise));
    assert_int_equal(close(peer), 0);
    assert_int_equal(client_await(promise).err, WEIR_ECUTOFF);
    close_stage(&s);
}

static void send_content(const struct host *host, weir_msg *content)
{
    struct stage s;
    const char *heard;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    start_with(&s, "PUT", NULL, content, (weir_http_call_options){0});
    peer = accept_one(&s);
    heard = hear_until(peer, "abcdef");
    assert_non_null(strstr(heard, "\r\nContent-Length: 6\r\n"));
    assert_non_null(strstr(heard, "\r\n\r\nabcdef"));
    say(peer, OK);
    await(&s.streamed.ends, 1);
    assert_int_equal(s.streamed.err, 0);
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

TEST_EACH_LOOP(http_client_peer, content_may_be_a_composite)
{
    static const char *const texts[] = {"abc", "def"};
    weir_composite *composite = NULL;
    weir_buf *part = NULL;

    assert_int_equal(weir_composite_create(0, &composite), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_buf_create_from(texts[i], 3, &part), 0);
        assert_int_equal(weir_composite_add(composite, weir_buf_msg(part)), 0);
    }
    send_content(host, weir_composite_msg(composite));
}

TEST_EACH_LOOP(http_client_peer, content_may_be_a_file)
{
    char path[] = "/tmp/weir-test-XXXXXX";
    int descriptor = mkstemp(path);
    weir_file_range *range = NULL;

    assert_true(descriptor >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(descriptor, "..abcdef..", 10), 10);
    assert_int_equal(weir_file_range_create(descriptor, 2, 6, WEIR_FILE_RANGE_CLOSE, &range), 0);
    send_content(host, weir_file_range_msg(range));
}

TEST_EACH_LOOP(http_client_peer, a_call_without_streamed_content_takes_none)
{
    weir_promise *done = NULL;
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    start(&s, (weir_http_call_options){0});
    assert_int_equal(weir_promise_create(NULL, &done), 0);
    assert_int_equal(weir_http_call_write(s.call, piece(1), done), -EINVAL);
    assert_int_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), -EINVAL);
    assert_int_equal(weir_http_call_end(s.call, NULL), -EINVAL);
    weir_promise_release(done);
    peer = accept_one(&s);
    (void)hear(peer);
    say(peer, OK);
    await(&s.streamed.ends, 1);
    assert_int_equal(s.streamed.err, 0);
    assert_int_equal(close(peer), 0);
    close_stage(&s);
}

/* The server has not asked for it. */
TEST_EACH_LOOP(http_client_peer, content_that_is_queued_fails_with_its_call)
{
    const char *const fields[] = {"Expect", "100-continue", NULL};
    weir_promise *done[2] = {NULL, NULL};
    struct stage s;
    int peer;

    open_stage(&s, host, WEIR_HTTP_CLIENT_OPTIONS());
    start_with(&s, "POST", fields, NULL, (weir_http_call_options){.stream_content = true});
    peer = accept_one(&s);
    (void)hear(peer);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_promise_create(NULL, &done[i]), 0);
        assert_int_equal(weir_http_call_write(s.call, piece(1), done[i]), 0);
    }
    host_turn(&s.host, 1);
    weir_http_call_cancel(s.call);
    await(&s.streamed.ends, 1);
    assert_int_equal(s.streamed.err, WEIR_ECANCELED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_promise_sync(done[i], TEST_TIMEOUT_NS), WEIR_ECLOSED);
        weir_promise_release(done[i]);
    }
    assert_hung_up(peer);
    close_stage(&s);
}
