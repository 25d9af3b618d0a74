/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/frames.h"

#include <errno.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/options.h"

int weir__frames_reject(const char *what, const char *reason)
{
    return weir__options_reject("codec", what, "%s", reason);
}

int weir__frames_init(struct weir__frames *frames, const char *what, size_t max_length,
                      size_t default_length)
{
    if (max_length > WEIR_BUF_MAX)
        return weir__frames_reject(what, "max_length is above WEIR_BUF_MAX");
    frames->what = what;
    frames->max_length = max_length > 0 ? max_length : default_length;
    return 0;
}

int weir__frames_cut(weir_buf *in, size_t front, size_t length, size_t back, weir_msg **ret_msg)
{
    weir_buf *frame;
    int err = weir_buf_slice(in, weir_buf_read_index(in) + front, length, &frame);

    if (err < 0)
        return err;
    (void)weir_buf_skip(in, front + length + back);
    *ret_msg = weir_buf_msg(frame);
    return 1;
}

/* ---- over the limit ---- */

static void report(weir_ctx *ctx)
{
    struct weir__frames *frames = weir_ctx_state(ctx);
    char detail[96];

    frames->is_reported = true;
    (void)snprintf(detail, sizeof(detail), "%s over the limit of %zu bytes", frames->what,
                   frames->max_length);
    weir_fire_error(ctx, WEIR_ETOOLONG, detail);
}

bool weir__frames_too_long(weir_ctx *ctx)
{
    struct weir__frames *frames = weir_ctx_state(ctx);

    frames->is_skipping = true;
    frames->is_reported = false;
    if (!frames->reports_after_skip)
        report(ctx);
    return !weir_ctx_is_removed(ctx);
}

void weir__frames_skipped(weir_ctx *ctx)
{
    struct weir__frames *frames = weir_ctx_state(ctx);

    frames->is_skipping = false;
    if (!frames->is_reported)
        report(ctx);
}

int weir__frames_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    const struct weir__frames *frames = weir_ctx_state(ctx);

    (void)in;
    (void)ret_msg;
    if (frames->is_skipping)
        weir__frames_skipped(ctx);
    return 0;
}

/* ---- of known length ---- */

int weir__frames_skip_more(weir_ctx *ctx, weir_buf *in)
{
    struct weir__frames *frames = weir_ctx_state(ctx);
    size_t available = weir_buf_readable(in);
    size_t length = frames->skip_left < available ? (size_t)frames->skip_left : available;

    (void)weir_buf_skip(in, length);
    frames->skip_left -= length;
    if (frames->skip_left == 0)
        weir__frames_skipped(ctx);
    return 1;
}

int weir__frames_skip(weir_ctx *ctx, weir_buf *in, uint64_t length)
{
    struct weir__frames *frames = weir_ctx_state(ctx);

    frames->skip_left = length;
    return weir__frames_too_long(ctx) ? weir__frames_skip_more(ctx, in) : 0;
}

int weir__frames_take(weir_ctx *ctx, weir_buf *in, size_t length, size_t front, size_t back,
                      weir_msg **ret_msg)
{
    if (weir_buf_readable(in) < length)
        return weir_decoder_need(ctx, length);
    return weir__frames_cut(in, front, length - front - back, back, ret_msg);
}
