/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User-space instructions of an echo through the whole stack (loop, channel, "websocket", the
 * application's handler, and back): one turn of a manual loop in which N connections are readable,
 * divided by the messages.
 */
#include <weir/http1.h>
#include <weir/pool.h>
#include <weir/websocket.h>

#include "echo/handlers.h"
#include "echo/turn_server.h"
#include "websocket/messages.h"

enum { WARM_UP = 128, DEPTH = 16, SIZE_MAX_COUNTED = 1024, TEXT_FRAME = 0x81 };

static int init_websocket(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return echo_handlers_add(weir_channel_pipeline(channel), 1);
}

static void open_websocket(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = init_websocket));
}

static int add_handlers(weir_pipeline *pipeline, void *user_data)
{
    int err = weir_http1_server_add(pipeline, NULL);

    return err == 0 ? weir_http_router_add(pipeline, user_data, 0) : err;
}

static void open_all(struct turns *turns)
{
    char answer[TURNS_ANSWER_MAX];

    turns->request = websocket_opening;
    turns->request_size = sizeof(websocket_opening) - 1;
    turns_ask(turns);
    for (int i = 0; i < 4; i++) /* the upgrade takes some */
        turns_take(turns);
    for (int i = 0; i < turns->count; i++) {
        ssize_t length = recv(turns->peers[i], answer, sizeof(answer), MSG_DONTWAIT);

        bench_require(length > 13 && memcmp(answer, "HTTP/1.1 101 ", 13) == 0, "101");
    }
}

static void count_echo(const char *name, enum weir_io io, int count, size_t size, int depth)
{
    static const weir_http_route routes[] = {{"GET", "/", open_websocket}, {0}};
    struct turn_server server = {.add_handlers = add_handlers};
    char text[SIZE_MAX_COUNTED], frames[DEPTH * (SIZE_MAX_COUNTED + FRAME_HEADER_MAX)];
    char header[FRAME_HEADER_MAX];
    size_t length = 0;
    weir_http_router *router;

    message_fill(text, size);
    for (int i = 0; i < depth; i++)
        length += frame_write(frames + length, TEXT_FRAME, text, size);
    bench_require(weir_http_router_create(routes, &router) == 0, "weir_http_router_create");
    server.user_data = router;
    if (!turn_server_init(&server, io, count)) {
        bench_count_none(name);
        return;
    }
    open_all(&server.turns);
    server.turns.request = frames;
    server.turns.request_size = length;
    server.turns.operations = depth;
    server.turns.answer_size =
        (size_t)depth * (frame_header(header, TEXT_FRAME, size, false) + size);
    turns_count(&server.turns, name, WARM_UP);
    turn_server_deinit(&server);
    weir_http_router_release(router);
}

static void count_all(bench_round *round)
{
    (void)round;
    weir_leak_set_level(WEIR_LEAK_OFF); /* which messages are watched is a matter of chance */
    count_echo("epoll: 16 B, 1 connection", WEIR_IO_EPOLL, 1, 16, 1);
    count_echo("epoll: 16 B, 16 connections", WEIR_IO_EPOLL, 16, 16, 1);
    count_echo("epoll: 16 B, 16 messages at once", WEIR_IO_EPOLL, 4, 16, DEPTH);
    count_echo("epoll: 1 KiB, 16 connections", WEIR_IO_EPOLL, 16, SIZE_MAX_COUNTED, 1);
    count_echo("uring: 16 B, 16 connections", WEIR_IO_URING, 16, 16, 1);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
