/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who we are: a certificate, those between it and the authority, and the key.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <weir/log.h>

#include "tls/openssl/session.h"

/* Where it is: a file, or else a text of the options that has a name. */
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

/* If there is none it is with the certificate. */
static struct source key_source(const weir_tls_context_options *options)
{
    const char *file = options->key_file;

    if (file == NULL && options->key_pem == NULL)
        return certificate_source(options);
    return (struct source){file, options->key_pem, file != NULL ? file : "key_pem"};
}

/* ---- the certificate ---- */

static int add_chain(weir__openssl_making *making, BIO *bio, const char *name)
{
    X509 *x509;

    while ((x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        if (SSL_CTX_add0_chain_cert(making->settings->ctx, x509) != 1) {
            X509_free(x509);
            return weir__openssl_making_error(making, name);
        }
    }
    return weir__openssl_is_end_of_pem() ? 0 : weir__openssl_making_error(making, name);
}

static int read_leaf(weir__openssl_making *making, BIO *bio, const char *name, X509 **ret_x509)
{
    X509 *x509 = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);

    if (x509 != NULL) {
        *ret_x509 = x509;
        return 0;
    }
    if (weir__openssl_is_end_of_pem())
        return weir__openssl_making_fail(making, WEIR_ETLS, "%s: there is no certificate in it",
                                         name);
    return weir__openssl_making_error(making, name);
}

static int use_certificate(weir__openssl_making *making, X509 **ret_x509)
{
    struct source source = certificate_source(making->options);
    X509 *x509 = NULL;
    BIO *bio;
    int err = weir__openssl_making_open(making, source.file, source.text, &bio);

    if (err < 0)
        return err;
    err = read_leaf(making, bio, source.name, &x509);
    if (err == 0 && SSL_CTX_use_certificate(making->settings->ctx, x509) != 1)
        err = weir__openssl_making_error(making, source.name);
    if (err == 0)
        err = add_chain(making, bio, source.name);
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

/* There must be one in any case: OpenSSL's own asks at the terminal. */
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

/* Nothing in all of the PEM was a key of a kind that OpenSSL knows. */
static bool is_no_key(void)
{
    unsigned long error = ERR_peek_last_error();

    return ERR_GET_LIB(error) == ERR_LIB_OSSL_DECODER && ERR_GET_REASON(error) == ERR_R_UNSUPPORTED;
}

static int refuse_key(weir__openssl_making *making, const char *name,
                      const struct passphrase *passphrase)
{
    if (weir__openssl_is_out_of_memory())
        return weir__openssl_making_error(making, name);
    if (passphrase->was_asked && passphrase->text == NULL)
        return weir__openssl_making_fail(
            making, -EINVAL, "%s: the key is encrypted, and there is no passphrase", name);
    if (passphrase->was_asked)
        return weir__openssl_making_fail(making, -EINVAL, "%s: wrong passphrase", name);
    if (weir__openssl_is_end_of_pem() || is_no_key())
        return weir__openssl_making_fail(making, WEIR_ETLS,
                                         "%s: there is no key in it that can be read", name);
    return weir__openssl_making_error(making, name);
}

/*
 * Who can read a key can be us, and who can change it can make us somebody else. Its group is left
 * alone, since that is how a service reads the key of another user. One that is encrypted may be
 * read.
 */
static void warn_if_exposed(const weir__openssl_making *making, const char *path, BIO *bio,
                            bool is_encrypted)
{
    struct stat status;
    FILE *file = NULL;

    if (BIO_get_fp(bio, &file) != 1 || fstat(fileno(file), &status) < 0 || !S_ISREG(status.st_mode))
        return;
    if ((status.st_mode & S_IWOTH) != 0 || ((status.st_mode & S_IROTH) != 0 && !is_encrypted))
        weir_log_write(WEIR_LOG_WARN, "tls", making->settings->is_server ? "server" : "client",
                       "%s: everybody on this machine can %s this key (mode %04o)", path,
                       (status.st_mode & S_IWOTH) != 0 ? "change" : "read",
                       (unsigned)status.st_mode & 07777);
}

static int read_key(weir__openssl_making *making, EVP_PKEY **ret_key)
{
    struct source source = key_source(making->options);
    struct passphrase passphrase = {.text = making->options->passphrase};
    EVP_PKEY *key;
    BIO *bio;
    int err = weir__openssl_making_open(making, source.file, source.text, &bio);

    if (err < 0)
        return err;
    key = PEM_read_bio_PrivateKey(bio, NULL, on_passphrase, &passphrase);
    if (key != NULL && source.file != NULL)
        warn_if_exposed(making, source.file, bio, passphrase.was_asked);
    if (key == NULL)
        err = refuse_key(making, source.name, &passphrase);
    else
        *ret_key = key;
    BIO_free(bio);
    return err;
}

static int use_key(weir__openssl_making *making, const X509 *x509, EVP_PKEY *key)
{
    if (X509_check_private_key(x509, key) != 1 && !weir__openssl_is_out_of_memory())
        return weir__openssl_making_fail(making, -EINVAL,
                                         "the key does not belong to the certificate");
    if (SSL_CTX_use_PrivateKey(making->settings->ctx, key) != 1)
        return weir__openssl_making_error(making, key_source(making->options).name);
    return 0;
}

/* ---- both ---- */

static int make_self_signed(weir__openssl_making *making, X509 **ret_x509, EVP_PKEY **ret_key)
{
    int err = weir__openssl_self_signed(making, ret_x509, ret_key);

    if (err == 0 && SSL_CTX_use_certificate(making->settings->ctx, *ret_x509) != 1)
        err = weir__openssl_making_error(making, "self_signed_for");
    return err;
}

/* What is sent is what was given: nothing is looked for among the authorities. */
int weir__openssl_identity_prepare(weir__openssl_making *making)
{
    const weir_tls_context_options *options = making->options;
    EVP_PKEY *key = NULL;
    X509 *x509 = NULL;
    int err = 0;

    (void)SSL_CTX_set_mode(making->settings->ctx, SSL_MODE_NO_AUTO_CHAIN);
    if (options->self_signed_for != NULL)
        err = make_self_signed(making, &x509, &key);
    else if (options->certificate_file != NULL || options->certificate_pem != NULL)
        err = use_certificate(making, &x509);
    if (err == 0 && x509 != NULL && key == NULL)
        err = read_key(making, &key);
    if (err == 0 && x509 != NULL)
        err = use_key(making, x509, key);
    EVP_PKEY_free(key);
    X509_free(x509);
    return err;
}
