/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hellos of TLS clients as bytes: made by OpenSSL, or assembled here, valid or not.
 */
#ifndef WEIR_TEST_TLS_CLIENT_HELLO_H
#define WEIR_TEST_TLS_CLIENT_HELLO_H

#include <weir/tls.h>

#include "support/test.h"

struct hello_wire {
    size_t length;
    uint8_t bytes[WEIR_TLS_HELLO_MAX + 4096];
};

/* Each appends. A block is preceded by its length, a number of `size` bytes. */
void hello_put(struct hello_wire *wire, const void *bytes, size_t length);
void hello_put_number(struct hello_wire *wire, size_t size, size_t number);
void hello_put_block(struct hello_wire *wire, size_t size, const void *bytes, size_t length);
void hello_put_extension(struct hello_wire *wire, size_t type, const void *bytes, size_t length);
void hello_put_name(struct hello_wire *extensions, const void *name, size_t length);

/* Everything before the extensions: TLS 1.2, with two suites. */
void hello_put_beginning(struct hello_wire *body);

/* Appends records of `record` bytes each: of any bytes; of a hello with this body. */
void hello_put_records(struct hello_wire *wire, const uint8_t *bytes, size_t length, size_t record);
void hello_put_hello(struct hello_wire *wire, const struct hello_wire *body, size_t record);

/* A hello with these extensions, and nothing else. */
void hello_make(struct hello_wire *wire, const struct hello_wire *extensions, size_t record);

/* A hello of OpenSSL; `alpn` in wire format: each protocol after its length. */
void hello_make_openssl(struct hello_wire *ret_draft, const char *name, const char *alpn,
                        int version);

#endif
