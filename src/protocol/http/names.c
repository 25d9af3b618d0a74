/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of methods and header fields.
 *
 * The number of a name is found by a perfect hash of its length, first, last and third-last letter,
 * and one comparison. tests/protocol/http/test_names.c finds every name; a new name may need
 * another factor.
 */
#include "protocol/http/names.h"

#include <string.h>

#define NAME(id, text) [WEIR_HTTP_##id] = {(const uint8_t *)(text), sizeof(text) - 1}

static const weir_span names[WEIR_HTTP_NAME_COUNT] = {
    NAME(OTHER, ""),
    NAME(ACCEPT, "Accept"),
    NAME(ACCEPT_ENCODING, "Accept-Encoding"),
    NAME(ACCEPT_LANGUAGE, "Accept-Language"),
    NAME(ACCEPT_RANGES, "Accept-Ranges"),
    NAME(ACCESS_CONTROL_ALLOW_CREDENTIALS, "Access-Control-Allow-Credentials"),
    NAME(ACCESS_CONTROL_ALLOW_HEADERS, "Access-Control-Allow-Headers"),
    NAME(ACCESS_CONTROL_ALLOW_METHODS, "Access-Control-Allow-Methods"),
    NAME(ACCESS_CONTROL_ALLOW_ORIGIN, "Access-Control-Allow-Origin"),
    NAME(ACCESS_CONTROL_EXPOSE_HEADERS, "Access-Control-Expose-Headers"),
    NAME(ACCESS_CONTROL_MAX_AGE, "Access-Control-Max-Age"),
    NAME(ACCESS_CONTROL_REQUEST_HEADERS, "Access-Control-Request-Headers"),
    NAME(ACCESS_CONTROL_REQUEST_METHOD, "Access-Control-Request-Method"),
    NAME(AGE, "Age"),
    NAME(ALLOW, "Allow"),
    NAME(AUTHORIZATION, "Authorization"),
    NAME(CACHE_CONTROL, "Cache-Control"),
    NAME(CONNECTION, "Connection"),
    NAME(CONTENT_DISPOSITION, "Content-Disposition"),
    NAME(CONTENT_ENCODING, "Content-Encoding"),
    NAME(CONTENT_LANGUAGE, "Content-Language"),
    NAME(CONTENT_LENGTH, "Content-Length"),
    NAME(CONTENT_LOCATION, "Content-Location"),
    NAME(CONTENT_RANGE, "Content-Range"),
    NAME(CONTENT_SECURITY_POLICY, "Content-Security-Policy"),
    NAME(CONTENT_TYPE, "Content-Type"),
    NAME(COOKIE, "Cookie"),
    NAME(DATE, "Date"),
    NAME(ETAG, "ETag"),
    NAME(EXPECT, "Expect"),
    NAME(EXPIRES, "Expires"),
    NAME(FORWARDED, "Forwarded"),
    NAME(HOST, "Host"),
    NAME(IF_MATCH, "If-Match"),
    NAME(IF_MODIFIED_SINCE, "If-Modified-Since"),
    NAME(IF_NONE_MATCH, "If-None-Match"),
    NAME(IF_RANGE, "If-Range"),
    NAME(IF_UNMODIFIED_SINCE, "If-Unmodified-Since"),
    NAME(KEEP_ALIVE, "Keep-Alive"),
    NAME(LAST_EVENT_ID, "Last-Event-ID"),
    NAME(LAST_MODIFIED, "Last-Modified"),
    NAME(LINK, "Link"),
    NAME(LOCATION, "Location"),
    NAME(ORIGIN, "Origin"),
    NAME(PROXY_AUTHENTICATE, "Proxy-Authenticate"),
    NAME(PROXY_AUTHORIZATION, "Proxy-Authorization"),
    NAME(PROXY_CONNECTION, "Proxy-Connection"),
    NAME(RANGE, "Range"),
    NAME(REFERER, "Referer"),
    NAME(REFERRER_POLICY, "Referrer-Policy"),
    NAME(RETRY_AFTER, "Retry-After"),
    NAME(SEC_WEBSOCKET_ACCEPT, "Sec-WebSocket-Accept"),
    NAME(SEC_WEBSOCKET_EXTENSIONS, "Sec-WebSocket-Extensions"),
    NAME(SEC_WEBSOCKET_KEY, "Sec-WebSocket-Key"),
    NAME(SEC_WEBSOCKET_PROTOCOL, "Sec-WebSocket-Protocol"),
    NAME(SEC_WEBSOCKET_VERSION, "Sec-WebSocket-Version"),
    NAME(SERVER, "Server"),
    NAME(SET_COOKIE, "Set-Cookie"),
    NAME(STRICT_TRANSPORT_SECURITY, "Strict-Transport-Security"),
    NAME(TE, "TE"),
    NAME(TRAILER, "Trailer"),
    NAME(TRANSFER_ENCODING, "Transfer-Encoding"),
    NAME(UPGRADE, "Upgrade"),
    NAME(USER_AGENT, "User-Agent"),
    NAME(VARY, "Vary"),
    NAME(VIA, "Via"),
    NAME(WWW_AUTHENTICATE, "WWW-Authenticate"),
    NAME(X_CONTENT_TYPE_OPTIONS, "X-Content-Type-Options"),
    NAME(X_FORWARDED_FOR, "X-Forwarded-For"),
    NAME(X_FORWARDED_PROTO, "X-Forwarded-Proto"),
    NAME(X_FRAME_OPTIONS, "X-Frame-Options"),
    NAME(X_REQUEST_ID, "X-Request-Id"),
};

#define HASH_FACTOR 0x1527916bu

static const uint8_t by_hash[256] = {
    [1] = WEIR_HTTP_CONNECTION,
    [3] = WEIR_HTTP_X_FRAME_OPTIONS,
    [6] = WEIR_HTTP_VIA,
    [9] = WEIR_HTTP_REFERRER_POLICY,
    [16] = WEIR_HTTP_CACHE_CONTROL,
    [18] = WEIR_HTTP_SET_COOKIE,
    [19] = WEIR_HTTP_IF_NONE_MATCH,
    [20] = WEIR_HTTP_COOKIE,
    [23] = WEIR_HTTP_SEC_WEBSOCKET_KEY,
    [24] = WEIR_HTTP_AUTHORIZATION,
    [29] = WEIR_HTTP_IF_RANGE,
    [35] = WEIR_HTTP_CONTENT_SECURITY_POLICY,
    [38] = WEIR_HTTP_USER_AGENT,
    [39] = WEIR_HTTP_EXPECT,
    [41] = WEIR_HTTP_SEC_WEBSOCKET_ACCEPT,
    [48] = WEIR_HTTP_ORIGIN,
    [57] = WEIR_HTTP_VARY,
    [58] = WEIR_HTTP_X_FORWARDED_PROTO,
    [59] = WEIR_HTTP_WWW_AUTHENTICATE,
    [63] = WEIR_HTTP_HOST,
    [65] = WEIR_HTTP_TRANSFER_ENCODING,
    [67] = WEIR_HTTP_ACCESS_CONTROL_ALLOW_CREDENTIALS,
    [70] = WEIR_HTTP_KEEP_ALIVE,
    [72] = WEIR_HTTP_ACCESS_CONTROL_EXPOSE_HEADERS,
    [76] = WEIR_HTTP_STRICT_TRANSPORT_SECURITY,
    [77] = WEIR_HTTP_UPGRADE,
    [92] = WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS,
    [96] = WEIR_HTTP_LAST_EVENT_ID,
    [110] = WEIR_HTTP_CONTENT_ENCODING,
    [115] = WEIR_HTTP_FORWARDED,
    [117] = WEIR_HTTP_LAST_MODIFIED,
    [122] = WEIR_HTTP_TRAILER,
    [125] = WEIR_HTTP_PROXY_AUTHENTICATE,
    [131] = WEIR_HTTP_CONTENT_LOCATION,
    [135] = WEIR_HTTP_RETRY_AFTER,
    [138] = WEIR_HTTP_CONTENT_TYPE,
    [139] = WEIR_HTTP_ACCESS_CONTROL_ALLOW_METHODS,
    [148] = WEIR_HTTP_CONTENT_LANGUAGE,
    [150] = WEIR_HTTP_PROXY_CONNECTION,
    [154] = WEIR_HTTP_RANGE,
    [157] = WEIR_HTTP_CONTENT_LENGTH,
    [160] = WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL,
    [165] = WEIR_HTTP_DATE,
    [168] = WEIR_HTTP_SERVER,
    [171] = WEIR_HTTP_ACCESS_CONTROL_REQUEST_METHOD,
    [179] = WEIR_HTTP_ACCESS_CONTROL_REQUEST_HEADERS,
    [181] = WEIR_HTTP_CONTENT_RANGE,
    [182] = WEIR_HTTP_IF_UNMODIFIED_SINCE,
    [185] = WEIR_HTTP_REFERER,
    [187] = WEIR_HTTP_ACCEPT_RANGES,
    [190] = WEIR_HTTP_X_FORWARDED_FOR,
    [196] = WEIR_HTTP_CONTENT_DISPOSITION,
    [199] = WEIR_HTTP_LINK,
    [205] = WEIR_HTTP_EXPIRES,
    [207] = WEIR_HTTP_ACCESS_CONTROL_ALLOW_ORIGIN,
    [211] = WEIR_HTTP_ACCEPT,
    [212] = WEIR_HTTP_ETAG,
    [215] = WEIR_HTTP_PROXY_AUTHORIZATION,
    [216] = WEIR_HTTP_ALLOW,
    [217] = WEIR_HTTP_ACCEPT_ENCODING,
    [221] = WEIR_HTTP_ACCESS_CONTROL_ALLOW_HEADERS,
    [224] = WEIR_HTTP_IF_MODIFIED_SINCE,
    [234] = WEIR_HTTP_LOCATION,
    [235] = WEIR_HTTP_ACCESS_CONTROL_MAX_AGE,
    [236] = WEIR_HTTP_TE,
    [237] = WEIR_HTTP_SEC_WEBSOCKET_VERSION,
    [240] = WEIR_HTTP_X_CONTENT_TYPE_OPTIONS,
    [243] = WEIR_HTTP_X_REQUEST_ID,
    [250] = WEIR_HTTP_AGE,
    [252] = WEIR_HTTP_IF_MATCH,
    [254] = WEIR_HTTP_ACCEPT_LANGUAGE,
};

#define NAME_LENGTH_MAX 32

static inline uint32_t hash(weir_span name)
{
    uint32_t first = name.data[0] | 0x20u, last = name.data[name.length - 1] | 0x20u;
    uint32_t third_last = name.data[name.length < 3 ? 0 : name.length - 3] | 0x20u;

    return ((first | last << 8 | third_last << 16 | (uint32_t)name.length << 24) * HASH_FACTOR) >>
           24;
}

static inline uint64_t load(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, 8);
    return word;
}

static inline uint32_t load_4(const uint8_t *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, 4);
    return word;
}

#define CASE_BITS 0x2020202020202020u

/* True if the bytes differ in the case of letters only. Those are the bytes of `name` with the bit
 * 0x40, because it has none but letters, digits and hyphens. */
static inline bool is_same(uint64_t bytes, uint64_t name)
{
    return ((bytes ^ name) & ~(name >> 1 & CASE_BITS)) == 0;
}

static inline bool is_spelled(weir_span token, const uint8_t *name)
{
    size_t i;

    if (token.length >= 8) {
        for (i = 0; i + 8 <= token.length; i += 8)
            if (!is_same(load(token.data + i), load(name + i)))
                return false;
        i = token.length - 8;
        return is_same(load(token.data + i), load(name + i));
    }
    if (token.length >= 4)
        return is_same(load_4(token.data), load_4(name)) &&
               is_same(load_4(token.data + token.length - 4), load_4(name + token.length - 4));
    for (i = 0; i < token.length; i++)
        if (!is_same(token.data[i], name[i]))
            return false;
    return true;
}

enum weir_http_name weir_http_name_of(weir_span text)
{
    enum weir_http_name name;

    if (text.length < 2 || text.length > NAME_LENGTH_MAX)
        return WEIR_HTTP_OTHER;
    name = (enum weir_http_name)by_hash[hash(text)];
    if (names[name].length != text.length || !is_spelled(text, names[name].data))
        return WEIR_HTTP_OTHER;
    return name;
}

weir_span weir__http_name_span(enum weir_http_name name)
{
    return names[name];
}

const char *weir_http_name_text(enum weir_http_name name)
{
    return (const char *)names[(unsigned)name < WEIR_HTTP_NAME_COUNT ? name : 0].data;
}

/* ---- methods ---- */

static const char *const methods[] = {
    [WEIR_HTTP_METHOD_OTHER] = "",          [WEIR_HTTP_METHOD_GET] = "GET",
    [WEIR_HTTP_METHOD_HEAD] = "HEAD",       [WEIR_HTTP_METHOD_POST] = "POST",
    [WEIR_HTTP_METHOD_PUT] = "PUT",         [WEIR_HTTP_METHOD_DELETE] = "DELETE",
    [WEIR_HTTP_METHOD_CONNECT] = "CONNECT", [WEIR_HTTP_METHOD_OPTIONS] = "OPTIONS",
    [WEIR_HTTP_METHOD_TRACE] = "TRACE",     [WEIR_HTTP_METHOD_PATCH] = "PATCH",
};

const char *weir_http_method_text(enum weir_http_method method)
{
    return methods[(unsigned)method < sizeof(methods) / sizeof(methods[0]) ? method : 0];
}

/* The first two letters decide, except between PUT, POST and PATCH. */
static enum weir_http_method candidate(weir_span text)
{
    switch (text.data[0]) {
    case 'G':
        return WEIR_HTTP_METHOD_GET;
    case 'H':
        return WEIR_HTTP_METHOD_HEAD;
    case 'P':
        if (text.data[1] == 'O')
            return WEIR_HTTP_METHOD_POST;
        return text.data[1] == 'U' ? WEIR_HTTP_METHOD_PUT : WEIR_HTTP_METHOD_PATCH;
    case 'D':
        return WEIR_HTTP_METHOD_DELETE;
    case 'C':
        return WEIR_HTTP_METHOD_CONNECT;
    case 'O':
        return WEIR_HTTP_METHOD_OPTIONS;
    case 'T':
        return WEIR_HTTP_METHOD_TRACE;
    default:
        return WEIR_HTTP_METHOD_OTHER;
    }
}

enum weir_http_method weir_http_method_of(weir_span text)
{
    enum weir_http_method method;

    if (text.length < 3 || text.length > 7)
        return WEIR_HTTP_METHOD_OTHER;
    method = candidate(text);
    if (strlen(methods[method]) != text.length ||
        memcmp(methods[method], text.data, text.length) != 0)
        return WEIR_HTTP_METHOD_OTHER;
    return method;
}
