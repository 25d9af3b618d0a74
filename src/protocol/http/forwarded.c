/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/forwarded.h"

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/memory.h>
#include <weir/proxy_protocol.h>

#include "protocol/http/chars.h"
#include "protocol/http/client_address.h"
#include "protocol/http/parameters.h"

/* ---- addresses ---- */

weir_span weir__http_address_host(const weir_address *address, char text[WEIR_ADDRESS_TEXT_SIZE])
{
    weir_span host;
    int family = weir_address_family(address);

    host = weir_span_of_text(weir_address_format(address, text, WEIR_ADDRESS_TEXT_SIZE));
    if (family != AF_INET && family != AF_INET6)
        return host;
    while (host.length > 0 && host.data[host.length - 1] != ':')
        host.length--;
    if (host.length > 0)
        host.length--;
    if (family == AF_INET6 && host.length > 2) /* [::1] */
        host = weir_span_of(host.data + 1, host.length - 2);
    return host;
}

/* The peer of a connection as it is reported, formatted once. */
struct peer {
    bool is_ipv6;
    size_t length;
    char text[WEIR_ADDRESS_TEXT_SIZE];
};

static const weir_attribute peer_key = {.name = "weir.http_peer", .free = weir_memory_free};

/* An IPv4 address that a dual-stack listener has mapped is one again. */
static weir_span format_peer(weir_channel *channel, char text[WEIR_ADDRESS_TEXT_SIZE],
                             bool *ret_is_ipv6)
{
    static const char mapped[] = "::ffff:";
    weir_address address;
    weir_span host;
    int family;

    *ret_is_ipv6 = false;
    if (weir_proxy_source(channel, &address) < 0)
        return weir_span_of_text("unknown");
    family = weir_address_family(&address);
    if (family != AF_INET && family != AF_INET6)
        return weir_span_of_text("unknown");
    host = weir__http_address_host(&address, text);
    if (host.length > strlen(mapped) && memcmp(host.data, mapped, strlen(mapped)) == 0 &&
        weir_span_find(host, '.') >= 0)
        return weir__http_span_from(host, strlen(mapped));
    *ret_is_ipv6 = family == AF_INET6;
    return host;
}

static int find_peer(weir_channel *channel, const struct peer **ret_peer)
{
    struct peer *peer = weir_attribute_get(channel, &peer_key);
    weir_span host;
    int err;

    *ret_peer = peer;
    if (peer != NULL)
        return 0;
    peer = weir_memory_alloc(sizeof(*peer));
    if (peer == NULL)
        return -ENOMEM;
    host = format_peer(channel, peer->text, &peer->is_ipv6);
    peer->length = host.length;
    memmove(peer->text, host.data, host.length);
    err = weir_attribute_set(channel, &peer_key, peer);
    if (err < 0)
        weir_memory_free(peer);
    else
        *ret_peer = peer;
    return err;
}

/* ---- encrypted connections ---- */

static const weir_attribute encrypted = {.name = "weir.http_encrypted"};

int weir__http_set_encrypted(weir_channel *channel)
{
    static char yes;

    return weir_attribute_set(channel, &encrypted, &yes);
}

bool weir__http_is_encrypted(weir_channel *channel)
{
    return weir_attribute_get(channel, &encrypted) != NULL;
}

/* ---- values ---- */

/* A malformed list is not continued: a quote that is never closed would swallow what follows. */
static bool is_well_formed(const weir_http_headers *headers)
{
    weir__http_parameter parameter;
    weir_span line, element;
    size_t index = 0;
    int more = 0;

    while (weir_http_headers_next(headers, WEIR_HTTP_FORWARDED, &index, &line))
        while (weir__http_list_next(&line, &element)) {
            do {
                more = weir__http_parameters_next(&element, &parameter);
            } while (more > 0);
            if (more < 0)
                return false;
        }
    return true;
}

/* Of the request that came and of the one that is sent on. What the first one has counts: a client
 * could name a field of a proxy between it and here in Connection, and so have it removed. */
struct report {
    weir_buf *value;
    const weir_http_headers *from;
    weir_http_headers *to;
};

/* Begins a value with all that the field has, in order. */
static int begin(const struct report *report, enum weir_http_name name)
{
    weir_span line;
    size_t index = 0;
    int err = 0;

    weir_buf_clear(report->value);
    while (err == 0 && weir_http_headers_next(report->from, name, &index, &line)) {
        if (line.length == 0)
            continue;
        err = weir_buf_write_bytes(report->value, line.data, line.length);
        if (err == 0)
            err = weir_buf_write_string(report->value, ", ");
    }
    return err;
}

static int set(const struct report *report, enum weir_http_name name)
{
    return weir_http_headers_set(report->to, name, weir_buf_span(report->value));
}

static int put(const struct report *report, const char *text)
{
    return weir_buf_write_string(report->value, text);
}

static int put_span(const struct report *report, weir_span text)
{
    return weir_buf_write_bytes(report->value, text.data, text.length);
}

static weir_span text_of(const struct peer *peer)
{
    return weir_span_of(peer->text, peer->length);
}

static int add_forwarded(const struct report *report, const struct peer *peer, weir_span host,
                         const char *proto)
{
    int err = 0;

    if (is_well_formed(report->from))
        err = begin(report, WEIR_HTTP_FORWARDED);
    if (err == 0)
        err = put(report, peer->is_ipv6 ? "for=\"[" : "for=");
    if (err == 0)
        err = put_span(report, text_of(peer));
    if (err == 0 && peer->is_ipv6)
        err = put(report, "]\"");
    if (err == 0 && host.length > 0) { /* an authority has no quotes and no backslashes */
        err = put(report, ";host=\"");
        if (err == 0)
            err = put_span(report, host);
        if (err == 0)
            err = put(report, "\"");
    }
    if (err == 0)
        err = put(report, ";proto=");
    if (err == 0)
        err = put(report, proto);
    return err < 0 ? err : set(report, WEIR_HTTP_FORWARDED);
}

static int add_for(const struct report *report, const struct peer *peer)
{
    int err = begin(report, WEIR_HTTP_X_FORWARDED_FOR);

    if (err == 0)
        err = put_span(report, text_of(peer));
    return err < 0 ? err : set(report, WEIR_HTTP_X_FORWARDED_FOR);
}

static int add_via(const struct report *report, enum weir_http_version version, const char *via)
{
    int err = via[0] != '\0' ? begin(report, WEIR_HTTP_VIA) : 0;

    if (via[0] == '\0')
        return 0;
    if (err == 0)
        err = put(report, version == WEIR_HTTP_1_0 ? "1.0 " : "1.1 ");
    if (err == 0)
        err = put(report, via);
    return err < 0 ? err : set(report, WEIR_HTTP_VIA);
}

/* Sets X-Forwarded-Proto and X-Forwarded-Host, unless a trusted proxy has set them: other peers may
 * have forged them. They are always set again, because Connection may have named them. */
static int add_origin(const struct report *report, weir_channel *channel, weir_span host,
                      const char *proto)
{
    static const char name[] = "X-Forwarded-Host";
    bool is_from_proxy = weir__http_is_from_proxy(channel);
    weir_span given_host = weir_http_headers_get_named(report->from, name);
    weir_span given_proto = weir_http_headers_get(report->from, WEIR_HTTP_X_FORWARDED_PROTO);
    int err;

    if (is_from_proxy && given_host.length > 0)
        host = given_host;
    (void)weir_http_headers_remove_named(report->to, name);
    err = weir_http_headers_set(report->to, WEIR_HTTP_X_FORWARDED_PROTO,
                                is_from_proxy && given_proto.length > 0 ? given_proto
                                                                        : weir_span_of_text(proto));
    if (err == 0 && host.length > 0)
        err = weir_http_headers_add_named(report->to, weir_span_of_text(name), host);
    return err;
}

int weir__http_forwarded_add(weir_http_headers *headers, const weir_http_request *from,
                             weir_channel *channel, const char *via)
{
    struct report report = {.from = weir_http_request_headers(from), .to = headers};
    const char *proto = weir__http_is_encrypted(channel) ? "https" : "http";
    weir_span host = weir_http_request_authority(from);
    const struct peer *peer;
    int err = find_peer(channel, &peer);

    if (err == 0)
        err = weir_buf_create(256, 0, &report.value);
    if (err < 0)
        return err;
    err = add_forwarded(&report, peer, host, proto);
    if (err == 0)
        err = add_for(&report, peer);
    if (err == 0)
        err = add_origin(&report, channel, host, proto);
    if (err == 0)
        err = add_via(&report, weir_http_request_version(from), via);
    weir_buf_release(report.value);
    return err;
}
