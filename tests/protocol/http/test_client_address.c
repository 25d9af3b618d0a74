/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of the client behind trusted proxies: the function, and its users.
 */
#include "protocol/http/client_address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/http_server.h>

#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/protocol/http/filter_fixture.h"
#include "support/protocol/http/http_call.h"

static const char *const networks[] = {"10.0.0.0/8", "192.0.2.7", "2001:db8:1::/48", "unix", NULL};

static weir_embedded *open_from(const char *remote)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = remote), &embedded), 0);
    return embedded;
}

static weir__http_trust *trust_on(weir_embedded *embedded, enum weir_http_name field)
{
    weir__http_trust *trust = NULL;

    assert_int_equal(weir__http_trust_create(networks, field, &trust), 0);
    assert_int_equal(weir__http_trust_set(weir_embedded_channel(embedded), trust), 0);
    return trust;
}

static void assert_client(const char *remote, enum weir_http_name field, const char *fields,
                          const char *expected)
{
    weir_embedded *embedded = open_from(remote);
    weir__http_trust *trust = trust_on(embedded, field);
    weir_http_request *request;
    weir_address address;
    char head[512], text[WEIR_ADDRESS_TEXT_SIZE];

    (void)snprintf(head, sizeof(head), "GET /\n%s", fields);
    request = filter_make_request(head, 0);
    assert_int_equal(weir__http_client_address(weir_embedded_channel(embedded), request, &address),
                     0);
    assert_string_equal(weir_address_format(&address, text, sizeof(text)), expected);
    weir_msg_release(weir_http_request_msg(request));
    weir_embedded_release(embedded);
    weir__http_trust_release(trust);
}

TEST(client_address, is_the_last_that_is_no_trusted_proxy)
{
    static const char *const rows[][2] = {
        {"", "10.0.0.1:1000"},
        {"X-Forwarded-For: 198.51.100.1\n", "198.51.100.1:0"},
        {"X-Forwarded-For: 198.51.100.1:4711\n", "198.51.100.1:4711"},
        {"X-Forwarded-For: 6.6.6.6, 198.51.100.1\n", "198.51.100.1:0"},
        {"X-Forwarded-For: 6.6.6.6\nX-Forwarded-For: 198.51.100.1\n", "198.51.100.1:0"},
        {"X-Forwarded-For: 6.6.6.6, 198.51.100.1, 10.1.1.1,192.0.2.7\n", "198.51.100.1:0"},
        {"X-Forwarded-For: 6.6.6.6, \", 198.51.100.1,\n", "198.51.100.1:0"},
        {"X-Forwarded-For: 10.1.1.1, 10.1.1.2\n", "10.1.1.1:0"},
        {"X-Forwarded-For: 2001:db8::5, 2001:db8:1::9\n", "[2001:db8::5]:0"},
        {"X-Forwarded-For: [2001:db8::5]:80\n", "[2001:db8::5]:80"},
        {"X-Forwarded-For: ::ffff:10.1.1.1, 10.1.1.2\n", "[::ffff:10.1.1.1]:0"},
        {"Forwarded: for=198.51.100.1\n", "198.51.100.1:0"},
        {"Forwarded: proto=https;For=\"[2001:db8::5]:80\";by=x, for=10.1.1.1\n",
         "[2001:db8::5]:80"},
        {"Forwarded: for=6.6.6.6, for=198.51.100.1\nForwarded: for=10.1.1.1\n", "198.51.100.1:0"},
        {"Forwarded: for=198.51.100.1\nX-Forwarded-For: 198.51.100.1\n", "198.51.100.1:0"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_client("10.0.0.1:1000", WEIR_HTTP_OTHER, rows[i][0], rows[i][1]);
    assert_client("unix:/run/proxy", WEIR_HTTP_OTHER, "X-Forwarded-For: 198.51.100.1\n",
                  "198.51.100.1:0");
}

/* What is not an address hides what stands before it, which the client may have sent. */
TEST(client_address, is_that_of_a_proxy_if_no_proxy_reports_one)
{
    static const char *const rows[][2] = {
        {"X-Forwarded-For: 6.6.6.6, unknown\n", "10.0.0.1:1000"},
        {"X-Forwarded-For: 6.6.6.6, unknown, 10.1.1.1\n", "10.1.1.1:0"},
        {"X-Forwarded-For: example.org\n", "10.0.0.1:1000"},
        {"X-Forwarded-For: unix:/run/x\n", "10.0.0.1:1000"},
        {"X-Forwarded-For: 1.2.3.4.5\n", "10.0.0.1:1000"},
        {"X-Forwarded-For: \n", "10.0.0.1:1000"},
        {"Forwarded: for=_hidden\n", "10.0.0.1:1000"},
        {"Forwarded: by=6.6.6.6\n", "10.0.0.1:1000"},
        {"Forwarded: for=6.6.6.6;x=\", for=198.51.100.1\n", "10.0.0.1:1000"},
        {"Forwarded: for=6.6.6.6;x=\"\nForwarded: for=198.51.100.1\n", "198.51.100.1:0"},
        {"Forwarded: for=6.6.6.6\nX-Forwarded-For: 198.51.100.1\n", "10.0.0.1:1000"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_client("10.0.0.1:1000", WEIR_HTTP_OTHER, rows[i][0], rows[i][1]);
}

TEST(client_address, is_reported_in_the_field_that_counts)
{
    static const char both[] = "Forwarded: for=6.6.6.6\nX-Forwarded-For: 198.51.100.1\n";

    assert_client("10.0.0.1:1000", WEIR_HTTP_X_FORWARDED_FOR, both, "198.51.100.1:0");
    assert_client("10.0.0.1:1000", WEIR_HTTP_FORWARDED, both, "6.6.6.6:0");
}

TEST(client_address, is_not_what_a_stranger_reports)
{
    assert_client("192.0.2.8:1000", WEIR_HTTP_OTHER, "X-Forwarded-For: 6.6.6.6\n",
                  "192.0.2.8:1000");
    assert_client("[2001:db8::1]:1000", WEIR_HTTP_OTHER, "Forwarded: for=6.6.6.6\n",
                  "[2001:db8::1]:1000");
}

TEST(client_address, needs_valid_networks)
{
    static const char *const bad[] = {"10.0.0.0/33", NULL};
    weir__http_trust *trust = NULL;

    log_capture_start();
    assert_int_equal(weir__http_trust_create(bad, WEIR_HTTP_OTHER, &trust), -EINVAL);
    assert_true(log_capture_last_contains("10.0.0.0/33"));
    assert_int_equal(weir__http_trust_create(networks, WEIR_HTTP_HOST, &trust), -EINVAL);
    assert_true(log_capture_last_contains("\"Host\""));
}

/* ---- users ---- */

static void ask(weir_embedded *embedded, const char *fields, const char *answer)
{
    char head[256];

    (void)snprintf(head, sizeof(head), "GET /\n%s", fields);
    filter_receive(embedded, head);
    if (filter_received(embedded) != NULL)
        filter_respond(embedded, 200, "", NULL);
    assert_string_equal(filter_sent(embedded), answer);
}

/* Many clients share the connection of a proxy. */
TEST(client_address, limits_each_client_behind_a_proxy)
{
    weir_embedded *embedded = open_from("10.0.0.1:1000");
    weir__http_trust *trust = trust_on(embedded, WEIR_HTTP_OTHER);
    weir_http_client_limit *limit = NULL;

    assert_int_equal(weir_http_client_limit_create(
                         WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 1), &limit),
                     0);
    assert_int_equal(weir_http_client_limit_add(weir_embedded_pipeline(embedded), limit), 0);
    ask(embedded, "X-Forwarded-For: 198.51.100.1\n", "200 (0) | end");
    ask(embedded, "X-Forwarded-For: 198.51.100.1\n", "429 (0) Retry-After: 1 | end");
    ask(embedded, "X-Forwarded-For: 198.51.100.2\n", "200 (0) | end");
    ask(embedded, "X-Forwarded-For: 198.51.100.9, 198.51.100.1\n", "429 (0) Retry-After: 1 | end");
    weir_embedded_release(embedded);
    weir_http_client_limit_release(limit);
    weir__http_trust_release(trust);
}

static void tell_client(weir_http_exchange *exchange, void *user_data)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;

    (void)user_data;
    assert_int_equal(weir_http_exchange_client(exchange, &address), 0);
    (void)weir_http_respond_text(exchange, 200, weir_address_format(&address, text, sizeof(text)));
}

static void read_all(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t length = 0;

    assert_non_null(file);
    length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    assert_int_equal(fclose(file), 0);
}

TEST_EACH_LOOP(client_address, is_logged_and_known_to_handlers)
{
    static const char *const local[] = {"127.0.0.0/8", NULL};
    static const weir_http_route routes[] = {{"GET", "/", tell_client}, {0}};
    char path[] = "/tmp/weir-client-address-XXXXXX", answer[HTTP_CALL_SIZE], text[1024];
    weir_http_access_log *log = NULL;
    weir_http_server *server = NULL;
    int file = mkstemp(path);

    assert_true(file >= 0);
    close(file);
    assert_int_equal(weir_http_access_log_create(WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = path), &log),
                     0);
    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = host->group, .access_log = log,
                                                        .trusted_proxies = local),
                               &server),
        0);
    http_call(server,
              HTTP_CALL("GET /") "X-Forwarded-For: 198.51.100.1\r\n\r\n" HTTP_CALL(
                  "GET /") "X-Forwarded-For: 198.51.100.2\r\nConnection: close\r\n\r\n",
              answer);
    assert_contains(answer, "198.51.100.1:0");
    assert_contains(answer, "198.51.100.2:0");
    weir_http_server_release(server);
    weir_http_access_log_release(log);
    read_all(path, text, sizeof(text));
    unlink(path);
    assert_memory_equal(text, "198.51.100.1 - - [", 18);
    assert_contains(text, "\n198.51.100.2 - - [");
}
