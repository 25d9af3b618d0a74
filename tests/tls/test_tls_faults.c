/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of a TLS server fails with the errors that it can return, while clients -
 * OpenSSL on plain sockets, whose calls do not fail - shake hands, are echoed, and leave.
 *
 * Whatever fails: no client is left waiting, one that is not served is so for an error, how its
 * handshake went is told once, the next client is served again, and neither memory nor a descriptor
 * is left.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <weir/error.h>
#include <weir/local.h>
#include <weir/server.h>
#include <weir/tls.h>

#include "base/clock.h"
#include "base/thread.h"
#include "support/executor/global.h"
#include "support/executor/messages.h"
#include "support/loop/faults.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/tls/pki.h"
#include "support/transport/line.h"

#define SIZE 60000 /* that a client sends: several records, more than a socket takes at once */
#define PLACES 25  /* calls of one kind to fail, at the most, or a little more */

/* Only every so many errors and places where it is slow. */
#if defined(__SANITIZE_THREAD__)
#define STRIDE 4
#elif defined(__SANITIZE_ADDRESS__)
#define STRIDE 2
#else
#define STRIDE 1
#endif

/* What fails now, for the report. */
static char plight[128];

/* ---- the server ---- */

struct site {
    const struct backend *backend;
    weir_group *group;
    weir_tls_context *tls;
    weir_channel *server;
    struct address address;
    struct tally opened;
    struct tally closed;
    struct tally shaken; /* well or not */
    struct tally errors; /* that handlers have heard */
};

static struct site *site_of(weir_ctx *ctx)
{
    return *(struct site **)weir_ctx_state(ctx);
}

static int keep_pointer(void *state, const void *options)
{
    memcpy(state, &options, sizeof(options));
    return 0;
}

static void on_active(weir_ctx *ctx)
{
    tally_add(&site_of(ctx)->opened);
}

static void on_inactive(weir_ctx *ctx)
{
    tally_add(&site_of(ctx)->closed);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (weir_tls_handshake_of(event) != NULL)
        tally_add(&site_of(ctx)->shaken);
    weir_msg_release(event);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    tally_add(&site_of(ctx)->errors);
}

static const weir_handler echo = {
    .name = "echo",
    .state_size = sizeof(struct site *),
    .init = keep_pointer,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
    .error = on_error,
};

static int init_child(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    struct site *site = user_data;
    int err = weir_tls_add(pipeline, site->tls);

    return err < 0 ? err : weir_pipeline_add_last(pipeline, &echo, site);
}

static int site_open(struct site *site, const struct backend *backend, weir_tls_context *tls)
{
    weir_address address;
    int err;

    *site = (struct site){.backend = backend, .tls = tls};
    err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "site", .io = backend->io,
                                               .uring_receive = backend->ring_receive),
                            &site->group);
    if (err == 0)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = site->group, .address = "127.0.0.1:0",
                                .init_child = init_child, .user_data = site,
                                .child_options = WEIR_CHANNEL_OPTIONS(.send_buffer = 16384)),
            &site->server);
    if (err == 0)
        err = weir_channel_local_address(site->server, &address);
    if (err == 0) {
        site->address.length = address.length;
        memcpy(&site->address.storage, &address.storage, sizeof(address.storage));
    }
    return err;
}

static void complain(const struct site *site, const char *about)
{
    fail_msg("%s: %s: %s", site->backend->name, plight, about);
}

static void site_close(struct site *site)
{
    if (site->group != NULL)
        end_group(site->group);
    weir_channel_release(site->server);
    if (atomic_load(&site->opened.calls) != atomic_load(&site->closed.calls))
        complain(site, "not all connections that were opened were closed");
    if (atomic_load(&site->opened.calls) != atomic_load(&site->shaken.calls))
        complain(site, "not of all connections was told once how the handshake went");
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

static enum outcome visit(const struct site *site, SSL_CTX *ctx)
{
    int client = open_socket(&site->address);
    SSL *ssl = SSL_new(ctx);
    enum outcome outcome = TURNED_AWAY;

    assert_int_equal(SSL_set_fd(ssl, client), 1);
    errno = 0;
    if (call(client, &site->address) && shake(ssl) && exchange(ssl) && leave(ssl))
        outcome = SERVED;
    else if (errno == EAGAIN)
        outcome = LEFT_WAITING;
    SSL_free(ssl);
    ERR_clear_error();
    assert_int_equal(close(client), 0);
    return outcome;
}

/* ---- a play ---- */

static bool is_broken(const struct site *site)
{
    return faults_injected() > 0 || atomic_load(&site->errors.calls) > 0;
}

/* Without descriptors a listener turns away whoever waits, and may still be at it. */
static bool serves_again(const struct site *site, SSL_CTX *ctx)
{
    enum outcome outcome = TURNED_AWAY;

    for (int i = 0; outcome == TURNED_AWAY && i < 100; i++)
        outcome = visit(site, ctx);
    return outcome == SERVED;
}

static void serve(struct site *site, SSL_CTX *ctx)
{
    for (int i = 0; i < 2; i++) {
        enum outcome outcome = visit(site, ctx);

        if (outcome == LEFT_WAITING)
            complain(site, "a client is left waiting");
        if (outcome == TURNED_AWAY && !is_broken(site))
            complain(site, "a client is turned away for no reason");
    }
    faults_end();
    if (!weir_channel_is_open(site->server) || !serves_again(site, ctx))
        complain(site, "the server is not as it was");
}

/* A thread that has ended for its group may have its last steps to go. */
static bool await_descriptors(size_t count)
{
    int64_t until_ns = weir__monotonic_now() + PATIENCE_NS;

    while (descriptors_open() != count && weir__monotonic_now() < until_ns)
        weir__thread_yield();
    return descriptors_open() == count;
}

/* Returns the error that kept it from beginning. */
static int play(const struct backend *backend, weir_tls_context *tls, SSL_CTX *ctx)
{
    size_t descriptors = descriptors_open(), blocks = test_memory_live();
    struct site site;
    int err;

    messages_catch();
    err = site_open(&site, backend, tls);
    if (err == 0)
        serve(&site, ctx);
    faults_end();
    site_close(&site);
    global_settle();
    weir_locals_remove_all();
    if (test_memory_live() != blocks)
        complain(&site, "memory is left");
    if (!await_descriptors(descriptors))
        complain(&site, "descriptors are left");
    return err;
}

struct parties {
    const struct backend *backend;
    weir_tls_context *tls;
    SSL_CTX *ctx;
};

static void try(const struct parties *parties, enum fault_call call_, uint64_t n, uint64_t count,
                int err)
{
    int play_err;

    (void)snprintf(plight, sizeof(plight), "%s fails with %d, from the %u. on, %u times",
                   faults_name(call_), err, (unsigned)n, (unsigned)count);
    faults_inject(call_, n, count, err);
    play_err = play(parties->backend, parties->tls, parties->ctx);
    if (play_err != 0 && play_err != -err)
        fail_msg("%s: %s: it does not begin: %d", parties->backend->name, plight, play_err);
}

static void fail_one_kind(const struct parties *parties, enum fault_call call_, uint64_t made)
{
    const int *errors = faults_errors(call_);
    size_t count = 0;

    for (; errors[count] != 0; count++)
        if (count % STRIDE == 0)
            try(parties, call_, 1, 1, errors[count]);
    for (uint64_t n = 2; n <= made; n += STRIDE * (1 + made / PLACES))
        try(parties, call_, n, n % 2 == 0 || call_ == FAULT_RING_ENTER ? 1 : 3, errors[n % count]);
}

static void fail_calls(const struct backend *backend)
{
    struct parties parties = {.backend = backend, .ctx = SSL_CTX_new(TLS_client_method())};
    uint64_t made[FAULT_COUNT];

    (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to its sockets plainly */
    assert_non_null(parties.ctx);
    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key),
                         &parties.tls),
                     0);
    faults_install();
    (void)snprintf(plight, sizeof(plight), "nothing fails");
    assert_int_equal(play(backend, parties.tls, parties.ctx), 0);
    for (int call_ = 0; call_ < FAULT_COUNT; call_++)
        made[call_] = faults_calls(call_);
    for (int call_ = 0; call_ < FAULT_COUNT; call_++)
        if (made[call_] > 0)
            fail_one_kind(&parties, call_, made[call_]);
    faults_remove();
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
