/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options to a SSL_CTX.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <weir/memory.h>

#include "tls/openssl.h"

static bool use_chain(SSL_CTX *ctx, const char *pem)
{
    BIO *text = BIO_new_mem_buf(pem, -1);
    X509 *x509 = text == NULL ? NULL : PEM_read_bio_X509_AUX(text, NULL, NULL, NULL);
    bool is_ok = x509 != NULL && SSL_CTX_use_certificate(ctx, x509) == 1;

    X509_free(x509);
    while (is_ok && (x509 = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL) {
        is_ok = SSL_CTX_add0_chain_cert(ctx, x509) == 1;
        if (!is_ok)
            X509_free(x509);
    }
    BIO_free(text);
    if (is_ok)
        ERR_clear_error(); /* the end of the text was one */
    return is_ok;
}

static bool use_key(SSL_CTX *ctx, const char *pem)
{
    BIO *text = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = text == NULL ? NULL : PEM_read_bio_PrivateKey(text, NULL, NULL, NULL);
    bool is_ok = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1;

    EVP_PKEY_free(key);
    BIO_free(text);
    return is_ok;
}

static bool believe(SSL_CTX *ctx, const char *pem)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    BIO *text = BIO_new_mem_buf(pem, -1);
    bool is_ok = text != NULL;
    X509 *x509;

    while (is_ok && (x509 = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL) {
        is_ok = X509_STORE_add_cert(store, x509) == 1;
        X509_free(x509);
    }
    BIO_free(text);
    if (is_ok)
        ERR_clear_error();
    return is_ok;
}

static bool configure(SSL_CTX *ctx, const weir_tls_context_options *options)
{
    const char *key = options->key_pem != NULL ? options->key_pem : options->certificate_pem;

    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           (options->max_version != WEIR_TLS_VERSION_1_2 ||
            SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION) == 1) &&
           (options->certificate_pem == NULL ||
            (use_chain(ctx, options->certificate_pem) && use_key(ctx, key))) &&
           (options->ca_pem == NULL || believe(ctx, options->ca_pem));
}

int weir__openssl_settings_create(const weir_tls_context_options *options, bool is_server,
                                  char reason[WEIR__TLS_REASON_SIZE],
                                  weir__tls_settings **ret_settings)
{
    weir__tls_settings *settings;
    int err = weir__openssl_start();

    (void)snprintf(reason, WEIR__TLS_REASON_SIZE, "there is no memory");
    if (err < 0)
        return err;
    settings = weir_memory_alloc(sizeof(*settings));
    if (settings == NULL)
        return -ENOMEM;
    memset(settings, 0, sizeof(*settings));
    weir__refs_init(&settings->refs);
    settings->is_server = is_server;
    settings->verify = options->verify;
    if (settings->verify == WEIR_TLS_VERIFY_DEFAULT)
        settings->verify = is_server ? WEIR_TLS_VERIFY_NONE : WEIR_TLS_VERIFY_REQUIRED;
    ERR_clear_error();
    settings->ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    if (settings->ctx == NULL || !configure(settings->ctx, options)) {
        err = weir__openssl_error(reason);
        weir__openssl_settings_release(settings);
        return err;
    }
    weir__openssl_prepare(settings);
    *ret_settings = settings;
    return 0;
}

weir__tls_settings *weir__openssl_settings_retain(weir__tls_settings *settings)
{
    weir__refs_retain(&settings->refs);
    return settings;
}

void weir__openssl_settings_release(weir__tls_settings *settings)
{
    if (settings == NULL || !weir__refs_release(&settings->refs))
        return;
    SSL_CTX_free(settings->ctx);
    weir_memory_free(settings->pins);
    weir_memory_free(settings->groups);
    weir_memory_free(settings);
}

weir_tls_certificate *weir__openssl_settings_certificate(weir__tls_settings *settings)
{
    X509 *x509 = SSL_CTX_get0_certificate(settings->ctx);
    weir_tls_certificate *certificate;

    if (x509 == NULL || weir__openssl_certificate_create(x509, &certificate) < 0)
        return NULL;
    return certificate;
}
