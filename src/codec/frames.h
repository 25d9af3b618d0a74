/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the frame decoders: extracting frames, and skipping frames over the limit. Such a frame
 * fires an error, at once or after it was skipped. Its bytes are discarded as they arrive, so it
 * takes no memory; decoding continues with the next frame.
 */
#ifndef WEIR_CODEC_FRAMES_H
#define WEIR_CODEC_FRAMES_H

#include <weir/codec.h>

#define WEIR__FRAMES_MAX_TEXT_LENGTH ((size_t)64 << 10) /* default for text frames */
#define WEIR__FRAMES_MAX_LENGTH ((size_t)1 << 20)       /* default for other frames */

/* The first member of the decoder's state. */
struct weir__frames {
    weir_decoder_state decoder;
    const char *what; /* the name of a frame in error texts */
    size_t max_length;
    uint64_t skip_left;      /* bytes of a skipped frame of known length */
    bool reports_after_skip; /* fire the error after the skip */
    bool is_skipping;
    bool is_reported;
};

/* Fails with -EINVAL if `max_length` is too large. 0 = `default_length`. */
int weir__frames_init(struct weir__frames *frames, const char *what, size_t max_length,
                      size_t default_length);

/* Logs the reason for rejecting options. Returns -EINVAL. */
int weir__frames_reject(const char *what, const char *reason);

/* Extracts a frame: skips `front` bytes, slices `length` bytes, and skips `back` bytes, all of
 * which must be readable. Returns 1, or -ENOMEM. */
int weir__frames_cut(weir_buf *in, size_t front, size_t length, size_t back, weir_msg **ret_msg);

/* Starts to skip a frame over the limit. False if an error handler removed the decoder. */
bool weir__frames_too_long(weir_ctx *ctx);

/* Ends the skip. */
void weir__frames_skipped(weir_ctx *ctx);

/* A decode_last that reports a skipped frame whose end never arrived. */
int weir__frames_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);

/*
 * The end of `decode` for a frame of known length: extracts it without its `front` and `back` bytes
 * when all `length` bytes are there, or starts to skip it. While is_skipping, `decode` only calls
 * weir__frames_skip_more.
 */
int weir__frames_take(weir_ctx *ctx, weir_buf *in, size_t length, size_t front, size_t back,
                      weir_msg **ret_msg);
int weir__frames_skip(weir_ctx *ctx, weir_buf *in, uint64_t length);
int weir__frames_skip_more(weir_ctx *ctx, weir_buf *in);

#endif
