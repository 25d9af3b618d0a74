/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that pass everything on, in the pipeline of an embedded channel; the one at the end that
 * an event arrives at keeps the message for the next time.
 */
#include <weir/buf.h>
#include <weir/embedded.h>

#include "pipeline/cases.h"

static weir_embedded *embedded;
static weir_pipeline *pipeline;
static weir_ctx *last; /* of the pipeline: writes begin there */
static weir_msg *message;

static void pass_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_fire_read(ctx, msg);
}

static void pass_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_write(ctx, msg, done);
}

static void keep_written(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    (void)ctx;
    (void)done;
    message = msg;
}

static void keep_read(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    message = msg;
}

static void on_last_added(weir_ctx *ctx)
{
    last = ctx;
}

static void add(const weir_handler *handler)
{
    bench_require(weir_pipeline_add_last(pipeline, handler, NULL) == 0, "weir_pipeline_add_last");
}

static void chain_open(int64_t handlers)
{
    static const weir_handler first = {.name = "first", .write = keep_written};
    static const weir_handler pass = {.name = "pass", .read = pass_read, .write = pass_write};
    static const weir_handler end = {.name = "end", .read = keep_read, .added = on_last_added};
    weir_buf *buf;

    bench_require(weir_embedded_create(NULL, &embedded) == 0, "weir_embedded_create");
    pipeline = weir_embedded_pipeline(embedded);
    add(&first);
    for (int64_t i = 0; i < handlers; i++)
        add(&pass);
    add(&end);
    bench_require(last != NULL, "adding a handler");
    bench_require(weir_buf_create(64, 0, &buf) == 0, "weir_buf_create");
    message = weir_buf_msg(buf);
}

static void chain_close(void)
{
    weir_msg_release(message);
    weir_embedded_release(embedded);
}

static void chain_read(int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        weir_pipeline_fire_read(pipeline, message);
}

static void chain_write(int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        weir_write(last, message, NULL);
}
