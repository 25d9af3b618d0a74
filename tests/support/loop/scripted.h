/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend without a kernel: the test writes its events. Otherwise it is a readiness backend, so
 * that io.c and readiness.c can be tested one event at a time, level-triggered or edge-triggered.
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
    } batch[SCRIPTED_EVENTS_MAX]; /* for the next dispatch */
    unsigned count;
    unsigned cursor;
    unsigned max_events; /* maximum per dispatch; 0 = all */
    unsigned arms;       /* changes of a handle's interest */
    unsigned dispatches; /* calls */
    int64_t deadline_ns; /* of the last wait */
    int rebuild_error;
    bool defers_detach; /* detach completes by weir__io_detach_done only */
};

extern const struct backend scripted_level;
extern const struct backend scripted_edge;

/* Sets the result of opening. */
void scripted_refuse(int err);

struct scripted *scripted_of(weir__io *io);

/* Adds an event for the next dispatch. */
void scripted_event(weir__io_handle *handle, unsigned events);

#endif
