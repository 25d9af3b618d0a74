/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a message of chunks: its source, and how far it has been sent.
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

    /* Of who sends it. */
    weir_ctx *ctx;      /* as long as it asks for pieces */
    weir_promise *done; /* kept; NULL = nobody waits */
    int64_t sent;
    size_t in_flight;   /* pieces that were written and not sent */
    bool is_reported;   /* `done` has been told */
    bool may_send_next; /* all that was in front has been sent */
    weir_chunks *next;  /* kept, of those that nobody sends any more */
};

#endif
