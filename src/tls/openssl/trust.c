/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom we trust: authorities, and pinned keys.
 *
 * A resumed session is not verified again. So everything that decides about trust is hashed into
 * the session id context of a server: a server that trusts others does not resume its sessions.
 */
#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <weir/memory.h>

#include "tls/openssl/internal.h"

/* ---- authorities ---- */

/* A server also sends its clients the names of the authorities it trusts. */
static int add_authority(weir__openssl_builder *builder, EVP_MD_CTX *digest_ctx, const char *name,
                         X509 *x509)
{
    SSL_CTX *ctx = builder->context->ctx;
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned length;

    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x509) != 1 ||
        (builder->context->is_server && SSL_CTX_add_client_CA(ctx, x509) != 1) ||
        X509_digest(x509, EVP_sha256(), digest, &length) != 1 ||
        EVP_DigestUpdate(digest_ctx, digest, length) != 1)
        return weir__openssl_builder_error(builder, name);
    return 0;
}

static int add_authorities(weir__openssl_builder *builder, EVP_MD_CTX *digest_ctx, const char *file,
                           const char *text)
{
    const char *name = file != NULL ? file : "ca_pem";
    size_t count = 0;
    X509 *x509;
    BIO *bio;
    int err = weir__openssl_builder_open(builder, file, text, &bio);

    if (err < 0)
        return err;
    while (err == 0 && (x509 = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL) {
        err = add_authority(builder, digest_ctx, name, x509);
        X509_free(x509);
        count++;
    }
    BIO_free(bio);
    if (err == 0 && !weir__openssl_error_is_end_of_pem())
        err = weir__openssl_builder_error(builder, name);
    if (err == 0 && count == 0)
        err = weir__openssl_builder_fail(builder, WEIR_ETLS, "%s: no certificate found", name);
    return err;
}

/* A given authority is trusted even if it is not self-signed (PARTIAL_CHAIN). */
static int use_authorities(weir__openssl_builder *builder, EVP_MD_CTX *digest_ctx)
{
    const weir_tls_context_options *options = builder->options;
    enum weir_tls_verify verify = builder->context->verify;
    SSL_CTX *ctx = builder->context->ctx;
    int err = 0;

    if (options->ca_file == NULL && options->ca_pem == NULL) {
        if (verify != WEIR_TLS_VERIFY_OPTIONAL && verify != WEIR_TLS_VERIFY_REQUIRED)
            return 0;
        return SSL_CTX_set_default_verify_paths(ctx) == 1
                   ? 0
                   : weir__openssl_builder_error(builder, "the system's authorities");
    }
    if (options->ca_file != NULL)
        err = add_authorities(builder, digest_ctx, options->ca_file, NULL);
    if (err == 0 && options->ca_pem != NULL)
        err = add_authorities(builder, digest_ctx, NULL, options->ca_pem);
    if (err == 0)
        (void)X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    return err;
}

/* ---- pins ---- */

#define PIN_PREFIX "sha256/"
#define PIN_PREFIX_LENGTH (sizeof(PIN_PREFIX) - 1)
#define PIN_BASE64_LENGTH 44 /* of 32 bytes, with one padding character */

/* False if it is not a pin. */
static bool read_pin(const char *text, size_t length, uint8_t ret_pin[WEIR__OPENSSL_PIN_LENGTH])
{
    uint8_t bytes[PIN_BASE64_LENGTH / 4 * 3];
    const char *base64 = text + PIN_PREFIX_LENGTH;

    if (length != PIN_PREFIX_LENGTH + PIN_BASE64_LENGTH ||
        strncmp(text, PIN_PREFIX, PIN_PREFIX_LENGTH) != 0 || base64[PIN_BASE64_LENGTH - 1] != '=' ||
        memchr(base64, '=', PIN_BASE64_LENGTH - 1) != NULL)
        return false;
    if (EVP_DecodeBlock(bytes, (const unsigned char *)base64, PIN_BASE64_LENGTH) !=
        (int)sizeof(bytes)) /* it skips blanks */
        return false;
    memcpy(ret_pin, bytes, WEIR__OPENSSL_PIN_LENGTH);
    return true;
}

static size_t count_pins(const char *pins)
{
    size_t count = 1;

    for (; *pins != '\0'; pins++)
        count += *pins == ',';
    return count;
}

static int use_pins(weir__openssl_builder *builder, EVP_MD_CTX *digest_ctx)
{
    weir__openssl_context *context = builder->context;
    const char *pin = builder->options->pins;
    size_t length;

    if (pin == NULL)
        return 0;
    context->pins = weir_memory_alloc(count_pins(pin) * sizeof(context->pins[0]));
    if (context->pins == NULL)
        return -ENOMEM;
    for (;; pin += length + 1) {
        length = strcspn(pin, ",");
        if (!read_pin(pin, length, context->pins[context->pin_count]))
            return weir__openssl_builder_fail(builder, -EINVAL,
                                              "\"%.*s\" is not a pin: expected sha256/BASE64",
                                              (int)(length < 100 ? length : 100), pin);
        context->pin_count++;
        if (pin[length] == '\0')
            break;
    }
    return EVP_DigestUpdate(digest_ctx, context->pins,
                            context->pin_count * sizeof(context->pins[0])) == 1
               ? 0
               : weir__openssl_builder_error(builder, "pins");
}

/* ---- the session id context ---- */

static int set_id_context(weir__openssl_builder *builder, EVP_MD_CTX *digest_ctx)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned length;

    _Static_assert(SSL_MAX_SID_CTX_LENGTH >= WEIR__OPENSSL_PIN_LENGTH, "a SHA-256 fits");
    if (EVP_DigestUpdate(digest_ctx, &builder->context->verify, sizeof(builder->context->verify)) !=
            1 ||
        EVP_DigestFinal_ex(digest_ctx, digest, &length) != 1 ||
        SSL_CTX_set_session_id_context(builder->context->ctx, digest, length) != 1)
        return weir__openssl_builder_error(builder, "OpenSSL");
    return 0;
}

int weir__openssl_trust_prepare(weir__openssl_builder *builder)
{
    EVP_MD_CTX *digest_ctx = EVP_MD_CTX_new();
    int err = 0;

    if (digest_ctx == NULL || EVP_DigestInit_ex(digest_ctx, EVP_sha256(), NULL) != 1)
        err = weir__openssl_builder_error(builder, "OpenSSL");
    if (err == 0)
        err = use_authorities(builder, digest_ctx);
    if (err == 0)
        err = use_pins(builder, digest_ctx);
    if (err == 0)
        err = set_id_context(builder, digest_ctx);
    EVP_MD_CTX_free(digest_ctx);
    return err;
}
