/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that mean no good, on sockets of every backend: what they get is an end of the connection,
 * and who comes after them is served. test_tls_hostile.c has more of them, without a network.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include <weir/error.h>
#include <weir/pipeline.h>
#include <weir/pool.h>

#include "support/executor/call_counter.h"
#include "support/loop/sockets.h"
#include "support/tls/openssl_memory.h"
#include "support/tls/record_forger.h"
#include "support/tls/tls_endpoint.h"

#define HELLO_MAX 4096

/* ---- a plain socket ---- */

/* A ring of the loop's may interrupt what the test's own thread does. */
static int call(const struct tls_endpoint *endpoint)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)endpoint->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(client >= 0);
    while (connect(client, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno == EISCONN)
            break;
        assert_true(errno == EINTR || errno == EALREADY);
    }
    return client;
}

/* Sends `piece` bytes at once; the server may close before the end. */
static void throw(int client, const void *bytes, size_t length, size_t piece)
{
    const uint8_t *at = bytes;

    for (; length > 0; length -= piece, at += piece) {
        piece = piece < length ? piece : length;
        if (send(client, at, piece, MSG_NOSIGNAL) < 0)
            return;
    }
}

/* What the server has to say, until it ends the connection, in whichever way. */
static void hear_the_end(int client)
{
    char bytes[512];
    ssize_t length;

    do
        length = recv(client, bytes, sizeof(bytes), 0);
    while (length > 0 || (length < 0 && errno == EINTR));
    assert_int_equal(close(client), 0);
}

static size_t make_hello(uint8_t hello[HELLO_MAX])
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    int length;

    assert_non_null(ssl);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    (void)SSL_connect(ssl);
    length = BIO_read(SSL_get_wbio(ssl), hello, HELLO_MAX);
    assert_in_range(length, 100, HELLO_MAX - 1);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return (size_t)length;
}

/* ---- tests ---- */

TEST_EACH_LOOP(tls_hostile_socket, rejects_what_is_not_tls)
{
    static const char *const others[] = {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
                                         "\x16\x02 something else"};
    struct tls_endpoint *endpoint = tls_endpoint_listen_localhost(host);

    for (size_t i = 0; i < 3 * sizeof(others) / sizeof(others[0]); i++) {
        int client = call(endpoint);

        throw(client, others[i / 3], strlen(others[i / 3]), i % 3 == 0 ? 1 : 7 * (i % 3));
        hear_the_end(client);
        assert_endpoint(endpoint, "handshake(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(tls_hostile_socket, reports_of_a_hello_that_is_cut_off)
{
    struct tls_endpoint *endpoint = tls_endpoint_listen_localhost(host);
    uint8_t hello[HELLO_MAX];
    size_t length = make_hello(hello);

    for (size_t cut = 0; cut < length; cut += 1 + length / 10) {
        int client = call(endpoint);

        throw(client, hello, cut, 3);
        assert_int_equal(shutdown(client, SHUT_WR), 0);
        hear_the_end(client);
        assert_endpoint(endpoint, "handshake(WEIR_ECUTOFF) error(WEIR_ECUTOFF) inactive");
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(tls_hostile_socket, rejects_garbage_behind_a_hello)
{
    static const uint8_t data[45] = {23, 3, 3, 0, 40};
    struct tls_endpoint *endpoint = tls_endpoint_listen_localhost(host);
    uint8_t hello[HELLO_MAX];
    size_t length = make_hello(hello);

    for (size_t piece = 1; piece < 200; piece *= 4) {
        int client = call(endpoint);

        throw(client, hello, length, piece);
        throw(client, data, sizeof(data), piece);
        hear_the_end(client);
        assert_endpoint(endpoint, "handshake(WEIR_ETLS) error(WEIR_ETLS) inactive");
    }
    tls_endpoint_close(endpoint);
}

/* The reset comes when it comes: before the server has answered, or after. */
TEST_EACH_LOOP(tls_hostile_socket, survives_resets_in_the_middle)
{
    struct tls_endpoint *endpoint = tls_endpoint_listen_localhost(host);
    uint8_t hello[HELLO_MAX];
    size_t length = make_hello(hello);

    for (size_t cut = 0; cut <= length; cut += length / 8) {
        int client = call(endpoint);

        throw(client, hello, cut, length);
        socket_reset(client);
    }
    events_await(&endpoint->events, &endpoint->notes, "inactive", 9);
    assert_int_equal(event_log_count(&endpoint->events, "handshake("), 9);
    assert_int_equal(event_log_count(&endpoint->events, "handshake(OK)"), 0);
    tls_endpoint_close(endpoint);
}

/* ---- half a hello ---- */

#define HALVES 32

static struct call_counter arrived, received; /* of all connections */

static void on_arrival(weir_ctx *ctx)
{
    weir_fire_active(ctx);
    call_counter_add(&arrived);
}

static void on_half(weir_ctx *ctx, weir_msg *msg)
{
    weir_fire_read(ctx, msg);
    call_counter_add(&received);
}

static const weir_handler listener = {.name = "listener", .active = on_arrival, .read = on_half};

static int init_listening(struct tls_endpoint *endpoint, weir_pipeline *pipeline)
{
    int err = weir_pipeline_add_last(pipeline, &listener, NULL);

    return err < 0 ? err : tls_endpoint_init(endpoint, pipeline);
}

/* It costs the session that was made for it, and the bytes; no buffers for a whole record. */
TEST_EACH_LOOP(tls_hostile_socket, keeps_no_more_of_half_a_hello_than_has_come)
{
    struct tls_endpoint *endpoint = tls_endpoint_listen_localhost(host);
    weir_pool_stats before, after;
    uint8_t hello[HELLO_MAX];
    size_t half = make_hello(hello) / 2, ssl_before;
    int clients[HALVES];

    arrived = received = (struct call_counter){0};
    endpoint->init = init_listening;
    for (int i = 0; i < HALVES; i++)
        clients[i] = call(endpoint);
    assert_true(call_counter_await(&arrived, HALVES)); /* each has a session */
    host_turn(host, 2);
    ssl_before = test_openssl_bytes();
    weir_pool_read_stats(&before);
    for (int i = 0; i < HALVES; i++)
        throw(clients[i], hello, half, half);
    assert_true(call_counter_await(&received, HALVES));
    host_turn(host, 2);
    weir_pool_read_stats(&after);
    print_message("half a hello of %zu bytes: %lld bytes of buffers, %lld of OpenSSL's\n", half,
                  (long long)(after.in_use_bytes - before.in_use_bytes) / HALVES,
                  (long long)(test_openssl_bytes() - ssl_before) / HALVES);
    assert_true(after.in_use_bytes <= before.in_use_bytes + HALVES * (half * 3 + 256));
    assert_true(test_openssl_bytes() <= ssl_before + HALVES * 64);
    for (int i = 0; i < HALVES; i++)
        socket_reset(clients[i]);
    tls_endpoint_close(endpoint);
}

/* ---- after the handshake ---- */

struct caller {
    int socket;
    SSL *ssl;
};

/* Its socket blocks, so it is an interruption that has to be tried again. */
static bool is_interrupted(SSL *ssl, int result)
{
    int why = SSL_get_error(ssl, result);

    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

/* With a forger, or NULL. */
static void caller_begin(struct caller *caller, const struct tls_endpoint *endpoint, SSL_CTX *ctx,
                         int version, struct record_forger *forger)
{
    int result;

    caller->socket = call(endpoint);
    caller->ssl = SSL_new(ctx);
    assert_non_null(caller->ssl);
    assert_int_equal(SSL_set_max_proto_version(caller->ssl, version), 1);
    if (forger != NULL)
        record_forger_prepare(forger, caller->ssl);
    assert_int_equal(SSL_set_fd(caller->ssl, caller->socket), 1);
    do
        result = SSL_connect(caller->ssl);
    while (result != 1 && is_interrupted(caller->ssl, result));
    assert_int_equal(result, 1);
    if (forger != NULL)
        record_forger_begin(forger);
}

/* A byte goes there and comes back. */
static void assert_echoed(struct caller *caller)
{
    char byte = 'x';
    int result;

    do
        result = SSL_write(caller->ssl, &byte, 1);
    while (result != 1 && is_interrupted(caller->ssl, result));
    assert_int_equal(result, 1);
    do
        result = SSL_read(caller->ssl, &byte, 1);
    while (result != 1 && is_interrupted(caller->ssl, result));
    assert_int_equal(result, 1);
}

#define ROUNDS 20
#define BATCH 100

/* A few rounds of many records, none of which keeps the other from being served. */
static void flood(struct caller *caller, struct record_forger *forger, uint8_t type,
                  const char *bytes, size_t length, struct caller *lifecycle_recorder)
{
    uint8_t records[BATCH * (16 + RECORD_FORGER_EXTRA)];
    size_t size;

    assert_true(length <= 16);
    for (int i = 0; i < ROUNDS; i++) {
        size = 0;
        for (int j = 0; j < BATCH; j++) {
            size += record_forger_seal(forger, type, bytes, length, records + size);
            if (type == SSL3_RT_HANDSHAKE && bytes[0] == SSL3_MT_KEY_UPDATE)
                record_forger_update_keys(forger);
        }
        throw(caller->socket, records, size, size);
        assert_echoed(lifecycle_recorder);
    }
}

TEST_EACH_LOOP(tls_hostile_socket, serves_others_while_it_is_flooded)
{
    static const struct {
        int version;
        uint8_t type;
        const char *bytes;
        size_t length;
        const char *words;
    } floods[] = {
        {TLS1_2_VERSION, SSL3_RT_ALERT, "\1\x70", 2, "too many warn alerts"},
        {TLS1_3_VERSION, SSL3_RT_ALERT, "\1\x5a", 2, "too many warn alerts"},
        {TLS1_2_VERSION, SSL3_RT_APPLICATION_DATA, "", 0, "record too small"},
        {TLS1_3_VERSION, SSL3_RT_APPLICATION_DATA, "", 0, "record too small"},
        {TLS1_2_VERSION, SSL3_RT_HANDSHAKE, "\1\0\0\4\3\3xx", 8, "records without data"},
        {TLS1_3_VERSION, SSL3_RT_HANDSHAKE, "\x18\0\0\1\0", 5, "records without data"},
        {TLS1_3_VERSION, SSL3_RT_HANDSHAKE, "\x18\0\0\1\1", 5, "records without data"},
    };
    struct tls_endpoint *endpoint = tls_endpoint_listen_localhost(host);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    struct caller lifecycle_recorder, caller;
    struct record_forger forger;

    assert_non_null(ctx);
    caller_begin(&lifecycle_recorder, endpoint, ctx, TLS1_3_VERSION, NULL);
    assert_endpoint(endpoint, "handshake(OK)");
    for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
        caller_begin(&caller, endpoint, ctx, floods[i].version, &forger);
        flood(&caller, &forger, floods[i].type, floods[i].bytes, floods[i].length,
              &lifecycle_recorder);
        hear_the_end(caller.socket);
        assert_endpoint(endpoint, "handshake(OK) error(WEIR_ETLS) inactive");
        assert_detail(endpoint, floods[i].words);
        record_forger_end(&forger);
        SSL_free(caller.ssl);
    }
    assert_echoed(&lifecycle_recorder);
    SSL_free(lifecycle_recorder.ssl);
    assert_int_equal(close(lifecycle_recorder.socket), 0);
    SSL_CTX_free(ctx);
    tls_endpoint_close(endpoint);
}
