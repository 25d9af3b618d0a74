/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop on the test's thread, with one end of a TCP connection, and a watchdog that looks at it by
 * the same stepped clock. So a handler blocks for an exact time, and may assert.
 *
 *     static void on_read(weir_ctx *ctx, weir_msg *msg)
 *     {
 *         watched_block(watched_of(ctx), weir_ms(100));
 *         weir_msg_release(msg);
 *     }
 *
 *     watched_open(&watched, host, NULL);
 *     watched_add(&watched, "app", &app);
 *     watched_receive(&watched);
 *     ... watched.blocks.records[0] ...
 *     watched_close(&watched);
 */
#ifndef WEIR_TEST_WATCHED_LOOP_H
#define WEIR_TEST_WATCHED_LOOP_H

#include <weir/channel.h>
#include <weir/clock.h>
#include <weir/pipeline.h>

#include "support/loop/host.h"
#include "support/watchdog/block_log.h"

struct watched_loop {
    weir_manual_clock *clock;
    weir_executor *loop; /* "watched" */
    weir_channel *channel;
    int peer; /* the socket at the other end */
    struct block_log blocks;
};

/* The loop has the backend of the host. Log messages are captured. Of the watchdog's options the
 * clock is set. */
void watched_open(struct watched_loop *watched, const struct host *host,
                  const weir_watchdog_options *options);
void watched_close(struct watched_loop *watched);

/* Adds a handler at the tail. The state of its contexts is a pointer to the fixture, if it has
 * watched_init. */
void watched_add(struct watched_loop *watched, const char *name, const weir_handler *handler);
int watched_init(void *state, const void *options);
struct watched_loop *watched_of(weir_ctx *ctx);

/* Runs the loop until it has nothing to do; the same after the peer has sent a byte, which is
 * awaited. */
void watched_run(struct watched_loop *watched);
void watched_receive(struct watched_loop *watched);

/* Advances the clock in steps of at most 25 ms; the watchdog looks after each of them. */
void watched_block(struct watched_loop *watched, int64_t time_ns);

/* One more look. */
void watched_check(void);

#endif
