/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the callbacks of a watch and reacts to them.
 *
 *     struct watch_record seen = {.reaction = DRAIN};
 *     weir_fd_watch *watch = watch_reading(host->loop, descriptor, &seen);
 *     ...
 *     assert_true(call_counter_await(&seen.ready, 1));
 *     watch_end(watch, &seen, 0);
 */
#ifndef WEIR_TEST_WATCH_RECORDER_H
#define WEIR_TEST_WATCH_RECORDER_H

#include <stdatomic.h>

#include <weir/watch.h>

#include "support/executor/call_counter.h"

struct watch_record {
    struct call_counter ready;
    struct call_counter closed;
    _Atomic uint32_t events; /* of the last call */
    _Atomic int err;         /* passed to `closed` */
    _Atomic bool late;       /* `ready` was called after `closed` */
    enum { LEAVE, DRAIN, PAUSE, WRITE_ONLY, END } reaction;
    weir_fd_watch *also_closes;
};

/* Callbacks whose user_data is a struct watch_record. */
void watch_record_ready(weir_fd_watch *watch, uint32_t events, void *user_data);
void watch_record_closed(weir_fd_watch *watch, int err, void *user_data);

/* Options of a watch that reads, without and with a `closed` callback. */
#define READING .events = WEIR_FD_READABLE, .ready = watch_record_ready
#define RECORD_READING(seen) READING, .closed = watch_record_closed, .user_data = (seen)

weir_fd_watch *watch_with(weir_executor *loop, int descriptor, uint32_t events,
                          struct watch_record *seen);
weir_fd_watch *watch_reading(weir_executor *loop, int descriptor, struct watch_record *seen);

/*
 * Closes the watch unless it is closed, checks that it ended once with this error, and releases it.
 */
void watch_end(weir_fd_watch *watch, struct watch_record *seen, int err);

/* Non-blocking pipes: read from the first end, write to the second. */
void pipe_open(int ends[2]);
void pipe_feed(int end);
void pipe_close(const int ends[2]);

#endif
