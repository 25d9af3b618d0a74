/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of a TLS server fails with the errors that it can return, while clients -
 * OpenSSL on plain sockets, whose calls do not fail - shake hands, are echoed, and leave.
 *
 * Whatever fails: no client is left waiting, one that is not served is so for an error, the result
 * of its handshake is reported once, the next client is served again, and neither memory nor a
 * descriptor is left.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <weir/error.h>
#include <weir/server.h>
#include <weir/thread.h>
#include <weir/tls.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/channel/pointer_state.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/tls/pki.h"
#include "support/transport/connection.h"
#include "support/transport/faulty_server.h"

#define SIZE 60000 /* that a client sends: several records, more than a socket takes at once */
#define PLACES 25  /* calls of one kind to fail, at the most, or a little more */
#define STRIDE ((SWEEP_STRIDE + 1) / 2) /* a place is tried once only */

/* ---- the server ---- */

/* Who takes part in a play. */
struct parties {
    weir_tls_context *tls;
    SSL_CTX *ctx;
};

struct tls_site {
    struct faulty_server faulty;
    const struct parties *parties;
    struct call_counter handshakes; /* well or not */
};

static struct tls_site *tls_site_of(weir_ctx *ctx)
{
    return WEIR_CONTAINER_OF(faulty_server_of(ctx), struct tls_site, faulty);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (weir_tls_handshake_of(event) != NULL)
        call_counter_add(&tls_site_of(ctx)->handshakes);
    weir_msg_release(event);
}

static const weir_handler witness = {
    .name = "witness",
    .state_size = sizeof(struct faulty_server *),
    .init = pointer_keep,
    .event = on_event,
};

static int init_child(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    struct tls_site *self = user_data;
    int err = weir_tls_add(pipeline, self->parties->tls);

    if (err == 0)
        err = faulty_server_add(&self->faulty, channel, &faulty_server_echo);
    return err == 0 ? weir_pipeline_add_last(pipeline, &witness, &self->faulty) : err;
}

static int open_server(struct tls_site *self, struct sweep *sweep)
{
    weir_server *server = NULL;
    int err = faulty_server_open(&self->faulty, sweep);

    self->parties = sweep->arg;
    self->handshakes = (struct call_counter){0};
    if (err == 0)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = self->faulty.group, .address = "127.0.0.1:0",
                                .init_child = init_child, .user_data = self,
                                .child_options = WEIR_CHANNEL_OPTIONS(.send_buffer = 16384)),
            &server);
    if (err == 0)
        self->faulty.channel = weir_channel_retain(weir_server_listener(server, 0));
    weir_server_release(server);
    return err == 0 ? faulty_server_find_address(&self->faulty) : err;
}

static void close_server(struct tls_site *self)
{
    faulty_server_close(&self->faulty);
    if (atomic_load(&self->faulty.opened.calls) != atomic_load(&self->handshakes.calls))
        sweep_fail(self->faulty.sweep,
                   "not of all connections was told once how the handshake went");
}

/* ---- a client ---- */

enum outcome {
    SERVED,
    TURNED_AWAY,
    LEFT_WAITING,
};

/* Blocks, but not for ever. */
static int open_socket(const struct address *address)
{
    const struct timeval patience = {.tv_sec = 5};
    int client = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(client >= 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)), 0);
    return client;
}

/* A ring of the loop's may interrupt what the test's own thread does. */
static bool call(int client, const struct address *address)
{
    struct pollfd ready = {.fd = client, .events = POLLOUT};
    socklen_t length = sizeof(int);
    int err;

    if (connect(client, (const struct sockaddr *)&address->storage, address->length) == 0)
        return true;
    if (errno != EINTR)
        return false;
    while (poll(&ready, 1, -1) < 0) {
    }
    return getsockopt(client, SOL_SOCKET, SO_ERROR, &err, &length) == 0 && err == 0;
}

/* Whether to try again what did not succeed. */
static bool is_interrupted(SSL *ssl, int result)
{
    int why = SSL_get_error(ssl, result);

    return (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) && errno == EINTR;
}

static bool shake(SSL *ssl)
{
    int result;

    do
        result = SSL_connect(ssl);
    while (result != 1 && is_interrupted(ssl, result));
    return result == 1;
}

static bool send_all(SSL *ssl, const char *bytes, size_t length)
{
    size_t sent;
    int result;

    do
        result = SSL_write_ex(ssl, bytes, length, &sent);
    while (result != 1 && is_interrupted(ssl, result));
    return result == 1;
}

static bool receive_all(SSL *ssl, char *bytes, size_t length)
{
    size_t received = 0, count;
    int result;

    while (received < length) {
        result = SSL_read_ex(ssl, bytes, length, &count);
        if (result == 1)
            received += count;
        else if (!is_interrupted(ssl, result))
            return false;
    }
    return true;
}

static bool exchange(SSL *ssl)
{
    static char bytes[SIZE / 4];

    for (size_t sent = 0; sent < SIZE; sent += sizeof(bytes))
        if (!send_all(ssl, bytes, sizeof(bytes)) || !receive_all(ssl, bytes, sizeof(bytes)))
            return false;
    return true;
}

/* It leaves properly, and the server answers. */
static bool leave(SSL *ssl)
{
    int result;

    do
        result = SSL_shutdown(ssl);
    while (result == 0 || (result < 0 && is_interrupted(ssl, result)));
    return result == 1;
}

static enum outcome visit(const struct faulty_server *faulty, SSL_CTX *ctx)
{
    int client = open_socket(&faulty->address);
    SSL *ssl = SSL_new(ctx);
    enum outcome outcome = TURNED_AWAY;

    assert_int_equal(SSL_set_fd(ssl, client), 1);
    errno = 0;
    if (call(client, &faulty->address) && shake(ssl) && exchange(ssl) && leave(ssl))
        outcome = SERVED;
    else if (errno == EAGAIN)
        outcome = LEFT_WAITING;
    SSL_free(ssl);
    ERR_clear_error();
    assert_int_equal(close(client), 0);
    return outcome;
}

/* ---- a play ---- */

static bool is_broken(const struct faulty_server *faulty)
{
    return sweep_has_failed(faulty->sweep) || atomic_load(&faulty->errors.calls) > 0;
}

/* Without descriptors a listener rejects waiting clients, possibly still now. */
static bool serves_again(const struct faulty_server *faulty, SSL_CTX *ctx)
{
    enum outcome outcome = TURNED_AWAY;

    for (int i = 0; outcome == TURNED_AWAY && i < 100; i++)
        outcome = visit(faulty, ctx);
    return outcome == SERVED;
}

static void serve(struct faulty_server *faulty, SSL_CTX *ctx)
{
    for (int i = 0; i < 2; i++) {
        enum outcome outcome = visit(faulty, ctx);

        if (outcome == LEFT_WAITING)
            sweep_fail(faulty->sweep, "a client is left waiting");
        if (outcome == TURNED_AWAY && !is_broken(faulty))
            sweep_fail(faulty->sweep, "a client is turned away for no reason");
    }
    sweep_stop_faults(faulty->sweep);
    if (!weir_channel_is_open(faulty->channel) || !serves_again(faulty, ctx))
        sweep_fail(faulty->sweep, "the server is not as it was");
}

/* Returns the error that kept it from beginning. */
static int play(struct sweep *sweep)
{
    size_t descriptors = descriptors_open(), blocks = test_memory_live();
    struct tls_site self;
    int err;

    log_capture_start();
    err = open_server(&self, sweep);
    if (err == 0)
        serve(&self.faulty, self.parties->ctx);
    sweep_stop_faults(sweep);
    close_server(&self);
    global_executor_stop();
    weir_locals_remove_all();
    if (!test_memory_await(blocks))
        sweep_fail(sweep, "memory is left");
    if (!descriptors_await(descriptors))
        sweep_fail(sweep, "descriptors are left");
    return err;
}

static void fail_calls(const struct backend *backend)
{
    struct parties parties = {.ctx = SSL_CTX_new(TLS_client_method())};

    (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to its sockets plainly */
    assert_non_null(parties.ctx);
    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key),
                         &parties.tls),
                     0);
    sweep_calls(&(struct sweep){.backend = backend,
                                .scenario = play,
                                .arg = &parties,
                                .places = PLACES,
                                .stride = STRIDE,
                                .takes_turns = true,
                                .ring_fails_once = true});
    weir_tls_context_release(parties.tls);
    SSL_CTX_free(parties.ctx);
}

TEST_EACH_LOOP(tls_faults, survives_each_call_that_fails)
{
    fail_calls(host->backend);
}

TEST(tls_faults, survives_each_call_that_fails_on_threads_of_their_own)
{
    fail_calls(&backends[BACKEND_BLOCKING]);
}
