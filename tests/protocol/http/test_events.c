/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_events.h>

#include <stdatomic.h>
#include <string.h>

#include <weir/group.h>

#include "support/bootstrap/raw_client.h"
#include "support/memory.h"
#include "support/protocol/http/exchange_fixture.h"
#include "support/protocol/http/http_text.h"

#define HEAD "200(?) Content-Type: text/event-stream Cache-Control: no-store X-Accel-Buffering: no"

/* What the handler of a test has seen. */
static struct {
    const weir_http_events_options *options;
    weir_http_events *events;
    int begin_err;
    int closed; /* calls */
    int closed_err;
} seen;

static void on_closed(weir_http_events *events, int err, void *user_data)
{
    assert_ptr_equal(user_data, &seen);
    assert_non_null(events);
    assert_true(weir_http_events_is_closed(events));
    seen.closed++;
    seen.closed_err = err;
}

static void subscribe(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    seen.begin_err = weir_http_events_begin(exchange, seen.options, &seen.events);
}

static const weir_http_route routes[] = {{"GET", "/", subscribe}, {0}};

#define OPTIONS(...) WEIR_HTTP_EVENTS_OPTIONS(.closed = on_closed, .user_data = &seen, __VA_ARGS__)

static weir_embedded *open_stream(const weir_http_events_options *options)
{
    weir_embedded *embedded;

    memset(&seen, 0, sizeof(seen));
    seen.options = options;
    embedded = exchange_open(routes);
    exchange_put(embedded, "GET", "/");
    assert_int_equal(seen.begin_err, 0);
    return embedded;
}

static void close_stream(weir_embedded *embedded)
{
    weir_http_events_release(seen.events);
    weir_embedded_release(embedded);
    assert_int_equal(seen.closed, 1);
}

static int send_data(const char *data)
{
    return weir_http_events_send(seen.events, WEIR_HTTP_EVENT(.data = data));
}

TEST(events, are_sent_as_lines)
{
    weir_embedded *embedded = open_stream(OPTIONS(.retry_ms = 500));

    assert_int_equal(send_data("1"), 0);
    assert_int_equal(
        weir_http_events_send(seen.events, WEIR_HTTP_EVENT(.type = "t", .id = "7", .data = " a")),
        0);
    weir_embedded_run(embedded);
    assert_exchange_sent(embedded,
                         HEAD " | retry: 500\n\n | data: 1\n\nevent: t\nid: 7\ndata:  a\n\n");
    assert_int_equal(send_data(""), 0);
    assert_int_equal(send_data("a\nb\r\nc\rd\n"), 0);
    assert_int_equal(weir_http_events_send(seen.events, WEIR_HTTP_EVENT(.id = "")), 0);
    assert_int_equal(weir_http_events_queued(seen.events), 8 + 40 + 6);
    weir_embedded_run(embedded);
    assert_int_equal(weir_http_events_queued(seen.events), 0);
    assert_exchange_sent(embedded,
                         "data: \n\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\nid: \n\n");
    close_stream(embedded);
}

TEST(events, are_refused_if_malformed)
{
    static const weir_http_event events[] = {
        {.size = sizeof(weir_http_event)},
        {.size = sizeof(weir_http_event), .type = "t"},
        {.size = sizeof(weir_http_event), .data = "1", .type = "a\nb"},
        {.size = sizeof(weir_http_event), .data = "1", .id = "a\rb"},
        {.size = sizeof(weir_http_event), .data = "\xff"},
        {.size = sizeof(weir_http_event), .data = "1", .id = "\xff"},
    };
    weir_embedded *embedded = open_stream(OPTIONS(.heartbeat_ns = 0));

    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        assert_int_equal(weir_http_events_send(seen.events, &events[i]), -EINVAL);
    assert_int_equal(weir_http_events_queued(seen.events), 0);
    close_stream(embedded);
}

TEST(events, the_last_id_of_the_client_is_known)
{
    weir_http_request *request = NULL;
    weir_embedded *embedded;

    memset(&seen, 0, sizeof(seen));
    seen.options = OPTIONS(.heartbeat_ns = 0);
    embedded = exchange_open(routes);
    assert_int_equal(weir_http_request_create("GET", "/", &request), 0);
    assert_int_equal(weir_http_headers_add_text(weir_http_request_headers(request),
                                                WEIR_HTTP_LAST_EVENT_ID, "41"),
                     0);
    (void)weir_embedded_write_inbound(embedded, weir_http_request_msg(request));
    exchange_put_end(embedded);
    assert_span_text(weir_http_events_last_id(seen.events), "41");
    close_stream(embedded);
    embedded = open_stream(OPTIONS(.heartbeat_ns = 0));
    assert_int_equal(weir_http_events_last_id(seen.events).length, 0);
    close_stream(embedded);
}

TEST(events, a_comment_is_sent_when_nothing_else_is)
{
    weir_embedded *embedded = open_stream(OPTIONS(.keep_slow = false));

    assert_exchange_sent(embedded, HEAD);
    weir_embedded_advance(embedded, weir_seconds(14));
    assert_exchange_sent(embedded, "");
    weir_embedded_advance(embedded, weir_seconds(1));
    assert_exchange_sent(embedded, ":\n\n");
    weir_embedded_advance(embedded, weir_seconds(10));
    assert_int_equal(send_data("1"), 0);
    weir_embedded_run(embedded);
    weir_embedded_advance(embedded, weir_seconds(14));
    assert_exchange_sent(embedded, "data: 1\n\n");
    weir_embedded_advance(embedded, weir_seconds(1));
    assert_exchange_sent(embedded, ":\n\n");
    weir_embedded_advance(embedded, weir_seconds(30));
    assert_exchange_sent(embedded, ":\n\n | :\n\n");
    close_stream(embedded);
}

TEST(events, the_heartbeat_can_be_switched_off)
{
    weir_embedded *embedded = open_stream(OPTIONS(.heartbeat_ns = WEIR_OFF));

    weir_embedded_advance(embedded, weir_seconds(100));
    assert_exchange_sent(embedded, HEAD);
    close_stream(embedded);
}

TEST(events, closing_sends_the_rest_and_ends_the_response)
{
    weir_embedded *embedded = open_stream(OPTIONS(.heartbeat_ns = 0));

    assert_int_equal(send_data("1"), 0);
    assert_false(weir_http_events_is_closed(seen.events));
    weir_http_events_close(seen.events);
    weir_http_events_close(seen.events);
    assert_true(weir_http_events_is_closed(seen.events));
    assert_int_equal(send_data("2"), WEIR_ECLOSED);
    weir_embedded_run(embedded);
    assert_exchange_sent(embedded, HEAD " | data: 1\n\n | end");
    assert_int_equal(seen.closed, 1);
    assert_int_equal(seen.closed_err, 0);
    assert_int_equal(send_data("3"), WEIR_ECLOSED);
    weir_embedded_advance(embedded, weir_seconds(100)); /* no heartbeat */
    weir_http_events_release(seen.events);
    exchange_put(embedded, "GET", "/"); /* on the same connection */
    assert_int_equal(send_data("4"), 0);
    weir_embedded_run(embedded);
    assert_exchange_sent(embedded, HEAD " | data: 4\n\n");
    weir_http_events_release(seen.events);
    weir_embedded_run(embedded);
    assert_exchange_sent(embedded, "end");
    assert_int_equal(seen.closed, 2);
    weir_embedded_release(embedded);
}

TEST(events, the_last_release_closes)
{
    weir_embedded *embedded = open_stream(OPTIONS(.heartbeat_ns = 0));

    weir_http_events_release(weir_http_events_retain(seen.events));
    weir_embedded_run(embedded);
    assert_int_equal(seen.closed, 0);
    weir_http_events_release(seen.events);
    weir_http_events_release(NULL);
    weir_embedded_run(embedded);
    assert_exchange_sent(embedded, HEAD " | end");
    assert_int_equal(seen.closed_err, 0);
    weir_embedded_release(embedded);
    assert_int_equal(seen.closed, 1);
}

TEST(events, a_lost_connection_is_reported)
{
    weir_embedded *embedded = open_stream(OPTIONS(.heartbeat_ns = 0));

    weir_embedded_end_input(embedded);
    (void)weir_embedded_finish(embedded);
    assert_int_equal(seen.closed, 1);
    assert_int_equal(seen.closed_err, WEIR_ECLOSED);
    assert_int_equal(send_data("1"), WEIR_ECLOSED);
    close_stream(embedded);
}

/* ---- slow clients ---- */

static weir_embedded *open_slow(const weir_http_events_options *options)
{
    weir_http_router *router = NULL;
    weir_embedded *embedded = NULL;
    weir_channel_options channel = *WEIR_CHANNEL_OPTIONS(.high_mark = 64, .low_mark = 32);

    memset(&seen, 0, sizeof(seen));
    seen.options = options;
    assert_int_equal(weir_http_router_create(routes, &router), 0);
    assert_int_equal(weir_embedded_create(
                         WEIR_EMBEDDED_OPTIONS(.channel = &channel, .socket_space = 16), &embedded),
                     0);
    assert_int_equal(weir_http_router_add(weir_embedded_pipeline(embedded), router, 0), 0);
    weir_http_router_release(router);
    exchange_put(embedded, "GET", "/");
    for (int i = 0; i < 20 && weir_http_events_queued(seen.events) == 0; i++) {
        assert_int_equal(send_data("0123456789"), 0);
        weir_embedded_run(embedded);
    }
    assert_true(weir_http_events_queued(seen.events) > 0);
    return embedded;
}

TEST(events, a_slow_client_is_disconnected)
{
    weir_embedded *embedded = open_slow(OPTIONS(.max_queued = 100));
    int err = 0;

    for (int i = 0; i < 20 && !err; i++)
        err = send_data("0123456789");
    assert_int_equal(err, WEIR_EFULL);
    assert_int_equal(send_data("1"), WEIR_ECLOSED);
    weir_embedded_run(embedded);
    assert_int_equal(seen.closed, 1);
    assert_int_equal(seen.closed_err, WEIR_EFULL);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    close_stream(embedded);
}

TEST(events, of_a_slow_client_can_be_refused)
{
    weir_embedded *embedded = open_slow(OPTIONS(.max_queued = 100, .keep_slow = true));
    weir_channel *channel = weir_embedded_channel(embedded);
    char long_data[200];
    int64_t pending;
    int err = 0;

    memset(long_data, 'x', sizeof(long_data));
    long_data[sizeof(long_data) - 1] = '\0';
    for (int i = 0; i < 20 && !err; i++)
        err = send_data("0123456789");
    assert_int_equal(err, WEIR_EFULL);
    assert_int_equal(send_data(long_data), WEIR_ETOOLONG);
    pending = weir_channel_pending_bytes(channel);
    weir_embedded_advance(embedded, weir_seconds(60)); /* no heartbeat into a full channel */
    assert_int_equal(weir_channel_pending_bytes(channel), pending);
    assert_int_equal(seen.closed, 0);
    assert_in_range(weir_http_events_queued(seen.events), 80, 100);
    weir_embedded_make_space(embedded, 10000);
    assert_int_equal(weir_http_events_queued(seen.events), 0);
    assert_int_equal(send_data("1"), 0);
    weir_embedded_run(embedded);
    assert_int_equal(weir_http_events_queued(seen.events), 0);
    close_stream(embedded);
}

TEST(events, a_head_request_is_answered_without_a_stream)
{
    weir_embedded *embedded;

    memset(&seen, 0, sizeof(seen));
    embedded = exchange_open(routes);
    exchange_put(embedded, "HEAD", "/");
    assert_int_equal(seen.begin_err, WEIR_ECLOSED);
    assert_exchange_sent(embedded, HEAD " | end");
    weir_embedded_release(embedded);
}

TEST(events, begin_without_memory_fails_cleanly)
{
    weir_http_request *request = NULL;
    weir_embedded *embedded;
    bool has_failed = true;

    for (unsigned n = 1; has_failed; n++) {
        memset(&seen, 0, sizeof(seen));
        seen.options = OPTIONS(.retry_ms = 1);
        embedded = exchange_open(routes);
        assert_int_equal(weir_http_request_create("GET", "/", &request), 0);
        test_memory_fail_at(n);
        (void)weir_embedded_write_inbound(embedded, weir_http_request_msg(request));
        (void)weir_embedded_write_inbound(embedded, weir_http_end_static());
        if (seen.events != NULL) {
            (void)send_data("1");
            weir_embedded_run(embedded);
        }
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_http_events_release(seen.events);
        weir_embedded_release(embedded);
        assert_int_equal(seen.closed, seen.events != NULL);
    }
}
