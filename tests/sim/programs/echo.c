/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP echo with impatient clients: of 20 connections some close early, reset, half-close, stop
 * reading for a while or time out. Every byte that comes back is the right one; a client that
 * behaves gets all its answers unless a fault explains the loss.
 */
#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define CONNECTIONS 20
#define MESSAGES 5
#define SIZE 64
#define TOTAL (MESSAGES * SIZE)
#define FLOOD_TOTAL 6000 /* of a client that stops reading, with small socket buffers */
#define HIGH_MARK 2048
#define PATIENCE_NS weir_seconds(3)
#define CALM_AFTER 3
#define MAX_WAITS 50

enum {
    PATIENT,     /* waits for each answer, then closes */
    HALF_CLOSER, /* sends everything, half-closes, reads until the end */
    STALLER,     /* sends much, reads nothing for a while, then everything */
    EARLY,       /* closes with answers outstanding */
    RESETTER,    /* resets with answers outstanding */
    TIMER,       /* closes at a random time */
    BEHAVIOURS,
};

/* Faults that break a connection, or an operation of a client. */
#define BREAKING (SIM_SCARCITY | SIM_KIND(RESET) | SIM_KIND(DEATH))

static bool is_rough; /* drawn by `configure` */

/* ---- the server ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_channel_pending_bytes(weir_ctx_channel(ctx)) > 2 * HIGH_MARK + 4096)
        weir_sim_fail(weir_sim_current(), "the server holds %lld bytes for a client",
                      (long long)weir_channel_pending_bytes(weir_ctx_channel(ctx)));
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &echo);
}

static int server_main(void *arg)
{
    (void)arg;
    return sim_serve_stubbornly(
        "0.0.0.0:8007", 2, init_child, NULL,
        is_rough ? WEIR_CHANNEL_OPTIONS(.high_mark = HIGH_MARK, .low_mark = HIGH_MARK / 2,
                                        .receive_initial = 512, .receive_max = 1024)
                 : NULL);
}

/* ---- the clients ---- */

struct run {
    weir_promise *done;
    weir_group *group;
    unsigned count, left;
};

struct client {
    struct run *run;
    weir_timer timer;
    weir_timer patience;
    unsigned number, behaviour;
    unsigned total, sent, received;
    unsigned waits;
    unsigned leaves_at; /* EARLY, RESETTER: after this number of answers */
    bool has_left;      /* on purpose */
    bool saw_end;
};

static void leave(weir_ctx *ctx, struct client *client)
{
    client->has_left = true;
    weir_close(ctx, NULL);
}

static void reset(weir_ctx *ctx, struct client *client)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    weir_channel_options options;

    client->has_left = true;
    weir_channel_get_options(channel, &options);
    options.reset_on_close = true;
    (void)weir_channel_set_options(channel, &options); /* without memory it is an ordinary end */
    weir_channel_abort(channel, NULL);
}

static void send_some(weir_ctx *ctx, struct client *client, unsigned length)
{
    if (sim_write_bytes(ctx, client->number, client->sent, length) < 0) {
        leave(ctx, client);
        return;
    }
    client->sent += length;
    weir_flush(ctx);
}

static void send_all(weir_ctx *ctx, struct client *client)
{
    while (client->sent < client->total && !client->has_left) {
        unsigned left = client->total - client->sent, piece = 1 + sim_below(1000);

        send_some(ctx, client, piece < left ? piece : left);
    }
}

static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    if (((struct client *)weir_ctx_state(ctx))->behaviour == STALLER)
        weir_ctx_set_auto_read(ctx, true);
    else
        leave(ctx, weir_ctx_state(ctx));
}

/* A server that died behind a partition never answers again. */
static void on_patience(weir_ctx *ctx, weir_timer *timer)
{
    struct client *client = weir_ctx_state(ctx);

    if (sim_faults(BREAKING) == 0) {
        if (++client->waits == CALM_AFTER) /* TCP sends again once in a minute */
            weir_sim_calm(weir_sim_current(), true);
        if (client->waits < MAX_WAITS &&
            weir_ctx_timer_start(ctx, timer, PATIENCE_NS, on_patience) == 0)
            return;
        weir_sim_fail(weir_sim_current(), "client %u (%u) has waited too long", client->number,
                      client->behaviour);
    }
    client->has_left = true;
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void client_active(weir_ctx *ctx)
{
    struct client *client = weir_ctx_state(ctx);

    if (is_rough && weir_ctx_timer_start(ctx, &client->patience, PATIENCE_NS, on_patience) < 0)
        leave(ctx, client);
    switch (client->behaviour) {
    case HALF_CLOSER:
        send_all(ctx, client);
        weir_shutdown_output(ctx, NULL);
        break;
    case STALLER:
        weir_ctx_set_auto_read(ctx, false);
        if (weir_ctx_timer_start(ctx, &client->timer, sim_delay(weir_ms(40)), on_timer) < 0)
            weir_ctx_set_auto_read(ctx, true);
        send_all(ctx, client);
        break;
    case TIMER:
        (void)weir_ctx_timer_start(ctx, &client->timer, sim_delay(weir_ms(5)), on_timer);
        send_some(ctx, client, SIZE);
        break;
    case EARLY:
    case RESETTER:
        send_all(ctx, client);
        break;
    default:
        send_some(ctx, client, SIZE);
    }
}

static void client_read(weir_ctx *ctx, weir_msg *msg)
{
    struct client *client = weir_ctx_state(ctx);

    client->received += (unsigned)sim_check_bytes(msg, client->number, client->received, "echo");
    weir_msg_release(msg);
    if (client->received > client->sent)
        weir_sim_fail(weir_sim_current(), "received %u of %u bytes", client->received,
                      client->sent);
    if (client->has_left)
        return;
    if (client->behaviour == RESETTER && client->received >= client->leaves_at)
        reset(ctx, client);
    else if (client->behaviour == EARLY && client->received >= client->leaves_at)
        leave(ctx, client);
    else if (client->received == client->total && client->behaviour != HALF_CLOSER)
        leave(ctx, client);
    else if (client->received == client->sent && client->sent < client->total)
        send_some(ctx, client, SIZE);
}

static void client_event(weir_ctx *ctx, weir_msg *event)
{
    struct client *client = weir_ctx_state(ctx);

    if (event == weir_event_input_closed()) {
        client->saw_end = true;
        leave(ctx, client);
    }
    weir_msg_release(event);
}

/* A fault closes it, nothing else. */
static void client_inactive(weir_ctx *ctx)
{
    const struct client *client = weir_ctx_state(ctx);

    if (client->behaviour > STALLER || sim_faults(BREAKING) > 0)
        return;
    if (client->received < client->total)
        weir_sim_fail(weir_sim_current(), "client %u (%u) got %u of %u bytes", client->number,
                      client->behaviour, client->received, client->total);
    if (client->behaviour == HALF_CLOSER && !client->saw_end)
        weir_sim_fail(weir_sim_current(), "client %u saw no end", client->number);
}

static void client_error(weir_ctx *ctx, int err, const char *detail)
{
    const struct client *client = weir_ctx_state(ctx);

    (void)detail;
    if (!client->has_left && sim_faults(BREAKING) == 0)
        weir_sim_fail(weir_sim_current(), "client %u (%u): %s", client->number, client->behaviour,
                      weir_error_text(err));
    weir_close(ctx, NULL);
}

static const weir_handler client_handler = {
    .name = "client",
    .state_size = sizeof(struct client),
    .active = client_active,
    .read = client_read,
    .event = client_event,
    .inactive = client_inactive,
    .error = client_error,
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
    struct run *run = user_data;
    struct client *client;
    int err = sim_add(channel, &client_handler);

    if (err < 0)
        return err;
    client = weir_ctx_state(weir_pipeline_find(weir_channel_pipeline(channel), "client"));
    client->run = run;
    client->number = run->count++;
    client->behaviour = is_rough ? sim_below(BEHAVIOURS) : PATIENT;
    client->total = client->behaviour == STALLER ? FLOOD_TOTAL : TOTAL;
    client->leaves_at = 1 + sim_below(TOTAL);
    return 0;
}

/* On the loop. */
static void on_connected(weir_promise *connecting, void *user_data)
{
    weir_channel *channel = weir_promise_value(connecting);
    weir_promise *closed = channel != NULL ? weir_channel_closed(channel) : NULL;

    if (channel == NULL && sim_faults(BREAKING | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP)) == 0)
        weir_sim_fail(weir_sim_current(), "no connection: %s", weir_promise_detail(connecting));
    if (closed != NULL && weir_promise_add_listener(closed, on_closed, user_data) == 0)
        return;
    if (channel != NULL)
        weir_channel_abort(channel, NULL);
    on_closed(NULL, user_data);
}

static int connect_one(struct run *run)
{
    weir_promise *connecting = NULL;
    int err = weir_client_connect(
        WEIR_CLIENT_OPTIONS(.group = run->group, .address = "10.0.0.1:8007", .init = init_client,
                            .user_data = run,
                            .options = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
        &connecting);

    if (err == 0)
        err = weir_promise_add_listener(connecting, on_connected, run);
    weir_promise_release(connecting);
    return err;
}

static int client_main(void *arg)
{
    struct run run = {.left = CONNECTIONS};
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &run.group);

    (void)arg;
    if (err == 0)
        err = weir_promise_create(NULL, &run.done);
    for (unsigned i = 0; i < CONNECTIONS && err == 0; i++) {
        if (is_rough && sim_once_in(4))
            weir_sim_sleep(sim_delay(weir_ms(30)));
        err = connect_one(&run);
        if (err < 0 && sim_excuse(err) == 0) {
            err = 0;
            on_closed(NULL, &run);
        }
    }
    if (err == 0)
        err = weir_promise_sync(run.done, WEIR_NEVER);
    sim_end_group(run.group);
    weir_promise_release(run.done);
    return sim_excuse(err);
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *server_host, *client_host;
    weir_sim_process *server = NULL, *client;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);

    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2", &client_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, arg, &server);
    if (err == 0 && is_rough)
        weir_sim_restart(server, weir_ms(2));
    if (err == 0)
        sim_await_listener(server_host, server);
    if (err == 0)
        err = weir_sim_start(client_host, "client", client_main, arg, &client);
    if (err == 0)
        err = weir_sim_join(client);
    return err < 0 ? err : sim_stop(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    uint32_t kinds = SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                     SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED);

    is_rough = seed % 4 != 0;
    if (is_rough) {
        kinds |= SIM_SCARCITY | SIM_KIND(RESET) | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) |
                 SIM_KIND(DEATH) | SIM_KIND(CLOCK_STEP);
        options->network.socket_buffer = 1024;
        options->max_outage_ns = weir_ms(500);
    }
    sim_draw_rates(seed, kinds, options);
}

SIM_PROGRAM(echo, "TCP echo with impatient clients", configure, run)
