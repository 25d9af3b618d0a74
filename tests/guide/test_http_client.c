/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/31-http-client.md shows.
 */
#include <stdio.h>

#include <weir/error.h>
#include <weir/http_client.h>
#include <weir/http_server.h>

#include "guide/guide_fixture.h"

/* doc:begin sync */
static int print(const char *url)
{
    weir_http_full *full = NULL;
    int err = weir_http_get_sync(url, NULL, &full);

    if (!err) {
        weir_span text = weir_buf_span(weir_http_full_content(full));

        printf("%d\n%.*s", weir_http_response_status(weir_http_full_response(full)),
               (int)text.length, (const char *)text.data);
        weir_msg_release(weir_http_full_msg(full));
    }
    return err;
}
/* doc:end */

static weir_promise *noticed;

static void notice(weir_promise *fetching)
{
    int err = weir_promise_result(fetching);

    if (err < 0)
        (void)weir_promise_fail(noticed, err, NULL);
    else
        (void)weir_promise_succeed(noticed, NULL);
}

/* doc:begin fetch */
static void on_fetched(weir_promise *fetching, void *user_data)
{
    weir_http_full *full = weir_promise_value(fetching);

    (void)user_data;
    if (weir_promise_result(fetching) < 0)
        fprintf(stderr, "%s\n", weir_promise_detail(fetching));
    else
        printf("%d\n", weir_http_response_status(weir_http_full_response(full)));
    notice(fetching);
}

static int post(weir_http_client *client, const char *url, weir_buf *json)
{
    static const char *const fields[] = {"Content-Type", "application/json", NULL};
    weir_promise *fetching = NULL;
    int err = weir_http_client_fetch(client,
                                     WEIR_HTTP_FETCH_OPTIONS(.method = "POST", .url = url,
                                                             .fields = fields,
                                                             .content = weir_buf_msg(json)),
                                     &fetching);

    if (!err)
        err = weir_promise_add_listener(fetching, on_fetched, NULL);
    weir_promise_release(fetching);
    return err;
}
/* doc:end */

static void greet(weir_http_exchange *exchange, void *user_data)
{
    weir_buf *content = weir_http_exchange_content(exchange);

    (void)user_data;
    weir_http_respond_text(exchange, weir_buf_readable(content) > 0 ? 201 : 200, "hello\n");
}

static const weir_http_route routes[] = {WEIR_HTTP_ROUTE("*", "/", greet), WEIR_HTTP_ROUTES_END};

static weir_http_server *start(char *url, size_t size)
{
    weir_http_server *server = NULL;
    weir_address address;
    char text[WEIR_ADDRESS_TEXT_SIZE];

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes, .threads = 1),
            &server),
        0);
    assert_int_equal(weir_channel_local_address(
                         weir_server_listener(weir_http_server_server(server), 0), &address),
                     0);
    snprintf(url, size, "http://%s/", weir_address_format(&address, text, sizeof(text)));
    return server;
}

TEST(guide_http_client, gets_and_posts)
{
    char url[128];
    weir_http_server *server = start(url, sizeof(url));
    weir_group *group = make_loops(1); /* the client's own one would end later than this test */
    weir_http_client *client = NULL;
    weir_buf *json = NULL;

    assert_int_equal(print(url), 0);
    assert_true(print("http://127.0.0.1:1/") < 0);
    assert_int_equal(weir_http_client_create(WEIR_HTTP_CLIENT_OPTIONS(.group = group), &client), 0);
    assert_int_equal(weir_promise_create(weir_executor_global(), &noticed), 0);
    assert_int_equal(weir_buf_create_from("{}", 2, &json), 0);
    assert_int_equal(post(client, url, json), 0);
    assert_int_equal(weir_promise_sync(noticed, TEST_TIMEOUT_NS), 0);
    weir_promise_release(noticed);
    weir_buf_release(json);
    weir_http_client_close(client);
    assert_int_equal(weir_promise_sync(weir_http_client_closed(client), TEST_TIMEOUT_NS), 0);
    weir_http_client_release(client);
    end_group(group);
    weir_http_server_release(server);
}
