/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an event gets from one handler to the next.
 *
 * On one executor it is a call: invoke.c finds the next context that has the slot and calls it. To
 * and from a handler on another executor it travels as a node (remote_handler.h), in the form of a
 * weir__event.
 */
#ifndef WEIR_CHANNEL_INVOKE_H
#define WEIR_CHANNEL_INVOKE_H

#include <weir/handler.h>

/* An event or operation. Its receiver owns what it carries. */
typedef struct weir__event {
    uint32_t slot; /* one bit */
    bool is_auto;  /* a read request made by auto-read */
    int err;
    weir_msg *msg;
    weir_promise *done;
    const char *detail;
    const weir_address *remote;
    const weir_address *local;
} weir__event;

/* Calls the slot of this context. */
void weir__invoke(weir_ctx *ctx, const weir__event *event);

/* Passes an event on from this context, on the channel's loop. */
void weir__pass(weir_ctx *ctx, const weir__event *event);

/* weir_request_read on behalf of auto-read: waiting messages pass, but none was requested. */
void weir__auto_request_read(weir_ctx *ctx);

#endif
