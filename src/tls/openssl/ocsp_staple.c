/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stapling: a server has an OCSP response with it, by which its authority says that the certificate
 * has not been revoked. Somebody else fetches it, into a file; a reload reads it again.
 */
#include <errno.h>

#include <openssl/ocsp.h>

#include "tls/openssl/session.h"

/* Without memory the client gets none, as from most servers. */
static int on_request(SSL *ssl, void *unused)
{
    const weir__tls_settings *settings = weir__openssl_session_of(ssl)->settings;
    uint8_t *copy;

    (void)unused;
    if (settings->staple == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    copy = OPENSSL_memdup(settings->staple, (size_t)settings->staple_length);
    if (copy == NULL)
        return SSL_TLSEXT_ERR_NOACK;
    (void)SSL_set_tlsext_status_ocsp_resp(ssl, copy, settings->staple_length); /* takes it */
    return SSL_TLSEXT_ERR_OK;
}

static int encode(weir__openssl_making *making, OCSP_RESPONSE *response)
{
    weir__tls_settings *settings = making->settings;

    if (OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL)
        return weir__openssl_making_fail(making, WEIR_ETLS, "%s: the response says \"%s\"",
                                         making->options->ocsp_file,
                                         OCSP_response_status_str(OCSP_response_status(response)));
    settings->staple_length = i2d_OCSP_RESPONSE(response, &settings->staple);
    return settings->staple_length > 0
               ? 0
               : weir__openssl_making_error(making, making->options->ocsp_file);
}

static int read_response(weir__openssl_making *making)
{
    const char *file = making->options->ocsp_file;
    OCSP_RESPONSE *response;
    BIO *bio;
    int err = weir__openssl_making_open(making, file, NULL, &bio);

    if (err < 0)
        return err;
    response = d2i_OCSP_RESPONSE_bio(bio, NULL);
    if (response == NULL)
        err = weir__openssl_making_error(making, file);
    else
        err = encode(making, response);
    OCSP_RESPONSE_free(response);
    BIO_free(bio);
    return err;
}

int weir__openssl_staple_prepare(weir__openssl_making *making)
{
    SSL_CTX *ctx = making->settings->ctx;

    if (!making->settings->is_server) {
        weir__openssl_stapled_prepare(making->settings);
        return 0;
    }
    if (making->options->ocsp_file == NULL)
        return 0;
    (void)SSL_CTX_set_tlsext_status_cb(ctx, on_request);
    return read_response(making);
}
