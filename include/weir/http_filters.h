/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_filters.h - handlers between a codec and an application: content coding, CORS, access
 * log, request ids, limits per client, security headers.
 *
 * Each is also an option of weir_http_server_options, which adds them in the order below. As
 * handlers they stand behind the codec:
 *
 *      [http1-server] [access log] [request ids] [client limits] [security] [CORS] [compression]
 *
 * They see the messages of weir/http.h and work with every version of HTTP. NULL options are the
 * defaults. A filter that answers a request itself discards the request's content, up to 64 KiB;
 * beyond that it closes the connection. A filter that cannot change a response for want of memory
 * closes the connection.
 */
#ifndef WEIR_HTTP_FILTERS_H
#define WEIR_HTTP_FILTERS_H

#include <weir/http.h>
#include <weir/options.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- access log ------------------------------------------------------------------------------- */

enum weir_http_log_format {
    WEIR_HTTP_LOG_COMMON,
    WEIR_HTTP_LOG_COMBINED, /* with Referer and User-Agent */
    WEIR_HTTP_LOG_JSON,     /* one object per line, with the duration and the request id */
};

/* A log file, shared by the connections of a server. Lines are written by a thread of its own,
 * behind a bounded queue: a loop never waits for it. Lines that do not fit are counted, and the
 * count is logged. */
typedef struct weir_http_access_log weir_http_access_log;

/* Zero means default. Build with WEIR_HTTP_ACCESS_LOG_OPTIONS(...). */
typedef struct weir_http_access_log_options {
    size_t size;
    const char *path; /* appended to, created if missing; "-" = standard output */
    enum weir_http_log_format format;
    size_t max_queued; /* bytes; default 1 MiB; at least 256 KiB */
} weir_http_access_log_options;

#define WEIR_HTTP_ACCESS_LOG_OPTIONS(...) WEIR_OPTIONS(weir_http_access_log_options, __VA_ARGS__)

/*
 * Opens a log.
 * Thread: any that may wait.  Gives: log.  Fails: -EINVAL, -ENOMEM, -EAGAIN (no thread), and with
 * errors of open.
 */
WEIR_API WEIR_MUST_USE int weir_http_access_log_create(const weir_http_access_log_options *options,
                                                       weir_http_access_log **ret_log);
WEIR_API weir_http_access_log *weir_http_access_log_retain(weir_http_access_log *log);

/*
 * Releases a reference. NULL is ignored. The last one writes what is queued and closes the file.
 * Thread: any that may wait.  Takes: log.
 */
WEIR_API void weir_http_access_log_release(weir_http_access_log *log);

/*
 * Opens the file anew, after it was renamed; and the number of lines lost so far.
 * Thread: any.
 */
WEIR_API void weir_http_access_log_reopen(weir_http_access_log *log);
WEIR_API uint64_t weir_http_access_log_lost(const weir_http_access_log *log);

/*
 * Adds a handler that logs each exchange when its response has ended or its connection is lost, and
 * each refused request. The status of an exchange that was lost without a response is 499. Bytes of
 * the client that could end a value or a line, or are not ASCII, are escaped (\x22, in JSON
 * \u0022). The values of the parameters "token", "access_token" and "password" of query strings,
 * also of that of Referer, are logged as "-". Times are in UTC, the bytes those of content. Lines
 * are written within a tenth of a second.
 * Thread: any.  Keeps: log.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http_access_log_add(weir_pipeline *pipeline,
                                                    weir_http_access_log *log);

/* --- request ids ------------------------------------------------------------------------------ */

/*
 * Adds a handler that gives each request an X-Request-Id of 32 hexadecimal digits, unless it has a
 * valid one (up to 128 of A-Z a-z 0-9 - _ .), and each response the same.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http_request_ids_add(weir_pipeline *pipeline);

/* --- limits per client ------------------------------------------------------------------------ */

/* Zero means default. Build with WEIR_HTTP_CLIENT_LIMIT_OPTIONS(...). A client is an IPv4 address,
 * or an IPv6 network of 64 bits, of the PROXY header if there is one (weir/proxy_protocol.h), or as
 * reported by trusted proxies (.trusted_proxies of weir_http_server_options). Others, as on Unix
 * sockets, are not limited. */
typedef struct weir_http_client_limit_options {
    size_t size;
    int requests_per_second; /* averaged; default none; more are answered with 429, Retry-After */
    int burst;               /* requests at once; default requests_per_second */
    int max_concurrent;      /* unfinished exchanges; default none; more: 429 */
    int max_clients;         /* remembered; default 65536: the least recent one is forgotten */
} weir_http_client_limit_options;

#define WEIR_HTTP_CLIENT_LIMIT_OPTIONS(...) \
    WEIR_OPTIONS(weir_http_client_limit_options, __VA_ARGS__)

/* The clients that are counted, shared by the connections of a server. */
typedef struct weir_http_client_limit weir_http_client_limit;

/*
 * Creates a limit.
 * Thread: any.  Gives: limit.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int
weir_http_client_limit_create(const weir_http_client_limit_options *options,
                              weir_http_client_limit **ret_limit);
WEIR_API weir_http_client_limit *weir_http_client_limit_retain(weir_http_client_limit *limit);
WEIR_API void weir_http_client_limit_release(weir_http_client_limit *limit);

/*
 * Adds a handler that answers requests above the limit.
 * Thread: any.  Keeps: limit.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http_client_limit_add(weir_pipeline *pipeline,
                                                      weir_http_client_limit *limit);

/* --- security headers ------------------------------------------------------------------------- */

/* Zero means default. Build with WEIR_HTTP_SECURITY_OPTIONS(...). A field that the application has
 * set is kept. "" = not sent. */
typedef struct weir_http_security_options {
    size_t size;
    int64_t hsts_max_age; /* seconds; default one year; WEIR_OFF = no HSTS; sent over TLS
                             only */
    bool hsts_subdomains;
    bool is_tls;                  /* the connection is encrypted */
    const char *frame_options;    /* default "DENY" */
    const char *referrer_policy;  /* default "strict-origin-when-cross-origin" */
    const char *content_security; /* Content-Security-Policy; default none */
} weir_http_security_options;

#define WEIR_HTTP_SECURITY_OPTIONS(...) WEIR_OPTIONS(weir_http_security_options, __VA_ARGS__)

/*
 * Adds a handler that adds these fields and "X-Content-Type-Options: nosniff" to responses.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http_security_add(weir_pipeline *pipeline,
                                                  const weir_http_security_options *options);

/* --- CORS ------------------------------------------------------------------------------------- */

/* Zero means default. Build with WEIR_HTTP_CORS_OPTIONS(...). Lists are NULL-terminated. */
typedef struct weir_http_cors_options {
    size_t size;
    const char *const *origins;         /* "https://example.org"; "*" = any; default none */
    const char *const *methods;         /* "*" = any; default GET, HEAD and POST */
    const char *const *headers;         /* that requests may have, "*" = any; default any */
    const char *const *exposed_headers; /* that scripts may read; default none */
    bool credentials;                   /* not together with origin "*" */
    int max_age_seconds;                /* of a preflight; default 600; WEIR_OFF = not sent */
} weir_http_cors_options;

#define WEIR_HTTP_CORS_OPTIONS(...) WEIR_OPTIONS(weir_http_cors_options, __VA_ARGS__)

/*
 * Adds a handler that answers preflights with 204, or 403 if origin, method or headers are not
 * allowed, and adds the fields of the Fetch standard to other responses, with "Vary: Origin".
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http_cors_add(weir_pipeline *pipeline,
                                              const weir_http_cors_options *options);

/* --- compression ------------------------------------------------------------------------------ */

/* Zero means default. Build with WEIR_HTTP_COMPRESSION_OPTIONS(...). */
typedef struct weir_http_compression_options {
    size_t size;
    int level;                /* 1 (fast) to 9; default 5 */
    int64_t min_length;       /* shorter content is not compressed; default 1024 */
    const char *const *types; /* content types; "text/" is all that begin, "+json" all that end so;
                                 NULL-terminated; default text, JSON, JavaScript, XML, SVG,
                                 WebAssembly */
    bool no_brotli;
    bool no_zstd;
    bool no_requests;     /* requests with Content-Encoding are passed on as they are */
    uint64_t max_decoded; /* bytes of a decoded request; default 16 MiB; more: 413 */
    int max_ratio;        /* decoded to encoded bytes, beyond 1 MiB decoded; default 100; more:
                             413 */
} weir_http_compression_options;

#define WEIR_HTTP_COMPRESSION_OPTIONS(...) WEIR_OPTIONS(weir_http_compression_options, __VA_ARGS__)

/*
 * Adds handlers that compress responses with the best coding of zstd, br, gzip and deflate that
 * Accept-Encoding allows, and add "Vary: Accept-Encoding". A strong ETag becomes a weak one.
 * Responses that have a Content-Encoding or a Content-Range, or "Cache-Control: no-transform", and
 * content that is a file, pass unchanged. Content up to 256 KiB whose end is written before it is
 * flushed is compressed at once and keeps a Content-Length; otherwise each flush of the application
 * also flushes the encoder. An encoder takes 20 to 260 KiB (gzip, deflate), 2 MiB (zstd) or 3 MiB
 * (br), until the end of the response.
 *
 * Content of requests is decoded, up to three codings, in pieces of at most 64 KiB and only as it
 * is read. An unknown coding is answered with 415, content above the limits with 413, malformed
 * content with 400; then a weir_http_refusal is fired and the connection is closed. A decoder takes
 * up to 10 MiB, as far as content is decoded.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http_compression_add(weir_pipeline *pipeline,
                                                     const weir_http_compression_options *options);

/*
 * Adds a handler that decodes the content of responses, for clients; the limits as above, beyond
 * them the error WEIR_ETOOLONG is fired, WEIR_EMALFORMED for malformed content, and the connection
 * is closed. Content with an unknown coding passes as it is.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int
weir_http_decompression_add(weir_pipeline *pipeline, const weir_http_compression_options *options);

#ifdef __cplusplus
}
#endif

#endif
