/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User-space instructions of a hello through the whole stack (loop, channel, codec, route,
 * exchange, response): one turn of a manual loop in which N connections are readable, divided by
 * the requests.
 */
#include <string.h>

#include <weir/http1.h>
#include <weir/http_server.h>
#include <weir/pool.h>

#include "echo/turn_server.h"
#include "http/requests.h"

enum { WARM_UP = 128, DEPTH = 16, PORT = 8080 };

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_text(exchange, 200, "Hello, World!");
}

static int add_handlers(weir_pipeline *pipeline, void *user_data)
{
    int err = weir_http1_server_add(pipeline, NULL);

    return err == 0 ? weir_http_router_add(pipeline, user_data, 0) : err;
}

/* Asks once over each connection, so that the length of an answer is known. */
static size_t answer_size(const struct turns *turns)
{
    char answer[TURNS_ANSWER_MAX];
    ssize_t length = 0;

    turns_ask(turns);
    turns_take(turns);
    turns_take(turns);
    for (int i = 0; i < turns->count; i++) {
        length = recv(turns->peers[i], answer, sizeof(answer), MSG_DONTWAIT);
        bench_require(length > 0 && memcmp(answer, "HTTP/1.1 200 OK\r\n", 17) == 0, "an answer");
    }
    return (size_t)length;
}

static void count_hello(const char *name, enum weir_io io, int count, bool browser, int depth)
{
    static const weir_http_route routes[] = {{"GET", "/", hello}, {0}};
    struct turn_server server = {.add_handlers = add_handlers};
    char requests[DEPTH * REQUEST_MAX];
    size_t length = make_request(requests, "/", PORT, browser);
    weir_http_router *router;

    for (int i = 1; i < depth; i++)
        memcpy(requests + (size_t)i * length, requests, length);
    bench_require(weir_http_router_create(routes, &router) == 0, "weir_http_router_create");
    server.user_data = router;
    if (!turn_server_init(&server, io, count)) {
        bench_count_none(name);
        return;
    }
    server.turns.request = requests;
    server.turns.request_size = (size_t)depth * length;
    server.turns.operations = depth;
    server.turns.answer_size = answer_size(&server.turns);
    turns_count(&server.turns, name, WARM_UP);
    turn_server_deinit(&server);
    weir_http_router_release(router);
}

static void count_all(bench_round *round)
{
    (void)round;
    weir_leak_set_level(WEIR_LEAK_OFF); /* which messages are watched is a matter of chance */
    count_hello("epoll: hello, 1 connection", WEIR_IO_EPOLL, 1, false, 1);
    count_hello("epoll: hello, 16 connections", WEIR_IO_EPOLL, 16, false, 1);
    count_hello("epoll: hello, 16 pipelined", WEIR_IO_EPOLL, 4, false, DEPTH);
    count_hello("epoll: hello, a browser's head", WEIR_IO_EPOLL, 16, true, 1);
    count_hello("uring: hello, 16 connections", WEIR_IO_URING, 16, false, 1);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
