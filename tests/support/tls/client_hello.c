/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/client_hello.h"

#include <stdio.h>
#include <string.h>

#include <openssl/ssl.h>

void hello_put(struct hello_wire *wire, const void *bytes, size_t length)
{
    assert_true(wire->length + length <= sizeof(wire->bytes));
    memcpy(wire->bytes + wire->length, bytes, length);
    wire->length += length;
}

void hello_put_number(struct hello_wire *wire, size_t size, size_t number)
{
    while (size-- > 0)
        hello_put(wire, &(uint8_t){(uint8_t)(number >> (8 * size))}, 1);
}

void hello_put_block(struct hello_wire *wire, size_t size, const void *bytes, size_t length)
{
    hello_put_number(wire, size, length);
    hello_put(wire, bytes, length);
}

void hello_put_extension(struct hello_wire *wire, size_t type, const void *bytes, size_t length)
{
    hello_put_number(wire, 2, type);
    hello_put_block(wire, 2, bytes, length);
}

void hello_put_name(struct hello_wire *extensions, const void *name, size_t length)
{
    struct hello_wire list = {.length = 0}, extension = {.length = 0};

    hello_put_number(&list, 1, 0);
    hello_put_block(&list, 2, name, length);
    hello_put_block(&extension, 2, list.bytes, list.length);
    hello_put_extension(extensions, 0, extension.bytes, extension.length);
}

void hello_put_beginning(struct hello_wire *body)
{
    static const uint8_t random[32] = {7};

    hello_put_number(body, 2, 0x0303);
    hello_put(body, random, sizeof(random));
    hello_put_block(body, 1, random, 32);
    hello_put_block(body, 2, "\x13\x01\x13\x02", 4);
    hello_put_block(body, 1, "", 1);
}

void hello_put_records(struct hello_wire *wire, const uint8_t *bytes, size_t length, size_t record)
{
    for (size_t at = 0; at < length; at += record) {
        hello_put(wire, "\x16\x03\x01", 3);
        hello_put_block(wire, 2, bytes + at, length - at < record ? length - at : record);
    }
}

void hello_put_hello(struct hello_wire *wire, const struct hello_wire *body, size_t record)
{
    struct hello_wire message = {.length = 0};

    hello_put_number(&message, 1, 1);
    hello_put_block(&message, 3, body->bytes, body->length);
    hello_put_records(wire, message.bytes, message.length, record);
}

void hello_make(struct hello_wire *wire, const struct hello_wire *extensions, size_t record)
{
    struct hello_wire body = {.length = 0};

    hello_put_beginning(&body);
    hello_put_block(&body, 2, extensions->bytes, extensions->length);
    wire->length = 0;
    hello_put_hello(wire, &body, record);
}

static void take(SSL *ssl, struct hello_wire *ret_wire)
{
    char *bytes;
    long length;

    (void)SSL_connect(ssl);
    length = BIO_get_mem_data(SSL_get_wbio(ssl), &bytes);
    ret_wire->length = 0;
    hello_put(ret_wire, bytes, (size_t)length);
}

void hello_make_openssl(struct hello_wire *ret_wire, const char *name, const char *alpn,
                        int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    char copy[256]; /* OpenSSL's macro takes no const */

    (void)snprintf(copy, sizeof(copy), "%s", name != NULL ? name : "");
    assert_int_equal(SSL_set_max_proto_version(ssl, version), 1);
    assert_true(name == NULL || SSL_set_tlsext_host_name(ssl, copy) == 1);
    assert_int_equal(SSL_set_alpn_protos(ssl, (const uint8_t *)alpn, (unsigned)strlen(alpn)), 0);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    take(ssl, ret_wire);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}
