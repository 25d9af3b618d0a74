/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server or a client of one loop, and a handler that takes notes.
 */
#include "support/tls/tls_endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/client.h>
#include <weir/error.h>
#include <weir/server.h>

#include "support/executor/group.h"
#include "support/tls/pki.h"

/* ---- notes ---- */

struct state {
    struct tls_endpoint *endpoint;
};

static int init(void *state, const void *options)
{
    ((struct state *)state)->endpoint = (struct tls_endpoint *)(uintptr_t)options;
    return 0;
}

struct tls_endpoint *tls_endpoint_of(weir_ctx *ctx)
{
    return ((struct state *)weir_ctx_state(ctx))->endpoint;
}

static void note(struct tls_endpoint *endpoint, const char *word, const char *what)
{
    if (what != NULL)
        event_log_write(&endpoint->events, "%s(%s)", word, what);
    else
        event_log_write(&endpoint->events, "%s", word);
    call_counter_add(&endpoint->notes);
}

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from != NULL ? from : "");
}

static void read_facts(struct tls_endpoint_handshake *facts, const weir_tls_handshake *handshake)
{
    weir_tls_certificate *peer = weir_tls_handshake_peer(handshake);

    facts->result = weir_tls_handshake_result(handshake);
    facts->is_resumed = weir_tls_handshake_is_resumed(handshake);
    facts->is_stapled = weir_tls_handshake_is_stapled(handshake);
    copy(facts->version, sizeof(facts->version), weir_tls_handshake_version(handshake));
    copy(facts->cipher, sizeof(facts->cipher), weir_tls_handshake_cipher(handshake));
    copy(facts->alpn, sizeof(facts->alpn), weir_tls_handshake_alpn(handshake));
    copy(facts->server_name, sizeof(facts->server_name), weir_tls_handshake_server_name(handshake));
    copy(facts->detail, sizeof(facts->detail), weir_tls_handshake_detail(handshake));
    copy(facts->peer, sizeof(facts->peer),
         peer != NULL ? weir_tls_certificate_subject(peer) : NULL);
}

static void on_handshake(struct tls_endpoint *endpoint, const weir_tls_handshake *handshake)
{
    weir__mutex_lock(&endpoint->lock);
    read_facts(&endpoint->facts, handshake);
    weir__mutex_unlock(&endpoint->lock);
    note(endpoint, "handshake", weir_error_name(weir_tls_handshake_result(handshake)));
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct tls_endpoint *endpoint = tls_endpoint_of(ctx);

    if (weir_tls_handshake_of(event) != NULL)
        on_handshake(endpoint, weir_tls_handshake_of(event));
    else if (event == weir_event_tls_closed())
        note(endpoint, "ended", NULL);
    weir_fire_event(ctx, event);
}

static void on_inactive(weir_ctx *ctx)
{
    note(tls_endpoint_of(ctx), "inactive", NULL);
    weir_fire_inactive(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct tls_endpoint *endpoint = tls_endpoint_of(ctx);

    weir__mutex_lock(&endpoint->lock);
    copy(endpoint->detail, sizeof(endpoint->detail), detail);
    weir__mutex_unlock(&endpoint->lock);
    note(endpoint, "error", weir_error_name(err));
    weir_close(ctx, NULL);
}

static void keep(struct tls_endpoint *endpoint, const weir_buf *buf)
{
    size_t length = weir_buf_readable(buf);
    char *received;

    weir__mutex_lock(&endpoint->lock);
    received = realloc(endpoint->received, endpoint->received_length + length + 1);
    if (received != NULL) {
        memcpy(received + endpoint->received_length, weir_buf_bytes(buf), length);
        endpoint->received = received;
        endpoint->received_length += length;
        received[endpoint->received_length] = '\0';
    }
    weir__mutex_unlock(&endpoint->lock);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct tls_endpoint *endpoint = tls_endpoint_of(ctx);
    tls_endpoint_read_fn *on_msg = endpoint->on_msg;

    keep(endpoint, weir_buf_of(msg));
    on_msg(ctx, msg);
    call_counter_add(&endpoint->notes); /* tls_endpoint_await_text */
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler taker_of_notes = {
    .name = "notes",
    .state_size = sizeof(struct state),
    .init = init,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
    .error = on_error,
};

void tls_endpoint_echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

void tls_endpoint_collect(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

void tls_endpoint_write(weir_ctx *ctx, const char *text)
{
    weir_buf *buf = NULL;

    if (weir_buf_create_from(text, strlen(text), &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

/* ---- making and ending ---- */

int tls_endpoint_add_recorder(struct tls_endpoint *endpoint, weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &taker_of_notes, endpoint);
}

int tls_endpoint_init(struct tls_endpoint *endpoint, weir_pipeline *pipeline)
{
    int err = 0;

    if (endpoint->tls != NULL)
        err = weir_tls_add_with(pipeline, endpoint->tls, &endpoint->options);
    return err < 0 ? err : tls_endpoint_add_recorder(endpoint, pipeline);
}

static int init_channel(weir_channel *channel, void *user_data)
{
    struct tls_endpoint *endpoint = user_data;
    tls_endpoint_init_fn *init_pipeline = endpoint->init;

    return init_pipeline(endpoint, weir_channel_pipeline(channel));
}

/* It has memory of its own: a test that fails leaves its loops running. */
static struct tls_endpoint *make(struct host *host, tls_endpoint_read_fn *on_msg)
{
    struct tls_endpoint *endpoint = calloc(1, sizeof(*endpoint));

    assert_non_null(endpoint);
    endpoint->host = host;
    endpoint->on_msg = on_msg;
    endpoint->init = tls_endpoint_init;
    endpoint->options = *WEIR_TLS_OPTIONS();
    event_log_open(&endpoint->events);
    weir__mutex_init(&endpoint->lock);
    return endpoint;
}

static void listen_somewhere(struct tls_endpoint *endpoint)
{
    weir_server *server = NULL;
    weir_address address;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = endpoint->host->group,
                                              .address = "127.0.0.1:0", .init_child = init_channel,
                                              .user_data = endpoint),
                          &server),
        0);
    endpoint->listener = weir_channel_retain(weir_server_listener(server, 0));
    weir_server_release(server);
    assert_int_equal(weir_channel_local_address(endpoint->listener, &address), 0);
    endpoint->port = weir_address_port(&address);
}

struct tls_endpoint *tls_endpoint_listen_plain(struct host *host)
{
    struct tls_endpoint *endpoint = make(host, tls_endpoint_echo);

    listen_somewhere(endpoint);
    return endpoint;
}

struct tls_endpoint *tls_endpoint_listen(struct host *host, const weir_tls_context_options *options)
{
    struct tls_endpoint *endpoint = make(host, tls_endpoint_echo);

    if (weir_tls_server_create(options, &endpoint->tls) < 0)
        fail_msg("%s", weir_tls_reason());
    listen_somewhere(endpoint);
    return endpoint;
}

struct tls_endpoint *tls_endpoint_create_client(struct host *host,
                                                const weir_tls_context_options *options)
{
    struct tls_endpoint *endpoint = make(host, tls_endpoint_collect);

    if (weir_tls_client_create(options, &endpoint->tls) < 0)
        fail_msg("%s", weir_tls_reason());
    endpoint->options.server_name = "localhost";
    return endpoint;
}

struct tls_endpoint *tls_endpoint_listen_localhost(struct host *host)
{
    return tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                       .key_pem = pki()->server.key));
}

struct tls_endpoint *tls_endpoint_create_localhost_client(struct host *host)
{
    return tls_endpoint_create_client(host, WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca));
}

void tls_endpoint_close(struct tls_endpoint *endpoint)
{
    host_end(endpoint->host);
    weir_channel_release(endpoint->listener);
    weir_channel_release(endpoint->client);
    weir_tls_context_release(endpoint->tls);
    weir__mutex_deinit(&endpoint->lock);
    event_log_close(&endpoint->events);
    free(endpoint->received);
    free(endpoint);
}

/* ---- a client's part ---- */

void tls_endpoint_connect(struct tls_endpoint *endpoint, unsigned port)
{
    char address[32];

    tls_endpoint_clear(endpoint);
    weir_channel_release(endpoint->client);
    endpoint->client = NULL;
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    assert_int_equal(weir_client_connect_sync(
                         WEIR_CLIENT_OPTIONS(.group = endpoint->host->group, .address = address,
                                             .init = init_channel, .user_data = endpoint),
                         &endpoint->client),
                     0);
}

void tls_endpoint_disconnect(struct tls_endpoint *endpoint)
{
    weir_channel_close(endpoint->client, NULL);
    assert_int_equal(weir_channel_await_closed(endpoint->client, TEST_TIMEOUT_NS), 0);
}

void tls_endpoint_send_text(struct tls_endpoint *endpoint, const char *text)
{
    tls_endpoint_send(endpoint, text, strlen(text));
}

void tls_endpoint_send(struct tls_endpoint *endpoint, const void *bytes, size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(bytes, length, &buf), 0);
    weir_channel_write_and_flush(endpoint->client, weir_buf_msg(buf), NULL);
}

/* ---- received data ---- */

static bool has_received_locked(const struct tls_endpoint *endpoint, const char *text,
                                size_t length)
{
    return endpoint->received_length >= length &&
           (text == NULL || strstr(endpoint->received, text) != NULL);
}

static bool has_received(struct tls_endpoint *endpoint, const char *text, size_t length)
{
    bool has;

    weir__mutex_lock(&endpoint->lock);
    has = has_received_locked(endpoint, text, length);
    weir__mutex_unlock(&endpoint->lock);
    return has;
}

bool tls_endpoint_has_received(struct tls_endpoint *endpoint, const char *text)
{
    return has_received(endpoint, text, strlen(text));
}

bool tls_endpoint_has_received_only(struct tls_endpoint *endpoint, const void *bytes, size_t length)
{
    bool has;

    weir__mutex_lock(&endpoint->lock);
    has = endpoint->received_length == length && memcmp(endpoint->received, bytes, length) == 0;
    weir__mutex_unlock(&endpoint->lock);
    return has;
}

void tls_endpoint_clear(struct tls_endpoint *endpoint)
{
    weir__mutex_lock(&endpoint->lock);
    free(endpoint->received);
    endpoint->received = NULL;
    endpoint->received_length = 0;
    weir__mutex_unlock(&endpoint->lock);
}

static void await_received(struct tls_endpoint *endpoint, const char *text, size_t length)
{
    for (;;) {
        uint32_t notes = atomic_load(&endpoint->notes.calls);

        if (has_received(endpoint, text, length))
            return;
        if (!call_counter_await(&endpoint->notes, notes + 1))
            fail_msg("waiting for %zu bytes, received %zu; notes: %s", length,
                     endpoint->received_length, endpoint->events.text);
    }
}

void tls_endpoint_await_text(struct tls_endpoint *endpoint, const char *text)
{
    await_received(endpoint, text, strlen(text));
}

void tls_endpoint_await_length(struct tls_endpoint *endpoint, size_t length)
{
    await_received(endpoint, NULL, length);
}

void tls_endpoint_await(struct tls_endpoint *endpoint, const char *word)
{
    events_await(&endpoint->events, &endpoint->notes, word, 1);
}

struct tls_endpoint_handshake tls_endpoint_handshake(struct tls_endpoint *endpoint)
{
    struct tls_endpoint_handshake facts;

    weir__mutex_lock(&endpoint->lock);
    facts = endpoint->facts;
    weir__mutex_unlock(&endpoint->lock);
    return facts;
}

void tls_endpoint_check_detail(struct tls_endpoint *endpoint, const char *words, const char *file,
                               int line)
{
    char said[TLS_ENDPOINT_DETAIL_SIZE];

    weir__mutex_lock(&endpoint->lock);
    copy(said, sizeof(said), endpoint->detail);
    weir__mutex_unlock(&endpoint->lock);
    if (strstr(said, words) != NULL)
        return;
    print_error("\"%s\" is not among the words \"%s\"\n", words, said);
    _fail(file, line);
}
