/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes that are added to a running server.
 */
#include <errno.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/http_server.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/memory.h"
#include "support/protocol/http/http_call.h"

static void say(weir_http_exchange *exchange, void *user_data)
{
    (void)weir_http_respond_text(exchange, 200, user_data);
}

static char one_text[] = "one", two_text[] = "two", any_text[] = "any", more_text[] = "more";

/* As users write it, whose compilers warn. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wextra"
#pragma GCC diagnostic error "-Wmissing-field-initializers"
static const weir_http_route without_warnings[] = {
    WEIR_HTTP_ROUTE("GET", "/", say, one_text),
    WEIR_HTTP_ROUTE("POST", "/", say, .user_data = two_text, .streaming = true),
    WEIR_HTTP_ROUTES_END};
#pragma GCC diagnostic pop

static void count(void *arg)
{
    ++*(int *)arg;
}

/* Appends its number to a text. */
struct order {
    char *text;
    char number;
};

static void note(void *arg)
{
    struct order *order = arg;
    size_t length = strlen(order->text);

    order->text[length] = order->number;
    order->text[length + 1] = '\0';
}

static weir_http_server *start(weir_group *workers)
{
    static const weir_http_route first[] = {{"GET", "/first", say, one_text}, {0}};
    weir_http_server *server = NULL;

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = first, .workers = workers),
            &server),
        0);
    return server;
}

static const weir_http_route second[] = {{"GET", "/second", say, two_text}, {0}};
static const weir_http_route third[] = {{"GET", "/{name}", say, any_text}, {0}};

TEST_EACH_HOST(server_routes, new_connections_have_them)
{
    weir_http_server *server = start(host->group);
    char text[4] = "", answer[HTTP_CALL_SIZE];
    struct order orders[] = {{text, '2'}, {text, '3'}};
    int old = raw_client_connect(weir_http_server_server(server));

    raw_client_send(old, HTTP_GET("/first"));
    http_call_receive_one(old, 3, answer);
    assert_int_equal(weir_http_server_add_routes(server, second, note, &orders[0]), 0);
    http_call(server, HTTP_LAST("/second"), answer);
    assert_contains(answer, "\r\n\r\ntwo");
    assert_int_equal(weir_http_server_add_routes(server, third, note, &orders[1]), 0);
    http_call(server, HTTP_LAST("/first"), answer);
    assert_contains(answer, "\r\n\r\none");
    http_call(server, HTTP_LAST("/second"), answer);
    assert_contains(answer, "\r\n\r\ntwo");
    http_call(server, HTTP_LAST("/third"), answer);
    assert_contains(answer, "\r\n\r\nany");
    raw_client_send(old, HTTP_LAST("/second"));
    assert_true(http_call_receive(old, answer));
    assert_contains(answer, "HTTP/1.1 404 ");
    raw_client_close(old);
    assert_string_equal(text, "");
    weir_http_server_release(server);
    assert_string_equal(text, "32");
}

TEST_EACH_HOST(server_routes, a_failed_addition_changes_nothing)
{
    static const weir_http_route taken[] = {
        {"GET", "/more", say, more_text}, {"GET", "/first", say, NULL}, {0}};
    static const weir_http_route wrong[] = {{"GET", "more", say, NULL}, {0}};
    weir_http_server *server = start(host->group);
    char answer[HTTP_CALL_SIZE];
    int released = 0;

    log_capture_start();
    assert_int_equal(weir_http_server_add_routes(server, taken, count, &released), -EEXIST);
    assert_log_contains("\"GET /first\"");
    assert_int_equal(weir_http_server_add_routes(server, wrong, count, &released), -EINVAL);
    assert_int_equal(weir_http_server_add_routes(server, NULL, count, &released), -EINVAL);
    assert_int_equal(weir_http_server_add_routes(server, wrong, NULL, NULL), -EINVAL);
    assert_int_equal(released, 3);
    http_call(server, HTTP_LAST("/more"), answer);
    assert_contains(answer, "HTTP/1.1 404 ");
    http_call(server, HTTP_LAST("/first"), answer);
    assert_contains(answer, "\r\n\r\none");
    weir_http_server_release(server);
    assert_int_equal(released, 3);
}

TEST(server_routes, an_addition_survives_a_lack_of_memory)
{
    weir_group *group = NULL;
    weir_http_server *server;
    int released = 0, err = -ENOMEM;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group), 0);
    server = start(group);
    for (unsigned n = 1; err == -ENOMEM; n++) {
        test_memory_fail_at(n);
        err = weir_http_server_add_routes(server, second, count, &released);
        assert_int_equal(released, test_memory_failed() ? n : n - 1);
    }
    test_memory_fail_at(0);
    assert_true(released >= 4);
    assert_int_equal(err, 0);
    weir_http_server_release(server);
    weir_group_release(group);
}

/* ---- groups ---- */

static void say_where(weir_http_exchange *exchange, void *user_data)
{
    weir_group *const *group = user_data;

    (void)weir_http_respond_text(
        exchange, 200, weir_in_executor(weir_group_at(*group, 0)) ? "on the group" : "elsewhere");
}

/* The variable that named the group is read once. */
TEST(server_routes, routes_keep_their_group)
{
    weir_group *blocking = NULL, *named;
    weir_http_server *server = NULL;
    char answer[HTTP_CALL_SIZE];

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &blocking), 0);
    named = blocking;
    {
        const weir_http_route first[] = {{"GET", "/", say_where, &blocking, .group = &named}, {0}};

        assert_int_equal(
            weir_http_server_start(
                WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = first, .threads = 1),
                &server),
            0);
    }
    named = NULL;
    assert_int_equal(weir_http_server_add_routes(server, second, NULL, NULL), 0);
    http_call(server, HTTP_LAST("/"), answer);
    assert_contains(answer, "\r\n\r\non the group");
    weir_http_server_release(server);
    assert_int_equal(weir_group_shutdown(blocking, 0, weir_seconds(5)), 0);
    assert_int_equal(weir_group_await_termination(blocking, weir_seconds(5)), 0);
    weir_group_release(blocking);
}

TEST(server_routes, can_be_written_without_warnings)
{
    weir_http_router *router = NULL;

    assert_string_equal(without_warnings[0].method, "GET");
    assert_ptr_equal(without_warnings[0].user_data, one_text);
    assert_true(without_warnings[1].streaming);
    assert_ptr_equal(without_warnings[1].user_data, two_text);
    assert_null(without_warnings[2].path);
    assert_int_equal(weir_http_router_create(without_warnings, &router), 0);
    weir_http_router_release(router);
}
