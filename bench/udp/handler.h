/* SPDX-License-Identifier: Apache-2.0 */
/*
 * udp/handler.h - the handler of a UDP echo server on weir.
 */
#ifndef BENCH_UDP_HANDLER_H
#define BENCH_UDP_HANDLER_H

#include <weir/datagram.h>
#include <weir/handler.h>

static void udp_echo_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_datagram_make_reply(weir_datagram_of(msg));
    weir_write(ctx, msg, NULL);
}

static void udp_echo_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler udp_echo = {
    .name = "echo",
    .read = udp_echo_read,
    .read_complete = udp_echo_read_complete,
};

#endif
