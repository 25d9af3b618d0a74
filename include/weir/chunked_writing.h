/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/chunked_writing.h - a handler that sends messages which are made while they are sent.
 *
 *      weir_chunked_writing_add(pipeline);      before the handlers that write weir/chunks.h
 *
 * It asks for the next piece as long as what waits to be sent is below the channel's high water
 * mark, so that a message of any size takes little memory. What is written behind it waits, and
 * counts against the marks. The promise completes when the last piece has been sent; when a source
 * fails, or one of its pieces does, with that error, and the next message is sent.
 *
 * A close waits until all that was written before it has been handed on; if nothing moves for the
 * channel's close timeout, what is left fails. Pieces that a handler in front holds back
 * (weir/traffic_shaping.h) are waited for as long as it holds them. A half closure waits, too, and
 * for as long as it takes.
 */
#ifndef WEIR_CHUNKED_WRITING_H
#define WEIR_CHUNKED_WRITING_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_chunked_writing_add(weir_pipeline *pipeline);

#ifdef __cplusplus
}
#endif

#endif
