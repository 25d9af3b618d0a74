/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server or a client of one loop, and a handler that takes notes.
 */
#include "support/tls/tls_party.h"

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
    struct party *party;
};

static int init(void *state, const void *options)
{
    ((struct state *)state)->party = (struct party *)(uintptr_t)options;
    return 0;
}

struct party *party_of(weir_ctx *ctx)
{
    return ((struct state *)weir_ctx_state(ctx))->party;
}

static void note(struct party *party, const char *word, const char *what)
{
    if (what != NULL)
        event_log_write(&party->events, "%s(%s)", word, what);
    else
        event_log_write(&party->events, "%s", word);
    call_counter_add(&party->notes);
}

static void copy(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from != NULL ? from : "");
}

static void read_facts(struct party_facts *facts, const weir_tls_handshake *handshake)
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

static void on_handshake(struct party *party, const weir_tls_handshake *handshake)
{
    weir__mutex_lock(&party->lock);
    read_facts(&party->facts, handshake);
    weir__mutex_unlock(&party->lock);
    note(party, "handshake", weir_error_name(weir_tls_handshake_result(handshake)));
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct party *party = party_of(ctx);

    if (weir_tls_handshake_of(event) != NULL)
        on_handshake(party, weir_tls_handshake_of(event));
    else if (event == weir_event_tls_closed())
        note(party, "ended", NULL);
    weir_fire_event(ctx, event);
}

static void on_inactive(weir_ctx *ctx)
{
    note(party_of(ctx), "inactive", NULL);
    weir_fire_inactive(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct party *party = party_of(ctx);

    weir__mutex_lock(&party->lock);
    copy(party->words, sizeof(party->words), detail);
    weir__mutex_unlock(&party->lock);
    note(party, "error", weir_error_name(err));
    weir_close(ctx, NULL);
}

static void keep(struct party *party, const weir_buf *buf)
{
    size_t length = weir_buf_readable(buf);
    char *heard;

    weir__mutex_lock(&party->lock);
    heard = realloc(party->heard, party->heard_length + length + 1);
    if (heard != NULL) {
        memcpy(heard + party->heard_length, weir_buf_bytes(buf), length);
        party->heard = heard;
        party->heard_length += length;
        heard[party->heard_length] = '\0';
    }
    weir__mutex_unlock(&party->lock);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct party *party = party_of(ctx);
    party_manner *manner = party->manner;

    keep(party, weir_buf_of(msg));
    manner(ctx, msg);
    call_counter_add(&party->notes); /* party_await_heard */
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

void party_echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

void party_keep(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

void party_write(weir_ctx *ctx, const char *text)
{
    weir_buf *buf = NULL;

    if (weir_buf_create_from(text, strlen(text), &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

/* ---- making and ending ---- */

int party_add_notes(struct party *party, weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &taker_of_notes, party);
}

int party_init(struct party *party, weir_pipeline *pipeline)
{
    int err = 0;

    if (party->tls != NULL)
        err = weir_tls_add_with(pipeline, party->tls, &party->options);
    return err < 0 ? err : party_add_notes(party, pipeline);
}

static int init_channel(weir_channel *channel, void *user_data)
{
    struct party *party = user_data;
    party_init_fn *init_pipeline = party->init;

    return init_pipeline(party, weir_channel_pipeline(channel));
}

/* It has memory of its own: a test that fails leaves its loops running. */
static struct party *make(struct host *host, party_manner *manner)
{
    struct party *party = calloc(1, sizeof(*party));

    assert_non_null(party);
    party->host = host;
    party->manner = manner;
    party->init = party_init;
    party->options = *WEIR_TLS_OPTIONS();
    event_log_open(&party->events);
    weir__mutex_init(&party->lock);
    return party;
}

static void listen_somewhere(struct party *party)
{
    weir_server *server = NULL;
    weir_address address;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = party->host->group, .address = "127.0.0.1:0",
                                              .init_child = init_channel, .user_data = party),
                          &server),
        0);
    party->listener = weir_channel_retain(weir_server_listener(server, 0));
    weir_server_release(server);
    assert_int_equal(weir_channel_local_address(party->listener, &address), 0);
    party->port = weir_address_port(&address);
}

struct party *party_listen_plainly(struct host *host)
{
    struct party *party = make(host, party_echo);

    listen_somewhere(party);
    return party;
}

struct party *party_listen(struct host *host, const weir_tls_context_options *options)
{
    struct party *party = make(host, party_echo);

    if (weir_tls_server_create(options, &party->tls) < 0)
        fail_msg("%s", weir_tls_reason());
    listen_somewhere(party);
    return party;
}

struct party *party_visit(struct host *host, const weir_tls_context_options *options)
{
    struct party *party = make(host, party_keep);

    if (weir_tls_client_create(options, &party->tls) < 0)
        fail_msg("%s", weir_tls_reason());
    party->options.server_name = "localhost";
    return party;
}

struct party *party_listen_as_localhost(struct host *host)
{
    return party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                       .key_pem = pki()->server.key));
}

struct party *party_visit_localhost(struct host *host)
{
    return party_visit(host, WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca));
}

void party_end(struct party *party)
{
    host_end(party->host);
    weir_channel_release(party->listener);
    weir_channel_release(party->client);
    weir_tls_context_release(party->tls);
    weir__mutex_deinit(&party->lock);
    event_log_close(&party->events);
    free(party->heard);
    free(party);
}

/* ---- a client's part ---- */

void party_connect(struct party *party, unsigned port)
{
    char address[32];

    party_forget(party);
    weir_channel_release(party->client);
    party->client = NULL;
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    assert_int_equal(weir_client_connect_sync(
                         WEIR_CLIENT_OPTIONS(.group = party->host->group, .address = address,
                                             .init = init_channel, .user_data = party),
                         &party->client),
                     0);
}

void party_leave(struct party *party)
{
    weir_channel_close(party->client, NULL);
    assert_int_equal(weir_channel_await_closed(party->client, TEST_TIMEOUT_NS), 0);
}

void party_say(struct party *party, const char *text)
{
    party_send(party, text, strlen(text));
}

void party_send(struct party *party, const void *bytes, size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(bytes, length, &buf), 0);
    weir_channel_write_and_flush(party->client, weir_buf_msg(buf), NULL);
}

/* ---- hearing ---- */

static bool has_heard_locked(const struct party *party, const char *text, size_t length)
{
    return party->heard_length >= length && (text == NULL || strstr(party->heard, text) != NULL);
}

static bool has_heard(struct party *party, const char *text, size_t length)
{
    bool has;

    weir__mutex_lock(&party->lock);
    has = has_heard_locked(party, text, length);
    weir__mutex_unlock(&party->lock);
    return has;
}

bool party_has_heard(struct party *party, const char *text)
{
    return has_heard(party, text, strlen(text));
}

bool party_has_heard_only(struct party *party, const void *bytes, size_t length)
{
    bool has;

    weir__mutex_lock(&party->lock);
    has = party->heard_length == length && memcmp(party->heard, bytes, length) == 0;
    weir__mutex_unlock(&party->lock);
    return has;
}

void party_forget(struct party *party)
{
    weir__mutex_lock(&party->lock);
    free(party->heard);
    party->heard = NULL;
    party->heard_length = 0;
    weir__mutex_unlock(&party->lock);
}

static void await_heard(struct party *party, const char *text, size_t length)
{
    for (;;) {
        uint32_t notes = atomic_load(&party->notes.calls);

        if (has_heard(party, text, length))
            return;
        if (!call_counter_await(&party->notes, notes + 1))
            fail_msg("waiting for %zu bytes, heard %zu; notes: %s", length, party->heard_length,
                     party->events.text);
    }
}

void party_await_heard(struct party *party, const char *text)
{
    await_heard(party, text, strlen(text));
}

void party_await_length(struct party *party, size_t length)
{
    await_heard(party, NULL, length);
}

void party_await(struct party *party, const char *word)
{
    events_await(&party->events, &party->notes, word, 1);
}

struct party_facts party_facts(struct party *party)
{
    struct party_facts facts;

    weir__mutex_lock(&party->lock);
    facts = party->facts;
    weir__mutex_unlock(&party->lock);
    return facts;
}

void party_check_words(struct party *party, const char *words, const char *file, int line)
{
    char said[PARTY_WORDS_SIZE];

    weir__mutex_lock(&party->lock);
    copy(said, sizeof(said), party->words);
    weir__mutex_unlock(&party->lock);
    if (strstr(said, words) != NULL)
        return;
    print_error("\"%s\" is not among the words \"%s\"\n", words, said);
    _fail(file, line);
}
