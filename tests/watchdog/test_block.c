/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says of blocks, and how much of it. */
#include <stdio.h>
#include <string.h>

#include <weir/log.h>

#include "support/watchdog/watched_loop.h"
#include "watchdog/block.h"

#define STATE .state_size = sizeof(struct watched_loop *), .init = watched_init

/* ---- the log ---- */

static struct {
    unsigned count;
    char first[512];
    char last[2][512]; /* in turn */
} messages;

static void on_message(void *user_data, enum weir_log_level level, const char *subsystem,
                       const char *object, const char *message)
{
    (void)user_data;
    if (level < WEIR_LOG_WARN)
        return;
    (void)snprintf(messages.last[messages.count % 2], sizeof(messages.last[0]), "%s %s: %s",
                   subsystem, object, message);
    if (messages.count == 0)
        memcpy(messages.first, messages.last[0], sizeof(messages.first));
    messages.count++;
}

/* The last message, or (1) the one before it. */
static const char *message_before(unsigned n)
{
    assert_true(messages.count > n);
    return messages.last[(messages.count - 1 - n) % 2];
}

static void open_logged(struct watched_loop *watched, const struct host *host,
                        const weir_watchdog_options *options)
{
    watched_open(watched, host, options);
    memset(&messages, 0, sizeof(messages));
    weir_log_set(on_message, NULL);
}

/* ---- one block ---- */

static void block_in_read(weir_ctx *ctx, weir_msg *msg)
{
    watched_block(watched_of(ctx), weir_ms(112));
    weir_msg_release(msg);
}

static const weir_handler app = {.name = "table", STATE, .read = block_in_read};

TEST_EACH_LOOP(block, is_logged_with_its_frames_and_its_end)
{
    struct watched_loop watched;
    char expected[256], channel[160];
    size_t frames;

    open_logged(&watched, host, NULL);
    watched_add(&watched, "app", &app);
    (void)weir_channel_format(watched.channel, channel, sizeof(channel));
    watched_receive(&watched);
    watched_check();
    frames = watched.blocks.records[0].block.frame_count;
    assert_int_equal(messages.count, 2 + (frames < 16 ? frames : 16));
    (void)snprintf(expected, sizeof(expected),
                   "watchdog watched: blocked for 100 ms by handler \"app\" in read, channel %s; "
                   "the thread is computing",
                   channel);
    assert_string_equal(messages.first, expected);
    assert_non_null(strstr(message_before(1), "watchdog watched:   #"));
    assert_string_equal(message_before(0), "watchdog watched: handler \"app\" blocked for 112 ms");
    watched_close(&watched);
}

static void block_in_task(void *arg, int status)
{
    if (status == 0)
        watched_block(arg, weir_ms(100));
}

static void run_task(struct watched_loop *watched)
{
    assert_int_equal(weir_execute(watched->loop, block_in_task, watched), 0);
    watched_run(watched);
    watched_check();
}

TEST_EACH_LOOP(block, of_a_task_is_logged_without_a_handler)
{
    struct watched_loop watched;

    open_logged(&watched, host, WEIR_WATCHDOG_OPTIONS(.backtrace = WEIR_OFF));
    run_task(&watched);
    assert_int_equal(messages.count, 2);
    assert_string_equal(message_before(1),
                        "watchdog watched: blocked for 100 ms; the thread is computing");
    assert_string_equal(message_before(0), "watchdog watched: was blocked for 100 ms");
    watched_close(&watched);
}

/* ---- many blocks ---- */

static void block_shortly(void *arg, int status)
{
    struct watched_loop *watched = arg;

    for (int i = 0; i < 4 && status == 0; i++) {
        (void)weir_manual_clock_advance(watched->clock, weir_us(250));
        (void)weir_watchdog_check();
    }
}

/* 10,000 blocks of 1 ms, in less than ten seconds. */
static void block_often(struct host *host)
{
    struct watched_loop watched;
    weir_watchdog_stats before, after;

    open_logged(&watched, host,
                WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(1), .backtrace = WEIR_OFF));
    weir_watchdog_read_stats(&before);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(weir_execute(watched.loop, block_shortly, &watched), 0);
        watched_run(&watched);
    }
    watched_check();
    weir_watchdog_read_stats(&after);
    assert_int_equal(after.blocks, before.blocks + 10000);
    assert_int_equal(after.not_logged, before.not_logged + 9990);
    assert_int_equal(atomic_load(&watched.blocks.found.calls), 10000);
    assert_int_equal(atomic_load(&watched.blocks.ended.calls), 10000);
    assert_int_equal(messages.count, 20);

    assert_int_equal(weir_manual_clock_advance(watched.clock, weir_seconds(1)), 0);
    watched_check();
    assert_int_equal(weir_execute(watched.loop, block_shortly, &watched), 0);
    watched_run(&watched);
    watched_check();
    assert_int_equal(messages.count, 22);
    assert_non_null(strstr(message_before(1), " (9990 blocks before it not logged)"));
    assert_int_equal(weir_execute(watched.loop, block_shortly, &watched), 0);
    watched_run(&watched);
    watched_check();
    assert_int_equal(messages.count, 24);
    assert_null(strstr(message_before(1), "not logged")); /* no other since */
    watched_close(&watched);
}

TEST(block, is_not_logged_if_there_are_too_many)
{
    host_run(BACKEND_EPOLL, block_often);
}

TEST_EACH_LOOP(block, is_logged_as_often_as_the_options_say)
{
    struct watched_loop watched;

    open_logged(&watched, host, WEIR_WATCHDOG_OPTIONS(.logged_blocks = 2, .backtrace = WEIR_OFF));
    for (int i = 0; i < 5; i++)
        run_task(&watched);
    assert_int_equal(messages.count, 4);
    watched_close(&watched);
}

/* A period ends at its last nanosecond, and the next one begins. */
TEST_EACH_LOOP(block, is_logged_again_after_exactly_a_period)
{
    struct watched_loop watched;

    for (int early = 0; early <= 1; early++) {
        open_logged(&watched, host,
                    WEIR_WATCHDOG_OPTIONS(.logged_blocks = 1, .backtrace = WEIR_OFF));
        run_task(&watched);
        assert_int_equal(messages.count, 2);
        assert_int_equal(weir_manual_clock_advance(watched.clock, WEIR__BLOCK_LOG_PERIOD_NS -
                                                                      weir_ms(100) - early),
                         0);
        watched_check();
        run_task(&watched);
        assert_int_equal(messages.count, early ? 2 : 4);
        watched_close(&watched);
    }
}

/* ---- frames ---- */

TEST(block, formats_frames_it_does_not_have_as_nothing)
{
    weir_block block = {.frame_count = 1};
    char text[64] = "x";

    assert_int_equal(weir_block_format_frame(&block, 1, text, sizeof(text)), 0);
    assert_string_equal(text, "");
    assert_int_equal(weir_block_format_frame(NULL, 0, text, sizeof(text)), 0);
    assert_int_equal(weir_block_format_frame(&block, 1, NULL, 0), 0);
    assert_int_equal(weir_block_format_frame(&block, 0, text, 4), strlen("(nil)"));
    assert_string_equal(text, "(ni");
}
