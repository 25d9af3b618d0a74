/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/handlers.h - the pipeline of an echo server: the handler that sends back what it receives,
 * and before it some that pass on what goes either way.
 */
#ifndef BENCH_ECHO_HANDLERS_H
#define BENCH_ECHO_HANDLERS_H

#include <weir/handler.h>
#include <weir/pipeline.h>

static void echo_on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void echo_on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void echo_on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static void echo_pass_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_fire_read(ctx, msg);
}

static void echo_pass_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_write(ctx, msg, done);
}

/* `count` handlers, the last of which echoes. */
static inline int echo_handlers_add(weir_pipeline *pipeline, int64_t count)
{
    static const weir_handler echo = {
        .name = "echo",
        .read = echo_on_read,
        .read_complete = echo_on_read_complete,
        .writability = echo_on_writability,
    };
    static const weir_handler pass[] = {
        /* names that are taken would cost memory */
        {.name = "first", .read = echo_pass_read, .write = echo_pass_write},
        {.name = "second", .read = echo_pass_read, .write = echo_pass_write},
    };
    int err = 0;

    for (int64_t i = 0; i < count - 1 && err == 0; i++)
        err = weir_pipeline_add_last(pipeline, &pass[i % 2], NULL);
    return err == 0 ? weir_pipeline_add_last(pipeline, &echo, NULL) : err;
}

#endif
