/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend without a kernel: its events are written by the test. Everything else is that of a
 * backend which hears of readiness, so that io.c and ready.c can be watched one event at a time,
 * and as if events were edges.
 */
#ifndef WEIR_TEST_SCRIPTED_H
#define WEIR_TEST_SCRIPTED_H

#include "support/loop/backend.h"

#define SCRIPTED_EVENTS_MAX 128

struct scripted {
    weir__io io;
    struct scripted_event {
        weir__io_handle *handle;
        unsigned events;
    } batch[SCRIPTED_EVENTS_MAX]; /* of the next dispatch */
    unsigned count;
    unsigned cursor;
    unsigned max_events; /* events that one dispatch does at most; 0 = all */
    unsigned arms;       /* how often a handle's interest was changed */
    unsigned dispatches; /* calls */
    int64_t deadline_ns; /* of the last wait */
    int rebuild_error;
    bool defers_detach; /* detach is not through before weir__io_detach_done */
};

extern const struct backend scripted_level;
extern const struct backend scripted_edge;

/* What opening returns from now on. */
void scripted_refuse(int err);

struct scripted *scripted_of(weir__io *io);

/* An event for the next dispatch. */
void scripted_event(weir__io_handle *handle, unsigned events);

#endif
