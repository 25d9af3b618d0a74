/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stock decoders in the pipeline of an embedded channel, with a handler behind them that
 * releases what they have found. A read is a buffer around the bytes of the stream.
 */
#include <weir/buf.h>
#include <weir/embedded.h>
#include <weir/frames.h>
#include <weir/text_codecs.h>

#include "codec/cases.h"

static weir_embedded *embedded;
static int64_t frames;

static void count_frame(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    frames++;
    weir_msg_release(msg);
}

static int add_decoder(weir_pipeline *pipeline, enum kind kind, size_t size)
{
    const weir_span ends[] = {{(const uint8_t *)";", 1}, {(const uint8_t *)"\n", 1}};

    switch (kind) {
    case FIXED:
        return weir_fixed_frames_add(pipeline, size);
    case LINES:
        return weir_lines_add(pipeline, NULL);
    case DELIMITED:
        return weir_delimited_add(pipeline, WEIR_DELIMITED_OPTIONS(.delimiters = ends, .count = 2));
    case LENGTH_FIELD:
        return weir_length_field_add(pipeline, WEIR_LENGTH_FIELD_OPTIONS(.strip = 4));
    case VARINT:
        return weir_varint_frames_add(pipeline, NULL);
    case NETSTRINGS:
        return weir_netstrings_add(pipeline, NULL);
    case JSON:
        return weir_json_splitter_add(pipeline, NULL);
    default:
        return weir_base64_add(pipeline, 0);
    }
}

static void decoder_open(enum kind kind, size_t size)
{
    static const weir_handler counter = {.name = "counter", .read = count_frame};
    weir_pipeline *pipeline;

    frames = 0;
    bench_require(weir_embedded_create(NULL, &embedded) == 0, "weir_embedded_create");
    pipeline = weir_embedded_pipeline(embedded);
    bench_require(add_decoder(pipeline, kind, size) == 0, "adding a decoder");
    bench_require(weir_pipeline_add_last(pipeline, &counter, NULL) == 0, "weir_pipeline_add_last");
}

static void decoder_close(void)
{
    weir_embedded_release(embedded);
}

static void decode(const uint8_t *bytes, size_t length)
{
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);
    weir_buf *buf;

    bench_require(weir_buf_wrap_static(bytes, length, &buf) == 0, "weir_buf_wrap_static");
    weir_pipeline_fire_read(pipeline, weir_buf_msg(buf));
    weir_pipeline_fire_read_complete(pipeline);
}

static int64_t frames_decoded(void)
{
    return frames;
}
