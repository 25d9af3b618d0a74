/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/line.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "echo/server.h"
#include "support/bench.h"

enum { READ_AHEAD = 128 * 1024 };

static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    tls_lines *lines = SSL_get_app_data(ssl);

    SSL_SESSION_free(lines->session);
    lines->session = session;
    return 1; /* it is ours now */
}

static void offer(SSL_CTX *context, int version)
{
    bench_require(SSL_CTX_set_min_proto_version(context, version) == 1 &&
                      SSL_CTX_set_max_proto_version(context, version) == 1,
                  "the version");
    bench_require(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
                      SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-GCM-SHA256") == 1,
                  "the cipher");
    /* The second is that of the certificate. */
    bench_require(SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1, "the groups");
}

void tls_lines_init(tls_lines *lines, int64_t version, bool tickets)
{
    *lines = (tls_lines){0};
    if (version == 0)
        return;
    lines->context = SSL_CTX_new(TLS_client_method());
    bench_require(lines->context != NULL, "SSL_CTX_new");
    offer(lines->context, version == 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
    SSL_CTX_set_verify(lines->context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_session_cache_mode(lines->context,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(lines->context, keep_session);
    SSL_CTX_set_mode(lines->context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(lines->context, 1);
    SSL_CTX_set_default_read_buffer_len(lines->context, READ_AHEAD);
    if (!tickets)
        SSL_CTX_set_options(lines->context, SSL_OP_NO_TICKET);
}

void tls_lines_deinit(tls_lines *lines)
{
    SSL_SESSION_free(lines->session);
    SSL_CTX_free(lines->context);
}

static int connect_to(uint16_t port)
{
    struct sockaddr_storage address;
    socklen_t length = echo_server_address(port, &address);
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    bench_require(descriptor >= 0, "socket");
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    bench_require(connect(descriptor, (struct sockaddr *)&address, length) == 0, "connecting");
    bench_require(fcntl(descriptor, F_SETFL, O_RDWR | O_NONBLOCK) == 0, "O_NONBLOCK");
    return descriptor;
}

/* A copy: one that was used is not used again. */
static void take_up(tls_line *line, SSL_SESSION *session)
{
    SSL_SESSION *copy = session != NULL ? SSL_SESSION_dup(session) : NULL;

    bench_require(copy != NULL && SSL_set_session(line->ssl, copy) == 1, "taking up a session");
    SSL_SESSION_free(copy);
}

void tls_line_open_bio(tls_line *line, tls_lines *lines, BIO *bio)
{
    line->descriptor = -1;
    line->ssl = SSL_new(lines->context);
    bench_require(line->ssl != NULL && bio != NULL, "SSL_new");
    SSL_set_bio(line->ssl, bio, bio);
    SSL_set_app_data(line->ssl, lines);
    SSL_set_connect_state(line->ssl);
    if (lines->resumes)
        take_up(line, lines->session);
}

void tls_line_open(tls_line *line, tls_lines *lines, uint16_t port)
{
    int descriptor = connect_to(port);

    line->ssl = NULL;
    if (lines->context != NULL)
        tls_line_open_bio(line, lines, BIO_new_socket(descriptor, BIO_NOCLOSE));
    line->descriptor = descriptor;
}

bool tls_line_shake(tls_line *line, const tls_lines *lines)
{
    int result;

    if (line->ssl == NULL || SSL_is_init_finished(line->ssl))
        return true;
    result = SSL_do_handshake(line->ssl);
    if (result != 1) {
        bench_require(SSL_get_error(line->ssl, result) == SSL_ERROR_WANT_READ, "the handshake");
        return false;
    }
    bench_require((SSL_session_reused(line->ssl) == 1) == lines->resumes, "resumption");
    return true;
}

void tls_line_send(tls_line *line, const void *bytes, size_t length)
{
    ssize_t sent = line->ssl != NULL ? SSL_write(line->ssl, bytes, (int)length)
                                     : send(line->descriptor, bytes, length, MSG_NOSIGNAL);

    bench_require(sent == (ssize_t)length, "sending");
}

static ssize_t receive_clear(const tls_line *line, void *bytes, size_t size)
{
    ssize_t got = recv(line->descriptor, bytes, size, 0);

    bench_require(got >= 0 || errno == EAGAIN, "receiving");
    return got > 0 ? got : got == 0 ? -1 : 0;
}

ssize_t tls_line_receive(tls_line *line, void *bytes, size_t size)
{
    int got, error;

    if (line->ssl == NULL)
        return receive_clear(line, bytes, size);
    got = SSL_read(line->ssl, bytes, (int)size);
    if (got > 0)
        return got;
    error = SSL_get_error(line->ssl, got);
    if (error == SSL_ERROR_WANT_READ)
        return 0;
    /* A server may close without close_notify after ours. */
    bench_require(error == SSL_ERROR_ZERO_RETURN || SSL_get_shutdown(line->ssl) != 0, "receiving");
    ERR_clear_error();
    return -1;
}

void tls_line_end(tls_line *line)
{
    if (line->ssl != NULL)
        bench_require(SSL_shutdown(line->ssl) >= 0, "SSL_shutdown");
    else
        shutdown(line->descriptor, SHUT_WR);
}

void tls_line_close(tls_line *line)
{
    if (line->descriptor >= 0)
        close(line->descriptor);
    SSL_free(line->ssl);
}

/* Thousands of ports in TIME_WAIT would be in the way of later rounds; and the session must not be
 * forgotten because it was broken off. */
void tls_line_reset(tls_line *line)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(line->descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    if (line->ssl != NULL)
        SSL_set_shutdown(line->ssl, SSL_SENT_SHUTDOWN);
    tls_line_close(line);
}
