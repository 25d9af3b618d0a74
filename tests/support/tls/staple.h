/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OCSP response to be stapled.
 */
#ifndef WEIR_TEST_STAPLE_H
#define WEIR_TEST_STAPLE_H

#include <stdint.h>

/*
 * Writes a response of this status (OCSP_RESPONSE_STATUS_...) to a file: the server's certificate
 * is good; it says so itself, for nobody here checks. Returns its length and, if they are wanted,
 * its bytes, to be freed by OPENSSL_free.
 */
int staple_write(const char *path, int status, uint8_t **ret_der);

#endif
