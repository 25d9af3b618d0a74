/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls/line.h - a client's end of a connection, by OpenSSL or in clear: the same for every server.
 *
 * Nothing blocks. What a client has to send is short, and always finds room in the socket. What
 * fails ends the program.
 */
#ifndef BENCH_TLS_LINE_H
#define BENCH_TLS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <openssl/ssl.h>

/* What the lines of a round have in common. */
typedef struct tls_lines {
    SSL_CTX *context;     /* NULL: in clear */
    SSL_SESSION *session; /* the latest that a server has given a ticket for */
    bool resumes;         /* lines take it up again, and must succeed */
} tls_lines;

typedef struct tls_line {
    int descriptor; /* -1: none */
    SSL *ssl;       /* NULL: in clear */
} tls_line;

/* `version` is 13 or 12; 0: in clear. The cipher is AES-128-GCM, keys are agreed upon by X25519. */
void tls_lines_init(tls_lines *lines, int64_t version, bool tickets);
void tls_lines_deinit(tls_lines *lines);

/* Connects to a port of this machine. */
void tls_line_open(tls_line *line, tls_lines *lines, uint16_t port);

/* The same with what stands for a socket; it is OpenSSL's from now on. */
void tls_line_open_bio(tls_line *line, tls_lines *lines, BIO *bio);

/* Begins with the handshake, or goes on; true when it is over. */
bool tls_line_shake(tls_line *line, const tls_lines *lines);

void tls_line_send(tls_line *line, const void *bytes, size_t length);

/* What has come: bytes, 0 if nothing has, -1 at the end of the stream. */
ssize_t tls_line_receive(tls_line *line, void *bytes, size_t size);

/* Sends close_notify: the server closes. */
void tls_line_end(tls_line *line);

/* Closes after the server has; or resets a connection in use. */
void tls_line_close(tls_line *line);
void tls_line_reset(tls_line *line);

#endif
