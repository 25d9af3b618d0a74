/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/raw_peer.h"

#include <string.h>

#include <openssl/err.h>

#include <weir/buf.h>

#include "support/tls/pki.h"

static SSL_CTX *create_context(const struct raw_peer_options *options)
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
static SSL_CTX *shared_context(const struct raw_peer_options *options)
{
    static SSL_CTX *contexts[2];
    SSL_CTX **ctx = &contexts[options->is_server];

    if (*ctx == NULL)
        *ctx = create_context(options);
    return *ctx;
}

static SSL *create_ssl(const struct raw_peer_options *options)
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

weir_tls_context *raw_peer_context(const struct raw_peer_options *options)
{
    const struct pki *pki_ = pki();
    weir_tls_context *context = NULL;

    if (options->is_server)
        assert_int_equal(weir_tls_client_create(
                             WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki_->ca, .resumption = WEIR_OFF,
                                                      .max_version = options->max_version),
                             &context),
                         0);
    else
        assert_int_equal(
            weir_tls_server_create(
                WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki_->server.certificate,
                                         .key_pem = pki_->server.key, .resumption = WEIR_OFF,
                                         .max_version = options->max_version),
                &context),
            0);
    return context;
}

void raw_peer_open(struct raw_peer *raw, const struct raw_peer_options *options)
{
    *raw = (struct raw_peer){
        .text = options->text,
        .ends = options->ends,
        .flip_at = SIZE_MAX,
        .flip_mask = 1,
        .cut_at = SIZE_MAX,
    };
    raw->context = options->context != NULL ? weir_tls_context_retain(options->context)
                                            : raw_peer_context(options);
    tls_side_prepare(&raw->ours, raw->context, WEIR_TLS_OPTIONS(.server_name = "localhost"),
                     options->channel);
    raw->ssl = create_ssl(options);
    assert_int_equal(weir_embedded_register(raw->ours.embedded), 0);
}

void raw_peer_close(struct raw_peer *raw)
{
    SSL_free(raw->ssl);
    ERR_clear_error();
    tls_side_close(&raw->ours);
    weir_tls_context_release(raw->context);
}

/* ---- to ours ---- */

static void throw_piece(struct raw_peer *raw, const uint8_t *bytes, size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(bytes, length, &buf), 0);
    if (raw->flip_at - raw->delivered < length)
        buf->data[buf->read + (raw->flip_at - raw->delivered)] ^= raw->flip_mask;
    raw->delivered += length;
    (void)weir_embedded_write_inbound(raw->ours.embedded, weir_buf_msg(buf));
}

void raw_peer_inject(struct raw_peer *raw, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    size_t piece;

    if (length > raw->cut_at - raw->delivered)
        length = raw->cut_at - raw->delivered;
    for (; length > 0; length -= piece, at += piece) {
        piece = raw->piece > 0 && raw->piece < length ? raw->piece : length;
        throw_piece(raw, at, piece);
    }
}

void raw_peer_transfer(struct raw_peer *raw)
{
    BIO *out = SSL_get_wbio(raw->ssl);
    char *bytes;
    long length = BIO_get_mem_data(out, &bytes);

    if (length <= 0)
        return;
    raw_peer_inject(raw, bytes, (size_t)length);
    (void)BIO_reset(out);
}

/* ---- to OpenSSL ---- */

static bool receive(struct raw_peer *raw)
{
    weir_msg *msg = raw->stops_reading ? NULL : weir_embedded_read_outbound(raw->ours.embedded);
    weir_buf *buf;

    if (msg == NULL)
        return false;
    buf = weir_buf_of(msg);
    (void)BIO_write(SSL_get_rbio(raw->ssl), weir_buf_bytes(buf), (int)weir_buf_readable(buf));
    raw->ours.sent += weir_buf_readable(buf);
    weir_msg_release(msg);
    return true;
}

void raw_peer_send_text(struct raw_peer *raw, const char *text)
{
    (void)SSL_write(raw->ssl, text, (int)strlen(text));
}

/* At once when the handshake is over: in one piece with its last bytes. */
static void say_all(struct raw_peer *raw)
{
    if (raw->text != NULL)
        raw_peer_send_text(raw, raw->text);
    raw->text = NULL;
    if (raw->ends)
        (void)SSL_shutdown(raw->ssl);
    raw->ends = false;
}

static void think(struct raw_peer *raw)
{
    char bytes[4096];

    ERR_clear_error();
    if (!SSL_is_init_finished(raw->ssl))
        (void)SSL_do_handshake(raw->ssl);
    while (SSL_is_init_finished(raw->ssl) && SSL_read(raw->ssl, bytes, sizeof(bytes)) > 0) {
    }
    if (SSL_is_init_finished(raw->ssl))
        say_all(raw);
}

void raw_peer_run(struct raw_peer *raw)
{
    bool goes_on;

    do {
        goes_on = false;
        while (receive(raw))
            goes_on = true;
        think(raw);
        goes_on |= BIO_pending(SSL_get_wbio(raw->ssl)) > 0;
        raw_peer_transfer(raw);
    } while (goes_on);
}

void raw_peer_end_stream(struct raw_peer *raw)
{
    weir_embedded_end_input(raw->ours.embedded);
    weir_embedded_advance(raw->ours.embedded, weir_seconds(40));
}
