/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of what lives on an event loop, each run on a loop of every backend:
 *
 *     TEST_EACH_LOOP(fd_watch, tells_of_a_byte)
 *     {
 *         weir_fd_watch_create(host->loop, ...);
 *         ...
 *     }
 *
 * The `host` is a group of one loop. It is shut down when the body returns, unless the body did
 * that; then no descriptor may be left. One with a thread per channel has more: `loop` is the first
 * of them, and channels are registered with the group.
 */
#ifndef WEIR_TEST_HOST_H
#define WEIR_TEST_HOST_H

#include <weir/group.h>

#include "support/loop/backend.h"
#include "support/test.h"

struct host {
    const struct backend *backend;
    weir_group *group;
    weir_executor *loop;
};

#define TEST_EACH_LOOP(noun, sentence)                                           \
    BACKEND_TESTS(BACKEND_LOOPS, host_run, struct host *host, noun##_##sentence, \
                  #noun "." #sentence)

/* The same, and on one with a thread per channel. */
#define TEST_EACH_HOST(noun, sentence)                                           \
    BACKEND_TESTS(BACKEND_HOSTS, host_run, struct host *host, noun##_##sentence, \
                  #noun "." #sentence)

void host_run(enum backend_id id, void (*body)(struct host *host));

/* Another one, of whatever backend; skips the test if it cannot be had. */
void host_open(struct host *host, enum backend_id id);
void host_close(struct host *host);

/* Shuts it down and waits for its end. */
void host_end(struct host *host);

/* Returns when its loops have made so many turns from now on, each with a look at its descriptors.
 */
void host_turn(struct host *host, unsigned turns);

#endif
