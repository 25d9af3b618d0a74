/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives a backend on the test's own thread: a turn is a bounded wait and a dispatch. The owners of
 * its handles are peers (peer.h), which know the rules of loop/io.h; whoever sees one broken
 * complains to the driver, and a test with a complaint fails.
 */
#ifndef WEIR_TEST_DRIVER_H
#define WEIR_TEST_DRIVER_H

#include "os/clock.h"
#include "support/loop/backend.h"
#include "support/loop/counted_memory.h"
#include "support/timeout.h"

struct driver {
    const struct backend *backend;
    weir__io *io;
    struct counted_memory memory;
    weir__list peers;    /* the driver frees them at its end */
    weir__list notified; /* those that were told something this turn */
    uint64_t turn;
    bool dispatching;
    bool more;        /* the last dispatch left something */
    size_t callbacks; /* call-backs of this turn */
    char failure[200];
};

/* An error leaves a sentence in `reason`. The driver must not move. */
int driver_open(struct driver *driver, const struct backend *backend, char *reason, size_t size);

/* Closes what is still attached, waits for the last `detached`, and destroys the backend; returns
 * the complaint, NULL if there is none. */
const char *driver_close(struct driver *driver);

/* Keeps the first. */
void driver_fail(struct driver *driver, const char *format, ...) WEIR_PRINTF(2, 3);

/* One turn that waits so long at most; returns whether there was nothing to complain about. Asserts
 * nothing, for properties and soaks. */
bool driver_step(struct driver *driver, int64_t wait_ns);

/* One turn; a complaint fails the test. */
void driver_turn(struct driver *driver);

/* Turns until nothing happens any more: for what must not come. */
void driver_run_until_idle(struct driver *driver);

/*
 * Lets it sleep for so long, and fails the test if it does not: a few turns are interrupted waits,
 * as the end of a ring causes them on its thread, or tries to get memory; hundreds are a spin.
 */
void driver_sleep(struct driver *driver, int64_t duration_ns);

/* Turns until the condition holds; fails the test if that takes too long. */
#define driver_until(driver, condition)                                              \
    do {                                                                             \
        int64_t give_up_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;                \
                                                                                     \
        while (!(condition))                                                         \
            driver_turn_until((driver), give_up_ns, #condition, __FILE__, __LINE__); \
    } while (0)

void driver_turn_until(struct driver *driver, int64_t give_up_ns, const char *condition,
                       const char *file, int line);

#endif
