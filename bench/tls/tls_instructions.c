/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of an echo through TLS, and of a whole connection, in memory: an embedded
 * channel with the handler of TLS and one that echoes. What OpenSSL does is not counted: it depends
 * on the processor, and is not ours (CMake has the linker put the functions below around it). Its
 * callbacks of ours are not counted either.
 */
#include <string.h>

#include <weir/buf.h>
#include <weir/embedded.h>
#include <weir/pool.h>
#include <weir/tls.h>

#include "echo/handlers.h"
#include "support/bench.h"
#include "support/instructions.h"
#include "tls/identity.h"
#include "tls/line.h"

enum { ECHOES = 256, WARM_UP = 64, VISITS = 16, RECORD_MAX = 16384, WIRE_SIZE = 2 * RECORD_MAX };

static bool counting;

static void count_or_not(bool count)
{
    if (counting)
        (count ? bench_count_resume : bench_count_pause)();
}

/* An OpenSSL call that is not counted. */
#define UNCOUNTED(type, name, parameters, arguments) \
    type __real_##name parameters;                   \
    type __wrap_##name parameters;                   \
                                                     \
    type __wrap_##name parameters                    \
    {                                                \
        type result;                                 \
                                                     \
        count_or_not(false);                         \
        result = __real_##name arguments;            \
        count_or_not(true);                          \
        return result;                               \
    }

UNCOUNTED(SSL *, SSL_new, (SSL_CTX * context), (context))
UNCOUNTED(int, SSL_do_handshake, (SSL * ssl), (ssl))
UNCOUNTED(int, SSL_read_ex, (SSL * ssl, void *bytes, size_t size, size_t *ret_length),
          (ssl, bytes, size, ret_length))
UNCOUNTED(int, SSL_write_ex, (SSL * ssl, const void *bytes, size_t length, size_t *ret_length),
          (ssl, bytes, length, ret_length))
UNCOUNTED(int, SSL_shutdown, (SSL * ssl), (ssl))

void __real_SSL_free(SSL *ssl);
void __wrap_SSL_free(SSL *ssl);

void __wrap_SSL_free(SSL *ssl)
{
    count_or_not(false);
    __real_SSL_free(ssl);
    count_or_not(true);
}

struct fixture {
    weir_tls_context *context;
    weir_embedded *server;
    tls_lines lines;
    tls_line client;
    BIO *wire; /* the server's end */
};

/* What the client has sent; NULL if nothing. */
static weir_msg *take_sent(const struct fixture *fixture)
{
    static char bytes[WIRE_SIZE];
    int length = BIO_read(fixture->wire, bytes, sizeof(bytes));
    weir_buf *buf;

    if (length <= 0)
        return NULL;
    bench_require(weir_buf_create_from(bytes, (size_t)length, &buf) == 0, "weir_buf_create_from");
    return weir_buf_msg(buf);
}

/* What the server has sent goes to the client. */
static void hand_over(const struct fixture *fixture)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(fixture->server)) != NULL) {
        int length = (int)weir_buf_readable(weir_buf_of(msg));

        bench_require(BIO_write(fixture->wire, weir_buf_bytes(weir_buf_of(msg)), length) == length,
                      "BIO_write");
        weir_msg_release(msg);
    }
}

/* The server receives what the client has sent, and answers. */
static void serve(const struct fixture *fixture, bool counted)
{
    weir_msg *msg = take_sent(fixture);

    counting = counted;
    count_or_not(true);
    weir_embedded_write_inbound(fixture->server, msg);
    count_or_not(false);
    counting = false;
    hand_over(fixture);
}

static void add_handlers(const struct fixture *fixture, bool counted)
{
    weir_pipeline *pipeline = weir_embedded_pipeline(fixture->server);

    counting = counted;
    count_or_not(true);
    bench_require(weir_tls_add(pipeline, fixture->context) == 0, "weir_tls_add");
    count_or_not(false);
    counting = false;
    bench_require(echo_handlers_add(pipeline, 1) == 0, "weir_pipeline_add_last");
}

static void fixture_init(struct fixture *fixture, bool tickets)
{
    bench_require(weir_tls_server_create(
                      WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = tls_identity_certificate(),
                                               .key_pem = tls_identity_key(),
                                               .resumption = tickets ? WEIR_ON : WEIR_OFF),
                      &fixture->context) == 0,
                  "weir_tls_server_create");
    tls_lines_init(&fixture->lines, 13, tickets);
}

static void fixture_deinit(struct fixture *fixture)
{
    tls_lines_deinit(&fixture->lines);
    weir_tls_context_release(fixture->context);
}

static void open_connection(struct fixture *fixture, bool counted)
{
    BIO *end;

    bench_require(weir_embedded_create(NULL, &fixture->server) == 0, "weir_embedded_create");
    add_handlers(fixture, counted);
    bench_require(BIO_new_bio_pair(&end, WIRE_SIZE, &fixture->wire, WIRE_SIZE) == 1, "a wire");
    tls_line_open_bio(&fixture->client, &fixture->lines, end);
    while (!tls_line_shake(&fixture->client, &fixture->lines))
        serve(fixture, counted);
}

static void close_connection(struct fixture *fixture)
{
    tls_line_reset(&fixture->client);
    BIO_free(fixture->wire);
    weir_embedded_release(fixture->server);
}

static void echo_once(const struct fixture *fixture, size_t size, bool counted)
{
    static char bytes[RECORD_MAX];
    tls_line client = fixture->client;

    tls_line_send(&client, bytes, size);
    serve(fixture, counted);
    for (size_t received = 0; received < size;) {
        ssize_t got = tls_line_receive(&client, bytes, size);

        bench_require(got > 0, "the echo");
        received += (size_t)got;
    }
}

static void count_echo(const char *name, size_t size)
{
    struct fixture fixture;

    fixture_init(&fixture, true);
    open_connection(&fixture, false);
    for (int i = 0; i < WARM_UP; i++)
        echo_once(&fixture, size, false);
    bench_count_begin(name, ECHOES);
    bench_count_pause();
    for (int i = 0; i < ECHOES; i++)
        echo_once(&fixture, size, true);
    bench_count_resume();
    bench_count_end();
    close_connection(&fixture);
    fixture_deinit(&fixture);
}

/* As the case full-1.3 of the suite, without the channel's own creation and end. */
static void visit_once(struct fixture *fixture, bool counted)
{
    open_connection(fixture, counted);
    echo_once(fixture, 64, counted);
    tls_line_end(&fixture->client);
    serve(fixture, counted);
    close_connection(fixture);
}

static void count_visit(const char *name)
{
    struct fixture fixture;

    fixture_init(&fixture, false);
    for (int i = 0; i < VISITS; i++)
        visit_once(&fixture, false);
    bench_count_begin(name, VISITS);
    bench_count_pause();
    for (int i = 0; i < VISITS; i++)
        visit_once(&fixture, true);
    bench_count_resume();
    bench_count_end();
    fixture_deinit(&fixture);
}

static void count_all(bench_round *round)
{
    (void)round;
    weir_leak_set_level(WEIR_LEAK_OFF); /* which messages are watched is a matter of chance */
    count_echo("echo of 64 B, without OpenSSL", 64);
    count_echo("echo of 16 KiB, without OpenSSL", RECORD_MAX);
    count_visit("handshake, echo of 64 B, close, without OpenSSL");
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
