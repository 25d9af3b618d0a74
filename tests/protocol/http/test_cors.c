/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CORS: preflights, other requests, and what settings are refused.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <string.h>

#include "protocol/http/filters.h"
#include "support/memory.h"
#include "support/protocol/http/filter_fixture.h"

static const char *const origins[] = {"https://a.example", "http://b.example:8080", NULL};
static const char *const any[] = {"*", NULL};
static const char *const names[] = {"X-One", "Content-Type", NULL};
static const char *const methods[] = {"PUT", "DELETE", NULL};

static weir_embedded *open_with(const weir_http_cors_options *options)
{
    weir_embedded *embedded = filter_open();

    assert_int_equal(weir_http_cors_add(weir_embedded_pipeline(embedded), options), 0);
    return embedded;
}

#define VARY "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers"

TEST(cors, answers_a_preflight)
{
    weir_embedded *embedded =
        open_with(WEIR_HTTP_CORS_OPTIONS(.origins = origins, .methods = methods, .headers = names,
                                         .credentials = true, .max_age_seconds = 60));

    filter_receive(embedded, "OPTIONS /x\nOrigin: https://a.example\n"
                             "Access-Control-Request-Method: PUT\n"
                             "Access-Control-Request-Headers: x-one,content-type\n");
    assert_null(filter_received(embedded));
    assert_string_equal(filter_sent(embedded),
                        "204 (0) " VARY "; Access-Control-Allow-Origin: https://a.example; "
                        "Access-Control-Allow-Credentials: true; "
                        "Access-Control-Allow-Methods: PUT, DELETE; "
                        "Access-Control-Allow-Headers: X-One, Content-Type; "
                        "Access-Control-Max-Age: 60 | end");
    filter_receive(embedded, "GET /y\n"); /* the connection is usable */
    assert_string_equal(filter_received(embedded), "GET /y (0) | end");
    weir_embedded_release(embedded);
}

TEST(cors, allows_the_headers_that_were_asked_for_by_default)
{
    weir_embedded *embedded =
        open_with(WEIR_HTTP_CORS_OPTIONS(.origins = any, .max_age_seconds = WEIR_OFF));

    filter_receive(embedded, "OPTIONS /x\nOrigin: null\nAccess-Control-Request-Method: POST\n"
                             "Access-Control-Request-Headers: x-any, x-other\n");
    assert_string_equal(filter_sent(embedded),
                        "204 (0) " VARY "; Access-Control-Allow-Origin: *; "
                        "Access-Control-Allow-Methods: GET, HEAD, POST; "
                        "Access-Control-Allow-Headers: x-any, x-other | end");
    filter_receive(embedded, "OPTIONS /x\nOrigin: null\nAccess-Control-Request-Method: POST\n"
                             "Access-Control-Request-Headers: x any\n");
    assert_string_equal(filter_sent(embedded), "403 (0) " VARY " | end");
    weir_embedded_release(embedded);
}

TEST(cors, refuses_other_origins_methods_and_headers)
{
    static const char *const refused[] = {
        "OPTIONS /x\nOrigin: https://A.example\nAccess-Control-Request-Method: PUT\n",
        "OPTIONS /x\nOrigin: https://a.example.\nAccess-Control-Request-Method: PUT\n",
        "OPTIONS /x\nOrigin: https://a.example:443\nAccess-Control-Request-Method: PUT\n",
        "OPTIONS /x\nOrigin: null\nAccess-Control-Request-Method: PUT\n",
        "OPTIONS /x\nOrigin:\nAccess-Control-Request-Method: PUT\n",
        "OPTIONS /x\nOrigin: https://a.example, http://b.example:8080\n"
        "Access-Control-Request-Method: PUT\n",
        "OPTIONS /x\nOrigin: https://a.example\nAccess-Control-Request-Method: put\n",
        "OPTIONS /x\nOrigin: https://a.example\nAccess-Control-Request-Method: GET\n",
        "OPTIONS /x\nOrigin: https://a.example\nAccess-Control-Request-Method: PUT\n"
        "Access-Control-Request-Headers: x-one, x-two\n",
    };
    weir_embedded *embedded =
        open_with(WEIR_HTTP_CORS_OPTIONS(.origins = origins, .methods = methods, .headers = names));

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        filter_receive(embedded, refused[i]);
        assert_null(filter_received(embedded));
        assert_string_equal(filter_sent(embedded), "403 (0) " VARY " | end");
    }
    weir_embedded_release(embedded);
}

TEST(cors, adds_fields_to_other_responses)
{
    weir_embedded *embedded = open_with(
        WEIR_HTTP_CORS_OPTIONS(.origins = origins, .exposed_headers = names, .credentials = true));

    filter_receive(embedded, "GET /x\nOrigin: http://b.example:8080\n");
    assert_string_equal(filter_received(embedded),
                        "GET /x (0) Origin: http://b.example:8080 | end");
    filter_respond(embedded, 200, "Vary: Accept\n", "hi");
    assert_string_equal(filter_sent(embedded),
                        "200 (2) Vary: Accept, Origin; "
                        "Access-Control-Allow-Origin: http://b.example:8080; "
                        "Access-Control-Allow-Credentials: true; "
                        "Access-Control-Expose-Headers: X-One, Content-Type | hi | end");
    filter_receive(embedded, "GET /x\nOrigin: http://evil.example\n");
    (void)filter_received(embedded);
    filter_respond(embedded, 200, "Vary: origin\n", NULL);
    assert_string_equal(filter_sent(embedded), "200 (0) Vary: origin | end");
    filter_receive(embedded, "GET /x\n"); /* nothing is left of the request before */
    (void)filter_received(embedded);
    filter_respond(embedded, 404, "", NULL);
    assert_string_equal(filter_sent(embedded), "404 (0) Vary: Origin | end");
    filter_receive(embedded, "OPTIONS /x\nOrigin: https://a.example\n"); /* not a preflight */
    assert_non_null(filter_received(embedded));
    filter_respond(embedded, 200, "Access-Control-Allow-Origin: mine\n", NULL);
    assert_string_equal(filter_sent(embedded), "200 (0) Access-Control-Allow-Origin: mine | end");
    weir_embedded_release(embedded);
}

TEST(cors, leaves_interim_responses_alone)
{
    weir_embedded *embedded = open_with(WEIR_HTTP_CORS_OPTIONS(.origins = any));

    filter_receive(embedded, "GET /x\nOrigin: http://b.example\n");
    (void)filter_received(embedded);
    filter_write_head(embedded, 103, "Link: </a>\n", 0);
    filter_respond(embedded, 200, "", NULL);
    assert_string_equal(filter_sent(embedded),
                        "103 (0) Link: </a> | 200 (0) Access-Control-Allow-Origin: * | end");
    weir_embedded_release(embedded);
}

TEST(cors, discards_the_content_of_a_preflight)
{
    weir_embedded *embedded = open_with(WEIR_HTTP_CORS_OPTIONS(.origins = any));

    filter_receive_head(embedded, "OPTIONS /x\nOrigin: a\nAccess-Control-Request-Method: GET\n", 5);
    filter_receive_text(embedded, "hello");
    filter_receive_end(embedded);
    assert_null(filter_received(embedded));
    assert_null(strstr(filter_sent(embedded), "closes"));
    filter_receive_head(embedded, "OPTIONS /x\nOrigin: a\nAccess-Control-Request-Method: GET\n",
                        WEIR_HTTP_UNKNOWN_LENGTH);
    assert_non_null(strstr(filter_sent(embedded), "closes"));
    weir_embedded_release(embedded);
}

TEST(cors, requests_a_message_in_place_of_discarded_ones)
{
    weir_embedded *embedded = open_with(WEIR_HTTP_CORS_OPTIONS(.origins = any));

    weir_channel_set_auto_read(weir_embedded_channel(embedded), false);
    weir_channel_request_read(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    filter_receive(embedded, "OPTIONS /x\nOrigin: a\nAccess-Control-Request-Method: GET\n");
    assert_non_null(filter_sent(embedded));
    filter_receive(embedded, "GET /y\n");
    assert_string_equal(filter_received(embedded), "GET /y (0)"); /* one message, as requested */
    weir_embedded_release(embedded);
}

TEST(cors, refuses_contradictory_settings)
{
    static const char *const bad_origins[] = {
        "a.example",    "https://", "https://a/",  "",
        "https://a, b", "://a",     "https://a b", "https://a\r\nX: y"};
    static const char *const bad_names[] = {"X One", NULL};
    weir__http_cors *cors = NULL;

    for (size_t i = 0; i < sizeof(bad_origins) / sizeof(bad_origins[0]); i++) {
        const char *const list[] = {bad_origins[i], NULL};

        assert_int_equal(weir__http_cors_create(WEIR_HTTP_CORS_OPTIONS(.origins = list), &cors),
                         -EINVAL);
    }
    assert_int_equal(
        weir__http_cors_create(WEIR_HTTP_CORS_OPTIONS(.origins = any, .credentials = true), &cors),
        -EINVAL);
    assert_int_equal(weir__http_cors_create(WEIR_HTTP_CORS_OPTIONS(.headers = bad_names), &cors),
                     -EINVAL);
    assert_int_equal(weir__http_cors_create(WEIR_HTTP_CORS_OPTIONS(.methods = bad_names), &cors),
                     -EINVAL);
    assert_int_equal(weir__http_cors_create(WEIR_HTTP_CORS_OPTIONS(.max_age_seconds = -2), &cors),
                     -EINVAL);
}

/* A failure closes the connection, or has no effect. */
static bool run_with_failure(unsigned n)
{
    weir_embedded *embedded = filter_open();
    bool has_failed;

    if (weir_http_cors_add(weir_embedded_pipeline(embedded),
                           WEIR_HTTP_CORS_OPTIONS(.origins = origins, .exposed_headers = names)) ==
        0) {
        weir_http_request *preflight = filter_make_request(
            "OPTIONS /x\nOrigin: https://a.example\nAccess-Control-Request-Method: GET\n", 0);
        weir_http_request *request = filter_make_request("GET /\nOrigin: https://a.example\n", 0);
        weir_http_response *response = filter_make_response(200, "A: b\nVary: x\n", 0);

        test_memory_fail_at(n);
        IGNORE_RESULT(weir_embedded_write_inbound(embedded, weir_http_request_msg(preflight)));
        IGNORE_RESULT(weir_embedded_write_inbound(embedded, weir_http_end_static()));
        IGNORE_RESULT(weir_embedded_write_inbound(embedded, weir_http_request_msg(request)));
        IGNORE_RESULT(weir_embedded_write_outbound(embedded, weir_http_response_msg(response)));
    }
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return has_failed;
}

TEST(cors, survives_allocation_failures)
{
    unsigned n = 1;

    while (run_with_failure(n))
        n++;
    assert_true(n > 1);
}
