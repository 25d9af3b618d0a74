/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns file ranges into chunks. The handler of chunked writing, nearer to the head, reads them.
 */
#include <weir/chunks.h>

#include <weir/channel.h>
#include <weir/pipeline.h>

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_file_range *range = weir_file_range_of(msg);
    weir_chunks *chunks;
    int err;

    if (range == NULL) {
        weir_write(ctx, msg, done);
        return;
    }
    err = weir_chunks_create_range(range, 0, &chunks);
    if (err < 0)
        weir_ctx_report(ctx, done, err, NULL);
    else
        weir_write(ctx, weir_chunks_msg(chunks), done);
}

static const weir_handler file_reading = {
    .name = "file-reading",
    .write = on_write,
};

int weir_file_reading_add(weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &file_reading, NULL);
}
