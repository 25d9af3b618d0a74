/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ALPN: the client offers protocols, the server selects the first of its own list that is offered.
 * A client that offers none continues without; one that offers only unknown protocols is rejected,
 * for it would not understand what follows.
 */
#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "tls/openssl/internal.h"

/* The most bytes of the list: as many as a weir__openssl_hello holds. */
#define LIST_MAX 255

static int on_select(SSL *ssl, const unsigned char **ret_protocol, unsigned char *ret_length,
                     const unsigned char *offer, unsigned offer_length, void *unused)
{
    const weir__openssl_context *context = weir__openssl_session_of(ssl)->context;
    unsigned char *protocol;

    (void)unused;
    if (SSL_select_next_proto(&protocol, ret_length, context->alpn, (unsigned)context->alpn_length,
                              offer, offer_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_protocol = protocol;
    return SSL_TLSEXT_ERR_OK;
}

/* "h2,http/1.1" in wire format: each protocol with its length before it. */
static int encode(weir__openssl_builder *builder, const char *list)
{
    const char *protocol = list;
    size_t length;
    uint8_t *end;

    if (strlen(list) > LIST_MAX)
        return weir__openssl_builder_fail(builder, -EINVAL, "alpn is longer than %d bytes",
                                          LIST_MAX);
    end = builder->context->alpn = weir_memory_alloc(LIST_MAX + 1);
    if (end == NULL)
        return -ENOMEM;
    for (;; protocol += length + 1) {
        length = strcspn(protocol, ",");
        if (length == 0)
            return weir__openssl_builder_fail(builder, -EINVAL,
                                              "alpn \"%s\" contains an empty protocol", list);
        *end++ = (uint8_t)length;
        memcpy(end, protocol, length);
        end += length;
        if (protocol[length] == '\0')
            break;
    }
    builder->context->alpn_length = (size_t)(end - builder->context->alpn);
    return 0;
}

int weir__openssl_alpn_prepare(weir__openssl_builder *builder)
{
    weir__openssl_context *context = builder->context;
    int err;

    if (builder->options->alpn == NULL)
        return 0;
    err = encode(builder, builder->options->alpn);
    if (err < 0)
        return err;
    if (context->is_server)
        SSL_CTX_set_alpn_select_cb(context->ctx, on_select, NULL);
    else if (SSL_CTX_set_alpn_protos(context->ctx, context->alpn, (unsigned)context->alpn_length) !=
             0)
        return weir__openssl_builder_error(builder, "alpn");
    return 0;
}
