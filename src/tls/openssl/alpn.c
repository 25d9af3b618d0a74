/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol on top of TLS: a client offers some, the server takes the one that it likes best. A
 * client that offers none goes on without; one that offers only what we do not know is refused, for
 * it would not understand what comes.
 */
#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "tls/openssl/session.h"
#include "tls/tls_alpn.h"

static int on_offer(SSL *ssl, const unsigned char **ret_protocol, unsigned char *ret_length,
                    const unsigned char *offer, unsigned offer_length, void *unused)
{
    const weir__tls_settings *settings = weir__openssl_session_of(ssl)->settings;
    unsigned char *protocol;

    (void)unused;
    if (SSL_select_next_proto(&protocol, ret_length, settings->alpn,
                              (unsigned)settings->alpn_length, offer,
                              offer_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_protocol = protocol;
    return SSL_TLSEXT_ERR_OK;
}

int weir__openssl_alpn_prepare(weir__openssl_making *making)
{
    weir__tls_settings *settings = making->settings;

    if (making->options->alpn == NULL)
        return 0;
    settings->alpn = weir_memory_alloc(WEIR__TLS_ALPN_MAX + 1);
    if (settings->alpn == NULL)
        return -ENOMEM;
    if (weir__tls_alpn_encode(making->options->alpn, settings->alpn, &settings->alpn_length) < 0)
        return weir__openssl_making_fail(making, -EINVAL, "%s", weir_tls_reason());
    if (settings->is_server)
        SSL_CTX_set_alpn_select_cb(settings->ctx, on_offer, NULL);
    else if (SSL_CTX_set_alpn_protos(settings->ctx, settings->alpn,
                                     (unsigned)settings->alpn_length) != 0)
        return weir__openssl_making_error(making, "alpn");
    return 0;
}
