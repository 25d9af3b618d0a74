/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may see a dashboard, and its URLs: tokens, cookies, hosts, origins, paths.
 */
#include <weir/dashboard.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/loop.h>

#include "support/loop/host.h"
#include "support/memory.h"
#include "support/protocol/http/http_call.h"

#define GET(path, fields) "GET " path " HTTP/1.1\r\nConnection: close\r\n" fields "\r\n"
#define LOCAL "Host: localhost:8080\r\n"
#define OPENING(fields)                                                             \
    "GET /weir/ws HTTP/1.1\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" fields "\r\n"

static weir_http_server *start(struct host *host, const weir_dashboard_options *options)
{
    static const weir_http_route none[] = {{0}};
    weir_http_server *server = NULL;

    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = none,
                                                        .workers = host->group),
                               &server),
        0);
    assert_int_equal(weir_dashboard_add(server, options), 0);
    return server;
}

struct row {
    const char *request;
    const char *answer; /* a part of it */
};

static void check_rows(weir_http_server *server, const struct row *rows)
{
    char answer[HTTP_CALL_SIZE];

    for (; rows->request != NULL; rows++) {
        http_call(server, rows->request, answer);
        assert_contains(answer, rows->answer);
    }
}

TEST_EACH_LOOP(access, needs_the_token)
{
    static const struct row rows[] = {
        {GET("/weir/", LOCAL), " 401 "},
        {GET("/weir/app.js", LOCAL), " 401 "},
        {GET("/weir/", LOCAL), "WWW-Authenticate: Bearer"},
        {GET("/weir/?token=secreT", LOCAL), " 403 "},
        {GET("/weir/?token=", LOCAL), " 403 "},
        {GET("/weir/?token=secret2", LOCAL), " 403 "},
        {GET("/weir/", LOCAL "Authorization: Bearer secret\r\n"), " 200 "},
        {GET("/weir/", LOCAL "Authorization: Bearer secreT\r\n"), " 401 "},
        {GET("/weir/", LOCAL "Authorization: Bearer \r\n"), " 401 "},
        {GET("/weir/", LOCAL "Cookie: weir_dashboard_1=secret\r\n"), " 401 "},
        {GET("/weir/", "Host: example.org\r\nAuthorization: Bearer secret\r\n"), " 200 "},
        {OPENING(LOCAL), " 401 "},
        {GET("/weir/?token=secret", LOCAL), " 303 "},
        {GET("/weir/?token=secret", LOCAL), "Location: /weir/\r\n"},
        {GET("/weir/?token=secret", LOCAL), "HttpOnly"},
        {GET("/weir/?token=secret", LOCAL), "SameSite=Strict"},
        {GET("/weir?token=secret", LOCAL), "Location: /weir/?token=secret\r\n"},
        {NULL}};
    weir_http_server *server = start(host, WEIR_DASHBOARD_OPTIONS(.token = "secret"));
    char answer[HTTP_CALL_SIZE], request[256], name[64], url[128];

    check_rows(server, rows);
    http_call(server, GET("/weir/?token=secret", LOCAL), answer);
    assert_non_null(strstr(answer, "Set-Cookie: "));
    assert_int_equal(sscanf(strstr(answer, "Set-Cookie: "), "Set-Cookie: %63[^;]", name), 1);
    (void)snprintf(request, sizeof(request), GET("/weir/", LOCAL "Cookie: a=b; %s\r\n"), name);
    http_call(server, request, answer);
    assert_contains(answer, " 200 ");
    assert_true(weir_dashboard_format_url(server, url, sizeof(url)) > 0);
    assert_contains(url, "http://127.0.0.1:");
    assert_contains(url, "/weir/?token=secret");
    weir_http_server_release(server);
}

TEST_EACH_LOOP(access, without_a_token_needs_a_local_host)
{
    static const struct row rows[] = {
        {GET("/weir/", LOCAL), " 200 "},
        {GET("/weir/", "Host: localhost\r\n"), " 200 "},
        {GET("/weir/", "Host: app.LocalHost:1\r\n"), " 200 "},
        {GET("/weir/", "Host: 127.0.0.1:8080\r\n"), " 200 "},
        {GET("/weir/", "Host: 127.1.2.3\r\n"), " 200 "},
        {GET("/weir/", "Host: [::1]:8080\r\n"), " 200 "},
        {GET("/weir/", "Host: [::1]\r\n"), " 200 "},
        {GET("/weir/", "Host: evil.example:8080\r\n"), " 403 "},
        {GET("/weir/", "Host: 127.0.0.1.evil.example\r\n"), " 403 "},
        {GET("/weir/", "Host: evillocalhost\r\n"), " 403 "},
        {GET("/weir/", "Host: localhost.evil.example\r\n"), " 403 "},
        {GET("/weir/", "Host: 192.168.1.1\r\n"), " 403 "},
        {GET("/weir/", "Host: [::2]\r\n"), " 403 "},
        {OPENING("Host: evil.example\r\nOrigin: http://evil.example\r\n"), " 403 "},
        {OPENING(LOCAL "Origin: http://evil.example\r\n"), " 403 "},
        {OPENING(LOCAL "Origin: http://localhost:9090\r\n"), " 403 "},
        {NULL}};
    weir_http_server *server = start(host, NULL);
    char url[64];

    check_rows(server, rows);
    assert_true(weir_dashboard_format_url(server, url, sizeof(url)) > 0);
    assert_contains(url, "http://127.0.0.1:");
    assert_null(strstr(url, "token"));
    weir_http_server_release(server);
}

/* A proxy on this machine would show the page to everyone who reaches it. */
TEST_EACH_LOOP(access, without_a_token_refuses_proxies)
{
    static const struct row refused[] = {
        {GET("/weir/", LOCAL "X-Forwarded-For: 198.51.100.1\r\n"), " 403 "},
        {GET("/weir/", LOCAL "x-forwarded-port: 80\r\n"), " 403 "},
        {GET("/weir/", LOCAL "Forwarded: for=unknown\r\n"), " 403 "},
        {GET("/weir/", LOCAL "Via: 1.1 front\r\n"), " 403 "},
        {GET("/weir/", LOCAL "X-Real-IP: 198.51.100.1\r\n"), "not shown through a proxy"},
        {OPENING(LOCAL "X-Forwarded-For: 198.51.100.1\r\n"), " 403 "},
        {GET("/weir/", LOCAL "X-Forward: 1\r\n"), " 200 "},
        {NULL}};
    static const struct row open[] = {
        {GET("/weir/", LOCAL "X-Forwarded-For: 198.51.100.1\r\n"), " 200 "}, {NULL}};
    static const struct row with_token[] = {
        {GET("/weir/", LOCAL "Via: 1.1 front\r\n"), " 401 "},
        {GET("/weir/", LOCAL "Via: 1.1 front\r\nAuthorization: Bearer secret\r\n"), " 200 "},
        {NULL}};
    weir_http_server *server = start(host, NULL), *second, *third;

    second = start(host, WEIR_DASHBOARD_OPTIONS(.open_to_proxies = true));
    third = start(host, WEIR_DASHBOARD_OPTIONS(.token = "secret"));
    check_rows(server, refused);
    check_rows(second, open);
    check_rows(third, with_token);
    weir_http_server_release(third);
    weir_http_server_release(second);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(access, refuses_the_peer_of_a_proxy_header)
{
    static const weir_http_route none[] = {{0}};
    weir_http_server *server = NULL;
    char answer[HTTP_CALL_SIZE];

    assert_int_equal(weir_http_server_start(
                         WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = none,
                                                  .workers = host->group, .proxy_protocol = true),
                         &server),
                     0);
    assert_int_equal(weir_dashboard_add(server, NULL), 0);
    http_call(server, "PROXY TCP4 198.51.100.1 127.0.0.1 1 2\r\n" GET("/weir/", LOCAL), answer);
    assert_contains(answer, " 403 ");
    http_call(server, "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" GET("/weir/", LOCAL), answer);
    assert_contains(answer, " 200 ");
    weir_http_server_release(server);
}

TEST_EACH_LOOP(access, makes_a_token_for_other_addresses)
{
    static const weir_http_route none[] = {{0}};
    weir_http_server *server = NULL;
    char url[128], again[128];
    int length;

    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "0.0.0.0:0", .routes = none,
                                                        .workers = host->group),
                               &server),
        0);
    assert_int_equal(weir_dashboard_format_url(server, url, sizeof(url)), -ENOENT);
    assert_int_equal(weir_dashboard_add(server, NULL), 0);
    length = weir_dashboard_format_url(server, url, sizeof(url));
    assert_int_equal(length, strlen(url));
    assert_contains(url, "http://127.0.0.1:");
    assert_non_null(strstr(url, "?token="));
    assert_int_equal(strlen(strstr(url, "?token=") + 7), 32);
    assert_int_equal(weir_dashboard_format_url(server, again, 20), length);
    assert_int_equal(strlen(again), 19);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(access, sends_the_files_of_the_page)
{
    static const struct row rows[] = {
        {GET("/weir", LOCAL), "Location: /weir/\r\n"},
        {GET("/weir/", LOCAL), "Content-Type: text/html; charset=utf-8\r\n"},
        {GET("/weir/", LOCAL), "Content-Security-Policy: default-src 'self';"},
        {GET("/weir/", LOCAL), "X-Content-Type-Options: nosniff\r\n"},
        {GET("/weir/style.css", LOCAL), "Content-Type: text/css; charset=utf-8\r\n"},
        {GET("/weir/app.js", LOCAL), "Content-Type: text/javascript; charset=utf-8\r\n"},
        {GET("/weir/icon.svg", LOCAL), "Content-Type: image/svg+xml\r\n"},
        {GET("/weir/other", LOCAL), " 404 "},
        {NULL}};
    weir_http_server *server = start(host, NULL);
    char answer[HTTP_CALL_SIZE], request[256], tag[64];

    check_rows(server, rows);
    http_call(server, GET("/weir/", LOCAL), answer);
    assert_non_null(strstr(answer, "ETag: "));
    assert_int_equal(sscanf(strstr(answer, "ETag: "), "ETag: %63[^\r]", tag), 1);
    (void)snprintf(request, sizeof(request), GET("/weir/", LOCAL "If-None-Match: %s\r\n"), tag);
    http_call(server, request, answer);
    assert_contains(answer, " 304 ");
    tag[1] = tag[1] == '0' ? '1' : '0'; /* of another version */
    (void)snprintf(request, sizeof(request), GET("/weir/", LOCAL "If-None-Match: %s\r\n"), tag);
    http_call(server, request, answer);
    assert_contains(answer, " 200 ");
    weir_http_server_release(server);
}

TEST_EACH_LOOP(access, can_be_at_the_root)
{
    static const struct row rows[] = {{GET("/", LOCAL), " 200 "},
                                      {GET("/app.js", LOCAL), " 200 "},
                                      {GET("/weir/", LOCAL), " 404 "},
                                      {NULL}};
    weir_http_server *server = start(host, WEIR_DASHBOARD_OPTIONS(.path = ""));

    check_rows(server, rows);
    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.path = "")), -EEXIST);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(access, rejects_invalid_options)
{
    weir_http_server *server = start(host, NULL);

    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.path = "weir")), -EINVAL);
    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.path = "/a/")), -EINVAL);
    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.path = "/{a}")), -EINVAL);
    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.token = "")), -EINVAL);
    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.token = "a b")), -EINVAL);
    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.interval_ns = 1)), -EINVAL);
    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.log_lines = -2)), -EINVAL);
    assert_int_equal(weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.log_lines = 1 << 20)),
                     -EINVAL);
    assert_int_equal(weir_dashboard_add(server, NULL), -EEXIST);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(access, reports_a_lack_of_memory)
{
    weir_http_server *server = start(host, NULL);
    int err = -ENOMEM;

    for (unsigned n = 1; err != 0; n++) {
        test_memory_fail_at(n);
        err = weir_dashboard_add(server, WEIR_DASHBOARD_OPTIONS(.path = "/b", .token = "secret"));
        assert_true(err == 0 || err == -ENOMEM);
        assert_int_equal(err != 0, test_memory_failed());
    }
    test_memory_fail_at(0);
    weir_http_server_release(server);
}
