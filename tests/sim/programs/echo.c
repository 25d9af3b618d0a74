/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP echo: 20 connections, each sends a few messages and compares what comes back.
 */
#include <signal.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define CONNECTIONS 20
#define MESSAGES 5
#define SIZE 64

/* ---- the server ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo", .read = on_read, .read_complete = on_read_complete};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

static int server_main(void *arg)
{
    (void)arg;
    return sim_serve("0.0.0.0:8007", 2, init_child, NULL);
}

/* ---- the client ---- */

struct run {
    weir_promise *done;
    unsigned left;
    unsigned answered;
};

struct client {
    struct run *run;
    unsigned sent, received;
};

static uint8_t byte_at(unsigned position)
{
    return (uint8_t)(position * 131 + (position >> 8));
}

static void send_message(weir_ctx *ctx, struct client *client)
{
    weir_buf *buf;

    if (weir_buf_create(SIZE, 0, &buf) < 0) {
        weir_close(ctx, NULL);
        return;
    }
    for (unsigned i = 0; i < SIZE; i++) {
        uint8_t byte = byte_at(client->sent++);

        (void)weir_buf_write_bytes(buf, &byte, 1);
    }
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static void client_active(weir_ctx *ctx)
{
    send_message(ctx, weir_ctx_state(ctx));
}

static void client_read(weir_ctx *ctx, weir_msg *msg)
{
    struct client *client = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);
    const uint8_t *bytes = weir_buf_bytes(buf);

    for (size_t i = 0; i < weir_buf_readable(buf); i++)
        if (bytes[i] != byte_at(client->received++))
            weir_sim_fail(weir_sim_current(), "a wrong byte at %u", client->received - 1);
    weir_msg_release(msg);
    if (client->received > client->sent)
        weir_sim_fail(weir_sim_current(), "received %u of %u bytes", client->received,
                      client->sent);
    if (client->received < client->sent)
        return;
    if (client->sent == MESSAGES * SIZE) {
        client->run->answered++;
        weir_close(ctx, NULL);
    } else {
        send_message(ctx, client);
    }
}

static const weir_handler client_handler = {
    .name = "client",
    .state_size = sizeof(struct client),
    .active = client_active,
    .read = client_read,
};

static void on_closed(weir_promise *closed, void *user_data)
{
    struct run *run = user_data;

    (void)closed;
    if (--run->left == 0)
        (void)weir_promise_succeed(run->done, NULL);
}

static int init_client(weir_channel *channel, void *user_data)
{
    weir_ctx *ctx;
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &client_handler, NULL);

    if (err < 0)
        return err;
    ctx = weir_pipeline_find(weir_channel_pipeline(channel), "client");
    ((struct client *)weir_ctx_state(ctx))->run = user_data;
    return 0;
}

static void on_connected(weir_promise *connecting, void *user_data)
{
    weir_channel *channel = weir_promise_value(connecting);

    if (weir_promise_result(connecting) < 0 ||
        weir_promise_add_listener(weir_channel_closed(channel), on_closed, user_data) < 0)
        on_closed(NULL, user_data);
}

static int client_main(void *arg)
{
    struct run run = {.left = CONNECTIONS};
    weir_group *group = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &group);

    (void)arg;
    if (err == 0)
        err = weir_promise_create(NULL, &run.done);
    for (unsigned i = 0; i < CONNECTIONS && err == 0; i++) {
        weir_promise *connecting = NULL;

        err = weir_client_connect(WEIR_CLIENT_OPTIONS(.group = group, .address = "10.0.0.1:8007",
                                                      .init = init_client, .user_data = &run),
                                  &connecting);
        if (err == 0)
            err = weir_promise_add_listener(connecting, on_connected, &run);
        weir_promise_release(connecting);
    }
    if (err == 0)
        err = weir_promise_sync(run.done, WEIR_NEVER);
    sim_end_group(group);
    weir_promise_release(run.done);
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *server_host, *client_host;
    weir_sim_process *server, *client;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);

    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &client_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, arg, &server);
    weir_sim_sleep(weir_ms(5));
    if (err == 0)
        err = weir_sim_start(client_host, "client", client_main, arg, &client);
    if (err == 0)
        err = weir_sim_join(client);
    weir_sim_signal(server, SIGTERM);
    return err < 0 ? err : weir_sim_join(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed,
                   SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                       SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED),
                   options);
}

SIM_PROGRAM(echo, "TCP echo", configure, run)
