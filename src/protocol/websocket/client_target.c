/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <weir/http_uri.h>
#include <weir/memory.h>

#include "base/options.h"
#include "protocol/http/chars.h"
#include "protocol/http/http_client.h"
#include "protocol/websocket/client.h"

#define PORT_MAX 65535

/* ---- URL ---- */

static int reject(const char *text, const char *reason)
{
    char buffer[WEIR__HTTP_REDACTED_SIZE];

    return weir__options_reject("websocket", NULL, ".url \"%s\"%s", weir__http_redact(text, buffer),
                                reason);
}

static int parse(const char *text, weir_http_uri *ret_uri)
{
    int port;

    if (text == NULL)
        return weir__options_reject("websocket", NULL, ".url is required");
    if (weir_http_uri_parse(weir_span_of_text(text), ret_uri) < 0 || ret_uri->scheme.data == NULL ||
        ret_uri->host.length == 0)
        return reject(text, " is not a URL");
    if (!weir__http_is_text(ret_uri->scheme, "ws") && !weir__http_is_text(ret_uri->scheme, "wss"))
        return reject(text, ": expected ws or wss");
    if (ret_uri->fragment.data != NULL)
        return reject(text, " has a fragment");
    port = weir_http_uri_port(ret_uri);
    if (port < 1 || port > PORT_MAX)
        return reject(text, ": expected a port from 1 to 65535");
    return 0;
}

/* Appends "host", or "host:port" if the port is not that of the scheme, or always. */
static int append_authority(weir_buf *to, const weir_http_uri *uri, bool has_port)
{
    int port = weir_http_uri_port(uri);
    int err = weir_buf_printf(to, uri->is_ip_literal ? "[%.*s]" : "%.*s", (int)uri->host.length,
                              (const char *)uri->host.data);

    if (err == 0 && (has_port || port != (weir__http_is_text(uri->scheme, "wss") ? 443 : 80)))
        err = weir_buf_printf(to, ":%d", port);
    return err;
}

static int append_target(weir_buf *to, const weir_http_uri *uri)
{
    int err = uri->path.length > 0 ? weir_buf_write_bytes(to, uri->path.data, uri->path.length)
                                   : weir_buf_write_bytes(to, "/", 1);

    if (err == 0 && uri->query.data != NULL)
        err = weir_buf_printf(to, "?%.*s", (int)uri->query.length, (const char *)uri->query.data);
    return err;
}

/* Copies what was appended, and empties the buffer. */
static int take_text(weir_buf *from, int err, char **ret_text)
{
    if (err == 0) {
        *ret_text = weir__http_client_copy(weir_buf_span(from));
        err = *ret_text != NULL ? 0 : -ENOMEM;
    }
    weir_buf_clear(from);
    return err;
}

/* ---- request ---- */

static int create_request(weir__ws_target *target, const weir_http_uri *uri, weir_buf *scratch)
{
    char *path = NULL;
    int err = take_text(scratch, append_target(scratch, uri), &path);

    if (err == 0)
        err = weir_http_request_create("GET", path, &target->request);
    weir_memory_free(path);
    return err;
}

static int add_host(weir_http_headers *headers, const weir_http_uri *uri, weir_buf *scratch)
{
    int err;

    if (weir_http_headers_get(headers, WEIR_HTTP_HOST).data != NULL)
        return 0;
    err = append_authority(scratch, uri, false);
    if (err == 0)
        err = weir_http_headers_add(headers, WEIR_HTTP_HOST, weir_buf_span(scratch));
    weir_buf_clear(scratch);
    return err;
}

static int add_credentials(weir_http_headers *headers, const weir_http_uri *uri)
{
    char *credentials;
    int err;

    if (uri->userinfo.data == NULL ||
        weir_http_headers_get(headers, WEIR_HTTP_AUTHORIZATION).data != NULL)
        return 0;
    err = weir__http_basic_credentials(uri->userinfo, &credentials);
    if (err == -EINVAL)
        return weir__options_reject("websocket", NULL, ".url: wrong user or password");
    if (err < 0)
        return err;
    err = weir_http_headers_add_text(headers, WEIR_HTTP_AUTHORIZATION, credentials);
    weir_memory_free(credentials);
    return err;
}

static int fill(weir__ws_target *target, const weir_http_uri *uri, weir_buf *scratch)
{
    int err = take_text(scratch, append_authority(scratch, uri, true), &target->address);

    target->is_tls = weir__http_is_text(uri->scheme, "wss");
    if (err == 0)
        err = take_text(scratch, weir_buf_write_bytes(scratch, uri->host.data, uri->host.length),
                        &target->host);
    if (err == 0)
        err = weir_buf_printf(scratch, "%s://", target->is_tls ? "wss" : "ws");
    if (err == 0)
        err = append_authority(scratch, uri, false);
    return err < 0 ? err : take_text(scratch, append_target(scratch, uri), &target->url);
}

int weir__ws_target_init(weir__ws_target *target, const char *url, const weir_ws_options *ws,
                         const weir_http_headers *headers)
{
    weir_http_headers *own;
    weir_http_uri uri;
    weir_buf *scratch;
    int err = parse(url, &uri);

    if (err == 0)
        err = weir_buf_create(256, 0, &scratch);
    if (err < 0)
        return err;
    err = fill(target, &uri, scratch);
    if (err == 0)
        err = create_request(target, &uri, scratch);
    if (err == 0) {
        own = weir_http_request_headers(target->request);
        weir__ws_create_key(target->key);
        if (headers != NULL)
            err = weir_http_headers_append(own, headers);
        if (err == 0)
            err = add_host(own, &uri, scratch);
        if (err == 0)
            err = add_credentials(own, &uri);
        if (err == 0)
            err = weir__ws_add_request_fields(own, target->key, ws);
    }
    weir_buf_release(scratch);
    return err;
}

void weir__ws_target_deinit(weir__ws_target *target)
{
    weir_memory_free(target->url);
    weir_memory_free(target->host);
    weir_memory_free(target->address);
    if (target->request != NULL)
        weir_msg_release(weir_http_request_msg(target->request));
}
