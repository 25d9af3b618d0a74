/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits per client: rate, burst, concurrency, addresses, and forgetting.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/proxy_protocol.h>
#include <weir/timer.h>

#include "os/thread.h"
#include "support/memory.h"
#include "support/protocol/http/filter_fixture.h"

static weir_http_client_limit *make_limit(const weir_http_client_limit_options *options)
{
    weir_http_client_limit *limit = NULL;

    assert_int_equal(weir_http_client_limit_create(options, &limit), 0);
    return limit;
}

static weir_embedded *open_from(const char *remote, weir_http_client_limit *limit)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = remote), &embedded), 0);
    assert_int_equal(weir_http_client_limit_add(weir_embedded_pipeline(embedded), limit), 0);
    return embedded;
}

/* True if a request reaches the application; then it is answered. */
static bool passes(weir_embedded *embedded)
{
    bool has_passed;

    filter_receive(embedded, "GET /\n");
    has_passed = filter_received(embedded) != NULL;
    if (has_passed)
        filter_respond(embedded, 200, "", NULL);
    assert_non_null(filter_sent(embedded));
    return has_passed;
}

static bool passes_from(const char *remote, weir_http_client_limit *limit)
{
    weir_embedded *embedded = open_from(remote, limit);
    bool has_passed = passes(embedded);

    weir_embedded_release(embedded);
    return has_passed;
}

TEST(client_limit, answers_requests_above_the_rate)
{
    weir_http_client_limit *limit =
        make_limit(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 2, .burst = 3));
    weir_embedded *embedded = open_from("192.0.2.1:1", limit);

    for (int i = 0; i < 3; i++)
        assert_true(passes(embedded));
    filter_receive(embedded, "GET /\n");
    assert_null(filter_received(embedded));
    assert_string_equal(filter_sent(embedded), "429 (0) Retry-After: 1 | end");
    weir_embedded_advance(embedded, weir_ms(499));
    assert_false(passes(embedded));
    weir_embedded_advance(embedded, weir_ms(1));
    assert_true(passes(embedded));
    assert_false(passes(embedded));
    weir_embedded_advance(embedded, weir_seconds(60)); /* the bucket holds three */
    for (int i = 0; i < 3; i++)
        assert_true(passes(embedded));
    assert_false(passes(embedded));
    weir_embedded_release(embedded);
    weir_http_client_limit_release(limit);
}

TEST(client_limit, discards_the_content_of_refused_requests)
{
    weir_http_client_limit *limit =
        make_limit(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 1));
    weir_embedded *embedded = open_from("192.0.2.1:1", limit);

    assert_true(passes(embedded));
    filter_receive_head(embedded, "POST /\n", 5);
    filter_receive_text(embedded, "hello");
    filter_receive_end(embedded);
    assert_null(filter_received(embedded));
    assert_string_equal(filter_sent(embedded), "429 (0) Retry-After: 1 | end");
    filter_receive_head(embedded, "POST /\n", 1 << 20);
    assert_string_equal(filter_sent(embedded), "429 (0) Retry-After: 1 closes | end");
    weir_embedded_release(embedded);
    weir_http_client_limit_release(limit);
}

TEST(client_limit, counts_unfinished_exchanges)
{
    weir_http_client_limit *limit = make_limit(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.max_concurrent = 2));
    weir_embedded *lines[3];

    for (int i = 0; i < 3; i++)
        lines[i] = open_from("192.0.2.1:1", limit);
    filter_receive(lines[0], "GET /\n");
    filter_receive(lines[1], "GET /\n");
    assert_false(passes(lines[2]));
    filter_respond(lines[0], 200, "", NULL);
    assert_true(passes(lines[2]));
    assert_true(passes(lines[0]));
    filter_receive(lines[2], "GET /\n");
    assert_false(passes(lines[0]));
    weir_embedded_release(lines[1]); /* a lost connection counts no more */
    assert_true(passes(lines[0]));
    weir_embedded_release(lines[0]);
    weir_embedded_release(lines[2]);
    weir_http_client_limit_release(limit);
}

TEST(client_limit, knows_clients_by_their_network)
{
    weir_http_client_limit *limit =
        make_limit(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 1));

    assert_true(passes_from("192.0.2.1:1", limit));
    assert_false(passes_from("192.0.2.1:2", limit));
    assert_false(passes_from("[::ffff:192.0.2.1]:2", limit));
    assert_true(passes_from("192.0.2.2:1", limit));
    assert_true(passes_from("[2001:db8::1]:1", limit));
    assert_false(passes_from("[2001:db8::ffff:1]:1", limit));
    assert_true(passes_from("[2001:db8:0:1::1]:1", limit));
    for (int i = 0; i < 3; i++) /* no address, no limit */
        assert_true(passes_from("inproc:x", limit));
    weir_http_client_limit_release(limit);
}

TEST(client_limit, uses_the_address_of_the_proxy_protocol)
{
    weir_http_client_limit *limit =
        make_limit(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 1));

    for (int i = 0; i < 3; i++) {
        weir_embedded *embedded = NULL;
        weir_buf *buf = NULL;
        char line[64];

        (void)snprintf(line, sizeof(line), "PROXY TCP4 192.0.2.%d 192.0.2.9 1 2\r\n", 1 + i % 2);
        assert_int_equal(
            weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = "192.0.2.100:1"), &embedded), 0);
        assert_int_equal(weir_proxy_receiver_add(weir_embedded_pipeline(embedded), NULL), 0);
        assert_int_equal(weir_http_client_limit_add(weir_embedded_pipeline(embedded), limit), 0);
        assert_int_equal(weir_buf_create_from(line, strlen(line), &buf), 0);
        assert_int_equal(weir_embedded_write_inbound(embedded, weir_buf_msg(buf)), 0);
        assert_int_equal(passes(embedded), i < 2);
        weir_embedded_release(embedded);
    }
    weir_http_client_limit_release(limit);
}

TEST(client_limit, forgets_the_least_recent_clients)
{
    weir_http_client_limit *limit =
        make_limit(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 1, .max_clients = 160));
    char address[32];
    size_t after_some = 0;

    for (int i = 0; i < 1500; i++) {
        (void)snprintf(address, sizeof(address), "10.0.%d.%d:1", i / 250, i % 250);
        assert_true(passes_from(address, limit));
        if (i == 500)
            after_some = test_memory_live_bytes();
    }
    assert_true(test_memory_live_bytes() < after_some + 10000);
    assert_false(passes_from(address, limit)); /* the most recent one is known */
    assert_true(passes_from("10.0.0.0:1", limit));
    weir_http_client_limit_release(limit);
}

TEST(client_limit, never_forgets_a_client_with_unfinished_exchanges)
{
    weir_http_client_limit *limit =
        make_limit(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.max_concurrent = 1, .max_clients = 1));
    weir_embedded *busy = open_from("192.0.2.1:1", limit);
    char address[32];

    filter_receive(busy, "GET /\n");
    for (int i = 0; i < 200; i++) {
        (void)snprintf(address, sizeof(address), "10.0.0.%d:1", i);
        assert_true(passes_from(address, limit));
    }
    assert_false(passes_from("192.0.2.1:2", limit));
    filter_respond(busy, 200, "", NULL);
    assert_true(passes_from("192.0.2.1:2", limit));
    weir_embedded_release(busy);
    weir_http_client_limit_release(limit);
}

TEST(client_limit, refuses_contradictory_settings)
{
    weir_http_client_limit *limit = NULL;

    assert_int_equal(
        weir_http_client_limit_create(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.burst = 5), &limit), -EINVAL);
    assert_int_equal(
        weir_http_client_limit_create(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.max_concurrent = -1), &limit),
        -EINVAL);
}

/* Requests on a thread of their own; half of them are answered. No assertions here. */
static void request_some(void *limit)
{
    weir_embedded *embedded = NULL;
    weir_http_request *request = NULL;

    if (weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = "192.0.2.1:1"), &embedded) < 0 ||
        weir_http_client_limit_add(weir_embedded_pipeline(embedded), limit) < 0)
        return;
    for (int i = 0; i < 500; i++) {
        if (weir_http_request_create("GET", "/", &request) == 0)
            (void)weir_embedded_write_inbound(embedded, weir_http_request_msg(request));
        if (i % 2 == 0)
            (void)weir_embedded_write_outbound(embedded, weir_http_end_static());
    }
    weir_embedded_release(embedded);
}

TEST(client_limit, is_shared_by_threads)
{
    weir_http_client_limit *limit =
        make_limit(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.max_concurrent = 2, .max_clients = 1));
    weir__thread threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(weir__thread_start("client", request_some, limit, &threads[i]), 0);
    for (int i = 0; i < 4; i++)
        weir__thread_join(&threads[i]);
    assert_true(passes_from("192.0.2.1:1", limit)); /* all have been counted down */
    weir_http_client_limit_release(limit);
}

static bool run_with_failure(unsigned n)
{
    weir_embedded *embedded = filter_open();
    weir_http_request *requests[2];
    weir_http_client_limit *limit = NULL;
    bool has_failed;

    for (int i = 0; i < 2; i++)
        requests[i] = filter_make_request("GET /", 0);
    test_memory_fail_at(n);
    if (weir_http_client_limit_create(WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 1),
                                      &limit) == 0 &&
        weir_http_client_limit_add(weir_embedded_pipeline(embedded), limit) == 0)
        for (int i = 0; i < 2; i++) {
            IGNORE_RESULT(
                weir_embedded_write_inbound(embedded, weir_http_request_msg(requests[i])));
            requests[i] = NULL;
        }
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    for (int i = 0; i < 2; i++)
        if (requests[i] != NULL)
            weir_msg_release(weir_http_request_msg(requests[i]));
    weir_embedded_release(embedded);
    weir_http_client_limit_release(limit);
    return has_failed;
}

TEST(client_limit, survives_allocation_failures)
{
    unsigned n = 1;

    while (run_with_failure(n))
        n++;
    assert_true(n > 5);
}
