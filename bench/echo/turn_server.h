/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/turn_server.h - a server on a manual loop with some TCP connections, whose instructions are
 * counted by the turn (loop/turns.h).
 */
#ifndef BENCH_ECHO_TURN_SERVER_H
#define BENCH_ECHO_TURN_SERVER_H

#include <netinet/in.h>

#include <weir/address.h>
#include <weir/channel.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "loop/turns.h"

struct turn_server {
    struct turns turns;
    weir_channel *listener;
    int (*add_handlers)(weir_pipeline *pipeline, void *user_data); /* of each connection */
    void *user_data;
};

static inline void turn_server_on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct turn_server *self = *(struct turn_server **)weir_ctx_state(ctx);
    weir_channel *channel = weir_channel_of(msg);

    bench_require(self->add_handlers(weir_channel_pipeline(channel), self->user_data) == 0,
                  "adding handlers");
    weir_channel_register(channel, self->turns.loop, NULL);
    weir_channel_release(channel);
}

static inline int turn_server_init_acceptor(void *state, const void *options)
{
    *(const void **)state = options;
    return 0;
}

static inline void turn_server_listen(struct turn_server *self)
{
    static const weir_handler acceptor = {
        .name = "acceptor",
        .state_size = sizeof(struct turn_server *),
        .init = turn_server_init_acceptor,
        .read = turn_server_on_accepted,
    };
    weir_address any;

    bench_require(weir_address_parse("127.0.0.1:0", &any) == 0, "weir_address_parse");
    bench_require(weir_tcp_create_server(NULL, NULL, &self->listener) == 0, "a listener");
    bench_require(weir_pipeline_add_last(weir_channel_pipeline(self->listener), &acceptor, self) ==
                      0,
                  "weir_pipeline_add_last");
    weir_channel_register(self->listener, self->turns.loop, NULL);
    turns_take(&self->turns);
    weir_channel_bind(self->listener, &any, NULL);
    turns_take(&self->turns);
}

static inline int turn_server_connect(const struct turn_server *self)
{
    weir_address address;
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);

    bench_require(weir_channel_local_address(self->listener, &address) == 0, "the address");
    bench_require(descriptor >= 0, "socket");
    bench_require(connect(descriptor, weir_address_sockaddr(&address), address.length) == 0,
                  "connect");
    return descriptor;
}

/* Opens that many connections; false if this machine refuses a ring. */
static inline bool turn_server_init(struct turn_server *self, enum weir_io io, int count)
{
    if (!turns_init(&self->turns, WEIR_LOOP_OPTIONS(.io = io), count))
        return false;
    turn_server_listen(self);
    for (int i = 0; i < count; i++) {
        self->turns.peers[i] = turn_server_connect(self);
        turns_take(&self->turns);
        turns_take(&self->turns);
    }
    return true;
}

static inline void turn_server_deinit(struct turn_server *self)
{
    for (int i = 0; i < self->turns.count; i++)
        close(self->turns.peers[i]);
    weir_channel_release(self->listener);
    turns_deinit(&self->turns);
}

#endif
