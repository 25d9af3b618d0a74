/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/session_pair.h"

#include <string.h>

#include <weir/buf.h>

#include "support/tls/pki.h"

weir__tls_settings *talk_settings(const weir_tls_context_options *options, bool is_server)
{
    char reason[WEIR__TLS_REASON_SIZE] = "";
    weir__tls_settings *settings = NULL;
    int err = weir__tls_openssl.settings_create(options, is_server, reason, &settings);

    if (err < 0)
        fail_msg("settings: %s: %s", weir_error_name(err), reason);
    return settings;
}

weir__tls_settings *talk_server(enum weir_tls_version version)
{
    return talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key,
                                                  .max_version = version),
                         true);
}

weir__tls_settings *talk_client(enum weir_tls_version version)
{
    return talk_settings(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .max_version = version),
                         false);
}

static void begin(struct talker *talker, struct talker *other, weir__tls_settings *settings,
                  const weir__tls_peer *peer)
{
    *talker = (struct talker){
        .other = other,
        .piece = SIZE_MAX,
        .flip_at = SIZE_MAX,
        .cut_at = SIZE_MAX,
        .status = WEIR__TLS_MORE,
    };
    assert_int_equal(weir__tls_openssl.session_create(settings, peer, &talker->session), 0);
    assert_int_equal(weir_buf_create(64, 0, &talker->heard), 0);
    weir__tls_openssl.settings_release(settings);
}

void talk_begin(struct talk *talk, weir__tls_settings *client, weir__tls_settings *server,
                const char *server_name)
{
    talk_begin_as(talk, client, server, &(weir__tls_peer){.server_name = server_name}, false);
}

void talk_begin_as(struct talk *talk, weir__tls_settings *client, weir__tls_settings *server,
                   const weir__tls_peer *client_peer, bool asks)
{
    begin(&talk->client, &talk->server, client, client_peer);
    begin(&talk->server, &talk->client, server, &(weir__tls_peer){.asks = asks});
}

void talk_begin_plainly(struct talk *talk, enum weir_tls_version version)
{
    talk_begin(talk, talk_client(version), talk_server(version), "example.test");
}

void talk_begin_asking(struct talk *talk, weir__tls_settings *client, weir__tls_settings *server,
                       const char *server_name)
{
    talk_begin_as(talk, client, server, &(weir__tls_peer){.server_name = server_name}, true);
}

void talk_choose(struct talk *talk, weir__tls_settings *settings)
{
    assert_int_equal(talk->server.status, WEIR__TLS_CHOOSE);
    weir__tls_openssl.choose(talk->server.session, settings);
    if (settings != NULL)
        weir__tls_openssl.settings_release(settings);
    (void)talk_step(&talk->server);
}

void talk_end_one(struct talker *talker)
{
    talker->session->engine->session_release(talker->session);
    weir_buf_release(talker->io.in);
    weir_buf_release(talker->io.out);
    weir_buf_release(talker->heard);
}

void talk_end(struct talk *talk)
{
    talk_end_one(&talk->client);
    talk_end_one(&talk->server);
}

void talk_set_piece(struct talk *talk, size_t piece)
{
    talk->client.piece = talk->server.piece = piece;
}

bool talk_fetch(struct talker *talker)
{
    weir_buf *from = talker->other->io.out;
    size_t length = from != NULL ? weir_buf_readable(from) : 0;

    if (length > talker->piece)
        length = talker->piece;
    if (length == 0)
        return false;
    if (talker->io.in == NULL)
        assert_int_equal(weir_buf_create(length, 0, &talker->io.in), 0);
    if (weir_buf_readable(talker->io.in) == 0)
        weir_buf_clear(talker->io.in);
    if (length > talker->cut_at - talker->fetched)
        length = talker->cut_at - talker->fetched;
    if (length == 0)
        return false;
    assert_int_equal(weir_buf_write_buf(talker->io.in, from, length), 0);
    if (talker->flip_at - talker->fetched < length)
        *(weir_buf_space(talker->io.in) - length + (talker->flip_at - talker->fetched)) ^= 1;
    talker->fetched += length;
    if (weir_buf_readable(from) == 0)
        weir_buf_clear(from);
    return true;
}

static int advance(struct talker *talker)
{
    talker->status = talker->session->engine->handshake(talker->session, &talker->io);
    return talker->status < 0 ? talker->status : 0;
}

int talk_step(struct talker *talker)
{
    (void)talk_fetch(talker);
    return advance(talker);
}

static bool goes_on(struct talker *talker)
{
    if (talker->status != WEIR__TLS_MORE || !talk_fetch(talker))
        return false;
    (void)advance(talker);
    return true;
}

bool talk_handshake(struct talk *talk)
{
    bool is_going = true;

    if (talk->client.status == WEIR__TLS_MORE)
        (void)talk_step(&talk->client);
    while (is_going) {
        is_going = goes_on(&talk->server);
        is_going = goes_on(&talk->client) || is_going;
    }
    return talk->client.status == WEIR__TLS_DONE && talk->server.status == WEIR__TLS_DONE;
}

void talk_begin_over(struct talk *talk, enum weir_tls_version version)
{
    talk_begin_plainly(talk, version);
    assert_true(talk_handshake(talk));
}

int talk_seal(struct talker *talker, const void *bytes, size_t length)
{
    return talker->session->engine->seal(talker->session, &talker->io, bytes, length);
}

int talk_hear(struct talker *talker)
{
    (void)talk_fetch(talker);
    do {
        do {
            assert_int_equal(weir_buf_reserve(talker->heard, 1), 0);
            talker->heard_status =
                talker->session->engine->open(talker->session, &talker->io, talker->heard);
        } while (talker->heard_status == WEIR__TLS_DONE);
    } while (talker->heard_status == WEIR__TLS_MORE && talk_fetch(talker));
    return talker->heard_status;
}

void talk_expect(struct talker *talker, const void *bytes, size_t length)
{
    int status = talk_hear(talker);

    if (status < 0)
        fail_msg("%s: %s", weir_error_name(status), talker->session->reason);
    assert_int_equal(weir_buf_readable(talker->heard), length);
    assert_memory_equal(weir_buf_bytes(talker->heard), bytes, length);
    weir_buf_clear(talker->heard);
}
