/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that real programs and we take up again, and the keys of tickets.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/tls_context.h>

#include "support/tls/peer_program.h"
#include "support/tls/pki.h"

/* Where s_client keeps its session. */
struct session {
    char file[256];
};

static void session_init(struct session *session)
{
    (void)snprintf(session->file, sizeof(session->file), "%s/session", pki()->folder);
    (void)unlink(session->file);
}

/* A line comes back, behind the tickets; then it goes. `word` is "New" or "Reused". */
static void pair(struct tls_endpoint *endpoint, struct program *client, const char *word,
                 const struct tls_version_names *version)
{
    char line[64];

    (void)snprintf(line, sizeof(line), "%s, %s, Cipher is", word, version->name);
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, line);
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
    assert_int_equal(tls_endpoint_handshake(endpoint).is_resumed, strcmp(word, "Reused") == 0);
}

static void come(struct tls_endpoint *endpoint, const struct session *session,
                 const struct tls_version_names *version)
{
    pair(endpoint, s_client(endpoint, version->flag, "-sess_out", session->file), "New", version);
}

static void come_back(struct tls_endpoint *endpoint, const struct session *session,
                      const char *word, const struct tls_version_names *version)
{
    pair(endpoint, s_client(endpoint, version->flag, "-sess_in", session->file), word, version);
}

TEST_EACH_LOOP(programs, s_client_takes_its_session_up_again)
{
    struct tls_endpoint *endpoint;
    struct session session;
    weir_tls_context_stats stats;

    program_require(host, "openssl");
    session_init(&session);
    endpoint = tls_endpoint_listen_localhost(host);
    for (each_version(version)) {
        come(endpoint, &session, version);
        come_back(endpoint, &session, "Reused", version);
    }
    weir_tls_context_read_stats(endpoint->tls, &stats);
    assert_int_equal(stats.handshakes, 4);
    assert_int_equal(stats.resumed, 2);
    assert_int_equal(stats.failed, 0);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_gets_no_session_where_none_is_to_be_had)
{
    struct tls_endpoint *endpoint;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    endpoint = tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                       .key_pem = pki()->server.key, .resumption = WEIR_OFF));
    for (each_version(version)) {
        come(endpoint, &session, version);
        assert_int_not_equal(access(session.file, F_OK), 0);
    }
    tls_endpoint_close(endpoint);
}

/* Our server may have become another one meanwhile: its keys are what counts. */
TEST_EACH_LOOP(programs, s_client_comes_back_after_the_certificate_was_changed)
{
    struct tls_endpoint *endpoint;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    endpoint = tls_endpoint_listen_localhost(host);
    for (each_version(version)) {
        come(endpoint, &session, version);
        assert_int_equal(weir_tls_context_replace(
                             endpoint->tls,
                             WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                                      .key_pem = pki()->renewed.key)),
                         0);
        come_back(endpoint, &session, "Reused", version);
    }
    tls_endpoint_close(endpoint);
}

/* A client that has no tickets brings the id of its session. */
static const struct tls_version_names *version_1_2(void)
{
    const struct tls_version_names *found = NULL;

    for (each_version(version))
        if (strcmp(version->name, "TLSv1.2") == 0)
            found = version;
    assert_non_null(found);
    return found;
}

static void come_by_id(struct tls_endpoint *endpoint, const struct session *session,
                       const char *way, const char *word)
{
    const struct tls_version_names *version = version_1_2();

    pair(endpoint, s_client(endpoint, version->flag, "-no_ticket", way, session->file), word,
         version);
}

TEST_EACH_LOOP(programs, s_client_comes_back_by_the_id_of_its_session)
{
    struct tls_endpoint *endpoint;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    endpoint = tls_endpoint_listen_localhost(host);
    come_by_id(endpoint, &session, "-sess_out", "New");
    come_by_id(endpoint, &session, "-sess_in", "Reused");
    come_by_id(endpoint, &session, "-sess_in", "Reused");
    assert_int_equal(
        weir_tls_context_replace(
            endpoint->tls, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                                    .key_pem = pki()->renewed.key)),
        0);
    come_by_id(endpoint, &session, "-sess_in", "Reused");
    assert_int_equal(
        weir_tls_context_replace(
            endpoint->tls,
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                     .key_pem = pki()->renewed.key, .session_ids = WEIR_OFF)),
        0);
    come_by_id(endpoint, &session, "-sess_in", "New");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_comes_back_with_a_ticket_of_an_older_key)
{
    struct tls_endpoint *endpoint;
    struct session session;
    weir_tls_tickets *tickets;

    program_require(host, "openssl");
    session_init(&session);
    assert_int_equal(weir_tls_tickets_create(WEIR_OFF, &tickets), 0);
    endpoint = tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                       .key_pem = pki()->server.key, .tickets = tickets));
    for (each_version(version)) {
        come(endpoint, &session, version);
        assert_int_equal(weir_tls_tickets_rotate(tickets), 0);
        come_back(endpoint, &session, "Reused", version);
        for (int i = 0; i < WEIR_TLS_TICKET_KEYS_MAX; i++)
            assert_int_equal(weir_tls_tickets_rotate(tickets), 0);
        come_back(endpoint, &session, "New", version);
    }
    weir_tls_tickets_release(tickets);
    tls_endpoint_close(endpoint);
}

/* Who it is was proven the first time. */
TEST_EACH_LOOP(programs, s_client_is_known_when_it_comes_back)
{
    struct tls_endpoint *endpoint;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    endpoint = tls_endpoint_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                       .key_pem = pki()->server.key, .ca_pem = pki()->ca,
                                       .verify = WEIR_TLS_VERIFY_REQUIRED));
    for (each_version(version)) {
        pair(endpoint,
             s_client(endpoint, version->flag, "-sess_out", session.file, "-cert",
                      pki()->client.certificate_file, "-cert_chain", pki()->client.certificate_file,
                      "-key", pki()->client.key_file),
             "New", version);
        come_back(endpoint, &session, "Reused", version);
        assert_string_equal(tls_endpoint_handshake(endpoint).peer, "CN=client");
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, gnutls_cli_takes_its_session_up_again)
{
    struct tls_endpoint *endpoint;

    program_require(host, "gnutls-cli");
    endpoint = tls_endpoint_listen_localhost(host);
    for (each_version(version)) {
        struct program *client =
            gnutls_cli(endpoint, "--resume", "--waitresumption", "--priority", version->priority);

        program_await(client, "*** This is a resumed session");
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        (void)program_end(client);
        assert_endpoint(endpoint, "handshake(OK) ended inactive handshake(OK) ended inactive");
        assert_true(tls_endpoint_handshake(endpoint).is_resumed);
    }
    tls_endpoint_close(endpoint);
}

/* A session that promises to take early data, of another server with our name: its ticket is
 * nothing to us, and what was sent with it is not taken for anything. */
TEST_EACH_LOOP(programs, s_client_sends_early_data_that_is_ignored)
{
    struct tls_endpoint *endpoint;
    struct tls_endpoint elsewhere = {.port = 0};
    struct program *server, *client;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    server = s_server(&elsewhere.port, "-tls1_3", "-early_data");
    client = s_client(&elsewhere, "-sess_out", session.file);
    program_say(client, "hello\n");
    program_await(server, "hello\n");
    program_say(server, "welcome\n");
    program_await(client, "welcome\n"); /* it has the ticket, which was sent before */
    assert_int_equal(program_end(client), 0);
    program_release(server);

    endpoint = tls_endpoint_listen_localhost(host);
    client =
        s_client(endpoint, "-sess_in", session.file, "-early_data", pki()->server.certificate_file);
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, "Early data was rejected");
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
    assert_true(tls_endpoint_has_received_only(endpoint, "hello\n", strlen("hello\n")));
    tls_endpoint_close(endpoint);
}

/* ---- our client ---- */

static void visit(struct tls_endpoint *endpoint, unsigned port, const char *answer, bool is_resumed)
{
    tls_endpoint_connect(endpoint, port);
    tls_endpoint_send_text(endpoint, "hello\n");
    tls_endpoint_await_text(endpoint, answer);
    tls_endpoint_disconnect(endpoint);
    assert_endpoint(endpoint, "handshake(OK) inactive");
    assert_int_equal(tls_endpoint_handshake(endpoint).is_resumed, is_resumed);
}

TEST_EACH_LOOP(programs, s_server_has_us_back)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag, "-rev");

        visit(endpoint, port, "olleh\n", false);
        visit(endpoint, port, "olleh\n", true);
        visit(endpoint, port, "olleh\n", true);
        program_release(server);
    }
    tls_endpoint_close(endpoint);
}

/* The session of one server is not shown to another. */
TEST_EACH_LOOP(programs, s_server_under_another_name_does_not_know_us)
{
    struct tls_endpoint *endpoint;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    server = s_server(&port, "-rev");
    visit(endpoint, port, "olleh\n", false);
    endpoint->options.server_name = "example.test";
    visit(endpoint, port, "olleh\n", false);
    visit(endpoint, port, "olleh\n", true);
    program_release(server);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, gnutls_serv_has_us_back)
{
    struct tls_endpoint *endpoint;

    program_require(host, "gnutls-serv");
    endpoint = tls_endpoint_create_localhost_client(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = gnutls_serv(&port, "--priority", version->priority);

        visit(endpoint, port, "hello\n", false);
        visit(endpoint, port, "hello\n", true);
        program_release(server);
    }
    tls_endpoint_close(endpoint);
}
