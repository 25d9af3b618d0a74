/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a scenario again and again; each time another system call (support/loop/faults.h) or
 * allocation fails.
 *
 *     struct sweep sweep = {.backend = backend, .scenario = play, .places = 40,
 *                           .stride = SWEEP_STRIDE};
 *
 *     sweep_calls(&sweep);
 *     sweep_allocations(&sweep);
 *
 * The scenario asserts its invariants, and stops the faults before it ends.
 */
#ifndef WEIR_TEST_FAULT_SWEEP_H
#define WEIR_TEST_FAULT_SWEEP_H

#include <stdbool.h>

#include "support/loop/backend.h"

/* Under slow sanitizers, only every n-th error and call. */
#if defined(__SANITIZE_THREAD__)
#define SWEEP_STRIDE 9
#elif defined(__SANITIZE_ADDRESS__)
#define SWEEP_STRIDE 8
#else
#define SWEEP_STRIDE 1
#endif

struct sweep {
    const struct backend *backend;
    int (*scenario)(struct sweep *sweep); /* returns the error that kept it from starting */
    const void *arg;                      /* for the scenario */
    unsigned places; /* maximum number of calls of one kind to fail, approximately */
    unsigned stride;
    bool takes_turns;     /* each call fails once or a few times, alternately, instead of both */
    bool ring_fails_once; /* io_uring_enter never fails several times in a row */
    int allowed_error;    /* may keep a scenario from starting whatever has failed */

    char fault[128]; /* the current fault, for messages */
    bool memory_failed;
};

/*
 * For each kind of call that the scenario makes: fails the first with each of its errors, and later
 * ones.
 */
void sweep_calls(struct sweep *sweep);

/* Fails each of the first allocations, then fewer: later ones are alike. */
void sweep_allocations(struct sweep *sweep);

/* Stops the faults. */
void sweep_stop_faults(struct sweep *sweep);

/* True if a fault was injected in this run. */
bool sweep_has_failed(const struct sweep *sweep);

/* Fails the test. */
void sweep_fail(const struct sweep *sweep, const char *about);

#endif
