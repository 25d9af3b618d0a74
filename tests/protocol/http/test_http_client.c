/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients with a scripted server, on every backend: requests, reuse, redirections, retries, limits,
 * timeouts, cancellation, closing.
 */
#include <weir/http_client.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <weir/error.h>

#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/protocol/http/client_fixture.h"
#include "support/protocol/http/scripted_server.h"
#include "support/test.h"

#define REPLIES(...) ((const struct scripted_reply[]){__VA_ARGS__, {0}})
#define OK SCRIPTED_OK
#define EMPTY(status, fields) "HTTP/1.1 " status "\r\nContent-Length: 0\r\n" fields "\r\n"

static weir_buf *buf_of(const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    return buf;
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("\"%s\" contains \"%s\"", text, part);
}

/* ---- requests ---- */

TEST_EACH_LOOP(http_client, fetches_a_whole_response)
{
    struct scripted_server server;
    char url[256], host_field[256];
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&server, host, REPLIES({.text = OK(5, "hello")}));
    client = client_open(host, NULL);
    fetched = client_get(client, scripted_server_url(&server, "http", "/a/b?c=d#e", url));
    assert_int_equal(fetched.err, 0);
    assert_int_equal(fetched.status, 200);
    assert_string_equal(fetched.content, "hello");
    assert_int_equal(strncmp(server.last, "GET /a/b?c=d HTTP/1.1\r\n", 23), 0);
    (void)snprintf(host_field, sizeof(host_field), "\r\nHost: %s\r\n", server.address);
    assert_contains(server.last, host_field);
    assert_contains(server.last, "\r\nUser-Agent: weir/");
    assert_contains(server.last, "\r\nAccept-Encoding: gzip");
    assert_lacks(server.last, "Content-Length");
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, sends_method_fields_and_content)
{
    struct scripted_server server;
    char url[256];
    const char *const fields[] = {"Content-Type", "text/plain", "User-Agent", "me", NULL};
    weir_http_client *client;
    weir_buf *content = buf_of("some content");
    struct fetched fetched;

    scripted_server_open(&server, host, REPLIES({.text = EMPTY("204 No Content", "")}));
    client = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.no_decompression = true));
    fetched = client_fetch(
        client, WEIR_HTTP_FETCH_OPTIONS(.method = "PUT",
                                        .url = scripted_server_url(&server, "http", "", url),
                                        .fields = fields, .content = weir_buf_msg(content)));
    assert_int_equal(fetched.err, 0);
    assert_int_equal(fetched.status, 204);
    assert_int_equal(fetched.length, 0);
    assert_int_equal(strncmp(server.last, "PUT / HTTP/1.1\r\n", 16), 0);
    assert_contains(server.last, "\r\nContent-Type: text/plain\r\n");
    assert_contains(server.last, "\r\nUser-Agent: me\r\n");
    assert_contains(server.last, "\r\nContent-Length: 12\r\n");
    assert_contains(server.last, "\r\n\r\nsome content");
    assert_lacks(server.last, "Accept-Encoding");
    weir_buf_release(content);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, takes_ranges_as_they_are)
{
    struct scripted_server server;
    char url[256];
    const char *const fields[] = {"Range", "bytes=2-5", NULL};
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&server, host,
                         REPLIES({.text = "HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\n"
                                          "Content-Range: bytes 2-5/9\r\n"
                                          "Content-Encoding: gzip\r\n\r\npart"}));
    client = client_open(host, NULL);
    fetched = client_fetch(
        client, WEIR_HTTP_FETCH_OPTIONS(.url = scripted_server_url(&server, "http", "/", url),
                                        .fields = fields));
    assert_int_equal(fetched.err, 0);
    assert_string_equal(fetched.content, "part");
    assert_lacks(server.last, "Accept-Encoding");
    (void)client_get(client, url);
    assert_contains(server.last, "\r\nAccept-Encoding: gzip, deflate");
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, makes_basic_credentials_of_a_userinfo)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;

    scripted_server_open(&server, host, REPLIES({.text = OK(0, "")}));
    client = client_open(host, NULL);
    (void)snprintf(url, sizeof(url), "http://Aladdin:open%%20sesame@%s/", server.address);
    assert_int_equal(client_get(client, url).err, 0);
    assert_contains(server.last, "\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n");
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, reads_chunks_and_content_until_the_end)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&server, host,
                         REPLIES({.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                          "5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n"},
                                 {.text = "HTTP/1.0 200 OK\r\nServer: old\r\n\r\nuntil the end",
                                  .action = SCRIPTED_CLOSE}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    fetched = client_get(client, url);
    assert_int_equal(fetched.err, 0);
    assert_string_equal(fetched.content, "hello, world");
    fetched = client_get(client, url);
    assert_int_equal(fetched.err, 0);
    assert_string_equal(fetched.content, "until the end");
    assert_string_equal(fetched.server, "old");
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, gets_the_head_of_a_response_to_head)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&server, host,
                         REPLIES({.text = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"},
                                 {.text = OK(2, "ok")}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    fetched = client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.method = "HEAD", .url = url));
    assert_int_equal(fetched.err, 0);
    assert_int_equal(fetched.length, 0);
    assert_string_equal(client_get(client, url).content, "ok");
    assert_int_equal(server.connections, 1);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, rejects_urls_that_it_cannot_fetch)
{
    weir_http_client *client = client_open(host, NULL);

    assert_int_equal(client_get(client, "ftp://example.test/").err, -EPROTONOSUPPORT);
    assert_int_equal(client_get(client, "https://example.test/").err, -EPROTONOSUPPORT);
    assert_int_equal(client_get(client, "/path").err, -EINVAL);
    assert_int_equal(client_get(client, "http:///path").err, -EINVAL);
    assert_int_equal(client_get(client, "http://host:99999/").err, -EINVAL);
    assert_int_equal(client_get(client, "http://a b/").err, -EINVAL);
    client_close(client);
}

/* ---- connections ---- */

TEST_EACH_LOOP(http_client, reuses_a_connection)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    weir_http_client_stats stats;

    scripted_server_open(&server, host, REPLIES({.text = OK(5, "hello")}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    for (unsigned i = 0; i < 100; i++)
        assert_string_equal(client_get(client, url).content, "hello");
    assert_int_equal(server.connections, 1);
    stats = client_stats(client);
    assert_int_equal(stats.connected, 1);
    assert_int_equal(stats.connections, 1);
    assert_int_equal(stats.idle, 1);
    assert_int_equal(stats.reused, 99);
    assert_int_equal(stats.succeeded, 100);
    assert_int_equal(stats.calls, 0);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, does_not_reuse_a_connection_that_the_server_closes)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;

    scripted_server_open(
        &server, host,
        REPLIES({.text = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    assert_int_equal(client_get(client, url).err, 0);
    assert_int_equal(client_get(client, url).err, 0);
    assert_int_equal(server.connections, 2);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, opens_no_more_connections_than_allowed)
{
    enum { CALLS = 20 };
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    weir_promise *promises[CALLS];

    scripted_server_open(&server, host, REPLIES({.text = OK(5, "hello")}));
    client = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.max_connections = 2));
    scripted_server_url(&server, "http", "/", url);
    for (unsigned i = 0; i < CALLS; i++)
        assert_int_equal(
            weir_http_client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url), &promises[i]), 0);
    for (unsigned i = 0; i < CALLS; i++)
        assert_string_equal(client_await(promises[i]).content, "hello");
    assert_true(server.connections <= 2);
    assert_int_equal(server.requests, CALLS);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, repeats_a_request_if_an_idle_connection_was_closed)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;

    scripted_server_open(&server, host,
                         REPLIES({.text = OK(3, "one")}, {.text = "", .action = SCRIPTED_CLOSE},
                                 {.text = OK(3, "two")}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    assert_string_equal(client_get(client, url).content, "one");
    assert_string_equal(client_get(client, url).content, "two");
    assert_int_equal(server.connections, 2);
    assert_int_equal(client_stats(client).retried, 1);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, repeats_neither_posts_nor_half_answered_requests)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&server, host,
                         REPLIES({.text = OK(3, "one")}, {.text = "", .action = SCRIPTED_CLOSE},
                                 {.text = OK(3, "two")},
                                 {.text = "HTTP/1.1 200", .action = SCRIPTED_CLOSE}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    assert_string_equal(client_get(client, url).content, "one");
    fetched = client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.method = "POST", .url = url));
    assert_true(fetched.err < 0);
    assert_string_equal(client_get(client, url).content, "two");
    fetched = client_get(client, url);
    assert_true(fetched.err < 0);
    assert_contains(fetched.detail, url);
    assert_contains(fetched.detail, "response head");
    assert_int_equal(client_stats(client).retried, 0);
    client_close(client);
    scripted_server_close(&server);
}

/* ---- redirections ---- */

TEST_EACH_LOOP(http_client, follows_redirections)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(
        &server, host,
        REPLIES(
            {.text = EMPTY("301 Moved", "Location: /b\r\n")},
            {.text = "HTTP/1.1 302 Found\r\nLocation: ../c?x=1\r\nContent-Length: 4\r\n\r\nbody"},
            {.text = OK(4, "here")}));
    client = client_open(host, NULL);
    fetched = client_get(client, scripted_server_url(&server, "http", "/a", url));
    assert_string_equal(fetched.content, "here");
    assert_int_equal(strncmp(server.last, "GET /c?x=1 HTTP/1.1\r\n", 21), 0);
    assert_int_equal(server.requests, 3);
    assert_int_equal(server.connections, 1);
    assert_int_equal(client_stats(client).redirected, 2);
    client_close(client);
    scripted_server_close(&server);
}

static void redirect_post(struct host *host, const char *status, const char *expected_method,
                          bool expects_content)
{
    struct scripted_server server;
    char url[256], reply[256];
    const char *const fields[] = {"Content-Type", "text/plain", NULL};
    weir_buf *content = buf_of("payload");
    weir_http_client *client;
    struct fetched fetched;

    (void)snprintf(reply, sizeof(reply),
                   "HTTP/1.1 %s X\r\nContent-Length: 0\r\nLocation: /next\r\n\r\n", status);
    scripted_server_open(&server, host, REPLIES({.text = reply}, {.text = OK(4, "here")}));
    client = client_open(host, NULL);
    fetched = client_fetch(
        client, WEIR_HTTP_FETCH_OPTIONS(.method = "POST",
                                        .url = scripted_server_url(&server, "http", "/", url),
                                        .fields = fields, .content = weir_buf_msg(content)));
    assert_string_equal(fetched.content, "here");
    assert_int_equal(strncmp(server.last, expected_method, strlen(expected_method)), 0);
    assert_int_equal(strstr(server.last, "payload") != NULL, expects_content);
    assert_int_equal(strstr(server.last, "Content-Type") != NULL, expects_content);
    weir_buf_release(content);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, redirects_a_post_as_a_get_after_302)
{
    redirect_post(host, "302", "GET /next ", false);
}

TEST_EACH_LOOP(http_client, redirects_a_post_as_a_get_after_303)
{
    redirect_post(host, "303", "GET /next ", false);
}

TEST_EACH_LOOP(http_client, repeats_a_post_after_307)
{
    redirect_post(host, "307", "POST /next ", true);
}

TEST_EACH_LOOP(http_client, drops_credentials_for_another_origin)
{
    struct scripted_server server, other;
    char url[256], reply[256];
    const char *const fields[] = {"Authorization", "secret", "Cookie", "a=b",
                                  "X-Kept",        "yes",    NULL};
    struct scripted_reply replies[] = {
        {.text = EMPTY("302 Found", "Location: /same\r\n")}, {.text = reply}, {0}};
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&other, host, REPLIES({.text = OK(5, "other")}));
    (void)snprintf(reply, sizeof(reply),
                   "HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: http://%s/x\r\n\r\n",
                   other.address);
    scripted_server_open(&server, host, replies);
    client = client_open(host, NULL);
    fetched = client_fetch(
        client, WEIR_HTTP_FETCH_OPTIONS(.url = scripted_server_url(&server, "http", "/", url),
                                        .fields = fields));
    assert_string_equal(fetched.content, "other");
    assert_contains(server.last, "GET /same ");
    assert_contains(server.last, "Authorization: secret\r\n");
    assert_contains(server.last, "Cookie: a=b\r\n");
    assert_lacks(other.last, "secret");
    assert_lacks(other.last, "Cookie");
    assert_contains(other.last, "X-Kept: yes\r\n");
    assert_contains(other.last, other.address);
    client_close(client);
    scripted_server_close(&server);
    scripted_server_close(&other);
}

TEST_EACH_LOOP(http_client, limits_redirections)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&server, host, REPLIES({.text = EMPTY("302 Found", "Location: /\r\n")}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    fetched = client_get(client, url);
    assert_int_equal(fetched.err, -ELOOP);
    assert_int_equal(server.requests, 11);
    fetched = client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url, .max_redirects = WEIR_OFF));
    assert_int_equal(fetched.err, 0);
    assert_int_equal(fetched.status, 302);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, refuses_redirections_to_other_schemes)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;

    scripted_server_open(&server, host,
                         REPLIES({.text = EMPTY("302 Found", "Location: ftp://example.test/\r\n")},
                                 {.text = EMPTY("302 Found", "Location: http://a b/\r\n")}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    assert_int_equal(client_get(client, url).err, -EPROTONOSUPPORT);
    assert_int_equal(client_get(client, url).err, WEIR_EMALFORMED);
    client_close(client);
    scripted_server_close(&server);
}

/* ---- failures ---- */

/* Fetches from a server with one reply. */
static struct fetched fetch_once(struct host *host, struct scripted_reply reply,
                                 const weir_http_client_options *options)
{
    const struct scripted_reply replies[] = {reply, {0}};
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&server, host, replies);
    client = client_open(host, options);
    fetched = client_get(client, scripted_server_url(&server, "http", "/page", url));
    if (fetched.err < 0) {
        assert_contains(fetched.detail, "GET ");
        assert_contains(fetched.detail, url);
    }
    client_close(client);
    scripted_server_close(&server);
    return fetched;
}

TEST_EACH_LOOP(http_client, reports_a_refused_connection)
{
    weir_http_client *client = client_open(host, NULL);
    struct fetched fetched = client_get(client, "http://127.0.0.1:1/x");

    assert_int_equal(fetched.err, -ECONNREFUSED);
    assert_contains(fetched.detail, "GET http://127.0.0.1:1/x: connect: ");
    assert_int_equal(client_stats(client).failed, 1);
    client_close(client);
}

TEST_EACH_LOOP(http_client, reports_an_end_before_the_head)
{
    struct fetched fetched =
        fetch_once(host, (struct scripted_reply){.text = "", .action = SCRIPTED_CLOSE}, NULL);

    assert_true(fetched.err < 0);
    assert_contains(fetched.detail, "response head");
}

TEST_EACH_LOOP(http_client, reports_an_end_within_the_head)
{
    struct fetched fetched = fetch_once(
        host,
        (struct scripted_reply){.text = "HTTP/1.1 200 OK\r\nServer: x", .action = SCRIPTED_CLOSE},
        NULL);

    assert_true(fetched.err < 0);
    assert_contains(fetched.detail, "response head");
}

TEST_EACH_LOOP(http_client, reports_an_end_within_the_content)
{
    struct fetched fetched = fetch_once(
        host, (struct scripted_reply){.text = OK(10, "hello"), .action = SCRIPTED_CLOSE}, NULL);

    assert_true(fetched.err < 0);
    assert_contains(fetched.detail, "response content");
}

TEST_EACH_LOOP(http_client, reports_a_reset_within_the_content)
{
    struct fetched fetched = fetch_once(
        host, (struct scripted_reply){.text = OK(10, "hello"), .action = SCRIPTED_RESET}, NULL);

    assert_true(fetched.err < 0);
}

TEST_EACH_LOOP(http_client, reports_garbage)
{
    assert_int_equal(
        fetch_once(host, (struct scripted_reply){.text = "SSH-2.0-OpenSSH_9.2p1\r\n\r\n"}, NULL)
            .err,
        WEIR_EMALFORMED);
}

TEST_EACH_LOOP(http_client, ignores_a_response_that_nobody_asked_for)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;

    scripted_server_open(&server, host,
                         REPLIES({.text = OK(3, "one") OK(5, "stale")}, {.text = OK(3, "two")}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    assert_string_equal(client_get(client, url).content, "one");
    assert_string_equal(client_get(client, url).content, "two");
    assert_int_equal(server.connections, 2);
    client_close(client);
    scripted_server_close(&server);
}

/* With one connection at a time, so that the next call waits for it. */
static void fetch_behind(struct host *host, const char *method, const char *spoiled)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    weir_promise *fetching[4] = {NULL};
    struct fetched fetched;

    scripted_server_open(&server, host,
                         REPLIES({.text = spoiled}, {.text = OK(4, "good")},
                                 {.text = OK(4, "good")}, {.text = OK(4, "good")}));
    client = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.max_connections = 1));
    scripted_server_url(&server, "http", "/", url);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(weir_http_client_fetch(
                             client,
                             WEIR_HTTP_FETCH_OPTIONS(.method = i == 0 ? method : "GET", .url = url),
                             &fetching[i]),
                         0);
    assert_int_equal(client_await(fetching[0]).err, 0);
    for (unsigned i = 1; i < 4; i++) {
        fetched = client_await(fetching[i]);
        assert_int_equal(fetched.err, 0);
        assert_string_equal(fetched.content, "good");
    }
    assert_int_equal(server.connections, 2); /* the second one serves all that follow */
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, keeps_a_second_response_from_the_next_call)
{
    fetch_behind(host, "GET", OK(4, "good") OK(4, "evil"));
}

TEST_EACH_LOOP(http_client, keeps_content_of_a_response_to_head_from_the_next_call)
{
    fetch_behind(host, "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n" OK(4, "evil"));
}

TEST_EACH_LOOP(http_client, keeps_content_behind_204_from_the_next_call)
{
    fetch_behind(host, "GET", "HTTP/1.1 204 No Content\r\n\r\n" OK(4, "evil"));
}

TEST_EACH_LOOP(http_client, keeps_content_behind_304_from_the_next_call)
{
    fetch_behind(host, "GET", "HTTP/1.1 304 Not Modified\r\n\r\n" OK(4, "evil"));
}

TEST_EACH_LOOP(http_client, keeps_a_late_interim_response_from_the_next_call)
{
    fetch_behind(host, "GET", OK(4, "good") "HTTP/1.1 103 Early Hints\r\n\r\n" OK(4, "evil"));
}

TEST_EACH_LOOP(http_client, keeps_a_byte_behind_chunks_from_the_next_call)
{
    fetch_behind(host, "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nH");
}

TEST_EACH_LOOP(http_client, limits_the_head)
{
    struct fetched fetched =
        fetch_once(host,
                   (struct scripted_reply){
                       .text = "HTTP/1.1 200 OK\r\nX-1: 0123456789012345678901234567890123456789",
                       .repeats = 2000},
                   NULL);

    assert_true(fetched.err == WEIR_ETOOLONG || fetched.err == WEIR_EMALFORMED);
}

TEST_EACH_LOOP(http_client, limits_the_content)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;

    scripted_server_open(&server, host, REPLIES({.text = OK(5, "hello")}));
    client = client_open(host, NULL);
    scripted_server_url(&server, "http", "/", url);
    assert_int_equal(
        client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url, .max_content = 5)).err, 0);
    assert_int_equal(
        client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url, .max_content = 4)).err,
        WEIR_ETOOLONG);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, waits_for_a_head_only_so_long)
{
    struct fetched fetched = fetch_once(host, (struct scripted_reply){.text = ""},
                                        WEIR_HTTP_CLIENT_OPTIONS(.head_timeout_ns = weir_ms(20)));

    assert_int_equal(fetched.err, -ETIMEDOUT);
    assert_contains(fetched.detail, "response head");
}

TEST_EACH_LOOP(http_client, waits_for_content_only_so_long)
{
    struct fetched fetched =
        fetch_once(host, (struct scripted_reply){.text = OK(10, "hello")},
                   WEIR_HTTP_CLIENT_OPTIONS(.progress_timeout_ns = weir_ms(20)));

    assert_int_equal(fetched.err, -ETIMEDOUT);
    assert_contains(fetched.detail, "response content");
}

TEST_EACH_LOOP(http_client, limits_the_time_of_a_call)
{
    struct fetched fetched = fetch_once(host, (struct scripted_reply){.text = ""},
                                        WEIR_HTTP_CLIENT_OPTIONS(.timeout_ns = weir_ms(20)));

    assert_int_equal(fetched.err, -ETIMEDOUT);
}

/* ---- cancellation and closing ---- */

TEST_EACH_LOOP(http_client, cancels_a_call_with_its_promise)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    weir_promise *promise;

    scripted_server_open(&server, host, REPLIES({.text = ""}));
    client = client_open(host, NULL);
    assert_int_equal(
        weir_http_client_fetch(
            client, WEIR_HTTP_FETCH_OPTIONS(.url = scripted_server_url(&server, "http", "/", url)),
            &promise),
        0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(client_await(promise).err, WEIR_ECANCELED);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, fails_its_calls_when_it_is_closed)
{
    enum { CALLS = 5 };
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    weir_promise *promises[CALLS], *late;

    scripted_server_open(&server, host, REPLIES({.text = ""}));
    client = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.max_connections = 2));
    scripted_server_url(&server, "http", "/", url);
    for (unsigned i = 0; i < CALLS; i++)
        assert_int_equal(
            weir_http_client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url), &promises[i]), 0);
    weir_http_client_close(client);
    assert_int_equal(weir_http_client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url), &late),
                     WEIR_ECLOSED);
    for (unsigned i = 0; i < CALLS; i++)
        assert_int_equal(client_await(promises[i]).err, WEIR_ECLOSED);
    client_close(client);
    scripted_server_close(&server);
}

TEST_EACH_LOOP(http_client, fails_its_calls_when_the_group_ends)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    weir_promise *promise;

    scripted_server_open(&server, host, REPLIES({.text = ""}));
    client = client_open(host, NULL);
    assert_int_equal(
        weir_http_client_fetch(
            client, WEIR_HTTP_FETCH_OPTIONS(.url = scripted_server_url(&server, "http", "/", url)),
            &promise),
        0);
    weir_group_shutdown(host->group, 0, weir_ms(100));
    assert_true(client_await(promise).err < 0);
    scripted_server_close(&server);
    client_close(client);
}

/* ---- content codings ---- */

/* Compresses zeros to a whole response. Returns its length. */
static size_t compress_zeros(size_t count, char *reply, size_t size)
{
    static unsigned char zeros[65536];
    unsigned char *content = (unsigned char *)reply + 128;
    z_stream stream = {.next_out = content, .avail_out = (uInt)(size - 128)};
    int head;

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    for (size_t done = 0; done < count; done += sizeof(zeros)) {
        stream.next_in = zeros;
        stream.avail_in = (uInt)(count - done < sizeof(zeros) ? count - done : sizeof(zeros));
        assert_int_equal(deflate(&stream, Z_NO_FLUSH), Z_OK);
    }
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    head = snprintf(reply, 128,
                    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %lu\r\n\r\n",
                    stream.total_out);
    memmove(reply + head, content, stream.total_out);
    (void)deflateEnd(&stream);
    return (size_t)head + stream.total_out;
}

TEST_EACH_LOOP(http_client, decodes_content)
{
    static char reply[4096];
    size_t length = compress_zeros(100000, reply, sizeof(reply));
    struct fetched fetched =
        fetch_once(host, (struct scripted_reply){.text = reply, .length = length}, NULL);

    assert_int_equal(fetched.err, 0);
    assert_int_equal(fetched.length, 100000);
}

TEST_EACH_LOOP(http_client, passes_encoded_content_on_if_asked_to)
{
    static char reply[4096];
    size_t length = compress_zeros(100000, reply, sizeof(reply));
    struct fetched fetched =
        fetch_once(host, (struct scripted_reply){.text = reply, .length = length},
                   WEIR_HTTP_CLIENT_OPTIONS(.no_decompression = true));

    assert_int_equal(fetched.err, 0);
    assert_true(fetched.length < 1000);
}

TEST_EACH_LOOP(http_client, refuses_a_bomb)
{
    static char reply[65536];
    size_t length = compress_zeros(40000000, reply, sizeof(reply));
    struct fetched fetched =
        fetch_once(host, (struct scripted_reply){.text = reply, .length = length}, NULL);

    assert_int_equal(fetched.err, WEIR_ETOOLONG);
}

/* ---- cookies ---- */

TEST_EACH_LOOP(http_client, stores_and_sends_cookies)
{
    struct scripted_server server;
    char url[256];
    weir_http_client *client;
    weir_http_cookie_jar *jar;

    assert_int_equal(weir_http_cookie_jar_create(NULL, &jar), 0);
    scripted_server_open(&server, host,
                         REPLIES({.text = EMPTY("302 Found", "Location: /in\r\nSet-Cookie: a=1\r\n"
                                                             "Set-Cookie: b=2; Path=/other\r\n")},
                                 {.text = OK(2, "in")}));
    client = client_open(host, WEIR_HTTP_CLIENT_OPTIONS(.cookies = jar));
    scripted_server_url(&server, "http", "/", url);
    assert_string_equal(client_get(client, url).content, "in");
    assert_contains(server.last, "GET /in ");
    assert_contains(server.last, "\r\nCookie: a=1\r\n");
    client_close(client);
    weir_http_cookie_jar_release(jar);
    scripted_server_close(&server);
}

/* ---- memory ---- */

TEST_EACH_LOOP(http_client, survives_failed_allocations)
{
    struct scripted_server server;
    const char *const fields[] = {"X-Field", "value", NULL};
    char url[256];
    weir_buf *content = buf_of("content");

    scripted_server_open(
        &server, host,
        REPLIES({.text = EMPTY("307 X", "Location: /b\r\n")}, {.text = OK(5, "hello")}));
    scripted_server_url(&server, "http", "/", url);
    for (unsigned n = 1;; n++) {
        weir_http_client *client = NULL;
        struct fetched fetched = {.err = -ENOMEM};
        bool failed;

        server.next = 0;
        test_memory_fail_at(n);
        if (weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = host->group), &client) == 0)
            fetched = client_fetch(
                client, WEIR_HTTP_FETCH_OPTIONS(.method = "PUT", .url = url, .fields = fields,
                                                .content = weir_buf_msg(content)));
        failed = test_memory_failed();
        test_memory_fail_at(0);
        if (client != NULL)
            client_close(client);
        host_turn(host, 2); /* the server has noticed, too */
        if (!failed) {
            assert_int_equal(fetched.err, 0);
            break;
        }
        assert_true(fetched.err == 0 || fetched.err == -ENOMEM || fetched.err == WEIR_ECLOSED ||
                    fetched.err == -ECONNRESET || fetched.err == WEIR_ECUTOFF);
    }
    weir_buf_release(content);
    scripted_server_close(&server);
}

TEST(http_client, gets_a_url_with_a_client_of_its_own)
{
    weir_http_full *full;

    assert_int_equal(weir_http_get_sync("http://127.0.0.1:1/", NULL, &full), -ECONNREFUSED);
    log_capture_start();
    assert_int_equal(weir_http_get_sync("not-a-url", NULL, &full), -EINVAL);
    assert_log_contains("GET \"not-a-url\": expected a URL such as http://host");
    assert_int_equal(weir_http_get_sync("https://me:secret@host/", NULL, &full), -EPROTONOSUPPORT);
    assert_log_contains("GET \"https://***@host/\": expected http, or https with .tls");
    assert_int_equal(weir_http_get_sync("http://127.0.0.1:1/", NULL, &full), -ECONNREFUSED);
    assert_log_contains("GET http://127.0.0.1:1/: connect: ");
}

struct waiting {
    weir_http_client *client;
    int err;
    struct call_counter done;
};

static void wait_on_the_loop(void *arg, int status)
{
    struct waiting *waiting = arg;
    weir_http_full *full;

    waiting->err = status < 0 ? status
                              : weir_http_client_fetch_sync(
                                    waiting->client,
                                    WEIR_HTTP_FETCH_OPTIONS(.url = "http://127.0.0.1:1/"), &full);
    call_counter_add(&waiting->done);
}

TEST_EACH_LOOP(http_client, says_why_a_loop_cannot_wait)
{
    struct waiting waiting = {.client = client_open(host, NULL)};

    log_capture_start();
    assert_int_equal(weir_execute(host->loop, wait_on_the_loop, &waiting), 0);
    assert_true(call_counter_await_for(&waiting.done, 1, TEST_TIMEOUT_NS));
    assert_int_equal(waiting.err, -EDEADLK);
    assert_log_contains("GET \"http://127.0.0.1:1/\": this thread runs an event loop");
    client_close(waiting.client);
}

TEST(http_client, rejects_wrong_options)
{
    weir_http_client *client;
    weir_group *group;

    assert_int_equal(
        weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.proxy = "nonsense"), &client), -EINVAL);
    assert_int_equal(
        weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.proxy = "ftp://host"), &client), -EINVAL);
    assert_int_equal(
        weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.head_timeout_ns = -2), &client), -EINVAL);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 1), &group), 0);
    assert_int_equal(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = group), &client),
                     -ENOTSUP);
    weir_group_release(group);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_BLOCKING, .threads = 1), &group), 0);
    assert_int_equal(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = group), &client),
                     -ENOTSUP);
    weir_group_release(group);
}

TEST(http_client, is_closed_with_a_group_that_cannot_start_its_thread)
{
    weir_http_client *client;
    weir_promise *closed;
    weir_group *group;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group), 0);
    assert_int_equal(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = group), &client), 0);
    closed = weir_promise_retain(weir_http_client_closed(client));
    test_memory_fail_at(1);
    weir_http_client_release(client);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    weir_group_release(group);
    assert_int_equal(weir_promise_await(closed, TEST_TIMEOUT_NS), 0);
    weir_promise_release(closed);
}

TEST(http_client, is_closed_after_its_group_has_ended)
{
    weir_http_client *client;
    weir_http_request *request;
    weir_group *group;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group), 0);
    assert_int_equal(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = group), &client), 0);
    assert_int_equal(weir_group_shutdown(group, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_http_request_create("GET", "http://127.0.0.1:1/", &request), 0);
    assert_int_equal(weir_http_client_send(client, request, NULL, NULL, NULL), WEIR_EREJECTED);
    weir_http_client_close(client);
    assert_int_equal(weir_promise_await(weir_http_client_closed(client), TEST_TIMEOUT_NS), 0);
    weir_http_client_release(client);
    weir_group_release(group);
}
