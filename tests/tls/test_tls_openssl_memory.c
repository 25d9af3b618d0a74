/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS handlers when OpenSSL finds no memory, at each of its allocations in turn: contexts,
 * sessions, handshakes that are full or take a session up, both certificates, an echo and both
 * ends.
 *
 * Whichever fails: the handshake is reported once to both, an error at most once, both close, and
 * the next connection of the same contexts succeeds. test_openssl_sweep.c checks for leaks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/tls.h>

#include "support/executor/log_capture.h"
#include "support/tls/openssl_memory.h"
#include "support/tls/pki.h"
#include "support/tls/tls_pair.h"

/*
 * Each of the first, then some: later ones are much alike. WEIR_SWEEP=all leaves none out.
 * Everything runs on one thread, so under TSan, which is slow, a sample of all of them is enough.
 */
#if defined(__SANITIZE_THREAD__)
#define EACH_UP_TO 10
#define STRIDE 251
#elif defined(__SANITIZE_ADDRESS__)
#define EACH_UP_TO 20
#define STRIDE 97
#else
#define EACH_UP_TO 50
#define STRIDE 31
#endif

static unsigned next_after(unsigned n)
{
    const char *sweep = getenv("WEIR_SWEEP");
    bool is_all = sweep != NULL && strcmp(sweep, "all") == 0;

    return is_all || n < EACH_UP_TO ? n + 1 : n + STRIDE;
}

/* ---- contexts ---- */

struct kind {
    enum weir_tls_version version;
    int resumption;
};

static const struct kind kinds[] = {
    {WEIR_TLS_VERSION_1_2, WEIR_OFF},
    {WEIR_TLS_VERSION_1_2, WEIR_ON},
    {WEIR_TLS_VERSION_1_3, WEIR_OFF},
    {WEIR_TLS_VERSION_1_3, WEIR_ON},
};

#define each_kind(kind) \
    for (const struct kind *kind = kinds; kind < kinds + sizeof(kinds) / sizeof(kinds[0]); kind++)

static int create_server(const struct kind *kind, weir_tls_context **ret_context)
{
    return weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                 .key_pem = pki()->server.key, .ca_pem = pki()->ca,
                                 .verify = WEIR_TLS_VERIFY_REQUIRED, .alpn = "a,b",
                                 .max_version = kind->version, .resumption = kind->resumption),
        ret_context);
}

static int create_client(const struct kind *kind, weir_tls_context **ret_context)
{
    return weir_tls_client_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->client.certificate,
                                 .key_pem = pki()->client.key, .ca_pem = pki()->ca, .alpn = "b",
                                 .max_version = kind->version, .resumption = kind->resumption),
        ret_context);
}

typedef int create_fn(const struct kind *kind, weir_tls_context **ret_context);

/* Some of what OpenSSL does not find memory for it can do without. */
static void create_without_memory(create_fn *create, const struct kind *kind)
{
    bool has_failed = true;

    (void)pki(); /* made before anything fails */
    log_capture_start();
    for (unsigned n = 1; has_failed; n = next_after(n)) {
        weir_tls_context *context = NULL;
        int err;

        test_openssl_fail_at(n);
        err = create(kind, &context);
        has_failed = test_openssl_failed();
        test_openssl_fail_at(0);
        assert_true(err == 0 || has_failed);
        assert_true(err == 0 || err == -ENOMEM || err == WEIR_ETLS || err == -EINVAL);
        assert_true(err == 0 || weir_tls_reason()[0] != '\0');
        weir_tls_context_release(context);
    }
}

TEST(tls_openssl_memory, may_lack_for_a_context)
{
    create_without_memory(create_server, &kinds[3]);
    create_without_memory(create_client, &kinds[3]);
}

/* ---- connections ---- */

struct contexts {
    weir_tls_context *server;
    weir_tls_context *client;
};

static void echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static void count(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

/* After a handshake the peer's certificate is known, since both require it. */
static void check_client(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    (void)ctx;
    if (weir_tls_handshake_result(handshake) == 0)
        assert_non_null(weir_tls_handshake_peer(handshake));
}

static void check_server(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    check_client(ctx, handshake);
    if (weir_tls_handshake_result(handshake) == 0)
        assert_non_null(weir_tls_certificate_name(weir_tls_handshake_peer(handshake), 0));
}

static void prepare(struct tls_pair *pair, const struct contexts *contexts)
{
    memset(pair, 0, sizeof(*pair));
    tls_side_prepare(&pair->server, contexts->server, NULL, NULL);
    tls_side_prepare(&pair->client, contexts->client, WEIR_TLS_OPTIONS(.server_name = "localhost"),
                     NULL);
    pair->server.on_read = echo;
    pair->client.on_read = count;
    pair->server.on_handshake = check_client;
    pair->client.on_handshake = check_server;
}

static void live(struct tls_pair *pair)
{
    assert_int_equal(weir_embedded_register(pair->server.embedded), 0);
    assert_int_equal(weir_embedded_register(pair->client.embedded), 0);
    weir_channel_write_and_flush(pair->client.channel, tls_pair_bytes(20000), NULL);
    tls_pair_run(pair);
    weir_channel_close(pair->client.channel, NULL);
    tls_pair_run(pair);
    tls_pair_advance(pair, weir_seconds(20));
    tls_pair_run(pair);
}

static void check_one(struct tls_side *side, unsigned n)
{
    if (event_log_count(&side->events, "handshake(") != 1 ||
        event_log_count(&side->events, "error(") > 1 ||
        event_log_count(&side->events, "inactive") != 1 || weir_channel_is_open(side->channel))
        fail_msg("allocation %u: %s: %s", n, side->events.text, side->detail);
}

/* Returns whether an allocation has failed; n = 0: none does. */
static bool connect_without_memory(const struct contexts *contexts, unsigned n)
{
    struct tls_pair pair;
    bool has_failed;

    prepare(&pair, contexts);
    test_openssl_fail_at(n);
    live(&pair);
    has_failed = test_openssl_failed();
    test_openssl_fail_at(0);
    check_one(&pair.server, n);
    check_one(&pair.client, n);
    if (!has_failed) {
        assert_string_equal(pair.server.events.text, "handshake(ok) ended inactive");
        assert_string_equal(pair.client.events.text, "handshake(ok) inactive");
        assert_int_equal(pair.client.received, 20000);
    }
    tls_side_close(&pair.client);
    tls_side_close(&pair.server);
    return has_failed;
}

TEST(tls_openssl_memory, may_lack_for_a_connection)
{
    each_kind(kind)
    {
        struct contexts contexts;
        unsigned n = 1;

        assert_int_equal(create_server(kind, &contexts.server), 0);
        assert_int_equal(create_client(kind, &contexts.client), 0);
        assert_false(connect_without_memory(&contexts, 0));
        while (connect_without_memory(&contexts, n)) {
            assert_false(connect_without_memory(&contexts, 0)); /* the next goes well */
            n = next_after(n);
        }
        assert_true(n > 50);
        weir_tls_context_release(contexts.server);
        weir_tls_context_release(contexts.client);
    }
}

TEST(tls_openssl_memory, may_lack_for_a_handler)
{
    bool has_failed = true;
    struct contexts contexts;

    assert_int_equal(create_client(&kinds[3], &contexts.client), 0);
    assert_int_equal(create_server(&kinds[3], &contexts.server), 0);
    assert_false(connect_without_memory(&contexts, 0)); /* there is a session to be taken up */
    for (unsigned n = 1; has_failed; n = next_after(n)) {
        weir_embedded *embedded;
        int err;

        assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
        test_openssl_fail_at(n);
        err = weir_tls_add_with(weir_embedded_pipeline(embedded), contexts.client,
                                WEIR_TLS_OPTIONS(.server_name = "localhost"));
        has_failed = test_openssl_failed();
        test_openssl_fail_at(0);
        assert_true(err == 0 || (has_failed && (err == -ENOMEM || err == WEIR_ETLS)));
        weir_embedded_release(embedded);
    }
    weir_tls_context_release(contexts.client);
    weir_tls_context_release(contexts.server);
}
