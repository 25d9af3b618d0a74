/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request on its way: to on_sni, which may decide later and on any thread, and back to the
 * handler, as an event of the channel. So it reaches the handler, or is dropped, whatever happened
 * to both meanwhile.
 */
#ifndef WEIR_TLS_TLS_SNI_REQUEST_H
#define WEIR_TLS_TLS_SNI_REQUEST_H

#include <weir/channel.h>
#include <weir/tls_context.h>

#include "tls/openssl/openssl.h"

struct weir_tls_sni_request {
    weir_msg msg;          /* first */
    const weir_ctx *ctx;   /* of the handler; only compared */
    weir_channel *channel; /* a reference */
    weir__openssl_hello hello;

    /* The decision: one of these; neither = the context that called on_sni. */
    weir_tls_context *accepted; /* a reference */
    bool is_rejected;
    char reason[WEIR__TLS_REASON_SIZE];
};

/* Fails: -ENOMEM. */
int weir__tls_sni_request_create(const weir_ctx *ctx, const weir__openssl_hello *hello,
                                 weir_tls_sni_request **ret_request);

/* The decided request that an event is; NULL if it is something else. */
weir_tls_sni_request *weir__tls_sni_request_of(weir_msg *event);

#endif
