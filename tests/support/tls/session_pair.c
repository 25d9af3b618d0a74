/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/session_pair.h"

#include <string.h>

#include <weir/buf.h>

#include "support/tls/pki.h"

weir__openssl_context *session_pair_context(const weir_tls_context_options *options, bool is_server)
{
    char reason[WEIR__TLS_REASON_SIZE] = "";
    weir__openssl_context *context = NULL;
    int err = weir__openssl_context_create(options, is_server, reason, &context);

    if (err < 0)
        fail_msg("context: %s: %s", weir_error_name(err), reason);
    return context;
}

weir__openssl_context *session_pair_server_context(enum weir_tls_version version)
{
    return session_pair_context(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                 .key_pem = pki()->server.key, .max_version = version),
        true);
}

weir__openssl_context *session_pair_client_context(enum weir_tls_version version)
{
    return session_pair_context(
        WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .max_version = version), false);
}

static void begin(struct session_side *side, struct session_side *other,
                  weir__openssl_context *context, const weir__openssl_session_options *peer)
{
    *side = (struct session_side){
        .other = other,
        .piece = SIZE_MAX,
        .flip_at = SIZE_MAX,
        .cut_at = SIZE_MAX,
        .status = WEIR__OPENSSL_WANT_READ,
    };
    assert_int_equal(weir__openssl_session_create(context, peer, &side->session), 0);
    assert_int_equal(weir_buf_create(64, 0, &side->received), 0);
    weir__openssl_context_release(context);
}

void session_pair_open(struct session_pair *pair, weir__openssl_context *client,
                       weir__openssl_context *server, const char *server_name)
{
    session_pair_open_with(pair, client, server,
                           &(weir__openssl_session_options){.server_name = server_name}, false);
}

void session_pair_open_with(struct session_pair *pair, weir__openssl_context *client,
                            weir__openssl_context *server,
                            const weir__openssl_session_options *client_peer, bool pauses)
{
    begin(&pair->client, &pair->server, client, client_peer);
    begin(&pair->server, &pair->client, server,
          &(weir__openssl_session_options){.pause_at_hello = pauses});
}

void session_pair_open_default(struct session_pair *pair, enum weir_tls_version version)
{
    session_pair_open(pair, session_pair_client_context(version),
                      session_pair_server_context(version), "example.test");
}

void session_pair_open_pausing(struct session_pair *pair, weir__openssl_context *client,
                               weir__openssl_context *server, const char *server_name)
{
    session_pair_open_with(pair, client, server,
                           &(weir__openssl_session_options){.server_name = server_name}, true);
}

void session_pair_set_context(struct session_pair *pair, weir__openssl_context *context)
{
    assert_int_equal(pair->server.status, WEIR__OPENSSL_WANT_CONTEXT);
    weir__openssl_session_set_context(pair->server.session, context);
    if (context != NULL)
        weir__openssl_context_release(context);
    (void)session_side_step(&pair->server);
}

void session_side_close(struct session_side *side)
{
    weir__openssl_session_release(side->session);
    weir_buf_release(side->io.in);
    weir_buf_release(side->io.out);
    weir_buf_release(side->received);
}

void session_pair_close(struct session_pair *pair)
{
    session_side_close(&pair->client);
    session_side_close(&pair->server);
}

void session_pair_set_piece(struct session_pair *pair, size_t piece)
{
    pair->client.piece = pair->server.piece = piece;
}

bool session_side_fetch(struct session_side *side)
{
    weir_buf *from = side->other->io.out;
    size_t length = from != NULL ? weir_buf_readable(from) : 0;

    if (length > side->piece)
        length = side->piece;
    if (length == 0)
        return false;
    if (side->io.in == NULL)
        assert_int_equal(weir_buf_create(length, 0, &side->io.in), 0);
    if (weir_buf_readable(side->io.in) == 0)
        weir_buf_clear(side->io.in);
    if (length > side->cut_at - side->fetched)
        length = side->cut_at - side->fetched;
    if (length == 0)
        return false;
    assert_int_equal(weir_buf_write_buf(side->io.in, from, length), 0);
    if (side->flip_at - side->fetched < length)
        *(weir_buf_space(side->io.in) - length + (side->flip_at - side->fetched)) ^= 1;
    side->fetched += length;
    if (weir_buf_readable(from) == 0)
        weir_buf_clear(from);
    return true;
}

static int advance(struct session_side *side)
{
    side->status = weir__openssl_session_handshake(side->session, &side->io);
    return side->status < 0 ? side->status : 0;
}

int session_side_step(struct session_side *side)
{
    (void)session_side_fetch(side);
    return advance(side);
}

static bool goes_on(struct session_side *side)
{
    if (side->status != WEIR__OPENSSL_WANT_READ || !session_side_fetch(side))
        return false;
    (void)advance(side);
    return true;
}

bool session_pair_handshake(struct session_pair *pair)
{
    bool is_going = true;

    if (pair->client.status == WEIR__OPENSSL_WANT_READ)
        (void)session_side_step(&pair->client);
    while (is_going) {
        is_going = goes_on(&pair->server);
        is_going = goes_on(&pair->client) || is_going;
    }
    return pair->client.status == WEIR__OPENSSL_DONE && pair->server.status == WEIR__OPENSSL_DONE;
}

void session_pair_open_connected(struct session_pair *pair, enum weir_tls_version version)
{
    session_pair_open_default(pair, version);
    assert_true(session_pair_handshake(pair));
}

int session_side_seal(struct session_side *side, const void *bytes, size_t length)
{
    return weir__openssl_session_seal(side->session, &side->io, bytes, length);
}

int session_side_receive(struct session_side *side)
{
    (void)session_side_fetch(side);
    do {
        do {
            assert_int_equal(weir_buf_reserve(side->received, 1), 0);
            side->received_status =
                weir__openssl_session_open(side->session, &side->io, side->received);
        } while (side->received_status == WEIR__OPENSSL_DONE);
    } while (side->received_status == WEIR__OPENSSL_WANT_READ && session_side_fetch(side));
    return side->received_status;
}

void session_side_expect(struct session_side *side, const void *bytes, size_t length)
{
    int status = session_side_receive(side);

    if (status < 0)
        fail_msg("%s: %s", weir_error_name(status), side->session->reason);
    assert_int_equal(weir_buf_readable(side->received), length);
    assert_memory_equal(weir_buf_bytes(side->received), bytes, length);
    weir_buf_clear(side->received);
}
