/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of handlers that let a connection in or not: when it becomes active, before the handlers
 * behind have heard of it. One that is refused is aborted, and they never do. On a listener the
 * gate is set up in front of each connection that is accepted.
 *
 * The listeners of a connect run before `active`. So what would send something, a flush, a close or
 * the end of the output, is judged as well if it comes first: nothing is sent to a refused peer.
 */
#ifndef WEIR_HANDLER_ADMISSION_H
#define WEIR_HANDLER_ADMISSION_H

#include <weir/handler.h>

#include "base/log_limit.h"

typedef struct weir__gate {
    weir_handler connection; /* {.name = ..., WEIR__GATE_SLOTS} */
    weir_handler listener;   /* {.name = ..., WEIR__GATE_LISTENER_SLOTS} */

    /* `keeper` is what all connections of the gate share. */
    void (*retain)(void *keeper);
    void (*release)(void *keeper);
    bool (*enter)(void *keeper, const weir_address *peer, void **ret_ticket);

    /* Once for each that has entered, on any thread. NULL: nobody needs to know; then the handler
     * goes as soon as its connection is in. */
    void (*leave)(void *keeper, void *ticket);

    weir__log_limit *refusals; /* of messages about them */
} weir__gate;

typedef struct weir__gate_state {
    const weir__gate *gate;
    void *keeper;
    void *ticket;
    bool is_in;
    bool is_refused;
    bool is_shut; /* those behind have not heard that it is active */
} weir__gate_state;

int weir__gate_init(void *state, const void *options);
void weir__gate_deinit(void *state);
void weir__gate_added(weir_ctx *ctx);
void weir__gate_active(weir_ctx *ctx);
void weir__gate_inactive(weir_ctx *ctx);
void weir__gate_flush(weir_ctx *ctx);
void weir__gate_close(weir_ctx *ctx, weir_promise *done);
void weir__gate_shutdown_output(weir_ctx *ctx, weir_promise *done);
void weir__gate_accepted(weir_ctx *ctx, weir_msg *msg);

#define WEIR__GATE_LISTENER_SLOTS                                                                 \
    .state_size = sizeof(weir__gate_state), .init = weir__gate_init, .read = weir__gate_accepted, \
    .deinit = weir__gate_deinit

#define WEIR__GATE_SLOTS                                                                          \
    .state_size = sizeof(weir__gate_state), .init = weir__gate_init, .deinit = weir__gate_deinit, \
    .added = weir__gate_added, .active = weir__gate_active, .inactive = weir__gate_inactive,      \
    .flush = weir__gate_flush, .close = weir__gate_close,                                         \
    .shutdown_output = weir__gate_shutdown_output

/* Adds it at the end of a connection's or a listener's pipeline; keeps the keeper. */
int weir__gate_add(weir_pipeline *pipeline, const weir__gate *gate, void *keeper);

#endif
