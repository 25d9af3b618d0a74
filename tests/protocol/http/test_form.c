/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_body.h>

#include "support/memory.h"
#include "support/protocol/http/exchange_fixture.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

static weir_http_form *form_of(const char *text)
{
    weir_http_form *form = NULL;

    assert_int_equal(weir_http_form_create(weir_span_of_text(text), 0, &form), 0);
    return form;
}

TEST(form, is_decoded)
{
    weir_http_form *form = form_of("a=1&b+c=%26%3D&&d&a=2");

    assert_int_equal(weir_http_form_count(form), 4);
    assert_span_text(weir_http_form_name(form, 1), "b c");
    assert_span_text(weir_http_form_value(form, 1), "&=");
    assert_span_text(weir_http_form_value(form, 2), "");
    assert_span_text(weir_http_form_get(form, "a"), "1");
    assert_span_text(weir_http_form_get(form, "d"), "");
    assert_null(weir_http_form_get(form, "e").data);
    assert_null(weir_http_form_name(form, 4).data);
    assert_null(weir_http_form_value(form, 4).data);
    weir_http_form_release(form);
    weir_http_form_release(NULL);
}

TEST(form, may_be_empty)
{
    weir_http_form *form = form_of("");

    assert_int_equal(weir_http_form_count(form), 0);
    weir_http_form_release(form);
}

TEST(form, is_refused_if_malformed)
{
    weir_http_form *form = NULL;

    assert_int_equal(weir_http_form_create(weir_span_of_text("a=%"), 0, &form), WEIR_EMALFORMED);
    assert_int_equal(weir_http_form_create(weir_span_of_text("b=1&%zz"), 0, &form),
                     WEIR_EMALFORMED);
}

TEST(form, has_a_limit)
{
    weir_http_form *form = NULL;

    assert_int_equal(weir_http_form_create(weir_span_of_text("a&b&c"), 2, &form), WEIR_ETOOLONG);
    assert_int_equal(weir_http_form_create(weir_span_of_text("a&&&b"), 2, &form), 0);
    weir_http_form_release(form);
    test_memory_fail_at(1);
    assert_int_equal(weir_http_form_create(weir_span_of_text("a"), 2, &form), -ENOMEM);
    test_memory_fail_at(0);
}

static void on_form(weir_http_exchange *exchange, void *user_data)
{
    weir_http_form *form = NULL;
    char text[64] = "";

    (void)user_data;
    if (weir_http_form_read(exchange, &form) != 0)
        return;
    memcpy(text, weir_http_form_get(form, "a").data, weir_http_form_get(form, "a").length);
    assert_int_equal(weir_http_respond_text(exchange, 200, text), 0);
    weir_http_form_release(form);
}

static void assert_answer(const char *target, const char *type, const char *content,
                          const char *expected)
{
    static const weir_http_route routes[] = {
        {"POST", "/", on_form}, {"POST", "/stream", on_form, .streaming = true}, {0}};
    weir_embedded *embedded = exchange_open(routes);
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create("POST", target, &request), 0);
    assert_int_equal(weir_http_request_set_content_length(request, (int64_t)strlen(content)), 0);
    assert_int_equal(weir_http_headers_add_text(weir_http_request_headers(request),
                                                WEIR_HTTP_CONTENT_TYPE, type),
                     0);
    (void)weir_embedded_write_inbound(embedded, weir_http_request_msg(request));
    exchange_put_content(embedded, content);
    exchange_put_end(embedded);
    assert_exchange_sent(embedded, expected);
    weir_embedded_release(embedded);
}

TEST(form, of_a_request_is_read)
{
    static const char type[] = "application/x-www-form-urlencoded";

    assert_answer("/", type, "a=1", "200(1) | 1 | end");
    assert_answer("/", "Application/X-WWW-form-urlencoded; charset=utf-8", "a=b+c",
                  "200(3) | b c | end");
    assert_answer("/", type, "a=%", "400(12) | Bad Request\n | end");
    assert_answer("/", "text/plain", "a=1", "415(23) | Unsupported Media Type\n | end");
    assert_answer("/stream", type, "a=1", "500(22) | Internal Server Error\n | end");
}
