/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small messages, then bulk, to a server that is slow or stops reading. So a loop on io_uring first
 * receives into its ring, and has to go back to polls with data under way. Every byte arrives, in
 * order, and what waits in the loop is bounded (sim/uring.c checks it).
 */
#include <errno.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define CONNECTIONS 3
#define SMALL_MAX 12
#define SMALL_SIZE 100
#define PIECE 5000
#define TOTAL_MAX 80000
#define MUCH 400000 /* more than a ring has buffers for */
#define HIGH_MARK (64 * 1024)

struct client {
    unsigned number;
    unsigned small_left;
    unsigned total, sent, received; /* received: by the server */
    bool has_ended;                 /* the server has seen the end */
};

static struct client clients[CONNECTIONS];
static int reads_per_turn;
static int64_t max_work_ns; /* of the server, for a read */
static bool is_much;        /* drawn by `configure` */

/* ---- the server ---- */

struct upload {
    struct client *client; /* NULL until the first byte */
    weir_timer timer;
};

static void on_pause_over(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir_ctx_set_auto_read(ctx, true);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct upload *upload = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);

    if (upload->client == NULL) {
        upload->client = &clients[weir_buf_bytes(buf)[0] % CONNECTIONS];
        weir_buf_skip(buf, 1);
    }
    upload->client->received +=
        (unsigned)sim_check_bytes(msg, upload->client->number, upload->client->received, "bulk");
    weir_msg_release(msg);
    (void)sim_write_bytes(ctx, upload->client->number, 0, 1);
    if (max_work_ns > 0 && sim_once_in(2))
        weir_sim_sleep(sim_delay(max_work_ns));
    if (sim_once_in(32)) {
        weir_ctx_set_auto_read(ctx, false);
        (void)weir_ctx_timer_start(ctx, &upload->timer, sim_delay(weir_ms(5)), on_pause_over);
    }
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const struct upload *upload = weir_ctx_state(ctx);

    if (event == weir_event_input_closed() && upload->client != NULL) {
        upload->client->has_ended = true;
        weir_close(ctx, NULL);
    }
    weir_msg_release(event);
}

static const weir_handler receiver = {
    .name = "receiver",
    .state_size = sizeof(struct upload),
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &receiver);
}

static int server_main(void *arg)
{
    (void)arg;
    return sim_serve_stubbornly(
        "0.0.0.0:8007", 2, init_child, NULL,
        WEIR_CHANNEL_OPTIONS(.half_closure = true, .reads_per_turn = reads_per_turn));
}

/* ---- the clients ---- */

static void send_piece(weir_ctx *ctx, struct client *client, unsigned length)
{
    unsigned left = client->total - client->sent;

    length = length < left ? length : left;
    if (sim_write_bytes(ctx, client->number, client->sent, length) == 0)
        client->sent += length;
    else
        weir_close(ctx, NULL);
}

static void send_bulk(weir_ctx *ctx, struct client *client)
{
    while (client->sent < client->total && weir_ctx_is_writable(ctx))
        send_piece(ctx, client, 1 + sim_below(PIECE));
    if (client->sent == client->total)
        weir_channel_shutdown_output(weir_ctx_channel(ctx), NULL);
    weir_flush(ctx);
}

/* The next small message follows an answer, so that the server reads each one by itself. */
static void go_on(weir_ctx *ctx, struct client *client)
{
    if (client->small_left == 0) {
        send_bulk(ctx, client);
        return;
    }
    client->small_left--;
    send_piece(ctx, client, 1 + sim_below(SMALL_SIZE));
    weir_flush(ctx);
}

static struct client *client_of(weir_ctx *ctx)
{
    return *(struct client **)weir_ctx_state(ctx);
}

static void client_active(weir_ctx *ctx)
{
    struct client *client = client_of(ctx);
    uint8_t number = (uint8_t)client->number;
    weir_buf *buf;

    if (weir_buf_create(1, 0, &buf) < 0) {
        weir_close(ctx, NULL);
        return;
    }
    (void)weir_buf_write_bytes(buf, &number, 1);
    weir_write(ctx, weir_buf_msg(buf), NULL);
    go_on(ctx, client);
}

static void client_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    if (client_of(ctx)->sent < client_of(ctx)->total)
        go_on(ctx, client_of(ctx));
}

static void client_writability(weir_ctx *ctx)
{
    struct client *client = client_of(ctx);

    if (weir_ctx_is_writable(ctx) && client->small_left == 0 && client->sent < client->total)
        send_bulk(ctx, client);
}

static const weir_handler client_handler = {
    .name = "client",
    .state_size = sizeof(struct client *),
    .active = client_active,
    .read = client_read,
    .writability = client_writability,
};

static int init_client(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = sim_add(channel, &client_handler);

    if (err == 0)
        *(struct client **)weir_ctx_state(weir_pipeline_find(pipeline, "client")) = user_data;
    return err;
}

static int upload(weir_group *group, struct client *client)
{
    weir_promise *connecting = NULL, *closed = NULL;
    int err = weir_client_connect(
        WEIR_CLIENT_OPTIONS(.group = group, .address = "10.0.0.1:8007", .init = init_client,
                            .user_data = client,
                            .options = WEIR_CHANNEL_OPTIONS(.high_mark = HIGH_MARK,
                                                            .low_mark = HIGH_MARK / 2)),
        &connecting);

    if (err == 0)
        err = weir_promise_sync(connecting, WEIR_NEVER);
    if (err == 0 && (closed = weir_channel_closed(weir_promise_value(connecting))) == NULL)
        err = -ENOMEM;
    if (err == 0)
        err = weir_promise_sync(closed, WEIR_NEVER);
    weir_promise_release(connecting);
    return err;
}

static int client_main(void *arg)
{
    struct client *client = arg;
    weir_group *group = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &group);

    if (err == 0)
        err = upload(group, client);
    sim_end_group(group);
    if (sim_faults(SIM_SCARCITY) == 0 &&
        (err < 0 || client->received != client->total || !client->has_ended))
        weir_sim_fail(weir_sim_current(), "client %u: the server has read %u of %u bytes: %s",
                      client->number, client->received, client->total, weir_error_text(err));
    return 0;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *hosts[2];
    weir_sim_process *server = NULL, *processes[CONNECTIONS] = {NULL};
    int err = sim_create_hosts(sim, hosts, 2);

    for (unsigned i = 0; i < CONNECTIONS; i++)
        clients[i] = (struct client){
            .number = i,
            .small_left = sim_below(SMALL_MAX + 1),
            .total = SMALL_MAX * SMALL_SIZE + sim_below(is_much ? MUCH : TOTAL_MAX),
        };
    reads_per_turn = sim_once_in(2) ? 0 : 1 + (int)sim_below(4);
    max_work_ns = sim_once_in(4) ? 0 : sim_delay(weir_us(500));
    if (err == 0)
        err = weir_sim_start(hosts[0], "server", server_main, arg, &server);
    if (err == 0)
        sim_await_listener(hosts[0], server);
    for (unsigned i = 0; i < CONNECTIONS && err == 0; i++)
        err = weir_sim_start(hosts[1], "client", client_main, &clients[i], &processes[i]);
    for (unsigned i = 0; i < CONNECTIONS && err == 0; i++)
        err = weir_sim_join(processes[i]);
    return err < 0 ? err : sim_stop(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed,
                   SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                       SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED) | SIM_SCARCITY,
                   options);
    is_much = seed % 4 == 0;
    if (is_much)
        options->network.socket_buffer = MUCH;
}

SIM_PROGRAM(bulk, "small messages, then bulk, to a server that is slow or stops reading", configure,
            run)
