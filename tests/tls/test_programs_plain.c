/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where plain text and TLS meet: start-TLS, programs at the wrong port, and the key log, which
 * makes TLS plain.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/pipeline.h>
#include <weir/tls.h>

#include "support/tls/peer_program.h"
#include "support/tls/pki.h"

/* ---- start-TLS ---- */

static void start_tls(weir_ctx *ctx, struct party *party)
{
    weir_tls_options options = party->options;

    options.start_tls = true;
    options.place = WEIR_PLACE(.first = true);
    party_forget(party);
    party->manner = party_echo;
    if (weir_tls_add_with(weir_ctx_pipeline(ctx), party->tls, &options) < 0)
        weir_close(ctx, NULL);
    party_write(ctx, "220 go ahead\r\n");
}

static void speak_smtp(weir_ctx *ctx, weir_msg *msg)
{
    struct party *party = party_of(ctx);

    weir_msg_release(msg);
    if (party_has_heard(party, "STARTTLS\r\n")) {
        start_tls(ctx, party);
    } else if (party_has_heard(party, "EHLO ")) {
        party_forget(party);
        party_write(ctx, "250-localhost\r\n250 STARTTLS\r\n");
    }
}

static void greet(weir_ctx *ctx)
{
    party_write(ctx, "220 localhost ESMTP\r\n");
    weir_fire_active(ctx);
}

static const weir_handler greeter = {.name = "greeter", .active = greet};

static int init_smtp(struct party *party, weir_pipeline *pipeline)
{
    int err = weir_pipeline_add_last(pipeline, &greeter, NULL);

    return err < 0 ? err : party_add_notes(party, pipeline);
}

TEST_EACH_LOOP(programs, clients_of_mail_start_tls_in_mid_stream)
{
    struct party *party;

    program_require(host, "openssl");
    program_require(host, "gnutls-cli");
    party = party_listen_as_localhost(host);
    party->init = init_smtp;
    for (each_version(version)) {
        struct program *client;

        party->manner = speak_smtp;
        client = s_client(party, version->flag, "-starttls", "smtp");
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_party(party, "handshake(OK) ended inactive");
        assert_string_equal(party_facts(party).version, version->name);

        party->manner = speak_smtp;
        client = gnutls_cli(party, "--starttls-proto", "smtp", "--priority", version->priority);
        program_await(client, "- Simple Client Mode:");
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_party(party, "handshake(OK) ended inactive");
    }
    party_end(party);
}

/* ---- one port for both ---- */

static int init_either(weir_channel *channel, bool is_tls, void *user_data)
{
    (void)is_tls;
    return party_add_notes(user_data, weir_channel_pipeline(channel));
}

static int init_detect(struct party *party, weir_pipeline *pipeline)
{
    return weir_tls_detect_add(
        pipeline,
        WEIR_TLS_DETECT_OPTIONS(.context = party->tls, .init = init_either, .user_data = party));
}

static void answer_http(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    party_write(ctx, "HTTP/1.0 200 OK\r\n\r\nwelcome\n");
    weir_close(ctx, NULL);
}

static void fetch(struct party *party, const char *scheme)
{
    struct program *client = curl(party, scheme, "--http1.0");

    assert_int_equal(program_wait(client), 0);
    assert_string_equal(program_output(client), "welcome\n");
    program_release(client);
}

TEST_EACH_LOOP(programs, curl_finds_http_and_https_on_one_port)
{
    struct party *party;

    program_require(host, "curl");
    party = party_listen_as_localhost(host);
    party->init = init_detect;
    party->manner = answer_http;
    fetch(party, "http");
    assert_party(party, "inactive");
    fetch(party, "https");
    assert_party(party, "handshake(OK) inactive");
    party_end(party);
}

/* ---- the wrong port ---- */

TEST_EACH_LOOP(programs, curl_speaks_plain_http_to_our_tls)
{
    struct party *party;
    struct program *client;

    program_require(host, "curl");
    party = party_listen_as_localhost(host);
    client = curl(party, "http", "--http1.0");
    assert_int_not_equal(program_end(client), 0);
    assert_party(party, "handshake(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
    assert_words(party, "an HTTP request has come");
    party_end(party);
}

static void answer_plainly(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    party_write(ctx, "HTTP/1.0 400 Bad Request\r\n\r\n");
    weir_close(ctx, NULL);
}

TEST_EACH_LOOP(programs, s_client_comes_to_a_port_without_tls)
{
    struct party *party;
    struct program *client;

    program_require(host, "openssl");
    party = party_listen_plainly(host);
    party->manner = answer_plainly;
    client = s_client(party, "-tls1_3");
    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, "wrong version number");
    program_release(client);
    party_end(party);
}

TEST_EACH_LOOP(programs, our_client_comes_to_a_port_without_tls)
{
    struct party *server = party_listen_plainly(host);
    struct party *client = party_visit_localhost(host);

    server->manner = answer_plainly;
    party_connect(client, server->port);
    assert_party(client, "handshake(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
    assert_words(client, "this is not TLS");
    party_end(client);
    party_end(server);
}

/* ---- the key log ---- */

#define SECRETS_OF_1_2 1
#define SECRETS_OF_1_3 5
#define LINES_MAX 16
#define LINE_SIZE 256

/* Lines of a log in order, without remarks. */
struct log {
    size_t count;
    char lines[LINES_MAX][LINE_SIZE];
};

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void log_read(struct log *log, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[LINE_SIZE];

    assert_non_null(file);
    log->count = 0;
    while (fgets(line, sizeof(line), file) != NULL && log->count < LINES_MAX)
        if (line[0] != '#')
            memcpy(log->lines[log->count++], line, LINE_SIZE);
    (void)fclose(file);
    qsort(log->lines, log->count, LINE_SIZE, compare);
}

static void assert_logs_equal(const char *one, const char *other, size_t count)
{
    struct log a, b;

    log_read(&a, one);
    log_read(&b, other);
    assert_int_equal(a.count, count);
    assert_int_equal(b.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(a.lines[i], b.lines[i]);
}

TEST_EACH_LOOP(programs, s_client_logs_the_same_keys_as_we_do)
{
    char ours[256], theirs[256];
    struct party *party;

    program_require(host, "openssl");
    (void)snprintf(ours, sizeof(ours), "%s/our.keys", pki()->folder);
    (void)snprintf(theirs, sizeof(theirs), "%s/their.keys", pki()->folder);
    (void)unlink(ours);
    (void)unlink(theirs);
    party = party_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                       .key_pem = pki()->server.key, .key_log_file = ours));
    for (each_version(version)) {
        struct program *client = s_client(party, version->flag, "-keylogfile", theirs);

        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_party(party, "handshake(OK) ended inactive");
    }
    assert_logs_equal(ours, theirs, SECRETS_OF_1_2 + SECRETS_OF_1_3);
    party_end(party);
}
