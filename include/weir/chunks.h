/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/chunks.h - a large message that is made while it is sent, piece by piece.
 *
 *      static int next_line(void *source, weir_msg **ret_chunk)
 *      {
 *          ... *ret_chunk = weir_buf_msg(line);
 *          return WEIR_CHUNKS_READY;
 *      }
 *
 *      static const weir_chunk_source lines = {.next = next_line, .close = close_lines};
 *      weir_chunks_create(&lines, source, -1, &chunks);
 *      weir_write_and_flush(ctx, weir_chunks_msg(chunks), done);
 *
 * The handler of weir/chunks.h sends it. A part of a file that needs no handler to see its
 * bytes is better sent as weir/file_range.h; with TLS, say, it is weir_chunks_create_file.
 */
#ifndef WEIR_CHUNKS_H
#define WEIR_CHUNKS_H

#include <weir/handler.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What `next` returns, unless it fails. */
enum weir_chunks_result {
    WEIR_CHUNKS_END,   /* there are no more */
    WEIR_CHUNKS_READY, /* one more: *ret_chunk */
    WEIR_CHUNKS_AGAIN, /* none yet: it is asked again with the next flush of the channel */
};

typedef struct weir_chunk_source {
    /* The next piece, given away. An error fails the write; the messages behind it are sent. */
    int (*next)(void *source, weir_msg **ret_chunk);
    void (*close)(void *source); /* once, when no more is asked; NULL = nothing to do. Any thread */
    void *reserved[4];           /* NULL */
} weir_chunk_source;

typedef struct weir_chunks weir_chunks;

/*
 * What a message's type is if it is of chunks: weir_chunks_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_chunks_type;

/*
 * Makes a message of a source. `length` is how many bytes there will be, -1 if nobody knows.
 * Thread: any.  Lends until it is closed: table.  Takes: source.  Gives: ret_chunks.  Fails:
 * -EINVAL, -ENOMEM.
 */
WEIR_API int weir_chunks_create(const weir_chunk_source *table, void *source, int64_t length,
                                weir_chunks **ret_chunks);

/*
 * Makes a message of a part of a file, read in pieces of `chunk_size` (0 = 112 KiB) bytes. A piece
 * is held until it is sent, and goes out as a whole: what is sent slowly, or to many at once, wants
 * small ones. Flags are those of weir_file_range_create.
 * Thread: any.  Takes: descriptor, with WEIR_FILE_RANGE_CLOSE.  Gives: ret_chunks.  Fails: -EBADF,
 * -EINVAL, -ENOMEM.
 */
WEIR_API int weir_chunks_create_file(int descriptor, int64_t offset, int64_t length, uint32_t flags,
                                     size_t chunk_size, weir_chunks **ret_chunks);

/*
 * The chunks that a message is, or NULL if it is something else.
 * Thread: any.
 */
static inline weir_chunks *weir_chunks_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_chunks_type) ? (weir_chunks *)(void *)msg : NULL;
}

/*
 * The chunks as the message that they are.
 * Thread: any.
 */
static inline weir_msg *weir_chunks_msg(weir_chunks *chunks)
{
    return (weir_msg *)(void *)chunks; /* it begins with one */
}

/* Called on the channel's loop each time that some of it has been sent. */
typedef void weir_chunks_progress_fn(int64_t sent, int64_t length, void *user_data);

/*
 * Says who wants to hear how much has been sent; before it is written.
 * Thread: its holder's.  Lends until it is sent: user_data.
 */
WEIR_API void weir_chunks_on_progress(weir_chunks *chunks, weir_chunks_progress_fn *fn,
                                      void *user_data);

/* --- chunked writing -------------------------------------------------------------------------- */

/*
 * A handler that sends messages which are made while they are sent.
 *
 *      weir_chunked_writing_add(pipeline);      before the handlers that write weir/chunks.h
 *
 * It asks for the next piece as long as what waits to be sent is below the channel's high water
 * mark, so that a message of any size takes little memory. What is written behind it waits, and
 * counts against the marks. The promise completes when the last piece has been sent; when a source
 * fails, or one of its pieces does, with that error, and the next message is sent.
 *
 * A close waits until all that was written before it has been handed on; if nothing moves for the
 * channel's close timeout, what is left fails. Pieces that a handler in front holds back
 * (weir/traffic.h) are waited for as long as it holds them. A half closure waits, too, and
 * for as long as it takes.
 */

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_chunked_writing_add(weir_pipeline *pipeline);

#ifdef __cplusplus
}
#endif

#endif
