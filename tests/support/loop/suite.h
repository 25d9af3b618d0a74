/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what loop/io.h promises, each run on every backend:
 *
 *     TEST_EACH_BACKEND(receive, tells_the_end_after_the_data)
 *     {
 *         struct peer *peer = peer_open_pair(driver, PAIR_TCP);
 *         ...
 *         driver_until(driver, peer->ends == 1);
 *     }
 *
 * It has the `driver` of a backend that has begun, and registers as receive.sentence@epoll, @uring,
 * @uring-ring and @poll. A backend that cannot be had here is skipped with its reason. Whatever is
 * still attached when the body returns is closed; then no descriptor, no block to receive into and
 * no memory may be left.
 */
#ifndef WEIR_TEST_SUITE_H
#define WEIR_TEST_SUITE_H

#include "support/loop/driver.h"
#include "support/loop/peer.h"
#include "support/loop/sockets.h"
#include "support/test.h"

#define TEST_EACH_BACKEND(noun, sentence)                                             \
    BACKEND_TESTS(BACKEND_LOOPS, suite_run, struct driver *driver, noun##_##sentence, \
                  #noun "." #sentence)

void suite_run(enum backend_id id, void (*body)(struct driver *driver));

/* For tests that need a second one, of whatever backend; skips the test if it cannot be had. */
void suite_open(struct driver *driver, enum backend_id id);

/* Closes it; fails the test if it has a complaint. */
void suite_close(struct driver *driver);

#endif
