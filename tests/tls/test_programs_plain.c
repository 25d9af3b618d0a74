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

static void start_tls(weir_ctx *ctx, struct tls_endpoint *endpoint)
{
    weir_tls_options options = endpoint->options;

    options.start_tls = true;
    options.place = WEIR_PLACE(.first = true);
    tls_endpoint_clear(endpoint);
    endpoint->on_msg = tls_endpoint_echo;
    if (weir_tls_add_with(weir_ctx_pipeline(ctx), endpoint->tls, &options) < 0)
        weir_close(ctx, NULL);
    tls_endpoint_write(ctx, "220 go ahead\r\n");
}

static void speak_smtp(weir_ctx *ctx, weir_msg *msg)
{
    struct tls_endpoint *endpoint = tls_endpoint_of(ctx);

    weir_msg_release(msg);
    if (tls_endpoint_has_received(endpoint, "STARTTLS\r\n")) {
        start_tls(ctx, endpoint);
    } else if (tls_endpoint_has_received(endpoint, "EHLO ")) {
        tls_endpoint_clear(endpoint);
        tls_endpoint_write(ctx, "250-localhost\r\n250 STARTTLS\r\n");
    }
}

static void greet(weir_ctx *ctx)
{
    tls_endpoint_write(ctx, "220 localhost ESMTP\r\n");
    weir_fire_active(ctx);
}

static const weir_handler greeter = {.name = "greeter", .active = greet};

static int init_smtp(struct tls_endpoint *endpoint, weir_pipeline *pipeline)
{
    int err = weir_pipeline_add_last(pipeline, &greeter, NULL);

    return err < 0 ? err : tls_endpoint_add_recorder(endpoint, pipeline);
}

TEST_EACH_LOOP(programs, clients_of_mail_start_tls_in_mid_stream)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    program_require(host, "gnutls-cli");
    endpoint = tls_endpoint_listen_localhost(host);
    endpoint->init = init_smtp;
    for (each_version(version)) {
        struct program *client;

        endpoint->on_msg = speak_smtp;
        client = s_client(endpoint, version->flag, "-starttls", "smtp");
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
        assert_string_equal(tls_endpoint_handshake(endpoint).version, version->name);

        endpoint->on_msg = speak_smtp;
        client = gnutls_cli(endpoint, "--starttls-proto", "smtp", "--priority", version->priority);
        program_await(client, "- Simple Client Mode:");
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
    }
    tls_endpoint_close(endpoint);
}

/* ---- one port for both ---- */

static int init_either(weir_channel *channel, bool is_tls, void *user_data)
{
    (void)is_tls;
    return tls_endpoint_add_recorder(user_data, weir_channel_pipeline(channel));
}

static int init_detect(struct tls_endpoint *endpoint, weir_pipeline *pipeline)
{
    return weir_tls_detect_add(pipeline,
                               WEIR_TLS_DETECT_OPTIONS(.context = endpoint->tls,
                                                       .init = init_either, .user_data = endpoint));
}

static void answer_http(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    tls_endpoint_write(ctx, "HTTP/1.0 200 OK\r\n\r\nwelcome\n");
    weir_close(ctx, NULL);
}

static void fetch(struct tls_endpoint *endpoint, const char *scheme)
{
    struct program *client = curl(endpoint, scheme, "--http1.0");

    assert_int_equal(program_wait(client), 0);
    assert_string_equal(program_output(client), "welcome\n");
    program_release(client);
}

TEST_EACH_LOOP(programs, curl_finds_http_and_https_on_one_port)
{
    struct tls_endpoint *endpoint;

    program_require(host, "curl");
    endpoint = tls_endpoint_listen_localhost(host);
    endpoint->init = init_detect;
    endpoint->on_msg = answer_http;
    fetch(endpoint, "http");
    assert_endpoint(endpoint, "inactive");
    fetch(endpoint, "https");
    assert_endpoint(endpoint, "handshake(OK) inactive");
    tls_endpoint_close(endpoint);
}

/* ---- the wrong port ---- */

TEST_EACH_LOOP(programs, curl_speaks_plain_http_to_our_tls)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "curl");
    endpoint = tls_endpoint_listen_localhost(host);
    client = curl(endpoint, "http", "--http1.0");
    assert_int_not_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
    assert_detail(endpoint, "received an HTTP request");
    tls_endpoint_close(endpoint);
}

static void answer_plainly(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    tls_endpoint_write(ctx, "HTTP/1.0 400 Bad Request\r\n\r\n");
    weir_close(ctx, NULL);
}

TEST_EACH_LOOP(programs, s_client_comes_to_a_port_without_tls)
{
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_plain(host);
    endpoint->on_msg = answer_plainly;
    client = s_client(endpoint, "-tls1_3");
    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, "wrong version number");
    program_release(client);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, our_client_comes_to_a_port_without_tls)
{
    struct tls_endpoint *server = tls_endpoint_listen_plain(host);
    struct tls_endpoint *client = tls_endpoint_create_localhost_client(host);

    server->on_msg = answer_plainly;
    tls_endpoint_connect(client, server->port);
    assert_endpoint(client, "handshake(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
    assert_detail(client, "not TLS");
    tls_endpoint_close(client);
    tls_endpoint_close(server);
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
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    (void)snprintf(ours, sizeof(ours), "%s/our.keys", pki()->folder);
    (void)snprintf(theirs, sizeof(theirs), "%s/their.keys", pki()->folder);
    (void)unlink(ours);
    (void)unlink(theirs);
    endpoint = tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                       .key_pem = pki()->server.key, .key_log_file = ours));
    for (each_version(version)) {
        struct program *client = s_client(endpoint, version->flag, "-keylogfile", theirs);

        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
    }
    assert_logs_equal(ours, theirs, SECRETS_OF_1_2 + SECRETS_OF_1_3);
    tls_endpoint_close(endpoint);
}
