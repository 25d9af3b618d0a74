/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS server on epoll and OpenSSL with nothing else in it: level-triggered, OpenSSL reads from
 * the socket and writes to it, a record at a time. What the socket does not take is written again
 * when it does, and nothing is read until then.
 */
#include "echo/competitor.h"

#include <signal.h>
#include <unistd.h>

#include <openssl/err.h>

#include "peers/watched.h"
#include "tls/crowd.h"
#include "tls/identity.h"

enum { PIECE = 16384, DESCRIPTORS_MAX = 32768 };

struct connection {
    SSL *ssl;
    size_t unsent;
    bool waits; /* for room in the socket */
};

static struct connection connections[DESCRIPTORS_MAX];
static size_t answer_size;
static bool configured_tickets;
static SSL_CTX *context;

static void server_configure(bench_round *round)
{
    size_t size = (size_t)bench_setting(round, "answer", 0);

    answer_size = size > 0 ? size : TLS_REQUEST_SIZE;
    configured_tickets = bench_setting(round, "tickets", 0) + bench_setting(round, "resumed", 0);
}

static void on_accepted(int descriptor)
{
    struct connection *self = &connections[descriptor];

    bench_require(descriptor < DESCRIPTORS_MAX, "so many connections");
    *self = (struct connection){.ssl = SSL_new(context)};
    bench_require(self->ssl != NULL && SSL_set_fd(self->ssl, descriptor) == 1, "SSL_new");
    SSL_set_accept_state(self->ssl);
}

static void hang_up(int descriptor)
{
    SSL_shutdown(connections[descriptor].ssl);
    SSL_free(connections[descriptor].ssl);
    ERR_clear_error();
    close(descriptor);
}

/* What of the answers is left, as long as the socket takes it. */
static void send_answer(int descriptor)
{
    static const char bytes[PIECE];
    struct connection *self = &connections[descriptor];
    bool waited = self->waits;

    self->waits = false;
    while (self->unsent > 0 && !self->waits) {
        int piece = self->unsent < PIECE ? (int)self->unsent : PIECE;
        int sent = SSL_write(self->ssl, bytes, piece);

        self->waits = sent <= 0;
        self->unsent -= sent > 0 ? (size_t)sent : 0;
    }
    if (waited != self->waits)
        watch(descriptor, EPOLL_CTL_MOD, self->waits ? EPOLLOUT : EPOLLIN);
}

static void on_readable(int descriptor)
{
    struct connection *self = &connections[descriptor];
    char request[PIECE];
    int got = SSL_read(self->ssl, request, sizeof(request));

    if (got > 0) {
        self->unsent += answer_size;
        send_answer(descriptor);
    } else if (SSL_get_error(self->ssl, got) != SSL_ERROR_WANT_READ) {
        hang_up(descriptor);
    }
}

static void server_run(int cpu)
{
    static const struct watched server = {on_accepted, on_readable, send_answer};

    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to closed connections */
    context = tls_identity_server(configured_tickets);
    watched_run(&server, cpu);
}

#include "tls/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {TLS_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
