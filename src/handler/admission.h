/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of handlers that let a connection in or not: when it becomes active, before the handlers
 * behind have heard of it. One that is refused is aborted, and they never do. On a listener the
 * admission is set up in front of each connection that is accepted.
 *
 * The listeners of a connect run before `active`. So what would send something, a flush, a close or
 * the end of the output, is judged as well if it comes first: nothing is sent to a refused peer.
 */
#ifndef WEIR_HANDLER_ADMISSION_H
#define WEIR_HANDLER_ADMISSION_H

#include <weir/handler.h>

#include "base/log_limit.h"

typedef struct weir__admission {
    weir_handler connection; /* {.name = ..., WEIR__ADMISSION_SLOTS} */
    weir_handler listener;   /* {.name = ..., WEIR__ADMISSION_LISTENER_SLOTS} */

    /* `shared` is what all connections of the admission share. */
    void (*retain)(void *shared);
    void (*release)(void *shared);
    bool (*enter)(void *shared, const weir_address *peer, void **ret_ticket);

    /* Once for each that has entered, on any thread. NULL: nobody needs to know; then the handler
     * goes as soon as its connection is in. */
    void (*leave)(void *shared, void *ticket);

    weir__log_limit *rejections; /* of messages about them */
} weir__admission;

typedef struct weir__admission_state {
    const weir__admission *admission;
    void *shared;
    void *ticket;
    bool is_admitted;
    bool is_rejected;
    bool active_withheld; /* those behind have not heard that it is active */
} weir__admission_state;

int weir__admission_init(void *state, const void *options);
void weir__admission_deinit(void *state);
void weir__admission_added(weir_ctx *ctx);
void weir__admission_active(weir_ctx *ctx);
void weir__admission_inactive(weir_ctx *ctx);
void weir__admission_flush(weir_ctx *ctx);
void weir__admission_close(weir_ctx *ctx, weir_promise *done);
void weir__admission_shutdown_output(weir_ctx *ctx, weir_promise *done);
void weir__admission_accepted(weir_ctx *ctx, weir_msg *msg);

#define WEIR__ADMISSION_LISTENER_SLOTS                                         \
    .state_size = sizeof(weir__admission_state), .init = weir__admission_init, \
    .read = weir__admission_accepted, .deinit = weir__admission_deinit

#define WEIR__ADMISSION_SLOTS                                                  \
    .state_size = sizeof(weir__admission_state), .init = weir__admission_init, \
    .deinit = weir__admission_deinit, .added = weir__admission_added,          \
    .active = weir__admission_active, .inactive = weir__admission_inactive,    \
    .flush = weir__admission_flush, .close = weir__admission_close,            \
    .shutdown_output = weir__admission_shutdown_output

/* Adds it at the end of a connection's or a listener's pipeline; keeps the shared. */
int weir__admission_add(weir_pipeline *pipeline, const weir__admission *admission, void *shared);

#endif
