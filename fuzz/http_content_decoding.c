/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content decoding: the same bytes or the same failure whether the input arrives whole or in
 * pieces; no more output than the limits allow; and text survives encoding and decoding. Input:
 * codings, piece, the content.
 */
#include <stdlib.h>

#include <weir/buf.h>
#include <weir/error.h>

#include "protocol/http/content_coding.h"

#define COUNTS 2 /* bytes before the content */
#define MAX_DECODED (256u * 1024)
#define ROOM 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static const char *const lists[] = {"gzip", "deflate",  "br",       "zstd",
                                    "",     "gzip, br", "br, zstd", "deflate, gzip, zstd"};

static weir__http_content_decoder *make(const char *list)
{
    const weir__http_decoder_limits limits = {.max_decoded = MAX_DECODED, .max_ratio = 100};
    weir_span span = weir_span_of(list, strlen(list));
    weir__http_content_decoder *decoder = NULL;
    int err = weir__http_content_decoder_create(&span, 1, &limits, &decoder);

    expect(err == 0 || err == -ENOTSUP);
    return decoder;
}

/* Decodes in pieces. Returns 0, 1 if it is incomplete, or the error. */
static int decode(const char *list, weir_span in, size_t piece, weir_buf *all)
{
    weir__http_content_decoder *decoder = make(list);
    weir_buf *out = NULL;
    int result = 0;

    if (decoder == NULL)
        return 0;
    expect(weir_buf_create(ROOM, 0, &out) == 0);
    while (in.length > 0 && result >= 0) {
        weir_span next = {in.data, in.length < piece ? in.length : piece};

        in.data += next.length;
        in.length -= next.length;
        do {
            weir_buf_clear(out);
            result = weir__http_content_decoder_run(decoder, &next, out);
            expect(weir_buf_write_bytes(all, weir_buf_bytes(out), weir_buf_readable(out)) == 0);
            expect(weir_buf_readable(all) <= MAX_DECODED + ROOM);
        } while (result > 0);
        expect(result < 0 || next.length == 0);
    }
    expect(result == 0 || result == WEIR_EMALFORMED || result == WEIR_ETOOLONG);
    if (result == 0)
        result = !weir__http_content_decoder_is_complete(decoder);
    weir_buf_release(out);
    weir__http_content_decoder_free(decoder);
    return result;
}

static void round_trip(const weir__http_coding *coding, weir_span text, size_t piece)
{
    weir__http_content_encoder encoder = {0};
    weir_buf *coded = NULL, *back = NULL;
    weir_span rest = text;

    expect(weir_buf_create(0, 0, &coded) == 0 && weir_buf_create(0, 0, &back) == 0);
    expect(weir__http_content_encoder_begin(&encoder, coding, 1 + (int)(piece % 9), -1) == 0);
    while (rest.length > 0) {
        weir_span next = {rest.data, rest.length < piece ? rest.length : piece};
        enum weir__http_coding_op op =
            next.length % 2 == 0 ? WEIR__HTTP_CODING_FLUSH : WEIR__HTTP_CODING_RUN;

        expect(weir__http_content_encoder_run(&encoder, next, op, coded) == 0);
        rest.data += next.length;
        rest.length -= next.length;
    }
    expect(weir__http_content_encoder_run(&encoder, rest, WEIR__HTTP_CODING_FINISH, coded) == 0);
    weir__http_content_encoder_end(&encoder);
    expect(decode(coding->name, weir_buf_span(coded), 1 + piece, back) == 0);
    expect(weir_span_equal(weir_buf_span(back), text));
    weir_buf_release(coded);
    weir_buf_release(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_buf *whole = NULL, *pieces = NULL;
    const char *list;
    weir_span in;
    int result;

    if (size < COUNTS)
        return 0;
    in = weir_span_of(data + COUNTS, size - COUNTS);
    list = lists[data[0] % (sizeof(lists) / sizeof(lists[0]))];
    if (data[0] >= 0xf0) {
        round_trip(weir__http_codings[data[0] % weir__http_coding_count], in, 1 + data[1]);
        return 0;
    }
    expect(weir_buf_create(0, 0, &whole) == 0 && weir_buf_create(0, 0, &pieces) == 0);
    result = decode(list, in, SIZE_MAX, whole);
    expect((decode(list, in, 1 + data[1], pieces) < 0) == (result < 0));
    if (result >= 0)
        expect(weir_buf_equal(whole, pieces));
    weir_buf_release(whole);
    weir_buf_release(pieces);
    return 0;
}
