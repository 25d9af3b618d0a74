/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that writes to a file what other threads hand over, so that a file which is slow, or a
 * pipe whose reader has stopped, holds up no event loop. The queue is bounded: a piece that does
 * not fit is refused as a whole.
 *
 *     uint8_t *place = weir__background_writer_begin(writer, length);
 *     if (place != NULL) {
 *         ... writes all of it ...
 *         weir__background_writer_end(writer);
 *     }
 *     weir__background_writer_push(writer);         the thread begins to write now
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
 * Starts the thread. `max_bytes`, at least WEIR__BACKGROUND_QUEUE_MIN, bounds the memory of the
 * queue; `name` is that of the thread, and of messages. Takes the file, unless it fails: -ENOMEM,
 * -EAGAIN.
 */
int weir__background_writer_create(int file, size_t max_bytes, const char *name,
                                   weir__background_writer **ret_writer);

/*
 * Reserves a place for a piece of at most WEIR__BACKGROUND_PIECE_MAX bytes, and holds a lock until
 * weir__background_writer_end. Pieces are written in this order. NULL, without the lock, if the
 * queue is full, there is no memory, or an earlier write has failed.
 */
uint8_t *weir__background_writer_begin(weir__background_writer *writer, size_t length);
void weir__background_writer_end(weir__background_writer *writer);

/* Makes the thread write what there is, and does not wait for it. Otherwise it writes whenever
 * there are 128 KiB. */
void weir__background_writer_push(weir__background_writer *writer);

/* Waits until everything before this call has been written. Fails with the first error of a write.
 */
int weir__background_writer_flush(weir__background_writer *writer);

/* The first error of a write, or 0. */
int weir__background_writer_error(const weir__background_writer *writer);

/*
 * Writes what is left, closes the file and frees the writer; no other call may be under way. A
 * caller that may wait returns when that is done, or if the file has taken nothing for five
 * seconds; otherwise the thread goes on by itself.
 */
void weir__background_writer_close(weir__background_writer *writer, bool may_wait);

/* Waits until no writer has anything left to write or to close; false if that takes too long. The
 * end of the process does so, for three seconds. */
bool weir__background_writers_wait(int64_t timeout_ns);

/* How long weir__background_writer_close waits for a file that takes nothing, and the end of the
 * process for all; for tests. */
extern _Atomic int64_t weir__background_grace_ns;
extern _Atomic int64_t weir__background_exit_ns;

#endif
