/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads: a thread writes to connections that move between loops, and half-closes them. The server
 * compares each byte, and answers with their number when the stream ends.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define CONNECTIONS 2
#define CHUNKS 15
#define MAX_CHUNK 2000

static uint8_t byte_at(uint64_t position)
{
    return (uint8_t)(position * 31 + (position >> 8));
}

/* ---- the server ---- */

struct upload {
    uint64_t length;
};

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct upload *upload = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);
    const uint8_t *bytes = weir_buf_bytes(buf);

    for (size_t i = 0; i < weir_buf_readable(buf); i++)
        if (bytes[i] != byte_at(upload->length++))
            weir_sim_fail(weir_sim_current(), "an upload has a wrong byte at %llu",
                          (unsigned long long)upload->length - 1);
    weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct upload *upload = weir_ctx_state(ctx);
    weir_buf *buf;

    if (event == weir_event_input_closed() && weir_buf_create(sizeof(*upload), 0, &buf) == 0) {
        (void)weir_buf_write_bytes(buf, upload, sizeof(*upload));
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
        weir_close(ctx, NULL);
    }
    weir_msg_release(event);
}

static const weir_handler receiver = {
    .name = "receiver",
    .state_size = sizeof(struct upload),
    .read = on_read,
    .event = on_event,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &receiver);
}

static int server_main(void *arg)
{
    weir_group *workers = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "work", .threads = 2), &workers);

    (void)arg;
    if (err == 0)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.workers = workers, .address = "0.0.0.0:8007",
                                .init_child = init_child,
                                .child_options = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &server);
    if (err == 0)
        err = weir_server_run(server);
    weir_server_release(server);
    weir_group_release(workers);
    return err;
}

/* ---- the client ---- */

struct client {
    uint64_t sent;
    uint8_t answer[sizeof(struct upload)];
    size_t answer_length;
};

static struct client clients[CONNECTIONS];

static void client_read(weir_ctx *ctx, weir_msg *msg)
{
    struct client *client = *(struct client **)weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_buf_readable(buf);

    if (client->answer_length + length > sizeof(client->answer))
        weir_sim_fail(weir_sim_current(), "the answer is too long");
    else
        memcpy(client->answer + client->answer_length, weir_buf_bytes(buf), length);
    client->answer_length += length;
    weir_msg_release(msg);
}

static const weir_handler client_handler = {
    .name = "client",
    .state_size = sizeof(struct client *),
    .read = client_read,
};

static int init_client(weir_channel *channel, void *user_data)
{
    weir_ctx *ctx;
    int err = sim_add(channel, &client_handler);

    if (err < 0)
        return err;
    ctx = weir_pipeline_find(weir_channel_pipeline(channel), "client");
    *(struct client **)weir_ctx_state(ctx) = user_data;
    return 0;
}

static int write_chunk(weir_channel *channel, struct client *client)
{
    size_t length = 1 + (size_t)weir_sim_random(weir_sim_current(), MAX_CHUNK);
    uint8_t bytes[MAX_CHUNK];
    weir_buf *buf;
    int err = weir_buf_create(length, 0, &buf);

    if (err < 0)
        return err;
    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at(client->sent++);
    (void)weir_buf_write_bytes(buf, bytes, length);
    weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
    return 0;
}

static int sync_and_release(weir_promise *promise)
{
    int err = weir_promise_sync(promise, WEIR_NEVER);

    weir_promise_release(promise);
    return err;
}

/* Writes before, while it has no loop, and after it was registered with the next. */
static int move(weir_group *group, weir_channel *channel, struct client *client)
{
    weir_promise *done;
    int err = weir_promise_create(NULL, &done);

    if (err < 0)
        return err;
    weir_channel_deregister(channel, done);
    err = write_chunk(channel, client);
    if (sync_and_release(done) < 0 || err < 0)
        return err < 0 ? err : -EIO;
    err = weir_promise_create(NULL, &done);
    if (err < 0)
        return err;
    err = write_chunk(channel, client);
    weir_group_register(group, channel, done);
    if (sync_and_release(done) < 0 || err < 0)
        return err < 0 ? err : -EIO;
    return write_chunk(channel, client);
}

/* The server may need some time to start. */
static int connect_client(weir_group *group, struct client *client, weir_promise **ret_connecting)
{
    for (;;) {
        int err =
            weir_client_connect(WEIR_CLIENT_OPTIONS(.group = group, .address = "10.0.0.1:8007",
                                                    .init = init_client, .user_data = client),
                                ret_connecting);

        if (err == 0)
            err = weir_promise_sync(*ret_connecting, WEIR_NEVER);
        if (err != -ECONNREFUSED)
            return err;
        weir_promise_release(*ret_connecting);
        *ret_connecting = NULL;
        weir_sim_sleep(weir_ms(10));
    }
}

static int upload(weir_group *group, struct client *client)
{
    weir_promise *connecting = NULL;
    weir_channel *channel = NULL;
    int err = connect_client(group, client, &connecting);

    if (err == 0)
        channel = weir_promise_value(connecting);
    for (unsigned i = 0; i < CHUNKS && err == 0; i++)
        err = weir_sim_random(weir_sim_current(), 4) == 0 ? move(group, channel, client)
                                                          : write_chunk(channel, client);
    if (err == 0) {
        weir_channel_shutdown_output(channel, NULL);
        err = weir_promise_sync(weir_channel_closed(channel), WEIR_NEVER);
    }
    weir_promise_release(connecting);
    return err;
}

static int upload_main(void *arg)
{
    struct client *client = arg;
    struct upload answer = {0};
    weir_group *group = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 3), &group);

    if (err == 0)
        err = upload(group, client);
    sim_end_group(group);
    memcpy(&answer, client->answer, sizeof(answer));
    if (err == 0 && (client->answer_length != sizeof(answer) || answer.length != client->sent))
        weir_sim_fail(weir_sim_current(), "the server has received %llu of %llu bytes",
                      (unsigned long long)answer.length, (unsigned long long)client->sent);
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *server_host, *client_host;
    weir_sim_process *server, *uploads[CONNECTIONS] = {NULL};
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);

    memset(clients, 0, sizeof(clients));
    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &client_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, arg, &server);
    if (err < 0)
        return err;
    weir_sim_sleep(weir_ms(5));
    for (unsigned i = 0; i < CONNECTIONS && err == 0; i++)
        err = weir_sim_start(client_host, "client", upload_main, &clients[i], &uploads[i]);
    for (unsigned i = 0; i < CONNECTIONS && err == 0; i++)
        err = weir_sim_join(uploads[i]);
    weir_sim_signal(server, SIGTERM);
    return err < 0 ? err : weir_sim_join(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    if (seed % 2 == 0)
        options->network.socket_buffer = 4096;
    sim_draw_rates(seed,
                   SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                       SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED),
                   options);
}

SIM_PROGRAM(streams, "uploads that move between loops, and half closes", configure, run)
