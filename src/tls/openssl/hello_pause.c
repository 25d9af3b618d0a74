/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that asks first: when the client's hello is there, and before anything of it has been
 * answered, the handshake stops. What the client wants is read from the hello; then the session
 * goes on with the settings that somebody has chosen, as if it had begun with them.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <weir/memory.h>

#include "tls/openssl/session.h"
#include "tls/tls_hello.h"

/* What makes no sense to who reads hellos makes none here. */
static bool read_wish(SSL *ssl, weir__tls_wish *wish)
{
    weir_span bytes;

    wish->server_name[0] = wish->alpn[0] = '\0';
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes.data, &bytes.length) == 1 &&
        weir__tls_hello_server_name(bytes, wish->server_name) != NULL)
        return false;
    return SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
                                     &bytes.data, &bytes.length) != 1 ||
           weir__tls_hello_alpn(bytes, wish->alpn) == NULL;
}

static int ask(weir__openssl_session *self, int *ret_alert)
{
    self->wish = weir_memory_alloc(sizeof(*self->wish));
    if (self->wish == NULL) {
        self->io_err = -ENOMEM;
        *ret_alert = SSL_AD_INTERNAL_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }
    if (!read_wish(self->ssl, self->wish)) {
        *ret_alert = SSL_AD_DECODE_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }
    self->choice = WEIR__OPENSSL_CHOICE_WAITS;
    return SSL_CLIENT_HELLO_RETRY;
}

/* After a retry the hello is to be the same (RFC 8446, 4.1.2). OpenSSL does not look: the name of
 * the second would be told to everybody, with what was chosen for the first. */
static int compare(weir__openssl_session *self, int *ret_alert)
{
    weir__tls_wish wish;

    if (self->wish == NULL)
        return SSL_CLIENT_HELLO_SUCCESS;
    if (read_wish(self->ssl, &wish) && strcmp(wish.server_name, self->wish->server_name) == 0 &&
        strcmp(wish.alpn, self->wish->alpn) == 0)
        return SSL_CLIENT_HELLO_SUCCESS;
    *ret_alert = SSL_AD_ILLEGAL_PARAMETER;
    return SSL_CLIENT_HELLO_ERROR;
}

/* Called for each hello, a second one after a retry of TLS 1.3's too, and again after a stop. */
static int on_client_hello(SSL *ssl, int *ret_alert, void *unused)
{
    weir__openssl_session *self = weir__openssl_session_of(ssl);

    (void)unused;
    switch (self->choice) {
    case WEIR__OPENSSL_CHOICE_ASKS:
        return ask(self, ret_alert);
    case WEIR__OPENSSL_CHOICE_WAITS:
        return SSL_CLIENT_HELLO_RETRY;
    case WEIR__OPENSSL_CHOICE_REFUSED:
        *ret_alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_CLIENT_HELLO_ERROR;
    default:
        return compare(self, ret_alert);
    }
}

bool weir__openssl_hello_asks_for(SSL *ssl, const char *name)
{
    weir__tls_wish wish;

    return read_wish(ssl, &wish) && strcasecmp(wish.server_name, name) == 0;
}

/* What it asked for belongs to the session, and is there too when that is taken up again. */
static int on_server_name(SSL *ssl, int *ret_alert, void *unused)
{
    (void)ssl;
    (void)ret_alert;
    (void)unused;
    return SSL_TLSEXT_ERR_OK;
}

void weir__openssl_choice_prepare(weir__tls_settings *settings)
{
    SSL_CTX_set_client_hello_cb(settings->ctx, on_client_hello, NULL);
    SSL_CTX_set_tlsext_servername_callback(settings->ctx, on_server_name);
}

/* ---- what it gets ---- */

/* What a SSL has of the groups of its SSL_CTX cannot be taken back, only overwritten. */
static char default_groups[] = "X25519:P-256:X448:P-521:P-384"; /* OpenSSL's macro takes no const */

/*
 * SSL_set_SSL_CTX takes over the certificates, and what is looked up in the SSL_CTX each time: the
 * ciphers, the authorities, the callbacks. What a SSL has copied when it was made is left, and is
 * done here.
 */
static bool take_over(SSL *ssl, const weir__tls_settings *settings)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    char *groups = settings->groups != NULL ? settings->groups : default_groups;
    SSL_CTX *ctx = settings->ctx;

    if (SSL_set_SSL_CTX(ssl, ctx) == NULL)
        return false;
    (void)SSL_clear_options(ssl, SSL_get_options(ssl) & ~SSL_CTX_get_options(ctx));
    (void)SSL_set_options(ssl, SSL_CTX_get_options(ctx));
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(ctx), SSL_CTX_get_verify_callback(ctx));
    (void)X509_VERIFY_PARAM_clear_flags(param, X509_VERIFY_PARAM_get_flags(param));
    (void)X509_VERIFY_PARAM_set_flags(param, X509_VERIFY_PARAM_get_flags(SSL_CTX_get0_param(ctx)));
    return SSL_set_min_proto_version(ssl, SSL_CTX_get_min_proto_version(ctx)) == 1 &&
           SSL_set_max_proto_version(ssl, SSL_CTX_get_max_proto_version(ctx)) == 1 &&
           SSL_set_num_tickets(ssl, SSL_CTX_get_num_tickets(ctx)) == 1 &&
           SSL_set1_groups_list(ssl, groups) == 1;
}

const weir__tls_wish *weir__openssl_wish(weir__tls_session *session)
{
    return ((weir__openssl_session *)(void *)session)->wish;
}

void weir__openssl_choose(weir__tls_session *session, weir__tls_settings *settings)
{
    weir__openssl_session *self = (weir__openssl_session *)(void *)session;

    self->choice = settings == NULL ? WEIR__OPENSSL_CHOICE_REFUSED : WEIR__OPENSSL_CHOICE_NONE;
    if (settings == NULL || settings == self->settings)
        return;
    if (!take_over(self->ssl, settings)) {
        (void)weir__openssl_session_fail(self, -ENOMEM, "there is no memory");
        return;
    }
    (void)weir__openssl_settings_retain(settings);
    weir__openssl_settings_release(self->settings);
    self->settings = settings;
}
