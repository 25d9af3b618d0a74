/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole cure: a handler that really sleeps is found by the watchdog and moved, on all its
 * channels, by itself.
 */
#include <weir/watchdog.h>

#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <weir/channel.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/timeout.h"

#define CHANNELS 3
#define CALLS_MAX 200

static _Atomic bool waits; /* where it may block, the handler waits at the gate */
static struct gate gate;

static bool is_on_loop(weir_ctx *ctx)
{
    return weir_in_executor(weir_channel_executor(weir_ctx_channel(ctx)));
}

static void sleep_ms(long ms)
{
    struct timespec left = {.tv_nsec = ms * 1000000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

/* Sleeps on "s", but only on a loop. Answers each byte with the place that it runs on. */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    char byte = *(const char *)weir_buf_bytes(weir_buf_of(msg));
    weir_buf *answer = NULL;

    weir_msg_release(msg);
    if (is_on_loop(ctx) && byte == 's')
        sleep_ms(25);
    if (!is_on_loop(ctx) && byte == 'w' && waits)
        gate_task(&gate, 0);
    assert_int_equal(weir_buf_create_from(is_on_loop(ctx) ? "l" : "g", 1, &answer), 0);
    weir_write_and_flush(ctx, weir_buf_msg(answer), NULL);
}

/* One table for each backend: a table blocks for good. */
static weir_handler sleepers[BACKEND_COUNT];

static const weir_handler *sleeper_of(const struct host *host)
{
    weir_handler *handler = &sleepers[host->backend - backends];

    *handler = (weir_handler){.name = "sleeper", .read = on_read};
    return handler;
}

struct line {
    weir_channel *channel;
    int peer;
};

static void open_line(struct line *line, const struct host *host, const weir_handler *handler,
                      weir_group *aside)
{
    int pair[2];

    socket_pair(PAIR_TCP, pair);
    line->peer = pair[1];
    assert_int_equal(
        weir_adopt(pair[0], WEIR_CHANNEL_OPTIONS(.offload_when_blocking = aside), &line->channel),
        0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(line->channel), handler, NULL),
                     0);
    weir_channel_register(line->channel, host->loop, NULL);
}

static void close_line(struct line *line)
{
    (void)close(line->peer);
    assert_int_equal(weir_channel_await_closed(line->channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(line->channel);
}

static char receive(const struct line *line)
{
    struct pollfd input = {.fd = line->peer, .events = POLLIN};
    char byte = 0;
    int count;

    do /* a ring that was closed on this thread interrupts it */
        count = poll(&input, 1, (int)(TEST_TIMEOUT_NS / weir_ms(1)));
    while (count < 0 && errno == EINTR);
    assert_int_equal(count, 1);
    assert_int_equal(read(line->peer, &byte, 1), 1);
    return byte;
}

static char call(const struct line *line, char byte)
{
    assert_int_equal(write(line->peer, &byte, 1), 1);
    return receive(line);
}

TEST_EACH_LOOP(offload, moves_a_handler_that_sleeps_on_all_its_channels)
{
    weir_group *aside =
        make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = CHANNELS + 1, .name = "aside"));
    const weir_handler *handler = sleeper_of(host);
    struct line lines[CHANNELS], later;
    weir_handler_stats stats;
    unsigned calls = 0;

    log_capture_start();
    gate = (struct gate){{0}, {0}};
    waits = false;
    for (int i = 0; i < CHANNELS; i++)
        open_line(&lines[i], host, handler, aside);
    assert_int_equal(
        weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(5), .logged_blocks = 1)),
        0);
    assert_int_equal(weir_handler_read_stats(handler, &stats), -ENOENT);
    while (call(&lines[calls % CHANNELS], 's') == 'l' && ++calls < CALLS_MAX)
        ;
    assert_true(calls > 3); /* blocks */
    weir_watchdog_stop();

    /* All of them, and the log says so. */
    for (int i = 0; i < CHANNELS; i++)
        assert_int_equal(call(&lines[i], 'w'), 'g');
    assert_int_equal(weir_handler_read_stats(handler, &stats), 0);
    assert_true(stats.blocks > 3);
    assert_true(stats.is_offloaded);
    assert_int_equal(stats.moved, CHANNELS);
    assert_log_contains("handler \"sleeper\" blocked 4 times: moved to group \"aside\" on 3 "
                        "channels");

    /* While one blocks, the others answer, and so does a new one. */
    waits = true;
    assert_int_equal(write(lines[0].peer, "w", 1), 1);
    assert_true(gate_await_arrivals(&gate, 1));
    waits = false;
    assert_int_equal(call(&lines[1], 'w'), 'g');
    open_line(&later, host, handler, aside);
    assert_int_equal(call(&later, 'w'), 'g');
    gate_open(&gate);
    assert_int_equal(receive(&lines[0]), 'g');
    for (int i = 0; i < CHANNELS; i++)
        close_line(&lines[i]);
    close_line(&later);
    end_group(aside);
}

/* Without the option it is named, and stays. */
TEST_EACH_LOOP(offload, leaves_a_handler_without_the_option)
{
    static weir_handler handler;
    weir_handler_stats stats = {0};
    struct line line;

    handler = (weir_handler){.name = "stubborn", .read = on_read};
    log_capture_start();
    open_line(&line, host, &handler, NULL);
    assert_int_equal(
        weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(5), .logged_blocks = 1,
                                                  .blocks_before_offload = 1)),
        0);
    for (unsigned i = 0; i < CALLS_MAX && stats.blocks < 2; i++) {
        assert_int_equal(call(&line, 's'), 'l');
        (void)weir_handler_read_stats(&handler, &stats);
    }
    assert_int_equal(call(&line, 'w'), 'l');
    weir_watchdog_stop();
    assert_true(stats.blocks >= 2);
    assert_int_equal(weir_handler_read_stats(&handler, &stats), 0);
    assert_int_equal(stats.moved, 0);
    close_line(&line);
}
