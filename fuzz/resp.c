/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP: the codec produces the same values whether the input arrives whole, split, or byte by byte;
 * and values survive writing and reading again. Input: options, split, the stream.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/resp.h>

#define COUNTS 2 /* bytes before the stream */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* All output as bytes: values in version 3, parts of bulks as they are, errors by number. */
static void note(weir_embedded *embedded, weir_buf *notes)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_inbound(embedded)) != NULL) {
        if (weir_resp_of(msg) != NULL)
            expect(weir_resp_write(weir_resp_of(msg), 3, notes) == 0);
        else
            expect(weir_buf_write_bytes(notes, weir_buf_bytes(weir_buf_of(msg)),
                                        weir_msg_size(msg)) == 0);
        weir_msg_release(msg);
    }
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    weir_resp *number;

    expect(err == WEIR_ETOOLONG || err == WEIR_EMALFORMED);
    expect(detail != NULL && detail[0] != '\0');
    expect(weir_resp_create_integer(err, &number) == 0);
    weir_fire_read(ctx, weir_resp_msg(number));
}

static const weir_handler errors = {.name = "errors", .error = on_error};

static weir_buf *read_in_pieces(const weir_resp_options *options, weir_span bytes, size_t piece)
{
    weir_embedded *embedded = NULL;
    weir_buf *notes = NULL, *buf;
    size_t length;

    expect(weir_buf_create(0, 0, &notes) == 0 && weir_embedded_create(NULL, &embedded) == 0);
    expect(weir_resp_codec_add(weir_embedded_pipeline(embedded), options) == 0);
    expect(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &errors, NULL) == 0);
    for (size_t from = 0; from < bytes.length; from += length) {
        length = bytes.length - from < piece ? bytes.length - from : piece;
        expect(weir_buf_create_from(bytes.data + from, length, &buf) == 0);
        (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
        note(embedded, notes);
    }
    weir_embedded_release(embedded);
    return notes;
}

static void expect_same(weir_buf *a, weir_buf *b)
{
    expect(weir_buf_equal(a, b));
    weir_buf_release(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_resp_options options = {.size = sizeof(options)};
    weir_span bytes;
    weir_buf *notes;

    if (size < COUNTS)
        return 0;
    bytes = weir_span_of(data + COUNTS, size - COUNTS);
    options.inline_commands = (data[0] & 1) != 0;
    options.stream_threshold = data[0] >> 1 & 7;
    options.max_bytes = (data[0] & 16) != 0 ? 20 : 0;
    options.max_elements = (data[0] & 32) != 0 ? 5 : 0;
    options.max_line = (data[0] & 64) != 0 ? 8 : 0;
    options.max_depth = (data[0] & 128) != 0 ? 2 : 0;
    notes = read_in_pieces(&options, bytes, SIZE_MAX);
    expect_same(notes, read_in_pieces(&options, bytes, 1));
    expect_same(notes, read_in_pieces(&options, bytes, 1 + data[1]));
    if (options.stream_threshold == 0) {
        options.inline_commands = false;
        options.max_line = options.max_bytes = 0; /* doubles may become longer */
        expect_same(notes, read_in_pieces(&options, weir_buf_span(notes), SIZE_MAX));
    }
    weir_buf_release(notes);
    return 0;
}
