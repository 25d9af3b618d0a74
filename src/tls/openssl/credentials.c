/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own certificate, its chain and its key.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <weir/log.h>

#include "tls/openssl/internal.h"

/* A file, or else a text of the options, with its name for messages. */
struct source {
    const char *file;
    const char *text;
    const char *name;
};

static struct source certificate_source(const weir_tls_context_options *options)
{
    const char *file = options->certificate_file;

    return (struct source){file, options->certificate_pem, file != NULL ? file : "certificate_pem"};
}

/* By default the key is with the certificate. */
static struct source key_source(const weir_tls_context_options *options)
{
    const char *file = options->key_file;

    if (file == NULL && options->key_pem == NULL)
        return certificate_source(options);
    return (struct source){file, options->key_pem, file != NULL ? file : "key_pem"};
}

/* ---- the certificate ---- */

static int add_chain(weir__openssl_builder *builder, BIO *bio, const char *name)
{
    X509 *x509;

    while ((x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        if (SSL_CTX_add0_chain_cert(builder->context->ctx, x509) != 1) {
            X509_free(x509);
            return weir__openssl_builder_error(builder, name);
        }
    }
    return weir__openssl_error_is_end_of_pem() ? 0 : weir__openssl_builder_error(builder, name);
}

static int read_leaf(weir__openssl_builder *builder, BIO *bio, const char *name, X509 **ret_x509)
{
    X509 *x509 = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);

    if (x509 != NULL) {
        *ret_x509 = x509;
        return 0;
    }
    if (weir__openssl_error_is_end_of_pem())
        return weir__openssl_builder_fail(builder, WEIR_ETLS, "%s: no certificate found", name);
    return weir__openssl_builder_error(builder, name);
}

static int use_certificate(weir__openssl_builder *builder, X509 **ret_x509)
{
    struct source source = certificate_source(builder->options);
    X509 *x509 = NULL;
    BIO *bio;
    int err = weir__openssl_builder_open(builder, source.file, source.text, &bio);

    if (err < 0)
        return err;
    err = read_leaf(builder, bio, source.name, &x509);
    if (err == 0 && SSL_CTX_use_certificate(builder->context->ctx, x509) != 1)
        err = weir__openssl_builder_error(builder, source.name);
    if (err == 0)
        err = add_chain(builder, bio, source.name);
    BIO_free(bio);
    if (err == 0)
        *ret_x509 = x509;
    else
        X509_free(x509);
    return err;
}

/* ---- the key ---- */

struct passphrase {
    const char *text;
    bool was_asked;
};

/* Always set, because OpenSSL's default asks at the terminal. */
static int on_passphrase(char *buffer, int size, int is_writing, void *arg)
{
    struct passphrase *passphrase = arg;
    size_t length = passphrase->text != NULL ? strlen(passphrase->text) : 0;

    (void)is_writing;
    passphrase->was_asked = true;
    if (passphrase->text == NULL || length > (size_t)size)
        return -1;
    memcpy(buffer, passphrase->text, length);
    return (int)length;
}

/* True if the PEM contained no key of a kind that OpenSSL knows. */
static bool is_no_key(void)
{
    unsigned long error = ERR_peek_last_error();

    return ERR_GET_LIB(error) == ERR_LIB_OSSL_DECODER && ERR_GET_REASON(error) == ERR_R_UNSUPPORTED;
}

static int reject_key(weir__openssl_builder *builder, const char *name,
                      const struct passphrase *passphrase)
{
    if (weir__openssl_error_is_out_of_memory())
        return weir__openssl_builder_error(builder, name);
    if (passphrase->was_asked && passphrase->text == NULL)
        return weir__openssl_builder_fail(
            builder, -EINVAL, "%s: the key is encrypted and no passphrase is given", name);
    if (passphrase->was_asked)
        return weir__openssl_builder_fail(builder, -EINVAL, "%s: wrong passphrase", name);
    if (weir__openssl_error_is_end_of_pem() || is_no_key())
        return weir__openssl_builder_fail(builder, WEIR_ETLS, "%s: no readable key found", name);
    return weir__openssl_builder_error(builder, name);
}

/*
 * A key that everybody can read or change is worthless. Group permissions are fine: that is how a
 * service reads the key of another user. An encrypted key may be readable.
 */
static void warn_if_exposed(const weir__openssl_builder *builder, const char *path, BIO *bio,
                            bool is_encrypted)
{
    struct stat status;
    FILE *file = NULL;

    if (BIO_get_fp(bio, &file) != 1 || fstat(fileno(file), &status) < 0 || !S_ISREG(status.st_mode))
        return;
    if ((status.st_mode & S_IWOTH) != 0 || ((status.st_mode & S_IROTH) != 0 && !is_encrypted))
        weir_log_write(WEIR_LOG_WARN, "tls", builder->context->is_server ? "server" : "client",
                       "%s: this key is world-%s (mode %04o)", path,
                       (status.st_mode & S_IWOTH) != 0 ? "writable" : "readable",
                       (unsigned)status.st_mode & 07777);
}

static int read_key(weir__openssl_builder *builder, EVP_PKEY **ret_key)
{
    struct source source = key_source(builder->options);
    struct passphrase passphrase = {.text = builder->options->passphrase};
    EVP_PKEY *key;
    BIO *bio;
    int err = weir__openssl_builder_open(builder, source.file, source.text, &bio);

    if (err < 0)
        return err;
    key = PEM_read_bio_PrivateKey(bio, NULL, on_passphrase, &passphrase);
    if (key != NULL && source.file != NULL)
        warn_if_exposed(builder, source.file, bio, passphrase.was_asked);
    if (key == NULL)
        err = reject_key(builder, source.name, &passphrase);
    else
        *ret_key = key;
    BIO_free(bio);
    return err;
}

static int use_key(weir__openssl_builder *builder, const X509 *x509, EVP_PKEY *key)
{
    if (X509_check_private_key(x509, key) != 1 && !weir__openssl_error_is_out_of_memory())
        return weir__openssl_builder_fail(builder, -EINVAL,
                                          "the key does not match the certificate");
    if (SSL_CTX_use_PrivateKey(builder->context->ctx, key) != 1)
        return weir__openssl_builder_error(builder, key_source(builder->options).name);
    return 0;
}

/* ---- both ---- */

static int use_self_signed(weir__openssl_builder *builder, X509 **ret_x509, EVP_PKEY **ret_key)
{
    int err = weir__openssl_self_signed_create(builder, ret_x509, ret_key);

    if (err == 0 && SSL_CTX_use_certificate(builder->context->ctx, *ret_x509) != 1)
        err = weir__openssl_builder_error(builder, "self_signed_for");
    return err;
}

/* Sends exactly the given chain: OpenSSL must not complete it from the trusted authorities. */
int weir__openssl_credentials_prepare(weir__openssl_builder *builder)
{
    const weir_tls_context_options *options = builder->options;
    EVP_PKEY *key = NULL;
    X509 *x509 = NULL;
    int err = 0;

    (void)SSL_CTX_set_mode(builder->context->ctx, SSL_MODE_NO_AUTO_CHAIN);
    if (options->self_signed_for != NULL)
        err = use_self_signed(builder, &x509, &key);
    else if (options->certificate_file != NULL || options->certificate_pem != NULL)
        err = use_certificate(builder, &x509);
    if (err == 0 && x509 != NULL && key == NULL)
        err = read_key(builder, &key);
    if (err == 0 && x509 != NULL)
        err = use_key(builder, x509, key);
    EVP_PKEY_free(key);
    X509_free(x509);
    return err;
}
