/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests on an event loop, each run on a loop of every backend:
 *
 *     TEST_EACH_LOOP(fd_watch, reports_a_byte)
 *     {
 *         weir_fd_watch_create(host->loop, ...);
 *         ...
 *     }
 *
 * The `host` is a group of one loop. It is shut down when the body returns, unless the body did so;
 * then no descriptor may be left open. A host with a thread per channel has several loops: `loop`
 * is the first, and channels are registered with the group.
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

/* The same, and also with a thread per channel. */
#define TEST_EACH_HOST(noun, sentence)                                           \
    BACKEND_TESTS(BACKEND_HOSTS, host_run, struct host *host, noun##_##sentence, \
                  #noun "." #sentence)

void host_run(enum backend_id id, void (*body)(struct host *host));

/* Opens another host of the given backend; skips the test if it is not available. */
void host_open(struct host *host, enum backend_id id);
void host_close(struct host *host);

/* Shuts down and waits for the end. */
void host_end(struct host *host);

/*
 * Returns when the loops have made this number of turns from now on, each of which polled the
 * descriptors.
 */
void host_turn(struct host *host, unsigned turns);

#endif
