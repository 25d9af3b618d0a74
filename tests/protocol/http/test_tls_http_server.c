/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP servers with TLS on one address and without on another.
 */
#include <weir/http_server.h>

#include <errno.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/tls.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/protocol/http/http_call.h"
#include "support/tls/pki.h"
#include "support/tls/tls_caller.h"

static void say_security(weir_http_exchange *exchange, void *user_data)
{
    bool is_tls = weir_pipeline_find(weir_channel_pipeline(weir_http_exchange_channel(exchange)),
                                     "tls") != NULL;

    (void)user_data;
    (void)weir_http_respond_text(exchange, 200, is_tls ? "safe" : "plain");
}

static const weir_http_route routes[] = {{"GET", "/", say_security}, {0}};

static weir_tls_context *create_context(bool is_client)
{
    weir_tls_context *context = NULL;
    int err =
        is_client
            ? weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_file = pki()->ca_file), &context)
            : weir_tls_server_create(
                  WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = pki()->server.certificate_file,
                                           .key_file = pki()->server.key_file),
                  &context);

    assert_int_equal(err, 0);
    return context;
}

TEST_EACH_HOST(tls_http_server, serves_both)
{
    weir_tls_context *tls = create_context(false), *trusting = create_context(true);
    struct tls_call call = {.tls = trusting, .text = HTTP_LAST("/")};
    weir_http_server *server = NULL, *reversed = NULL;
    char answer[HTTP_CALL_SIZE];
    weir_group *group = NULL;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group), 0);
    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.tls_address = "127.0.0.1:0", .tls = tls,
                                     .add_tls = weir_tls_add, .routes = routes,
                                     .workers = host->group,
                                     .security = WEIR_HTTP_SECURITY_OPTIONS(),
                                     .child_options =
                                         WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200))),
            &server),
        0);
    tls_call_run(group, weir_http_server_server(server), &call);
    assert_int_equal(call.result, 0);
    assert_contains(call.received, "HTTP/1.1 200 OK\r\n");
    assert_contains(call.received, "\r\nStrict-Transport-Security: max-age=31536000\r\n");
    weir_http_server_release(server);

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .tls_address = "127.0.0.1:0",
                                     .tls = tls, .add_tls = weir_tls_add, .routes = routes,
                                     .security = WEIR_HTTP_SECURITY_OPTIONS(), .threads = 1),
            &reversed),
        0);
    http_call(reversed, HTTP_LAST("/"), answer); /* the first listener */
    assert_contains(answer, "\r\n\r\nplain");
    assert_contains(answer, "\r\nX-Content-Type-Options: nosniff\r\n");
    assert_null(strstr(answer, "Strict-Transport-Security"));
    weir_http_server_release(reversed);
    weir_group_release(group);
    weir_tls_context_release(trusting);
    weir_tls_context_release(tls);
}

/* ---- ALPN ---- */

static weir_tls_context *create_server(const struct pki_leaf *leaf, const char *alpn)
{
    weir_tls_context *context = NULL;

    assert_int_equal(
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = leaf->certificate_file,
                                                        .key_file = leaf->key_file, .alpn = alpn),
                               &context),
        0);
    return context;
}

static int try_start(struct host *host, weir_tls_context *tls, weir_http_server **ret_server)
{
    return weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.tls_address = "127.0.0.1:0", .tls = tls, .add_tls = weir_tls_add,
                                 .routes = routes, .workers = host->group,
                                 .child_options =
                                     WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200))),
        ret_server);
}

TEST_EACH_HOST(tls_http_server, refuses_a_context_with_http_2)
{
    weir_tls_context *tls = create_server(&pki()->server, "h2,http/1.1");
    weir_http_server *none = NULL;

    log_capture_start();
    assert_int_equal(try_start(host, tls, &none), -EPROTONOSUPPORT);
    assert_log_contains("alpn \"h2\": expected http/1.1,http/1.0");
    assert_null(none);
    weir_tls_context_release(tls);
}

static struct tls_call call_with(weir_http_server *server, const char *server_name,
                                 const char *alpn)
{
    struct tls_call call = {.text = HTTP_LAST("/"), .server_name = server_name};
    weir_group *group = NULL;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group), 0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_file = pki()->ca_file, .alpn = alpn),
                               &call.tls),
        0);
    tls_call_run(group, weir_http_server_server(server), &call);
    weir_tls_context_release(call.tls);
    weir_group_release(group);
    return call;
}

static void assert_call(weir_http_server *server, const char *server_name, const char *alpn,
                        const char *expected)
{
    struct tls_call call = call_with(server, server_name, alpn);

    assert_int_equal(call.result, 0);
    assert_string_equal(call.alpn, expected);
    assert_contains(call.received, "HTTP/1.1 200 OK\r\n");
}

TEST_EACH_HOST(tls_http_server, selects_http_1)
{
    weir_tls_context *tls = create_server(&pki()->server, NULL);
    weir_http_server *server = NULL;

    assert_int_equal(try_start(host, tls, &server), 0);
    assert_call(server, NULL, "h2,http/1.1", "http/1.1");
    assert_call(server, NULL, "http/1.0", "http/1.0");
    assert_call(server, NULL, NULL, "");
    assert_true(call_with(server, NULL, "h2").result < 0);
    weir_http_server_release(server);
    weir_tls_context_release(tls);
}

/* Contexts that the server gets after its start. */
TEST_EACH_HOST(tls_http_server, never_selects_http_2)
{
    weir_tls_context *tls = create_server(&pki()->server, "http/1.1"),
                     *other = create_server(&pki()->other, "h2,http/1.1");
    weir_http_server *server = NULL;

    assert_int_equal(try_start(host, tls, &server), 0);
    assert_int_equal(weir_tls_context_add_name(tls, "other.test", other), 0);
    assert_call(server, "other.test", "h2,http/1.1", "http/1.1");
    assert_true(call_with(server, "other.test", "h2").result < 0);
    assert_int_equal(
        weir_tls_context_replace(
            tls, WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = pki()->server.certificate_file,
                                          .key_file = pki()->server.key_file, .alpn = "h2")),
        0);
    assert_true(call_with(server, NULL, "h2").result < 0);
    weir_http_server_release(server);
    weir_tls_context_release(other);
    weir_tls_context_release(tls);
}

/* The first bytes decide, however few they are. */
TEST_EACH_HOST(tls_http_server, answers_a_plain_request)
{
    static const char *const parts[] = {HTTP_LAST("/"), "G"};
    weir_tls_context *tls = create_context(false);
    weir_http_server *server = NULL;
    char answer[HTTP_CALL_SIZE];

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.tls_address = "127.0.0.1:0", .tls = tls,
                                     .add_tls = weir_tls_add, .routes = routes,
                                     .workers = host->group,
                                     .child_options =
                                         WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200))),
            &server),
        0);
    log_capture_start();
    weir_log_set_level(WEIR_LOG_INFO);
    for (int i = 0; i < 12; i++) {
        int peer = raw_client_connect(weir_http_server_server(server));

        raw_client_send(peer, parts[i % 2]);
        (void)http_call_receive(peer, answer);
        assert_contains(answer, "HTTP/1.1 400 Bad Request\r\n");
        assert_contains(answer, "\r\n\r\na plain HTTP request to a port with TLS\n");
        raw_client_close(peer);
    }
    weir_http_server_release(server);
    weir_log_set_level(WEIR_LOG_WARN);
    assert_true(log_capture_count(WEIR_LOG_INFO) > 0);
    weir_tls_context_release(tls);
}
