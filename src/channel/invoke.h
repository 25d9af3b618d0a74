/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an event gets from one handler to the next.
 *
 * It is a call: invoke.c finds the next context that has the slot and calls it. An event that has
 * to wait or to travel, as it does at a border (border.h), has the form of a weir__event.
 */
#ifndef WEIR_CHANNEL_INVOKE_H
#define WEIR_CHANNEL_INVOKE_H

#include <weir/handler.h>

/* An event or operation. Its receiver owns what it carries. */
typedef struct weir__event {
    uint32_t slot; /* one bit */
    int err;
    weir_msg *msg;
    weir_promise *done;
    const char *detail;
    const weir_address *remote;
    const weir_address *local;
} weir__event;

/* Calls the slot of this context. */
void weir__invoke(weir_ctx *ctx, const weir__event *event);

/* Passes an event on from this context, on its executor. */
void weir__pass(weir_ctx *ctx, const weir__event *event);

#endif
