/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a connection behind a proxy. A header is recognized by its own bytes alone; a parsed
 * header survives writing and parsing again; and a pipeline finds the same header and passes on the
 * bytes after it, however the stream is split. Input: split, the stream.
 */
#include <weir/proxy_protocol.h>

#include <stdlib.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/embedded.h>

#include "codec/proxy_header.h"

#define MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static ssize_t read_header(const uint8_t *bytes, size_t length, weir_proxy_header **ret_header)
{
    const char *detail = NULL;
    size_t need = 0;
    ssize_t taken;

    *ret_header = NULL;
    taken = weir__proxy_read(bytes, length, MAX, ret_header, &need, &detail);
    expect(taken <= (ssize_t)length);
    expect((taken > 0) == (*ret_header != NULL));
    expect((taken < 0) == (detail != NULL));
    expect(need == 0 || (taken == 0 && need > length));
    return taken;
}

static void expect_same(const weir_proxy_header *a, const weir_proxy_header *b)
{
    expect(a->version == b->version && a->is_local == b->is_local);
    expect(weir_address_equal(&a->source, &b->source));
    expect(weir_address_equal(&a->destination, &b->destination));
    expect(a->tlv_length == b->tlv_length);
    expect(memcmp(a->tlvs, b->tlvs, a->tlv_length) == 0);
}

/* A prefix is incomplete or has the same error. */
static void expect_prefixes(const uint8_t *bytes, size_t length, ssize_t taken)
{
    weir_proxy_header *header;
    ssize_t before = 0;

    for (size_t i = 0; i < length && i < 300; i++) {
        ssize_t now = read_header(bytes, i, &header);

        weir_proxy_header_release(header);
        expect(before == 0 || now == before);
        expect(now == 0 || now == taken);
        before = now;
    }
}

/* Unknown content is not written again, which changes the checksum. */
static void expect_again(const weir_proxy_header *header)
{
    weir_proxy_header *again;
    weir_span checksum;
    weir_buf *buf;

    if (weir_proxy_tlv_find(weir_proxy_header_tlvs(header), WEIR_PROXY_CRC32C, &checksum))
        return;
    expect(weir_buf_create(0, 0, &buf) == 0);
    expect(weir_proxy_header_write(header, buf) == 0);
    expect(read_header(weir_buf_bytes(buf), weir_buf_readable(buf), &again) ==
           (ssize_t)weir_buf_readable(buf));
    expect_same(header, again);
    weir_proxy_header_release(again);
    weir_buf_release(buf);
}

static size_t count_inbound(weir_embedded *embedded)
{
    size_t count = 0;
    weir_msg *msg;

    while ((msg = weir_embedded_read_inbound(embedded)) != NULL) {
        count += weir_msg_size(msg);
        weir_msg_release(msg);
    }
    return count;
}

static void expect_received(const uint8_t *bytes, size_t length, size_t piece, ssize_t taken,
                            const weir_proxy_header *header)
{
    const weir_proxy_header *found;
    weir_embedded *embedded;
    size_t passed = 0;

    expect(weir_embedded_create(NULL, &embedded) == 0);
    expect(weir_proxy_receiver_add(weir_embedded_pipeline(embedded), NULL) == 0);
    for (size_t i = 0; i < length; i += piece) {
        weir_buf *buf;

        expect(weir_buf_create_from(bytes + i, length - i < piece ? length - i : piece, &buf) == 0);
        (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
        passed += count_inbound(embedded);
    }
    found = weir_proxy_received_header(weir_embedded_channel(embedded));
    expect((found != NULL) == (header != NULL));
    if (found != NULL)
        expect_same(found, header);
    expect(passed == (taken > 0 ? length - (size_t)taken : 0));
    weir_embedded_release(embedded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_proxy_header *header;
    ssize_t taken;

    if (size < 1)
        return 0;
    taken = read_header(data + 1, size - 1, &header);
    expect_prefixes(data + 1, size - 1, taken);
    if (header != NULL)
        expect_again(header);
    expect_received(data + 1, size - 1, 1 + (size_t)data[0], taken, header);
    weir_proxy_header_release(header);
    return 0;
}
