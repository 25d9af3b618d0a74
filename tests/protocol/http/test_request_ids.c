/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request ids: made, kept, replaced; the same in the response.
 */
#include <weir/http_filters.h>

#include <stdio.h>
#include <string.h>

#include "support/memory.h"
#include "support/protocol/http/filter_fixture.h"

static weir_embedded *open_with_ids(void)
{
    weir_embedded *embedded = filter_open();

    assert_int_equal(weir_http_request_ids_add(weir_embedded_pipeline(embedded)), 0);
    return embedded;
}

/* The id that the application sees in a request with this field; the response has the same. */
static void exchange(weir_embedded *embedded, const char *field, char id[200])
{
    char head[512], expected[512];
    const char *received;

    (void)snprintf(head, sizeof(head), "GET /\n%s", field);
    filter_receive(embedded, head);
    received = filter_received(embedded);
    assert_int_equal(sscanf(received, "GET / (0) X-Request-Id: %199s", id), 1);
    filter_write_head(embedded, 100, "", 0);
    filter_respond(embedded, 200, "X-Request-Id: other\n", NULL);
    (void)snprintf(expected, sizeof(expected), "100 (0) | 200 (0) X-Request-Id: %s | end", id);
    assert_string_equal(filter_sent(embedded), expected);
}

TEST(request_ids, are_made_for_requests_without)
{
    weir_embedded *embedded = open_with_ids();
    char ids[2][200];

    exchange(embedded, "", ids[0]);
    exchange(embedded, "", ids[1]);
    assert_int_equal(strlen(ids[0]), 32);
    assert_int_equal(strspn(ids[0], "0123456789abcdef"), 32);
    assert_string_not_equal(ids[0], ids[1]);
    weir_embedded_release(embedded);
}

TEST(request_ids, are_kept_if_they_are_valid)
{
    static const char *const valid[] = {"a", "A-z_0.9", "00-4bf92f3577b34da6a3ce929d0e0e4736-01"};
    weir_embedded *embedded = open_with_ids();
    char id[200], field[200], longest[129];

    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
        (void)snprintf(field, sizeof(field), "X-Request-Id: %s\n", valid[i]);
        exchange(embedded, field, id);
        assert_string_equal(id, valid[i]);
    }
    memset(longest, 'x', 128);
    longest[128] = '\0';
    (void)snprintf(field, sizeof(field), "X-Request-Id: %s\n", longest);
    exchange(embedded, field, id);
    assert_string_equal(id, longest);
    weir_embedded_release(embedded);
}

TEST(request_ids, are_replaced_if_they_are_not)
{
    static const char *const invalid[] = {"", "a b", "a~b", "\"a\"", "<script>", "a,b", "\xc3\xa4"};
    weir_embedded *embedded = open_with_ids();
    char id[200], field[200];

    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
        (void)snprintf(field, sizeof(field), "X-Request-Id: %s\n", invalid[i]);
        exchange(embedded, field, id);
        assert_int_equal(strlen(id), 32);
    }
    (void)snprintf(field, sizeof(field), "X-Request-Id: %0129d\n", 0);
    exchange(embedded, field, id);
    assert_int_equal(strlen(id), 32);
    exchange(embedded, "X-Request-Id: one\nX-Request-Id: two\n", id);
    assert_string_equal(id, "one"); /* the only one left */
    weir_embedded_release(embedded);
}

static bool run_with_failure(unsigned n)
{
    weir_embedded *embedded = open_with_ids();
    char fields[4096] = "";
    weir_http_request *request;
    weir_http_response *response;
    bool has_failed;

    for (int i = 0; i < 40; i++) /* so that one more field needs memory */
        (void)strncat(fields, "Name: value\n", sizeof(fields) - strlen(fields) - 1);
    request = filter_make_request("GET /", 0);
    response = filter_make_response(200, fields, 0);
    test_memory_fail_at(n);
    IGNORE_RESULT(weir_embedded_write_inbound(embedded, weir_http_request_msg(request)));
    IGNORE_RESULT(weir_embedded_write_outbound(embedded, weir_http_response_msg(response)));
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return has_failed;
}

TEST(request_ids, survive_allocation_failures)
{
    unsigned n = 1;

    while (run_with_failure(n))
        n++;
}
