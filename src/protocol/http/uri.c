/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URIs by RFC 3986. The text is taken apart by its delimiters, from the end: "#", "?", ":", "//";
 * then each part is checked.
 */
#include <weir/http_uri.h>

#include "protocol/http/chars.h"

#define PCHAR (WEIR__HTTP_UNRESERVED | WEIR__HTTP_SUB_DELIM | WEIR__HTTP_COLON_AT)
#define REG_NAME (WEIR__HTTP_UNRESERVED | WEIR__HTTP_SUB_DELIM)
#define MAX_PORT 65535
#define MAX_PORT_DIGITS 5
#define IPV6_GROUPS 8

static bool is_missing(weir_span part)
{
    return part.data == NULL;
}

/* True if the text has only characters of the classes, of `extra`, and percent-encoded bytes. */
static bool is_encoded(weir_span text, unsigned classes, const char *extra)
{
    for (size_t i = 0; i < text.length; i++) {
        const uint8_t *at = text.data + i;

        if (weir__http_char_is(*at, classes))
            continue;
        if (*at == '%') {
            if (text.length - i < 3 || !weir__http_char_is(at[1], WEIR__HTTP_HEX) ||
                !weir__http_char_is(at[2], WEIR__HTTP_HEX))
                return false;
            i += 2;
        } else if (*at == '\0' || strchr(extra, *at) == NULL) {
            return false;
        }
    }
    return true;
}

/* ---- authority ---- */

/* Four numbers up to 255, without leading zeros. */
static bool is_ipv4(weir_span text)
{
    weir_span rest = text, number;
    unsigned value;
    int count = 0;

    while (!is_missing(rest)) {
        number = weir__http_cut(&rest, '.');
        if (number.length == 0 || number.length > 3 ||
            !weir__http_chars_are(number, WEIR__HTTP_DIGIT) ||
            (number.data[0] == '0' && number.length > 1))
            return false;
        value = 0;
        for (size_t i = 0; i < number.length; i++)
            value = 10 * value + (number.data[i] - (unsigned)'0');
        if (value > 255)
            return false;
        count++;
    }
    return count == 4;
}

/* Eight groups of up to four hexadecimal digits. The last two may be an IPv4 address; "::" stands
 * for one or more, once. */
static bool is_ipv6(weir_span text)
{
    size_t at = 0, start, groups = 0;
    bool has_gap = false;

    if (text.length >= 2 && text.data[0] == ':' && text.data[1] == ':') {
        has_gap = true;
        at = 2;
    }
    while (at < text.length) {
        for (start = at; at < text.length && weir__http_char_is(text.data[at], WEIR__HTTP_HEX);)
            at++;
        if (at < text.length && text.data[at] == '.') {
            groups += 2;
            at = text.length;
            if (!is_ipv4(weir__http_span_from(text, start)))
                return false;
            break;
        }
        if (at == start || at - start > 4 || ++groups > IPV6_GROUPS)
            return false;
        if (at == text.length)
            break;
        if (text.data[at++] != ':' || at == text.length)
            return false;
        if (text.data[at] == ':') {
            if (has_gap)
                return false;
            has_gap = true;
            at++;
        }
    }
    return has_gap ? groups < IPV6_GROUPS : groups == IPV6_GROUPS;
}

/* "v1.something": a future version of IP. */
static bool is_ip_future(weir_span text)
{
    weir_span address = text, version = weir__http_cut(&address, '.');

    return version.length > 1 && (version.data[0] | 0x20) == 'v' &&
           weir__http_chars_are(weir__http_span_from(version, 1), WEIR__HTTP_HEX) &&
           address.length > 0 && is_encoded(address, REG_NAME, ":") &&
           weir_span_find(address, '%') < 0;
}

/* ":" and a port, or nothing. */
static int parse_port(weir_span text, int *ret_port)
{
    int port = 0;

    *ret_port = -1;
    if (text.length == 0 || (text.length == 1 && text.data[0] == ':'))
        return 0;
    if (text.data[0] != ':' || text.length > 1 + MAX_PORT_DIGITS)
        return WEIR_EMALFORMED;
    for (size_t i = 1; i < text.length; i++) {
        if (!weir__http_char_is(text.data[i], WEIR__HTTP_DIGIT))
            return WEIR_EMALFORMED;
        port = 10 * port + (text.data[i] - '0');
    }
    *ret_port = port;
    return port <= MAX_PORT ? 0 : WEIR_EMALFORMED;
}

/* "host:port" or "[address]:port". */
static int parse_host(weir_span text, weir_http_uri *uri)
{
    size_t length = 0;
    ssize_t bracket;

    if (text.length > 0 && text.data[0] == '[') {
        bracket = weir_span_find(text, ']');
        if (bracket < 0)
            return WEIR_EMALFORMED;
        uri->host = weir_span_of(text.data + 1, (size_t)bracket - 1);
        uri->is_ip_literal = true;
        if (!is_ipv6(uri->host) && !is_ip_future(uri->host))
            return WEIR_EMALFORMED;
        return parse_port(weir__http_span_from(text, (size_t)bracket + 1), &uri->port);
    }
    while (length < text.length && text.data[length] != ':')
        length++;
    uri->host = weir_span_of(text.data, length);
    if (!is_encoded(uri->host, REG_NAME, ""))
        return WEIR_EMALFORMED;
    return parse_port(weir__http_span_from(text, length), &uri->port);
}

static int parse_authority(weir_span text, weir_http_uri *uri)
{
    ssize_t at = weir_span_find(text, '@');

    uri->authority = text;
    if (at >= 0) {
        uri->userinfo = weir_span_of(text.data, (size_t)at);
        if (!is_encoded(uri->userinfo, REG_NAME, ":"))
            return WEIR_EMALFORMED;
        text = weir__http_span_from(text, (size_t)at + 1);
    }
    return parse_host(text, uri);
}

int weir_http_authority_parse(weir_span text, weir_http_uri *ret_uri)
{
    weir_http_uri uri = {.authority = text, .path = {(const uint8_t *)"", 0}, .port = -1};
    int err = parse_host(text, &uri);

    if (err)
        return err;
    if (uri.host.length == 0)
        return WEIR_EMALFORMED;
    *ret_uri = uri;
    return 0;
}

static bool parses(weir_span text)
{
    weir_http_uri uri;

    return weir_http_authority_parse(text, &uri) == 0;
}

/* Usual names, perhaps with a port of up to four digits, are not taken apart. */
bool weir_http_authority_is_valid(weir_span text)
{
    const uint8_t *at = text.data, *end = text.data + text.length;
    const uint8_t *digits;

    while (at < end && weir__http_char_is(*at, WEIR__HTTP_UNRESERVED))
        at++;
    if (at == end)
        return text.length > 0;
    if (at == text.data || *at != ':')
        return parses(text);
    digits = ++at;
    while (at < end && weir__http_char_is(*at, WEIR__HTTP_DIGIT))
        at++;
    return (at == end && at > digits && at - digits <= 4) || parses(text);
}

/* ---- URIs ---- */

static bool is_scheme(weir_span text)
{
    return text.length > 0 && weir__http_char_is(text.data[0], WEIR__HTTP_ALPHA) &&
           is_encoded(text, WEIR__HTTP_ALPHA | WEIR__HTTP_DIGIT, "+-.") &&
           weir_span_find(text, '%') < 0;
}

/* Cuts the part behind the first `mark` off the text. Missing if there is no mark. */
static weir_span cut_behind(weir_span *text, uint8_t mark)
{
    weir_span behind = *text;

    *text = weir__http_cut(&behind, mark);
    return behind;
}

/* Cuts "scheme:" off the text. A relative reference has no ":" in its first segment. */
static int cut_scheme(weir_span *text, weir_http_uri *uri)
{
    ssize_t colon = weir_span_find(*text, ':'), slash = weir_span_find(*text, '/');

    if (colon < 0 || (slash >= 0 && slash < colon))
        return 0;
    uri->scheme = weir_span_of(text->data, (size_t)colon);
    *text = weir__http_span_from(*text, (size_t)colon + 1);
    return is_scheme(uri->scheme) ? 0 : WEIR_EMALFORMED;
}

/* Cuts "//authority" off the text. */
static int cut_authority(weir_span *text, weir_http_uri *uri)
{
    weir_span authority;
    size_t length = 0;

    if (text->length < 2 || text->data[0] != '/' || text->data[1] != '/')
        return 0;
    authority = weir__http_span_from(*text, 2);
    while (length < authority.length && authority.data[length] != '/')
        length++;
    *text = weir__http_span_from(authority, length);
    authority.length = length;
    return parse_authority(authority, uri);
}

/* The port of a scheme of HTTP or WebSocket; -1 for another one. */
static int scheme_port(weir_span scheme)
{
    if (weir__http_is_text(scheme, "http") || weir__http_is_text(scheme, "ws"))
        return 80;
    if (weir__http_is_text(scheme, "https") || weir__http_is_text(scheme, "wss"))
        return 443;
    return -1;
}

int weir_http_uri_parse(weir_span text, weir_http_uri *ret_uri)
{
    weir_http_uri uri = {.port = -1};
    int err;

    if (text.data == NULL)
        text = weir_span_of("", 0);
    uri.fragment = cut_behind(&text, '#');
    uri.query = cut_behind(&text, '?');
    err = cut_scheme(&text, &uri);
    if (!err)
        err = cut_authority(&text, &uri);
    if (err)
        return err;
    uri.path = text;
    if (!is_encoded(uri.path, PCHAR, "/") || !is_encoded(uri.query, PCHAR, "/?") ||
        !is_encoded(uri.fragment, PCHAR, "/?"))
        return WEIR_EMALFORMED;
    if (uri.host.length == 0 && scheme_port(uri.scheme) >= 0)
        return WEIR_EMALFORMED;
    *ret_uri = uri;
    return 0;
}

int weir_http_uri_port(const weir_http_uri *uri)
{
    return uri->port >= 0 ? uri->port : scheme_port(uri->scheme);
}

/* ---- references ---- */

/* True if the path has `prefix` at `at`, followed by "/" or the end. */
static bool has_segment(const char *path, size_t length, size_t at, const char *prefix)
{
    size_t size = strlen(prefix);

    return length - at >= size && memcmp(path + at, prefix, size) == 0 &&
           (length - at == size || path[at + size] == '/');
}

static size_t without_last_segment(const char *path, size_t length)
{
    while (length > 0 && path[--length] != '/')
        ;
    return length;
}

/* What is written never overtakes what is read. */
size_t weir_http_path_remove_dots(char *path, size_t length)
{
    size_t from = 0, to = 0;

    while (from < length) {
        if (has_segment(path, length, from, ".")) { /* only a relative path begins so */
            from += 1 + (length - from > 1);
            continue;
        }
        if (has_segment(path, length, from, "..")) {
            from += 2 + (length - from > 2);
            continue;
        }
        if (has_segment(path, length, from, "/.")) {
            from += 2;
            if (from == length)
                path[--from] = '/';
            continue;
        }
        if (has_segment(path, length, from, "/..")) {
            to = without_last_segment(path, to);
            from += 3;
            if (from == length)
                path[--from] = '/';
            continue;
        }
        do
            path[to++] = path[from++];
        while (from < length && path[from] != '/');
    }
    return to;
}

static char *put(char *to, weir_span text)
{
    if (text.length > 0)
        memcpy(to, text.data, text.length);
    return to + text.length;
}

static char *put_behind(char *to, const char *mark, weir_span part)
{
    return is_missing(part) ? to : put(put(to, weir_span_of_text(mark)), part);
}

/* The directory of the base, then the path of the reference. */
static char *put_merged(char *to, const weir_http_uri *base, weir_span path)
{
    weir_span directory = base->path;

    while (directory.length > 0 && directory.data[directory.length - 1] != '/')
        directory.length--;
    if (!is_missing(base->authority) && base->path.length == 0)
        directory = weir_span_of_text("/");
    return put(put(to, directory), path);
}

/* Writes the path of the target; `to` has room for both paths and 3 more. */
static char *put_path(char *to, const weir_http_uri *base, const weir_http_uri *reference,
                      const weir_http_uri *target)
{
    char *start = to;
    size_t length;

    if (is_missing(reference->scheme) && is_missing(reference->authority)) {
        if (reference->path.length == 0)
            return put(to, base->path);
        if (reference->path.data[0] != '/')
            to = put_merged(to, base, reference->path);
        else
            to = put(to, reference->path);
    } else {
        to = put(to, reference->path);
    }
    length = weir_http_path_remove_dots(start, (size_t)(to - start));
    if (is_missing(target->authority) && length > 1 && start[0] == '/' && start[1] == '/') {
        memmove(start + 2, start, length); /* would be read as an authority */
        memcpy(start, "/.", 2);
        length += 2;
    }
    return start + length;
}

int weir_http_uri_resolve(weir_span base_text, weir_span reference_text, weir_buf *to)
{
    weir_http_uri base, reference, target;
    char *start, *end;
    int err = weir_http_uri_parse(base_text, &base);

    if (!err)
        err = weir_http_uri_parse(reference_text, &reference);
    if (!err && is_missing(base.scheme))
        err = WEIR_EMALFORMED;
    if (!err)
        err = weir_buf_reserve(to, base_text.length + reference_text.length + sizeof("://?#/."));
    if (err)
        return err;
    if (!is_missing(reference.authority) && reference.host.length == 0 &&
        scheme_port(base.scheme) >= 0)
        return WEIR_EMALFORMED;

    target = reference;
    if (is_missing(reference.scheme)) {
        target.scheme = base.scheme;
        if (is_missing(reference.authority)) {
            target.authority = base.authority;
            if (reference.path.length == 0 && is_missing(reference.query))
                target.query = base.query;
        }
    }
    start = (char *)weir_buf_space(to);
    end = put(put(start, target.scheme), weir_span_of_text(":"));
    end = put_behind(end, "//", target.authority);
    end = put_path(end, &base, &reference, &target);
    end = put_behind(end, "?", target.query);
    end = put_behind(end, "#", target.fragment);
    return weir_buf_advance(to, (size_t)(end - start));
}
