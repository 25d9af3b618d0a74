/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/36-blocking-handlers.md shows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/log_capture.h"

static weir_group *blocking;

/* doc:begin handler */
/* Asks a database, by a library that waits for the answer. */
static int look_up_price(int64_t time_ns)
{
    struct timespec answer = {.tv_nsec = time_ns};

    while (nanosleep(&answer, &answer) < 0)
        ; /* a signal has ended the sleep: see below */
    return 42;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    char text[16];
    weir_buf *buf;

    snprintf(text, sizeof(text), "%d\n", look_up_price(weir_ms(20)));
    weir_msg_release(msg);
    if (weir_buf_create_from(text, strlen(text), &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static const weir_handler shop = {.name = "shop", .read = on_read};
/* doc:end */

/* doc:begin start */
static int watch(void)
{
    return weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(5)));
}
/* doc:end */

/* doc:begin listener */
static void on_block(const weir_block *block, void *to)
{
    if (block->has_ended)
        fprintf(to, "%s: handler \"%s\" blocked for %" PRId64 " ms\n",
                weir_executor_name(block->executor), block->handler_name,
                block->duration_ns / 1000000);
}
/* doc:end */

/* doc:begin group */
static int init_aside(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add(weir_channel_pipeline(channel), WEIR_PLACE(.group = blocking), &shop,
                             NULL);
}
/* doc:end */

/* doc:begin cure */
static int init(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &shop, NULL);
}

static int start(weir_group *loops, weir_server **ret_server)
{
    return weir_server_start(WEIR_SERVER_OPTIONS(.workers = loops, .address = "127.0.0.1:0",
                                                 .init_child = init,
                                                 .offload_when_blocking = blocking),
                             ret_server);
}
/* doc:end */

/* doc:begin stats */
static void print_handler(const weir_handler_stats *handler, void *to)
{
    fprintf(to, "%s: %" PRIu64 " blocks, the longest took %" PRId64 " ms%s\n", handler->name,
            handler->blocks, handler->longest_ns / 1000000,
            handler->is_offloaded ? "; runs on another group" : "");
}

static void print_slow_handlers(FILE *to)
{
    weir_handler_stats_foreach(print_handler, to);
}
/* doc:end */

static bool is_offloaded(void)
{
    weir_handler_stats stats;

    return weir_handler_read_stats(&shop, &stats) == 0 && stats.moved > 0;
}

TEST(blocking_handlers, are_reported_and_moved)
{
    weir_group *loops = make_loops(1);
    weir_server *server = NULL;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    int peer;

    log_capture_start();
    blocking = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .name = "blocking"));
    assert_int_equal(weir_watchdog_add_listener(on_block, to), 0);
    assert_int_equal(watch(), 0);
    assert_int_equal(start(loops, &server), 0);
    peer = raw_client_connect(server);
    do {
        raw_client_send(peer, "price?");
        raw_client_receive(peer, "42\n");
    } while (!is_offloaded());
    raw_client_send(peer, "price?");
    raw_client_receive(peer, "42\n");
    weir_watchdog_stop();
    assert_int_equal(weir_watchdog_remove_listener(on_block, to), 0);
    print_slow_handlers(to);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, ": handler \"shop\" blocked for "));
    assert_non_null(strstr(text, "; runs on another group\n"));
    free(text);
    raw_client_close(peer);
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    end_group(loops);
    end_group(blocking);
}

/* The loop does not wait for the handler, so nothing is reported. */
TEST(blocking_handlers, do_not_block_on_a_group_of_their_own)
{
    weir_group *loops = make_loops(1);
    weir_watchdog_stats before, after;
    weir_server *server = NULL;
    int peer;

    blocking = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .name = "blocking"));
    weir_watchdog_read_stats(&before);
    assert_int_equal(weir_watchdog_start(NULL), 0);
    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.workers = loops, .address = "127.0.0.1:0",
                                              .init_child = init_aside),
                          &server),
        0);
    peer = raw_client_connect(server);
    raw_client_send(peer, "price?");
    raw_client_receive(peer, "42\n");
    weir_watchdog_stop();
    weir_watchdog_read_stats(&after);
    assert_int_equal(after.blocks, before.blocks);
    raw_client_close(peer);
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    end_group(loops);
    end_group(blocking);
}
