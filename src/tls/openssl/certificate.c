/* SPDX-License-Identifier: Apache-2.0 */
/*
 * X509 as a weir_tls_certificate, in memory of our own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <weir/address.h>
#include <weir/memory.h>
#include <weir/text_codecs.h>

#include "tls/openssl/internal.h"
#include "tls/tls_certificate.h"

#define PIN_PREFIX "sha256/"
#define SECONDS_OF_DAY 86400

/* A copy of bytes without a NUL, as a string. NULL if there is no memory. */
static char *copy_text(const void *bytes, size_t length)
{
    char *text = weir_memory_alloc(length + 1);

    if (text != NULL) {
        memcpy(text, bytes, length);
        text[length] = '\0';
    }
    return text;
}

/* The printed text; frees the BIO. NULL if there is no memory, or printing failed. */
static char *take_printed(BIO *printed, bool is_ok)
{
    char *bytes;
    long length = BIO_get_mem_data(printed, &bytes);
    char *text = is_ok && length >= 0 ? copy_text(bytes, (size_t)length) : NULL;

    BIO_free(printed);
    return text;
}

char *weir__openssl_certificate_name(const X509_NAME *name)
{
    /* Characters beyond ASCII stay as they are, in UTF-8. */
    unsigned long flags = XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB;
    BIO *printed = BIO_new(BIO_s_mem());

    if (printed == NULL)
        return NULL;
    return take_printed(printed, X509_NAME_print_ex(printed, name, 0, flags) >= 0);
}

static char *pem_text(X509 *x509)
{
    BIO *printed = BIO_new(BIO_s_mem());

    return printed == NULL ? NULL : take_printed(printed, PEM_write_bio_X509(printed, x509) == 1);
}

static char *serial_text(const X509 *x509)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x509), NULL);
    char *hex = number == NULL ? NULL : BN_bn2hex(number);
    char *text = hex == NULL ? NULL : copy_text(hex, strlen(hex));

    OPENSSL_free(hex);
    BN_free(number);
    return text;
}

/* ---- keys ---- */

int weir__openssl_certificate_pin(X509 *x509, uint8_t ret_pin[WEIR__OPENSSL_PIN_LENGTH])
{
    char reason[WEIR__TLS_REASON_SIZE];
    unsigned char *der = NULL;
    int length, done;

    ERR_clear_error();
    length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), &der);
    done = length > 0 && EVP_Digest(der, (size_t)length, ret_pin, NULL, EVP_sha256(), NULL) == 1;
    OPENSSL_free(der);
    return done ? 0 : weir__openssl_error_take(reason);
}

static int fill_pin(X509 *x509, char ret_text[WEIR_TLS_PIN_SIZE])
{
    uint8_t pin[WEIR__OPENSSL_PIN_LENGTH];
    int err = weir__openssl_certificate_pin(x509, pin);

    if (err < 0)
        return err;
    memcpy(ret_text, PIN_PREFIX, sizeof(PIN_PREFIX));
    weir_base64_encode(weir_span_of(pin, sizeof(pin)), 0, ret_text + strlen(PIN_PREFIX));
    ret_text[WEIR_TLS_PIN_SIZE - 1] = '\0';
    return 0;
}

/* ---- times ---- */

/* Seconds since 1970. An unreadable time is 0: verification rejects it, this only reports it. */
static int fill_time(const ASN1_TIME *time, int64_t *ret_seconds)
{
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0, seconds = 0;

    if (epoch == NULL)
        return -ENOMEM;
    (void)ASN1_TIME_diff(&days, &seconds, epoch, time);
    ASN1_TIME_free(epoch);
    *ret_seconds = (int64_t)days * SECONDS_OF_DAY + seconds;
    return 0;
}

/* ---- names ---- */

/* A name that contains a NUL pretends to be a shorter one: it is left out. */
static int copy_name(const ASN1_STRING *string, char **ret_name)
{
    unsigned char *bytes;
    int length = ASN1_STRING_to_UTF8(&bytes, string);
    bool is_text;
    char *name = NULL;

    *ret_name = NULL;
    if (length < 0)
        return -ENOMEM;
    is_text = memchr(bytes, '\0', (size_t)length) == NULL;
    if (is_text)
        name = copy_text(bytes, (size_t)length);
    OPENSSL_free(bytes);
    *ret_name = name;
    return is_text && name == NULL ? -ENOMEM : 0;
}

/* In the usual notation ("::1"), by weir_address_format. */
static int copy_address(const ASN1_OCTET_STRING *octets, char **ret_name)
{
    const uint8_t *b = ASN1_STRING_get0_data(octets);
    int length = ASN1_STRING_length(octets);
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;
    size_t used = 0;

    *ret_name = NULL;
    if (length == 4) {
        used = (size_t)snprintf(text, sizeof(text), "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
        *ret_name = copy_text(text, used);
        return *ret_name == NULL ? -ENOMEM : 0;
    }
    if (length != 16)
        return 0;
    for (size_t i = 0; i < 16; i += 2)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%c%x", i == 0 ? '[' : ':',
                                 (unsigned)b[i] << 8 | b[i + 1]);
    (void)snprintf(text + used, sizeof(text) - used, "]:0");
    if (weir_address_parse(text, &address) < 0)
        return 0;
    weir_address_format(&address, text, sizeof(text));
    *ret_name = copy_text(text + 1, strcspn(text + 1, "]"));
    return *ret_name == NULL ? -ENOMEM : 0;
}

static int add_name(weir_tls_certificate *certificate, const GENERAL_NAME *name)
{
    char *text = NULL;
    int type, err = 0;
    void *value = GENERAL_NAME_get0_value(name, &type);

    if (type == GEN_DNS || type == GEN_EMAIL || type == GEN_URI)
        err = copy_name(value, &text);
    else if (type == GEN_IPADD)
        err = copy_address(value, &text);
    if (text != NULL)
        certificate->names[certificate->name_count++] = text;
    return err;
}

static int add_names(weir_tls_certificate *certificate, const GENERAL_NAMES *names)
{
    int count = sk_GENERAL_NAME_num(names), err = 0;

    if (count <= 0)
        return 0;
    certificate->names = weir_memory_alloc((size_t)count * sizeof(*certificate->names));
    if (certificate->names == NULL)
        return -ENOMEM;
    for (int i = 0; i < count && err == 0; i++)
        err = add_name(certificate, sk_GENERAL_NAME_value(names, i));
    return err;
}

static int fill_names(X509 *x509, weir_tls_certificate *certificate)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);
    int err = weir__openssl_error_is_out_of_memory() ? -ENOMEM : 0;

    if (names != NULL)
        err = add_names(certificate, names);
    GENERAL_NAMES_free(names);
    return err;
}

/* ---- the whole certificate ---- */

static int fill_der(X509 *x509, weir_tls_certificate *certificate)
{
    int length = i2d_X509(x509, NULL);
    unsigned char *end;

    if (length <= 0)
        return WEIR_ETLS;
    certificate->der = weir_memory_alloc((size_t)length);
    if (certificate->der == NULL)
        return -ENOMEM;
    end = certificate->der;
    certificate->der_length = (size_t)i2d_X509(x509, &end);
    return 0;
}

static int fill(X509 *x509, weir_tls_certificate *certificate)
{
    int err;

    certificate->subject = weir__openssl_certificate_name(X509_get_subject_name(x509));
    certificate->issuer = weir__openssl_certificate_name(X509_get_issuer_name(x509));
    certificate->serial = serial_text(x509);
    certificate->pem = pem_text(x509);
    if (certificate->subject == NULL || certificate->issuer == NULL ||
        certificate->serial == NULL || certificate->pem == NULL)
        return -ENOMEM;
    err = fill_der(x509, certificate);
    if (err == 0)
        err = fill_time(X509_get0_notBefore(x509), &certificate->not_before);
    if (err == 0)
        err = fill_time(X509_get0_notAfter(x509), &certificate->not_after);
    if (err == 0)
        err = fill_pin(x509, certificate->pin);
    return err == 0 ? fill_names(x509, certificate) : err;
}

int weir__openssl_certificate_create(X509 *x509, weir_tls_certificate **ret_certificate)
{
    weir_tls_certificate *certificate = weir__tls_certificate_create();
    int err = certificate == NULL ? -ENOMEM : fill(x509, certificate);

    ERR_clear_error();
    if (err == 0)
        *ret_certificate = certificate;
    else
        weir_tls_certificate_release(certificate);
    return err;
}

static int no_passphrase(char *ret_text, int size, int is_written, void *unused)
{
    (void)ret_text;
    (void)size;
    (void)is_written;
    (void)unused;
    return 0;
}

int weir__openssl_certificate_parse(const char *pem, char ret_reason[WEIR__TLS_REASON_SIZE],
                                    weir_tls_certificate **ret_certificate)
{
    BIO *text;
    X509 *x509;
    int err = weir__openssl_start();

    (void)snprintf(ret_reason, WEIR__TLS_REASON_SIZE, "out of memory");
    if (err < 0)
        return err;
    ERR_clear_error();
    text = BIO_new_mem_buf(pem, -1);
    x509 = text == NULL ? NULL : PEM_read_bio_X509(text, NULL, no_passphrase, NULL);
    err = x509 == NULL ? weir__openssl_error_take(ret_reason)
                       : weir__openssl_certificate_create(x509, ret_certificate);
    X509_free(x509);
    BIO_free(text);
    return err;
}
