/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing bytes with something before and behind them, without copying them: buffers and composites
 * as one composite, so that all of it goes out or nothing. A file range cannot be part of one; it
 * is written between the two, and if one of the three fails, the peer could no longer tell where a
 * frame begins: then that is an error event, and the channel is aborted.
 */
#ifndef WEIR_CODEC_FRAME_WRITE_H
#define WEIR_CODEC_FRAME_WRITE_H

#include <weir/buf.h>
#include <weir/handler.h>

/* How many bytes a buffer, a composite or a file range has to be sent; -1 of anything else. */
int64_t weir__frame_content_length(weir_msg *msg);

/* Takes: msg, which is one of these. Keeps: done. An empty `tail` is left out. */
void weir__frame_write(weir_ctx *ctx, weir_span head, weir_msg *msg, weir_span tail,
                       weir_promise *done);

/*
 * For who writes the parts of a frame by itself: what to pass on in place of `done`, which may be
 * NULL, and is completed by it. Gives: ret_part; one that is not written after all has to succeed.
 * Fails with -ENOMEM.
 */
int weir__frame_part(weir_ctx *ctx, weir_promise *done, weir_promise **ret_part);

#endif
