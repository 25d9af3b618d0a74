/* SPDX-License-Identifier: Apache-2.0 */
#include "support/watchdog/watched_loop.h"

#include <sys/socket.h>
#include <unistd.h>

#include <weir/loop.h>
#include <weir/transport.h>
#include <weir/watchdog.h>

#include "support/executor/log_capture.h"
#include "support/loop/sockets.h"

#define STEP_NS weir_ms(25)

void watched_open(struct watched_loop *watched, const struct host *host,
                  const weir_watchdog_options *options)
{
    weir_watchdog_options chosen = {.size = sizeof(chosen)};
    int pair[2];

    log_capture_start();
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &watched->clock), 0);
    assert_int_equal(
        weir_loop_create(WEIR_LOOP_OPTIONS(.name = "watched", .io = host->backend->io,
                                           .clock = weir_manual_clock_clock(watched->clock)),
                         &watched->loop),
        0);
    socket_pair(PAIR_TCP, pair);
    watched->peer = pair[1];
    assert_int_equal(weir_adopt(pair[0], NULL, &watched->channel), 0);
    weir_channel_register(watched->channel, watched->loop, NULL);
    watched_run(watched);
    block_log_start(&watched->blocks);
    if (options != NULL)
        chosen = *options;
    chosen.clock = weir_manual_clock_clock(watched->clock);
    assert_int_equal(weir_watchdog_start(&chosen), 0);
}

void watched_close(struct watched_loop *watched)
{
    weir_watchdog_stop();
    block_log_stop(&watched->blocks);
    weir_channel_abort(watched->channel, NULL);
    watched_run(watched);
    weir_channel_release(watched->channel);
    weir_executor_release(watched->loop);
    weir_manual_clock_release(watched->clock);
    (void)close(watched->peer);
}

void watched_add(struct watched_loop *watched, const char *name, const weir_handler *handler)
{
    assert_int_equal(
        weir_pipeline_add_last_as(weir_channel_pipeline(watched->channel), name, handler, watched),
        0);
}

int watched_init(void *state, const void *options)
{
    *(const void **)state = options;
    return 0;
}

struct watched_loop *watched_of(weir_ctx *ctx)
{
    return *(struct watched_loop **)weir_ctx_state(ctx);
}

void watched_run(struct watched_loop *watched)
{
    while (weir_loop_run_once(watched->loop, 0) > 0)
        ;
}

void watched_receive(struct watched_loop *watched)
{
    weir_channel_stats before, after;

    weir_channel_read_stats(&before);
    assert_int_equal(send(watched->peer, "x", 1, MSG_NOSIGNAL), 1);
    do {
        watched_run(watched);
        weir_channel_read_stats(&after);
    } while (after.bytes_received == before.bytes_received);
    watched_run(watched);
}

void watched_check(void)
{
    assert_int_equal(weir_watchdog_check(), 0);
}

void watched_block(struct watched_loop *watched, int64_t time_ns)
{
    while (time_ns > 0) {
        int64_t step_ns = time_ns < STEP_NS ? time_ns : STEP_NS;

        assert_int_equal(weir_manual_clock_advance(watched->clock, step_ns), 0);
        watched_check();
        time_ns -= step_ns;
    }
}
