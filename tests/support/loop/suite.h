/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the contract in loop/io.h, each run on every backend:
 *
 *     TEST_EACH_BACKEND(receive, reports_the_end_after_the_data)
 *     {
 *         struct peer *peer = peer_open_pair(driver, PAIR_TCP);
 *         ...
 *         driver_until(driver, peer->ends == 1);
 *     }
 *
 * The body has the `driver` of a started backend. The test is registered as receive.sentence@epoll,
 * @uring and @poll. An unavailable backend is skipped with its reason. Handles still
 * attached when the body returns are closed; then no descriptor, receive block or memory may be
 * left.
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

/* Opens a second driver; skips the test if the backend is not available. */
void suite_open(struct driver *driver, enum backend_id id);

/* Closes it; a failure fails the test. */
void suite_close(struct driver *driver);

#endif
