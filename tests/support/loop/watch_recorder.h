/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches for tests: what one told, and what its owner does about it.
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
    _Atomic int err;         /* of the end */
    _Atomic bool late;       /* told of events after the end */
    enum { LEAVE, DRAIN, PAUSE, WRITE_ONLY, END } reaction;
    weir_fd_watch *also_closes;
};

/* Call-backs whose user_data is a struct watch_record. */
void watch_record_ready(weir_fd_watch *watch, uint32_t events, void *user_data);
void watch_record_closed(weir_fd_watch *watch, int err, void *user_data);

/* Options of a watch that reads, and is not seen closed; and of one that is. */
#define READING .events = WEIR_FD_READABLE, .ready = watch_record_ready
#define RECORD_READING(seen) READING, .closed = watch_record_closed, .user_data = (seen)

weir_fd_watch *watch_with(weir_executor *loop, int descriptor, uint32_t events,
                          struct watch_record *seen);
weir_fd_watch *watch_reading(weir_executor *loop, int descriptor, struct watch_record *seen);

/* Closes it, unless it is closed already; it ends once, with this error. Gives it back. */
void watch_end(weir_fd_watch *watch, struct watch_record *seen, int err);

/* Pipes that do not block: read from the first end, write into the second. */
void pipe_open(int ends[2]);
void pipe_feed(int end);
void pipe_close(const int ends[2]);

#endif
