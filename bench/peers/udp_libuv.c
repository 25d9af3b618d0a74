/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A UDP echo server on libuv: received in batches (recvmmsg) into one hot buffer, each sent back by
 * uv_udp_try_send; libuv has no way to send a batch at once.
 */
#include "echo/competitor.h"

#include <uv.h>

#include "udp/socket.h"

enum { BATCH = 16, CHUNK = 64 * 1024 /* libuv's own, for each datagram */ };

static char window[BATCH * CHUNK];

static void server_configure(bench_round *round)
{
    (void)round;
}

static void on_window(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)handle;
    (void)suggested;
    *ret_buf = uv_buf_init(window, sizeof(window));
}

static void on_received(uv_udp_t *udp, ssize_t got, const uv_buf_t *buf,
                        const struct sockaddr *sender, unsigned flags)
{
    uv_buf_t answer;

    (void)flags;
    if (got < 0 || sender == NULL)
        return;
    answer = uv_buf_init(buf->base, (unsigned)got);
    bench_require(uv_udp_try_send(udp, &answer, 1, sender) == got, "uv_udp_try_send");
}

static void server_run(int cpu)
{
    uv_loop_t *loop = uv_default_loop();
    int descriptor = udp_socket_open();
    static uv_udp_t udp;

    bench_pin(cpu);
    bench_require(uv_udp_init_ex(loop, &udp, AF_UNSPEC | UV_UDP_RECVMMSG) == 0, "uv_udp_init_ex");
    bench_require(uv_udp_open(&udp, descriptor) == 0, "uv_udp_open");
    bench_require(uv_udp_recv_start(&udp, on_window, on_received) == 0, "uv_udp_recv_start");
    echo_server_announce(descriptor);
    uv_run(loop, UV_RUN_DEFAULT);
}

#include "udp/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {UDP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
