/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of handlers that accept or reject connections. They check a connection when it becomes
 * active, before later handlers see it, and abort it if it is rejected. On a listener they are
 * added to each accepted connection.
 *
 * The listeners of a connect run before `active`. So operations that send data (flush, close,
 * shutdown_output) also check the connection: nothing is sent to a rejected peer.
 */
#ifndef WEIR_HANDLER_ADMISSION_H
#define WEIR_HANDLER_ADMISSION_H

#include <weir/handler.h>

#include "base/log_limit.h"

typedef struct weir__admission {
    weir_handler connection; /* {.name = ..., WEIR__ADMISSION_SLOTS} */
    weir_handler listener;   /* {.name = ..., WEIR__ADMISSION_LISTENER_SLOTS} */

    /* `shared` is the object that all connections share. */
    void (*retain)(void *shared);
    void (*release)(void *shared);
    bool (*enter)(void *shared, const weir_address *peer, void **ret_ticket);

    /* Called once for each admitted connection, on any thread. NULL: the handler removes itself
     * from admitted connections. */
    void (*leave)(void *shared, void *ticket);

    weir__log_limit *rejections; /* rate limit of the log */
} weir__admission;

typedef struct weir__admission_state {
    const weir__admission *admission;
    void *shared;
    void *ticket;
    bool is_admitted;
    bool is_rejected;
    bool active_withheld; /* later handlers have not seen `active` */
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

/* Adds the handler at the tail of a connection's or a listener's pipeline, and retains `shared`. */
int weir__admission_add(weir_pipeline *pipeline, const weir__admission *admission, void *shared);

#endif
