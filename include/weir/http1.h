/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http1.h - the HTTP/1.1 codec: bytes to the messages of weir/http.h and back.
 *
 *      err = weir_http1_server_add(pipeline, NULL);
 *
 *      socket <-> [tls] <-> [http1-server] <-> [filters] <-> [application]
 *
 * The codec is strict (RFC 9110 and 9112): input whose end another implementation might see
 * somewhere else is refused. A server answers it with the status that docs/internals/http.md lists,
 * fires a weir_http_refusal, and closes; a client fires WEIR_EMALFORMED and closes.
 *
 * A client cannot be seen to leave while its request is answered unless the channel's options have
 * `half_closure`, and `report_hangup` for the time in which nothing is read, as those of
 * weir_http_server have.
 *
 * A server reads one request at a time: the next one, even if its bytes have arrived, is decoded
 * when the response to the one before has been written, up to its end. So responses are in order,
 * and a client that pipelines thousands of requests costs no memory. Responses that are written
 * within one read are sent together, when the application flushes.
 *
 * After a response with status 101, or 200 to 299 to a CONNECT, the codec passes on the bytes that
 * are left and removes itself: the connection speaks another protocol.
 */
#ifndef WEIR_HTTP1_H
#define WEIR_HTTP1_H

#include <weir/http.h>
#include <weir/options.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_HTTP1_OPTIONS(...). The timeouts and rates are those of
 * servers; WEIR_OFF = none. */
typedef struct weir_http1_options {
    size_t size;
    int max_start_line;      /* bytes; default 8 KiB; longer: 414 */
    int max_header_bytes;    /* bytes of all fields; default 32 KiB; more: 431 */
    int max_header_fields;   /* default 100; more: 431 */
    int64_t max_chunk;       /* bytes of one chunk; default 1 GiB */
    int64_t head_timeout_ns; /* from the first byte of a head to its end, or from the connection to
                                the end of the first one; default 15 s; then 408, or a close if
                                nothing has been received */
    int64_t idle_timeout_ns; /* between requests; default 60 s; then the connection is closed,
                                at most a quarter of the time later */
    int64_t min_rate;        /* bytes per second of content from the client while it is read, and of
                                a response to it while the channel is unwritable; averaged over
                                10 s; default 1024; slower clients are closed */
    int64_t max_requests;    /* per connection; default unlimited */
    bool keep_half_closed;   /* a client that ends its stream may still wait for the response to a
                                request that is not answered at once; default: it has left, and the
                                connection is reset */
} weir_http1_options;

#define WEIR_HTTP1_OPTIONS(...) WEIR_OPTIONS(weir_http1_options, __VA_ARGS__)

/*
 * Adds the codec at the tail. NULL options are the defaults.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http1_server_add(weir_pipeline *pipeline,
                                                 const weir_http1_options *options);
WEIR_API WEIR_MUST_USE int weir_http1_client_add(weir_pipeline *pipeline,
                                                 const weir_http1_options *options);

#ifdef __cplusplus
}
#endif

#endif
