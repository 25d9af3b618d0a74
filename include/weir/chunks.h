/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/chunks.h - large messages that are generated piece by piece while they are sent.
 *
 *      static int next_line(void *source, weir_msg **ret_chunk)
 *      {
 *          ... *ret_chunk = weir_buf_msg(line);
 *          return WEIR_CHUNKS_READY;
 *      }
 *
 *      err = weir_chunked_writing_add(pipeline);           before the handlers that write chunks
 *      ...
 *      static const weir_chunk_source lines = {.next = next_line, .close = close_lines};
 *      err = weir_chunks_create(&lines, source, -1, &chunks);
 *      weir_write_and_flush(ctx, weir_chunks_msg(chunks), done);
 *
 * To send a file, weir/file_range.h is cheaper (sendfile); use weir_chunks_create_file, or
 * weir_file_reading_add, if a handler such as TLS has to see the bytes.
 */
#ifndef WEIR_CHUNKS_H
#define WEIR_CHUNKS_H

#include <weir/file_range.h>
#include <weir/handler.h>
#include <weir/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- chunks ----------------------------------------------------------------------------------- */

/* Results of `next`, other than errors. */
enum weir_chunks_result {
    WEIR_CHUNKS_END,   /* no more pieces */
    WEIR_CHUNKS_READY, /* *ret_chunk is the next piece */
    WEIR_CHUNKS_AGAIN, /* none yet: call again with the next flush of the channel */
};

typedef struct weir_chunk_source {
    /* Produces the next piece, which it gives away. An error fails the write; later messages are
     * still sent. */
    int (*next)(void *source, weir_msg **ret_chunk);
    void (*close)(void *source); /* called once, after the last `next`, on any thread; optional */
    void *reserved[4];           /* NULL */
} weir_chunk_source;

typedef struct weir_chunks weir_chunks;

/*
 * Type tag of chunks; see weir_chunks_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_chunks_type;

/*
 * Creates a message from a source. `length` is the total number of bytes, -1 if unknown. The source
 * is closed even if this fails.
 * Thread: any.  Lends until it is closed: table.  Takes: source.  Gives: ret_chunks.  Fails:
 * -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_chunks_create(const weir_chunk_source *table, void *source,
                                              int64_t length, weir_chunks **ret_chunks);

/*
 * Creates a message from a part of a file, read in pieces of `chunk_size` bytes (0 = 112 KiB). A
 * piece stays in memory until it is sent: prefer small pieces for slow or for many receivers. The
 * flags are those of weir_file_range_create.
 * Thread: any.  Takes: descriptor, with WEIR_FILE_RANGE_CLOSE.  Gives: ret_chunks.  Fails: -EBADF,
 * -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_chunks_create_file(int descriptor, int64_t offset, int64_t length,
                                                   uint32_t flags, size_t chunk_size,
                                                   weir_chunks **ret_chunks);

/*
 * Creates a message from a file range, which is read as by weir_chunks_create_file.
 * Thread: any.  Takes: range.  Gives: ret_chunks.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_chunks_create_range(weir_file_range *range, size_t chunk_size,
                                                    weir_chunks **ret_chunks);

/*
 * Casts a message to chunks. NULL if it is something else.
 * Thread: any.
 */
static inline weir_chunks *weir_chunks_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_chunks_type) ? (weir_chunks *)(void *)msg : NULL;
}

/*
 * Casts chunks to a message.
 * Thread: any.
 */
static inline weir_msg *weir_chunks_msg(weir_chunks *chunks)
{
    return (weir_msg *)(void *)chunks; /* its first member */
}

/* Called on the channel's loop each time a piece has been sent. */
typedef void weir_chunks_progress_fn(int64_t sent, int64_t length, void *user_data);

/*
 * Sets the progress callback. To be called before the chunks are written.
 * Thread: its holder's.  Lends until it is sent: user_data.
 */
WEIR_API void weir_chunks_on_progress(weir_chunks *chunks, weir_chunks_progress_fn *fn,
                                      void *user_data);

/* --- chunked writing -------------------------------------------------------------------------- */

/*
 * Adds the handler that sends chunks, at the tail.
 *
 * It pulls pieces while the channel's pending bytes are below the high water mark, so that a
 * message of any size needs little memory. Writes behind the chunks wait, and count against the
 * marks. The promise completes when the last piece has been sent, or fails with the error of the
 * source or of a piece; the next message is sent in either case.
 *
 * A close waits until all earlier writes have been passed on; without progress for the channel's
 * close timeout, the remaining writes fail. Pieces that a handler nearer to the head delays
 * (weir/traffic.h) do not time out. A half closure waits without a timeout.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_chunked_writing_add(weir_pipeline *pipeline);

/*
 * Adds the handler that turns file ranges into chunks, at the tail, behind that of
 * weir_chunked_writing_add: then handlers that write files need not know that TLS, or another
 * handler nearer to the head, has to see the bytes.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_file_reading_add(weir_pipeline *pipeline);

#ifdef __cplusplus
}
#endif

#endif
