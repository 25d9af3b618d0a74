/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How connections to real programs end: closed by either side, with close_notify or without.
 */
#include <weir/buf.h>
#include <weir/handler.h>
#include <weir/pipeline.h>

#include "support/executor/group.h"
#include "support/tls/peer_program.h"
#include "support/tls/pki.h"

/* ---- the end ---- */

static void say_farewell(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    tls_endpoint_write(ctx, "farewell\n");
    weir_close(ctx, NULL);
}

TEST_EACH_LOOP(programs, see_the_end_of_tls_when_our_server_closes)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    endpoint->on_msg = say_farewell;
    for (each_version(version)) {
        struct program *client = s_client(endpoint, version->flag);

        program_say(client, "bye\n");
        program_await(client, "farewell\n");
        program_await(client, "closed\n");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) inactive");
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, gnutls_cli_sees_the_end_of_tls)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "gnutls-cli");
    endpoint = tls_endpoint_listen_localhost(host);
    endpoint->on_msg = say_farewell;
    client = gnutls_cli(endpoint, "--verbose");
    program_say(client, "bye\n");
    program_await(client, "farewell\n");
    program_await(client, "- Peer has closed the GnuTLS connection");
    assert_false(program_printed(client, "non-properly terminated"));
    (void)program_end(client);
    assert_endpoint(endpoint, "handshake(OK) inactive");
    tls_endpoint_close(endpoint);
}

/* ---- half closure ---- */

static _Atomic int answered; /* how the answer went, once it has */

static void on_answered(weir_promise *promise, void *channel)
{
    answered = weir_promise_result(promise) == 0 ? 1 : -1;
    weir_channel_close(channel, NULL);
    weir_channel_release(channel);
}

static void answer_the_end(weir_ctx *ctx, weir_msg *event)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    weir_promise *promise;
    weir_buf *buf;

    if (event == weir_event_input_closed() &&
        weir_promise_create(weir_ctx_executor(ctx), &promise) == 0) {
        if (weir_promise_add_listener(promise, on_answered, weir_channel_retain(channel)) == 0 &&
            weir_buf_create_from("farewell\n", 9, &buf) == 0)
            weir_write_and_flush(ctx, weir_buf_msg(buf), promise);
        weir_promise_release(promise);
    }
    weir_fire_event(ctx, event);
}

static int init_half(struct tls_endpoint *endpoint, weir_pipeline *pipeline)
{
    static const weir_handler answerer = {.name = "answerer", .event = answer_the_end};
    int err = weir_channel_set_options(weir_pipeline_channel(pipeline),
                                       WEIR_CHANNEL_OPTIONS(.half_closure = true));

    if (err == 0)
        err = weir_tls_add_with(pipeline, endpoint->tls, &endpoint->options);
    if (err == 0)
        err = weir_pipeline_add_last(pipeline, &answerer, NULL);
    return err < 0 ? err : tls_endpoint_add_recorder(endpoint, pipeline);
}

/* It ends TLS and its stream, and waits a little for what may still come. */
TEST_EACH_LOOP(programs, s_client_at_the_end_of_its_input_is_still_answered)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    endpoint->init = init_half;
    for (each_version(version)) {
        struct program *client = s_client(endpoint, version->flag);

        answered = 0;
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
        assert_int_equal(answered, 1);
    }
    tls_endpoint_close(endpoint);
}

/* It has read all that was sent to it: so its end is no reset. */
TEST_EACH_LOOP(programs, s_client_that_is_killed_has_cut_off)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    for (each_version(version)) {
        struct program *client = s_client(endpoint, version->flag, "-quiet");

        program_say(client, "hello\n");
        program_await(client, "hello\n");
        program_release(client);
        assert_endpoint(endpoint, "handshake(OK) error(WEIR_ECUTOFF) inactive");
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_that_is_killed_has_cut_off)
{
    struct tls_endpoint *endpoint;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    server = s_server(&port, "-rev");
    tls_endpoint_connect(endpoint, port);
    tls_endpoint_send_text(endpoint, "hello\n");
    tls_endpoint_await_text(endpoint, "olleh\n");
    program_release(server);
    assert_endpoint(endpoint, "handshake(OK) error(WEIR_ECUTOFF) inactive");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_ends_tls_and_so_do_we)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag, "-www");

        tls_endpoint_connect(endpoint, port);
        tls_endpoint_send_text(endpoint, "GET / HTTP/1.0\r\n\r\n");
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
        tls_endpoint_await_text(endpoint, "HTTP/1.0 200 ok\r\n");
        tls_endpoint_await_text(endpoint, "</pre>");
        program_release(server);
    }
    tls_endpoint_close(endpoint);
}

/* ---- on the way ---- */

/* Who is asked for a new key has one before the next bytes. */
#define KEY_UPDATE "<<< TLS 1.3, Handshake [length 0005], KeyUpdate"

TEST_EACH_LOOP(programs, s_client_changes_its_key_in_mid_stream)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    client = s_client(endpoint, "-tls1_3", "-msg");
    program_say(client, "first\n");
    program_await(client, "first\n");
    program_say(client, "k\n");
    program_await(client, "KEYUPDATE");
    program_say(client, "second\n");
    program_await(client, "second\n");
    assert_false(program_printed(client, KEY_UPDATE));
    program_say(client, "K\n");
    program_await(client, "    18 00 00 01 01");
    program_say(client, "third\n");
    program_await(client, KEY_UPDATE);
    program_await(client, "third\n");
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_changes_its_key_in_mid_stream)
{
    struct tls_endpoint *endpoint;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    server = s_server(&port, "-tls1_3", "-msg");
    tls_endpoint_connect(endpoint, port);
    tls_endpoint_send_text(endpoint, "first\n");
    program_await(server, "first\n");
    program_say(server, "K\n");
    program_await(server, "    18 00 00 01 01");
    program_say(server, "second\n");
    tls_endpoint_await_text(endpoint, "second\n");
    tls_endpoint_send_text(endpoint, "third\n");
    program_await(server, KEY_UPDATE);
    program_await(server, "third\n");
    tls_endpoint_disconnect(endpoint);
    program_release(server);
    assert_endpoint(endpoint, "handshake(OK) inactive");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_shakes_hands_with_another_thread)
{
    weir_group *group;
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    endpoint = tls_endpoint_listen_localhost(host);
    endpoint->options.offload = group;
    endpoint->init = tls_endpoint_init; /* which the loop looks at first */
    for (each_version(version)) {
        struct program *client = s_client(endpoint, version->flag);

        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
    }
    tls_endpoint_close(endpoint);
    end_group(group);
}

TEST_EACH_LOOP(programs, s_client_may_not_renegotiate)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    client = s_client(endpoint, "-tls1_2");
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_say(client, "R\n");
    program_await(client, "no renegotiation");
    assert_int_not_equal(program_end(client), 0);
    tls_endpoint_await(endpoint, "inactive");
    assert_int_equal(event_log_count(&endpoint->events, "handshake"), 1);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, gnutls_cli_may_not_renegotiate)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "gnutls-cli");
    endpoint = tls_endpoint_listen_localhost(host);
    client = gnutls_cli(endpoint, "--rehandshake", "--priority", tls_versions[0].priority);
    (void)program_wait(client);
    assert_printed(client, "*** ReHandshake has failed");
    program_release(client);
    tls_endpoint_await(endpoint, "inactive");
    assert_int_equal(event_log_count(&endpoint->events, "handshake"), 1);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_may_not_renegotiate)
{
    struct tls_endpoint *endpoint;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    server = s_server(&port, "-tls1_2");
    tls_endpoint_connect(endpoint, port);
    tls_endpoint_send_text(endpoint, "hello\n");
    program_await(server, "hello\n");
    program_say(server, "r\n");
    tls_endpoint_await(endpoint, "inactive");
    assert_int_equal(event_log_count(&endpoint->events, "handshake"), 1);
    program_release(server);
    tls_endpoint_close(endpoint);
}
