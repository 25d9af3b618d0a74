/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to read are counted through TLS: what comes with the handshake, and after it, waits
 * until it is requested.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/codec.h>
#include <weir/tls.h>

#include "support/property.h"
#include "support/tls/tls_line.h"
#include "support/tls/tls_pair.h"
#include "support/transport/connection.h"

#define ON_DEMAND WEIR_CHANNEL_OPTIONS(.read_on_demand = true)

static void open_on_demand(struct tls_pair *pair, const weir_tls_options *server)
{
    tls_pair_prepare(
        pair, &(const struct tls_pair_options){
                  .server = server, .server_channel = WEIR_EMBEDDED_OPTIONS(.channel = ON_DEMAND)});
}

static void request(struct tls_pair *pair)
{
    weir_channel_request_read(pair->server.channel);
    tls_pair_run(pair);
}

/* ---- the handshake ---- */

TEST(tls_demand, what_comes_with_the_handshake_waits_for_a_request)
{
    for (int is_joined = 0; is_joined < 2; is_joined++) {
        struct tls_pair pair;

        open_on_demand(&pair, NULL);
        pair.is_joined = is_joined != 0;
        tls_pair_begin(&pair);
        tls_side_send_text(&pair.client,
                           "hello"); /* goes out with the last step of the handshake */
        tls_pair_run(&pair);
        assert_events(&pair.server.events, "handshake(ok)");
        tls_side_send_text(&pair.client, "again");
        tls_pair_run(&pair);
        assert_events(&pair.server.events, "");
        request(&pair);
        assert_events(&pair.server.events, "read(hello)");
        request(&pair);
        assert_events(&pair.server.events, "read(again)");
        tls_pair_close(&pair);
    }
}

TEST(tls_demand, a_request_that_is_made_before_the_handshake_is_answered_after_it)
{
    struct tls_pair pair;

    open_on_demand(&pair, NULL);
    tls_pair_begin(&pair);
    weir_channel_request_read(pair.server.channel);
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    tls_side_send_text(&pair.client, "again");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok) read(hello)");
    tls_pair_close(&pair);
}

static void switch_off(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    (void)handshake;
    weir_ctx_set_auto_read(ctx, false);
}

TEST(tls_demand, auto_read_that_is_switched_off_by_the_handshake_stops_what_came_with_it)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    pair.is_joined = true;
    pair.server.on_handshake = switch_off;
    tls_pair_begin(&pair);
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok)");
    weir_channel_set_auto_read(pair.server.channel, true);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "read(hello)");
    tls_pair_close(&pair);
}

/* ---- the end ---- */

TEST(tls_demand, the_peers_end_waits_behind_its_bytes)
{
    struct tls_pair pair;

    open_on_demand(&pair, NULL);
    pair.is_joined = true;
    tls_pair_begin(&pair);
    tls_side_send_text(&pair.client, "hello");
    weir_channel_close(pair.client.channel, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok)");
    request(&pair);
    assert_events(&pair.server.events, "read(hello)");
    assert_true(weir_channel_is_open(pair.server.channel));
    request(&pair);
    assert_events(&pair.server.events, "ended inactive");
    tls_pair_close(&pair);
}

/* The peer's end is behind bytes that nobody has requested, and no time passes. */
TEST(tls_demand, a_close_that_waits_for_the_peer_does_not_wait_for_requests)
{
    struct tls_pair pair;

    open_on_demand(&pair, WEIR_TLS_OPTIONS(.peer_close_timeout_ns = weir_seconds(9)));
    pair.is_joined = true;
    tls_pair_begin(&pair);
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    tls_side_send_text(&pair.client, "again");
    weir_channel_close(pair.server.channel, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok) ended inactive");
    tls_pair_close(&pair);
}

/* ---- anything ---- */

enum act { NOTHING, REQUEST, OFF, OFF_AND_ON, ON, ACTS };

struct world {
    struct tls_pair pair;
    size_t sent; /* bytes: the n-th is n, modulo 251 */
    size_t received;
    size_t messages;
    bool has_request;
    bool is_out_of_order;
    bool is_unasked;
    bool ends;
    enum act in_read;
    enum act in_complete;
};

static struct world *current;

static void act(weir_ctx *ctx, enum act what)
{
    if (what == REQUEST) {
        current->has_request = true;
        weir_request_read(ctx);
    }
    if (what == OFF || what == OFF_AND_ON)
        weir_ctx_set_auto_read(ctx, false);
    if (what == ON || what == OFF_AND_ON)
        weir_ctx_set_auto_read(ctx, true);
}

static void consume(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    if (!weir_channel_auto_read(weir_ctx_channel(ctx)) && !current->has_request)
        current->is_unasked = true;
    current->has_request = false;
    current->messages++;
    for (size_t i = 0; i < weir_buf_readable(buf); i++, current->received++)
        if (weir_buf_bytes(buf)[i] != current->received % 251)
            current->is_out_of_order = true;
    weir_msg_release(msg);
    act(ctx, current->in_read);
}

static void consume_complete(weir_ctx *ctx)
{
    act(ctx, current->in_complete);
}

static int take_three(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir_buf *part;

    if (weir_buf_readable(in) < 3)
        return weir_decoder_need(ctx, 3);
    if (weir_buf_read_slice(in, 3, &part) < 0)
        return -ENOMEM;
    *ret_msg = weir_buf_msg(part);
    return 1;
}

static const weir_decoder threes = {
    .handler = {.name = "threes", WEIR_DECODER_SLOTS(weir_decoder_state)}, .decode = take_three};

enum kind { SAY, PLAY, ASK, AUTO_ON, AUTO_OFF, IN_READ, IN_COMPLETE, PIECE, DECODE, KINDS };

static void begin(void *state)
{
    struct world *world = current = state;

    tls_pair_prepare(&world->pair, NULL);
    world->pair.server.on_read = consume;
    world->pair.server.on_read_complete = consume_complete;
    tls_pair_begin(&world->pair);
}

static void say(struct world *world, size_t length)
{
    weir_buf *buf;

    if (weir_buf_create(length, 0, &buf) < 0)
        return;
    for (size_t i = 0; i < length; i++)
        (void)weir_buf_write_u8(buf, (uint8_t)(world->sent++ % 251));
    weir_channel_write_and_flush(world->pair.client.channel, weir_buf_msg(buf), NULL);
}

static void ask(struct world *world)
{
    world->has_request = true;
    weir_channel_request_read(world->pair.server.channel);
    tls_pair_run(&world->pair);
}

static bool is_well(const struct world *world)
{
    PROPERTY(!world->is_out_of_order);
    PROPERTY(!world->is_unasked);
    return true;
}

static void do_step(struct world *world, const struct property_step *step)
{
    uint32_t number = step->numbers[0];
    struct tls_side *server = &world->pair.server;

    switch (step->kind) {
    case SAY:
        say(world, (number % 40 + 1) * 3);
        break;
    case ASK:
        ask(world);
        break;
    case AUTO_ON:
    case AUTO_OFF:
        weir_channel_set_auto_read(server->channel, step->kind == AUTO_ON);
        break;
    case IN_READ:
        world->in_read = number % ACTS;
        break;
    case IN_COMPLETE:
        world->in_complete = number % ACTS;
        break;
    case PIECE:
        world->pair.piece = number % 3 == 0 ? number % 100 : 0;
        world->pair.is_joined = number % 3 == 1;
        break;
    case DECODE:
        if (number % 4 == 0 && world->sent == 0)
            IGNORE_RESULT(weir_pipeline_add(server->pipeline, WEIR_PLACE(.before = "witness"),
                                            &threes.handler, NULL));
        break;
    default:
        tls_pair_run(&world->pair);
    }
}

/* Requests alone bring all that was sent, one message for each; then the end. */
static bool drain(struct world *world)
{
    size_t before;

    world->ends = true;
    world->in_read = world->in_complete = NOTHING;
    weir_channel_set_auto_read(world->pair.server.channel, false);
    weir_channel_close(world->pair.client.channel, NULL);
    tls_pair_run(&world->pair);
    while (world->received < world->sent) {
        before = world->messages;
        ask(world);
        PROPERTY(world->messages == before + 1);
        PROPERTY(weir_channel_is_open(world->pair.server.channel));
    }
    ask(world);
    PROPERTY(!weir_channel_is_open(world->pair.server.channel));
    return true;
}

static bool step(void *state, const struct property_step *step)
{
    struct world *world = current = state;

    if (world->ends)
        return true;
    do_step(world, step);
    if (step->numbers[2] % 30 == 0)
        PROPERTY(drain(world));
    return is_well(world);
}

static void describe(const struct property_step *step, char *text, size_t size)
{
    static const char *const names[] = {"say",     "play",        "ask",   "auto on", "auto off",
                                        "in read", "in complete", "piece", "decode"};

    (void)snprintf(text, size, "%s %u%s", names[step->kind], step->numbers[0],
                   step->numbers[2] % 30 == 0 ? ", then drain" : "");
}

static void end(void *state)
{
    struct world *world = current = state;

    tls_pair_close(&world->pair);
}

static const struct property in_order_and_asked_for = {
    .name = "tls-demand",
    .state_size = sizeof(struct world),
    .kinds = KINDS,
    .begin = begin,
    .step = step,
    .describe = describe,
    .end = end,
};

TEST(tls_demand, holds_whatever_happens)
{
    property_check(&in_order_and_asked_for, 60, 40);
}

/* ---- sockets ---- */

static void say_at_once(weir_ctx *ctx)
{
    weir_buf *buf;

    tls_line_add_client(ctx);
    if (weir_buf_create_from("hello", 5, &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static int nothing(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)ret_value;
    return status;
}

static void pass_by(weir_channel *channel)
{
    weir_promise *there;

    assert_int_equal(weir_submit(weir_channel_executor(channel), nothing, NULL, &there), 0);
    assert_int_equal(connection_result(there), 0);
}

TEST_EACH_CONNECTION(tls_demand, a_server_that_reads_on_demand_gets_nothing_unasked)
{
    tls_line_connect(connection, &(const struct connection_options){.server = ON_DEMAND},
                     say_at_once);
    event_log_clear(&connection->server.events);
    pass_by(connection->server.channel);
    connection_note(&connection->server, "asks");
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "asks read(hello)");
    tls_line_close(connection);
}

static int take_letter(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir_buf *letter;

    (void)ctx;
    if (weir_buf_read_slice(in, 1, &letter) < 0)
        return -ENOMEM;
    *ret_msg = weir_buf_msg(letter);
    return 1;
}

static const weir_decoder letters = {
    .handler = {.name = "letters", WEIR_DECODER_SLOTS(weir_decoder_state)}, .decode = take_letter};

static void add_tls_before_letters(weir_ctx *ctx)
{
    IGNORE_RESULT(weir_pipeline_add_first(weir_ctx_pipeline(ctx), &letters.handler, NULL));
    tls_line_add_server(ctx);
}

static weir_group *helpers;
static struct connection_end *working;

struct job {
    struct connection_end *end;
    char letter;
};

static void *work(void *job)
{
    return job;
}

static void on_worked(weir_ctx *ctx, int err, void *result, void *arg)
{
    struct job *job = arg;
    char note[] = "done(x)";

    (void)result;
    note[5] = job->letter;
    if (ctx != NULL && err == 0) {
        connection_note(job->end, note);
        weir_ctx_set_auto_read(ctx, true);
    }
    free(job);
}

/* The obvious code: one message at a time. */
static void work_on(weir_ctx *ctx, weir_msg *msg)
{
    struct job *job = malloc(sizeof(*job));
    char note[] = "read(x)";

    if (job != NULL) {
        job->end = working;
        job->letter = note[5] = (char)weir_buf_bytes(weir_buf_of(msg))[0];
        connection_note(job->end, note);
        weir_ctx_set_auto_read(ctx, false);
        if (weir_ctx_offload(ctx, helpers, work, on_worked, job) < 0)
            free(job);
    }
    weir_msg_release(msg);
}

static void open_helpers(struct connection *connection)
{
    helpers = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 3));
    working = &connection->server;
}

static void assert_one_by_one(struct connection *connection)
{
    event_log_clear(&connection->server.events);
    connection_send(&connection->client, "abcde");
    assert_end_events(&connection->server,
                      "read(a) done(a) read(b) done(b) read(c) done(c) read(d) done(d) "
                      "read(e) done(e)");
}

TEST_EACH_CONNECTION(tls_demand, work_that_switches_auto_read_is_done_in_order)
{
    open_helpers(connection);
    tls_setup_open(&tls_line_setup);
    connection->server.on_active = add_tls_before_letters;
    connection->client.on_active = tls_line_add_client;
    connection->server.on_read = work_on;
    connection_prepare(connection, NULL);
    connection_start(connection);
    connection_await(&connection->server, "tls-handshake", 1);
    assert_one_by_one(connection);
    tls_line_close(connection);
    tls_line_end_loops(connection);
    end_group(helpers);
}

static void plain_letters(weir_ctx *ctx)
{
    IGNORE_RESULT(weir_pipeline_add_first(weir_ctx_pipeline(ctx), &letters.handler, NULL));
}

TEST_EACH_CONNECTION(tls_demand, so_it_is_without_tls)
{
    open_helpers(connection);
    connection->server.on_active = plain_letters;
    connection->server.on_read = work_on;
    connection_open(connection, NULL);
    assert_one_by_one(connection);
    connection_close(connection);
    tls_line_end_loops(connection);
    end_group(helpers);
}

/* ---- handlers on executors of their own ---- */

static const weir_handler worker = {.name = "worker", .read = work_on};

static void add_letters_and_worker(weir_ctx *ctx)
{
    IGNORE_RESULT(weir_pipeline_add(weir_ctx_pipeline(ctx),
                                    WEIR_PLACE(.first = true, .group = helpers), &worker, NULL));
    IGNORE_RESULT(weir_pipeline_add_first(weir_ctx_pipeline(ctx), &letters.handler, NULL));
}

/* The decoder has passed on many messages when the handler switches auto-read off. */
TEST_EACH_CONNECTION(tls_demand, so_it_is_for_a_handler_elsewhere)
{
    open_helpers(connection);
    connection->server.on_active = add_letters_and_worker;
    connection_open(connection, NULL);
    assert_one_by_one(connection);
    connection_close(connection);
    tls_line_end_loops(connection);
    end_group(helpers);
}

static void add_letters_elsewhere(weir_ctx *ctx)
{
    IGNORE_RESULT(weir_pipeline_add(weir_ctx_pipeline(ctx),
                                    WEIR_PLACE(.first = true, .group = helpers), &letters.handler,
                                    NULL));
}

TEST_EACH_CONNECTION(tls_demand, so_it_is_behind_a_decoder_elsewhere)
{
    open_helpers(connection);
    connection->server.on_active = add_letters_elsewhere;
    connection->server.on_read = work_on;
    connection_open(connection, NULL);
    assert_one_by_one(connection);
    connection_close(connection);
    tls_line_end_loops(connection);
    end_group(helpers);
}

static void count_read(weir_ctx *ctx, weir_msg *msg)
{
    char note[] = "read(x)";

    (void)ctx;
    note[5] = (char)weir_buf_bytes(weir_buf_of(msg))[0];
    weir_msg_release(msg);
    connection_note(working, note);
}

static void ask_for_next(weir_ctx *ctx)
{
    connection_note(working, "complete");
    weir_request_read(ctx);
}

/* One request for each message, from `read_complete`, through all of it. */
TEST_EACH_CONNECTION(tls_demand, requests_pass_executors_and_come_back_with_one_message)
{
    static const weir_handler asker = {
        .name = "asker", .read = count_read, .read_complete = ask_for_next};

    open_helpers(connection);
    connection->server.on_active = add_letters_elsewhere;
    connection_open(connection, &(const struct connection_options){.server = ON_DEMAND});
    assert_int_equal(weir_pipeline_add(weir_channel_pipeline(connection->server.channel),
                                       WEIR_PLACE(.after = "letters", .group = helpers), &asker,
                                       NULL),
                     0);
    weir_channel_request_read(connection->server.channel);
    connection_send(&connection->client, "abc");
    assert_end_events(&connection->server, "read(a) complete read(b) complete read(c) complete");
    connection_close(connection);
    tls_line_end_loops(connection);
    end_group(helpers);
}
