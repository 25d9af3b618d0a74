/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many connections at once, with offloaded handshakes that wait for on_sni, and that end in every
 * way, at any time, on any thread. Each reports its handshake once and closes, and nothing leaks.
 */
#include <stdio.h>
#include <string.h>

#include <weir/client.h>
#include <weir/error.h>
#include <weir/handler.h>
#include <weir/memory.h>
#include <weir/server.h>
#include <weir/tls.h>
#include <weir/tls_context.h>

#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/tls/pki.h"
#include "support/transport/connection.h"

#define CONNECTIONS 400

/* How one ends. */
enum way {
    CLOSE_AT_ONCE,
    ABORT_AT_ONCE,
    CLOSE_WITH_SOMETHING_WRITTEN, /* which waits for the handshake */
    SHUT_AT_ONCE,                 /* our end, which the peer answers with its own */
    CLOSE_SOON,
    ABORT_SOON,
    REMOVE_SOON,
    SHUT_SOON,
    CLOSE_WHEN_SHAKEN,
    ABORT_WHEN_SHAKEN,
    REMOVE_WHEN_SHAKEN,
    SHUT_WHEN_SHAKEN,
    TALK,
    WAYS,
};

struct storm {
    weir_group *servers, *clients, *offload;
    weir_tls_context *server_tls, *client_tls;
    weir_server *server;
    char address[64];
    _Atomic unsigned turn;     /* which way is the next one's */
    _Atomic unsigned requests; /* made in one way after the other, too */
    struct call_counter opened;
    struct call_counter closed;
    struct call_counter talked; /* clients that were answered */
    struct call_counter wrong;  /* connections that were not told once of the handshake */
};

/* ---- one connection ---- */

struct one {
    struct storm *storm;
    enum way way;
    bool is_server;
    bool is_shaken; /* well or not */
};

static struct one *one_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

static int keep(void *state, const void *one)
{
    memcpy(state, one, sizeof(struct one));
    return 0;
}

static void say(weir_ctx *ctx)
{
    weir_buf *buf;

    if (weir_buf_create_from("hello", 5, &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static void remove_tls(weir_ctx *ctx)
{
    (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls", NULL);
    weir_channel_close(weir_ctx_channel(ctx), NULL);
}

/* On another thread, so at any time. */
struct errand {
    weir_channel *channel;
    enum way way;
};

static void run_errand(void *arg, int status)
{
    struct errand *errand = arg;

    (void)status;
    if (errand->way == ABORT_SOON)
        weir_channel_abort(errand->channel, NULL);
    if (errand->way == REMOVE_SOON)
        (void)weir_pipeline_remove(weir_channel_pipeline(errand->channel), "tls", NULL);
    if (errand->way == SHUT_SOON)
        weir_channel_shutdown_output(errand->channel, NULL);
    else
        weir_channel_close(errand->channel, NULL);
    weir_channel_release(errand->channel);
    weir_memory_free(errand);
}

static void end_soon(weir_ctx *ctx, enum way way)
{
    struct errand *errand = weir_memory_alloc(sizeof(*errand));

    *errand = (struct errand){weir_channel_retain(weir_ctx_channel(ctx)), way};
    if (weir_execute(weir_executor_global(), run_errand, errand) < 0)
        run_errand(errand, 0);
}

static void on_active(weir_ctx *ctx)
{
    const struct one *one = one_of(ctx);

    call_counter_add(&one->storm->opened);
    switch (one->way) {
    case CLOSE_AT_ONCE:
        weir_channel_close(weir_ctx_channel(ctx), NULL);
        break;
    case ABORT_AT_ONCE:
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
        break;
    case CLOSE_WITH_SOMETHING_WRITTEN:
        say(ctx);
        weir_channel_close(weir_ctx_channel(ctx), NULL);
        break;
    case SHUT_AT_ONCE:
        weir_channel_shutdown_output(weir_ctx_channel(ctx), NULL);
        break;
    case CLOSE_SOON:
    case ABORT_SOON:
    case REMOVE_SOON:
    case SHUT_SOON:
        end_soon(ctx, one->way);
        break;
    default:
        break;
    }
}

static void on_handshake(weir_ctx *ctx)
{
    struct one *one = one_of(ctx);

    if (one->is_shaken)
        call_counter_add(&one->storm->wrong);
    one->is_shaken = true;
    if (one->way == CLOSE_WHEN_SHAKEN)
        weir_channel_close(weir_ctx_channel(ctx), NULL);
    else if (one->way == ABORT_WHEN_SHAKEN)
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
    else if (one->way == REMOVE_WHEN_SHAKEN)
        remove_tls(ctx);
    else if (one->way == SHUT_WHEN_SHAKEN)
        weir_channel_shutdown_output(weir_ctx_channel(ctx), NULL);
    else if (!one->is_server)
        say(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (weir_tls_handshake_of(event) != NULL)
        on_handshake(ctx);
    if (event == weir_event_input_closed())
        weir_channel_close(weir_ctx_channel(ctx), NULL);
    weir_msg_release(event);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    const struct one *one = one_of(ctx);

    if (one->is_server) {
        weir_write_and_flush(ctx, msg, NULL);
        return;
    }
    call_counter_add(&one->storm->talked);
    weir_msg_release(msg);
    weir_channel_close(weir_ctx_channel(ctx), NULL);
}

static void on_inactive(weir_ctx *ctx)
{
    const struct one *one = one_of(ctx);

    if (!one->is_shaken)
        call_counter_add(&one->storm->wrong);
    call_counter_add(&one->storm->closed);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    (void)err;
    (void)detail;
}

static const weir_handler witness = {
    .name = "witness",
    .state_size = sizeof(struct one),
    .init = keep,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .event = on_event,
    .error = on_error,
};

/* Ways of both sides meet in all combinations: their numbers have no common divisor. */
static int init_one(weir_channel *channel, struct storm *storm, bool is_server)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    unsigned turn = atomic_fetch_add(&storm->turn, 1);
    struct one one = {storm, is_server && turn % 3 != 0 ? TALK : turn % WAYS, is_server, false};
    int err = weir_tls_add_with(pipeline, is_server ? storm->server_tls : storm->client_tls,
                                WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                 .offload = turn % 4 != 3 ? storm->offload : NULL));

    if (err == 0 && turn % 5 == 0)
        err = weir_channel_set_options(channel, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    return err < 0 ? err : weir_pipeline_add_last(pipeline, &witness, &one);
}

static int init_server(weir_channel *channel, void *storm)
{
    return init_one(channel, storm, true);
}

static int init_client(weir_channel *channel, void *storm)
{
    return init_one(channel, storm, false);
}

/* ---- choices ---- */

static void accept_later(void *request, int status)
{
    (void)status;
    weir_tls_sni_request_accept(request, NULL);
}

static void choose(weir_tls_sni_request *request, void *user_data)
{
    struct storm *storm = user_data;
    unsigned number = atomic_fetch_add(&storm->requests, 1);

    if (number % 7 == 0)
        weir_tls_sni_request_reject(request, "it is the seventh");
    else if (number % 2 == 0 || weir_execute(weir_executor_global(), accept_later, request) < 0)
        weir_tls_sni_request_accept(request, NULL);
}

/* ---- all of them ---- */

static void storm_begin(struct storm *storm, const struct backend *backend)
{
    const weir_group_options *loops = WEIR_GROUP_OPTIONS(.threads = 2, .io = backend->io);
    weir_address address;

    *storm = (struct storm){0};
    log_capture_start();
    assert_int_equal(weir_group_create(loops, &storm->servers), 0);
    assert_int_equal(weir_group_create(loops, &storm->clients), 0);
    storm->offload = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key, .on_sni = choose,
                                                  .on_sni_data = storm),
                         &storm->server_tls),
                     0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &storm->client_tls),
        0);
    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = storm->servers, .address = "127.0.0.1:0",
                                              .init_child = init_server, .user_data = storm),
                          &storm->server),
        0);
    assert_int_equal(weir_channel_local_address(weir_server_listener(storm->server, 0), &address),
                     0);
    (void)snprintf(storm->address, sizeof(storm->address), "127.0.0.1:%u",
                   (unsigned)weir_address_port(&address));
}

/* Begins some connections; whether they come about is theirs. */
static void blow(struct storm *storm, unsigned count)
{
    weir_promise *connecting;

    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(weir_client_connect(
                             WEIR_CLIENT_OPTIONS(.group = storm->clients, .address = storm->address,
                                                 .init = init_client, .user_data = storm),
                             &connecting),
                         0);
        weir_promise_release(connecting);
    }
}

static unsigned calls(struct call_counter *counter)
{
    return atomic_load(&counter->calls);
}

/* Loops first, as the handlers keep the group of their jobs. */
static void storm_end(struct storm *storm)
{
    end_group(storm->clients);
    end_group(storm->servers);
    end_group(storm->offload);
    global_executor_stop();
    weir_server_release(storm->server);
    weir_tls_context_release(storm->server_tls);
    weir_tls_context_release(storm->client_tls);
    assert_int_equal(calls(&storm->closed), calls(&storm->opened));
    assert_int_equal(calls(&storm->wrong), 0);
}

/* ---- tests ---- */

TEST_EACH_LOOP(tls_storm, passes)
{
    struct storm storm;

    storm_begin(&storm, host->backend);
    for (unsigned i = 0; i < CONNECTIONS; i += 20) {
        blow(&storm, 20);
        assert_true(call_counter_await(&storm.closed, i + 1)); /* a few at a time */
    }
    assert_true(
        call_counter_await(&storm.opened, CONNECTIONS * 3 / 2)); /* of both sides together */
    assert_true(call_counter_await(&storm.talked, 1));
    storm_end(&storm);
}

/* The loops end, or those who work for them, while handshakes are under way. */
static void end_in_the_middle(const struct backend *backend, unsigned who)
{
    struct storm storm;
    weir_group *group;

    storm_begin(&storm, backend);
    blow(&storm, CONNECTIONS / 4);
    assert_true(call_counter_await(&storm.opened, 10));
    group = who == 0 ? storm.servers : who == 1 ? storm.clients : storm.offload;
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    storm_end(&storm);
}

TEST_EACH_LOOP(tls_storm, passes_when_groups_end_in_the_middle)
{
    for (unsigned who = 0; who < 3; who++)
        end_in_the_middle(host->backend, who);
}
