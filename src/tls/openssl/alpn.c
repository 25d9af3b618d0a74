/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ALPN: the client offers protocols, the server selects the first of its own list that is offered.
 * A client that offers none continues without; one that offers only unknown protocols is rejected,
 * for it would not understand what follows.
 *
 * The list is that of the context, or what the session's channel speaks. A context that a server
 * chooses by name may have protocols that the channel does not speak: these are passed over.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/memory.h>

#include "tls/openssl/internal.h"

/* The most bytes of the list: as many as a weir__openssl_hello holds. */
#define LIST_MAX 255

/* The same protocol in another list, both in wire format; NULL if it is not there. */
static const uint8_t *find(weir_span list, const uint8_t *protocol)
{
    for (size_t at = 0; at < list.length; at += list.data[at] + 1u)
        if (list.data[at] == protocol[0] && at + protocol[0] < list.length &&
            memcmp(list.data + at + 1, protocol + 1, protocol[0]) == 0)
            return list.data + at;
    return NULL;
}

/* "h2,http/1.1" in wire format: each protocol with its length before it. */
static weir_span encode(const char *list, uint8_t wire[LIST_MAX + 1])
{
    uint8_t *end = wire;
    size_t length;

    for (const char *protocol = list; *protocol != '\0'; protocol += length) {
        length = strcspn(protocol, ",");
        if (length > 0)
            *end++ = (uint8_t)length;
        memcpy(end, protocol, length);
        end += length;
        length += protocol[length] == ',';
    }
    return weir_span_of(wire, (size_t)(end - wire));
}

static weir_span list_of(const weir__openssl_context *context)
{
    return weir_span_of(context->alpn, context->alpn_length);
}

static int on_select(SSL *ssl, const unsigned char **ret_protocol, unsigned char *ret_length,
                     const unsigned char *offer, unsigned offer_length, void *unused)
{
    const weir__openssl_session *self = weir__openssl_session_of(ssl);
    weir_span offered = weir_span_of(offer, offer_length), list = list_of(self->context), spoken;
    uint8_t wire[LIST_MAX + 1];

    (void)unused;
    spoken = self->protocols != NULL ? encode(self->protocols, wire) : list;
    if (list.length == 0)
        list = spoken;
    if (list.length == 0)
        return SSL_TLSEXT_ERR_NOACK;
    for (size_t at = 0; at < list.length; at += list.data[at] + 1u) {
        const uint8_t *protocol = find(offered, list.data + at);

        if (protocol == NULL || find(spoken, protocol) == NULL)
            continue;
        *ret_length = *protocol;
        *ret_protocol = protocol + 1;
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int set_list(weir__openssl_builder *builder, const char *list)
{
    weir__openssl_context *context = builder->context;

    if (strlen(list) > LIST_MAX)
        return weir__openssl_builder_fail(builder, -EINVAL, "alpn is longer than %d bytes",
                                          LIST_MAX);
    if (list[0] == '\0' || list[0] == ',' || list[strlen(list) - 1] == ',' ||
        strstr(list, ",,") != NULL)
        return weir__openssl_builder_fail(builder, -EINVAL,
                                          "alpn \"%s\" contains an empty protocol", list);
    context->alpn = weir_memory_alloc(LIST_MAX + 1);
    if (context->alpn == NULL)
        return -ENOMEM;
    context->alpn_length = encode(list, context->alpn).length;
    return 0;
}

int weir__openssl_alpn_prepare(weir__openssl_builder *builder)
{
    weir__openssl_context *context = builder->context;
    int err = builder->options->alpn != NULL ? set_list(builder, builder->options->alpn) : 0;

    if (context->is_server)
        SSL_CTX_set_alpn_select_cb(context->ctx, on_select, NULL);
    else if (context->alpn_length > 0 &&
             SSL_CTX_set_alpn_protos(context->ctx, context->alpn, (unsigned)context->alpn_length) !=
                 0)
        return weir__openssl_builder_error(builder, "alpn");
    return err;
}

int weir__openssl_context_check_protocols(const weir__openssl_context *context,
                                          const char *protocols,
                                          char ret_reason[WEIR__TLS_REASON_SIZE])
{
    weir_span list = list_of(context), spoken;
    uint8_t wire[LIST_MAX + 1];

    if (protocols == NULL)
        return 0;
    spoken = encode(protocols, wire);
    for (size_t at = 0; at < list.length; at += list.data[at] + 1u) {
        if (find(spoken, list.data + at) != NULL)
            continue;
        (void)snprintf(ret_reason, WEIR__TLS_REASON_SIZE, "alpn \"%.*s\": expected %s",
                       (int)list.data[at], (const char *)list.data + at + 1, protocols);
        return -EPROTONOSUPPORT;
    }
    return 0;
}

int weir__openssl_alpn_offer(weir__openssl_session *session)
{
    uint8_t wire[LIST_MAX + 1];
    weir_span list;

    if (session->protocols == NULL || session->context->alpn_length > 0)
        return 0;
    list = encode(session->protocols, wire);
    if (SSL_set_alpn_protos(session->ssl, list.data, (unsigned)list.length) == 0)
        return 0;
    return weir__openssl_session_fail_by_queue(session);
}
