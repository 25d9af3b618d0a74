/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include <string.h>

#include <weir/buf.h>

#include "base/options.h"
#include "codec/frame_write.h"
#include "codec/frames.h"

#define VARINT32_MAX 5 /* bytes */

/* ---- inbound ---- */

static int fail(weir_ctx *ctx)
{
    return weir_decoder_fail(ctx, WEIR_EMALFORMED,
                             "frame length is not a minimal varint of at most 32 bits");
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    const struct weir__frames *frames = weir_ctx_state(ctx);
    uint64_t length = 0;
    size_t header = 0;
    int err;

    if (frames->is_skipping)
        return weir__frames_skip_more(ctx, in);
    err = weir_buf_get_varint(in, weir_buf_read_index(in), &length, &header);
    if (err == WEIR_EBOUNDS && weir_buf_readable(in) < VARINT32_MAX)
        return 0;
    if (err < 0 || length > UINT32_MAX)
        return fail(ctx);
    if (length > frames->max_length)
        return weir__frames_skip(ctx, in, header + length);
    return weir__frames_take(ctx, in, header + (size_t)length, header, 0, ret_msg);
}

/* ---- outbound ---- */

static size_t put_varint(uint64_t value, uint8_t *ret_bytes)
{
    size_t length = 0;

    for (; value >= 0x80; value >>= 7)
        ret_bytes[length++] = (uint8_t)(value | 0x80);
    ret_bytes[length++] = (uint8_t)value;
    return length;
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    int64_t length = weir__frame_content_length(msg);
    uint8_t header[VARINT32_MAX];

    if (length < 0) {
        weir_write(ctx, msg, done);
    } else if (length > UINT32_MAX) {
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, WEIR_ETOOLONG, "message length above 32 bits");
    } else {
        weir_span head = {header, put_varint((uint64_t)length, header)};

        weir__frame_write(ctx, head, msg, weir_span_of(NULL, 0), done);
    }
}

/* ---- options ---- */

static int init(void *state, const void *given)
{
    struct weir__frames *frames = state;
    weir_varint_frames_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = weir__frames_init(frames, "frame", options.max_length, WEIR__FRAMES_MAX_LENGTH);
    if (err == 0)
        frames->reports_after_skip = options.report_after_skip;
    return err;
}

static const weir_decoder codec = {
    .handler = {.name = "varint-frames",
                .init = init,
                .write = on_write,
                WEIR_DECODER_SLOTS(struct weir__frames)},
    .decode = decode,
    .decode_last = weir__frames_last,
};

int weir_varint_frames_add(weir_pipeline *pipeline, const weir_varint_frames_options *options)
{
    return weir_pipeline_add_last(pipeline, &codec.handler, options);
}
