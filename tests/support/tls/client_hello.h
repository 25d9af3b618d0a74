/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hellos of TLS clients, as bytes: made by OpenSSL, or put together here, where they may lie.
 */
#ifndef WEIR_TEST_TLS_CLIENT_HELLO_H
#define WEIR_TEST_TLS_CLIENT_HELLO_H

#include <weir/tls.h>

#include "support/test.h"

struct draft {
    size_t length;
    uint8_t bytes[WEIR_TLS_HELLO_MAX + 4096];
};

/* Each appends. A block is bytes with their length before them, which has so many bytes itself. */
void draft_put(struct draft *draft, const void *bytes, size_t length);
void draft_put_number(struct draft *draft, size_t size, size_t number);
void draft_put_block(struct draft *draft, size_t size, const void *bytes, size_t length);
void draft_put_extension(struct draft *draft, size_t type, const void *bytes, size_t length);
void draft_put_name(struct draft *extensions, const void *name, size_t length);

/* What comes before the extensions: of TLS 1.2, with two suites. */
void draft_put_beginning(struct draft *body);

/* In records of so many bytes: anything; a hello with this body. */
void draft_put_records(struct draft *draft, const uint8_t *bytes, size_t length, size_t record);
void draft_put_hello(struct draft *draft, const struct draft *body, size_t record);

/* A hello with these extensions, and nothing else. */
void draft_make(struct draft *draft, const struct draft *extensions, size_t record);

/* One of OpenSSL's; `alpn` as it is sent: each protocol after its length. */
void draft_make_real(struct draft *ret_draft, const char *name, const char *alpn, int version);

#endif
