/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel's handlers: a ring of contexts. The pipeline's own context closes the ring: it is the
 * tail for inbound events, which reach it after the last handler, and the head for outbound events,
 * which reach it before the first. It has every slot, so a search for the next handler always ends.
 *
 *      +-> head_tail -> first -> ... -> last -+
 *      +--------------------------------------+
 *
 * Only the channel's loop walks and changes the ring (before the first registration: the thread
 * that created the channel). A removed handler stays linked, without slots, until a later task, so
 * that code that runs it now still finds its neighbours. Handlers that run on another executor
 * follow behind a border (border.h), in a ring and a list of their own.
 */
#ifndef WEIR_CHANNEL_PIPELINE_H
#define WEIR_CHANNEL_PIPELINE_H

#include <weir/pipeline.h>

#include "channel/ctx.h"

/* `slots` of head_tail are those that any handler has; it may have more than are left. */
struct weir_pipeline {
    weir_ctx head_tail;
};

void weir__pipeline_init(weir_pipeline *pipeline, weir_channel *channel);

/* Calls `added` of the handlers that were added before the first registration, in order. */
void weir__pipeline_call_added(weir_pipeline *pipeline);

/*
 * The last event was fired: removes the handlers from the tail on. Those behind a border get the
 * event first, and are freed before those in front of it are removed. Then calls
 * weir__channel_leave_loop.
 */
void weir__pipeline_teardown(weir_pipeline *pipeline);

/* Unlinks and frees removed handlers that are no longer in use. */
void weir__pipeline_sweep(weir_pipeline *pipeline);

/* The channel is being freed: frees the handlers. Any thread. */
void weir__pipeline_destroy(weir_pipeline *pipeline);

/* Removes a handler, on the loop. */
void weir__pipeline_remove(weir_ctx *ctx);

/* ---- the border ---- */

/*
 * The border is to be set in front of a handler on the loop, for it and all behind it:
 * weir__pipeline_advance does it. `group` is for a channel without a border. Fails with -ENOMEM,
 * -ENOTSUP (a handler stays on the loop), WEIR_EREJECTED (the executor shuts down), -EALREADY (the
 * executor is the channel's loop).
 */
int weir__pipeline_offload(weir_ctx *ctx, weir_group *group);

/* With no slot on the stack: sets the border where it is to be. If a handler is in use it tries
 * again later. */
void weir__pipeline_advance(weir_pipeline *pipeline);

/* For border.c, with no slot on the stack: the contexts that are to cross do so, if they may. */
void weir__pipeline_cross(weir_pipeline *pipeline);

/* For border.c: takes a context out of the ring; the border has ended. */
void weir__pipeline_unlink(weir_ctx *ctx);
void weir__pipeline_border_ended(weir_pipeline *pipeline);

/* initializer.c: runs on the loop, wherever it stands. */
extern const weir_handler weir__initializer;

/* head_tail.c: the head performs operations, the tail releases unhandled messages. */
extern const weir_handler weir__head_tail;

#endif
