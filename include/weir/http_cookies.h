/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_cookies.h - cookies (RFC 6265 and its revision): of servers, and the jar of a client.
 *
 *      session = weir_http_cookie_get(weir_http_request_headers(request), "session");
 *
 *      err = weir_http_cookie_set(weir_http_exchange_headers(exchange),
 *                                 WEIR_HTTP_COOKIE_OPTIONS(.name = "__Host-session", .value = id,
 *                                                          .path = "/", .secure = true,
 *                                                          .http_only = true));
 *
 * Link with libweir-http.
 */
#ifndef WEIR_HTTP_COOKIES_H
#define WEIR_HTTP_COOKIES_H

#include <weir/http.h>
#include <weir/http_uri.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the cookies of a request ----------------------------------------------------------------- */

/*
 * The value of the first cookie with a name, which is case-sensitive; data is NULL if there is
 * none. All Cookie fields are searched.
 * Thread: the headers' holder's.  Lends until the headers are changed: the value.
 */
WEIR_API weir_span weir_http_cookie_get(const weir_http_headers *headers, const char *name);

/*
 * Cuts the next cookie off the value of a Cookie field ("a=1; b=2"). `*rest` begins as all of it.
 * False if nothing is left. Quotes around a value are removed. Cookies whose name is not a token
 * are skipped.
 * Thread: any.  Lends until the text is freed: the parts.
 */
WEIR_API bool weir_http_cookie_next(weir_span *rest, weir_span *ret_name, weir_span *ret_value);

/* --- setting cookies -------------------------------------------------------------------------- */

enum weir_http_same_site {
    WEIR_HTTP_SAME_SITE_DEFAULT, /* not sent; browsers take Lax */
    WEIR_HTTP_SAME_SITE_LAX,
    WEIR_HTTP_SAME_SITE_STRICT,
    WEIR_HTTP_SAME_SITE_NONE, /* requires secure */
};

/* Zero means default. Build with WEIR_HTTP_COOKIE_OPTIONS(.name = ..., .value = ...). */
typedef struct weir_http_cookie_options {
    size_t size;
    const char *name;        /* a token; "__Secure-" requires secure; "__Host-" also path "/" and no
                                domain */
    const char *value;       /* visible ASCII except " , ; and backslash; default "" */
    const char *domain;      /* default: only the host that sets it */
    const char *path;        /* begins with "/"; default: the folder of the request */
    int64_t expires;         /* seconds since 1970; default: when the browser ends */
    int64_t max_age_seconds; /* wins over expires; WEIR_OFF = the browser deletes it now */
    bool secure;             /* sent over TLS only */
    bool http_only;          /* hidden from scripts */
    enum weir_http_same_site same_site;
    bool partitioned; /* one per embedding site; requires secure */
} weir_http_cookie_options;

#define WEIR_HTTP_COOKIE_OPTIONS(...) WEIR_OPTIONS(weir_http_cookie_options, __VA_ARGS__)

/*
 * Adds a Set-Cookie field. A cookie that is set twice is sent twice.
 * Thread: the headers' holder's.  Lends until it returns: options.  Fails: -EINVAL (the log says
 * why), WEIR_ETOOLONG (above 4 KiB), and as weir_http_headers_add.
 */
WEIR_API int weir_http_cookie_set(weir_http_headers *headers,
                                  const weir_http_cookie_options *options);

/* --- received cookies ------------------------------------------------------------------------- */

/* A parsed Set-Cookie field. */
typedef struct weir_http_set_cookie {
    weir_span name;
    weir_span value;
    weir_span domain;        /* without a dot in front; empty if it is missing */
    weir_span path;          /* empty if it is missing or does not begin with "/" */
    int64_t expires;         /* seconds since 1970; WEIR_NEVER if missing or malformed */
    int64_t max_age_seconds; /* WEIR_NEVER if missing or malformed; not positive = delete */
    bool secure;
    bool http_only;
    bool partitioned;
    enum weir_http_same_site same_site;
} weir_http_set_cookie;

/*
 * Parses the value of a Set-Cookie field as browsers do; unknown attributes are ignored.
 * Thread: any.  Lends until the text is freed: the parts.  Fails: WEIR_EMALFORMED (no name; control
 * characters), WEIR_ETOOLONG (name and value above 4 KiB).
 */
WEIR_API WEIR_MUST_USE int weir_http_set_cookie_parse(weir_span text,
                                                      weir_http_set_cookie *ret_cookie);

/* --- jars ------------------------------------------------------------------------------------- */

/*
 * The cookies of a client. There is no list of public suffixes, such as "co.uk": a server of
 * a.co.uk can set a cookie for co.uk, which b.co.uk then receives. Only a Domain of a single label
 * ("com") is refused. Do not share a jar between clients that talk to servers that must not know
 * each other.
 */
typedef struct weir_http_cookie_jar weir_http_cookie_jar;

/* Zero means default. Build with WEIR_HTTP_COOKIE_JAR_OPTIONS(...). */
typedef struct weir_http_cookie_jar_options {
    size_t size;
    int max_cookies;    /* default 3000; the least recently used one is forgotten */
    int max_per_domain; /* default 50 */
} weir_http_cookie_jar_options;

#define WEIR_HTTP_COOKIE_JAR_OPTIONS(...) WEIR_OPTIONS(weir_http_cookie_jar_options, __VA_ARGS__)

/*
 * Creates an empty jar.
 * Thread: any.  Gives: jar.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_http_cookie_jar_create(const weir_http_cookie_jar_options *options,
                                                       weir_http_cookie_jar **ret_jar);

/*
 * Retains or releases a reference. NULL is ignored by release.
 * Thread: any.  Takes: jar (release).
 */
WEIR_API weir_http_cookie_jar *weir_http_cookie_jar_retain(weir_http_cookie_jar *jar);
WEIR_API void weir_http_cookie_jar_release(weir_http_cookie_jar *jar);

/*
 * Stores the cookie of a Set-Cookie field in the response of `uri`, or removes it if it has
 * expired.
 * Thread: any.  Fails: -EPERM (the server may not set it: another domain, secure without TLS, a
 * prefix of the name whose rules it breaks), -ENOMEM, and as weir_http_set_cookie_parse.
 */
WEIR_API int weir_http_cookie_jar_store(weir_http_cookie_jar *jar, const weir_http_uri *uri,
                                        weir_span set_cookie);

/*
 * Appends the value of the Cookie field for a request of `uri`: "a=1; b=2". Nothing if there are no
 * cookies for it. Beyond 8 KiB the rest is left out.
 * Thread: any; the buffer's holder's.  Fails: as weir_buf_write_bytes; then nothing is appended.
 */
WEIR_API int weir_http_cookie_jar_write(weir_http_cookie_jar *jar, const weir_http_uri *uri,
                                        weir_buf *to);

/*
 * The number of cookies, and the end of all of them.
 * Thread: any.
 */
WEIR_API size_t weir_http_cookie_jar_count(weir_http_cookie_jar *jar);
WEIR_API void weir_http_cookie_jar_clear(weir_http_cookie_jar *jar);

#ifdef __cplusplus
}
#endif

#endif
