/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Visitors of a dashboard, on sockets: statistics, log lines, the chat, blocks, and the bounds of
 * what a slow one holds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/loop.h>
#include <weir/metric.h>
#include <weir/timer.h>
#include <weir/watchdog.h>

#include "channel/offload_blocking.h"
#include "dashboard/visitor.h"
#include "os/clock.h"
#include "support/bootstrap/raw_client.h"
#include "support/loop/host.h"
#include "support/protocol/http/http_call.h"

#define OPENING                                                                                 \
    "GET /weir/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
#define TEXT_SIZE ((size_t)1 << 18)
#define MESSAGES_MAX 200 /* before one that is expected */
#define INTERVAL_NS weir_ms(100)

/* ---- the server ---- */

struct site {
    weir_http_server *server;
    weir__dashboard *dashboard;
    weir_group *offload;
    char text[TEXT_SIZE]; /* the last message */
};

static struct site site;

static void open_site(struct host *host, const weir_dashboard_options *options)
{
    static const weir_http_route none[] = {{0}};

    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = none,
                                                        .workers = host->group),
                               &site.server),
        0);
    assert_int_equal(weir_dashboard_add(site.server, options), 0);
    site.dashboard = weir__dashboard_of(site.server);
    assert_non_null(site.dashboard);
}

static void close_site(void)
{
    weir_http_server_release(site.server);
}

/* ---- a visitor's socket ---- */

static int visit(void)
{
    int peer = raw_client_connect(weir_http_server_server(site.server));
    unsigned matched = 0;
    char byte;

    raw_client_send(peer, OPENING);
    while (matched < 4) { /* the end of the head */
        raw_client_receive_bytes(peer, &byte, 1);
        matched = byte == "\r\n\r\n"[matched] ? matched + 1 : byte == '\r';
    }
    return peer;
}

/* With a mask of zeros. */
static void say(int peer, const char *text)
{
    uint8_t frame[1024] = {0x81, 0x80};
    size_t length = strlen(text), size = 6;

    assert_true(length < sizeof(frame) - 8);
    if (length < 126) {
        frame[1] |= (uint8_t)length;
    } else {
        frame[1] |= 126;
        frame[2] = (uint8_t)(length >> 8);
        frame[3] = (uint8_t)length;
        size = 8;
    }
    memcpy(frame + size, text, length);
    raw_client_send_bytes(peer, frame, size + length);
}

/* Receives a frame to site.text; returns its opcode. */
static int hear(int peer)
{
    uint8_t head[2], extension[8];
    uint64_t length;
    size_t size;

    raw_client_receive_bytes(peer, head, sizeof(head));
    length = head[1];
    size = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (size > 0) {
        raw_client_receive_bytes(peer, extension, size);
        length = 0;
        for (size_t i = 0; i < size; i++)
            length = length << 8 | extension[i];
    }
    assert_true(length < TEXT_SIZE);
    if (length > 0)
        raw_client_receive_bytes(peer, site.text, length);
    site.text[length] = '\0';
    return head[0] & 15;
}

/* Receives messages up to one that contains a text. */
static void hear_until(int peer, const char *part)
{
    for (int i = 0; i < MESSAGES_MAX; i++) {
        assert_int_equal(hear(peer), 1);
        assert_null(strstr(site.text, "\"lines\":[]")); /* a message about nothing */
        if (strstr(site.text, part) != NULL)
            return;
    }
    fail_msg("no message contains \"%s\"", part);
}

/* ---- statistics ---- */

TEST_EACH_LOOP(visitor, sees_statistics)
{
    int peer;

    open_site(host, WEIR_DASHBOARD_OPTIONS(.title = "a \"shop\"", .interval_ns = INTERVAL_NS));
    peer = visit();
    assert_int_equal(hear(peer), 1);
    assert_contains(site.text, "{\"type\":\"hello\",\"title\":\"a \\\"shop\\\"\"");
    assert_contains(site.text, "\"visitor\":1,");
    assert_contains(site.text, "\"chat\":false,\"can_block\":false,");
    assert_contains(site.text, weir_executor_name(host->loop));
    hear_until(peer, "{\"type\":\"stats\",");
    assert_contains(site.text, "\"is_loop\":true,\"utilisation\":");
    assert_contains(site.text, "\"channels.active{transport=\\\"tcp\\\"}\":1,");
    assert_contains(site.text, "\"histograms\":{");
    assert_contains(site.text, "\"handlers\":[");
    weir_log_write(WEIR_LOG_WARN, "shop", "shelf", "%s is empty", "\"books\"");
    hear_until(peer, "\"WARN\",\"shop\",\"shelf\",\"\\\"books\\\" is empty\"]");
    close(peer);
    close_site();
}

static void ignore(void *arg, int status)
{
    (void)arg;
    (void)status;
}

/* Returns when the sampler has run after the last visitor has left: its deadline is earlier. */
static void await_sampler(struct host *host)
{
    weir_promise *promise = NULL;
    bool is_empty = false;

    while (!is_empty) {
        host_turn(host, 1);
        weir__mutex_lock(&site.dashboard->mutex);
        is_empty = weir__list_is_empty(&site.dashboard->visitors);
        weir__mutex_unlock(&site.dashboard->mutex);
    }
    assert_int_equal(weir_schedule(weir_executor_global(), INTERVAL_NS + 1, ignore, NULL, &promise),
                     0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
}

/* The sampler ends with the last visitor, and begins again with the next, who sees nothing of the
 * time before. */
TEST_EACH_LOOP(visitor, that_is_the_last_ends_the_sampler)
{
    weir_metric *metric = NULL;
    bool is_sampling = false, is_new = false;
    size_t count = 0;
    int peer;

    open_site(host, WEIR_DASHBOARD_OPTIONS(.interval_ns = INTERVAL_NS));
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, "shop.opened_since", &metric),
                             0);
        peer = visit();
        hear_until(peer, "{\"type\":\"stats\",");
        is_new = strstr(site.text, "shop.opened_since") != NULL;
        hear_until(peer, "{\"type\":\"stats\",");
        close(peer);
        await_sampler(host);
        weir__mutex_lock(&site.dashboard->mutex);
        is_sampling = is_sampling || site.dashboard->is_sampling;
        count += site.dashboard->visitor_count;
        weir__mutex_unlock(&site.dashboard->mutex);
    }
    weir_metric_release(metric);
    close_site();
    assert_true(is_new);
    assert_false(is_sampling);
    assert_int_equal(count, 0);
}

TEST_EACH_LOOP(visitor, sees_old_log_lines)
{
    int peer;

    open_site(host, WEIR_DASHBOARD_OPTIONS(.interval_ns = INTERVAL_NS, .log_lines = 2));
    for (int i = 0; i < 3; i++)
        weir_log_write(WEIR_LOG_WARN, "shop", NULL, "line %d", i);
    peer = visit();
    assert_int_equal(hear(peer), 1);
    assert_null(strstr(site.text, "line 0"));
    assert_contains(site.text, "\"log\":[[2,");
    assert_contains(site.text, "\"-\",\"line 1\"],[3,");
    close(peer);
    close_site();
}

TEST_EACH_LOOP(visitor, ends_with_the_server)
{
    int peers[2];

    open_site(host, WEIR_DASHBOARD_OPTIONS(.interval_ns = INTERVAL_NS, .chat = true));
    for (int i = 0; i < 2; i++) {
        peers[i] = visit();
        hear_until(peers[i], "\"stats\"");
    }
    assert_int_equal(weir_group_shutdown(host->group, 0, weir_seconds(10)), 0);
    for (int i = 0; i < 2; i++) {
        while (hear(peers[i]) != 8)
            ;
        assert_memory_equal(site.text, "\x03\xe9", 2);
        close(peers[i]);
    }
    assert_int_equal(weir_group_await_termination(host->group, weir_seconds(10)), 0);
    close_site();
}

TEST_EACH_LOOP(visitor, is_refused_if_there_are_too_many)
{
    char answer[HTTP_CALL_SIZE];
    int peer;

    open_site(host, NULL);
    weir__mutex_lock(&site.dashboard->mutex);
    site.dashboard->visitor_count = WEIR__DASHBOARD_VISITORS_MAX;
    weir__mutex_unlock(&site.dashboard->mutex);
    peer = raw_client_connect(weir_http_server_server(site.server));
    raw_client_send(peer, OPENING);
    http_call_receive_one(peer, 0, answer);
    assert_contains(answer, " 503 ");
    close(peer);
    close_site();
}

/* ---- the chat ---- */

TEST_EACH_LOOP(visitor, chats_with_others)
{
    int one, two, three;

    open_site(host, WEIR_DASHBOARD_OPTIONS(.chat = true));
    one = visit();
    hear_until(one, "hello");
    two = visit();
    hear_until(two, "\"visitor\":2,");
    say(one, "name Ada\r\n");
    say(one, "chat a \"quote\"\n");
    hear_until(one, "\"from\":\"Ada\",\"text\":\"a \\\"quote\\\"\"}");
    hear_until(two, "\"from\":\"Ada\",\"text\":\"a \\\"quote\\\"\"}");
    say(two, "chat \xc3\xa4");
    hear_until(one, "\"number\":2,");
    assert_contains(site.text, "\"from\":\"visitor 2\",\"text\":\"\xc3\xa4\"}");
    say(two, "chat \n ");
    say(two, "chat end");
    hear_until(one, "\"number\":3,");
    assert_contains(site.text, "\"end\"");
    three = visit();
    hear_until(three, "\"chats\":[{\"type\":\"chat\",\"number\":1,");
    assert_contains(site.text, "\"end\"}],");
    close(one);
    close(two);
    close(three);
    close_site();
}

#define LOOPS 4
#define VISITORS 8
#define CHATS 10 /* of each: the credit of a visitor */

static unsigned long chat_number(void)
{
    static const char begin[] = "{\"type\":\"chat\",\"number\":";

    if (strncmp(site.text, begin, strlen(begin)) != 0)
        return 0;
    return strtoul(site.text + strlen(begin), NULL, 10);
}

/* The page takes a message with a lower number for one that it has seen. */
TEST(visitor, sees_the_chat_of_several_loops_in_order)
{
    static const weir_http_route none[] = {{0}};
    unsigned long last = 0, number;
    int peers[VISITORS];

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = none, .threads = LOOPS),
            &site.server),
        0);
    assert_int_equal(weir_dashboard_add(site.server, WEIR_DASHBOARD_OPTIONS(.chat = true)), 0);
    for (int i = 0; i < VISITORS; i++)
        peers[i] = visit();
    for (int i = 0; i < VISITORS * CHATS; i++)
        say(peers[i % VISITORS], "chat text");
    while (last < (unsigned long)VISITORS * CHATS) {
        assert_int_equal(hear(peers[0]), 1);
        number = chat_number();
        if (number == 0)
            continue;
        assert_true(number > last);
        last = number;
    }
    for (int i = 0; i < VISITORS; i++)
        close(peers[i]);
    close_site();
}

/* A character of two bytes does not fit. */
TEST_EACH_LOOP(visitor, has_its_long_message_cut)
{
    char text[800], expected[800];
    int peer;

    (void)snprintf(text, sizeof(text), "chat %*s\xc3\xa4\xc3\xa4", 499, "x");
    (void)snprintf(expected, sizeof(expected), "\"text\":\"%*s\"}", 499, "x");
    open_site(host, WEIR_DASHBOARD_OPTIONS(.chat = true));
    peer = visit();
    say(peer, text);
    hear_until(peer, expected);
    close(peer);
    close_site();
}

#define FLOOD 24 /* messages: fewer than wait for a visitor, more than its credit meanwhile */

TEST_EACH_LOOP(visitor, has_a_limited_rate)
{
    int peer;

    open_site(host, WEIR_DASHBOARD_OPTIONS(.chat = true));
    peer = visit();
    for (int i = 0; i < FLOOD; i++)
        say(peer, "chat again");
    hear_until(peer, "\"number\":10,");
    hear_until(peer, "{\"type\":\"notice\",\"text\":\"too many messages: wait a moment\"}");
    close(peer);
    close_site();
}

static int pass_an_hour(void *arg, int status, void **ret_value)
{
    weir__visitor *visitor = WEIR_CONTAINER_OF(site.dashboard->visitors.next, weir__visitor, link);

    (void)arg;
    (void)ret_value;
    visitor->credit_at_ns -= weir_seconds(3600);
    return status;
}

/* The first chat message of this visitor had the number 1: the last would be the one after FLOOD.
 */
static void assert_flood_is_stopped(int peer)
{
    char last[32];

    (void)snprintf(last, sizeof(last), "\"number\":%d,", FLOOD + 1);
    for (int i = 0; i < FLOOD; i++)
        say(peer, "chat again");
    hear_until(peer, "\"number\":11,");
    do {
        assert_int_equal(hear(peer), 1);
        assert_null(strstr(site.text, last));
    } while (strstr(site.text, "{\"type\":\"notice\",\"text\":\"too many messages") == NULL);
}

TEST_EACH_LOOP(visitor, saves_no_credit_for_later)
{
    weir_promise *promise = NULL;
    int peer;

    open_site(host, WEIR_DASHBOARD_OPTIONS(.chat = true));
    peer = visit();
    say(peer, "chat first");
    hear_until(peer, "\"number\":1,");
    assert_int_equal(weir_submit(host->loop, pass_an_hour, NULL, &promise), 0);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
    assert_flood_is_stopped(peer);
    close(peer);
    close_site();
}

TEST_EACH_LOOP(visitor, may_do_what_the_options_allow)
{
    int peer;

    open_site(host, NULL);
    peer = visit();
    say(peer, "chat text");
    hear_until(peer, "this dashboard does not allow that");
    say(peer, "block");
    hear_until(peer, "this dashboard does not allow that");
    say(peer, "move on");
    hear_until(peer, "this dashboard does not allow that");
    say(peer, "unknown");
    hear_until(peer, "unknown command");
    close(peer);
    close_site();
}

/* ---- slow visitors ---- */

static size_t waiting(void)
{
    weir__visitor *visitor;
    size_t count;

    weir__mutex_lock(&site.dashboard->mutex);
    visitor = WEIR_CONTAINER_OF(site.dashboard->visitors.next, weir__visitor, link);
    count = visitor->count;
    weir__mutex_unlock(&site.dashboard->mutex);
    return count;
}

/* It does not receive: after the socket's buffers are full, messages wait in its queue, and the
 * oldest are left out. */
TEST_EACH_LOOP(visitor, that_is_slow_misses_messages)
{
    static char text[60000];
    int peer;

    memset(text, 'x', sizeof(text) - 1);
    open_site(host, WEIR_DASHBOARD_OPTIONS(.chat = true, .interval_ns = INTERVAL_NS));
    peer = visit();
    hear_until(peer, "\"stats\"");
    for (unsigned i = 0; i < 400; i++) { /* 24 MB */
        weir__visitors_offer(site.dashboard, weir__dashboard_notice_message(text));
        assert_true(waiting() <= WEIR__VISITOR_QUEUE_MAX);
        if (i % WEIR__VISITOR_QUEUE_MAX == 0)
            host_turn(host, 2);
    }
    assert_int_equal(waiting(), WEIR__VISITOR_QUEUE_MAX);
    weir__visitors_offer(site.dashboard, weir__dashboard_notice_message("the last"));
    assert_int_equal(waiting(), WEIR__VISITOR_QUEUE_MAX);
    hear_until(peer, "the last");
    hear_until(peer, "\"stats\"");
    close(peer);
    close_site();
}

/* Without statistics that come later: what waits is sent when what is before it was. */
TEST_EACH_LOOP(visitor, that_is_slow_receives_the_last_message)
{
    static char text[60000];
    int peer;

    memset(text, 'x', sizeof(text) - 1);
    open_site(host, WEIR_DASHBOARD_OPTIONS(.interval_ns = weir_seconds(3600)));
    peer = visit();
    hear_until(peer, "\"stats\"");
    while (waiting() < WEIR__VISITOR_QUEUE_MAX) {
        for (unsigned i = 0; i < WEIR__VISITOR_QUEUE_MAX; i++)
            weir__visitors_offer(site.dashboard, weir__dashboard_notice_message(text));
        host_turn(host, 2);
    }
    weir__visitors_offer(site.dashboard, weir__dashboard_notice_message("the last"));
    host_turn(host, 2); /* it has been posted in vain */
    hear_until(peer, "the last");
    close(peer);
    close_site();
}

/* ---- blocks ---- */

static void open_blocking_site(struct host *host, int64_t block_ns)
{
    assert_int_equal(weir_watchdog_start(
                         WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(10), .logged_blocks = 100)),
                     0);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE, .name = "others"),
                          &site.offload),
        0);
    open_site(host, WEIR_DASHBOARD_OPTIONS(.can_block = true, .offload = site.offload,
                                           .interval_ns = weir_seconds(3600)));
    site.dashboard->block_ns = block_ns;
    site.dashboard->blocks_described = 20; /* in a second before the clock was set back */
    site.dashboard->blocks_since_ns = weir_time_of_day() + weir_seconds(3600);
}

static void close_blocking_site(void)
{
    close_site();
    weir_watchdog_stop();
    assert_int_equal(weir_group_shutdown(site.offload, 0, weir_seconds(10)), 0);
    assert_int_equal(weir_group_await_termination(site.offload, weir_seconds(10)), 0);
    weir_group_release(site.offload);
}

/* Returns true if it did not block the loop. */
static bool block(int peer)
{
    say(peer, "block");
    hear_until(peer, "{\"type\":\"unblocked\",");
    return strstr(site.text, "\"executor\":\"others-1\",\"moved\":true,") != NULL;
}

/* The watchdog's verdict is made here. With the next backend it is known already. */
TEST_EACH_LOOP(visitor, blocks_its_loop_until_the_handler_is_moved)
{
    bool is_moved = false;
    int peer, other;

    open_blocking_site(host, weir_ms(1));
    peer = visit();
    hear_until(peer, "\"can_block\":true,\"block_ns\":1000000,\"can_move\":true,\"moves\":false");
    assert_false(block(peer));
    say(peer, "move on");
    hear_until(peer, "{\"type\":\"move\",\"on\":true}");
    other = visit();
    hear_until(other, "\"can_move\":true,\"moves\":true");
    close(other);
    weir__handler_offload(&weir__dashboard_block_handler, 4);
    for (int i = 0; i < 8 && !is_moved; i++)
        is_moved = block(peer);
    assert_true(is_moved);
    say(peer, "move off");
    hear_until(peer, "{\"type\":\"move\",\"on\":false}");
    assert_false(block(peer));
    close(peer);
    close_blocking_site();
}

TEST_EACH_LOOP(visitor, sees_who_blocks)
{
    int one, two;

    open_blocking_site(host, weir_ms(200));
    one = visit();
    hear_until(one, "hello");
    say(one, "block");
    hear_until(one, "{\"type\":\"block\",");
#ifndef __SANITIZE_THREAD__ /* which delays the signal until the thread has slept */
    assert_contains(site.text, "\"handler\":\"dashboard-block\",\"slot\":\"read\",\"channel\":\"[");
    assert_contains(site.text, weir_executor_name(host->loop));
    assert_contains(site.text, "block_this_loop");
#endif
    hear_until(one, "\"ended\":true,");
    two = visit();
    hear_until(two, "\"blocks\":[{\"type\":\"block\",\"number\":");
    close(one);
    close(two);
    close_blocking_site();
}
