/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls_hello.h - what a TLS client says first, read without answering: for proxies that look at
 * the name and pass all bytes on.
 *
 *      weir_tls_hello_add(pipeline, on_hello, proxy);
 *
 * The bytes are held until the hello is complete, then it is told, then they go on as they came,
 * and the handler with them: on_hello may add others behind it, or hold the reading. WEIR_ENOTTLS
 * if it is not TLS.
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
    char server_name[256]; /* in lower case; "" if none */
    char alpn[256];        /* what is offered, by commas; cut off if it is longer; "" if none */
    uint16_t version;      /* the highest that is offered: 0x0303 = 1.2, 0x0304 = 1.3 */
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

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it has been called: user_data.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_tls_hello_add(weir_pipeline *pipeline, weir_tls_hello_fn *on_hello,
                                void *user_data);

#ifdef __cplusplus
}
#endif

#endif
