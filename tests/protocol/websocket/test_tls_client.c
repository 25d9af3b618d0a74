/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_ws_connect with wss, against a server of weir with a certificate of the test's authority.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/error.h>
#include <weir/tls.h>

#include "support/executor/call_counter.h"
#include "support/executor/promises.h"
#include "support/loop/host.h"
#include "support/tls/pki.h"

/* ---- the application: echoes on the server, counts on the client ---- */

struct caller {
    struct call_counter messages;
    char text[64];
};

static void on_echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo = {.name = "echo", .read = on_echo};

static int add_echo(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

static void accept_here(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_ws_accept(exchange, WEIR_WS_OPTIONS(.init = add_echo)), 0);
}

static void on_message(weir_ctx *ctx, weir_msg *msg)
{
    struct caller *caller = *(struct caller **)weir_ctx_state(ctx);
    weir_span bytes = weir_ws_message_bytes(weir_ws_message_of(msg));

    memcpy(caller->text, bytes.data, bytes.length);
    call_counter_add(&caller->messages);
    weir_msg_release(msg);
}

static int init_app(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct caller *));
    return 0;
}

static const weir_handler app = {
    .name = "app", .state_size = sizeof(struct caller *), .init = init_app, .read = on_message};

static int add_app(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &app, &user_data);
}

/* ---- both sides ---- */

struct secure {
    weir_http_server *server;
    weir_tls_context *tls, *trust;
    weir_promise *done;
    struct caller caller;
    char url[128];
};

static void open_secure(struct secure *secure, struct host *host, const struct pki_leaf *leaf)
{
    const weir_http_route routes[] = {{"GET", "/ws", accept_here}, {0}};
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;

    assert_int_equal(
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = leaf->certificate_file,
                                                        .key_file = leaf->key_file),
                               &secure->tls),
        0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_file = pki()->ca_file), &secure->trust),
        0);
    assert_int_equal(weir_http_server_start(
                         WEIR_HTTP_SERVER_OPTIONS(.tls_address = "127.0.0.1:0", .routes = routes,
                                                  .workers = host->group, .tls = secure->tls,
                                                  .add_tls = weir_tls_add),
                         &secure->server),
                     0);
    assert_int_equal(
        weir_channel_local_address(weir_server_listener(weir_http_server_server(secure->server), 0),
                                   &address),
        0);
    (void)snprintf(secure->url, sizeof(secure->url), "wss://%s/ws",
                   weir_address_format(&address, text, sizeof(text)));
    secure->done = new_promise(host->loop);
    assert_int_equal(
        weir_ws_connect(WEIR_WS_CLIENT_OPTIONS(.url = secure->url, .group = host->group,
                                               .tls = secure->trust, .add_tls = weir_tls_add_client,
                                               .ws = WEIR_WS_OPTIONS(.init = add_app,
                                                                     .user_data = &secure->caller)),
                        secure->done),
        0);
}

static void close_secure(struct secure *secure, struct host *host)
{
    weir_promise_release(secure->done);
    host_end(host);
    weir_http_server_release(secure->server);
    weir_tls_context_release(secure->trust);
    weir_tls_context_release(secure->tls);
}

TEST_EACH_LOOP(tls_client, echoes)
{
    struct secure secure = {0};

    open_secure(&secure, host, &pki()->server);
    assert_int_equal(weir_promise_sync(secure.done, weir_seconds(10)), 0);
    weir_ws_send_text(weir_promise_value(secure.done), "hello", NULL);
    assert_true(call_counter_await(&secure.caller.messages, 1));
    assert_string_equal(secure.caller.text, "hello");
    close_secure(&secure, host);
}

static void refuse(struct host *host, const struct pki_leaf *leaf)
{
    struct secure secure = {0};

    open_secure(&secure, host, leaf);
    assert_int_equal(weir_promise_sync(secure.done, weir_seconds(10)), WEIR_EUNTRUSTED);
    assert_memory_equal(weir_promise_detail(secure.done), secure.url, strlen(secure.url));
    close_secure(&secure, host);
}

TEST_EACH_LOOP(tls_client, trusts_no_stranger)
{
    refuse(host, &pki()->stranger);
}

TEST_EACH_LOOP(tls_client, trusts_no_server_of_another_name)
{
    refuse(host, &pki()->wrong_host);
}

TEST_EACH_LOOP(tls_client, refuses_a_context_with_http_2)
{
    weir_promise *done = new_promise(host->loop);
    struct caller caller = {0};
    weir_tls_context *tls = NULL;

    assert_int_equal(weir_tls_client_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.ca_file = pki()->ca_file, .alpn = "h2"), &tls),
                     0);
    assert_int_equal(
        weir_ws_connect(
            WEIR_WS_CLIENT_OPTIONS(.url = "wss://127.0.0.1:1/", .group = host->group, .tls = tls,
                                   .add_tls = weir_tls_add_client,
                                   .ws = WEIR_WS_OPTIONS(.init = add_app, .user_data = &caller)),
            done),
        0);
    assert_int_equal(weir_promise_sync(done, weir_seconds(10)), -EPROTONOSUPPORT);
    weir_promise_release(done);
    host_end(host);
    weir_tls_context_release(tls);
}
