/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/traffic_shaping.h - a handler that keeps a channel within a limit (weir/traffic.h).
 *
 * Writing: messages wait, in their order, until they may go out; they count against the channel's
 * marks. A message goes as a whole: what is large is better written as weir/chunks.h, by handlers
 * behind. A close, and a half closure, waits for what was written before it.
 *
 * Reading: what has come is passed on; then the channel does not read until that is paid for. How
 * much comes at once is the channel's receive_max. Auto-read is left as it is.
 *
 * A channel may have several such handlers: one for itself, say, and one that all share.
 */
#ifndef WEIR_TRAFFIC_SHAPING_H
#define WEIR_TRAFFIC_SHAPING_H

#include <weir/handler.h>
#include <weir/traffic.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Keeps: traffic.  Fails: -EINVAL (NULL), and as weir_pipeline_add.
 */
WEIR_API int weir_traffic_shaping_add(weir_pipeline *pipeline, weir_traffic *traffic);

#ifdef __cplusplus
}
#endif

#endif
