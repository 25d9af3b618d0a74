/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <weir/http.h>

#include "support/memory.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

static weir_http_request *create(const char *method, const char *target)
{
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create(method, target, &request), 0);
    return request;
}

static void finish(weir_http_request *request)
{
    weir_msg_release(weir_http_request_msg(request));
}

TEST(message, a_request_splits_its_target)
{
    static const struct {
        const char *method, *target, *path, *query, *authority;
    } rows[] = {
        {"GET", "/", "/", "", "h"},
        {"GET", "/a/b?c=d?e", "/a/b", "c=d?e", "h"},
        {"GET", "/a?", "/a", "", "h"},
        {"GET", "http://x:80/a?b", "/a", "b", "x:80"},
        {"GET", "http://x", "", "", "x"},
        {"GET", "http://x?b", "", "b", "x"},
        {"OPTIONS", "*", "*", "", "h"},
        {"CONNECT", "x:443", "", "", "x:443"},
        {"GET", "/http://y/z", "/http://y/z", "", "h"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir_http_request *request = create(rows[i].method, rows[i].target);

        assert_span_text(weir_http_request_authority(request),
                         strcmp(rows[i].authority, "h") == 0 ? "" : rows[i].authority);
        assert_int_equal(
            weir_http_headers_add_text(weir_http_request_headers(request), WEIR_HTTP_HOST, "h"), 0);
        assert_span_text(weir_http_request_method_text(request), rows[i].method);
        assert_span_text(weir_http_request_target(request), rows[i].target);
        assert_span_text(weir_http_request_path(request), rows[i].path);
        assert_span_text(weir_http_request_query(request), rows[i].query);
        assert_span_text(weir_http_request_authority(request), rows[i].authority);
        finish(request);
    }
}

TEST(message, a_request_is_checked)
{
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create("", "/", &request), -EINVAL);
    assert_int_equal(weir_http_request_create("G T", "/", &request), -EINVAL);
    assert_int_equal(weir_http_request_create("GET", "", &request), -EINVAL);
    assert_int_equal(weir_http_request_create("GET", "/a b", &request), -EINVAL);
    assert_int_equal(weir_http_request_create("GET", "/a\r\n", &request), -EINVAL);
    assert_int_equal(weir_http_request_create("GET", "/\xc3\xa4", &request), -EINVAL);
    request = create("BREW", "/pot");
    assert_int_equal(weir_http_request_method(request), WEIR_HTTP_METHOD_OTHER);
    assert_int_equal(weir_http_request_content_length(request), 0);
    assert_int_equal(weir_http_request_set_content_length(request, -2), -EINVAL);
    assert_int_equal(weir_http_request_set_content_length(request, WEIR_HTTP_UNKNOWN_LENGTH), 0);
    assert_int_equal(weir_http_request_content_length(request), WEIR_HTTP_UNKNOWN_LENGTH);
    assert_int_equal(weir_http_request_set_target(request, weir_span_of_text("/x?y")), 0);
    assert_int_equal(weir_http_request_set_target(request, weir_span_of_text("")), -EINVAL);
    assert_span_text(weir_http_request_query(request), "y");
    assert_false(weir_http_request_expects_continue(request));
    assert_int_equal(weir_http_request_version(request), WEIR_HTTP_1_1);
    assert_null(weir_http_response_of(weir_http_request_msg(request)));
    assert_ptr_equal(weir_http_request_of(weir_http_request_msg(request)), request);
    finish(request);
}

TEST(message, a_response_has_a_status)
{
    weir_http_response *response = NULL;

    assert_int_equal(weir_http_response_create(99, &response), -EINVAL);
    assert_int_equal(weir_http_response_create(600, &response), -EINVAL);
    assert_int_equal(weir_http_response_create(404, &response), 0);
    assert_span_text(weir_http_response_reason(response), "Not Found");
    assert_int_equal(weir_http_response_set_status(response, 99), -EINVAL);
    assert_int_equal(weir_http_response_set_status(response, 201), 0);
    assert_int_equal(weir_http_response_status(response), 201);
    assert_span_text(weir_http_response_reason(response), "Created");
    assert_false(weir_http_response_closes(response));
    weir_http_response_set_closes(response, true);
    assert_true(weir_http_response_closes(response));
    assert_int_equal(weir_http_response_set_content_length(response, 5), 0);
    assert_int_equal(weir_http_response_content_length(response), 5);
    weir_msg_release(weir_http_response_msg(response));
}

TEST(message, an_end_may_have_trailers)
{
    weir_msg *without = weir_http_end_static();
    weir_http_end *end = NULL;

    assert_null(weir_http_end_trailers(weir_http_end_of(without)));
    weir_msg_release(without);
    assert_ptr_equal(weir_http_end_static(), without); /* released more often than retained */
    weir_msg_release(without);
    assert_int_equal(weir_http_end_create(&end), 0);
    assert_int_equal(weir_http_headers_add_text(weir_http_end_trailers(end), WEIR_HTTP_ETAG, "x"),
                     0);
    assert_fields(weir_http_end_trailers(end), "ETag: x");
    weir_msg_release(weir_http_end_msg(end));
}

TEST(message, creation_survives_a_lack_of_memory)
{
    weir_http_request *request = NULL;
    char target[3000];

    memset(target, '/', sizeof(target) - 1);
    target[sizeof(target) - 1] = '\0';
    for (unsigned n = 1;; n++) {
        int err;

        test_memory_fail_at(n);
        err = weir_http_request_create("GET", target, &request);
        if (!test_memory_failed())
            break;
        if (err == 0)
            finish(request);
        else
            assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    finish(request);
}
