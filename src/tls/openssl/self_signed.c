/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A self-signed certificate for development: a new P-256 key, for the given names and addresses,
 * valid for 30 days.
 */
#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "tls/openssl/internal.h"
#include "tls/tls_sni_map.h"

#define SERIAL_BITS 127
#define COMMON_NAME_MAX 64
#define BEFORE_S 3600L /* for clocks that run behind */
#define VALID_S (30L * 24 * 3600)

/* Takes: string. */
static bool add_name(GENERAL_NAMES *names, int type, ASN1_STRING *string)
{
    GENERAL_NAME *name = string != NULL ? GENERAL_NAME_new() : NULL;

    if (name == NULL) {
        ASN1_STRING_free(string);
        return false;
    }
    GENERAL_NAME_set0_value(name, type, string);
    if (sk_GENERAL_NAME_push(names, name) > 0)
        return true;
    GENERAL_NAME_free(name);
    return false;
}

static ASN1_STRING *text_of(const char *text)
{
    ASN1_STRING *string = ASN1_IA5STRING_new();

    if (string != NULL && ASN1_STRING_set(string, text, -1) == 1)
        return string;
    ASN1_STRING_free(string);
    return NULL;
}

/* Adds an address, or else a name. */
static int add_alternative(weir__openssl_builder *builder, GENERAL_NAMES *names, const char *text)
{
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(text);
    bool is_ok;

    ERR_clear_error(); /* of a text that is not an address */
    if (address != NULL)
        is_ok = add_name(names, GEN_IPADD, address);
    else if (weir__tls_name_is_valid(text))
        is_ok = add_name(names, GEN_DNS, text_of(text));
    else
        return weir__openssl_builder_fail(
            builder, -EINVAL, "self_signed_for: \"%s\" is neither a name nor an address", text);
    return is_ok ? 0 : weir__openssl_builder_error(builder, "self_signed_for");
}

/* The next of a comma-separated list, trimmed; false if it is too long. */
static bool next_name(const char **list, char ret_name[WEIR__TLS_NAME_SIZE])
{
    const char *begin = *list + strspn(*list, " ");
    size_t length = strcspn(begin, ",");

    *list = begin[length] == ',' ? begin + length + 1 : NULL;
    while (length > 0 && begin[length - 1] == ' ')
        length--;
    if (length >= WEIR__TLS_NAME_SIZE)
        return false;
    memcpy(ret_name, begin, length);
    ret_name[length] = '\0';
    return true;
}

static int add_alternatives(weir__openssl_builder *builder, X509 *x509)
{
    const char *list = builder->options->self_signed_for;
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    char name[WEIR__TLS_NAME_SIZE];
    int err = names != NULL ? 0 : weir__openssl_builder_error(builder, "self_signed_for");

    while (err == 0 && list != NULL)
        err = next_name(&list, name) ? add_alternative(builder, names, name)
                                     : weir__openssl_builder_fail(
                                           builder, -EINVAL, "self_signed_for: a name is too long");
    if (err == 0 && X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, 0) != 1)
        err = weir__openssl_builder_error(builder, "self_signed_for");
    GENERAL_NAMES_free(names);
    return err;
}

/* The first name, if it fits. */
static bool set_subject(X509 *x509, const char *list)
{
    X509_NAME *subject = X509_get_subject_name(x509);
    char name[WEIR__TLS_NAME_SIZE];

    if (next_name(&list, name) && strlen(name) > 0 && strlen(name) <= COMMON_NAME_MAX &&
        X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                   (const unsigned char *)name, -1, -1, 0) != 1)
        return false;
    return X509_set_issuer_name(x509, subject) == 1;
}

static bool set_serial(X509 *x509)
{
    BIGNUM *number = BN_new();
    bool is_ok = number != NULL &&
                 BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                 BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) != NULL;

    BN_free(number);
    return is_ok;
}

static bool add_usage(X509 *x509)
{
    BASIC_CONSTRAINTS *constraints = BASIC_CONSTRAINTS_new(); /* not an authority */
    EXTENDED_KEY_USAGE *usage = sk_ASN1_OBJECT_new_null();
    bool is_ok = constraints != NULL && usage != NULL &&
                 sk_ASN1_OBJECT_push(usage, OBJ_nid2obj(NID_server_auth)) > 0 &&
                 sk_ASN1_OBJECT_push(usage, OBJ_nid2obj(NID_client_auth)) > 0 &&
                 X509_add1_ext_i2d(x509, NID_basic_constraints, constraints, 1, 0) == 1 &&
                 X509_add1_ext_i2d(x509, NID_ext_key_usage, usage, 0, 0) == 1;

    BASIC_CONSTRAINTS_free(constraints);
    sk_ASN1_OBJECT_pop_free(usage, ASN1_OBJECT_free);
    return is_ok;
}

static bool fill_in(X509 *x509, EVP_PKEY *key, const char *names)
{
    return X509_set_version(x509, X509_VERSION_3) == 1 && set_serial(x509) &&
           X509_gmtime_adj(X509_getm_notBefore(x509), -BEFORE_S) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(x509), VALID_S) != NULL &&
           X509_set_pubkey(x509, key) == 1 && set_subject(x509, names) && add_usage(x509);
}

int weir__openssl_self_signed_create(weir__openssl_builder *builder, X509 **ret_x509,
                                     EVP_PKEY **ret_key)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = X509_new();
    int err = 0;

    if (key == NULL || x509 == NULL || !fill_in(x509, key, builder->options->self_signed_for))
        err = weir__openssl_builder_error(builder, "self_signed_for");
    if (err == 0)
        err = add_alternatives(builder, x509);
    if (err == 0 && X509_sign(x509, key, EVP_sha256()) == 0)
        err = weir__openssl_builder_error(builder, "self_signed_for");
    if (err < 0) {
        X509_free(x509);
        EVP_PKEY_free(key);
        return err;
    }
    *ret_x509 = x509;
    *ret_key = key;
    return 0;
}
