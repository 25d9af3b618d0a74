/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/tls_context.h>

#include "os/thread.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/test.h"
#include "support/tls/memory_handshake.h"
#include "support/tls/pki.h"
#include "tls/openssl/internal.h"
#include "tls/tls_context.h"

/* ---- options that are wrong ---- */

struct wrong {
    weir_tls_context_options options;
    int err;
    const char *words; /* that are in the reason */
};

static void assert_wrong(const struct wrong *wrong, bool is_server)
{
    weir_tls_context_options options = wrong->options;
    weir_tls_context *context = NULL;
    int err;

    options.size = sizeof(options);
    err = is_server ? weir_tls_server_create(&options, &context)
                    : weir_tls_client_create(&options, &context);
    if (err != wrong->err || strstr(weir_tls_reason(), wrong->words) == NULL)
        fail_msg("%s, \"%s\" instead of %s, \"%s\"", weir_error_name(err), weir_tls_reason(),
                 weir_error_name(wrong->err), wrong->words);
    assert_null(context);
    assert_true(log_capture_last_contains(wrong->words));
}

#define OURS .certificate_pem = pki()->server.certificate, .key_pem = pki()->server.key

static void choose_nothing(weir_tls_sni_request *request, void *user_data)
{
    (void)request;
    (void)user_data;
}

TEST(tls_context, names_the_invalid_certificate_or_key_of_a_server)
{
    const struct wrong rows[] = {
        {{0}, -EINVAL, "a server needs a certificate"},
        {{OURS, .certificate_file = "x"}, -EINVAL, "certificate_file and certificate_pem"},
        {{OURS, .self_signed_for = "x"}, -EINVAL, "certificate_pem and self_signed_for"},
        {{OURS, .key_file = "x"}, -EINVAL, "key_file and key_pem"},
        {{.key_pem = "x"}, -EINVAL, "a key is given without a certificate"},
        {{.certificate_file = "/nowhere/server.pem"}, -ENOENT, "/nowhere/server.pem: No such file"},
        {{.certificate_pem = pki()->server.certificate, .key_file = "/nowhere/server.key"},
         -ENOENT,
         "/nowhere/server.key: No such file"},
        {{.certificate_pem = "hello"}, WEIR_ETLS, "certificate_pem: no certificate found"},
        {{.certificate_pem = pki()->server.key}, WEIR_ETLS, "no certificate found"},
        {{.certificate_pem = pki()->server.certificate},
         WEIR_ETLS,
         "certificate_pem: no readable key found"},
        {{.certificate_pem = pki()->server.certificate, .key_pem = "hello"},
         WEIR_ETLS,
         "key_pem: no readable key found"},
        {{.certificate_pem = pki()->server.certificate, .key_pem = pki()->renewed.key},
         -EINVAL,
         "the key does not match the certificate"},
        {{.certificate_pem = pki_rsa()->certificate, .key_pem = pki()->server.key},
         -EINVAL,
         "the key does not match the certificate"},
        {{.certificate_pem = pki()->encrypted.certificate, .key_pem = pki()->encrypted.key},
         -EINVAL,
         "the key is encrypted and no passphrase is given"},
        {{.certificate_file = pki()->encrypted.certificate_file,
          .key_file = pki()->encrypted.key_file,
          .passphrase = "wrong horse"},
         -EINVAL,
         ": wrong passphrase"},
    };

    log_capture_start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_wrong(&rows[i], true);
}

TEST(tls_context, names_the_invalid_option_of_a_server)
{
    const struct wrong rows[] = {
        {{OURS, .ca_file = "/nowhere/ca.pem"}, -ENOENT, "/nowhere/ca.pem: No such file"},
        {{OURS, .ca_pem = "hello"}, WEIR_ETLS, "ca_pem: no certificate found"},
        {{OURS, .verify = (enum weir_tls_verify)9}, -EINVAL, "verify: invalid value 9"},
        {{OURS, .verify = WEIR_TLS_VERIFY_PINS},
         -EINVAL,
         "verify: WEIR_TLS_VERIFY_PINS needs pins"},
        {{OURS, .pins = "sha256/short"}, -EINVAL, "\"sha256/short\" is not a pin"},
        {{OURS, .pins = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=,"},
         -EINVAL,
         "\"\" is not"},
        {{OURS, .pins = "sha256/    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
         -EINVAL,
         "is not a pin"},
        {{OURS, .pins = "sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
         -EINVAL,
         "is not a pin"},
        {{OURS, .min_version = WEIR_TLS_VERSION_1_3, .max_version = WEIR_TLS_VERSION_1_2},
         -EINVAL,
         "min_version is above max_version"},
        {{OURS, .min_version = (enum weir_tls_version)7},
         -EINVAL,
         "min_version, max_version: invalid value"},
        {{OURS, .ciphers = "FOO"}, -EINVAL, "no known cipher in \"FOO\""},
        {{OURS, .cipher_suites = "FOO"}, -EINVAL, "no known cipher suite in \"FOO\""},
        {{OURS, .groups = "FOO"}, -EINVAL, "no known group in \"FOO\""},
        {{OURS, .alpn = "h2,"}, -EINVAL, "\"h2,\" contains an empty protocol"},
        {{OURS, .alpn = ""}, -EINVAL, "\"\" contains an empty protocol"},
        {{OURS, .session_lifetime_ns = -1}, -EINVAL, "session_lifetime_ns is negative"},
        {{OURS, .ocsp_file = "/nowhere/staple"}, -ENOENT, "/nowhere/staple: No such file"},
        {{OURS, .ocsp_file = pki()->ca_file}, WEIR_ETLS, pki()->ca_file},
        {{OURS, .key_log_file = "/nowhere/keys"}, -ENOENT, "/nowhere/keys: No such file"},
        {{OURS, .session_ids = 2}, -EINVAL, "expected 0, WEIR_ON or WEIR_OFF"},
        {{.self_signed_for = ""}, -EINVAL, "\"\" is neither a name nor an address"},
        {{.self_signed_for = "a.test,b c"}, -EINVAL, "\"b c\" is neither"},
    };

    log_capture_start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_wrong(&rows[i], true);
}

TEST(tls_context, names_the_invalid_option_of_a_client)
{
    weir_tls_tickets *tickets;

    assert_int_equal(weir_tls_tickets_create(0, &tickets), 0);
    {
        const struct wrong rows[] = {
            {{.verify = WEIR_TLS_VERIFY_OPTIONAL}, -EINVAL, "OPTIONAL is for servers only"},
            {{.tickets = tickets}, -EINVAL, "tickets: for servers only"},
            {{.on_sni = choose_nothing}, -EINVAL, "on_sni: for servers only"},
            {{.ocsp_file = "x"}, -EINVAL, "ocsp_file: for servers only"},
            {{.session_ids = WEIR_OFF}, -EINVAL, "session_ids: for servers only"},
            {{.resumption = 2}, -EINVAL, "resumption, session_ids: expected 0"},
            {{.key_pem = pki()->client.key}, -EINVAL, "a key is given without a certificate"},
        };

        log_capture_start();
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            assert_wrong(&rows[i], false);
    }
    weir_tls_tickets_release(tickets);
}

TEST(tls_context, options_of_an_unknown_version_are_rejected)
{
    struct {
        weir_tls_context_options known;
        uint64_t newer;
    } options = {.known.size = sizeof(options), .newer = 1};
    weir_tls_context *context;

    log_capture_start();
    assert_int_equal(weir_tls_client_create(&options.known, &context), -EINVAL);
    options.newer = 0;
    assert_int_equal(weir_tls_client_create(&options.known, &context), 0);
    weir_tls_context_release(context);
}

TEST(tls_context, a_client_needs_no_options)
{
    weir_tls_context *context;

    assert_int_equal(weir_tls_client_create(NULL, &context), 0);
    assert_null(weir_tls_context_certificate(context));
    weir_tls_context_release(weir_tls_context_retain(context));
    weir_tls_context_release(context);
    weir_tls_context_release(NULL);
}

/* ---- who we are ---- */

static void assert_subject(weir_tls_context *context, const struct pki_leaf *leaf)
{
    weir_tls_certificate *ours = weir_tls_context_certificate(context), *expected;

    assert_int_equal(weir_tls_certificate_parse(leaf->certificate, &expected), 0);
    assert_non_null(ours);
    assert_string_equal(weir_tls_certificate_pin(ours), weir_tls_certificate_pin(expected));
    weir_tls_certificate_release(ours);
    weir_tls_certificate_release(expected);
}

static weir_tls_context *server_with(const weir_tls_context_options *options)
{
    weir_tls_context *context;

    if (weir_tls_server_create(options, &context) < 0)
        fail_msg("%s", weir_tls_reason());
    return context;
}

static weir_tls_context *client_with(const weir_tls_context_options *options)
{
    weir_tls_context *context;

    if (weir_tls_client_create(options, &context) < 0)
        fail_msg("%s", weir_tls_reason());
    return context;
}

static void assert_serves(weir_tls_context *server, const struct pki_leaf *leaf)
{
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_DEFAULT);

    assert_false(handshake_resumes(client, server));
    assert_subject(server, leaf);
    weir_tls_context_release(client);
}

TEST(tls_context, certificates_come_from_files_and_texts)
{
    const struct pki_leaf *leaf = &pki()->server, *encrypted = &pki()->encrypted;
    char both[16384];
    const struct {
        weir_tls_context_options options;
        const struct pki_leaf *leaf;
    } rows[] = {
        {{OURS}, leaf},
        {{.certificate_file = leaf->certificate_file, .key_file = leaf->key_file}, leaf},
        {{.certificate_file = leaf->certificate_file, .key_pem = leaf->key}, leaf},
        {{.certificate_pem = both}, leaf},
        {{.certificate_pem = encrypted->certificate,
          .key_pem = encrypted->key,
          .passphrase = PKI_PASSPHRASE},
         encrypted},
        {{.certificate_pem = pki_rsa()->certificate, .key_pem = pki_rsa()->key}, pki_rsa()},
    };

    assert_true(snprintf(both, sizeof(both), "%s%s", leaf->key, leaf->certificate) <
                (int)sizeof(both));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir_tls_context_options options = rows[i].options;
        weir_tls_context *server;

        options.size = sizeof(options);
        server = server_with(&options);
        assert_serves(server, rows[i].leaf);
        weir_tls_context_release(server);
    }
}

/* ---- files ---- */

static void read_key(void *arg)
{
    weir_tls_context *context;

    if (weir_tls_server_create(
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate, .key_file = arg),
            &context) == 0)
        weir_tls_context_release(context);
}

/* The flags of the descriptor by which this thread's process reads a file; -1 if it does not. */
static long flags_of_reader(const char *path)
{
    char name[64], target[256], line[64];
    long flags = -1;

    for (int fd = 0; fd < 256 && flags < 0; fd++) {
        ssize_t length;
        FILE *info;

        (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        length = readlink(name, target, sizeof(target) - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        (void)snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
        info = strcmp(target, path) == 0 ? fopen(name, "re") : NULL;
        if (info == NULL)
            continue;
        while (fgets(line, sizeof(line), info) != NULL)
            if (strncmp(line, "flags:", 6) == 0 && (strtol(line + 6, NULL, 8) & O_ACCMODE) == 0)
                flags = strtol(line + 6, NULL, 8);
        (void)fclose(info);
    }
    return flags;
}

/* A child that another thread starts meanwhile must not inherit the key. */
TEST(tls_context, children_do_not_inherit_what_is_being_read)
{
    weir__thread thread;
    char path[256];
    long flags;
    int pipe;

    log_capture_start(); /* there is no key in it */
    (void)snprintf(path, sizeof(path), "%s/pipe.key", pki()->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(weir__thread_start("reader", read_key, path, &thread), 0);
    pipe = open(path, O_WRONLY | O_CLOEXEC); /* waits for the reader, who then waits for us */
    assert_true(pipe >= 0);
    while ((flags = flags_of_reader(path)) < 0)
        ;
    assert_int_equal(close(pipe), 0);
    weir__thread_join(&thread);
    assert_int_equal(remove(path), 0);
    assert_true((flags & O_CLOEXEC) != 0);
}

TEST(tls_context, options_are_copied)
{
    char certificate[16384], key[4096];
    weir_tls_context *server;

    (void)snprintf(certificate, sizeof(certificate), "%s", pki()->server.certificate);
    (void)snprintf(key, sizeof(key), "%s", pki()->server.key);
    server = server_with(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = certificate, .key_pem = key));
    memset(certificate, 'x', sizeof(certificate) - 1);
    memset(key, 'x', sizeof(key) - 1);
    assert_int_equal(weir_tls_context_reload(server), 0);
    assert_serves(server, &pki()->server);
    weir_tls_context_release(server);
}

TEST(tls_context, a_self_signed_certificate_is_trusted_by_who_has_it)
{
    static const char *const names[] = {"example.test", "*.wild.test", "127.0.0.1"};
    weir_tls_context *server = server_with(
        WEIR_TLS_CONTEXT_OPTIONS(.self_signed_for = "example.test, *.wild.test,127.0.0.1"));
    weir_tls_certificate *certificate = weir_tls_context_certificate(server);
    weir_tls_context *client =
        client_with(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = weir_tls_certificate_pem(certificate)));
    weir_tls_context *stranger = handshake_client(WEIR_TLS_VERSION_DEFAULT);
    int64_t valid_s =
        weir_tls_certificate_not_after(certificate) - weir_tls_certificate_not_before(certificate);
    struct session_pair pair;

    assert_string_equal(weir_tls_certificate_subject(certificate), "CN=example.test");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_string_equal(weir_tls_certificate_name(certificate, i), names[i]);
    assert_in_range(valid_s, 30 * 86400, 30 * 86400 + 3601);
    assert_false(handshake_resumes(client, server));
    assert_false(handshake_run(&pair, stranger, server));
    assert_int_equal(pair.client.status, WEIR_EUNTRUSTED);
    session_pair_close(&pair);
    weir_tls_certificate_release(certificate);
    weir_tls_context_release(stranger);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

/* ---- other context ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

struct files {
    char certificate[256];
    char key[256];
};

static void put_leaf(struct files *files, const struct pki_leaf *leaf)
{
    (void)snprintf(files->certificate, sizeof(files->certificate), "%s/swap.pem", pki()->folder);
    (void)snprintf(files->key, sizeof(files->key), "%s/swap.key", pki()->folder);
    write_file(files->certificate, leaf->certificate);
    write_file(files->key, leaf->key);
}

static uint64_t reloads_of(weir_tls_context *context)
{
    weir_tls_context_stats stats;

    weir_tls_context_read_stats(context, &stats);
    return stats.reloads;
}

TEST(tls_context, a_reload_reads_the_files_again_and_live_sessions_go_on)
{
    weir_tls_context *server, *client = handshake_client(WEIR_TLS_VERSION_DEFAULT);
    struct files files;
    struct session_pair pair;

    put_leaf(&files, &pki()->server);
    server = server_with(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = files.certificate, .key_file = files.key));
    assert_true(handshake_run(&pair, client, server));
    put_leaf(&files, &pki()->renewed);
    assert_subject(server, &pki()->server);
    assert_int_equal(weir_tls_context_reload(server), 0);
    assert_serves(server, &pki()->renewed);
    assert_int_equal(reloads_of(server), 1);
    weir_tls_context_release(server);
    assert_int_equal(session_side_seal(&pair.client, "still here", 10), 0);
    session_side_expect(&pair.server, "still here", 10);
    session_pair_close(&pair);
    weir_tls_context_release(client);
}

TEST(tls_context, a_reload_that_fails_leaves_all_as_it_was)
{
    const struct pki_leaf *leaf = &pki()->server;
    weir_tls_context *server;
    struct files files;

    log_capture_start();
    put_leaf(&files, leaf);
    server = server_with(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = files.certificate, .key_file = files.key));
    write_file(files.key, pki()->renewed.key);
    assert_int_equal(weir_tls_context_reload(server), -EINVAL);
    assert_string_equal(weir_tls_reason(), "the key does not match the certificate");
    assert_serves(server, leaf);
    write_file(files.certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert_int_equal(weir_tls_context_reload(server), WEIR_ETLS);
    assert_serves(server, leaf);
    assert_int_equal(remove(files.certificate), 0);
    assert_int_equal(weir_tls_context_reload(server), -ENOENT);
    assert_serves(server, leaf);
    assert_int_equal(weir_tls_context_replace(server, WEIR_TLS_CONTEXT_OPTIONS(OURS, .alpn = ",")),
                     -EINVAL);
    assert_serves(server, leaf);
    assert_int_equal(reloads_of(server), 0);
    put_leaf(&files, &pki()->renewed);
    assert_int_equal(weir_tls_context_reload(server), 0); /* of the files, not of what failed */
    assert_serves(server, &pki()->renewed);
    weir_tls_context_release(server);
}

/* ---- names ---- */

static void assert_found(weir_tls_context *context, const char *name, weir_tls_context *expected)
{
    weir_tls_context *found = weir__tls_context_find(context, name);

    assert_ptr_equal(found, expected);
    weir_tls_context_release(found);
}

static bool asks(weir_tls_context *context)
{
    bool it_does;

    weir__openssl_context_release(weir__tls_context_snapshot(context, &it_does));
    return it_does;
}

TEST(tls_context, names_stand_for_other_contexts)
{
    weir_tls_context *server = handshake_server(WEIR_TLS_VERSION_DEFAULT);
    weir_tls_context *other =
        server_with(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->other.certificate,
                                             .key_pem = pki()->other.key));

    assert_false(asks(server));
    assert_int_equal(weir_tls_context_add_name(server, "other.test", other), 0);
    assert_int_equal(weir_tls_context_add_name(server, "*.wild.test", other), 0);
    assert_int_equal(weir_tls_context_add_name(server, "me.wild.test", server), 0);
    weir_tls_context_release(other); /* the names keep it */
    assert_true(asks(server));
    assert_found(server, "OTHER.test", other);
    assert_found(server, "a.wild.test", other);
    assert_found(server, "me.wild.test", server);
    assert_found(server, "nobody.test", server);
    assert_found(server, "", server);
    assert_int_equal(weir_tls_context_add_name(server, "*.wild.test", NULL), 0);
    assert_found(server, "a.wild.test", server);
    weir_tls_context_release(server);
}

TEST(tls_context, names_that_cannot_be_are_rejected)
{
    weir_tls_context *server = handshake_server(WEIR_TLS_VERSION_DEFAULT);
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_DEFAULT);

    assert_int_equal(weir_tls_context_add_name(server, "a..b", server), -EINVAL);
    assert_string_equal(weir_tls_reason(), "\"a..b\" is not a valid server name");
    assert_int_equal(weir_tls_context_add_name(server, NULL, server), -EINVAL);
    assert_int_equal(weir_tls_context_add_name(server, "a.test", client), -EINVAL);
    assert_int_equal(weir_tls_context_add_name(client, "a.test", server), -EINVAL);
    assert_int_equal(weir_tls_context_add_name(server, "a.test", NULL), -ENOENT);
    assert_string_equal(weir_tls_reason(), "no such name: \"a.test\"");
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

TEST(tls_context, a_chooser_makes_a_server_ask)
{
    weir_tls_context *server = server_with(
        WEIR_TLS_CONTEXT_OPTIONS(OURS, .on_sni = choose_nothing, .on_sni_data = &server));
    void *user_data;

    assert_true(asks(server));
    assert_true(weir__tls_context_sni_fn(server, &user_data) == choose_nothing);
    assert_ptr_equal(user_data, &server);
    assert_int_equal(weir_tls_context_replace(server, WEIR_TLS_CONTEXT_OPTIONS(OURS)), 0);
    assert_false(asks(server));
    weir_tls_context_release(server);
}

/* ---- what is spoken ---- */

/* What a handshake between them agrees upon: "" for no protocol; NULL if it fails. */
static const char *agreed_alpn(const char *of_client, const char *of_server,
                               weir__openssl_negotiated *negotiated)
{
    weir_tls_context *client =
        client_with(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = of_client));
    weir_tls_context *server = server_with(WEIR_TLS_CONTEXT_OPTIONS(OURS, .alpn = of_server));
    struct session_pair pair;
    bool is_ok = handshake_run(&pair, client, server);

    if (is_ok)
        weir__openssl_session_negotiated(pair.client.session, negotiated);
    else
        assert_non_null(strstr(pair.client.session->reason, "(alert 120)"));
    session_pair_close(&pair);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
    return is_ok ? negotiated->alpn : NULL;
}

TEST(tls_context, the_server_takes_the_protocol_that_it_likes_best)
{
    weir__openssl_negotiated negotiated;

    assert_string_equal(agreed_alpn("http/1.1,h2", "h2,http/1.1", &negotiated), "h2");
    assert_string_equal(agreed_alpn("http/1.1", "h2,http/1.1", &negotiated), "http/1.1");
    assert_string_equal(agreed_alpn(NULL, "h2", &negotiated), "");
    assert_string_equal(agreed_alpn("h2", NULL, &negotiated), "");
    assert_null(agreed_alpn("http/1.0,spdy/3", "h2,http/1.1", &negotiated));
}

TEST(tls_context, versions_ciphers_and_groups_are_those_of_the_options)
{
    const struct {
        weir_tls_context_options server;
        const char *version;
        const char *cipher;
    } rows[] = {
        {{OURS, .cipher_suites = "TLS_CHACHA20_POLY1305_SHA256", .groups = "P-384"},
         "TLSv1.3",
         "TLS_CHACHA20_POLY1305_SHA256"},
        {{OURS, .max_version = WEIR_TLS_VERSION_1_2, .ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"},
         "TLSv1.2",
         "ECDHE-ECDSA-AES128-GCM-SHA256"},
        {{OURS, .min_version = WEIR_TLS_VERSION_1_3}, "TLSv1.3", "TLS_AES_256_GCM_SHA384"},
    };
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_DEFAULT);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir_tls_context_options options = rows[i].server;
        weir_tls_context *server;
        weir__openssl_negotiated negotiated;
        struct session_pair pair;

        options.size = sizeof(options);
        server = server_with(&options);
        assert_true(handshake_run(&pair, client, server));
        weir__openssl_session_negotiated(pair.server.session, &negotiated);
        assert_string_equal(negotiated.version, rows[i].version);
        assert_string_equal(negotiated.cipher, rows[i].cipher);
        session_pair_close(&pair);
        weir_tls_context_release(server);
    }
    weir_tls_context_release(client);
}

/* Whether a server with every default, and an RSA key, takes this cipher of TLS 1.2. */
static bool takes_cipher(const char *cipher)
{
    const struct pki_leaf *leaf = pki_rsa();
    weir_tls_context *client,
        *server = server_with(
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate, .key_pem = leaf->key));
    struct session_pair pair;
    bool is_taken;

    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .ciphers = cipher,
                                                        .max_version = WEIR_TLS_VERSION_1_2),
                               &client),
        0);
    is_taken = handshake_run(&pair, client, server);
    session_pair_close(&pair);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
    return is_taken;
}

/* Who gets hold of the key some day cannot read what was said before. */
TEST(tls_context, by_default_a_stolen_key_opens_nothing_of_the_past)
{
    assert_true(takes_cipher("ECDHE-RSA-AES128-GCM-SHA256"));
    assert_true(takes_cipher("ECDHE-RSA-CHACHA20-POLY1305"));
    assert_false(takes_cipher("AES128-GCM-SHA256"));
    assert_false(takes_cipher("AES256-SHA256"));
    assert_false(takes_cipher("ECDHE-RSA-AES128-SHA")); /* signs what it has not encrypted */
}

TEST(tls_context, a_client_without_a_common_version_is_rejected)
{
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_1_2);
    weir_tls_context *server =
        server_with(WEIR_TLS_CONTEXT_OPTIONS(OURS, .min_version = WEIR_TLS_VERSION_1_3));
    struct session_pair pair;

    assert_false(handshake_run(&pair, client, server));
    assert_int_equal(pair.client.status, WEIR_ETLSREFUSED);
    session_pair_close(&pair);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

/* ---- stats ---- */

TEST(tls_context, handshakes_are_counted)
{
    weir_tls_context *server = handshake_server(WEIR_TLS_VERSION_DEFAULT);
    weir_tls_context_stats stats;

    weir__tls_context_count(server, 0, false);
    weir__tls_context_count(server, 0, true);
    weir__tls_context_count(server, WEIR_ETLS, false);
    weir_tls_context_read_stats(server, &stats);
    assert_int_equal(stats.handshakes, 2);
    assert_int_equal(stats.resumed, 1);
    assert_int_equal(stats.failed, 1);
    weir_tls_context_release(server);
}

/* ---- faults ---- */

TEST(tls_context, making_one_survives_without_memory)
{
    weir_tls_context *context;

    log_capture_start();
    for (unsigned n = 1;; n++) {
        bool failed;
        int err;

        test_memory_fail_at(n);
        err = weir_tls_server_create(
            WEIR_TLS_CONTEXT_OPTIONS(OURS, .ca_pem = pki()->ca, .alpn = "h2", .groups = "X25519",
                                     .verify = WEIR_TLS_VERIFY_REQUIRED,
                                     .pins = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
            &context);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(err, failed ? -ENOMEM : 0);
        if (!failed)
            break;
        assert_string_equal(weir_tls_reason(), weir_error_text(-ENOMEM));
    }
    weir_tls_context_release(context);
}

TEST(tls_context, a_reload_without_memory_leaves_all_as_it_was)
{
    weir_tls_context *server = handshake_server(WEIR_TLS_VERSION_DEFAULT);
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        int err;

        test_memory_fail_at(n);
        err = weir_tls_context_replace(
            server, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                             .key_pem = pki()->renewed.key));
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(err, failed ? -ENOMEM : 0);
        assert_subject(server, failed ? &pki()->server : &pki()->renewed);
    }
    weir_tls_context_release(server);
}

/* ---- threads ---- */

#define THREADS 2
/* Of each. TSan sees a race without meeting it, so a few are enough there. */
#if defined(__SANITIZE_THREAD__)
#define SWAPS 40
#else
#define SWAPS 150
#endif

/* A thread that changes a server. */
struct swapper {
    weir_tls_context *server;
    const char *name; /* that it gives to it, and takes away */
    atomic_uint failures;
    atomic_bool is_over;
};

static void swap_many_times(void *arg)
{
    const struct pki_leaf *leaves[] = {&pki()->server, &pki()->renewed};
    struct swapper *self = arg;

    for (int i = 0; i < SWAPS; i++) {
        const struct pki_leaf *leaf = leaves[i % 2];
        int err = weir_tls_context_replace(
            self->server,
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate, .key_pem = leaf->key));

        if (err == 0)
            err = weir_tls_context_add_name(self->server, self->name,
                                            i % 2 == 0 ? self->server : NULL);
        if (err < 0)
            atomic_fetch_add(&self->failures, 1);
    }
    atomic_store(&self->is_over, true);
}

TEST(tls_context, threads_replace_options_during_handshakes)
{
    weir_tls_context *server = handshake_server(WEIR_TLS_VERSION_DEFAULT);
    weir_tls_context *client = handshake_client(WEIR_TLS_VERSION_DEFAULT);
    struct swapper swappers[THREADS] = {{.server = server, .name = "a.test"},
                                        {.server = server, .name = "b.test"}};
    weir__thread threads[THREADS];
    struct session_pair pair;

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(weir__thread_start("swapper", swap_many_times, &swappers[i], &threads[i]),
                         0);
    for (int i = 0; i < THREADS; i++) {
        while (!atomic_load(&swappers[i].is_over)) {
            assert_true(handshake_run(&pair, client, server));
            session_pair_close(&pair);
        }
        weir__thread_join(&threads[i]);
        assert_int_equal(atomic_load(&swappers[i].failures), 0);
    }
    assert_int_equal(reloads_of(server), THREADS * SWAPS);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

/* In turn: with verification and without on_sni, and the other way round. */
static void replace_many_times(void *arg)
{
    struct swapper *self = arg;

    for (int i = 0; i < SWAPS; i++)
        if (weir_tls_context_replace(
                self->server, i % 2 == 0
                                  ? WEIR_TLS_CONTEXT_OPTIONS(OURS, .ca_pem = pki()->ca,
                                                             .verify = WEIR_TLS_VERIFY_REQUIRED)
                                  : WEIR_TLS_CONTEXT_OPTIONS(OURS, .on_sni = choose_nothing)) < 0)
            atomic_fetch_add(&self->failures, 1);
    atomic_store(&self->is_over, true);
}

TEST(tls_context, a_snapshot_is_of_one_moment)
{
    struct swapper swapper = {
        .server = server_with(WEIR_TLS_CONTEXT_OPTIONS(OURS, .on_sni = choose_nothing))};
    weir__thread thread;
    unsigned torn = 0;

    assert_int_equal(weir__thread_start("replacer", replace_many_times, &swapper, &thread), 0);
    while (!atomic_load(&swapper.is_over)) {
        bool has_names;
        weir__openssl_context *current = weir__tls_context_snapshot(swapper.server, &has_names);

        torn += has_names != (current->verify == WEIR_TLS_VERIFY_NONE);
        weir__openssl_context_release(current);
    }
    weir__thread_join(&thread);
    assert_int_equal(atomic_load(&swapper.failures), 0);
    assert_int_equal(torn, 0);
    weir_tls_context_release(swapper.server);
}
