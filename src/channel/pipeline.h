/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel's handlers: a ring of contexts. The one that is part of the pipeline closes it: what
 * goes in finds it behind the last handler, as the tail; what goes out finds it before the first,
 * as the head. So it has every slot, and no search for the next handler needs an end.
 *
 *      +-> ends -> first -> ... -> last -+
 *      +---------------------------------+
 *
 * The ring is walked and changed on the channel's loop only (before the first registration: by the
 * thread that made the channel). A handler that is removed stays linked, without slots, until a
 * later task: whoever runs it now still finds its neighbours.
 */
#ifndef WEIR_CHANNEL_PIPELINE_H
#define WEIR_CHANNEL_PIPELINE_H

#include <weir/pipeline.h>

#include "channel/ctx.h"

/* `slots` of the ends are those that some handler has; may have more than are left. */
struct weir_pipeline {
    weir_ctx head_tail;
};

void weir__pipeline_init(weir_pipeline *pipeline, weir_channel *channel);

/* Calls `added` of those that wait for the registration, in order. */
void weir__pipeline_call_added(weir_pipeline *pipeline);

/*
 * The last event was fired: when it has come to all handlers, wherever they run, removes them, from
 * the tail on, each when the one behind it is gone; then calls weir__channel_leave_loop.
 */
void weir__pipeline_teardown(weir_pipeline *pipeline);

/* Unlinks and frees what was removed and is not used any more. */
void weir__pipeline_sweep(weir_pipeline *pipeline);

/* The channel's memory goes: frees what is left. Any thread. */
void weir__pipeline_destroy(weir_pipeline *pipeline);

/* Removes a context, on the loop. */
void weir__pipeline_remove(weir_ctx *ctx);

/* Both ends (ends.c): what the head does with what goes out, and the tail with what came in. */
extern const weir_handler weir__head_tail;

#endif
