/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a chunks message: its source, and the progress of the transfer.
 */
#ifndef WEIR_HANDLER_CHUNKS_H
#define WEIR_HANDLER_CHUNKS_H

#include <weir/chunks.h>
#include <weir/handler.h>

struct weir_chunks {
    weir_msg msg; /* first */
    const weir_chunk_source *table;
    void *source;
    int64_t length;
    weir_chunks_progress_fn *on_progress;
    void *user_data;

    /* For chunked_writing.c. */
    weir_ctx *ctx;      /* set while pieces are pulled */
    weir_promise *done; /* retained; may be NULL */
    int64_t sent;
    size_t in_flight;   /* pieces written but not sent */
    bool is_reported;   /* `done` is completed */
    bool may_send_next; /* the marker was sent */
    weir_chunks *next;  /* retained; links chunks that lost their handler */
};

#endif
