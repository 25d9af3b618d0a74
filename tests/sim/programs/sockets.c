/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Echo over every other kind of socket: UDP and Unix sockets, with all faults. What comes back is
 * what was sent; a stream keeps its order; every channel closes. When the faults have ended, the
 * server answers again.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define ROUNDS 6
#define MESSAGES 20
#define SIZE_MAX_BYTES 1400
#define TRIES 200 /* after the faults */

static const struct line {
    enum weir_kind kind;
    const char *server, *client;
    bool is_local;
} lines[] = {
    {WEIR_KIND_DATAGRAM, "0.0.0.0:8007", "10.0.0.1:8007", false},
    {WEIR_KIND_DATAGRAM, "[::]:8007", "[fd00::1]:8007", false},
    {WEIR_KIND_DATAGRAM, "[::]:8007", "10.0.0.1:8007", false},
    {WEIR_KIND_STREAM, "unix:/run/s.sock", "unix:/run/s.sock", true},
    {WEIR_KIND_STREAM, "unix:@s", "unix:@s", true},
    {WEIR_KIND_SEQPACKET, "unix:/run/s.sock", "unix:/run/s.sock", true},
    {WEIR_KIND_DATAGRAM, "unix:/run/s.sock", "unix:/run/s.sock", true},
    {WEIR_KIND_DATAGRAM, "unix:@s", "unix:@s", true},
};

/* ---- the server ---- */

static void on_request(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_datagram_of(msg) != NULL)
        weir_datagram_make_reply(weir_datagram_of(msg));
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler answers = {
    .name = "echo", .read = on_request, .read_complete = on_read_complete};

static int init_channel(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_add(channel, &answers);
}

static int serve(const struct line *line)
{
    bool is_datagram = line->kind == WEIR_KIND_DATAGRAM;
    weir_group *group = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "server", .threads = 2), &group);

    if (err == 0)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = group, .workers = is_datagram ? NULL : group,
                                .address = line->server, .kind = line->kind,
                                .init_child = is_datagram ? NULL : init_channel,
                                .init_server = is_datagram ? init_channel : NULL),
            &server);
    if (err == 0)
        err = weir_server_run(server);
    if (err < 0 && server != NULL)
        (void)weir_server_stop(server, 0, weir_seconds(10));
    weir_server_release(server);
    sim_end_group(group);
    return err;
}

static int server_main(void *arg)
{
    int err = -1;

    for (unsigned i = 0; i < TRIES && err < 0; i++) {
        err = serve(arg);
        if (weir_sim_is_dying())
            return 0;
        if (err < 0)
            weir_sim_sleep(weir_ms(1));
        if (err < 0 && sim_excuse(err) < 0)
            return err;
    }
    return err;
}

/* ---- the client ---- */

struct conversation {
    const struct line *line;
    unsigned number;
    uint64_t sent, received; /* bytes of a stream */
    unsigned answers;
};

/* A packet is the byte sequence of its number, which comes first. */
static void check_packet(struct conversation *conversation, weir_msg *msg)
{
    weir_datagram *datagram = weir_datagram_of(msg);
    weir_buf *buf = weir_buf_of(datagram != NULL ? weir_datagram_content(datagram) : msg);
    const uint8_t *bytes = weir_buf_bytes(buf);
    size_t length = weir_buf_readable(buf);
    uint32_t stream = 0;

    if (length >= sizeof(stream))
        memcpy(&stream, bytes, sizeof(stream));
    if (length < sizeof(stream) || stream / MESSAGES != conversation->number)
        weir_sim_fail(weir_sim_current(), "a packet of %zu bytes, of conversation %u, in %u",
                      length, stream / MESSAGES, conversation->number);
    for (size_t i = sizeof(stream); i < length; i++)
        if (bytes[i] != sim_byte(stream, i))
            weir_sim_fail(weir_sim_current(), "a wrong byte of packet %u, at %zu", stream, i);
    conversation->answers++;
    weir_msg_release(msg);
}

static void on_answer(weir_ctx *ctx, weir_msg *msg)
{
    struct conversation *conversation = *(struct conversation **)weir_ctx_state(ctx);

    if (conversation->line->kind != WEIR_KIND_STREAM) {
        check_packet(conversation, msg);
        return;
    }
    conversation->received +=
        sim_check_bytes(msg, conversation->number, conversation->received, "client");
    weir_msg_release(msg);
    conversation->answers = conversation->received > 0;
    if (conversation->received > conversation->sent)
        weir_sim_fail(weir_sim_current(), "more bytes than were sent");
}

static const weir_handler compares = {
    .name = "client", .read = on_answer, .state_size = sizeof(struct conversation *)};

static int init_client(weir_channel *channel, void *user_data)
{
    int err = sim_add(channel, &compares);

    if (err == 0)
        *(void **)weir_ctx_state(weir_pipeline_find(weir_channel_pipeline(channel), "client")) =
            user_data;
    return err;
}

static void send_message(weir_channel *channel, struct conversation *conversation, unsigned i)
{
    bool is_stream = conversation->line->kind == WEIR_KIND_STREAM;
    uint32_t stream = is_stream ? conversation->number : conversation->number * MESSAGES + i;
    size_t length = 4 + sim_below(SIZE_MAX_BYTES - 4);
    weir_buf *buf;

    if (weir_buf_create(length, 0, &buf) < 0)
        return;
    if (!is_stream)
        (void)weir_buf_write_bytes(buf, &stream, sizeof(stream));
    for (size_t at = is_stream ? 0 : sizeof(stream); at < length; at++) {
        uint8_t byte = sim_byte(stream, is_stream ? conversation->sent + at : at);

        (void)weir_buf_write_bytes(buf, &byte, 1);
    }
    conversation->sent += length;
    weir_channel_write(channel, weir_buf_msg(buf), NULL);
}

/* One channel, from its beginning to its end. */
static int converse(weir_group *group, struct conversation *conversation, unsigned messages)
{
    weir_channel *channel = NULL;
    weir_promise *closed;
    int err = weir_client_connect_sync(
        WEIR_CLIENT_OPTIONS(.group = group, .address = conversation->line->client,
                            .kind = conversation->line->kind, .init = init_client,
                            .user_data = conversation),
        &channel);

    if (err < 0)
        return err;
    for (unsigned i = 0; i < messages; i++) {
        send_message(channel, conversation, i);
        if (sim_once_in(3)) {
            weir_channel_flush(channel);
            weir_sim_sleep(sim_delay(weir_ms(2)));
        }
    }
    weir_channel_flush(channel);
    weir_sim_sleep(sim_delay(weir_ms(20)));
    weir_channel_close(channel, NULL);
    while ((closed = weir_channel_closed(channel)) == NULL)
        weir_sim_sleep(weir_ms(1)); /* no memory for it */
    err = weir_promise_sync(closed, WEIR_NEVER);
    weir_channel_release(channel);
    return err;
}

/* The faults have ended: the server answers. */
static void await_answer(weir_group *group, struct conversation *conversation)
{
    for (unsigned i = 0; i < TRIES && conversation->answers == 0; i++) {
        conversation->sent = 0;
        conversation->received = 0;
        (void)converse(group, conversation, 1);
        weir_sim_sleep(weir_ms(50));
    }
    if (conversation->answers == 0)
        weir_sim_fail(weir_sim_current(), "no answer after the faults have ended");
}

static int client_main(void *arg)
{
    struct conversation conversations[ROUNDS] = {{0}};
    weir_group *group = NULL;
    int err = -1;

    for (unsigned i = 0; i < TRIES && err < 0; i++) {
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &group);
        if (err < 0)
            weir_sim_sleep(weir_ms(1));
    }
    for (unsigned i = 0; i < ROUNDS && err == 0; i++) {
        conversations[i] = (struct conversation){.line = arg, .number = i};
        if (i + 1 < ROUNDS) {
            (void)converse(group, &conversations[i], 1 + sim_below(MESSAGES));
            weir_sim_sleep(sim_delay(weir_ms(50)));
        } else {
            weir_sim_calm(weir_sim_current(), true);
            await_answer(group, &conversations[i]);
        }
    }
    sim_end_group(group);
    return sim_excuse(err);
}

/* ---- the world ---- */

static int run(weir_sim *sim, void *arg)
{
    const struct line *line = &lines[weir_sim_random(sim, sizeof(lines) / sizeof(lines[0]))];
    void *shared = (void *)(uintptr_t)line;
    weir_sim_host *server_host, *client_host;
    weir_sim_process *server, *client;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1 fd00::1", &server_host);

    (void)arg;
    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.2 fd00::2", &client_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, shared, &server);
    if (err < 0)
        return err;
    weir_sim_restart(server, weir_ms(5));
    weir_sim_sleep(weir_ms(5));
    err = weir_sim_start(line->is_local ? server_host : client_host, "client", client_main, shared,
                         &client);
    if (err == 0)
        err = weir_sim_join(client);
    return err < 0 ? err : sim_stop(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    sim_draw_rates(seed,
                   SIM_SCARCITY | SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                       SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED) | SIM_KIND(PARTITION) |
                       SIM_KIND(HOST_STOP) | SIM_KIND(DEATH) | SIM_KIND(LOSS) |
                       SIM_KIND(DUPLICATE) | SIM_KIND(REORDER),
                   options);
}

SIM_PROGRAM(sockets, "echo over UDP and Unix sockets, with all faults", configure, run)
