/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom we believe: authorities, and the pins of keys.
 *
 * A session that is taken up again is not verified again. So what decides about belief goes into
 * the mark of a server's sessions (the session id context): where somebody else is believed they
 * are not taken up.
 */
#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <weir/memory.h>

#include "tls/openssl/session.h"

/* ---- authorities ---- */

/* A server tells its clients whose certificates it would believe. */
static int add_authority(weir__openssl_making *making, EVP_MD_CTX *mark, const char *name,
                         X509 *x509)
{
    SSL_CTX *ctx = making->settings->ctx;
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned length;

    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x509) != 1 ||
        (making->settings->is_server && SSL_CTX_add_client_CA(ctx, x509) != 1) ||
        X509_digest(x509, EVP_sha256(), digest, &length) != 1 ||
        EVP_DigestUpdate(mark, digest, length) != 1)
        return weir__openssl_making_error(making, name);
    return 0;
}

static int add_authorities(weir__openssl_making *making, EVP_MD_CTX *mark, const char *file,
                           const char *text)
{
    const char *name = file != NULL ? file : "ca_pem";
    size_t count = 0;
    X509 *x509;
    BIO *bio;
    int err = weir__openssl_making_open(making, file, text, &bio);

    if (err < 0)
        return err;
    while (err == 0 && (x509 = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL) {
        err = add_authority(making, mark, name, x509);
        X509_free(x509);
        count++;
    }
    BIO_free(bio);
    if (err == 0 && !weir__openssl_is_end_of_pem())
        err = weir__openssl_making_error(making, name);
    if (err == 0 && count == 0)
        err =
            weir__openssl_making_fail(making, WEIR_ETLS, "%s: there is no certificate in it", name);
    return err;
}

/* Who names an authority means it, also if that is itself vouched for by another. */
static int use_authorities(weir__openssl_making *making, EVP_MD_CTX *mark)
{
    const weir_tls_context_options *options = making->options;
    enum weir_tls_verify verify = making->settings->verify;
    SSL_CTX *ctx = making->settings->ctx;
    int err = 0;

    if (options->ca_file == NULL && options->ca_pem == NULL) {
        if (verify != WEIR_TLS_VERIFY_OPTIONAL && verify != WEIR_TLS_VERIFY_REQUIRED)
            return 0;
        return SSL_CTX_set_default_verify_paths(ctx) == 1
                   ? 0
                   : weir__openssl_making_error(making, "the system's authorities");
    }
    if (options->ca_file != NULL)
        err = add_authorities(making, mark, options->ca_file, NULL);
    if (err == 0 && options->ca_pem != NULL)
        err = add_authorities(making, mark, NULL, options->ca_pem);
    if (err == 0)
        (void)X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    return err;
}

/* ---- pins ---- */

#define PIN_PREFIX "sha256/"
#define PIN_PREFIX_LENGTH (sizeof(PIN_PREFIX) - 1)
#define PIN_BASE64_LENGTH 44 /* of 32 bytes, with one sign that fills up */

/* Fails with false if it is none. */
static bool read_pin(const char *text, size_t length, uint8_t ret_pin[WEIR__OPENSSL_PIN_LENGTH])
{
    uint8_t bytes[PIN_BASE64_LENGTH / 4 * 3];
    const char *base64 = text + PIN_PREFIX_LENGTH;

    if (length != PIN_PREFIX_LENGTH + PIN_BASE64_LENGTH ||
        strncmp(text, PIN_PREFIX, PIN_PREFIX_LENGTH) != 0 || base64[PIN_BASE64_LENGTH - 1] != '=' ||
        memchr(base64, '=', PIN_BASE64_LENGTH - 1) != NULL)
        return false;
    if (EVP_DecodeBlock(bytes, (const unsigned char *)base64, PIN_BASE64_LENGTH) !=
        (int)sizeof(bytes)) /* it passes blanks over */
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

static int use_pins(weir__openssl_making *making, EVP_MD_CTX *mark)
{
    weir__tls_settings *settings = making->settings;
    const char *pin = making->options->pins;
    size_t length;

    if (pin == NULL)
        return 0;
    settings->pins = weir_memory_alloc(count_pins(pin) * sizeof(settings->pins[0]));
    if (settings->pins == NULL)
        return -ENOMEM;
    for (;; pin += length + 1) {
        length = strcspn(pin, ",");
        if (!read_pin(pin, length, settings->pins[settings->pin_count]))
            return weir__openssl_making_fail(making, -EINVAL,
                                             "\"%.*s\" is no pin, as sha256/BASE64 is",
                                             (int)(length < 100 ? length : 100), pin);
        settings->pin_count++;
        if (pin[length] == '\0')
            break;
    }
    return EVP_DigestUpdate(mark, settings->pins,
                            settings->pin_count * sizeof(settings->pins[0])) == 1
               ? 0
               : weir__openssl_making_error(making, "pins");
}

/* ---- all of it ---- */

static int set_mark(weir__openssl_making *making, EVP_MD_CTX *mark)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned length;

    _Static_assert(SSL_MAX_SID_CTX_LENGTH >= WEIR__OPENSSL_PIN_LENGTH, "a SHA-256 fits");
    if (EVP_DigestUpdate(mark, &making->settings->verify, sizeof(making->settings->verify)) != 1 ||
        EVP_DigestFinal_ex(mark, digest, &length) != 1 ||
        SSL_CTX_set_session_id_context(making->settings->ctx, digest, length) != 1)
        return weir__openssl_making_error(making, "OpenSSL");
    return 0;
}

int weir__openssl_trust_prepare(weir__openssl_making *making)
{
    EVP_MD_CTX *mark = EVP_MD_CTX_new();
    int err = 0;

    if (mark == NULL || EVP_DigestInit_ex(mark, EVP_sha256(), NULL) != 1)
        err = weir__openssl_making_error(making, "OpenSSL");
    if (err == 0)
        err = use_authorities(making, mark);
    if (err == 0)
        err = use_pins(making, mark);
    if (err == 0)
        err = set_mark(making, mark);
    EVP_MD_CTX_free(mark);
    return err;
}
