/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of a client: their URL, the fields that the client adds, and redirections by the rules
 * of the Fetch standard ("HTTP-redirect fetch").
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "protocol/http/http_client.h"

/* ---- URLs ---- */

static int add_credentials(weir_http_request *request, weir_span userinfo)
{
    weir_http_headers *headers = weir_http_request_headers(request);
    char *credentials;
    int err;

    if (userinfo.length == 0 ||
        weir_http_headers_get(headers, WEIR_HTTP_AUTHORIZATION).data != NULL)
        return 0;
    err = weir__http_basic_credentials(userinfo, &credentials);
    if (err == 0) {
        err = weir_http_headers_add_text(headers, WEIR_HTTP_AUTHORIZATION, credentials);
        weir_memory_free(credentials);
    }
    return err;
}

/* The path and the query of a URL are neighbours; a URL may have neither. */
static int set_target(weir_http_request *request, const weir_http_uri *uri)
{
    weir_span target = uri->path;
    weir_buf *buf;
    int err;

    if (uri->query.data != NULL)
        target.length = (size_t)(uri->query.data + uri->query.length - target.data);
    if (target.length > 0 && target.data[0] == '/')
        return weir_http_request_set_target(request, target);
    err = weir_buf_create(target.length + 1, 0, &buf);
    if (err < 0)
        return err;
    err = weir_buf_write_u8(buf, '/');
    if (err == 0 && target.length > 0)
        err = weir_buf_write_bytes(buf, target.data, target.length);
    if (err == 0)
        err = weir_http_request_set_target(request, weir_buf_span(buf));
    weir_buf_release(buf);
    return err;
}

int weir__http_call_take_url(weir_http_request *request, weir_span url,
                             weir__http_origin_key *ret_key)
{
    weir_http_uri uri;
    int err;

    if (weir_http_uri_parse(url, &uri) < 0)
        return -EINVAL;
    err = weir__http_origin_key_of(&uri, ret_key);
    if (err == 0)
        err = set_target(request, &uri);
    return err < 0 ? err : add_credentials(request, uri.userinfo);
}

/* ---- the fields of the client ---- */

static int add_missing(weir_http_headers *headers, enum weir_http_name name, const char *value)
{
    if (value == NULL || value[0] == '\0' || weir_http_headers_get(headers, name).data != NULL)
        return 0;
    return weir_http_headers_add_text(headers, name, value);
}

/* The absolute form: "http://host:port/path". */
static int set_absolute_target(weir_http_call *call)
{
    weir_span target = weir_http_request_target(call->request);
    weir_buf *url;
    int err = weir_buf_create(call->origin->length + target.length, 0, &url);

    if (err < 0)
        return err;
    err = weir_buf_write_string(url, "http://");
    if (err >= 0)
        err = weir_buf_write_string(url, call->origin->host_field);
    if (err >= 0)
        err = weir_buf_write_bytes(url, target.data, target.length);
    if (err == 0)
        err = weir_http_request_set_target(call->request, weir_buf_span(url));
    weir_buf_release(url);
    return err;
}

int weir__http_call_complete_request(weir_http_call *call)
{
    const weir_http_client *client = call->client;
    weir_http_headers *headers = weir_http_request_headers(call->request);
    bool is_for_proxy = client->proxy == WEIR__HTTP_PROXY_HTTP && !call->origin->is_tls;
    int err = add_missing(headers, WEIR_HTTP_HOST, call->origin->host_field);

    if (err == 0)
        err = add_missing(headers, WEIR_HTTP_USER_AGENT, client->user_agent);
    /* A part of coded content cannot be decoded. */
    if (err == 0 && weir_http_headers_get(headers, WEIR_HTTP_RANGE).data == NULL)
        err = add_missing(headers, WEIR_HTTP_ACCEPT_ENCODING, client->accept_encoding);
    if (err == 0)
        err = weir__http_cookies_send(call);
    if (err == 0 && is_for_proxy)
        err = add_missing(headers, WEIR_HTTP_PROXY_AUTHORIZATION, client->proxy_authorization);
    if (err == 0 && is_for_proxy)
        err = set_absolute_target(call);
    return err;
}

/* ---- redirections ---- */

static bool is_redirection(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Whether the redirected request is a GET. */
static bool becomes_get(enum weir_http_method method, int status)
{
    if (status == 303)
        return method != WEIR_HTTP_METHOD_GET && method != WEIR_HTTP_METHOD_HEAD;
    return (status == 301 || status == 302) && method == WEIR_HTTP_METHOD_POST;
}

static int resolve(weir_http_call *call, weir_span location, char **ret_url)
{
    char base[4096];
    size_t length = weir_http_call_format_url(call, base, sizeof(base));
    weir_buf *url;
    int err;

    if (length >= sizeof(base))
        return WEIR_ETOOLONG;
    err = weir_buf_create(length + location.length, 0, &url);
    if (err < 0)
        return err;
    err = weir_http_uri_resolve(weir_span_of(base, length), location, url);
    if (err == 0) {
        *ret_url = weir__http_client_copy(weir_buf_span(url));
        err = *ret_url != NULL ? 0 : -ENOMEM;
    }
    weir_buf_release(url);
    return err;
}

static int fail(weir_http_call *call, int err, const char *detail)
{
    weir__http_call_fail(call, err, detail);
    return err;
}

int weir__http_redirect_check(weir_http_call *call, const weir_http_response *response)
{
    int status = weir_http_response_status(response);
    weir_span location =
        weir_http_headers_get(weir_http_response_headers(response), WEIR_HTTP_LOCATION);
    bool keeps_content = !becomes_get(weir_http_request_method(call->request), status);
    int err;

    if (!is_redirection(status) || location.data == NULL || call->max_redirects == WEIR_OFF)
        return 0;
    if (call->redirects >= call->max_redirects)
        return fail(call, -ELOOP, "too many redirections");
    if (keeps_content && call->streaming == WEIR__HTTP_CALL_BEGUN)
        return fail(call, -ENOTSUP, "a redirection of streamed content, which cannot be repeated");
    weir_memory_free(call->location);
    call->location = NULL;
    err = resolve(call, location, &call->location);
    if (err < 0)
        return fail(call, err, err == WEIR_EMALFORMED ? "malformed Location" : NULL);
    call->redirect_status = status;
    return 1;
}

static void drop_content(weir_http_call *call)
{
    static const enum weir_http_name names[] = {
        WEIR_HTTP_CONTENT_ENCODING, WEIR_HTTP_CONTENT_LANGUAGE, WEIR_HTTP_CONTENT_LOCATION,
        WEIR_HTTP_CONTENT_TYPE,     WEIR_HTTP_CONTENT_LENGTH,   WEIR_HTTP_EXPECT};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)weir_http_headers_remove(weir_http_request_headers(call->request), names[i]);
    weir__http_call_drop_pending(call);
    weir_msg_release(call->content);
    call->content = NULL;
    if (weir__http_call_streams(call))
        call->streaming = WEIR__HTTP_CALL_DROPPED;
}

/* A GET with the fields of the request. */
static int make_get(weir_http_call *call)
{
    weir_http_request *request;
    int err;

    drop_content(call);
    err = weir_http_request_create("GET", "/", &request);
    if (err < 0)
        return err;
    err = weir_http_headers_append(weir_http_request_headers(request),
                                   weir_http_request_headers(call->request));
    if (err < 0) {
        weir_msg_release(weir_http_request_msg(request));
        return err;
    }
    weir_msg_release(weir_http_request_msg(call->request));
    call->request = request;
    call->is_idempotent = true;
    return 0;
}

static bool is_same_origin(const weir_http_call *call, const weir__http_origin_key *key)
{
    return call->origin->length == key->length &&
           memcmp(call->origin->text, key->text, key->length) == 0;
}

int weir__http_redirect_apply(weir_http_call *call, weir__http_origin_key *ret_key)
{
    weir_http_headers *headers;
    weir_http_uri uri;
    int err = 0;

    call->redirects++;
    call->discarded = 0;
    call->received = 0;
    call->retries = 0;
    if (becomes_get(weir_http_request_method(call->request), call->redirect_status))
        err = make_get(call);
    if (err < 0)
        return err;
    if (weir_http_uri_parse(weir_span_of_text(call->location), &uri) < 0)
        return WEIR_EMALFORMED;
    err = weir__http_origin_key_of(&uri, ret_key);
    if (err < 0)
        return err;
    headers = weir_http_request_headers(call->request);
    (void)weir_http_headers_remove(headers, WEIR_HTTP_PROXY_AUTHORIZATION);
    if (!is_same_origin(call, ret_key)) {
        (void)weir_http_headers_remove(headers, WEIR_HTTP_HOST);
        (void)weir_http_headers_remove(headers, WEIR_HTTP_AUTHORIZATION);
        (void)weir_http_headers_remove(headers, WEIR_HTTP_COOKIE);
    }
    return weir__http_call_take_url(call->request, weir_span_of_text(call->location), ret_key);
}
