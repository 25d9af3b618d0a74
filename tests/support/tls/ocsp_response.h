/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OCSP responses to be stapled.
 */
#ifndef WEIR_TEST_OCSP_RESPONSE_H
#define WEIR_TEST_OCSP_RESPONSE_H

#include <stdint.h>

#include "support/tls/pki.h"

/*
 * Writes a response of this status (OCSP_RESPONSE_STATUS_...) to a file, in which the authority
 * says that the server's certificate is good. Returns its length and, unless ret_der is NULL, its
 * bytes, to be freed by OPENSSL_free.
 */
int ocsp_response_write(const char *path, int status, uint8_t **ret_der);

/* The status of a certificate (V_OCSP_CERTSTATUS_...), its signer, and how long it is valid. */
struct ocsp_response_options {
    const struct pki_leaf *about;
    const struct pki_leaf *by;
    int status;
    long seconds;
};

void ocsp_response_write_with(const char *path, const struct ocsp_response_options *staple);

#endif
