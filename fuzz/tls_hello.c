/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a TLS connection. A ClientHello is recognized by its own bytes alone, also if they
 * arrive one by one; a prefix is not another hello; its fields can be printed; and a pipeline
 * reports the same hello and passes all bytes on, however they are split. Input: the size of the
 * pieces, the bytes.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/error.h>

#include "codec/contiguous.h"
#include "tls/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* ---- reading ---- */

static void expect_text(const char *text, size_t size)
{
    expect(memchr(text, '\0', size) != NULL);
    for (; *text != '\0'; text++)
        expect(*text > ' ' && *text <= '~');
}

static void expect_sound(const weir_tls_hello *hello)
{
    static const char of_names[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.:";

    expect_text(hello->server_name, sizeof(hello->server_name));
    expect_text(hello->alpn, sizeof(hello->alpn));
    expect(hello->server_name[strspn(hello->server_name, of_names)] == '\0');
    expect(strstr(hello->alpn, ",,") == NULL);
    expect(hello->version == 0 || hello->version >> 8 == 3);
}

/* Byte by byte: the result does not change, and the parser is not called before it has enough
 * bytes. */
static void expect_in_pieces(weir_span bytes, size_t piece, int result, const weir_tls_hello *hello)
{
    weir__tls_hello_scan scan = {0};
    weir_tls_hello found = {0};
    size_t need = 0;
    int now = 0;

    for (size_t i = 0; now == 0 && i <= bytes.length; i += piece) {
        const char *why = NULL;
        size_t before = need;

        now = weir__tls_hello_scan_read(&scan, (weir_span){bytes.data, i}, &found, &need, &why);
        expect((now < 0) == (why != NULL));
        expect(now != 0 || (need > i && need <= WEIR_TLS_HELLO_MAX));
        expect(now == 0 || i >= before);
        expect(now == 0 || now == result);
    }
    expect(now != 1 || memcmp(&found, hello, sizeof(found)) == 0);
}

/* ---- in a pipeline ---- */

struct told {
    weir_tls_hello hello;
    int count;
};

static int on_hello(weir_ctx *ctx, const weir_tls_hello *hello, void *user_data)
{
    struct told *told = user_data;

    (void)ctx;
    told->hello = *hello;
    told->count++;
    return 0;
}

static size_t expect_inbound(weir_embedded *embedded, weir_span bytes, size_t passed)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_inbound(embedded)) != NULL) {
        weir_buf *buf;

        expect(weir__contiguous_bytes(msg, &buf) == 0);
        expect(weir_buf_readable(buf) <= bytes.length - passed);
        expect(memcmp(weir_buf_bytes(buf), bytes.data + passed, weir_buf_readable(buf)) == 0);
        passed += weir_buf_readable(buf);
        weir_buf_release(buf);
        weir_msg_release(msg);
    }
    return passed;
}

static void expect_told(weir_span bytes, size_t piece, int result, const weir_tls_hello *hello)
{
    struct told told = {.count = 0};
    weir_embedded *embedded;
    size_t passed = 0;

    expect(weir_embedded_create(NULL, &embedded) == 0);
    expect(weir_tls_hello_add(weir_embedded_pipeline(embedded),
                              WEIR_TLS_HELLO_OPTIONS(.on_hello = on_hello, .user_data = &told)) ==
           0);
    for (size_t i = 0; i < bytes.length; i += piece) {
        size_t length = bytes.length - i < piece ? bytes.length - i : piece;
        weir_buf *buf;

        expect(weir_buf_create_from(bytes.data + i, length, &buf) == 0);
        (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
        passed = expect_inbound(embedded, bytes, passed);
    }
    expect(told.count == (result == 1));
    expect(passed == (result == 1 ? bytes.length : 0));
    expect(weir_channel_is_open(weir_embedded_channel(embedded)) || result < 0);
    if (result == 1)
        expect(memcmp(&told.hello, hello, sizeof(*hello)) == 0);
    weir_embedded_release(embedded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_tls_hello hello = {0};
    weir_span bytes;
    size_t piece;
    int result;

    if (size < 1)
        return 0;
    piece = 1 + (size_t)data[0];
    bytes = (weir_span){data + 1, size - 1};
    result = weir_tls_hello_read(bytes, &hello);
    expect(result == 1 || result == 0 || result == WEIR_ENOTTLS || result == WEIR_EMALFORMED ||
           result == WEIR_ETOOLONG);
    if (result == 1)
        expect_sound(&hello);
    expect_in_pieces(bytes, 1, result, &hello);
    expect_in_pieces(bytes, piece, result, &hello);
    expect_told(bytes, piece, result, &hello);
    return 0;
}
