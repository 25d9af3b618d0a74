/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server on libuv: received into one hot buffer, and sent back by uv_try_write; what that
 * does not take is copied and written, and nothing is read until it has gone.
 */
#include "echo/competitor.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

enum { BACKLOG = 4096, WINDOW = 128 * 1024 };

static alignas(4096) char window[WINDOW];

struct rest {
    uv_write_t request;
    char bytes[];
};

static void server_configure(bench_round *round)
{
    (void)round;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void hang_up(uv_stream_t *stream)
{
    if (!uv_is_closing((uv_handle_t *)stream))
        uv_close((uv_handle_t *)stream, on_closed);
}

static void on_window(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)handle;
    (void)suggested;
    *ret_buf = uv_buf_init(window, WINDOW);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf);

static void on_written(uv_write_t *request, int status)
{
    uv_stream_t *stream = request->handle;

    free(request);
    if (status < 0)
        hang_up(stream);
    else
        uv_read_start(stream, on_window, on_read);
}

static void write_rest(uv_stream_t *stream, const char *bytes, size_t length)
{
    struct rest *rest = malloc(sizeof(*rest) + length);
    uv_buf_t buf;

    bench_require(rest != NULL, "allocating");
    memcpy(rest->bytes, bytes, length);
    buf = uv_buf_init(rest->bytes, (unsigned)length);
    uv_read_stop(stream);
    bench_require(uv_write(&rest->request, stream, &buf, 1, on_written) == 0, "uv_write");
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    uv_buf_t answer;
    int sent;

    if (got == 0)
        return;
    if (got < 0) {
        hang_up(stream);
        return;
    }
    answer = uv_buf_init(buf->base, (unsigned)got);
    sent = uv_try_write(stream, &answer, 1);
    if (sent == UV_EAGAIN)
        sent = 0;
    if (sent < 0)
        hang_up(stream);
    else if (sent < got)
        write_rest(stream, buf->base + sent, (size_t)(got - sent));
}

/* A Unix socket is a pipe to libuv. */
union stream {
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

static int stream_init(uv_loop_t *loop, union stream *stream)
{
    return echo_server_uses_unix() ? uv_pipe_init(loop, &stream->pipe, 0)
                                   : uv_tcp_init(loop, &stream->tcp);
}

static int stream_open(union stream *stream, int descriptor)
{
    return echo_server_uses_unix() ? uv_pipe_open(&stream->pipe, descriptor)
                                   : uv_tcp_open(&stream->tcp, descriptor);
}

static void on_connection(uv_stream_t *listener, int status)
{
    union stream *connection = malloc(sizeof(*connection));

    bench_require(status == 0 && connection != NULL, "accepting");
    bench_require(stream_init(listener->loop, connection) == 0, "making a stream");
    bench_require(uv_accept(listener, &connection->stream) == 0, "uv_accept");
    uv_read_start(&connection->stream, on_window, on_read);
}

static void server_run(int cpu)
{
    uv_loop_t *loop = uv_default_loop();
    static union stream server;
    int listener = echo_server_listen();

    bench_pin(cpu);
    stream_init(loop, &server);
    bench_require(stream_open(&server, listener) == 0, "opening the listener");
    bench_require(uv_listen(&server.stream, BACKLOG, on_connection) == 0, "uv_listen");
    echo_server_announce(listener);
    uv_run(loop, UV_RUN_DEFAULT);
}

#include "echo/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {ECHO_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
