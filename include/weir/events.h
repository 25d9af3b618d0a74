/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/events.h - the events that channels themselves send through their pipelines.
 *
 *      static void on_event(weir_ctx *ctx, weir_msg *event)
 *      {
 *          if (event == weir_event_input_closed())
 *              weir_close(ctx, NULL);
 *          weir_msg_release(event);
 *      }
 *
 * They are static messages: compared by address, released like every other.
 */
#ifndef WEIR_EVENTS_H
#define WEIR_EVENTS_H

#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * With half closure: the peer sends no more: its stream has ended, or TLS has. Once.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_input_closed(void);

/*
 * With half closure: all that was left to read has been read. Once, after the former.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_input_drained(void);

/*
 * The sending side has been shut.
 * Thread: any.
 */
WEIR_API weir_msg *weir_event_output_closed(void);

#ifdef __cplusplus
}
#endif

#endif
