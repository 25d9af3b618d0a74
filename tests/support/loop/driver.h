/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives a backend on the test's own thread: a turn is a bounded wait and a dispatch. The owners of
 * its handles are peers (peer.h), which check the rules of loop/io.h; a violation is reported to
 * the driver and fails the test.
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
    weir__list peers;    /* freed by driver_close */
    weir__list notified; /* peers notified in this turn */
    uint64_t turn;
    bool dispatching;
    bool more;        /* the last dispatch left events */
    size_t callbacks; /* in this turn */
    char failure[200];
};

/* On an error writes a `reason`. The driver must not move. */
int driver_open(struct driver *driver, const struct backend *backend, char *reason, size_t size);

/*
 * Closes what is still attached, waits for the last `detached`, and destroys the backend. Returns
 * the first failure, or NULL.
 */
const char *driver_close(struct driver *driver);

/* Records the first failure. */
void driver_fail(struct driver *driver, const char *format, ...) WEIR_PRINTF(2, 3);

/*
 * One turn that waits at most `wait_ns`. Returns true if there is no failure. Does not assert, for
 * property tests and soaks.
 */
bool driver_step(struct driver *driver, int64_t wait_ns);

/* One turn; a failure fails the test. */
void driver_turn(struct driver *driver);

/* Turns until nothing happens any more: for what must not happen. */
void driver_run_until_idle(struct driver *driver);

/*
 * Lets the backend sleep and fails the test if it does not. A few turns are allowed: waits
 * interrupted by the end of a ring, or retries for memory; hundreds are a spin.
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
