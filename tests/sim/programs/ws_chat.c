/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket chat: the server sends each message to all members of the room.
 *
 * A message carries its sender, its number and its length, and the rest is a function of these. On
 * each connection the messages of a sender arrive whole, in order and without gaps. Each connection
 * that was opened reports its end once, with a code that makes sense. In the end, without faults, a
 * peer that vanished is noticed by its silence, and a server that drains closes with 1001.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/channel_group.h>
#include <weir/websocket.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define URL "ws://10.0.0.1:80/chat"
#define CLIENTS 3
#define MESSAGES 5 /* of a client */
#define CONNECTIONS_MAX 128
#define HEADER 21
#define LENGTH_MAX 8000
#define PING_NS weir_ms(300)
#define TRIES 100

static struct {
    unsigned connections; /* of clients */
    bool deflates[2];     /* server, client */
    unsigned open_sessions, open_clients;
    unsigned going_away; /* clients that were closed with 1001 */
    bool came_back;      /* the server: it could not be run for want of memory, and drained */
    unsigned received;   /* by clients */
} world;

static unsigned draw(unsigned limit)
{
    return (unsigned)weir_sim_random(weir_sim_current(), limit);
}

/* ---- messages ---- */

static char letter_at(unsigned sender, unsigned number, size_t position)
{
    return (char)('a' + (sender + number * 5 + position / 3) % 26);
}

static int create_message(unsigned sender, unsigned number, weir_ws_message **ret_message)
{
    char text[LENGTH_MAX + HEADER + 1];
    size_t length = HEADER + draw(draw(4) == 0 ? LENGTH_MAX : 200);

    (void)snprintf(text, sizeof(text), "%6u %6u %6u ", sender, number, (unsigned)length);
    for (size_t i = HEADER; i < length; i++)
        text[i] = letter_at(sender, number, i);
    return weir_ws_message_create_from(draw(2) == 0 ? WEIR_WS_TEXT : WEIR_WS_BINARY, text, length,
                                       ret_message);
}

static bool read_message(const char *text, size_t length, unsigned *ret_sender,
                         unsigned *ret_number)
{
    char header[HEADER + 1];
    unsigned total;

    if (length < HEADER)
        return false;
    memcpy(header, text, HEADER);
    header[HEADER] = '\0';
    if (sscanf(header, "%u %u %u", ret_sender, ret_number, &total) != 3 || total != length)
        return false;
    for (size_t i = HEADER; i < length; i++)
        if (text[i] != letter_at(*ret_sender, *ret_number, i))
            return false;
    return true;
}

/* ---- both ends of a connection ---- */

struct end {
    bool is_server;
    bool is_opened, is_closed;
    unsigned number;                    /* of a client's connection; 0 = not known yet */
    unsigned next[CONNECTIONS_MAX + 1]; /* message of each sender; 0 = any */
    size_t length;                      /* of the message that is being received in parts */
    char text[LENGTH_MAX + HEADER];
    weir_channel_group *room; /* of a server */
    struct end *link;         /* of all of a client */
};

struct state {
    struct end *end;
};

static void on_whole(const struct end *end, const char *text, size_t length, unsigned *next)
{
    weir_sim *sim = weir_sim_current();
    unsigned sender = 0, number = 0;

    if (!read_message(text, length, &sender, &number) || sender > CONNECTIONS_MAX) {
        weir_sim_fail(sim, "a damaged message of %zu bytes", length);
        return;
    }
    weir_sim_note(sim, "%s %u has message %u of %u", end->is_server ? "server of" : "client",
                  end->number, number, sender);
    if (next[sender] != 0 && next[sender] != number)
        weir_sim_fail(sim, "message %u of connection %u came instead of %u", number, sender,
                      next[sender]);
    next[sender] = number + 1;
}

static void on_part(struct end *end, const weir_ws_message *message)
{
    weir_span bytes = weir_ws_message_bytes(message);

    if (weir_ws_message_is_first(message))
        end->length = 0;
    if (end->length + bytes.length > sizeof(end->text)) {
        weir_sim_fail(weir_sim_current(), "a message that is too long");
        return;
    }
    if (bytes.length > 0)
        memcpy(end->text + end->length, bytes.data, bytes.length);
    end->length += bytes.length;
    if (weir_ws_message_is_last(message))
        on_whole(end, end->text, end->length, end->next);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct end *end = ((struct state *)weir_ctx_state(ctx))->end;
    const weir_ws_message *message = weir_ws_message_of(msg);

    if (!end->is_opened || end->is_closed)
        weir_sim_fail(weir_sim_current(), "a message %s",
                      end->is_closed ? "after the end" : "before the beginning");
    on_part(end, message);
    if (!end->is_server) {
        world.received++;
        weir_msg_release(msg);
        return;
    }
    weir_channel_group_write_and_flush(end->room, msg, NULL, NULL, NULL);
}

static void on_opened(weir_ctx *ctx, struct end *end, const weir_ws_opened *opened)
{
    if (end->is_opened)
        weir_sim_fail(weir_sim_current(), "opened twice");
    end->is_opened = true;
    if (opened->has_deflate && (!world.deflates[0] || !world.deflates[1]))
        weir_sim_fail(weir_sim_current(), "permessage-deflate that was not offered");
    if (end->is_server) {
        world.open_sessions++;
        if (weir_channel_group_add(end->room, weir_ctx_channel(ctx)) < 0)
            weir_channel_abort(weir_ctx_channel(ctx), NULL);
    } else {
        world.open_clients++;
    }
}

static void on_closed(struct end *end, const weir_ws_closed *closed)
{
    weir_sim *sim = weir_sim_current();

    weir_sim_note(sim, "%s %u closed: %u%s", end->is_server ? "server of" : "client", end->number,
                  closed->code, closed->is_clean ? " clean" : "");
    if (!end->is_opened || end->is_closed)
        weir_sim_fail(sim, "closed %s", end->is_closed ? "twice" : "before it was open");
    end->is_closed = true;
    if (closed->code != WEIR_WS_NORMAL && closed->code != WEIR_WS_GOING_AWAY &&
        closed->code != WEIR_WS_LOST && closed->code != WEIR_WS_INTERNAL_ERROR &&
        closed->code != WEIR_WS_NO_CODE && closed->code != 3000)
        weir_sim_fail(sim, "closed with code %u", closed->code);
    if (closed->code == WEIR_WS_LOST && closed->is_clean)
        weir_sim_fail(sim, "a lost connection was closed cleanly");
    if (closed->code == 3000 && end->is_server &&
        (closed->length != 4 || strcmp(closed->reason, "done") != 0))
        weir_sim_fail(sim, "closed for the reason \"%s\"", closed->reason);
    if (end->is_server) {
        world.open_sessions--;
    } else {
        world.open_clients--;
        world.going_away += closed->code == WEIR_WS_GOING_AWAY && closed->is_clean;
    }
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct end *end = ((struct state *)weir_ctx_state(ctx))->end;
    const weir_ws_opened *opened = weir_ws_opened_of(event);
    const weir_ws_closed *closed = weir_ws_closed_of(event);

    if (opened != NULL)
        on_opened(ctx, end, opened);
    else if (closed != NULL)
        on_closed(end, closed);
    weir_fire_event(ctx, event);
}

static void on_inactive(weir_ctx *ctx)
{
    const struct end *end = ((struct state *)weir_ctx_state(ctx))->end;

    if (end->is_opened && !end->is_closed)
        weir_sim_fail(weir_sim_current(), "inactive without an event of the end");
    weir_fire_inactive(ctx);
}

/* The end of a server belongs to its handler, that of a client to the client's process. */
static void deinit(void *state)
{
    struct end *end = ((struct state *)state)->end;

    if (end != NULL && end->is_server)
        free(end);
}

static const weir_handler handler = {
    .name = "chat",
    .state_size = sizeof(struct state),
    .deinit = deinit,
    .read = on_read,
    .event = on_event,
    .inactive = on_inactive,
};

static int add_handler(weir_channel *channel, struct end *end)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &handler, NULL);
    weir_ctx *ctx = err == 0 ? weir_pipeline_find(pipeline, "chat") : NULL;

    if (err == 0 && ctx == NULL)
        return WEIR_ECLOSED;
    if (ctx != NULL)
        ((struct state *)weir_ctx_state(ctx))->end = end;
    return err;
}

/* ---- the server ---- */

static int init_session(weir_channel *channel, void *user_data)
{
    struct end *end = calloc(1, sizeof(*end));
    int err = -ENOMEM;

    if (end != NULL) {
        end->is_server = true;
        end->room = user_data;
        err = add_handler(channel, end);
        if (err < 0)
            free(end);
    }
    return err;
}

static void open_chat(weir_http_exchange *exchange, void *user_data)
{
    (void)weir_ws_accept(exchange,
                         WEIR_WS_OPTIONS(.init = init_session, .user_data = user_data,
                                         .ping_interval_ns = PING_NS, .close_timeout_ns = PING_NS,
                                         .deflate = world.deflates[0]));
}

static int serve(void)
{
    weir_channel_group *room = NULL;
    weir_http_server *server = NULL;
    int err = weir_channel_group_create(NULL, &room);

    if (err == 0) {
        const weir_http_route routes[] = {
            {.method = "GET", .path = "/chat", .handler = open_chat, .user_data = room},
            {.method = NULL}};

        err = weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "0.0.0.0:80",
                                                              .routes = routes, .threads = 2,
                                                              .init_connection = sim_init_watch),
                                     &server);
    }
    if (err == 0)
        err = weir_http_server_run(server);
    weir_http_server_release(server);
    weir_channel_group_release(room);
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
        world.came_back = true;
        weir_sim_sleep(weir_ms(20));
    }
    return err;
}

/* ---- the clients ---- */

struct client {
    weir_group *group;
    struct end *ends;
    unsigned sent;
};

static int init_client(weir_channel *channel, void *user_data)
{
    return add_handler(channel, user_data);
}

/* The promise owns the channel. */
static struct end *open_end(struct client *client, weir_promise **ret_opening)
{
    struct end *end = calloc(1, sizeof(*end));
    weir_promise *opening = NULL;
    int err = end != NULL && world.connections < CONNECTIONS_MAX ? 0 : -ENOMEM;

    if (err < 0) {
        free(end);
        return NULL;
    }
    end->number = ++world.connections;
    end->link = client->ends;
    client->ends = end;
    err = weir_promise_create(NULL, &opening);
    if (err == 0)
        err = weir_ws_connect(
            WEIR_WS_CLIENT_OPTIONS(.url = URL, .group = client->group,
                                   .init_connection = sim_init_watch,
                                   .ws = WEIR_WS_OPTIONS(.init = init_client, .user_data = end,
                                                         .ping_interval_ns = PING_NS,
                                                         .close_timeout_ns = PING_NS,
                                                         .stream = draw(2) == 0,
                                                         .deflate = world.deflates[1],
                                                         .no_context_takeover = draw(2) == 0)),
            opening);
    if (err == 0)
        err = weir_promise_sync(opening, WEIR_NEVER);
    if (err < 0) {
        weir_promise_release(opening);
        return NULL;
    }
    *ret_opening = opening;
    return end;
}

static void close_end(weir_channel *channel)
{
    unsigned way = draw(4);
    int err = 0;

    if (way == 0)
        err = weir_ws_close(channel, 3000, "done", NULL);
    else if (way == 1)
        err = weir_ws_close(channel, WEIR_WS_NORMAL, NULL, NULL);
    else if (way == 2)
        weir_channel_close(channel, NULL);
    if (way == 3 || err < 0)
        weir_channel_abort(channel, NULL);
}

static void talk(struct client *client)
{
    weir_promise *opening = NULL;
    const struct end *end = open_end(client, &opening);
    weir_channel *channel = end != NULL ? weir_promise_value(opening) : NULL;
    unsigned number = 0;

    if (end == NULL) {
        weir_sim_sleep(weir_ms(20));
        return;
    }
    while (client->sent < MESSAGES && weir_channel_is_open(channel)) {
        weir_ws_message *message = NULL;

        if (create_message(end->number, ++number, &message) < 0)
            break;
        client->sent++;
        weir_channel_write_and_flush(channel, weir_ws_message_msg(message), NULL);
        if (draw(3) == 0)
            weir_sim_sleep((int64_t)draw((unsigned)weir_ms(5)));
        if (draw(8) == 0)
            break;
    }
    close_end(channel);
    (void)weir_channel_await_closed(channel, WEIR_NEVER);
    weir_promise_release(opening);
}

static void end_client(struct client *client)
{
    sim_end_group(client->group);
    while (client->ends != NULL) {
        struct end *end = client->ends;

        client->ends = end->link;
        if (end->is_opened && !end->is_closed)
            weir_sim_fail(weir_sim_current(), "connection %u never ended", end->number);
        free(end);
    }
}

static int create_group(weir_group **ret_group)
{
    int err = 0;

    for (int tries = 0; tries < TRIES; tries++) {
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), ret_group);
        if (err == 0)
            break;
        weir_sim_sleep(weir_ms(10));
    }
    return err;
}

static int client_main(void *arg)
{
    struct client client = {.sent = 0};
    int err = create_group(&client.group);

    (void)arg;
    for (int tries = 0; err == 0 && client.sent < MESSAGES && tries < 25; tries++)
        talk(&client);
    end_client(&client);
    return err;
}

/* ---- the end, without faults ---- */

/* Stays until the connection ends. */
static int guest_main(void *arg)
{
    struct client client = {.sent = 0};
    weir_promise *opening = NULL;
    const struct end *end = NULL;
    int err = create_group(&client.group);

    (void)arg;
    for (int tries = 0; err == 0 && end == NULL && tries < 20; tries++) {
        end = open_end(&client, &opening);
        if (end == NULL)
            weir_sim_sleep(weir_ms(100));
    }
    if (end != NULL) {
        weir_ws_message *message = NULL;

        err = create_message(end->number, 1, &message);
        if (err == 0)
            weir_channel_write_and_flush(weir_promise_value(opening), weir_ws_message_msg(message),
                                         NULL);
        (void)weir_channel_await_closed(weir_promise_value(opening), WEIR_NEVER);
        weir_promise_release(opening);
    } else {
        weir_sim_fail(weir_sim_current(), "no connection after all faults have ended");
    }
    end_client(&client);
    return err;
}

static void await_sessions(weir_sim *sim, unsigned count)
{
    for (int waits = 0; world.open_sessions != count && !world.came_back; waits++) {
        if (waits == 500) {
            weir_sim_fail(sim, "%u sessions are open instead of %u", world.open_sessions, count);
            return;
        }
        weir_sim_sleep(weir_ms(10));
    }
}

/* A host vanishes for longer than the peers wait. Then both ends have noticed. */
static void vanish(weir_sim *sim, weir_sim_host *host, unsigned sessions, unsigned clients)
{
    weir_sim_host_stop(host);
    weir_sim_sleep(weir_seconds(2));
    if (!world.came_back &&
        (world.open_clients != clients || (clients > 0 && world.open_sessions != sessions)))
        weir_sim_fail(sim, "%u sessions and %u clients have not noticed a host that vanished",
                      world.open_sessions, world.open_clients);
    weir_sim_host_continue(host);
}

static int finish(weir_sim *sim, weir_sim_host **hosts, weir_sim_process *server)
{
    weir_sim_process *guests[2] = {0};
    unsigned scenario = draw(3), before;
    int err = 0;

    await_sessions(sim, 0); /* those of vanished clients */
    world.going_away = 0;
    world.came_back = false;
    before = world.received;
    for (unsigned i = 0; i < 2 && err == 0; i++)
        err = weir_sim_start(hosts[i + 1], "guest", guest_main, NULL, &guests[i]);
    if (err < 0)
        return err;
    await_sessions(sim, 2);
    weir_sim_sleep(weir_ms(100));
    if (!world.came_back && world.received < before + 2)
        weir_sim_fail(sim, "the guests received %u messages", world.received - before);
    if (scenario == 0)
        vanish(sim, hosts[1], 1, 2); /* the stopped one is open still */
    else if (scenario == 1)
        vanish(sim, hosts[0], 0, 0);
    weir_sim_signal(server, SIGTERM);
    for (unsigned i = 0; i < 2 && err == 0; i++)
        err = weir_sim_join(guests[i]);
    if (!world.came_back && world.going_away != (scenario == 2 ? 2 : scenario == 0 ? 1 : 0))
        weir_sim_fail(sim, "%u guests were closed with 1001", world.going_away);
    return err;
}

/* ---- the world ---- */

static int start_all(weir_sim *sim, weir_sim_host **hosts, weir_sim_process **server,
                     weir_sim_process **clients)
{
    int err = sim_create_hosts(sim, hosts, CLIENTS + 1);
    if (err == 0)
        err = weir_sim_start(hosts[0], "server", server_main, NULL, server);
    if (err < 0)
        return err;
    weir_sim_restart(*server, weir_ms(10) + (int64_t)draw((unsigned)weir_ms(40)));
    weir_sim_sleep(weir_ms(2));
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_start(hosts[i + 1], "client", client_main, NULL, &clients[i]);
    return err;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_process *server, *clients[CLIENTS];
    weir_sim_host *hosts[CLIENTS + 1];
    int err;

    (void)arg;
    memset(&world, 0, sizeof(world));
    world.deflates[0] = draw(2) == 0;
    world.deflates[1] = draw(2) == 0;
    err = start_all(sim, hosts, &server, clients);
    for (unsigned kills = draw(3); kills > 0 && err == 0; kills--) {
        weir_sim_sleep((int64_t)draw((unsigned)weir_ms(20)));
        weir_sim_kill(server);
    }
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_join(clients[i]);
    weir_sim_calm(sim, true);
    if (err == 0)
        err = finish(sim, hosts, server);
    return err == 0 ? weir_sim_join(server) : err;
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed, SIM_TCP_KINDS, options);
    options->max_outage_ns = weir_ms(500);
}

SIM_PROGRAM(ws_chat, "a WebSocket chat", configure, run)
