/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message to many channels on several loops, which share it and write it at the same time.
 */
#include <weir/websocket.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/loop/host.h"
#include "support/protocol/http/http_call.h"
#include "support/protocol/websocket/ws_fixture.h"

#define OPENING                                     \
    HTTP_CALL("GET /ws")                            \
    "Connection: Upgrade\r\nUpgrade: websocket\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

enum { PEERS = 6, LOOPS = 3, ROUNDS = 30 };

struct room {
    weir_http_server *server;
    weir_channel *channels[PEERS]; /* retained */
    _Atomic unsigned count;
    struct call_counter opened;
    int peers[PEERS];
};

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct room *room = *(struct room **)weir_ctx_state(ctx);

    if (weir_ws_opened_of(event) != NULL) {
        room->channels[room->count++] = weir_channel_retain(weir_ctx_channel(ctx));
        call_counter_add(&room->opened);
    }
    weir_fire_event(ctx, event);
}

static int init_member(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct room *));
    return 0;
}

static const weir_handler member = {
    .name = "member", .state_size = sizeof(struct room *), .init = init_member, .event = on_event};

static int add_member(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &member, &user_data);
}

static void join_room(weir_http_exchange *exchange, void *user_data)
{
    (void)weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_member, .user_data = user_data));
}

static void open_room(struct room *room, enum weir_io io)
{
    const weir_http_route routes[] = {{"GET", "/ws", join_room, room}, {0}};
    char answer[HTTP_CALL_SIZE];

    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .threads = LOOPS, .io = io),
                               &room->server),
        0);
    for (unsigned i = 0; i < PEERS; i++) {
        room->peers[i] = raw_client_connect(weir_http_server_server(room->server));
        raw_client_send(room->peers[i], OPENING);
        http_call_receive_one(room->peers[i], 0, answer);
        assert_true(call_counter_await(&room->opened, i + 1));
    }
}

static void close_room(struct room *room)
{
    for (unsigned i = 0; i < PEERS; i++) {
        weir_channel_release(room->channels[i]);
        raw_client_close(room->peers[i]);
    }
    weir_http_server_release(room->server);
}

/* The caller's reference, too, is one of the last. */
static void send_to_all(const struct room *room, weir_ws_message *message)
{
    for (unsigned i = 0; i < PEERS; i++)
        weir_channel_write_and_flush(room->channels[i],
                                     weir_msg_retain(weir_ws_message_msg(message)), NULL);
    weir_msg_release(weir_ws_message_msg(message));
}

static void expect_pattern(int peer, size_t header, size_t length)
{
    static uint8_t received[4096];

    raw_client_receive_bytes(peer, received, header + length);
    assert_int_equal(received[0], 0x82);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(received[header + i], ws_pattern_at(i));
}

static void run_with(enum backend_id id, void (*body)(enum weir_io io))
{
    struct host host;

    host_open(&host, id); /* skips the test without the backend */
    host_close(&host);
    body(backends[id].io);
}

#define TEST_EACH_IO(noun, sentence) \
    BACKEND_TESTS(BACKEND_LOOPS, run_with, enum weir_io io, noun##_##sentence, #noun "." #sentence)

TEST_EACH_IO(broadcast, to_several_loops)
{
    static const struct {
        size_t length, header;
    } rows[] = {{5, 2}, {1000, 4}, {3000, 4}};
    struct room room = {0};

    open_room(&room, io);
    for (unsigned i = 0; i < ROUNDS; i++)
        for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
            weir_ws_message *message;
            weir_buf *buf;

            assert_int_equal(weir_buf_create(4096, 0, &buf), 0);
            ws_put_pattern(buf, rows[row].length);
            if (i % 2 == 0) {
                assert_int_equal(weir_ws_message_create(WEIR_WS_BINARY, buf, &message), 0);
            } else {
                assert_int_equal(weir_ws_message_create_from(WEIR_WS_BINARY, weir_buf_bytes(buf),
                                                             rows[row].length, &message),
                                 0);
                weir_buf_release(buf);
            }
            send_to_all(&room, message);
        }
    for (unsigned peer = 0; peer < PEERS; peer++)
        for (unsigned i = 0; i < ROUNDS; i++)
            for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
                expect_pattern(room.peers[peer], rows[row].header, rows[row].length);
    close_room(&room);
}

/*
 * The frames of a long message share its payload, whose only reference is the message's: several
 * loops retain it at the same time.
 */
TEST_EACH_IO(broadcast, of_long_messages_retains_their_payload_on_several_loops)
{
    enum { BATCHES = 40, BATCH = 25, LENGTH = 1100 };
    struct room room = {0};

    open_room(&room, io);
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < BATCH; i++) {
            weir_ws_message *message;
            weir_buf *buf;

            assert_int_equal(weir_buf_create(LENGTH, 0, &buf), 0);
            ws_put_pattern(buf, LENGTH);
            assert_int_equal(weir_ws_message_create(WEIR_WS_BINARY, buf, &message), 0);
            send_to_all(&room, message);
        }
        for (unsigned peer = 0; peer < PEERS; peer++)
            for (int i = 0; i < BATCH; i++)
                expect_pattern(room.peers[peer], 4, LENGTH);
    }
    close_room(&room);
}
