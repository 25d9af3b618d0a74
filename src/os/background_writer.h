/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to a file on a background thread, so that a slow file, or a pipe whose reader has stopped,
 * does not block an event loop. The queue is bounded: a piece that does not fit is rejected.
 *
 *     uint8_t *piece = weir__background_writer_begin(writer, length);
 *     if (piece != NULL) {
 *         ... writes all of it ...
 *         weir__background_writer_end(writer);
 *     }
 *     weir__background_writer_push(writer);         the thread writes it now
 */
#ifndef WEIR_OS_BACKGROUND_WRITER_H
#define WEIR_OS_BACKGROUND_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR__BACKGROUND_PIECE_MAX ((size_t)128 * 1024)
#define WEIR__BACKGROUND_QUEUE_MIN (2 * WEIR__BACKGROUND_PIECE_MAX)

typedef struct weir__background_writer weir__background_writer;

/*
 * Starts the thread. `max_bytes`, at least WEIR__BACKGROUND_QUEUE_MIN, limits the memory of the
 * queue; `name` is used for the thread and in log messages. Takes the file on success. Fails with
 * -ENOMEM, -EAGAIN.
 */
int weir__background_writer_create(int file, size_t max_bytes, const char *name,
                                   weir__background_writer **ret_writer);

/*
 * Reserves space for a piece of at most WEIR__BACKGROUND_PIECE_MAX bytes, and holds a lock until
 * weir__background_writer_end. Pieces are written in this order. Returns NULL, without the lock, if
 * the queue is full, there is no memory, or an earlier write has failed.
 */
uint8_t *weir__background_writer_begin(weir__background_writer *writer, size_t length);
void weir__background_writer_end(weir__background_writer *writer);

/* Wakes the thread to write everything queued, without waiting. Otherwise it writes whenever 128
 * KiB are queued. */
void weir__background_writer_push(weir__background_writer *writer);

/* Waits until everything before this call was written. Returns the first error of a write. */
int weir__background_writer_flush(weir__background_writer *writer);

/* The first error of a write, or 0. */
int weir__background_writer_error(const weir__background_writer *writer);

/*
 * Writes the rest, closes the file and frees the writer; no other call may be in progress. With
 * `may_wait` it returns when that is done, or when the file has accepted nothing for five seconds;
 * otherwise the thread finishes in the background.
 */
void weir__background_writer_close(weir__background_writer *writer, bool may_wait);

/* Waits until no writer has anything left to write or close; false after the timeout. Called at
 * exit, with a timeout of three seconds. */
bool weir__background_writers_wait(int64_t timeout_ns);

/* Timeouts of weir__background_writer_close for a file that accepts nothing, and of the wait at
 * exit; variables for tests. */
extern _Atomic int64_t weir__background_grace_ns;
extern _Atomic int64_t weir__background_exit_ns;

#endif
