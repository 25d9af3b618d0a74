/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/client_fixture.h"

#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "support/test.h"

weir_http_client *client_open(struct host *host, const weir_http_client_options *given)
{
    weir_http_client_options options = *WEIR_HTTP_CLIENT_OPTIONS();
    weir_http_client *client = NULL;

    if (given != NULL)
        options = *given;
    options.group = host->group;
    assert_int_equal(weir_http_client_create(&options, &client), 0);
    return client;
}

void client_close(weir_http_client *client)
{
    weir_http_client_close(client);
    assert_int_equal(weir_promise_sync(weir_http_client_closed(client), TEST_TIMEOUT_NS), 0);
    weir_http_client_release(client);
}

static void copy(char *to, size_t size, weir_span span)
{
    size_t length = span.length < size ? span.length : size - 1;

    if (length > 0)
        memcpy(to, span.data, length);
    to[length] = '\0';
}

struct fetched client_await(weir_promise *promise)
{
    struct fetched fetched = {0};
    const weir_http_full *full;
    const weir_http_response *response;

    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    fetched.err = weir_promise_result(promise);
    (void)snprintf(fetched.detail, sizeof(fetched.detail), "%s", weir_promise_detail(promise));
    if (fetched.err == 0) {
        full = weir_promise_value(promise);
        response = weir_http_full_response(full);
        fetched.status = weir_http_response_status(response);
        fetched.length = weir_buf_readable(weir_http_full_content(full));
        copy(fetched.content, sizeof(fetched.content), weir_buf_span(weir_http_full_content(full)));
        copy(fetched.server, sizeof(fetched.server),
             weir_http_headers_get(weir_http_response_headers(response), WEIR_HTTP_SERVER));
    }
    weir_promise_release(promise);
    return fetched;
}

struct fetched client_fetch(weir_http_client *client, const weir_http_fetch_options *options)
{
    weir_promise *promise = NULL;
    struct fetched failed = {.err = weir_http_client_fetch(client, options, &promise)};

    return failed.err < 0 ? failed : client_await(promise);
}

struct fetched client_get(weir_http_client *client, const char *url)
{
    return client_fetch(client, WEIR_HTTP_FETCH_OPTIONS(.url = url));
}

weir_http_client_stats client_stats(const weir_http_client *client)
{
    weir_http_client_stats stats;

    weir_http_client_read_stats(client, &stats);
    return stats;
}

/* ---- streams ---- */

static void on_informational(weir_http_call *call, weir_http_response *response, void *user_data)
{
    struct streamed *streamed = user_data;

    (void)call;
    (void)response;
    call_counter_add(&streamed->informationals);
}

static void on_head(weir_http_call *call, weir_http_response *response, void *user_data)
{
    struct streamed *streamed = user_data;

    streamed->status = weir_http_response_status(response);
    if (streamed->reads_itself)
        weir_http_call_read(call);
    call_counter_add(&streamed->heads);
}

static void on_content(weir_http_call *call, weir_msg *msg, void *user_data)
{
    struct streamed *streamed = user_data;
    weir_span span = weir_buf_span(weir_buf_of(msg));

    for (size_t i = 0; i < span.length; i++)
        streamed->hash += (streamed->length + i + 1) * span.data[i];
    streamed->length += span.length;
    weir_msg_release(msg);
    if (streamed->reads_itself)
        weir_http_call_read(call);
    call_counter_add(&streamed->pieces);
}

static void on_writable(weir_http_call *call, void *user_data)
{
    struct streamed *streamed = user_data;

    (void)call;
    call_counter_add(&streamed->writables);
}

static void on_end(weir_http_call *call, int err, const char *detail, void *user_data)
{
    struct streamed *streamed = user_data;
    const weir_http_headers *trailers = weir_http_call_trailers(call);

    streamed->err = err;
    (void)snprintf(streamed->detail, sizeof(streamed->detail), "%s", detail);
    if (trailers != NULL)
        copy(streamed->trailer, sizeof(streamed->trailer),
             weir_http_headers_get_named(trailers, "X-Sum"));
    call_counter_add(&streamed->ends);
}

const weir_http_call_events streamed_events = {
    .informational = on_informational,
    .head = on_head,
    .content = on_content,
    .writable = on_writable,
    .end = on_end,
};
