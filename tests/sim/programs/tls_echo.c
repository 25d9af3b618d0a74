/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS echo: handshakes, full and resumed, data both ways, and both kinds of an end.
 *
 * A connection begins with the number of bytes that the client will send. The server echoes them,
 * ends with close_notify after the client's, and aborts if anything fails. So an end with
 * close_notify is the end of all bytes, on both sides; every other end is an error.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/tls.h>

#include "sim/programs/openssl_random.h"
#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define ADDRESS "10.0.0.1:443"
#define NAME "sim.weir"
#define CLIENTS 2
#define CONNECTIONS 2 /* of a client */
#define HEADER 8
#define BYTES_MAX 20000
#define PIECE_MAX 5000
#define PATIENCE_NS weir_seconds(5)
#define TRIES 100

/* Ed25519: signatures have one length. Valid from 2020 to 2120. */
static const char certificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBHTCB0KADAgECAgEBMAUGAytlcDATMREwDwYDVQQDDAhzaW0ud2VpcjAgFw0y\n"
    "MDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowEzERMA8GA1UEAwwIc2ltLndl\n"
    "aXIwKjAFBgMrZXADIQCu+j7p3aQLtOWC3EjWf8kPPEBREARZKUc33rT68EB+OqNH\n"
    "MEUwEwYDVR0RBAwwCoIIc2ltLndlaXIwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4E\n"
    "FgQUK0Gvt5Cr9hrZbLd59jmVVxIrLvUwBQYDK2VwA0EAoRKhXkhLHe3Sroq6t0GT\n"
    "8L9tK2CDP7IqHF2eE4nSGodXg3B2BGaRCkzHvzRQj6AMpKC8dasUCJYOHzi9zaJW\n"
    "Cg==\n"
    "-----END CERTIFICATE-----\n";

static const char key[] = "-----BEGIN PRIVATE KEY-----\n"
                          "MC4CAQAwBQYDK2VwBCIEIF5ERsdYfVDfZtVk3j5Ytn31bkn4bwVtgtRG606FC0Xm\n"
                          "-----END PRIVATE KEY-----\n";

static struct {
    bool offloads;                 /* the server's handshakes */
    enum weir_tls_version version; /* at most */
    int64_t peer_close_ns;
    unsigned completed, resumed; /* connections of clients */
    unsigned ids;
} world;

static unsigned draw(unsigned limit)
{
    return (unsigned)weir_sim_random(weir_sim_current(), limit);
}

static uint8_t byte_at(unsigned id, size_t position)
{
    return (uint8_t)(id * 59 + position * 3 + (position >> 8));
}

/* ---- the server ---- */

struct session {
    size_t received, expected;
    char header[HEADER];
    unsigned id;
};

struct server {
    weir_tls_context *tls;
    weir_group *offload;
};

/* The header is "id total", 3 and 5 digits. */
static void check_bytes(struct session *session, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        size_t position = session->received++;

        if (position < HEADER) {
            session->header[position] = (char)bytes[i];
            if (position == HEADER - 1) {
                session->expected = strtoul(session->header + 3, NULL, 10);
                session->header[3] = '\0';
                session->id = (unsigned)atoi(session->header);
            }
        } else if (bytes[i] != byte_at(session->id, position)) {
            weir_sim_fail(weir_sim_current(), "the server got a wrong byte at %zu", position);
            return;
        }
    }
}

static void server_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    check_bytes(weir_ctx_state(ctx), weir_buf_bytes(buf), weir_buf_readable(buf));
    weir_write(ctx, msg, NULL);
}

static void server_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void server_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static void server_event(weir_ctx *ctx, weir_msg *event)
{
    const struct session *session = weir_ctx_state(ctx);

    if (event == weir_event_tls_closed() && session->received != session->expected)
        weir_sim_fail(weir_sim_current(), "the client's stream ended cleanly after %zu of %zu",
                      session->received, session->expected);
    if (event == weir_event_input_closed())
        weir_close(ctx, NULL);
    weir_fire_event(ctx, event);
}

static void server_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static const weir_handler echo = {
    .name = "echo",
    .state_size = sizeof(struct session),
    .read = server_read,
    .read_complete = server_read_complete,
    .writability = server_writability,
    .event = server_event,
    .error = server_error,
};

static int init_session(weir_channel *channel, void *user_data)
{
    const struct server *server = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = sim_watch(pipeline);

    if (err == 0)
        err = weir_tls_add_with(pipeline, server->tls,
                                WEIR_TLS_OPTIONS(.handshake_timeout_ns = weir_seconds(2),
                                                 .peer_close_timeout_ns = world.peer_close_ns,
                                                 .offload = server->offload));
    return err < 0 ? err : weir_pipeline_add_last(pipeline, &echo, NULL);
}

static int run_server(struct server *self, weir_group *workers)
{
    weir_server *server = NULL;
    int err = weir_server_start(
        WEIR_SERVER_OPTIONS(.boss = workers, .workers = workers, .address = ADDRESS,
                            .init_child = init_session, .user_data = self,
                            .child_options = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
        &server);

    if (err == 0)
        err = weir_server_run(server);
    if (err < 0 && server != NULL)
        (void)weir_server_stop(server, 0, weir_seconds(10));
    weir_server_release(server);
    return err;
}

static int serve(void)
{
    struct server self = {.tls = NULL};
    weir_group *workers = NULL;
    int err = weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = certificate,
                                                              .key_pem = key,
                                                              .max_version = world.version),
                                     &self.tls);

    if (err == 0)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "server", .threads = 2), &workers);
    if (err == 0 && world.offloads)
        err = weir_group_create(
            WEIR_GROUP_OPTIONS(.name = "offload", .threads = 1, .io = WEIR_IO_NONE), &self.offload);
    if (err == 0)
        err = run_server(&self, workers);
    weir_group_release(workers);
    sim_end_group(self.offload);
    weir_tls_context_release(self.tls);
    return err;
}

static int server_main(void *arg)
{
    int err = 0;

    (void)arg;
    for (int tries = 0; tries < TRIES; tries++) {
        err = serve();
        if (err == 0 || weir_sim_is_dying())
            break;
        weir_sim_sleep(weir_ms(20));
    }
    return err;
}

/* ---- the clients ---- */

struct connection {
    unsigned id;
    size_t total, sent, received;
    bool has_handshake, is_resumed;
    bool has_closed; /* by us */
    bool is_clean;   /* the end of the server's stream */
    bool is_cut_off;
    bool shuts_output; /* ends its stream by a half closure, else by a close after the echo */
    int err;
};

struct state {
    struct connection *connection;
};

static struct connection *connection_of(weir_ctx *ctx)
{
    return ((struct state *)weir_ctx_state(ctx))->connection;
}

static void fill(const struct connection *connection, uint8_t *bytes, size_t length)
{
    char header[HEADER + 1];

    (void)snprintf(header, sizeof(header), "%03u%05u", connection->id % 1000,
                   (unsigned)(connection->total % 100000));
    for (size_t i = 0; i < length; i++) {
        size_t position = connection->sent + i;

        bytes[i] =
            position < HEADER ? (uint8_t)header[position] : byte_at(connection->id, position);
    }
}

/* Sends as long as the channel takes it. */
static void send_more(weir_ctx *ctx)
{
    struct connection *connection = connection_of(ctx);
    uint8_t bytes[PIECE_MAX];

    while (connection->sent < connection->total && weir_ctx_is_writable(ctx)) {
        size_t length = 1 + draw(PIECE_MAX);
        weir_buf *buf;

        if (length > connection->total - connection->sent)
            length = connection->total - connection->sent;
        fill(connection, bytes, length);
        if (weir_buf_create_from(bytes, length, &buf) < 0) {
            weir_channel_abort(weir_ctx_channel(ctx), NULL);
            return;
        }
        connection->sent += length;
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    }
    if (connection->sent == connection->total && connection->shuts_output &&
        !connection->has_closed) {
        connection->has_closed = true;
        weir_shutdown_output(ctx, NULL);
    }
}

static void client_active(weir_ctx *ctx)
{
    send_more(ctx); /* waits for the handshake */
    weir_fire_active(ctx);
}

static void client_writability(weir_ctx *ctx)
{
    if (weir_ctx_is_writable(ctx))
        send_more(ctx);
}

static void client_read(weir_ctx *ctx, weir_msg *msg)
{
    struct connection *connection = connection_of(ctx);
    weir_buf *buf = weir_buf_of(msg);
    const uint8_t *bytes = weir_buf_bytes(buf);

    if (!connection->has_handshake || connection->is_clean)
        weir_sim_fail(weir_sim_current(), "bytes %s",
                      connection->is_clean ? "behind close_notify" : "before the handshake");
    for (size_t i = 0; i < weir_buf_readable(buf); i++, connection->received++)
        if (connection->received >= HEADER &&
            bytes[i] != byte_at(connection->id, connection->received))
            weir_sim_fail(weir_sim_current(), "a wrong byte at %zu", connection->received);
    weir_msg_release(msg);
    if (connection->received > connection->sent)
        weir_sim_fail(weir_sim_current(), "more bytes than were sent");
    if (connection->received == connection->total && !connection->has_closed) {
        connection->has_closed = true;
        weir_shutdown_output(ctx, NULL);
    }
}

static void client_event(weir_ctx *ctx, weir_msg *event)
{
    struct connection *connection = connection_of(ctx);
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    if (handshake != NULL) {
        if (connection->has_handshake)
            weir_sim_fail(weir_sim_current(), "two handshakes");
        connection->has_handshake = true;
        connection->err = weir_tls_handshake_result(handshake);
        connection->is_resumed = weir_tls_handshake_is_resumed(handshake);
        weir_sim_note(weir_sim_current(), "%u: handshake %d %s%s", connection->id, connection->err,
                      weir_tls_handshake_version(handshake),
                      connection->is_resumed ? " resumed" : "");
    }
    if (event == weir_event_tls_closed())
        connection->is_clean = true;
    if (event == weir_event_input_closed())
        weir_close(ctx, NULL);
    weir_fire_event(ctx, event);
}

static void client_error(weir_ctx *ctx, int err, const char *detail)
{
    struct connection *connection = connection_of(ctx);

    weir_sim_note(weir_sim_current(), "%u: %s", connection->id,
                  detail != NULL ? detail : weir_error_text(err));
    if (err == WEIR_ECUTOFF)
        connection->is_cut_off = true;
    connection->err = err;
    weir_channel_abort(weir_ctx_channel(ctx), NULL); /* no close_notify: bytes may be missing */
}

static const weir_handler client_handler = {
    .name = "client",
    .state_size = sizeof(struct state),
    .active = client_active,
    .writability = client_writability,
    .read = client_read,
    .event = client_event,
    .error = client_error,
};

struct client {
    weir_tls_context *tls;
    weir_group *group;
    struct connection connection; /* the current one */
};

static int init_client(weir_channel *channel, void *user_data)
{
    struct client *client = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    weir_ctx *ctx;
    int err = sim_watch(pipeline);

    if (err == 0)
        err = weir_tls_add_with(
            pipeline, client->tls,
            WEIR_TLS_OPTIONS(.server_name = NAME, .handshake_timeout_ns = weir_seconds(2)));
    if (err == 0)
        err = weir_pipeline_add_last(pipeline, &client_handler, NULL);
    ctx = err == 0 ? weir_pipeline_find(pipeline, "client") : NULL;
    if (ctx != NULL)
        ((struct state *)weir_ctx_state(ctx))->connection = &client->connection;
    return err;
}

static void check_end(const struct connection *connection)
{
    weir_sim *sim = weir_sim_current();

    weir_sim_note(sim, "%u ends: %zu of %zu, %s", connection->id, connection->received,
                  connection->total,
                  connection->is_clean     ? "clean"
                  : connection->is_cut_off ? "cut off"
                                           : "lost");
    if (connection->is_clean && connection->is_cut_off)
        weir_sim_fail(sim, "a stream that is clean and cut off");
    if (connection->is_clean && connection->received != connection->total)
        weir_sim_fail(sim, "the server's stream ended cleanly after %zu of %zu bytes",
                      connection->received, connection->total);
    if (connection->is_clean) {
        world.completed++;
        world.resumed += connection->is_resumed;
    }
}

static void talk(struct client *client)
{
    weir_channel *channel = NULL;
    int err;

    client->connection =
        (struct connection){.id = ++world.ids % 1000, .total = HEADER + draw(BYTES_MAX)};
    client->connection.shuts_output = draw(2) == 0;
    err = weir_client_connect_sync(
        WEIR_CLIENT_OPTIONS(.group = client->group, .address = ADDRESS, .init = init_client,
                            .user_data = client,
                            .options = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
        &channel);
    if (err < 0) {
        weir_sim_sleep(weir_ms(20));
        return;
    }
    if (weir_channel_await_closed(channel, PATIENCE_NS) < 0) {
        weir_channel_abort(channel, NULL);
        while (weir_channel_await_closed(channel, PATIENCE_NS) < 0)
            continue; /* no memory to wait */
    }
    weir_channel_release(channel);
    check_end(&client->connection);
}

static int create_client(struct client *client)
{
    int err = -ENOMEM;

    for (int tries = 0; tries < TRIES && err < 0; tries++) {
        if (tries > 0)
            weir_sim_sleep(weir_ms(10));
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &client->group);
        if (err < 0)
            continue;
        err = weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = certificate), &client->tls);
        if (err < 0)
            sim_end_group(client->group);
    }
    return err;
}

static int client_main(void *arg)
{
    struct client client = {.tls = NULL};
    bool is_final = arg != NULL;
    unsigned completed = world.completed, resumed = world.resumed;
    int err = create_client(&client);

    if (err < 0)
        return err;
    for (unsigned i = 0; i < (is_final ? 2 : CONNECTIONS); i++) {
        talk(&client);
        if (draw(2) == 0)
            weir_sim_sleep((int64_t)draw((unsigned)weir_ms(10)));
    }
    if (is_final && (world.completed != completed + 2 || world.resumed != resumed + 1))
        weir_sim_fail(weir_sim_current(),
                      "without faults %u of 2 connections completed, %u resumed",
                      world.completed - completed, world.resumed - resumed);
    sim_end_group(client.group);
    weir_tls_context_release(client.tls);
    return 0;
}

/* ---- the world ---- */

static int start_all(weir_sim *sim, weir_sim_process **server, weir_sim_process **clients,
                     weir_sim_host **ret_host)
{
    weir_sim_host *hosts[CLIENTS + 1] = {0};
    int err = sim_create_hosts(sim, hosts, CLIENTS + 1);
    if (err == 0)
        err = weir_sim_start(hosts[0], "server", server_main, NULL, server);
    if (err < 0)
        return err;
    weir_sim_restart(*server, weir_ms(10) + (int64_t)draw((unsigned)weir_ms(40)));
    weir_sim_sleep(weir_ms(2));
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_start(hosts[i + 1], "client", client_main, NULL, &clients[i]);
    *ret_host = hosts[1];
    return err;
}

static int run_world(weir_sim *sim)
{
    weir_sim_process *server, *clients[CLIENTS], *final;
    weir_sim_host *host;
    int err = start_all(sim, &server, clients, &host);

    for (unsigned kills = draw(3); kills > 0 && err == 0; kills--) {
        weir_sim_sleep((int64_t)draw((unsigned)weir_ms(10)));
        weir_sim_kill(server);
    }
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_join(clients[i]);
    weir_sim_calm(sim, true);
    weir_sim_sleep(weir_seconds(1)); /* the server is started again */
    if (err == 0)
        err = weir_sim_start(host, "final", client_main, &world, &final);
    if (err == 0)
        err = weir_sim_join(final);
    weir_sim_signal(server, SIGTERM);
    return err == 0 ? weir_sim_join(server) : err;
}

static int run(weir_sim *sim, void *arg)
{
    int err;

    (void)arg;
    memset(&world, 0, sizeof(world));
    world.offloads = draw(3) == 0;
    world.version = draw(3) == 0 ? WEIR_TLS_VERSION_1_2 : WEIR_TLS_VERSION_DEFAULT;
    world.peer_close_ns = draw(2) == 0 ? 0 : weir_ms(100);
    sim_openssl_random_begin();
    err = run_world(sim);
    sim_openssl_random_end();
    return err;
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed, SIM_TCP_KINDS, options);
    options->max_outage_ns = weir_ms(500);
}

SIM_PROGRAM(tls_echo, "TLS echo", configure, run)
