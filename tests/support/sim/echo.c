/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim/echo.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "support/test.h"

#define SEEDS 20
#define MESSAGES 100
#define PATIENCE weir_ms(50) /* until an answer is missed */
#define TRIES 2000

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
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &answers, NULL);
}

static int server_main(void *arg)
{
    const struct echo *echo = arg;
    bool is_datagram = echo->kind == WEIR_KIND_DATAGRAM;
    weir_group *group = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "server", .threads = 2), &group);

    if (err == 0)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = group, .workers = is_datagram ? NULL : group,
                                .address = echo->server_address, .kind = echo->kind,
                                .init_child = is_datagram ? NULL : init_channel,
                                .init_server = is_datagram ? init_channel : NULL),
            &server);
    if (err == 0)
        err = weir_server_run(server);
    weir_server_release(server);
    weir_group_release(group);
    return err;
}

/* ---- the client ---- */

struct client {
    const struct echo *echo;
    size_t received; /* bytes of a stream */
    bool answered[MESSAGES];
};

/* The bytes of a message are its number and its content. */
static uint8_t byte_of(unsigned number, size_t position)
{
    return position < 4 ? (uint8_t)(number >> 8 * position) : (uint8_t)(number * 31 + position);
}

static void check(unsigned number, size_t position, uint8_t byte)
{
    if (byte != byte_of(number, position))
        weir_sim_fail(weir_sim_current(), "a wrong byte of message %u, at %zu", number, position);
}

static void read_stream(struct client *client, const uint8_t *bytes, size_t length)
{
    size_t size = client->echo->size;

    for (size_t i = 0; i < length; i++, client->received++) {
        unsigned number = (unsigned)(client->received / size);

        check(number, client->received % size, bytes[i]);
        if (number < MESSAGES && client->received % size == size - 1)
            client->answered[number] = true;
    }
}

static void read_packet(struct client *client, const uint8_t *bytes, size_t length)
{
    uint32_t number = 0;

    if (length == client->echo->size)
        memcpy(&number, bytes, sizeof(number));
    if (length != client->echo->size || number >= MESSAGES) {
        weir_sim_fail(weir_sim_current(), "message %u has %zu bytes", number, length);
        return;
    }
    for (size_t i = 0; i < length; i++)
        check(number, i, bytes[i]);
    client->answered[number] = true;
}

static void on_answer(weir_ctx *ctx, weir_msg *msg)
{
    struct client *client = *(struct client **)weir_ctx_state(ctx);
    weir_datagram *datagram = weir_datagram_of(msg);
    weir_buf *buf = weir_buf_of(datagram != NULL ? weir_datagram_content(datagram) : msg);

    if (client->echo->kind == WEIR_KIND_STREAM)
        read_stream(client, weir_buf_bytes(buf), weir_buf_readable(buf));
    else
        read_packet(client, weir_buf_bytes(buf), weir_buf_readable(buf));
    weir_msg_release(msg);
}

static const weir_handler compares = {
    .name = "client", .read = on_answer, .state_size = sizeof(struct client *)};

static int init_client(weir_channel *channel, void *user_data)
{
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &compares, NULL);

    if (err == 0)
        *(void **)weir_ctx_state(weir_pipeline_find(weir_channel_pipeline(channel), "client")) =
            user_data;
    return err;
}

static int send_message(weir_channel *channel, const struct echo *echo, unsigned number)
{
    weir_buf *buf;
    int err = weir_buf_create(echo->size, 0, &buf);

    if (err < 0)
        return err;
    for (size_t i = 0; i < echo->size; i++) {
        uint8_t byte = byte_of(number, i);

        (void)weir_buf_write_bytes(buf, &byte, 1);
    }
    weir_channel_write(channel, weir_buf_msg(buf), NULL);
    return 0;
}

/* Sends those without an answer. Returns how many there are. */
static unsigned send_batch(weir_channel *channel, const struct client *client, unsigned first,
                           bool sends)
{
    unsigned missing = 0;

    for (unsigned i = first; i < first + client->echo->batch && i < MESSAGES; i++) {
        if (client->answered[i])
            continue;
        missing++;
        if (sends && send_message(channel, client->echo, i) < 0)
            weir_sim_fail(weir_sim_current(), "no memory");
    }
    if (sends)
        weir_channel_flush(channel);
    return missing;
}

static void exchange(weir_channel *channel, const struct client *client)
{
    for (unsigned first = 0; first < MESSAGES; first += client->echo->batch) {
        bool sends = true;

        for (unsigned tries = 0; send_batch(channel, client, first, sends) > 0; tries++) {
            weir_sim_sleep(PATIENCE);
            sends = client->echo->kind == WEIR_KIND_DATAGRAM; /* others lose nothing */
            if (tries == TRIES) {
                weir_sim_fail(weir_sim_current(), "no answer to message %u", first);
                return;
            }
        }
    }
}

/* The server may not listen yet. */
static int connect_client(weir_group *group, struct client *client, weir_channel **ret_channel)
{
    int err = -ECONNREFUSED;

    for (unsigned i = 0; i < 100 && err < 0; i++) {
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = group, .address = client->echo->client_address,
                                .kind = client->echo->kind, .init = init_client,
                                .user_data = client),
            ret_channel);
        if (err < 0)
            weir_sim_sleep(weir_ms(1));
    }
    return err;
}

static int client_main(void *arg)
{
    struct client client = {.echo = arg};
    weir_group *group = NULL;
    weir_channel *channel = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &group);

    if (err == 0)
        err = connect_client(group, &client, &channel);
    if (err == 0) {
        exchange(channel, &client);
        weir_channel_close(channel, NULL);
        err = weir_promise_sync(weir_channel_closed(channel), WEIR_NEVER);
    }
    weir_channel_release(channel);
    if (group != NULL)
        (void)weir_group_shutdown(group, 0, weir_seconds(10));
    weir_group_release(group);
    return err;
}

/* ---- the world ---- */

static int program(weir_sim *sim, void *arg)
{
    const struct echo *echo = *(const struct echo **)arg;
    void *shared = (void *)(uintptr_t)echo;
    weir_sim_host *hosts[2];
    weir_sim_process *server, *client;
    int err = weir_sim_host_create(sim, "client", "10.0.0.1 fd00::1", &hosts[0]);

    if (err == 0)
        err = weir_sim_host_create(sim, "server", "10.0.0.2 fd00::2", &hosts[1]);
    if (err == 0)
        err = weir_sim_start(hosts[1], "server", server_main, shared, &server);
    if (err == 0 && echo->kind == WEIR_KIND_DATAGRAM)
        weir_sim_sleep(weir_ms(50)); /* a datagram channel connects without a server */
    if (err == 0)
        err = weir_sim_start(hosts[echo->is_local ? 1 : 0], "client", client_main, shared, &client);
    if (err == 0)
        err = weir_sim_join(client);
    if (err < 0)
        return err;
    weir_sim_signal(server, SIGTERM);
    return weir_sim_join(server);
}

/* Returns the hash of the run. */
static uint64_t run_seed(const weir_sim_options *options, uint64_t seed, const struct echo *echo)
{
    weir_sim_options with_seed = options != NULL ? *options : *WEIR_SIM_OPTIONS(.seed = 0);
    weir_sim_result result = {0};
    uint64_t hash;
    int err;

    with_seed.seed = seed;
    err = weir_sim_run(&with_seed, program, &echo, &result);
    if (err < 0)
        fail_msg("seed %llu: %s: %s\n%s", (unsigned long long)seed, weir_error_text(err),
                 result.failure != NULL ? result.failure : "",
                 result.trace != NULL ? result.trace : "");
    hash = result.hash;
    weir_sim_result_free(&result);
    return hash;
}

void echo_run(const weir_sim_options *options, const struct echo *echo)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t hash = run_seed(options, seed, echo);

        assert_true(run_seed(options, seed, echo) == hash);
    }
}
