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
 * that code that runs it now still finds its neighbours.
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
 * The last event was fired. When it has passed all handlers, on whatever executor, removes them
 * from the tail on, each after the one behind it is freed; then calls weir__channel_leave_loop.
 */
void weir__pipeline_teardown(weir_pipeline *pipeline);

/* Unlinks and frees removed handlers that are no longer in use. */
void weir__pipeline_sweep(weir_pipeline *pipeline);

/* The channel is being freed: frees the handlers. Any thread. */
void weir__pipeline_destroy(weir_pipeline *pipeline);

/* Removes a handler, on the loop. */
void weir__pipeline_remove(weir_ctx *ctx);

/* Moves a handler from the loop to another group: weir__remote_move. */
int weir__pipeline_move(weir_ctx *ctx, weir_group *group);

/* head_tail.c: the head performs operations, the tail releases unhandled messages. */
extern const weir_handler weir__head_tail;

#endif
