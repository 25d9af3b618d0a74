/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/raw_peer.h"

#include <string.h>

#include <openssl/err.h>

#include <weir/buf.h>

#include "support/tls/pki.h"

static SSL_CTX *create_context(const struct opponent_options *options)
{
    SSL_CTX *ctx = SSL_CTX_new(options->is_server ? TLS_server_method() : TLS_client_method());

    assert_non_null(ctx);
    (void)SSL_CTX_clear_options(ctx, SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    if (!options->is_server)
        return ctx;
    assert_int_equal(SSL_CTX_use_certificate_chain_file(ctx, pki()->server.certificate_file), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(ctx, pki()->server.key_file, SSL_FILETYPE_PEM), 1);
    return ctx;
}

/* Made once: it takes longer than most conversations. */
static SSL_CTX *shared_context(const struct opponent_options *options)
{
    static SSL_CTX *contexts[2];
    SSL_CTX **ctx = &contexts[options->is_server];

    if (*ctx == NULL)
        *ctx = create_context(options);
    return *ctx;
}

static SSL *create_ssl(const struct opponent_options *options)
{
    SSL *ssl = SSL_new(shared_context(options));

    assert_non_null(ssl);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (options->is_server)
        SSL_set_accept_state(ssl);
    else
        SSL_set_connect_state(ssl);
    return ssl;
}

weir_tls_context *opponent_context(const struct opponent_options *options)
{
    const struct pki *pki_ = pki();
    weir_tls_context *context = NULL;

    if (options->is_server)
        assert_int_equal(weir_tls_client_create(
                             WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki_->ca, .no_resumption = true,
                                                      .max_version = options->max_version),
                             &context),
                         0);
    else
        assert_int_equal(
            weir_tls_server_create(
                WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki_->server.certificate,
                                         .key_pem = pki_->server.key, .no_resumption = true,
                                         .max_version = options->max_version),
                &context),
            0);
    return context;
}

void opponent_meet(struct opponent *opponent, const struct opponent_options *options)
{
    *opponent = (struct opponent){
        .text = options->text,
        .ends = options->ends,
        .flip_at = SIZE_MAX,
        .flip_mask = 1,
        .cut_at = SIZE_MAX,
    };
    opponent->context = options->context != NULL ? weir_tls_context_retain(options->context)
                                                 : opponent_context(options);
    duettist_prepare(&opponent->ours, opponent->context,
                     WEIR_TLS_OPTIONS(.server_name = "localhost"), options->channel);
    opponent->ssl = create_ssl(options);
    assert_int_equal(weir_embedded_register(opponent->ours.embedded), 0);
}

void opponent_part(struct opponent *opponent)
{
    SSL_free(opponent->ssl);
    ERR_clear_error();
    duettist_close(&opponent->ours);
    weir_tls_context_release(opponent->context);
}

/* ---- to ours ---- */

static void throw_piece(struct opponent *opponent, const uint8_t *bytes, size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(bytes, length, &buf), 0);
    if (opponent->flip_at - opponent->brought < length)
        buf->data[buf->read + (opponent->flip_at - opponent->brought)] ^= opponent->flip_mask;
    opponent->brought += length;
    (void)weir_embedded_write_inbound(opponent->ours.embedded, weir_buf_msg(buf));
}

void opponent_throw(struct opponent *opponent, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    size_t piece;

    if (length > opponent->cut_at - opponent->brought)
        length = opponent->cut_at - opponent->brought;
    for (; length > 0; length -= piece, at += piece) {
        piece = opponent->piece > 0 && opponent->piece < length ? opponent->piece : length;
        throw_piece(opponent, at, piece);
    }
}

void opponent_bring(struct opponent *opponent)
{
    BIO *out = SSL_get_wbio(opponent->ssl);
    char *bytes;
    long length = BIO_get_mem_data(out, &bytes);

    if (length <= 0)
        return;
    opponent_throw(opponent, bytes, (size_t)length);
    (void)BIO_reset(out);
}

/* ---- to OpenSSL ---- */

static bool hear(struct opponent *opponent)
{
    weir_msg *msg = opponent->is_deaf ? NULL : weir_embedded_read_outbound(opponent->ours.embedded);
    weir_buf *buf;

    if (msg == NULL)
        return false;
    buf = weir_buf_of(msg);
    (void)BIO_write(SSL_get_rbio(opponent->ssl), weir_buf_bytes(buf), (int)weir_buf_readable(buf));
    opponent->ours.sent += weir_buf_readable(buf);
    weir_msg_release(msg);
    return true;
}

void opponent_say(struct opponent *opponent, const char *text)
{
    (void)SSL_write(opponent->ssl, text, (int)strlen(text));
}

/* At once when the handshake is over: in one piece with its last bytes. */
static void say_all(struct opponent *opponent)
{
    if (opponent->text != NULL)
        opponent_say(opponent, opponent->text);
    opponent->text = NULL;
    if (opponent->ends)
        (void)SSL_shutdown(opponent->ssl);
    opponent->ends = false;
}

static void think(struct opponent *opponent)
{
    char bytes[4096];

    ERR_clear_error();
    if (!SSL_is_init_finished(opponent->ssl))
        (void)SSL_do_handshake(opponent->ssl);
    while (SSL_is_init_finished(opponent->ssl) &&
           SSL_read(opponent->ssl, bytes, sizeof(bytes)) > 0) {
    }
    if (SSL_is_init_finished(opponent->ssl))
        say_all(opponent);
}

void opponent_play(struct opponent *opponent)
{
    bool goes_on;

    do {
        goes_on = false;
        while (hear(opponent))
            goes_on = true;
        think(opponent);
        goes_on |= BIO_pending(SSL_get_wbio(opponent->ssl)) > 0;
        opponent_bring(opponent);
    } while (goes_on);
}

void opponent_leave(struct opponent *opponent)
{
    weir_embedded_end_input(opponent->ours.embedded);
    weir_embedded_advance(opponent->ours.embedded, weir_seconds(40));
}
