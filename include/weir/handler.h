/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/handler.h - what happens to a channel's events: one const table.
 *
 *      static void on_read(weir_ctx *ctx, weir_msg *msg) { weir_write(ctx, msg, NULL); }
 *      static void on_read_complete(weir_ctx *ctx) { weir_flush(ctx); }
 *      static const weir_handler echo = {
 *          .name = "echo", .read = on_read, .read_complete = on_read_complete};
 *
 * A slot that is NULL is skipped: the event goes on to the next handler that has it. A slot that is
 * there gets the event, and passes it on (weir_fire_..., weir_write, ...) or does not. Every slot
 * runs on the handler's executor: the channel's loop, or one of the group that it was added on.
 *
 * State: `state_size` bytes, zeroed, allocated together with the context; weir_ctx_state(ctx).
 * Life: init (inside add, on the caller's thread; copies what it needs of the options; an error is
 * the adding's), added, events, removed (only if added ran), deinit (once, if init succeeded).
 */
#ifndef WEIR_HANDLER_H
#define WEIR_HANDLER_H

#include <weir/address.h>
#include <weir/base.h>
#include <weir/msg.h>
#include <weir/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_ctx weir_ctx;
typedef struct weir_channel weir_channel;
typedef struct weir_pipeline weir_pipeline;

typedef struct weir_handler {
    const char *name;
    size_t state_size;
    int (*init)(void *state, const void *options);
    void (*deinit)(void *state); /* any thread */
    void (*added)(weir_ctx *ctx);
    void (*removed)(weir_ctx *ctx);

    /* In, from head to tail. */
    void (*registered)(weir_ctx *ctx);             /* the channel has a loop */
    void (*unregistered)(weir_ctx *ctx);           /* it has none any more */
    void (*active)(weir_ctx *ctx);                 /* connected, or bound if it accepts */
    void (*inactive)(weir_ctx *ctx);               /* no longer */
    void (*read)(weir_ctx *ctx, weir_msg *msg);    /* takes msg; a server's are channels */
    void (*read_complete)(weir_ctx *ctx);          /* nothing more to read for now */
    void (*event)(weir_ctx *ctx, weir_msg *event); /* takes event: the user's, or weir/events.h */
    void (*writability)(weir_ctx *ctx);            /* ask weir_is_writable */
    void (*error)(weir_ctx *ctx, int err, const char *detail); /* detail: a sentence, or NULL */
    void (*draining)(weir_ctx *ctx); /* the group shuts down: finish, then close */

    /* Out, from tail to head. `done` may be NULL: nobody waits. */
    void (*bind)(weir_ctx *ctx, const weir_address *local, weir_promise *done);
    void (*connect)(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                    weir_promise *done);
    void (*disconnect)(weir_ctx *ctx, weir_promise *done);
    void (*close)(weir_ctx *ctx, weir_promise *done);
    void (*deregister)(weir_ctx *ctx, weir_promise *done);
    void (*request_read)(weir_ctx *ctx);
    void (*write)(weir_ctx *ctx, weir_msg *msg, weir_promise *done); /* takes msg */
    void (*flush)(weir_ctx *ctx);
    void (*shutdown_output)(weir_ctx *ctx, weir_promise *done); /* half closure */

    /* The state begins with a weir_demand (weir/demand.h), and request_read lets what waits there
     * go on: it is not called after each read_complete of a channel with auto-read. */
    bool keeps_reads;

    void *reserved[6]; /* NULL */
} weir_handler;

#ifdef __cplusplus
}
#endif

#endif
