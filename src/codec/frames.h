/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the decoders of frames share: cutting a frame out, and what is done with one that is over
 * the limit. That is an error event, at once or when the frame has ended; its bytes are thrown away
 * as they come, so that it takes no memory, and what is behind it is decoded as ever.
 */
#ifndef WEIR_CODEC_FRAMES_H
#define WEIR_CODEC_FRAMES_H

#include <weir/codec.h>

#define WEIR__FRAMES_MAX_TEXT_LENGTH                                                        \
    ((size_t)64 << 10)                            /* if none is given: of frames for people \
                                                   */
#define WEIR__FRAMES_MAX_LENGTH ((size_t)1 << 20) /* and of others */

/* The first member of such a decoder's state. */
struct weir__frames {
    weir_decoder_state decoder;
    const char *what; /* what a frame is called in an error's sentence */
    size_t max_length;
    uint64_t skip_left;      /* of a frame that is skipped, if its length is known */
    bool reports_after_skip; /* when the frame has been skipped */
    bool is_skipping;
    bool is_reported;
};

/* Fails with -EINVAL if available is no such limit; 0 = `usual`. */
int weir__frames_init(struct weir__frames *frames, const char *what, size_t max_length,
                      size_t default_length);

/* Options make no sense: says why, in the log. Returns -EINVAL. */
int weir__frames_reject(const char *what, const char *reason);

/* Passes `length` bytes on; those of `front` before and `back` behind are skipped. Returns 1, or
 * -ENOMEM. All of them are available. */
int weir__frames_cut(weir_buf *in, size_t front, size_t length, size_t back, weir_msg **ret_msg);

/* A frame turns out to be over the limit; whether the decoder goes on and skips it. */
bool weir__frames_too_long(weir_ctx *ctx);

/* Its end has been found. */
void weir__frames_skipped(weir_ctx *ctx);

/* A decoder's decode_last: a frame that was to be told of later has no end. */
int weir__frames_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg);

/*
 * The rest of `decode` where the length of the frame is known, `length` bytes in all: takes it when
 * it is available, of which `front` and `back` are not passed on; or begins to skip it, since it is
 * over the limit. While is_skipping, `decode` only calls the last.
 */
int weir__frames_take(weir_ctx *ctx, weir_buf *in, size_t length, size_t front, size_t back,
                      weir_msg **ret_msg);
int weir__frames_skip(weir_ctx *ctx, weir_buf *in, uint64_t length);
int weir__frames_skip_more(weir_ctx *ctx, weir_buf *in);

#endif
