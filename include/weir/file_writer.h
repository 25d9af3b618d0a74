/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/file_writer.h - a file that is written by a thread of its own, for logs and traces.
 *
 *      uint8_t *piece = weir_file_writer_begin(writer, length);
 *      if (piece != NULL) {
 *          ... writes all of it ...
 *          weir_file_writer_end(writer);
 *      }
 *      weir_file_writer_push(writer);          the thread writes it now
 *
 * A slow file, or a pipe whose reader has stopped, does not block an event loop. The queue is
 * bounded: a piece that does not fit is rejected. At the exit of the process the writers have three
 * seconds to write what is queued.
 */
#ifndef WEIR_FILE_WRITER_H
#define WEIR_FILE_WRITER_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_FILE_WRITER_PIECE_MAX ((size_t)128 * 1024)
#define WEIR_FILE_WRITER_QUEUE_MIN (2 * WEIR_FILE_WRITER_PIECE_MAX)

typedef struct weir_file_writer weir_file_writer;

/*
 * Starts a thread that writes to a descriptor. `max_bytes`, at least WEIR_FILE_WRITER_QUEUE_MIN,
 * limits the memory of the queue. `name`, up to 15 characters, names the thread and stands in log
 * messages.
 * Thread: any.  Takes, if it succeeds: file.  Gives: writer.  Fails: -EINVAL, -ENOMEM, -EAGAIN.
 */
WEIR_API WEIR_MUST_USE int weir_file_writer_create(int file, size_t max_bytes, const char *name,
                                                   weir_file_writer **ret_writer);

/*
 * The same, for a path: appends to the file, which is created with mode 0644 if it is missing.
 * "-" = standard output, which stays open.
 * Thread: any that may wait.  Gives: writer.  Fails: as weir_file_writer_create, and with errors of
 * open.
 */
WEIR_API WEIR_MUST_USE int weir_file_writer_open(const char *path, size_t max_bytes,
                                                 const char *name, weir_file_writer **ret_writer);

/*
 * Opens the path anew, after the file was renamed. The thread does it soon, at least after
 * everything that was queued before, and an earlier error of a write is forgotten; if it fails,
 * that is logged, and the old file is still written to. Does nothing for a writer without a path
 * and for "-".
 * Thread: any.
 */
WEIR_API void weir_file_writer_reopen(weir_file_writer *writer);

/*
 * Reserves space for a piece of at most WEIR_FILE_WRITER_PIECE_MAX bytes, and holds a lock until
 * weir_file_writer_end. Pieces are written in this order. Returns NULL, without the lock, if the
 * queue is full, there is no memory, or an earlier write has failed.
 * Thread: any.  Lends until weir_file_writer_end: the space.
 */
WEIR_API uint8_t *weir_file_writer_begin(weir_file_writer *writer, size_t length);
WEIR_API void weir_file_writer_end(weir_file_writer *writer);

/*
 * Wakes the thread to write everything queued, without waiting. Otherwise it writes whenever
 * 128 KiB are queued.
 * Thread: any.
 */
WEIR_API void weir_file_writer_push(weir_file_writer *writer);

/*
 * Makes the thread write everything queued within a tenth of a second: one wakeup for all pieces of
 * that time. For logs.
 * Thread: any.
 */
WEIR_API void weir_file_writer_push_soon(weir_file_writer *writer);

/*
 * Waits until everything before this call was written.
 * Thread: any that may wait.  Fails: with the first error of a write.
 */
WEIR_API int weir_file_writer_flush(weir_file_writer *writer);

/*
 * The first error of a write, or 0.
 * Thread: any.
 */
WEIR_API int weir_file_writer_error(const weir_file_writer *writer);

/*
 * Writes the rest, closes the file and frees the writer; no other call may be in progress. With
 * `may_wait` it returns when that is done, or when the file has accepted nothing for five seconds;
 * otherwise the thread finishes in the background. NULL is ignored.
 * Thread: any; with may_wait, any that may wait.  Takes: writer.
 */
WEIR_API void weir_file_writer_close(weir_file_writer *writer, bool may_wait);

#ifdef __cplusplus
}
#endif

#endif
