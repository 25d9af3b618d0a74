/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that asks first: when the client's hello is there, and before anything of it has been
 * answered, the handshake stops. What the client wants is read from the hello; then the session
 * goes on with the settings that somebody has chosen, as if it had begun with them.
 */
#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "tls/openssl.h"

/* Bytes that are being read; all that is taken is checked. */
struct bytes {
    const uint8_t *at;
    size_t left;
};

static bool take_number(struct bytes *from, size_t size, size_t *ret_number)
{
    size_t number = 0;

    if (from->left < size)
        return false;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | from->at[i];
    from->at += size;
    from->left -= size;
    *ret_number = number;
    return true;
}

/* Bytes behind their length, which is a number of `size` bytes. */
static bool take_part(struct bytes *from, size_t size, struct bytes *ret_part)
{
    size_t length;

    if (!take_number(from, size, &length) || from->left < length)
        return false;
    *ret_part = (struct bytes){from->at, length};
    from->at += length;
    from->left -= length;
    return true;
}

/* ---- what the client wants ---- */

static char lower(uint8_t c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool read_server_name(struct bytes extension, weir__tls_wish *wish)
{
    struct bytes list, name;
    size_t type;

    if (!take_part(&extension, 2, &list) || extension.left > 0 || !take_number(&list, 1, &type) ||
        type != TLSEXT_NAMETYPE_host_name || !take_part(&list, 2, &name) || list.left > 0)
        return false;
    if (name.left == 0 || name.left >= sizeof(wish->server_name) ||
        memchr(name.at, '\0', name.left) != NULL)
        return false;
    for (size_t i = 0; i < name.left; i++)
        wish->server_name[i] = lower(name.at[i]);
    wish->server_name[name.left] = '\0';
    return true;
}

/* What has a comma or a NUL, or finds no room, is no protocol that a chooser could look for. */
static void add_protocol(weir__tls_wish *wish, size_t *used, struct bytes protocol)
{
    size_t comma = *used > 0 ? 1 : 0;

    if (memchr(protocol.at, ',', protocol.left) != NULL ||
        memchr(protocol.at, '\0', protocol.left) != NULL ||
        comma + protocol.left >= sizeof(wish->alpn) - *used)
        return;
    if (comma > 0)
        wish->alpn[(*used)++] = ',';
    memcpy(wish->alpn + *used, protocol.at, protocol.left);
    *used += protocol.left;
    wish->alpn[*used] = '\0';
}

static bool read_protocols(struct bytes extension, weir__tls_wish *wish)
{
    struct bytes list, protocol;
    size_t used = 0;

    if (!take_part(&extension, 2, &list) || extension.left > 0 || list.left == 0)
        return false;
    while (list.left > 0) {
        if (!take_part(&list, 1, &protocol) || protocol.left == 0)
            return false;
        add_protocol(wish, &used, protocol);
    }
    return true;
}

static bool read_wish(SSL *ssl, weir__tls_wish *wish)
{
    struct bytes bytes;

    wish->server_name[0] = wish->alpn[0] = '\0';
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes.at, &bytes.left) == 1 &&
        !read_server_name(bytes, wish))
        return false;
    return SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
                                     &bytes.at, &bytes.left) != 1 ||
           read_protocols(bytes, wish);
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
        return SSL_CLIENT_HELLO_SUCCESS;
    }
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
    char *groups = settings->groups != NULL ? settings->groups : default_groups;
    SSL_CTX *ctx = settings->ctx;

    if (SSL_set_SSL_CTX(ssl, ctx) == NULL)
        return false;
    (void)SSL_clear_options(ssl, SSL_get_options(ssl) & ~SSL_CTX_get_options(ctx));
    (void)SSL_set_options(ssl, SSL_CTX_get_options(ctx));
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(ctx), SSL_CTX_get_verify_callback(ctx));
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

    weir_memory_free(self->wish);
    self->wish = NULL;
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
