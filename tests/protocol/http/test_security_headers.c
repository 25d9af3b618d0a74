/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Security headers: defaults, settings, and fields of the application.
 */
#include <weir/http_filters.h>

#include <errno.h>

#include "protocol/http/filters.h"
#include "support/memory.h"
#include "support/protocol/http/filter_fixture.h"

static const char *sent_with(const weir_http_security_options *options, int status,
                             const char *fields)
{
    weir_embedded *embedded = filter_open();
    const char *sent;

    assert_int_equal(weir_http_security_add(weir_embedded_pipeline(embedded), options), 0);
    filter_receive(embedded, "GET /\n");
    (void)filter_received(embedded);
    filter_respond(embedded, status, fields, NULL);
    sent = filter_sent(embedded);
    weir_embedded_release(embedded);
    return sent;
}

TEST(security_headers, have_defaults)
{
    assert_string_equal(sent_with(NULL, 200, ""),
                        "200 (0) X-Content-Type-Options: nosniff; X-Frame-Options: DENY; "
                        "Referrer-Policy: strict-origin-when-cross-origin | end");
    assert_string_equal(sent_with(WEIR_HTTP_SECURITY_OPTIONS(.is_tls = true), 404, ""),
                        "404 (0) X-Content-Type-Options: nosniff; X-Frame-Options: DENY; "
                        "Referrer-Policy: strict-origin-when-cross-origin; "
                        "Strict-Transport-Security: max-age=31536000 | end");
    assert_string_equal(sent_with(NULL, 103, ""), "103 (0) | end");
}

TEST(security_headers, are_what_the_options_say)
{
    assert_string_equal(
        sent_with(WEIR_HTTP_SECURITY_OPTIONS(.is_tls = true, .hsts_max_age = 60,
                                             .hsts_subdomains = true, .frame_options = "",
                                             .referrer_policy = "no-referrer",
                                             .content_security = "default-src 'self'"),
                  200, ""),
        "200 (0) X-Content-Type-Options: nosniff; Referrer-Policy: no-referrer; "
        "Content-Security-Policy: default-src 'self'; "
        "Strict-Transport-Security: max-age=60; includeSubDomains | end");
    assert_string_equal(
        sent_with(WEIR_HTTP_SECURITY_OPTIONS(.is_tls = true, .frame_options = "",
                                             .hsts_max_age = WEIR_OFF, .referrer_policy = ""),
                  200, ""),
        "200 (0) X-Content-Type-Options: nosniff | end");
}

TEST(security_headers, do_not_replace_those_of_the_application)
{
    assert_string_equal(sent_with(NULL, 200, "X-Frame-Options: SAMEORIGIN\n"),
                        "200 (0) X-Frame-Options: SAMEORIGIN; X-Content-Type-Options: nosniff; "
                        "Referrer-Policy: strict-origin-when-cross-origin | end");
}

TEST(security_headers, refuse_invalid_settings)
{
    weir__http_security *security = NULL;

    assert_int_equal(
        weir__http_security_create(WEIR_HTTP_SECURITY_OPTIONS(.hsts_max_age = -2), &security),
        -EINVAL);
    assert_int_equal(weir__http_security_create(
                         WEIR_HTTP_SECURITY_OPTIONS(.frame_options = "a\r\nX: y"), &security),
                     -EINVAL);
}

static bool run_with_failure(unsigned n)
{
    weir_embedded *embedded = filter_open();
    weir_http_response *response =
        filter_make_response(200, "A: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\n", 0);
    bool has_failed;

    test_memory_fail_at(n);
    IGNORE_RESULT(weir_http_security_add(weir_embedded_pipeline(embedded), NULL));
    IGNORE_RESULT(weir_embedded_write_outbound(embedded, weir_http_response_msg(response)));
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return has_failed;
}

TEST(security_headers, survive_allocation_failures)
{
    unsigned n = 1;

    while (run_with_failure(n))
        n++;
    assert_true(n > 2);
}
