/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cookies: what a jar sends to the server that set a cookie has its name and value; a cookie that
 * may be set is parsed as it was. Input: lines, each a Set-Cookie field; all of it as a Cookie
 * field.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "protocol/http/cookie_jar.h"

#define NOW INT64_C(1794829772)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static const char *copy(weir_span text)
{
    char *copied = malloc(text.length + 1);

    expect(copied != NULL);
    if (text.length > 0)
        memcpy(copied, text.data, text.length);
    copied[text.length] = '\0';
    return copied;
}

/* Sets a cookie with the name, value and path of a parsed one. */
static void check_set(const weir_http_set_cookie *cookie)
{
    const char *name = copy(cookie->name), *value = copy(cookie->value), *path = copy(cookie->path);
    weir_http_response *response = NULL;
    weir_http_headers *headers;
    weir_http_set_cookie again;
    int err;

    expect(weir_http_response_create(200, &response) == 0);
    headers = weir_http_response_headers(response);
    err = weir_http_cookie_set(headers,
                               WEIR_HTTP_COOKIE_OPTIONS(.name = name, .value = value, .path = path,
                                                        .secure = cookie->secure));
    if (err == 0) {
        expect(weir_http_set_cookie_parse(weir_http_headers_get(headers, WEIR_HTTP_SET_COOKIE),
                                          &again) == 0);
        expect(weir_span_equal(again.name, weir_span_of_text(name)));
        expect(weir_span_equal(again.value, weir_span_of_text(value)));
        expect(weir_span_equal(again.path, weir_span_of_text(path)));
        expect(again.secure == cookie->secure);
    }
    weir_msg_release(weir_http_response_msg(response));
    free((void *)(uintptr_t)name);
    free((void *)(uintptr_t)value);
    free((void *)(uintptr_t)path);
}

/* True if the field has the cookie. */
static bool has(weir_span field, weir_span name, weir_span value)
{
    for (size_t at = 0; at + name.length + 1 + value.length <= field.length; at++)
        if (memcmp(field.data + at, name.data, name.length) == 0 &&
            field.data[at + name.length] == '=' &&
            (value.length == 0 ||
             memcmp(field.data + at + name.length + 1, value.data, value.length) == 0))
            return true;
    return false;
}

static void check_line(weir_http_cookie_jar *jar, const weir_http_uri *uri, weir_span line)
{
    weir_http_set_cookie cookie;
    weir_buf *sent = NULL;
    size_t before = weir_http_cookie_jar_count(jar);
    int err = weir__http_cookie_jar_store_at(jar, uri, line, NOW);

    expect(err == 0 || err == -EPERM || err == WEIR_EMALFORMED || err == WEIR_ETOOLONG);
    if (weir_http_set_cookie_parse(line, &cookie) != 0) {
        expect(err != 0);
        return;
    }
    check_set(&cookie);
    expect(weir_buf_create(0, 0, &sent) == 0);
    expect(weir__http_cookie_jar_write_at(jar, uri, sent, NOW) == 0);
    if (err == 0 && weir_http_cookie_jar_count(jar) > before && cookie.path.length == 0 &&
        weir_buf_readable(sent) < 4000)
        expect(has(weir_buf_span(sent), cookie.name, cookie.value));
    weir_buf_release(sent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_span rest = weir_span_of(data, size), name, value;
    weir_http_cookie_jar *jar = NULL;
    weir_http_uri uri;
    ssize_t length;

    weir_log_set_level(WEIR_LOG_OFF); /* of cookies that are refused */
    while (weir_http_cookie_next(&rest, &name, &value))
        expect(name.length > 0 && value.data != NULL);
    expect(weir_http_cookie_jar_create(
               WEIR_HTTP_COOKIE_JAR_OPTIONS(.max_cookies = 8, .max_per_domain = 4), &jar) == 0);
    expect(weir_http_uri_parse(weir_span_of_text("https://www.example.org/a/b"), &uri) == 0);
    rest = weir_span_of(data, size);
    while (rest.length > 0) {
        length = weir_span_find(rest, '\n');
        length = length < 0 ? (ssize_t)rest.length : length;
        check_line(jar, &uri, weir_span_of(rest.data, (size_t)length));
        length += length < (ssize_t)rest.length;
        rest = weir_span_of(rest.data + length, rest.length - (size_t)length);
    }
    expect(weir_http_cookie_jar_count(jar) <= 8);
    weir_http_cookie_jar_release(jar);
    return 0;
}
