/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes bytes with a head and a tail around them, without a copy. Buffers and composites become
 * one composite, which is sent as a whole or not at all. A file range cannot be part of a
 * composite: it is written between the head and the tail. If one of the three writes fails, the
 * peer has lost track of the frame boundaries, so an error is fired and the channel is aborted.
 */
#ifndef WEIR_CODEC_FRAME_WRITE_H
#define WEIR_CODEC_FRAME_WRITE_H

#include <weir/buf.h>
#include <weir/handler.h>

/* The number of bytes to send of a buffer, composite or file range; -1 for other messages. */
int64_t weir__frame_content_length(weir_msg *msg);

/* Takes: msg, one of these. Keeps: done. An empty `tail` is omitted. */
void weir__frame_write(weir_ctx *ctx, weir_span head, weir_msg *msg, weir_span tail,
                       weir_promise *done);

/*
 * For codecs that write the parts of a frame by themselves: creates the promise to pass on in place
 * of `done`, which may be NULL and is completed by it. A part that is not written after all must be
 * completed with success. Gives: ret_part. Fails with -ENOMEM.
 */
int weir__frame_part(weir_ctx *ctx, weir_promise *done, weir_promise **ret_part);

#endif
