/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cookies of a client: a Cookie field for each request, unless the application has set one, and
 * the Set-Cookie fields of each response, redirections included.
 */
#include <errno.h>

#include <weir/http_cookies.h>

#include "protocol/http/http_client.h"

#define MAX_URL 4096

/* `url` has MAX_URL characters. */
static int parse_url(const weir_http_call *call, char *url, weir_http_uri *ret_uri)
{
    size_t length = weir_http_call_format_url(call, url, MAX_URL);

    return length < MAX_URL ? weir_http_uri_parse(weir_span_of(url, length), ret_uri) : -EINVAL;
}

int weir__http_cookies_send(weir_http_call *call)
{
    weir_http_headers *headers = weir_http_request_headers(call->request);
    char url[MAX_URL];
    weir_http_uri uri;
    weir_buf *value;
    int err;

    if (call->client->options.cookies == NULL)
        return 0;
    if (call->has_jar_cookies)
        (void)weir_http_headers_remove(headers, WEIR_HTTP_COOKIE);
    if (weir_http_headers_get(headers, WEIR_HTTP_COOKIE).data != NULL ||
        parse_url(call, url, &uri) < 0)
        return 0;
    err = weir_buf_create(256, 0, &value);
    if (err < 0)
        return err;
    err = weir_http_cookie_jar_write(call->client->options.cookies, &uri, value);
    if (err == 0 && weir_buf_readable(value) > 0) {
        err = weir_http_headers_add(headers, WEIR_HTTP_COOKIE, weir_buf_span(value));
        call->has_jar_cookies = true;
    }
    weir_buf_release(value);
    return err;
}

/* A cookie that the jar refuses is ignored. */
void weir__http_cookies_receive(const weir_http_call *call, const weir_http_response *response)
{
    const weir_http_headers *headers = weir_http_response_headers(response);
    char url[MAX_URL];
    weir_http_uri uri;
    weir_span value;
    size_t index = 0;

    if (call->client->options.cookies == NULL || parse_url(call, url, &uri) < 0)
        return;
    while (weir_http_headers_next(headers, WEIR_HTTP_SET_COOKIE, &index, &value))
        (void)weir_http_cookie_jar_store(call->client->options.cookies, &uri, value);
}
