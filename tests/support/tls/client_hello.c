/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/client_hello.h"

#include <stdio.h>
#include <string.h>

#include <openssl/ssl.h>

void draft_put(struct draft *draft, const void *bytes, size_t length)
{
    assert_true(draft->length + length <= sizeof(draft->bytes));
    memcpy(draft->bytes + draft->length, bytes, length);
    draft->length += length;
}

void draft_put_number(struct draft *draft, size_t size, size_t number)
{
    while (size-- > 0)
        draft_put(draft, &(uint8_t){(uint8_t)(number >> (8 * size))}, 1);
}

void draft_put_block(struct draft *draft, size_t size, const void *bytes, size_t length)
{
    draft_put_number(draft, size, length);
    draft_put(draft, bytes, length);
}

void draft_put_extension(struct draft *draft, size_t type, const void *bytes, size_t length)
{
    draft_put_number(draft, 2, type);
    draft_put_block(draft, 2, bytes, length);
}

void draft_put_name(struct draft *extensions, const void *name, size_t length)
{
    struct draft list = {.length = 0}, extension = {.length = 0};

    draft_put_number(&list, 1, 0);
    draft_put_block(&list, 2, name, length);
    draft_put_block(&extension, 2, list.bytes, list.length);
    draft_put_extension(extensions, 0, extension.bytes, extension.length);
}

void draft_put_beginning(struct draft *body)
{
    static const uint8_t random[32] = {7};

    draft_put_number(body, 2, 0x0303);
    draft_put(body, random, sizeof(random));
    draft_put_block(body, 1, random, 32);
    draft_put_block(body, 2, "\x13\x01\x13\x02", 4);
    draft_put_block(body, 1, "", 1);
}

void draft_put_records(struct draft *draft, const uint8_t *bytes, size_t length, size_t record)
{
    for (size_t at = 0; at < length; at += record) {
        draft_put(draft, "\x16\x03\x01", 3);
        draft_put_block(draft, 2, bytes + at, length - at < record ? length - at : record);
    }
}

void draft_put_hello(struct draft *draft, const struct draft *body, size_t record)
{
    struct draft message = {.length = 0};

    draft_put_number(&message, 1, 1);
    draft_put_block(&message, 3, body->bytes, body->length);
    draft_put_records(draft, message.bytes, message.length, record);
}

void draft_make(struct draft *draft, const struct draft *extensions, size_t record)
{
    struct draft body = {.length = 0};

    draft_put_beginning(&body);
    draft_put_block(&body, 2, extensions->bytes, extensions->length);
    draft->length = 0;
    draft_put_hello(draft, &body, record);
}

static void take(SSL *ssl, struct draft *ret_draft)
{
    char *bytes;
    long length;

    (void)SSL_connect(ssl);
    length = BIO_get_mem_data(SSL_get_wbio(ssl), &bytes);
    ret_draft->length = 0;
    draft_put(ret_draft, bytes, (size_t)length);
}

void draft_make_real(struct draft *ret_draft, const char *name, const char *alpn, int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    char copy[256]; /* OpenSSL's macro takes no const */

    (void)snprintf(copy, sizeof(copy), "%s", name != NULL ? name : "");
    assert_int_equal(SSL_set_max_proto_version(ssl, version), 1);
    assert_true(name == NULL || SSL_set_tlsext_host_name(ssl, copy) == 1);
    assert_int_equal(SSL_set_alpn_protos(ssl, (const uint8_t *)alpn, (unsigned)strlen(alpn)), 0);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    take(ssl, ret_draft);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}
