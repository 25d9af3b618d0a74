/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that are slow, silent, deaf or gone hold little memory, on sockets.
 */
#include <weir/websocket.h>

#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/pool.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/loop/host.h"
#include "support/memory.h"
#include "support/protocol/http/http_call.h"

#define OPENING                                     \
    HTTP_CALL("GET /ws")                            \
    "Connection: Upgrade\r\nUpgrade: websocket\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
#define HELLO "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58" /* RFC 6455, 5.7 */
#define PEERS 4

struct site {
    weir_http_server *server;
    int64_t ping_interval_ns;
    uint32_t opened;
    struct call_counter closed;
    int peers[PEERS];
};

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct site *site = *(struct site **)weir_ctx_state(ctx);

    if (weir_ws_closed_of(event) != NULL)
        call_counter_add(&site->closed);
    weir_fire_event(ctx, event);
}

static int init_echo(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct site *));
    return 0;
}

static const weir_handler echo = {.name = "echo",
                                  .state_size = sizeof(struct site *),
                                  .init = init_echo,
                                  .read = on_read,
                                  .event = on_event};

static int add_echo(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, &user_data);
}

static void accept_here(weir_http_exchange *exchange, void *user_data)
{
    struct site *site = user_data;

    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_echo, .user_data = site,
                                                   .ping_interval_ns = site->ping_interval_ns));
}

/* Memory that connections hold: of the pool, and other. */
static size_t memory_in_use(void)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return (size_t)stats.in_use_bytes + test_memory_live_bytes();
}

static void assert_echo(int peer)
{
    char received[7];

    raw_client_send_bytes(peer, HELLO, sizeof(HELLO) - 1);
    raw_client_receive_bytes(peer, received, sizeof(received));
    assert_memory_equal(received, "\x81\x05Hello", sizeof(received));
}

static void open_all(struct site *site)
{
    char answer[HTTP_CALL_SIZE];

    for (int i = 0; i < PEERS; i++) {
        site->peers[i] = raw_client_connect(weir_http_server_server(site->server));
        raw_client_send_bytes(site->peers[i], OPENING, sizeof(OPENING) - 1);
        http_call_receive_one(site->peers[i], 0, answer);
        if (site->ping_interval_ns == 0)
            assert_echo(site->peers[i]);
    }
    site->opened += PEERS;
}

static void close_all(struct site *site)
{
    for (int i = 0; i < PEERS; i++)
        close(site->peers[i]);
    assert_true(call_counter_await(&site->closed, site->opened));
}

/* Opens all connections, with one message each. Returns the memory that was in use before: after
 * others, so that caches are filled. */
static size_t open_site(struct host *host, struct site *site)
{
    const weir_http_route routes[] = {{"GET", "/ws", accept_here, site}, {0}};
    size_t before;

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                     .child_options = WEIR_CHANNEL_OPTIONS(.send_buffer = 4096),
                                     .workers = host->group),
            &site->server),
        0);
    open_all(site);
    close_all(site);
    host_turn(host, 4);
    before = memory_in_use();
    open_all(site);
    return before;
}

static void close_site(struct site *site)
{
    close_all(site);
    weir_http_server_release(site->server);
}

TEST_EACH_HOST(slow_peers, silent_ones_hold_a_few_kib)
{
    struct site site = {0};
    size_t before = open_site(host, &site);

    host_turn(host, 2);
    assert_in_range(memory_in_use(), 0, before + PEERS * (size_t)(16 * 1024));
    close_site(&site);
}

/* Waits until everything that was sent before has been received. */
static void await_pong(int peer)
{
    char received[2];

    raw_client_send_bytes(peer, "\x89\x80\0\0\0\0", 6);
    raw_client_receive_bytes(peer, received, sizeof(received));
    assert_memory_equal(received, "\x8a\0", sizeof(received));
}

/* What a frame announces costs nothing until it arrives. */
TEST_EACH_HOST(slow_peers, that_announce_much_hold_what_they_sent)
{
    static const uint8_t first[8 + 1000] = {0x02, 0xfe, 1000 >> 8, 1000 & 0xff};
    static const uint8_t next[8 + 1000] = {0x00, 0xfe, 1000 >> 8, 1000 & 0xff};
    static const uint8_t announcement[] = {0x80, 0xff, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 'x'};
    struct site site = {0};
    size_t before, held;

    (void)open_site(host, &site);
    before = memory_in_use();
    for (int i = 0; i < PEERS; i++) {
        raw_client_send_bytes(site.peers[i], first, sizeof(first));
        for (int round = 1; round < 8; round++)
            raw_client_send_bytes(site.peers[i], next, sizeof(next));
        await_pong(site.peers[i]);
    }
    held = memory_in_use() - before;
    assert_in_range(held, PEERS * 8000, PEERS * 24000);
    for (int i = 0; i < PEERS; i++)
        raw_client_send_bytes(site.peers[i], announcement, sizeof(announcement));
    host_turn(host, 2);
    assert_in_range(memory_in_use() - before, 0, PEERS * 40000);
    close_site(&site);
}

TEST_EACH_HOST(slow_peers, that_announce_much_at_first_hold_what_they_sent)
{
    static const uint8_t announcement[] = {0x82, 0xff, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 'x'};
    struct site site = {0};
    size_t before;

    (void)open_site(host, &site);
    before = memory_in_use();
    for (int i = 0; i < PEERS; i++)
        raw_client_send_bytes(site.peers[i], announcement, sizeof(announcement));
    host_turn(host, 2);
    assert_in_range(memory_in_use(), 0, before + PEERS * (size_t)(32 * 1024));
    close_site(&site);
}

/* Sends pings, 1 MiB. */
static void send_pings(int peer)
{
    static const uint8_t pings[131] = {0x89, 0xfd};
    char block[131 * 100];

    for (size_t i = 0; i < 100; i++)
        memcpy(block + 131 * i, pings, sizeof(pings));
    for (int i = 0; i < 80; i++)
        raw_client_send_bytes(peer, block, sizeof(block));
}

/* All pings are read, and few are answered: pongs that can not be sent do not pile up. */
TEST_EACH_HOST(slow_peers, that_do_not_receive_pongs_get_few)
{
    struct site site = {0};
    size_t before;

    (void)open_site(host, &site);
    before = memory_in_use();
    send_pings(site.peers[0]);
    assert_in_range(memory_in_use(), 0, before + (size_t)(512 * 1024));
    assert_echo(site.peers[1]);
    close_site(&site);
}

/* Without an answer to a ping the connection is closed, and its memory released. */
TEST_EACH_HOST(slow_peers, that_are_gone_hold_nothing)
{
    struct site site = {.ping_interval_ns = weir_ms(20)};
    size_t before = open_site(host, &site);

    assert_true(call_counter_await(&site.closed, site.opened));
    host_turn(host, 4);
    assert_in_range(memory_in_use(), 0, before + (size_t)(4 * 1024));
    close_site(&site);
}
