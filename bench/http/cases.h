/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http/cases.h - the cases of an HTTP server, after its own part (echo/competitor.h).
 *
 *      ask    connections=64 depth=1 head=plain|browser   a closed loop over many connections
 *      memory connections=10000                           idle connections after one request each
 *
 * and of all: the settings of http/service.h, ms=200 warmup_ms=40 cpu=1 load_cpu=1. They answer as
 * those of echo/cases.h. The first answer shows the length of all: nothing in them varies but the
 * Date.
 */
#include <stdlib.h>

#include "echo/script_round.h"
#include "http/requests.h"
#include "http/service.h"

enum { ANSWER_HEAD_MAX = 4096 };

/* Receives an answer's head and perhaps more; the length of the whole answer. */
static size_t receive_head(int descriptor)
{
    static const char field[] = "\r\nContent-Length: ";
    char bytes[ANSWER_HEAD_MAX + 1];
    char *end = NULL, *length;
    size_t received = 0;

    while (end == NULL) {
        ssize_t got = recv(descriptor, bytes + received, ANSWER_HEAD_MAX - received, 0);

        bench_require(got > 0, "receiving an answer");
        received += (size_t)got;
        bytes[received] = '\0';
        end = strstr(bytes, "\r\n\r\n");
    }
    bench_require(strncmp(bytes, "HTTP/1.1 200 ", 13) == 0, bytes);
    length = strcasestr(bytes, field);
    bench_require(length != NULL && length < end, "Content-Length");
    return (size_t)(end + 4 - bytes) + strtoull(length + sizeof(field) - 1, NULL, 10);
}

static size_t answer_size(uint16_t port, const char *request, size_t length)
{
    struct sockaddr_storage address;
    socklen_t address_length = echo_server_address(port, &address);
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t size;

    bench_require(connect(descriptor, (struct sockaddr *)&address, address_length) == 0,
                  "connecting");
    bench_require(send(descriptor, request, length, MSG_NOSIGNAL) == (ssize_t)length, "sending");
    size = receive_head(descriptor);
    close(descriptor);
    return size;
}

static void http_script_init(echo_script *script, uint16_t port, bool browser, size_t depth)
{
    static const char status[] = "HTTP/1.1 200 OK\r\n";
    char *request = bench_alloc(1, REQUEST_MAX);
    size_t length = make_request(request, service.path, port, browser);

    *script = (echo_script){
        .request = request,
        .request_size = length,
        .answer_size = answer_size(port, request, length),
        .answer = status,
        .answer_known = sizeof(status) - 1,
        .depth = depth,
    };
}

static void ask_case(bench_round *round)
{
    static const char *const heads[] = {"plain", "browser", NULL};
    size_t connections = (size_t)bench_setting(round, "connections", 64);
    size_t depth = (size_t)bench_setting(round, "depth", 1);
    bool browser = bench_choice(round, "head", heads) == 1;
    struct measurement *self = measurement_open(round);
    echo_script script;

    http_script_init(&script, self->server.port, browser, depth);
    script_round_run(self, connections, &script);
    echo_script_deinit(&script);
    measurement_close(self);
}

static void memory_case(bench_round *round)
{
    size_t connections = (size_t)bench_setting(round, "connections", 10000);
    struct measurement *self = measurement_open(round);
    echo_script script;

    http_script_init(&script, self->server.port, false, 1);
    script_round_memory(self, connections, &script);
    echo_script_deinit(&script);
    measurement_close(self);
}

#define HTTP_CASES            \
    {"ask", ask_case},        \
    {                         \
        "memory", memory_case \
    }
