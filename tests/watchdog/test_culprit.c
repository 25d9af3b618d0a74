/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which handler, slot and channel a report names, with a stepped clock.
 *
 * Functions that block do something after it, so that the compiler does not leave their frame out.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <weir/timer.h>
#include <weir/watch.h>

#include "support/executor/log_capture.h"
#include "support/watchdog/watched_loop.h"

#define BLOCK_NS weir_ms(100)
#define STATE .state_size = sizeof(struct watched_loop *), .init = watched_init

/* ---- handlers ---- */

static void block_in_read(weir_ctx *ctx, weir_msg *msg)
{
    watched_block(watched_of(ctx), BLOCK_NS);
    weir_msg_release(msg);
}

static const weir_handler blocks_in_read = {.name = "table", STATE, .read = block_in_read};

static void pass_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_fire_read(ctx, msg);
    (void)weir_ctx_channel(ctx);
}

static void write_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
    (void)weir_ctx_channel(ctx);
}

static const weir_handler passes = {.name = "passes", STATE, .read = pass_read};
static const weir_handler echoes = {.name = "echoes", STATE, .read = write_read};

static void block_in_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    watched_block(watched_of(ctx), BLOCK_NS);
    weir_write(ctx, msg, done);
}

static const weir_handler blocks_in_write = {.name = "table", STATE, .write = block_in_write};

static void block_in_added(weir_ctx *ctx)
{
    watched_block(watched_of(ctx), BLOCK_NS);
    (void)weir_ctx_channel(ctx);
}

static const weir_handler blocks_in_added = {.name = "table", STATE, .added = block_in_added};

static const struct block_record *first(struct watched_loop *watched)
{
    assert_true(atomic_load(&watched->blocks.found.calls) >= 1);
    return &watched->blocks.records[0];
}

#define assert_culprit(watched, name_, slot_)                     \
    do {                                                          \
        assert_string_equal(first(watched)->handler_name, name_); \
        assert_string_equal(first(watched)->slot, slot_);         \
        assert_int_equal(first(watched)->block.has_ended, false); \
        assert_string_equal(first(watched)->executor, "watched"); \
    } while (0)

/* ---- what is named ---- */

static void assert_is_peer(const struct watched_loop *watched, const weir_address *peer)
{
    struct sockaddr_in own;
    socklen_t length = sizeof(own);
    char expected[64], text[64], host[INET_ADDRSTRLEN];

    assert_int_equal(getsockname(watched->peer, (struct sockaddr *)&own, &length), 0);
    assert_non_null(inet_ntop(AF_INET, &own.sin_addr, host, sizeof(host)));
    (void)snprintf(expected, sizeof(expected), "%s:%d", host, ntohs(own.sin_port));
    assert_string_equal(weir_address_format(peer, text, sizeof(text)), expected);
}

TEST_EACH_LOOP(culprit, is_named_with_slot_channel_and_peer)
{
    struct watched_loop watched;
    const struct block_record *record;
    char channel[160];

    watched_open(&watched, host, NULL);
    watched_add(&watched, "before", &passes);
    watched_add(&watched, "app", &blocks_in_read);
    watched_add(&watched, "after", &blocks_in_write);
    (void)weir_channel_format(watched.channel, channel, sizeof(channel));
    watched_receive(&watched);
    record = first(&watched);
    assert_culprit(&watched, "app", "read");
    assert_ptr_equal(record->block.handler, &blocks_in_read);
    assert_int_equal(record->block.channel_id, weir_channel_id(watched.channel));
    assert_string_equal(record->channel, channel);
    assert_true(record->has_peer);
    assert_is_peer(&watched, &record->peer);
    assert_non_null(strstr(record->backtrace, "block_in_read"));
    watched_close(&watched);
}

/* The read of one handler calls that of the next, which blocks. */
TEST_EACH_LOOP(culprit, is_the_innermost_handler)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    watched_add(&watched, "w", &blocks_in_write);
    watched_add(&watched, "r", &passes);
    watched_add(&watched, "e", &echoes);
    watched_receive(&watched);
    assert_culprit(&watched, "w", "write");
    watched_close(&watched);
}

static void pass_or_block(weir_ctx *ctx, weir_msg *msg)
{
    if (strcmp(weir_ctx_name(ctx), "second") == 0)
        watched_block(watched_of(ctx), BLOCK_NS);
    weir_fire_read(ctx, msg);
    (void)weir_ctx_channel(ctx);
}

static void write_or_block(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    if (strcmp(weir_ctx_name(ctx), "second") == 0)
        watched_block(watched_of(ctx), BLOCK_NS);
    weir_write(ctx, msg, done);
    (void)weir_ctx_channel(ctx);
}

static const weir_handler inbound = {.name = "table", STATE, .read = pass_or_block};
static const weir_handler outbound = {.name = "table", STATE, .write = write_or_block};

/* The stack has the function once for each of them. */
TEST_EACH_LOOP(culprit, is_found_among_handlers_that_share_a_function)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    watched_add(&watched, "first", &inbound);
    watched_add(&watched, "second", &inbound);
    watched_add(&watched, "third", &inbound);
    watched_receive(&watched);
    assert_culprit(&watched, "second", "read");
    watched_close(&watched);
}

TEST_EACH_LOOP(culprit, is_found_from_the_tail_in_outbound_slots)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    watched_add(&watched, "fourth", &outbound);
    watched_add(&watched, "third", &outbound);
    watched_add(&watched, "second", &outbound);
    watched_add(&watched, "first", &outbound);
    watched_add(&watched, "e", &echoes);
    watched_receive(&watched);
    assert_culprit(&watched, "second", "write");
    watched_close(&watched);
}

/* ---- outside of I/O ---- */

TEST_EACH_LOOP(culprit, may_be_added_by_the_program)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    watched_add(&watched, "app", &blocks_in_added);
    assert_int_equal(atomic_load(&watched.blocks.found.calls), 0); /* not in a turn */
    watched_close(&watched);
}

static void add_from_task(void *arg, int status)
{
    struct watched_loop *watched = arg;

    (void)status;
    watched_add(watched, "app", &blocks_in_added);
    (void)first(watched);
}

/* A task of the program is not known to work for the channel. */
TEST_EACH_LOOP(culprit, is_unknown_in_a_task)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    assert_int_equal(weir_execute(watched.loop, add_from_task, &watched), 0);
    watched_run(&watched);
    assert_culprit(&watched, "", "");
    assert_null(first(&watched)->block.handler);
    assert_int_equal(first(&watched)->block.channel_id, 0);
    assert_string_equal(first(&watched)->channel, "");
    assert_false(first(&watched)->has_peer);
    assert_non_null(strstr(first(&watched)->backtrace, "block_in_added"));
    assert_non_null(strstr(first(&watched)->backtrace, "add_from_task"));
    watched_close(&watched);
}

struct timed {
    struct watched_loop *watched; /* first: watched_of */
    weir_timer timer;
};

static void block_in_timer(weir_ctx *ctx, weir_timer *timer)
{
    watched_block(watched_of(ctx), BLOCK_NS);
    (void)timer;
}

static void start_timer(weir_ctx *ctx)
{
    struct timed *timed = weir_ctx_state(ctx);

    assert_int_equal(weir_ctx_timer_start(ctx, &timed->timer, weir_ms(1), block_in_timer), 0);
}

static const weir_handler blocks_in_timer = {
    .name = "table",
    .state_size = sizeof(struct timed),
    .init = watched_init,
    .added = start_timer,
};

TEST_EACH_LOOP(culprit, is_the_handler_of_a_timer)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    watched_add(&watched, "before", &passes);
    watched_add(&watched, "app", &blocks_in_timer);
    watched_add(&watched, "after", &passes);
    assert_int_equal(weir_manual_clock_advance(watched.clock, weir_ms(1)), 0);
    watched_run(&watched);
    assert_culprit(&watched, "app", "timer");
    assert_int_equal(first(&watched)->block.channel_id, weir_channel_id(watched.channel));
    assert_true(first(&watched)->has_peer);
    watched_close(&watched);
}

static void block_in_schedule(void *arg, int status)
{
    if (status == 0)
        watched_block(arg, BLOCK_NS);
    (void)first(arg);
}

TEST_EACH_LOOP(culprit, is_unknown_in_a_timer_of_the_program)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    watched_add(&watched, "app", &blocks_in_read);
    assert_int_equal(weir_schedule(watched.loop, weir_ms(1), block_in_schedule, &watched, NULL), 0);
    assert_int_equal(weir_manual_clock_advance(watched.clock, weir_ms(1)), 0);
    watched_run(&watched);
    assert_culprit(&watched, "", "");
    assert_int_equal(first(&watched)->block.channel_id, 0);
    assert_non_null(strstr(first(&watched)->backtrace, "block_in_schedule"));
    watched_close(&watched);
}

static void block_in_listener(weir_promise *promise, void *watched)
{
    watched_block(watched, BLOCK_NS);
    (void)weir_promise_is_done(promise);
}

static void write_with_listener(weir_ctx *ctx, weir_msg *msg)
{
    weir_promise *done;

    assert_int_equal(weir_promise_create(weir_ctx_executor(ctx), &done), 0);
    assert_int_equal(weir_promise_add_listener(done, block_in_listener, watched_of(ctx)), 0);
    weir_write_and_flush(ctx, msg, done);
    weir_promise_release(done);
}

static const weir_handler listens = {.name = "table", STATE, .read = write_with_listener};

/* The flush of the handler's write completes the promise: the listener runs inside of its read, or
 * later, in the I/O of the channel. */
TEST_EACH_LOOP(culprit, has_the_channel_of_a_write_whose_listener_blocks)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    watched_add(&watched, "app", &listens);
    watched_receive(&watched);
    while (atomic_load(&watched.blocks.found.calls) == 0)
        watched_run(&watched);
    assert_non_null(strstr(first(&watched)->backtrace, "block_in_listener"));
    assert_int_equal(first(&watched)->block.channel_id, weir_channel_id(watched.channel));
    watched_close(&watched);
}

/* ---- without a signal ---- */

TEST_EACH_LOOP(culprit, is_not_looked_for_without_backtraces)
{
    struct watched_loop watched;

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.backtrace = WEIR_OFF));
    watched_add(&watched, "app", &blocks_in_read);
    watched_receive(&watched);
    assert_culprit(&watched, "", "");
    assert_int_equal(first(&watched)->block.frame_count, 0);
    assert_int_equal(first(&watched)->block.channel_id, 0);
    watched_close(&watched);
}

/* ---- what has no channel ---- */

static void block_in_ready(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    (void)events;
    watched_block(user_data, BLOCK_NS);
    weir_fd_watch_close(watch);
}

/* Nor that of the block before. */
TEST_EACH_LOOP(culprit, of_a_watched_descriptor_has_no_channel)
{
    struct watched_loop watched;
    const struct block_record *record = &watched.blocks.records[2];
    weir_fd_watch *watch;

    watched_open(&watched, host, NULL);
    watched_add(&watched, "app", &blocks_in_read);
    watched_receive(&watched);
    watched_check();
    assert_true(first(&watched)->channel[0] != '\0');
    assert_int_equal(weir_fd_watch_create(
                         watched.loop, eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC),
                         WEIR_FD_WATCH_OPTIONS(.events = WEIR_FD_READABLE, .ready = block_in_ready,
                                               .user_data = &watched, .close_descriptor = true),
                         &watch),
                     0);
    watched_run(&watched);
    assert_int_equal(atomic_load(&watched.blocks.found.calls), 2);
    assert_non_null(strstr(record->backtrace, "block_in_ready"));
    assert_string_equal(record->channel, "");
    assert_string_equal(record->handler_name, "");
    weir_fd_watch_release(watch);
    watched_close(&watched);
}
