/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that pauses at the client's hello, before anything of it is answered. The server name
 * and the protocols are read from the hello; then the session continues with the context that was
 * chosen, as if it had begun with it.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <weir/memory.h>

#include "tls/openssl/internal.h"
#include "tls/tls_hello.h"

/* Rejects what the hello reader rejects. */
static bool read_hello(SSL *ssl, weir__openssl_hello *hello)
{
    weir_span bytes;

    hello->server_name[0] = hello->alpn[0] = '\0';
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes.data, &bytes.length) == 1 &&
        weir__tls_hello_server_name(bytes, hello->server_name) != NULL)
        return false;
    return SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
                                     &bytes.data, &bytes.length) != 1 ||
           weir__tls_hello_alpn(bytes, hello->alpn) == NULL;
}

static int pause_session(weir__openssl_session *self, int *ret_alert)
{
    self->hello = weir_memory_alloc(sizeof(*self->hello));
    if (self->hello == NULL) {
        self->io_err = -ENOMEM;
        *ret_alert = SSL_AD_INTERNAL_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }
    if (!read_hello(self->ssl, self->hello)) {
        *ret_alert = SSL_AD_DECODE_ERROR;
        return SSL_CLIENT_HELLO_ERROR;
    }
    self->hello_state = WEIR__OPENSSL_HELLO_PAUSED;
    return SSL_CLIENT_HELLO_RETRY;
}

/* After a HelloRetryRequest the second hello must ask for the same (RFC 8446, 4.1.2). OpenSSL does
 * not check: the second name would be reported with the context chosen for the first. */
static int compare(const weir__openssl_session *self, int *ret_alert)
{
    weir__openssl_hello second;

    if (self->hello == NULL)
        return SSL_CLIENT_HELLO_SUCCESS;
    if (read_hello(self->ssl, &second) &&
        strcmp(second.server_name, self->hello->server_name) == 0 &&
        strcmp(second.alpn, self->hello->alpn) == 0)
        return SSL_CLIENT_HELLO_SUCCESS;
    *ret_alert = SSL_AD_ILLEGAL_PARAMETER;
    return SSL_CLIENT_HELLO_ERROR;
}

/* Called for each hello, also for a second one after a HelloRetryRequest, and again after a
 * pause. */
static int on_client_hello(SSL *ssl, int *ret_alert, void *unused)
{
    weir__openssl_session *self = weir__openssl_session_of(ssl);

    (void)unused;
    switch (self->hello_state) {
    case WEIR__OPENSSL_HELLO_PAUSE:
        return pause_session(self, ret_alert);
    case WEIR__OPENSSL_HELLO_PAUSED:
        return SSL_CLIENT_HELLO_RETRY;
    case WEIR__OPENSSL_HELLO_REJECTED:
        *ret_alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_CLIENT_HELLO_ERROR;
    default:
        return compare(self, ret_alert);
    }
}

bool weir__openssl_client_hello_has_name(SSL *ssl, const char *name)
{
    weir__openssl_hello hello;

    return read_hello(ssl, &hello) && strcasecmp(hello.server_name, name) == 0;
}

/* Accepts the name, so that it is stored with the session and known when that is resumed. */
static int on_server_name(SSL *ssl, int *ret_alert, void *unused)
{
    (void)ssl;
    (void)ret_alert;
    (void)unused;
    return SSL_TLSEXT_ERR_OK;
}

void weir__openssl_client_hello_prepare(weir__openssl_context *context)
{
    SSL_CTX_set_client_hello_cb(context->ctx, on_client_hello, NULL);
    SSL_CTX_set_tlsext_servername_callback(context->ctx, on_server_name);
}

/* ---- the chosen context ---- */

/* The groups that an SSL copied from its SSL_CTX cannot be removed, only overwritten. */
static char default_groups[] = "X25519:P-256:X448:P-521:P-384"; /* OpenSSL's macro takes no const */

/*
 * SSL_set_SSL_CTX replaces the certificates, and what is looked up in the SSL_CTX each time: the
 * ciphers, the authorities, the callbacks. What an SSL copies when it is created is replaced here.
 */
static bool replace_ctx(SSL *ssl, const weir__openssl_context *context)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    char *groups = context->groups != NULL ? context->groups : default_groups;
    SSL_CTX *ctx = context->ctx;

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

const weir__openssl_hello *weir__openssl_session_hello(const weir__openssl_session *self)
{
    return self->hello;
}

void weir__openssl_session_set_context(weir__openssl_session *self, weir__openssl_context *context)
{
    self->hello_state = context == NULL ? WEIR__OPENSSL_HELLO_REJECTED : WEIR__OPENSSL_HELLO_PASS;
    if (context == NULL || context == self->context)
        return;
    if (!replace_ctx(self->ssl, context)) {
        (void)weir__openssl_session_fail(self, -ENOMEM, "out of memory");
        return;
    }
    (void)weir__openssl_context_retain(context);
    weir__openssl_context_release(self->context);
    self->context = context;
}
