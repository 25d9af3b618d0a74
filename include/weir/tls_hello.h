/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls_hello.h - what a TLS client says first, read without answering: for proxies that look at
 * the name and pass all bytes on.
 *
 *      weir_tls_hello_add(pipeline,
 *                         WEIR_TLS_HELLO_OPTIONS(.on_hello = on_hello, .user_data = proxy));
 *
 * The bytes are held until the hello is complete; then it is told, then they go on as they came,
 * and the handler goes: on_hello may add others behind it, or stop the reading. Where reads are on
 * demand it asks for as many as the hello takes. Anything else, WEIR_ENOTTLS say, or a client that
 * takes too long, is an error, and the channel is closed.
 *
 * What is read is nothing but what somebody says: no certificate was shown, no name proven.
 */
#ifndef WEIR_TLS_HELLO_H
#define WEIR_TLS_HELLO_H

#include <weir/bytes.h>
#include <weir/ctx.h>
#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest hello that is read: 4 records' worth. */
#define WEIR_TLS_HELLO_MAX 65536

typedef struct weir_tls_hello {
    char server_name[256]; /* in lower case: letters, digits and "-_.:"; "" if none */
    char alpn[256];        /* what is offered, by commas, as far as it can be printed and there is
                              room; "" if none */
    uint16_t version;      /* the highest that is offered: 0x0303 = 1.2, 0x0304 = 1.3; 0 = none that
                              exists */
    uint64_t reserved[4];
} weir_tls_hello;

/*
 * Reads a hello from the first bytes of a stream: 1 if it is complete, 0 if more bytes are needed.
 * Thread: any.  Fails: WEIR_ENOTTLS (it is not a TLS client), WEIR_EMALFORMED (it pretends to be
 * one), WEIR_ETOOLONG (beyond WEIR_TLS_HELLO_MAX).
 */
WEIR_API int weir_tls_hello_read(weir_span bytes, weir_tls_hello *ret_hello);

/* Tells of a hello. An error closes the channel. Thread: the handler's. */
typedef int weir_tls_hello_fn(weir_ctx *ctx, const weir_tls_hello *hello, void *user_data);

/* Zero means default. Build with WEIR_TLS_HELLO_OPTIONS(...). */
typedef struct weir_tls_hello_options {
    size_t size;
    weir_tls_hello_fn *on_hello;
    void *user_data;
    int64_t timeout_ns; /* for the whole hello, default 10 s; WEIR_OFF = none */
} weir_tls_hello_options;

#define WEIR_TLS_HELLO_OPTIONS(...) \
    (&(const weir_tls_hello_options){.size = sizeof(weir_tls_hello_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_tls_hello_options_init(weir_tls_hello_options *options);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Lends until on_hello has been called: user_data.
 * Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_tls_hello_add(weir_pipeline *pipeline, const weir_tls_hello_options *options);

#ifdef __cplusplus
}
#endif

#endif
