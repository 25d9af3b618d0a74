/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include <stdio.h>
#include <string.h>

#include <weir/buf.h>

#include "base/options.h"
#include "codec/frame_write.h"
#include "codec/frames.h"

#define DEFAULT_WIDTH 4
#define WIDTH_MAX 8

struct length_prepender {
    size_t width;
    enum weir_byte_order order;
    int64_t length_delta; /* added to the length of the message */
};

static void put_length(const struct length_prepender *prepender, uint64_t value, uint8_t *ret_field)
{
    for (size_t i = 0; i < prepender->width; i++) {
        size_t place = prepender->order == WEIR_LITTLE_ENDIAN ? i : prepender->width - 1 - i;

        ret_field[place] = (uint8_t)(value >> 8 * i);
    }
}

/* Reports a length that cannot be written. */
static void fail_write(weir_ctx *ctx, weir_promise *done, int64_t length, int64_t value)
{
    const struct length_prepender *prepender = weir_ctx_state(ctx);
    char detail[128];

    if (value < 0)
        (void)snprintf(detail, sizeof(detail),
                       "negative length for a message of %lld bytes: adjustment is too small",
                       (long long)length);
    else
        (void)snprintf(detail, sizeof(detail),
                       "the length of a message of %lld bytes does not fit into %zu bytes",
                       (long long)length, prepender->width);
    weir_ctx_report(ctx, done, value < 0 ? -EINVAL : WEIR_ETOOLONG, detail);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const struct length_prepender *prepender = weir_ctx_state(ctx);
    int64_t length = weir__frame_content_length(msg), value;
    uint8_t field[WIDTH_MAX];

    if (length < 0) {
        weir_write(ctx, msg, done);
        return;
    }
    if (__builtin_add_overflow(length, prepender->length_delta, &value))
        value = INT64_MAX;
    if (value < 0 || (uint64_t)value > UINT64_MAX >> (64 - 8 * prepender->width)) {
        weir_msg_release(msg);
        fail_write(ctx, done, length, value);
        return;
    }
    put_length(prepender, (uint64_t)value, field);
    weir__frame_write(ctx, weir_span_of(field, prepender->width), msg, weir_span_of(NULL, 0), done);
}

/* ---- options ---- */

static int init(void *state, const void *given)
{
    struct length_prepender *prepender = state;
    weir_length_prepender_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err < 0)
        return err;
    if (options.width > WIDTH_MAX)
        return weir__frames_reject("length-prepender", "width must be 1 to 8 bytes");
    if (options.order != WEIR_BIG_ENDIAN && options.order != WEIR_LITTLE_ENDIAN)
        return weir__frames_reject("length-prepender", "unknown byte order");
    prepender->width = options.width > 0 ? options.width : DEFAULT_WIDTH;
    prepender->order = options.order;
    if (__builtin_add_overflow(options.adjustment,
                               options.counts_itself ? (int64_t)prepender->width : 0,
                               &prepender->length_delta))
        return weir__frames_reject("length-prepender", "adjustment is too large");
    return 0;
}

static const weir_handler handler = {
    .name = "length-prepender",
    .state_size = sizeof(struct length_prepender),
    .init = init,
    .write = on_write,
};

int weir_length_prepender_add(weir_pipeline *pipeline, const weir_length_prepender_options *options)
{
    return weir_pipeline_add_last(pipeline, &handler, options);
}
