/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/ocsp_response.h"

#include <stdio.h>

#include <openssl/ocsp.h>
#include <openssl/pem.h>

#include "support/test.h"
#include "support/tls/pki.h"

static X509 *read_x509(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    assert_non_null(x509);
    BIO_free(bio);
    return x509;
}

static void sign(OCSP_BASICRESP *basic, X509 *signer, const char *key_pem)
{
    BIO *bio = BIO_new_mem_buf(key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);

    assert_int_equal(OCSP_basic_sign(basic, signer, key, EVP_sha256(), NULL, 0), 1);
    EVP_PKEY_free(key);
    BIO_free(bio);
}

static OCSP_RESPONSE *make_response(int status, const struct ocsp_response_options *staple)
{
    X509 *leaf = read_x509(staple->about->certificate);
    X509 *issuer = read_x509(pki()->intermediate.certificate);
    X509 *signer = read_x509(staple->by->certificate);
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    ASN1_TIME *from = X509_gmtime_adj(NULL, staple->seconds - 7200);
    ASN1_TIME *until = X509_gmtime_adj(NULL, staple->seconds);
    OCSP_CERTID *id = OCSP_cert_to_id(NULL, leaf, issuer);
    bool is_revoked = staple->status == V_OCSP_CERTSTATUS_REVOKED;
    OCSP_RESPONSE *response;

    assert_non_null(OCSP_basic_add1_status(basic, id, staple->status, 0, is_revoked ? from : NULL,
                                           from, until));
    sign(basic, signer, staple->by->key);
    response = OCSP_response_create(status, basic);
    assert_non_null(response);
    OCSP_CERTID_free(id);
    ASN1_TIME_free(from);
    ASN1_TIME_free(until);
    OCSP_BASICRESP_free(basic);
    X509_free(leaf);
    X509_free(issuer);
    X509_free(signer);
    return response;
}

/* Takes: response. */
static int save(const char *path, OCSP_RESPONSE *response, uint8_t **ret_der)
{
    FILE *file = fopen(path, "w");
    uint8_t *der = NULL;
    int length = i2d_OCSP_RESPONSE(response, &der);

    assert_true(length > 0);
    assert_non_null(file);
    assert_int_equal(fwrite(der, 1, (size_t)length, file), length);
    assert_int_equal(fclose(file), 0);
    OCSP_RESPONSE_free(response);
    if (ret_der != NULL)
        *ret_der = der;
    else
        OPENSSL_free(der);
    return length;
}

int ocsp_response_write(const char *path, int status, uint8_t **ret_der)
{
    const struct ocsp_response_options staple = {.about = &pki()->server,
                                                 .by = &pki()->intermediate,
                                                 .status = V_OCSP_CERTSTATUS_GOOD,
                                                 .seconds = 3600};

    return save(path, make_response(status, &staple), ret_der);
}

void ocsp_response_write_with(const char *path, const struct ocsp_response_options *staple)
{
    (void)save(path, make_response(OCSP_RESPONSE_STATUS_SUCCESSFUL, staple), NULL);
}
