/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients behind an HTTP proxy, which is a scripted server. "TLS" adds no handler here, so that the
 * script can answer within the tunnel.
 */
#include <weir/http_client.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/protocol/http/client_fixture.h"
#include "support/protocol/http/scripted_server.h"
#include "support/test.h"

#define REPLIES(...) ((const struct scripted_reply[]){__VA_ARGS__, {0}})
#define OK SCRIPTED_OK

static int add_nothing(weir_pipeline *pipeline, weir_tls_context *context, const char *server_name)
{
    (void)pipeline;
    (void)context;
    return strcmp(server_name, "origin.test") == 0 ? 0 : -EINVAL;
}

/* `userinfo` ends with "@", or is empty. */
static weir_http_client *open_client(struct host *host, const struct scripted_server *proxy,
                                     const char *userinfo)
{
    static char not_a_context;
    char url[256];

    (void)snprintf(url, sizeof(url), "http://%s%s", userinfo, proxy->address);
    return client_open(host,
                       WEIR_HTTP_CLIENT_OPTIONS(.proxy = url, .add_tls = add_nothing,
                                                .tls = (weir_tls_context *)(void *)&not_a_context));
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

TEST_EACH_LOOP(http_client_proxy, sends_whole_urls)
{
    struct scripted_server proxy;
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(
        &proxy, host,
        REPLIES({.text = "HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: /b\r\n\r\n"},
                {.text = OK(5, "hello")}));
    client = open_client(host, &proxy, "me:secret@");
    fetched = client_get(client, "http://origin.test/a?x=y");
    assert_int_equal(fetched.err, 0);
    assert_string_equal(fetched.content, "hello");
    assert_contains(proxy.last, "GET http://origin.test/b HTTP/1.1\r\n");
    assert_contains(proxy.last, "\r\nHost: origin.test\r\n");
    assert_contains(proxy.last, "\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n");
    assert_int_equal(proxy.connections, 1);
    client_close(client);
    scripted_server_close(&proxy);
}

TEST_EACH_LOOP(http_client_proxy, opens_a_tunnel_for_https)
{
    struct scripted_server proxy;
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&proxy, host,
                         REPLIES({.text = "HTTP/1.1 200 Connection established\r\n\r\n"},
                                 {.text = OK(5, "hello")}, {.text = OK(5, "again")}));
    client = open_client(host, &proxy, "me:secret@");
    fetched = client_get(client, "https://origin.test/a");
    assert_int_equal(fetched.err, 0);
    assert_string_equal(fetched.content, "hello");
    assert_contains(proxy.last, "GET /a HTTP/1.1\r\n");
    assert_null(strstr(proxy.last, "Proxy-Authorization"));
    assert_string_equal(client_get(client, "https://origin.test/b").content, "again");
    assert_int_equal(proxy.connections, 1);
    client_close(client);
    scripted_server_close(&proxy);
}

TEST_EACH_LOOP(http_client_proxy, asks_for_the_tunnel_by_name_and_password)
{
    struct scripted_server proxy;
    weir_http_client *client;

    scripted_server_open(&proxy, host,
                         REPLIES({.text = "HTTP/1.1 407 X\r\nContent-Length: 5\r\n\r\nsorry"}));
    client = open_client(host, &proxy, "me:secret@");
    assert_int_equal(client_get(client, "https://origin.test:8443/a").err, -EACCES);
    assert_contains(proxy.last, "CONNECT origin.test:8443 HTTP/1.1\r\n");
    assert_contains(proxy.last, "\r\nHost: origin.test:8443\r\n");
    assert_contains(proxy.last, "\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n");
    client_close(client);
    scripted_server_close(&proxy);
}

static struct fetched fetch_through(struct host *host, struct scripted_reply reply)
{
    const struct scripted_reply replies[] = {reply, {0}};
    struct scripted_server proxy;
    weir_http_client *client;
    struct fetched fetched;

    scripted_server_open(&proxy, host, replies);
    client = open_client(host, &proxy, "");
    fetched = client_get(client, "https://origin.test/a");
    assert_int_equal(client_stats(client).connections, 0);
    client_close(client);
    scripted_server_close(&proxy);
    return fetched;
}

TEST_EACH_LOOP(http_client_proxy, reports_a_refused_tunnel)
{
    struct fetched fetched = fetch_through(
        host, (struct scripted_reply){.text = "HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n"});

    assert_int_equal(fetched.err, -ECONNREFUSED);
    assert_contains(fetched.detail, "GET https://origin.test/a: connect: ");
    assert_contains(fetched.detail, "403");
}

TEST_EACH_LOOP(http_client_proxy, takes_nothing_behind_a_refusal_for_a_tunnel)
{
    struct fetched fetched = fetch_through(
        host, (struct scripted_reply){.text = "HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n"
                                              "HTTP/1.1 200 OK\r\n\r\n" OK(4, "evil")});

    assert_int_equal(fetched.err, -ECONNREFUSED);
    assert_contains(fetched.detail, "403");
}

TEST_EACH_LOOP(http_client_proxy, reports_a_proxy_that_closes)
{
    assert_true(
        fetch_through(host, (struct scripted_reply){.text = "", .action = SCRIPTED_CLOSE}).err < 0);
}

TEST_EACH_LOOP(http_client_proxy, reports_a_proxy_that_does_not_speak_http)
{
    assert_int_equal(fetch_through(host, (struct scripted_reply){.text = "nonsense\r\n\r\n"}).err,
                     WEIR_EMALFORMED);
}

TEST_EACH_LOOP(http_client_proxy, survives_failed_allocations)
{
    struct scripted_server proxy;

    scripted_server_open(&proxy, host,
                         REPLIES({.text = "HTTP/1.1 200 OK\r\n\r\n"}, {.text = OK(5, "hello")}));
    for (unsigned n = 1;; n++) {
        weir_http_client *client = open_client(host, &proxy, "me:secret@");
        struct fetched fetched;
        bool failed;

        proxy.next = 0;
        test_memory_fail_at(n);
        fetched = client_get(client, "https://origin.test/a");
        failed = test_memory_failed();
        test_memory_fail_at(0);
        client_close(client);
        host_turn(host, 2);
        if (!failed) {
            assert_int_equal(fetched.err, 0);
            break;
        }
    }
    scripted_server_close(&proxy);
}

TEST(http_client_proxy, logs_no_password)
{
    static const struct {
        const char *proxy;
        const char *logged;
    } rows[] = {
        {"ftp://me:secret@host:1/", ".proxy \"ftp://***@host:1/\": expected http or socks5"},
        {"http://me:secr%zzet@host:1", ".proxy \"http://***@host:1\": expected a URL"},
        {"me:secret@host:1", ".proxy \"***@host:1\": expected"},
        {"http://me:se/secret@cret@host:1", ".proxy \"http://***@host:1\": expected"},
        {"ftp://me:secret@[::1]:1", ".proxy \"ftp://***@[::1]:1\": expected"},
        {"ftp://host/@there", ".proxy \"ftp://host/@there\": expected"},
    };
    weir_http_client *none = NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_options_rejected(
            weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.proxy = rows[i].proxy), &none),
            rows[i].logged);
        assert_false(log_capture_last_contains("secret"));
    }
    assert_null(none);
}
