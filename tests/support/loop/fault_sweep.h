/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A play that is put on again and again, and each time something else fails in it: a system call
 * (support/loop/faults.h) or an allocation.
 *
 *     struct sweep sweep = {.backend = backend, .scenario = play, .places = 40, .stride =
 * SWEEP_STRIDE};
 *
 *     sweep_calls(&sweep);
 *     sweep_allocations(&sweep);
 *
 * The play asserts whatever must hold, and ends the trouble before it ends itself.
 */
#ifndef WEIR_TEST_FAULT_SWEEP_H
#define WEIR_TEST_FAULT_SWEEP_H

#include <stdbool.h>

#include "support/loop/backend.h"

/* Only every so many errors and places where it is slow. */
#if defined(__SANITIZE_THREAD__)
#define SWEEP_STRIDE 9
#elif defined(__SANITIZE_ADDRESS__)
#define SWEEP_STRIDE 4
#else
#define SWEEP_STRIDE 1
#endif

struct sweep {
    const struct backend *backend;
    int (*scenario)(struct sweep *sweep); /* returns the error that kept it from beginning */
    const void *arg;                      /* the play's */
    unsigned places; /* calls of one kind to fail, at the most, or a little more */
    unsigned stride;
    bool takes_turns;     /* at each place a call fails once or a few times, instead of both */
    bool ring_fails_once; /* its enter never a few times in a row */
    int allowed_error;    /* an error that may keep a play from beginning whatever has failed */

    char fault[128]; /* what fails now, for the report */
    bool memory_failed;
};

/* Each kind of call that the play makes: the first with each of its errors, and others. */
void sweep_calls(struct sweep *sweep);

/* Each of the first allocations, then fewer and fewer: later ones are much alike. */
void sweep_allocations(struct sweep *sweep);

/* From now on nothing fails. */
void sweep_stop_faults(struct sweep *sweep);

/* Whether something was made to fail in this play. */
bool sweep_has_failed(const struct sweep *sweep);

/* Fails the test. */
void sweep_fail(const struct sweep *sweep, const char *about);

#endif
