/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of clients, as a user sees them: which fields they send, what a redirection changes,
 * what is sent again, which limits and options count.
 */
#include "protocol/http/http_client.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weir/clock.h>
#include <weir/error.h>

#include "os/clock.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/protocol/http/client_fixture.h"
#include "support/protocol/http/scripted_server.h"
#include "support/resolver/fake_dns.h"
#include "support/test.h"

#define REPLIES(...) ((const struct scripted_reply[]){__VA_ARGS__, {0}})
#define OK SCRIPTED_OK
#define MOVED(status, to) "HTTP/1.1 " status " X\r\nContent-Length: 0\r\nLocation: " to "\r\n\r\n"

/* A server and a client of it. */
struct pair {
    struct scripted_server server;
    weir_http_client *client;
    char url[256]; /* "http://127.0.0.1:port/" */
};

static void open_pair(struct pair *pair, struct host *host, const struct scripted_reply *replies,
                      const weir_http_client_options *options)
{
    scripted_server_open(&pair->server, host, replies);
    pair->client = client_open(host, options);
    (void)scripted_server_url(&pair->server, "http", "/", pair->url);
}

static void close_pair(struct pair *pair)
{
    client_close(pair->client);
    scripted_server_close(&pair->server);
}

/* The last request has the field once, with this value; NULL = not at all. */
static void assert_sent(const struct pair *pair, const char *name, const char *value)
{
    const char *text = pair->server.last, *found = NULL;
    char line[64];
    unsigned count = 0;

    (void)snprintf(line, sizeof(line), "\r\n%s: ", name);
    while ((text = strcasestr(text, line)) != NULL) {
        count++;
        text += strlen(line);
        found = text;
    }
    assert_int_equal(count, value != NULL);
    if (value != NULL && (strncmp(found, value, strlen(value)) != 0 ||
                          strncmp(found + strlen(value), "\r\n", 2) != 0))
        fail_msg("%s is not \"%s\" in %s", name, value, pair->server.last);
}

static struct fetched fetch(struct pair *pair, const char *method, const char *const *fields,
                            const char *content)
{
    weir_buf *buf = NULL;
    struct fetched fetched;

    if (content != NULL)
        assert_int_equal(weir_buf_create_from(content, strlen(content), &buf), 0);
    fetched = client_fetch(
        pair->client, WEIR_HTTP_FETCH_OPTIONS(.method = method, .url = pair->url, .fields = fields,
                                              .content = buf != NULL ? weir_buf_msg(buf) : NULL));
    weir_buf_release(buf);
    return fetched;
}

static const char *waited_for; /* by wait_here */

static void await_connections(const struct pair *pair, unsigned count)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (client_stats(pair->client).connections != count && weir__monotonic_now() < end_ns)
        (void)sched_yield();
    assert_int_equal(client_stats(pair->client).connections, count);
}

/* ---- fields and targets ---- */

TEST_EACH_LOOP(http_client_rules, fields_of_the_caller_win)
{
    const char *const fields[] = {
        "Host", "other",  "User-Agent", "me", "Authorization", "mine", "Accept-Encoding",
        "br",   "Cookie", "c=d",        NULL};
    weir_http_cookie_jar *jar = NULL;
    struct pair pair;

    assert_int_equal(weir_http_cookie_jar_create(NULL, &jar), 0);
    open_pair(&pair, host,
              REPLIES({.text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
                               "Set-Cookie: a=1\r\nSet-Cookie: b=2; Path=/\r\n\r\n"}),
              WEIR_HTTP_CLIENT_OPTIONS(.cookies = jar, .user_agent = ""));
    assert_int_equal(client_get(pair.client, pair.url).err, 0);
    assert_sent(&pair, "User-Agent", NULL);
    assert_sent(&pair, "Cookie", NULL);
    assert_int_equal(client_get(pair.client, pair.url).err, 0);
    assert_sent(&pair, "Cookie", "a=1; b=2");
    (void)snprintf(pair.url, sizeof(pair.url), "http://me:secret@%s/", pair.server.address);
    assert_int_equal(fetch(&pair, "GET", fields, NULL).err, 0);
    for (size_t i = 0; fields[i] != NULL; i += 2)
        assert_sent(&pair, fields[i], fields[i + 1]);
    close_pair(&pair);
    weir_http_cookie_jar_release(jar);
}

TEST_EACH_LOOP(http_client_rules, queries_are_sent_and_fragments_are_not)
{
    static const char *const rows[][2] = {
        {"/p?q=a/b?c#top", "GET /p?q=a/b?c HTTP/1.1\r\n"},
        {"?q", "GET /?q HTTP/1.1\r\n"},
        {"/p?", "GET /p? HTTP/1.1\r\n"},
        {"#top", "GET / HTTP/1.1\r\n"},
    };
    struct pair pair;

    open_pair(&pair, host, REPLIES({.text = OK(0, "")}), NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)scripted_server_url(&pair.server, "http", rows[i][0], pair.url);
        assert_int_equal(client_get(pair.client, pair.url).err, 0);
        assert_memory_equal(pair.server.last, rows[i][1], strlen(rows[i][1]));
    }
    close_pair(&pair);
}

TEST_EACH_LOOP(http_client_rules, a_get_does_not_wait_for_100)
{
    const char *const fields[] = {"Expect", "100-continue", NULL};
    struct pair pair;

    open_pair(&pair, host, REPLIES({.text = OK(0, "")}), NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(fetch(&pair, "GET", fields, NULL).err, 0);
    assert_int_equal(pair.server.connections, 1);
    close_pair(&pair);
}

TEST_EACH_LOOP(http_client_rules, no_protocol_follows)
{
    const char *const fields[] = {"Upgrade", "x", NULL};
    struct pair pair;

    open_pair(&pair, host, REPLIES({.text = "HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n"}), NULL);
    assert_int_equal(fetch(&pair, "GET", fields, NULL).err, -ENOTSUP);
    await_connections(&pair, 0);
    close_pair(&pair);
}

/* ---- redirections ---- */

TEST_EACH_LOOP(http_client_rules, a_redirection_keeps_or_changes_the_method)
{
    static const struct {
        const char *reply;
        const char *method;
        const char *expected; /* NULL = it is not followed */
    } rows[] = {
        {MOVED("301", "/b"), "PUT", "PUT /b "},
        {MOVED("302", "/b"), "PUT", "PUT /b "},
        {MOVED("303", "/b"), "PUT", "GET /b "},
        {MOVED("303", "/b"), "HEAD", "HEAD /b "},
        {MOVED("301", "/b"), "POST", "GET /b "},
        {MOVED("308", "/b"), "POST", "POST /b "},
        {MOVED("307", "/b"), "DELETE", "DELETE /b "},
        {MOVED("300", "/b"), "GET", NULL},
        {MOVED("305", "/b"), "GET", NULL},
        {MOVED("201", "/b"), "POST", NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct scripted_reply replies[] = {
            {.text = rows[i].reply}, {.text = "HTTP/1.1 204 X\r\n\r\n"}, {0}};
        bool has_content = rows[i].method[0] == 'P';
        struct host other;
        struct pair pair;

        host_open(&other, (enum backend_id)(host->backend - backends));
        open_pair(&pair, &other, replies, NULL);
        assert_int_equal(fetch(&pair, rows[i].method, NULL, has_content ? "some" : NULL).err, 0);
        assert_int_equal(pair.server.requests, rows[i].expected != NULL ? 2 : 1);
        if (rows[i].expected != NULL)
            assert_memory_equal(pair.server.last, rows[i].expected, strlen(rows[i].expected));
        close_pair(&pair);
        host_close(&other);
    }
}

TEST_EACH_LOOP(http_client_rules, a_get_after_a_post_expects_nothing)
{
    const char *const fields[] = {"Expect", "100-continue", "Proxy-Authorization", "mine", NULL};
    struct pair pair;

    open_pair(&pair, host,
              REPLIES({.text = MOVED("302", "/b"), .at_head = true}, {.text = OK(0, "")}), NULL);
    assert_int_equal(fetch(&pair, "POST", fields, "some").err, 0);
    assert_sent(&pair, "Expect", NULL);
    assert_sent(&pair, "Proxy-Authorization", NULL);
    assert_sent(&pair, "Content-Length", NULL);
    close_pair(&pair);
}

TEST_EACH_LOOP(http_client_rules, another_origin_gets_its_own_host_and_cookies)
{
    const char *const fields[] = {"Host", "mine", NULL};
    weir_http_cookie_jar *jar = NULL;
    char reply[256], authority[64];
    struct pair pair;
    const struct scripted_reply replies[] = {{.text = reply}, {.text = OK(0, "")}, {0}};

    assert_int_equal(weir_http_cookie_jar_create(NULL, &jar), 0);
    open_pair(&pair, host, replies, WEIR_HTTP_CLIENT_OPTIONS(.cookies = jar));
    (void)snprintf(authority, sizeof(authority), "localhost%s", strrchr(pair.server.address, ':'));
    (void)snprintf(reply, sizeof(reply),
                   "HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: http://%s/\r\n"
                   "Set-Cookie: a=1\r\n\r\n",
                   authority);
    assert_int_equal(fetch(&pair, "GET", fields, NULL).err, 0);
    assert_sent(&pair, "Host", authority);
    assert_sent(&pair, "Cookie", NULL);
    assert_int_equal(fetch(&pair, "GET", NULL, NULL).err, 0); /* redirected again */
    assert_sent(&pair, "Cookie", NULL);
    close_pair(&pair);
    weir_http_cookie_jar_release(jar);
}

TEST_EACH_LOOP(http_client_rules, a_redirection_sets_a_cookie)
{
    weir_http_cookie_jar *jar = NULL;
    struct pair pair;

    assert_int_equal(weir_http_cookie_jar_create(NULL, &jar), 0);
    open_pair(&pair, host,
              REPLIES({.text = "HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: /b\r\n"
                               "Set-Cookie: a=1; Path=/\r\n\r\n"},
                      {.text = "HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: /c\r\n"
                               "Set-Cookie: b=2; Path=/\r\n\r\n"},
                      {.text = OK(0, "")}),
              WEIR_HTTP_CLIENT_OPTIONS(.cookies = jar));
    assert_int_equal(client_get(pair.client, pair.url).err, 0);
    assert_sent(&pair, "Cookie", "a=1; b=2");
    close_pair(&pair);
    weir_http_cookie_jar_release(jar);
}

static char *redirection_with(size_t length)
{
    char *text = malloc(length + 128);
    int head = snprintf(text, 128, "HTTP/1.1 302 X\r\nContent-Length: %zu\r\nLocation: /b\r\n\r\n",
                        length);

    assert_non_null(text);
    memset(text + head, 'x', length);
    text[(size_t)head + length] = '\0';
    return text;
}

/* Short content is read, so that the connection can be used again; it does not count as that of
 * the response. */
TEST_EACH_LOOP(http_client_rules, the_content_of_a_redirection_is_of_no_interest)
{
    char *little = redirection_with(40000), *much = redirection_with(200000);
    struct pair pair;
    struct fetched fetched;

    open_pair(&pair, host,
              REPLIES({.text = little}, {.text = little}, {.text = OK(5, "hello")}, {.text = much},
                      {.text = OK(5, "hello")}),
              NULL);
    fetched = client_fetch(pair.client, WEIR_HTTP_FETCH_OPTIONS(.url = pair.url, .max_content = 5));
    assert_int_equal(fetched.err, 0);
    assert_string_equal(fetched.content, "hello");
    assert_int_equal(pair.server.connections, 1);
    assert_string_equal(client_get(pair.client, pair.url).content, "hello");
    assert_int_equal(pair.server.connections, 2);
    close_pair(&pair);
    free(little);
    free(much);
}

TEST_EACH_LOOP(http_client_rules, a_redirection_without_its_content_times_out)
{
    struct pair pair;

    open_pair(&pair, host,
              REPLIES({.text = "HTTP/1.1 302 X\r\nContent-Length: 5\r\nLocation: /b\r\n\r\nbod"}),
              WEIR_HTTP_CLIENT_OPTIONS(.progress_timeout_ns = weir_ms(1)));
    assert_int_equal(client_get(pair.client, pair.url).err, -ETIMEDOUT);
    assert_int_equal(pair.server.requests, 1);
    close_pair(&pair);
}

/* ---- repeating ---- */

static struct fetched repeat(struct host *host, struct scripted_reply reply, const char *method)
{
    const struct scripted_reply replies[] = {
        {.text = OK(3, "one")}, reply, {.text = OK(3, "two")}, {0}};
    struct pair pair;
    struct fetched fetched;

    open_pair(&pair, host, replies, NULL);
    assert_string_equal(client_get(pair.client, pair.url).content, "one");
    fetched = fetch(&pair, method, NULL, method[0] == 'P' ? "some" : NULL);
    assert_int_equal(pair.server.requests, fetched.err == 0 ? 3 : 2);
    close_pair(&pair);
    return fetched;
}

#define LOST ((struct scripted_reply){.text = "", .action = SCRIPTED_CLOSE})

TEST_EACH_LOOP(http_client_rules, a_put_is_sent_again)
{
    struct fetched fetched = repeat(host, LOST, "PUT");

    assert_int_equal(fetched.err, 0);
    assert_string_equal(fetched.content, "two");
}

TEST_EACH_LOOP(http_client_rules, a_patch_is_not_sent_again)
{
    assert_int_equal(repeat(host, LOST, "PATCH").err, WEIR_ECLOSED);
}

TEST_EACH_LOOP(http_client_rules, a_request_with_a_malformed_answer_is_not_sent_again)
{
    assert_int_equal(repeat(host, (struct scripted_reply){.text = "nonsense\r\n\r\n"}, "GET").err,
                     WEIR_EMALFORMED);
}

/* A call whose content is given at once, or streams. */
static void send_again(struct host *host, bool streams, bool is_idempotent, int err)
{
    struct streamed streamed = {0};
    weir_http_request *request = NULL;
    weir_http_call *call = NULL;
    weir_buf *content = NULL;
    struct pair pair;

    open_pair(&pair, host, REPLIES({.text = OK(3, "one")}, LOST, {.text = OK(3, "two")}), NULL);
    assert_string_equal(client_get(pair.client, pair.url).content, "one");
    assert_int_equal(weir_http_request_create("POST", pair.url, &request), 0);
    assert_int_equal(weir_buf_create_from("some", 4, &content), 0);
    if (streams)
        assert_int_equal(weir_http_request_set_content_length(request, 4), 0);
    assert_int_equal(
        weir_http_client_send(
            pair.client, request, streams ? NULL : weir_buf_msg(weir_buf_retain(content)),
            WEIR_HTTP_CALL_OPTIONS(.events = &streamed_events, .user_data = &streamed,
                                   .is_idempotent = is_idempotent, .stream_content = streams),
            &call),
        0);
    if (streams) {
        assert_int_equal(weir_http_call_write(call, weir_buf_msg(weir_buf_retain(content)), NULL),
                         0);
        assert_int_equal(weir_http_call_end(call, NULL), 0);
    }
    assert_true(call_counter_await_for(&streamed.ends, 1, TEST_TIMEOUT_NS));
    assert_int_equal(streamed.err, err);
    weir_http_call_release(call);
    weir_buf_release(content);
    close_pair(&pair);
}

TEST_EACH_LOOP(http_client_rules, a_post_is_sent_again_if_the_caller_allows_it)
{
    send_again(host, false, true, 0);
}

TEST_EACH_LOOP(http_client_rules, streamed_content_is_not_sent_again)
{
    send_again(host, true, true, WEIR_ECLOSED);
}

TEST_EACH_LOOP(http_client_rules, a_half_answered_request_is_not_sent_again)
{
    const struct scripted_reply half = {.text = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                                        .action = SCRIPTED_RESET};

    assert_true(repeat(host, half, "GET").err < 0);
}

TEST_EACH_LOOP(http_client_rules, a_get_that_was_a_post_is_sent_again)
{
    struct pair pair;

    open_pair(&pair, host, REPLIES({.text = MOVED("302", "/b")}, LOST, {.text = OK(3, "two")}),
              NULL);
    assert_string_equal(fetch(&pair, "POST", NULL, "some").content, "two");
    assert_int_equal(pair.server.requests, 3);
    close_pair(&pair);
}

/* ---- limits ---- */

TEST_EACH_LOOP(http_client_rules, the_head_has_a_limit_of_its_own)
{
    struct pair pair;
    struct fetched fetched;

    open_pair(
        &pair, host, REPLIES({.text = ""}),
        WEIR_HTTP_CLIENT_OPTIONS(.head_timeout_ns = weir_ms(1), .connect_timeout_ns = WEIR_OFF));
    fetched = client_get(pair.client, pair.url);
    assert_int_equal(fetched.err, -ETIMEDOUT);
    assert_non_null(strstr(fetched.detail, ": response head: "));
    close_pair(&pair);
}

/* A server that does not know status 100. */
TEST_EACH_LOOP(http_client_rules, content_waits_for_100_one_second)
{
    const char *const fields[] = {"Expect", "100-continue", NULL};
    struct host stepped = *host;
    weir_manual_clock *clock = NULL;
    weir_promise *promise = NULL;
    weir_buf *content = NULL;
    struct pair pair;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &clock), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = host->backend->io,
                                                          .clock = weir_manual_clock_clock(clock)),
                                       &stepped.group),
                     0);
    open_pair(&pair, host, REPLIES({.text = "", .at_head = true}, {.text = OK(2, "ok")}), NULL);
    client_close(pair.client);
    pair.client = client_open(&stepped, NULL);
    assert_int_equal(weir_buf_create_from("some\r\n\r\n", 8, &content), 0);
    assert_int_equal(weir_http_client_fetch(
                         pair.client,
                         WEIR_HTTP_FETCH_OPTIONS(.method = "PUT", .url = pair.url, .fields = fields,
                                                 .content = weir_buf_msg(content)),
                         &promise),
                     0);
    while (pair.server.requests == 0)
        (void)sched_yield();
    assert_int_equal(weir_manual_clock_advance(clock, weir_ms(1001)), 0);
    assert_string_equal(client_await(promise).content, "ok");
    assert_int_equal(pair.server.requests, 2);
    assert_string_equal(pair.server.last, "some\r\n\r\n");
    weir_buf_release(content);
    client_close(pair.client);
    end_group(stepped.group);
    weir_manual_clock_release(clock);
    scripted_server_close(&pair.server);
}

TEST_EACH_LOOP(http_client_rules, a_fetch_takes_16_mib)
{
    enum { LENGTH = (16 << 20) + 1 };
    char *reply = malloc(LENGTH + 128);
    struct pair pair;
    int head;

    assert_non_null(reply);
    head = snprintf(reply, 128, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LENGTH);
    memset(reply + head, 'x', LENGTH);
    open_pair(&pair, host, REPLIES({.text = reply, .length = (size_t)head + LENGTH}), NULL);
    assert_int_equal(client_get(pair.client, pair.url).err, WEIR_ETOOLONG);
    close_pair(&pair);
    free(reply);
}

TEST_EACH_LOOP(http_client_rules, few_calls_wait_for_a_connection)
{
    weir_promise *busy = NULL, *waiting = NULL, *refused = NULL;
    struct pair pair;
    int64_t end_ns;

    open_pair(&pair, host, REPLIES({.text = ""}),
              WEIR_HTTP_CLIENT_OPTIONS(.max_connections = 1, .max_waiting = 1));
    assert_int_equal(
        weir_http_client_fetch(pair.client, WEIR_HTTP_FETCH_OPTIONS(.url = pair.url), &busy), 0);
    await_connections(&pair, 1);
    assert_int_equal(client_stats(pair.client).idle, 0);
    assert_int_equal(
        weir_http_client_fetch(pair.client, WEIR_HTTP_FETCH_OPTIONS(.url = pair.url), &waiting), 0);
    assert_int_equal(client_get(pair.client, pair.url).err, WEIR_EFULL);
    assert_int_equal(weir_promise_cancel(waiting), 0); /* makes room, on the loop */
    for (end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
         client_stats(pair.client).failed < 2 && weir__monotonic_now() < end_ns;)
        (void)sched_yield();
    assert_int_equal(
        weir_http_client_fetch(pair.client, WEIR_HTTP_FETCH_OPTIONS(.url = pair.url), &refused), 0);
    host_turn(host, 2);
    assert_false(weir_promise_is_done(refused));
    weir_http_client_close(pair.client);
    assert_int_equal(client_await(refused).err, WEIR_ECLOSED);
    assert_int_equal(client_await(busy).err, WEIR_ECLOSED);
    assert_int_equal(
        weir_http_client_fetch(pair.client, WEIR_HTTP_FETCH_OPTIONS(.url = pair.url), &refused),
        WEIR_ECLOSED);
    weir_promise_release(waiting);
    close_pair(&pair);
}

TEST_EACH_LOOP(http_client_rules, idle_connections_are_closed)
{
    struct pair pair;

    open_pair(&pair, host, REPLIES({.text = OK(5, "hello")}),
              WEIR_HTTP_CLIENT_OPTIONS(.idle_timeout_ns = weir_ms(1)));
    assert_int_equal(client_get(pair.client, pair.url).err, 0);
    await_connections(&pair, 0);
    close_pair(&pair);
}

/* The least recently used ones; through a proxy, any name will do. */
TEST_EACH_LOOP(http_client_rules, few_origins_are_remembered)
{
    enum { MAX = 256 };
    struct pair pair;
    weir_http_client *client;
    char url[256];

    open_pair(&pair, host, REPLIES({.text = OK(0, "")}), NULL);
    (void)snprintf(url, sizeof(url), "http://%s", pair.server.address);
    client = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.proxy = url));
    client_close(pair.client);
    pair.client = client;
    for (int i = 0; i <= MAX; i++) {
        if (i == MAX)
            assert_int_equal(client_get(client, "http://o0.test/").err, 0); /* not the oldest */
        (void)snprintf(url, sizeof(url), "http://o%d.test/", i);
        assert_int_equal(client_get(client, url).err, 0);
    }
    await_connections(&pair, MAX);
    assert_int_equal(pair.server.connections, MAX + 1);
    assert_int_equal(client_get(client, "HTTP://O0.Test:80/").err, 0);
    assert_memory_equal(pair.server.last, "GET http://o0.test/ ", 20);
    assert_sent(&pair, "Host", "o0.test");
    assert_int_equal(pair.server.connections, MAX + 1);
    close_pair(&pair);
}

/* ---- reading on demand ---- */

/* The application takes its time; then the connection is read by itself again. */
TEST_EACH_LOOP(http_client_rules, an_application_that_does_not_read_has_time)
{
    struct streamed streamed = {0};
    weir_http_request *request = NULL;
    weir_http_call *call = NULL;
    struct pair pair;
    int64_t end_ns;

    open_pair(&pair, host, REPLIES({.text = OK(5, "hello"), .action = SCRIPTED_CLOSE}),
              WEIR_HTTP_CLIENT_OPTIONS(.progress_timeout_ns = weir_ms(5)));
    assert_int_equal(weir_http_request_create("GET", pair.url, &request), 0);
    assert_int_equal(weir_http_client_send(pair.client, request, NULL,
                                           WEIR_HTTP_CALL_OPTIONS(.events = &streamed_events,
                                                                  .user_data = &streamed,
                                                                  .read_on_demand = true),
                                           &call),
                     0);
    assert_true(call_counter_await_for(&streamed.heads, 1, TEST_TIMEOUT_NS));
    for (end_ns = weir__monotonic_now() + weir_ms(20); weir__monotonic_now() < end_ns;)
        host_turn(host, 1);
    assert_int_equal(streamed.ends.calls, 0);
    weir_http_call_read(call);
    assert_true(call_counter_await_for(&streamed.pieces, 1, TEST_TIMEOUT_NS));
    for (end_ns = weir__monotonic_now() + weir_ms(20); weir__monotonic_now() < end_ns;)
        host_turn(host, 1);
    assert_int_equal(streamed.ends.calls, 0);
    weir_http_call_read(call);
    assert_true(call_counter_await_for(&streamed.ends, 1, TEST_TIMEOUT_NS));
    assert_int_equal(streamed.err, 0);
    weir_http_call_release(call);
    await_connections(&pair, 0); /* the server has closed it */
    close_pair(&pair);
}

/* ---- writing ---- */

TEST_EACH_LOOP(http_client_rules, content_behind_the_end_is_dropped)
{
    struct streamed streamed = {0};
    weir_http_request *request = NULL;
    weir_http_call *call = NULL;
    weir_promise *done = NULL;
    weir_buf *content = NULL;
    struct pair pair;

    open_pair(&pair, host, REPLIES({.text = OK(2, "ok")}), NULL);
    assert_int_equal(weir_http_request_create("PUT", pair.url, &request), 0);
    assert_int_equal(weir_http_request_set_content_length(request, 0), 0);
    assert_int_equal(weir_promise_create(host->loop, &done), 0);
    assert_int_equal(weir_buf_create_from("some", 4, &content), 0);
    assert_int_equal(weir_http_client_send(pair.client, request,
                                           weir_buf_msg(weir_buf_retain(content)),
                                           WEIR_HTTP_CALL_OPTIONS(.stream_content = true), &call),
                     -EINVAL);
    assert_int_equal(weir_http_request_create("PUT", pair.url, &request), 0);
    assert_int_equal(weir_http_request_set_content_length(request, WEIR_HTTP_UNKNOWN_LENGTH), 0);
    assert_int_equal(weir_http_client_send(pair.client, request, NULL,
                                           WEIR_HTTP_CALL_OPTIONS(.stream_content = true,
                                                                  .events = &streamed_events,
                                                                  .user_data = &streamed),
                                           &call),
                     0);
    assert_true(call_counter_await_for(&streamed.writables, 1, TEST_TIMEOUT_NS));
    assert_int_equal(weir_http_call_end(call, NULL), 0);
    assert_int_equal(weir_http_call_write(call, weir_buf_msg(content), done), 0);
    assert_true(call_counter_await_for(&streamed.ends, 1, TEST_TIMEOUT_NS));
    assert_int_equal(streamed.err, 0);
    assert_int_equal(weir_promise_await(done, TEST_TIMEOUT_NS), 0);
    if (weir_promise_result(done) != 0) /* the response was quicker */
        assert_int_equal(weir_promise_result(done), WEIR_ECLOSED);
    weir_promise_release(done);
    weir_http_call_release(call);
    close_pair(&pair);
}

/* ---- loops ---- */

static weir_executor *loop_of_call(weir_http_client *client, const char *url)
{
    weir_http_request *request = NULL;
    weir_http_call *call = NULL;
    weir_executor *loop;

    assert_int_equal(weir_http_request_create("GET", url, &request), 0);
    assert_int_equal(weir_http_client_send(client, request, NULL, NULL, &call), 0);
    loop = weir_http_call_executor(call);
    weir_http_call_release(call);
    return loop;
}

struct caller {
    weir_http_client *client;
    weir_executor *loop;
};

static void call_here(void *arg)
{
    struct caller *caller = arg;

    caller->loop = loop_of_call(caller->client, "http://127.0.0.1:1/");
}

TEST(http_client_rules, calls_run_on_the_loop_of_their_caller_or_of_their_origin)
{
    weir_group *group = NULL;
    struct caller caller = {0};
    const weir_executor *first = NULL;
    bool differ = false;
    char url[64];

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 4), &group), 0);
    assert_int_equal(
        weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = group), &caller.client), 0);
    for (size_t i = 0; i < 4; i++) {
        run_on_executor(weir_group_at(group, i), call_here, &caller);
        assert_ptr_equal(caller.loop, weir_group_at(group, i));
    }
    for (int i = 1; i < 64; i++) {
        (void)snprintf(url, sizeof(url), "http://127.0.0.%d:1/", i);
        first = i == 1 ? loop_of_call(caller.client, url) : first;
        differ |= loop_of_call(caller.client, url) != first;
        assert_ptr_equal(loop_of_call(caller.client, url), loop_of_call(caller.client, url));
    }
    assert_true(differ);
    client_close(caller.client);
    end_group(group);
}

/* Otherwise the shutdown would wait for them until its timeout. */
TEST_EACH_LOOP(http_client_rules, idle_connections_do_not_delay_a_shutdown)
{
    struct host other;
    struct pair pair;
    weir_http_client *client;

    host_open(&other, (enum backend_id)(host->backend - backends));
    open_pair(&pair, host, REPLIES({.text = OK(2, "ok")}), NULL);
    client = client_open(&other, NULL);
    assert_int_equal(client_get(client, pair.url).err, 0);
    assert_int_equal(weir_group_shutdown(other.group, 0, weir_seconds(3600)), 0);
    assert_int_equal(weir_group_await_termination(other.group, TEST_TIMEOUT_NS), 0);
    client_close(client);
    host_close(&other);
    close_pair(&pair);
}

static void wait_here(void *client)
{
    weir_http_full *full = NULL;
    char url[256];

    (void)snprintf(url, sizeof(url), "%s", waited_for);
    assert_int_equal(
        weir_http_client_fetch_sync(client, WEIR_HTTP_FETCH_OPTIONS(.url = url), &full), -EDEADLK);
}

TEST_EACH_LOOP(http_client_rules, a_fetch_that_cannot_wait_is_cancelled)
{
    struct pair pair;

    log_capture_start();
    open_pair(&pair, host, REPLIES({.text = ""}), NULL);
    waited_for = pair.url;
    run_on_executor(host->loop, wait_here, pair.client);
    while (client_stats(pair.client).failed == 0)
        (void)sched_yield();
    assert_int_equal(client_stats(pair.client).calls, 0);
    close_pair(&pair);
}

/* ---- options ---- */

TEST_EACH_LOOP(http_client_rules, a_fetch_has_its_executor_and_trailers)
{
    weir_promise *promise = NULL;
    weir_span sum;
    struct pair pair;

    open_pair(&pair, host,
              REPLIES({.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n"}),
              NULL);
    assert_int_equal(
        weir_http_client_fetch(pair.client,
                               WEIR_HTTP_FETCH_OPTIONS(.url = pair.url, .executor = host->loop),
                               &promise),
        0);
    assert_ptr_equal(weir_promise_executor(promise), host->loop);
    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    sum =
        weir_http_headers_get_named(weir_http_full_trailers(weir_promise_value(promise)), "X-Sum");
    assert_true(weir_span_equal(sum, weir_span_of_text("42")));
    weir_promise_release(promise);
    close_pair(&pair);
}

TEST_EACH_LOOP(http_client_rules, a_fetch_has_limits_of_its_own)
{
    struct pair pair;
    struct fetched fetched;

    open_pair(&pair, host,
              REPLIES({.text = MOVED("302", "/")}, {.text = MOVED("302", "/")}, {.text = ""}),
              NULL);
    fetched =
        client_fetch(pair.client, WEIR_HTTP_FETCH_OPTIONS(.url = pair.url, .max_redirects = 1));
    assert_int_equal(fetched.err, -ELOOP);
    assert_int_equal(pair.server.requests, 2);
    fetched = client_fetch(pair.client,
                           WEIR_HTTP_FETCH_OPTIONS(.url = pair.url, .timeout_ns = weir_ms(1)));
    assert_int_equal(fetched.err, -ETIMEDOUT);
    close_pair(&pair);
}

TEST_EACH_LOOP(http_client_rules, the_defaults_are_the_documented_ones)
{
    weir_http_client *client = client_open(host, NULL);
    const weir_http_client_options *options = &client->options;

    assert_int_equal(options->idle_timeout_ns, weir_seconds(30));
    assert_int_equal(options->connect_timeout_ns, weir_seconds(10));
    assert_int_equal(options->channel_options->connect_timeout_ns, weir_seconds(10));
    assert_int_equal(options->head_timeout_ns, weir_seconds(60));
    assert_int_equal(options->progress_timeout_ns, weir_seconds(60));
    assert_int_equal(options->timeout_ns, WEIR_OFF);
    assert_int_equal(options->max_redirects, 10);
    client_close(client);
}

TEST_EACH_LOOP(http_client_rules, the_resolver_of_the_options_is_asked)
{
    weir_resolver *resolver = fake_dns_open(WEIR_RESOLVER_OPTIONS());
    struct pair pair;

    open_pair(&pair, host, REPLIES({.text = OK(2, "ok")}),
              WEIR_HTTP_CLIENT_OPTIONS(.resolver = resolver));
    (void)snprintf(pair.url, sizeof(pair.url), "http://here.test%s/",
                   strrchr(pair.server.address, ':'));
    assert_string_equal(client_get(pair.client, pair.url).content, "ok");
    assert_int_equal(fake_dns.asked.calls, 1);
    close_pair(&pair);
    fake_dns_close(resolver);
}

static struct call_counter heads; /* behind the codec */

static void count_head(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_http_response_of(msg) != NULL)
        call_counter_add(&heads);
    weir_fire_read(ctx, msg);
}

static const weir_handler counter_of_heads = {.name = "heads", .read = count_head};

static int add_counter(weir_channel *channel, void *user_data)
{
    *(unsigned *)user_data += 1;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &counter_of_heads, NULL);
}

static int refuse_connection(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return -EIO;
}

TEST_EACH_LOOP(http_client_rules, connections_have_handlers_of_the_application)
{
    unsigned inits = 0;
    weir_http_client *refused;
    struct pair pair;

    memset(&heads, 0, sizeof(heads));
    open_pair(&pair, host, REPLIES({.text = OK(2, "ok")}),
              WEIR_HTTP_CLIENT_OPTIONS(.init_connection = add_counter, .user_data = &inits));
    for (int i = 0; i < 2; i++)
        assert_string_equal(client_get(pair.client, pair.url).content, "ok");
    assert_int_equal(heads.calls, 2);
    assert_int_equal(inits, 1);
    refused = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.init_connection = refuse_connection));
    assert_int_equal(client_get(refused, pair.url).err, -EIO);
    client_close(refused);
    close_pair(&pair);
}

TEST_EACH_LOOP(http_client_rules, proxies_have_default_ports)
{
    static const char *const rows[][2] = {
        {"http://proxy.test", "proxy.test:3128"},
        {"socks5://proxy.test/", "proxy.test:1080"},
        {"socks5h://[::1]", "[::1]:1080"},
        {"http://[::1]:80", "[::1]:80"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir_http_client *client = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.proxy = rows[i][0]));

        assert_string_equal(client->proxy_address, rows[i][1]);
        client_close(client);
    }
}

TEST_EACH_LOOP(http_client_rules, a_url_has_no_port_0)
{
    weir_http_client *client = client_open(host, NULL);
    weir_promise *none = NULL;

    assert_int_equal(
        weir_http_client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = "http://h:0/"), &none),
        -EINVAL);
    client_close(client);
}
