/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listeners of a connect run before `active`, when TLS has not begun: what they write is sent
 * encrypted, and behind a PROXY header if there is one.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/buf.h>
#include <weir/client.h>
#include <weir/error.h>
#include <weir/proxy_protocol.h>
#include <weir/server.h>
#include <weir/tls.h>

#include "support/channel/event_wait.h"
#include "support/channel/test_channel.h"
#include "support/timeout.h"
#include "support/tls/tls_line.h"
#include "support/transport/connection.h"

#define FORGED "PROXY TCP4 6.6.6.6 7.7.7.7 6 7\r\nGET"
#define HEADER "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"

/* ---- one client ---- */

/* Bytes of the client as a server without TLS receives them. */
struct bytes {
    size_t length;
    char data[4096];
};

static void collect(weir_ctx *ctx, weir_msg *msg)
{
    struct bytes *bytes = connection_end_of(ctx)->user_data;
    weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_buf_readable(buf);

    if (bytes->length + length <= sizeof(bytes->data)) {
        memcpy(bytes->data + bytes->length, weir_buf_bytes(buf), length);
        bytes->length += length;
    }
    weir_msg_release(msg);
}

static int add_tls(weir_pipeline *pipeline, void *setup)
{
    return weir_tls_add_with(pipeline, ((struct tls_setup *)setup)->client,
                             WEIR_TLS_OPTIONS(.server_name = "localhost"));
}

static int add_sender(weir_pipeline *pipeline)
{
    weir_proxy_header *header = NULL;
    weir_address source, destination;
    int err = weir_address_parse("192.0.2.1:1", &source);

    if (err == 0)
        err = weir_address_parse("192.0.2.2:2", &destination);
    if (err == 0)
        err = weir_proxy_header_create(
            WEIR_PROXY_HEADER_OPTIONS(.version = 1, .source = &source, .destination = &destination),
            &header);
    if (err == 0)
        err = weir_proxy_sender_add(pipeline, header);
    weir_proxy_header_release(header);
    return err;
}

static int add_sender_and_tls(weir_pipeline *pipeline, void *setup)
{
    int err = add_sender(pipeline);

    return err == 0 ? add_tls(pipeline, setup) : err;
}

static int add_tls_and_sender(weir_pipeline *pipeline, void *setup)
{
    int err = add_tls(pipeline, setup);

    return err == 0 ? add_sender(pipeline) : err;
}

/* A server without TLS receives this text, then a ClientHello, and no plain bytes. */
static void assert_hidden(struct connection *connection, int (*add)(weir_pipeline *, void *),
                          const char *text)
{
    size_t length = strlen(text);
    struct bytes received = {0};

    tls_setup_open(&tls_line_setup);
    connection->server.user_data = &received;
    connection->server.on_read = collect;
    connection_prepare(connection,
                       &(const struct connection_options){.add = add, .arg = &tls_line_setup});
    connection_start_and_send(connection, "secret");
    connection_await_received(&connection->server, length + 100);
    connection_close(connection);
    assert_memory_equal(received.data, text, length);
    assert_int_equal(received.data[length], 0x16); /* a record of a handshake */
    assert_int_equal(received.data[length + 1], 0x03);
    assert_null(memmem(received.data, received.length, "secret", 6));
    tls_setup_close(&tls_line_setup);
}

TEST_EACH_CONNECTION(tls_connect_listener, writes_nothing_in_plain)
{
    assert_hidden(connection, add_tls, "");
}

TEST_EACH_CONNECTION(tls_connect_listener, writes_behind_a_header_and_tls)
{
    assert_hidden(connection, add_sender_and_tls, HEADER);
}

static void assert_delivered(struct connection *connection, int (*add)(weir_pipeline *, void *),
                             const char *text, const char *expected)
{
    struct bytes received = {0};

    tls_setup_open(&tls_line_setup);
    connection->server.user_data = &received;
    connection->server.on_active = tls_line_add_server;
    connection->server.on_read = collect;
    connection_prepare(connection,
                       &(const struct connection_options){.add = add, .arg = &tls_line_setup});
    connection_start_and_send(connection, text);
    connection_await_received(&connection->server, strlen(expected));
    connection_close(connection);
    assert_int_equal(received.length, strlen(expected));
    assert_memory_equal(received.data, expected, strlen(expected));
    tls_setup_close(&tls_line_setup);
}

TEST_EACH_CONNECTION(tls_connect_listener, writes_what_comes_with_the_handshake)
{
    assert_delivered(connection, add_tls, "secret", "secret");
}

TEST_EACH_CONNECTION(tls_connect_listener, writes_behind_a_header_inside_tls)
{
    assert_delivered(connection, add_tls_and_sender, FORGED, HEADER FORGED);
}

static void write_and_close(weir_promise *connected, void *line_)
{
    struct connection *connection = line_;

    (void)connected;
    connection_send(&connection->client, "secret");
    weir_channel_close(connection->client.channel, NULL);
    connection_note(&connection->client, "said");
}

static void write_and_shut(weir_promise *connected, void *line_)
{
    struct connection *connection = line_;

    (void)connected;
    weir_channel_write(connection->client.channel, text_msg("secret"), NULL);
    weir_channel_shutdown_output(connection->client.channel, NULL);
    connection_note(&connection->client, "said");
}

/* All that was written comes, and the end of TLS behind it. */
static void assert_ended(struct connection *connection, weir_listener_fn *listener)
{
    struct bytes received = {0};
    weir_promise *connected = NULL;

    tls_setup_open(&tls_line_setup);
    connection->server.user_data = &received;
    connection->server.on_active = tls_line_add_server;
    connection->server.on_read = collect;
    connection_prepare(connection,
                       &(const struct connection_options){.add = add_tls, .arg = &tls_line_setup});
    assert_int_equal(weir_promise_create(weir_executor_immediate(), &connected), 0);
    assert_int_equal(weir_promise_add_listener(connected, listener, connection), 0);
    weir_channel_connect(connection->client.channel, &connection->address, NULL, connected);
    assert_int_equal(connection_result(connected), 0);
    connection_await(&connection->client, "said", 1);
    connection_await(&connection->server, "tls-closed", 1);
    assert_int_equal(connection->server.received, strlen("secret"));
    connection_close(connection);
    assert_memory_equal(received.data, "secret", strlen("secret"));
    tls_setup_close(&tls_line_setup);
}

TEST_EACH_CONNECTION(tls_connect_listener, closes_behind_the_handshake_and_what_it_wrote)
{
    assert_ended(connection, write_and_close);
}

TEST_EACH_CONNECTION(tls_connect_listener, ends_the_output_behind_the_handshake_and_what_it_wrote)
{
    assert_ended(connection, write_and_shut);
}

/* ---- the attack ---- */

/*
 * attacker -> proxy -> upstream: the proxy connects when the first bytes come, and forwards them in
 * the listener of that connect. All of it is on one loop.
 */
struct attack {
    weir_group *group;
    struct tls_setup *setup; /* between proxy and upstream; NULL = plain */
    struct event_log events; /* recorded by the upstream */
    struct call_counter notes;
    char upstream[WEIR_ADDRESS_TEXT_SIZE];
};

static const weir_attribute attack_key = {.name = "attack"};

static struct attack *attack_of(weir_ctx *ctx)
{
    return weir_attribute_get(weir_ctx_channel(ctx), &attack_key);
}

static void upstream_read(weir_ctx *ctx, weir_msg *msg)
{
    struct attack *attack = attack_of(ctx);
    char text[WEIR_ADDRESS_TEXT_SIZE] = "?";
    weir_address source;

    if (weir_proxy_source(weir_ctx_channel(ctx), &source) == 0)
        (void)weir_address_format(&source, text, sizeof(text));
    *strrchr(text, ':') = '\0';
    event_log_write(&attack->events, "%s", text);
    call_counter_add(&attack->notes);
    weir_msg_release(msg);
}

static int upstream_init(weir_channel *channel, void *attack_)
{
    static const weir_handler reader = {.name = "reader", .read = upstream_read};
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    struct attack *attack = attack_;
    int err = weir_attribute_set(channel, &attack_key, attack);

    if (err == 0 && attack->setup != NULL)
        err = weir_tls_add(pipeline, attack->setup->server);
    if (err == 0)
        err = weir_proxy_receiver_add(pipeline, NULL);
    return err == 0 ? weir_pipeline_add_last(pipeline, &reader, NULL) : err;
}

/* The proxy's connection to the upstream, with the client's address in the header. */
static int back_init(weir_channel *channel, void *front)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    struct attack *attack = weir_attribute_get(front, &attack_key);
    weir_proxy_header *header = NULL;
    weir_address source, destination;
    int err = attack->setup != NULL ? add_tls(pipeline, attack->setup) : 0;

    if (err == 0)
        err = weir_channel_remote_address(front, &source);
    if (err == 0)
        err = weir_channel_local_address(front, &destination);
    if (err == 0)
        err = weir_proxy_header_create(
            WEIR_PROXY_HEADER_OPTIONS(.source = &source, .destination = &destination), &header);
    if (err == 0)
        err = weir_proxy_sender_add(pipeline, header);
    weir_proxy_header_release(header);
    return err;
}

static void link_both(weir_promise *connecting, void *msg)
{
    weir_channel *back = weir_promise_value(connecting);

    if (weir_promise_result(connecting) == 0)
        weir_channel_write_and_flush(back, msg, NULL);
    else
        weir_msg_release(msg);
}

static void front_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_promise *connecting = NULL;
    struct attack *attack = attack_of(ctx);

    if (weir_client_connect(WEIR_CLIENT_OPTIONS(.group = attack->group, .address = attack->upstream,
                                                .init = back_init,
                                                .user_data = weir_ctx_channel(ctx)),
                            &connecting) < 0 ||
        weir_promise_add_listener(connecting, link_both, msg) < 0)
        weir_msg_release(msg);
    weir_promise_release(connecting);
}

static int front_init(weir_channel *channel, void *attack)
{
    static const weir_handler forwarder = {.name = "forwarder", .read = front_read};
    int err = weir_attribute_set(channel, &attack_key, attack);

    return err == 0 ? weir_pipeline_add_last(weir_channel_pipeline(channel), &forwarder, NULL)
                    : err;
}

static weir_server *serve(struct attack *attack, weir_init_fn *init, weir_address *ret_address)
{
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = attack->group, .address = "127.0.0.1:0",
                                              .init_child = init, .user_data = attack),
                          &server),
        0);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), ret_address), 0);
    return server;
}

static int call_proxy(const weir_address *address)
{
    int attacker = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(attacker, (const struct sockaddr *)&address->storage, address->length),
                     0);
    return attacker;
}

static void attack_on(struct host *host, struct tls_setup *setup)
{
    struct attack attack = {.group = host->group, .setup = setup};
    weir_server *upstream, *proxy;
    weir_address address;
    char said[EVENT_LOG_SIZE];
    int attacker;

    event_log_open(&attack.events);
    upstream = serve(&attack, upstream_init, &address);
    (void)weir_address_format(&address, attack.upstream, sizeof(attack.upstream));
    proxy = serve(&attack, front_init, &address);
    attacker = call_proxy(&address);
    assert_int_equal(write(attacker, FORGED, strlen(FORGED)), strlen(FORGED));
    assert_string_equal(events_await_all(&attack.events, &attack.notes, "127.0.0.1", said),
                        "127.0.0.1");
    (void)close(attacker);
    host_end(host);
    weir_server_release(proxy);
    weir_server_release(upstream);
    event_log_close(&attack.events);
}

TEST_EACH_LOOP(tls_connect_listener, cannot_be_made_to_forge_an_address)
{
    attack_on(host, NULL);
}

TEST_EACH_LOOP(tls_connect_listener, cannot_be_made_to_forge_an_address_inside_tls)
{
    struct tls_setup setup;

    tls_setup_open(&setup);
    attack_on(host, &setup);
    tls_setup_close(&setup);
}
