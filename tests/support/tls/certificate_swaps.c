/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/certificate_swaps.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <weir/buf.h>
#include <weir/error.h>
#include <weir/server.h>
#include <weir/tls.h>

#include "support/executor/call_counter.h"
#include "support/timeout.h"
#include "support/tls/pki.h"

/* What the threads share. */
struct scene {
    weir_address address;
    _Atomic bool is_over;
    struct call_counter visits; /* of all clients, good or bad */
};

struct client {
    struct scene *scene;
    pthread_t thread;
    SSL_CTX *ctx;
    SSL_SESSION *session; /* of the last visit; only of clients that keep it */
    bool keeps_session;
    struct swaps seen; /* its own share of the results */
};

/* ---- the server ---- */

static void echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static int init_child(weir_channel *channel, void *context)
{
    static const weir_handler handler = {.name = "echo", .read = echo};
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_tls_add(pipeline, context);

    return err < 0 ? err : weir_pipeline_add_last(pipeline, &handler, NULL);
}

/* As an administrator does: nobody ever sees half of a file. */
static bool put_file(const char *path, const struct pki_leaf *leaf)
{
    char fresh[512];
    FILE *file;
    bool good;

    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    file = fopen(fresh, "we");
    if (file == NULL)
        return false;
    good = fchmod(fileno(file), 0600) == 0 && fputs(leaf->certificate, file) >= 0 &&
           fputs(leaf->key, file) >= 0;
    return fclose(file) == 0 && good && rename(fresh, path) == 0;
}

/* ---- a client ---- */

static bool fail(struct client *client, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    if (client->seen.failed++ == 0)
        (void)snprintf(client->seen.why, sizeof(client->seen.why), "%s: %s, %s", what,
                       reason != NULL ? reason : "nothing of OpenSSL's", strerror(errno));
    ERR_clear_error();
    return false;
}

static int connect_socket(const weir_address *address)
{
    int fd = socket(weir_address_family(address), SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address->storage, address->length) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Which of the two certificates the server has shown. */
static int leaf_of(SSL *ssl)
{
    BIO *bio = BIO_new_mem_buf(pki()->server.certificate, -1);
    X509 *first = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    int which = X509_cmp(SSL_get0_peer_certificate(ssl), first) == 0 ? 0 : 1;

    X509_free(first);
    BIO_free(bio);
    return which;
}

static bool converse(struct client *client, SSL *ssl)
{
    char said[32], received[32];
    int length =
        snprintf(said, sizeof(said), "visit %llu", (unsigned long long)client->seen.visits);
    int got = 0, now = 1;

    if (SSL_connect(ssl) != 1)
        return fail(client, "handshake");
    if (SSL_write(ssl, said, length) != length)
        return fail(client, "write");
    for (; now > 0 && got<length; got += now> 0 ? now : 0)
        now = SSL_read(ssl, received + got, length - got);
    if (got < length)
        return fail(client, "read");
    if (memcmp(said, received, (size_t)length) != 0)
        return fail(client, "echo");
    return true;
}

static void remember(struct client *client, SSL *ssl)
{
    client->seen.visits++;
    client->seen.resumed += SSL_session_reused(ssl) == 1;
    client->seen.by_leaf[leaf_of(ssl)]++;
    SSL_SESSION_free(client->session);
    client->session = client->keeps_session ? SSL_get1_session(ssl) : NULL;
}

/* Ours, then the server's end of TLS. */
static void say_goodbye(struct client *client, SSL *ssl)
{
    if (SSL_shutdown(ssl) < 0 || SSL_shutdown(ssl) != 1)
        (void)fail(client, "end");
    else
        remember(client, ssl);
}

static void visit(struct client *client)
{
    char name[] = "localhost"; /* OpenSSL's macro takes no const */
    int fd = connect_socket(&client->scene->address);
    SSL *ssl = SSL_new(client->ctx);

    if (fd < 0 || ssl == NULL || SSL_set_fd(ssl, fd) != 1 ||
        SSL_set_tlsext_host_name(ssl, name) != 1 || SSL_set1_host(ssl, name) != 1 ||
        (client->session != NULL && SSL_set_session(ssl, client->session) != 1))
        (void)fail(client, "connection");
    else if (converse(client, ssl))
        say_goodbye(client, ssl);
    SSL_free(ssl);
    if (fd >= 0)
        close(fd);
}

static void *run_client(void *arg)
{
    struct client *client = arg;

    while (!atomic_load(&client->scene->is_over) && client->seen.failed == 0) {
        visit(client);
        call_counter_add(&client->scene->visits);
    }
    SSL_SESSION_free(client->session);
    return NULL;
}

/* Trusts the authority; without a cache, so that only who keeps a session has one. */
static SSL_CTX *make_ctx(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    if (SSL_CTX_load_verify_file(ctx, pki()->ca_file) == 1)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

/* A server that goes away in the middle is an error of the socket's, no signal. */
static bool start_client(struct client *client, struct scene *scene, bool keeps_session)
{
    sigset_t pipe, before;
    bool good;

    *client = (struct client){.scene = scene, .keeps_session = keeps_session, .ctx = make_ctx()};
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, &before);
    good = client->ctx != NULL && pthread_create(&client->thread, NULL, run_client, client) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!good)
        SSL_CTX_free(client->ctx);
    return good;
}

static void end_client(struct client *client, struct swaps *swaps)
{
    (void)pthread_join(client->thread, NULL);
    SSL_CTX_free(client->ctx);
    swaps->visits += client->seen.visits;
    swaps->resumed += client->seen.resumed;
    swaps->by_leaf[0] += client->seen.by_leaf[0];
    swaps->by_leaf[1] += client->seen.by_leaf[1];
    if (swaps->failed == 0)
        memcpy(swaps->why, client->seen.why, sizeof(swaps->why));
    swaps->failed += client->seen.failed;
}

/* ---- all of it ---- */

static bool swap_all(struct swaps *swaps, struct scene *scene, weir_tls_context *context,
                     const char *path)
{
    const struct pki_leaf *leaves[] = {&pki()->server, &pki()->renewed};

    for (int i = 0; i < swaps->count; i++) {
        uint32_t before = atomic_load(&scene->visits.calls);

        if (!put_file(path, leaves[(i + 1) % 2]) || weir_tls_context_reload(context) < 0) {
            (void)snprintf(swaps->why, sizeof(swaps->why), "reload: %s", weir_tls_reason());
            swaps->failed++;
            return false;
        }
        (void)call_counter_await(&scene->visits, before + 1); /* whose visit fails comes no more */
    }
    return true;
}

static void run_clients(struct swaps *swaps, struct scene *scene, weir_tls_context *context,
                        const char *path)
{
    static struct client clients[SWAPS_CLIENTS_MAX];
    int count = 0;

    while (count < swaps->clients && start_client(&clients[count], scene, count % 2 == 1))
        count++;
    (void)swap_all(swaps, scene, context, path);
    atomic_store(&scene->is_over, true);
    for (int i = 0; i < count; i++)
        end_client(&clients[i], swaps);
    weir_tls_context_read_stats(context, &swaps->stats);
}

bool swaps_run(struct swaps *swaps)
{
    struct scene scene = {.is_over = false};
    weir_tls_context *context = NULL;
    weir_server *server = NULL;
    char path[400];
    int err = 0;

    (void)snprintf(path, sizeof(path), "%s/swaps.pem", pki()->folder);
    if (!put_file(path, &pki()->server))
        err = -EIO;
    if (err == 0)
        err = weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = path), &context);
    if (err == 0)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = swaps->group, .address = "127.0.0.1:0",
                                                    .init_child = init_child, .user_data = context),
                                &server);
    if (err == 0)
        err = weir_channel_local_address(weir_server_listener(server, 0), &scene.address);
    if (err == 0)
        run_clients(swaps, &scene, context, path);
    else
        (void)snprintf(swaps->why, sizeof(swaps->why), "server: %s", weir_error_text(err));
    if (server != NULL)
        (void)weir_server_stop(server, 0, TEST_TIMEOUT_NS);
    weir_server_release(server);
    weir_tls_context_release(context);
    return err == 0 && swaps->failed == 0 && swaps->stats.failed == 0 &&
           swaps->stats.reloads == (uint64_t)swaps->count && swaps->by_leaf[0] > 0 &&
           swaps->by_leaf[1] > 0 && swaps->resumed > 0;
}
