/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/flow_control.h - a handler that lets through one message for each read that is asked for.
 *
 * Decoders and TLS do so by themselves (weir/demand.h). A handler of your own that passes on
 * several messages for one read needs this one behind it, which keeps them until they are asked
 * for:
 *
 *      weir_pipeline_add_last(pipeline, &splits, NULL);
 *      weir_flow_control_add(pipeline);
 *      weir_pipeline_add_last(pipeline, &app, NULL);      weir_request_read: one message
 *
 * With auto-read all of them pass; when that is switched off, from the next message on they wait.
 * The socket is not read while there are messages to be asked for. A handler that is removed passes
 * on what it has; when the channel closes, what nobody has asked for is dropped.
 */
#ifndef WEIR_FLOW_CONTROL_H
#define WEIR_FLOW_CONTROL_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_flow_control_add(weir_pipeline *pipeline);

#ifdef __cplusplus
}
#endif

#endif
