/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/24-tls.md shows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <weir/tls.h>
#include <weir/tls_context.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"
#include "support/tls/pki.h"
#include "support/tls/tls_caller.h"

/* ---- the server's handlers ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo = {.name = "echo", .read = on_read};

static void on_read_shout(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    tls_send_text(ctx, "HELLO");
}

static const weir_handler shout = {.name = "shout", .read = on_read_shout};

/* doc:begin server */
static int make_server(const char *certificate, const char *key, weir_tls_context **ret_tls)
{
    int err = weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = certificate, .key_file = key), ret_tls);

    if (err)
        fprintf(stderr, "no TLS: %s\n", weir_tls_reason()); /* "the key does not match ..." */
    return err;
}

static int init_child(weir_channel *channel, void *tls)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_tls_add(pipeline, tls);

    return err ? err : weir_pipeline_add_last(pipeline, &echo, NULL);
}
/* doc:end */

static weir_server *serve(weir_group *group, weir_init_fn *init, void *user_data)
{
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.workers = group, .address = "127.0.0.1:0",
                                              .init_child = init, .user_data = user_data),
                          &server),
        0);
    return server;
}

static void end(weir_server *server, weir_group *group)
{
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    end_group(group);
}

/* ---- a server and a client ---- */

static weir_tls_context *server_of(const struct pki_leaf *leaf)
{
    weir_tls_context *tls = NULL;

    assert_int_equal(make_server(leaf->certificate_file, leaf->key_file, &tls), 0);
    return tls;
}

/* doc:begin trust */
static int make_client(const char *authorities, weir_tls_context **ret_tls)
{
    return weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_file = authorities), ret_tls);
}
/* doc:end */

static weir_tls_context *client(void)
{
    weir_tls_context *tls = NULL;

    assert_int_equal(make_client(pki()->ca_file, &tls), 0);
    return tls;
}

TEST(guide_tls, a_server_and_a_client)
{
    weir_tls_context *tls = server_of(&pki()->server);
    struct tls_call call = {.tls = client(), .text = "hello"};
    weir_group *group = make_loops(2);
    weir_server *server = serve(group, init_child, tls);

    tls_call_run(group, server, &call);
    assert_int_equal(call.result, 0);
    assert_string_equal(call.received, "hello");
    assert_string_equal(call.subject, "CN=localhost");
    end(server, group);
    weir_tls_context_release(call.tls);
    weir_tls_context_release(tls);
}

TEST(guide_tls, a_server_that_is_somebody_else)
{
    const struct pki_leaf *leaves[] = {&pki()->wrong_host, &pki()->expired, &pki()->stranger};
    const char *words[] = {"mismatch", "expired", "unable to get local issuer certificate"};

    for (size_t i = 0; i < 3; i++) {
        weir_tls_context *tls = server_of(leaves[i]);
        struct tls_call call = {.tls = client(), .text = "hello"};
        weir_group *group = make_loops(2);
        weir_server *server = serve(group, init_child, tls);

        tls_call_run(group, server, &call);
        assert_int_equal(call.result, WEIR_EUNTRUSTED);
        assert_non_null(strstr(call.detail, words[i]));
        assert_string_equal(call.received, "");
        end(server, group);
        weir_tls_context_release(call.tls);
        weir_tls_context_release(tls);
    }
}

/* ---- both have certificates ---- */

/* doc:begin mutual */
static int make_strict_server(const struct pki_leaf *leaf, const char *authorities,
                              weir_tls_context **ret_tls)
{
    return weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = leaf->certificate_file,
                                 .key_file = leaf->key_file, .ca_file = authorities,
                                 .verify = WEIR_TLS_VERIFY_REQUIRED),
        ret_tls);
}

static void greet(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    if (handshake != NULL && weir_tls_handshake_result(handshake) == 0)
        tls_send_text(ctx, weir_tls_certificate_subject(weir_tls_handshake_peer(handshake)));
    weir_fire_event(ctx, event);
}
/* doc:end */

static const weir_handler greeter = {.name = "greeter", .event = greet};

static int init_greeter(weir_channel *channel, void *tls)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_tls_add(pipeline, tls);

    return err ? err : weir_pipeline_add_last(pipeline, &greeter, NULL);
}

TEST(guide_tls, clients_with_certificates)
{
    weir_tls_context *tls = NULL;
    struct tls_call call = {.text = "CN=client"}; /* what it says is not read */
    weir_group *group = make_loops(2);
    weir_server *server;

    assert_int_equal(make_strict_server(&pki()->server, pki()->ca_file, &tls), 0);
    assert_int_equal(
        weir_tls_client_create(
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = pki()->client.certificate_file,
                                     .key_file = pki()->client.key_file, .ca_file = pki()->ca_file),
            &call.tls),
        0);
    server = serve(group, init_greeter, tls);
    tls_call_run(group, server, &call);
    assert_string_equal(call.received, "CN=client");
    end(server, group);
    weir_tls_context_release(call.tls);
    weir_tls_context_release(tls);
}

/* ---- ALPN ---- */

/* doc:begin alpn */
static void on_handshake(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);
    weir_pipeline *pipeline = weir_channel_pipeline(weir_ctx_channel(ctx));
    bool shouts;

    if (handshake != NULL && weir_tls_handshake_result(handshake) == 0) {
        shouts = strcmp(weir_tls_handshake_alpn(handshake), "shout") == 0;
        if (weir_pipeline_add_last(pipeline, shouts ? &shout : &echo, NULL) < 0)
            weir_close(ctx, NULL);
    }
    weir_fire_event(ctx, event);
}

static const weir_handler by_protocol = {.name = "by-protocol", .event = on_handshake};
/* doc:end */

static int init_by_protocol(weir_channel *channel, void *tls)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_tls_add(pipeline, tls);

    return err ? err : weir_pipeline_add_last(pipeline, &by_protocol, NULL);
}

static void call_with(weir_group *group, weir_server *server, const char *alpn,
                      struct tls_call *call)
{
    call->text = "hello";
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_file = pki()->ca_file, .alpn = alpn),
                               &call->tls),
        0);
    tls_call_run(group, server, call);
    weir_tls_context_release(call->tls);
}

TEST(guide_tls, the_protocol_decides)
{
    struct tls_call one = {0}, two = {0}, three = {0};
    weir_group *group = make_loops(2);
    weir_tls_context *tls = NULL;
    weir_server *server;

    assert_int_equal(
        weir_tls_server_create(
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                     .key_pem = pki()->server.key, .alpn = "shout,echo"),
            &tls),
        0);
    server = serve(group, init_by_protocol, tls);
    call_with(group, server, "echo,shout", &one);
    assert_string_equal(one.received, "HELLO"); /* the server's first request */
    call_with(group, server, "echo", &two);
    assert_string_equal(two.received, "hello");
    call_with(group, server, "gossip", &three);
    assert_int_equal(three.result, WEIR_ETLSREFUSED);
    end(server, group);
    weir_tls_context_release(tls);
}

/* ---- names ---- */

/* doc:begin names */
static int add_names(weir_tls_context *tls, weir_tls_context *other)
{
    int err = weir_tls_context_add_name(tls, "other.test", other);

    return err ? err : weir_tls_context_add_name(tls, "*.wild.test", other);
}
/* doc:end */

/* doc:begin sni */
static void on_sni(weir_tls_sni_request *request, void *user_data)
{
    weir_tls_context *other = user_data; /* or query a database, and decide later */

    if (strcmp(weir_tls_sni_request_server_name(request), "other.test") == 0)
        weir_tls_sni_request_accept(request, other);
    else
        weir_tls_sni_request_reject(request, "unknown name");
}
/* doc:end */

TEST(guide_tls, one_server_with_several_names)
{
    weir_tls_context *tls = server_of(&pki()->server), *other = server_of(&pki()->other);
    struct tls_call first = {.tls = client(), .text = "1"},
                    second = {.tls = first.tls, .server_name = "other.test", .text = "2"};
    weir_group *group = make_loops(2);
    weir_server *server = serve(group, init_child, tls);

    assert_int_equal(add_names(tls, other), 0);
    tls_call_run(group, server, &first);
    assert_string_equal(first.subject, "CN=localhost");
    tls_call_run(group, server, &second);
    assert_string_equal(second.received, "2");
    assert_string_equal(second.subject, "CN=other.test");
    end(server, group);
    weir_tls_context_release(first.tls);
    weir_tls_context_release(other);
    weir_tls_context_release(tls);
}

TEST(guide_tls, somebody_who_chooses)
{
    weir_tls_context *tls = NULL, *other = server_of(&pki()->other);
    struct tls_call first = {.tls = client(), .text = "1"},
                    second = {.tls = first.tls, .server_name = "other.test", .text = "2"};
    weir_group *group = make_loops(2);
    weir_server *server;

    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key, .on_sni = on_sni,
                                                  .on_sni_data = other),
                         &tls),
                     0);
    server = serve(group, init_child, tls);
    tls_call_run(group, server, &first);
    assert_int_equal(first.result, WEIR_ETLSREFUSED);
    tls_call_run(group, server, &second);
    assert_string_equal(second.received, "2");
    end(server, group);
    weir_tls_context_release(first.tls);
    weir_tls_context_release(other);
    weir_tls_context_release(tls);
}

/* ---- certificates that change ---- */

/* doc:begin reload */
static void on_hangup(weir_tls_context *tls)
{
    if (weir_tls_context_reload(tls) < 0)
        fprintf(stderr, "reload failed, the old certificate stays: %s\n", weir_tls_reason());
}
/* doc:end */

static void copy_file(const char *from, const char *to)
{
    char bytes[8192];
    FILE *source = fopen(from, "r"), *target = fopen(to, "w");
    size_t length;

    assert_non_null(source);
    assert_non_null(target);
    assert_int_equal(fchmod(fileno(target), 0600), 0);
    length = fread(bytes, 1, sizeof(bytes), source);
    assert_int_equal(fwrite(bytes, 1, length, target), length);
    fclose(source);
    fclose(target);
}

TEST(guide_tls, certificates_that_change)
{
    struct tls_call before = {.tls = client(), .text = "1"},
                    after = {.tls = before.tls, .text = "2"};
    weir_tls_context_stats stats;
    struct pki_leaf leaf;
    char certificate[256], key[256];
    weir_group *group = make_loops(2);
    weir_tls_context *tls;
    weir_server *server;

    snprintf(certificate, sizeof(certificate), "%s/now.pem", pki()->folder);
    snprintf(key, sizeof(key), "%s/now.key", pki()->folder);
    copy_file(pki()->expired.certificate_file, certificate);
    copy_file(pki()->expired.key_file, key);
    leaf = (struct pki_leaf){.certificate_file = certificate, .key_file = key};
    tls = server_of(&leaf);
    server = serve(group, init_child, tls);
    tls_call_run(group, server, &before);
    assert_int_equal(before.result, WEIR_EUNTRUSTED);
    copy_file(pki()->renewed.certificate_file, certificate);
    copy_file(pki()->renewed.key_file, key);
    on_hangup(tls);
    tls_call_run(group, server, &after);
    assert_string_equal(after.received, "2");
    weir_tls_context_read_stats(tls, &stats);
    assert_int_equal(stats.reloads, 1);
    end(server, group);
    weir_tls_context_release(before.tls);
    weir_tls_context_release(tls);
}

/* ---- in mid-stream, and from the first byte ---- */

struct opening {
    weir_tls_context *tls;
    bool has_asked;
};

/* doc:begin start-tls */
static bool begin_tls(weir_ctx *ctx, struct opening *opening)
{
    weir_pipeline *pipeline = weir_channel_pipeline(weir_ctx_channel(ctx));

    opening->has_asked = true;
    weir_pipeline_remove(pipeline, "lines", NULL); /* its buffered bytes are passed to us */
    return weir_tls_add_with(
               pipeline, opening->tls,
               WEIR_TLS_OPTIONS(.start_tls = true, .place = WEIR_PLACE(.first = true))) == 0;
}

static void on_line(weir_ctx *ctx, weir_msg *msg)
{
    struct opening *opening = weir_ctx_state(ctx);
    bool is_request = !opening->has_asked && weir_msg_size(msg) == strlen("STARTTLS");

    weir_msg_release(msg);
    if (is_request && begin_tls(ctx, opening))
        tls_send_text(ctx, "220 go ahead\n"); /* the last message in clear */
    else
        weir_close(ctx,
                   NULL); /* also if bytes follow the request: an attacker may have injected them */
}
/* doc:end */

static void on_answerable_line(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    tls_send_text(ctx, "250 fine\n");
}

static const weir_handler session = {.name = "session", .read = on_answerable_line};

/* doc:begin started */
static void on_started(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);
    weir_pipeline *pipeline = weir_channel_pipeline(weir_ctx_channel(ctx));

    if (handshake != NULL && weir_tls_handshake_result(handshake) == 0) {
        if (weir_lines_add(pipeline, NULL) < 0 ||
            weir_pipeline_add_last(pipeline, &session, NULL) < 0)
            weir_close(ctx, NULL);
        weir_pipeline_remove(pipeline, "opening", NULL);
    }
    weir_fire_event(ctx, event);
}
/* doc:end */

static int init_opening(void *state, const void *tls)
{
    ((struct opening *)state)->tls = *(weir_tls_context *const *)tls;
    return 0;
}

static const weir_handler opening_handler = {
    .name = "opening",
    .state_size = sizeof(struct opening),
    .init = init_opening,
    .read = on_line,
    .event = on_started,
};

static int init_lines(weir_channel *channel, void *tls)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_lines_add(pipeline, NULL);

    return err ? err : weir_pipeline_add_last(pipeline, &opening_handler, &tls);
}

TEST(guide_tls, in_mid_stream)
{
    weir_tls_context *tls = server_of(&pki()->server);
    struct tls_call call = {.tls = client(), .text = "hello\n", .starts_plainly = true};
    weir_group *group = make_loops(2);
    weir_server *server = serve(group, init_lines, tls);

    tls_call_run(group, server, &call);
    assert_int_equal(call.result, 0);
    assert_string_equal(call.received, "250 fine\n");
    end(server, group);
    weir_tls_context_release(call.tls);
    weir_tls_context_release(tls);
}

TEST(guide_tls, what_stands_behind_the_request_is_not_believed)
{
    weir_tls_context *tls = server_of(&pki()->server);
    weir_group *group = make_loops(2);
    weir_server *server = serve(group, init_lines, tls);
    const char *requests[] = {"STARTTLS\nRCPT TO: me\n", "STARTTLS\nRCPT"};

    for (size_t i = 0; i < 2; i++) {
        int peer = raw_client_connect(server);

        raw_client_send(peer, requests[i]);
        raw_client_receive_end(peer);
        raw_client_close(peer);
    }
    end(server, group);
    weir_tls_context_release(tls);
}

/* doc:begin detect */
static int init_either(weir_channel *channel, bool is_tls, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), is_tls ? &shout : &echo, NULL);
}

static int init_detect(weir_channel *channel, void *tls)
{
    return weir_tls_detect_add(weir_channel_pipeline(channel),
                               WEIR_TLS_DETECT_OPTIONS(.context = tls, .init = init_either));
}
/* doc:end */

TEST(guide_tls, plain_or_not_on_one_port)
{
    weir_tls_context *tls = server_of(&pki()->server);
    struct tls_call call = {.tls = client(), .text = "hello"};
    weir_group *group = make_loops(2);
    weir_server *server = serve(group, init_detect, tls);
    int peer = raw_client_connect(server);

    raw_client_send(peer, "hello");
    raw_client_receive(peer, "hello");
    raw_client_close(peer);
    tls_call_run(group, server, &call);
    assert_string_equal(call.received, "HELLO");
    end(server, group);
    weir_tls_context_release(call.tls);
    weir_tls_context_release(tls);
}

/* ---- looking at it ---- */

/* doc:begin key-log */
static int make_logging_client(const char *authorities, weir_tls_context **ret_tls)
{
    return weir_tls_client_create(
        WEIR_TLS_CONTEXT_OPTIONS(.ca_file = authorities, .key_log_file = getenv("SSLKEYLOGFILE")),
        ret_tls);
}
/* doc:end */

TEST(guide_tls, secrets_for_wireshark)
{
    weir_tls_context *tls = server_of(&pki()->server);
    struct tls_call call = {.text = "hello"};
    weir_group *group = make_loops(2);
    weir_server *server = serve(group, init_child, tls);
    char path[256], line[256] = "";
    FILE *file;

    snprintf(path, sizeof(path), "%s/secrets", pki()->folder);
    setenv("SSLKEYLOGFILE", path, 1);
    assert_int_equal(make_logging_client(pki()->ca_file, &call.tls), 0);
    unsetenv("SSLKEYLOGFILE");
    tls_call_run(group, server, &call);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    assert_non_null(strchr(line, ' '));
    end(server, group);
    weir_tls_context_release(call.tls);
    weir_tls_context_release(tls);
}
