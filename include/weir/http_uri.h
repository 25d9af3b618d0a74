/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_uri.h - URIs, percent-encoding and query strings.
 *
 *      https://user@www.example.org:8443/a/b?x=1&y=2#top
 *      scheme  user host             port path query fragment
 *
 * Parsing is strict (RFC 3986): a blank, a control character, a byte above 126 or an incomplete
 * percent-encoding is malformed. The parts are spans of the text and remain percent-encoded, since
 * an encoded delimiter is not a delimiter; decode them after taking them apart.
 *
 * Link with libweir-http.
 */
#ifndef WEIR_HTTP_URI_H
#define WEIR_HTTP_URI_H

#include <weir/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- URIs ------------------------------------------------------------------------------------- */

/* The parts of a URI or of a relative reference. A part whose data is NULL is missing; that is not
 * the same as empty. */
typedef struct weir_http_uri {
    weir_span scheme;    /* "https" */
    weir_span authority; /* "user@www.example.org:8443" */
    weir_span userinfo;  /* "user" */
    weir_span host;      /* "www.example.org", "192.0.2.1"; "2001:db8::1" without its brackets */
    bool is_ip_literal;  /* the host was in brackets */
    int port;            /* -1 if missing or empty */
    weir_span path;      /* "/a/b"; never missing, perhaps empty */
    weir_span query;     /* "x=1&y=2" */
    weir_span fragment;  /* "top" */
} weir_http_uri;

/*
 * Parses a URI or a relative reference, such as "../a?b": then the scheme is missing.
 * Thread: any.  Lends until the text is freed: the parts.  Fails: WEIR_EMALFORMED.
 */
WEIR_API WEIR_MUST_USE int weir_http_uri_parse(weir_span text, weir_http_uri *ret_uri);

/*
 * Parses "host", "host:port" or "[IPv6 address]:port": a Host field, or the target of CONNECT. The
 * host is not empty, and there is no userinfo. All other parts are missing, the path is empty.
 * Thread: any.  Lends until the text is freed: the parts.  Fails: WEIR_EMALFORMED.
 */
WEIR_API WEIR_MUST_USE int weir_http_authority_parse(weir_span text, weir_http_uri *ret_uri);

/*
 * True if weir_http_authority_parse would succeed; faster for host names.
 * Thread: any.
 */
WEIR_API bool weir_http_authority_is_valid(weir_span text);

/*
 * The port of the URI, or that of its scheme: 80 for "http" and "ws", 443 for "https" and "wss";
 * -1 if there is neither.
 * Thread: any.
 */
WEIR_API int weir_http_uri_port(const weir_http_uri *uri);

/*
 * Appends the URI that `reference` means in a document at `base`, a URI with a scheme (RFC 3986
 * 5.2): what a client does with a Location field. "../c?x" at "http://a/b/d" is "http://a/c?x". The
 * fragment of the base is not inherited.
 * Thread: the buffer's holder's.  Fails: WEIR_EMALFORMED (either of them, or `base` has no scheme),
 * and as weir_buf_write_bytes; then nothing is appended.
 */
WEIR_API WEIR_MUST_USE int weir_http_uri_resolve(weir_span base, weir_span reference, weir_buf *to);

/*
 * Removes the segments "." and ".." of a path, in place, and returns its new length (RFC 3986
 * 5.2.4): "/a/./b/../c" becomes "/a/c". A ".." at the root is dropped. Encoded dots are not
 * recognized: decode first if that matters.
 * Thread: any.
 */
WEIR_API size_t weir_http_path_remove_dots(char *path, size_t length);

/* --- percent-encoding ------------------------------------------------------------------------- */

/*
 * Decodes "%20" into `to`, which has room for `text.length` bytes and may be the text itself.
 * Returns the number of bytes. NUL and "/" may be among them.
 * Thread: any.  Fails: WEIR_EMALFORMED ("%" without two hexadecimal digits).
 */
WEIR_API ssize_t weir_http_percent_decode(weir_span text, void *to);

enum weir_http_percent {
    WEIR_HTTP_PERCENT_COMPONENT, /* encodes all but letters, digits, and - . _ ~ */
    WEIR_HTTP_PERCENT_PATH,      /* keeps all that a path may have, "/" among them */
};

/*
 * Appends percent-encoded bytes.
 * Thread: the buffer's holder's.  Fails: as weir_buf_write_bytes; then nothing is appended.
 */
WEIR_API int weir_http_percent_encode(weir_buf *to, weir_span bytes, enum weir_http_percent kind);

/* --- query strings ---------------------------------------------------------------------------- */

/*
 * Cuts the next pair off a query string ("a=1&b=2") or an urlencoded form. `*rest` begins as all of
 * it. False if nothing is left. Both parts are still encoded; a pair without "=" has an empty
 * value; empty pairs ("&&") are skipped.
 * Thread: any.  Lends until the text is freed: the parts.
 */
WEIR_API bool weir_http_query_next(weir_span *rest, weir_span *ret_name, weir_span *ret_value);

/*
 * Decodes a part of a pair, as weir_http_percent_decode; "+" is a blank.
 * Thread: any.  Fails: WEIR_EMALFORMED.
 */
WEIR_API ssize_t weir_http_query_decode(weir_span text, void *to);

/*
 * Finds the first pair whose decoded name is `name`. Its value is still encoded.
 * Thread: any.  Lends until the query is freed: the value.
 */
WEIR_API bool weir_http_query_find(weir_span query, weir_span name, weir_span *ret_value);

/*
 * Appends a pair to a query string, encoded, with "&" before it unless the buffer is empty.
 * Thread: the buffer's holder's.  Fails: as weir_buf_write_bytes; then nothing is appended.
 */
WEIR_API int weir_http_query_add(weir_buf *query, weir_span name, weir_span value);

#ifdef __cplusplus
}
#endif

#endif
