/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/proxy_protocol.h>

/* Formatted once for each connection. */
struct client_names {
    char address[WEIR_ADDRESS_TEXT_SIZE];       /* 192.0.2.1, 2001:db8::1 */
    char forwarded[WEIR_ADDRESS_TEXT_SIZE + 8]; /* for=192.0.2.1, for="[2001:db8::1]" */
};

static const weir_attribute key = {.name = "client-names", .free = free};

static struct client_names *make_names(const weir_address *address)
{
    struct client_names *names = calloc(1, sizeof(*names));
    char text[WEIR_ADDRESS_TEXT_SIZE] = "unknown";
    char *port;

    if (names == NULL)
        return NULL;
    if (address != NULL)
        (void)weir_address_format(address, text, sizeof(text));
    port = strrchr(text, ':');
    if (strncmp(text, "unix:", 5) == 0 || strncmp(text, "inproc:", 7) == 0)
        strcpy(text, "unknown");
    else if (port != NULL)
        *port = '\0';
    if (text[0] == '[') {
        (void)snprintf(names->forwarded, sizeof(names->forwarded), "for=\"%s\"", text);
        (void)snprintf(names->address, sizeof(names->address), "%.*s", (int)strlen(text) - 2,
                       text + 1);
    } else {
        (void)snprintf(names->forwarded, sizeof(names->forwarded), "for=%s", text);
        (void)snprintf(names->address, sizeof(names->address), "%s", text);
    }
    return names;
}

static struct client_names *names_of(weir_channel *client)
{
    struct client_names *names = weir_attribute_get(client, &key);
    weir_address address;

    if (names != NULL)
        return names;
    names = make_names(weir_channel_remote_address(client, &address) == 0 ? &address : NULL);
    if (names != NULL && weir_attribute_set(client, &key, names) < 0) {
        free(names);
        names = NULL;
    }
    return names;
}

/* ---- the PROXY protocol ---- */

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_proxy_header *header = weir_proxy_header_of(event);
    struct client_names *names;

    if (header != NULL && !weir_proxy_header_is_local(header)) {
        names = make_names(weir_proxy_header_source(header));
        if (names != NULL && weir_attribute_set(weir_ctx_channel(ctx), &key, names) < 0)
            free(names);
    }
    weir_fire_event(ctx, event);
}

static const weir_handler listener = {.name = "client-address", .event = on_event};

int forwarded_listen(weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &listener, NULL);
}

/* ---- fields ---- */

/* The value of a field; too long if it does not fit. */
struct value {
    char text[1024];
    size_t length;
};

static void put(struct value *value, const void *bytes, size_t length)
{
    if (length > 0 && value->length + length < sizeof(value->text))
        memcpy(value->text + value->length, bytes, length);
    value->length += length;
}

static void put_text(struct value *value, const char *text)
{
    put(value, text, strlen(text));
}

/* Begins with the elements that the field has. */
static void begin(struct value *value, const weir_http_headers *headers, enum weir_http_name name)
{
    weir_span before = weir_http_headers_get(headers, name);

    value->length = 0;
    if (before.length > 0) {
        put(value, before.data, before.length);
        put(value, ", ", 2);
    }
}

static int set(weir_http_headers *headers, enum weir_http_name name, const struct value *value)
{
    return value->length < sizeof(value->text)
               ? weir_http_headers_set(headers, name, weir_span_of(value->text, value->length))
               : -EMSGSIZE;
}

/* The Host of the client goes into a quoted string: a host has no quotes and no backslashes. */
int forwarded_add(weir_http_request *request, weir_channel *client, bool is_tls)
{
    weir_http_headers *headers = weir_http_request_headers(request);
    const struct client_names *names = names_of(client);
    weir_span host = weir_http_headers_get(headers, WEIR_HTTP_HOST);
    const char *proto = is_tls ? "https" : "http";
    struct value value;
    int err;

    if (names == NULL)
        return -ENOMEM;
    begin(&value, headers, WEIR_HTTP_FORWARDED);
    put_text(&value, names->forwarded);
    put_text(&value, ";host=\"");
    put(&value, host.data, host.length);
    put_text(&value, is_tls ? "\";proto=https" : "\";proto=http");
    err = set(headers, WEIR_HTTP_FORWARDED, &value);
    begin(&value, headers, WEIR_HTTP_X_FORWARDED_FOR);
    put_text(&value, names->address);
    if (err == 0)
        err = set(headers, WEIR_HTTP_X_FORWARDED_FOR, &value);
    if (err == 0)
        err = weir_http_headers_set_text(headers, WEIR_HTTP_X_FORWARDED_PROTO, proto);
    begin(&value, headers, WEIR_HTTP_VIA);
    put_text(&value, "1.1 weir");
    return err < 0 ? err : set(headers, WEIR_HTTP_VIA, &value);
}
