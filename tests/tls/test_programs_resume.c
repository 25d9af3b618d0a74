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
static void talk(struct party *party, struct program *client, const char *word,
                 const struct counterpart_version *version)
{
    char line[64];

    (void)snprintf(line, sizeof(line), "%s, %s, Cipher is", word, version->name);
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, line);
    assert_int_equal(program_end(client), 0);
    assert_party(party, "handshake(OK) ended inactive");
    assert_int_equal(party_facts(party).is_resumed, strcmp(word, "Reused") == 0);
}

static void come(struct party *party, const struct session *session,
                 const struct counterpart_version *version)
{
    talk(party, s_client(party, version->flag, "-sess_out", session->file), "New", version);
}

static void come_back(struct party *party, const struct session *session, const char *word,
                      const struct counterpart_version *version)
{
    talk(party, s_client(party, version->flag, "-sess_in", session->file), word, version);
}

TEST_EACH_LOOP(programs, s_client_takes_its_session_up_again)
{
    struct party *party;
    struct session session;
    weir_tls_context_stats stats;

    program_require(host, "openssl");
    session_init(&session);
    party = party_listen_as_localhost(host);
    for (each_version(version)) {
        come(party, &session, version);
        come_back(party, &session, "Reused", version);
    }
    weir_tls_context_read_stats(party->tls, &stats);
    assert_int_equal(stats.handshakes, 4);
    assert_int_equal(stats.resumed, 2);
    assert_int_equal(stats.failed, 0);
    party_end(party);
}

TEST_EACH_LOOP(programs, s_client_gets_no_session_where_none_is_to_be_had)
{
    struct party *party;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    party = party_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                       .key_pem = pki()->server.key, .no_resumption = true));
    for (each_version(version)) {
        come(party, &session, version);
        assert_int_not_equal(access(session.file, F_OK), 0);
    }
    party_end(party);
}

/* Our server may have become another one meanwhile: its keys are what counts. */
TEST_EACH_LOOP(programs, s_client_comes_back_after_the_certificate_was_changed)
{
    struct party *party;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    party = party_listen_as_localhost(host);
    for (each_version(version)) {
        come(party, &session, version);
        assert_int_equal(
            weir_tls_context_replace(
                party->tls, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                                     .key_pem = pki()->renewed.key)),
            0);
        come_back(party, &session, "Reused", version);
    }
    party_end(party);
}

/* A client that has no tickets brings the id of its session. */
static const struct counterpart_version *version_1_2(void)
{
    const struct counterpart_version *found = NULL;

    for (each_version(version))
        if (strcmp(version->name, "TLSv1.2") == 0)
            found = version;
    assert_non_null(found);
    return found;
}

static void come_by_id(struct party *party, const struct session *session, const char *way,
                       const char *word)
{
    const struct counterpart_version *version = version_1_2();

    talk(party, s_client(party, version->flag, "-no_ticket", way, session->file), word, version);
}

TEST_EACH_LOOP(programs, s_client_comes_back_by_the_id_of_its_session)
{
    struct party *party;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    party = party_listen_as_localhost(host);
    come_by_id(party, &session, "-sess_out", "New");
    come_by_id(party, &session, "-sess_in", "Reused");
    come_by_id(party, &session, "-sess_in", "Reused");
    assert_int_equal(
        weir_tls_context_replace(
            party->tls, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                                 .key_pem = pki()->renewed.key)),
        0);
    come_by_id(party, &session, "-sess_in", "Reused");
    assert_int_equal(
        weir_tls_context_replace(
            party->tls,
            WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                     .key_pem = pki()->renewed.key, .no_session_ids = true)),
        0);
    come_by_id(party, &session, "-sess_in", "New");
    party_end(party);
}

TEST_EACH_LOOP(programs, s_client_comes_back_with_a_ticket_of_an_older_key)
{
    struct party *party;
    struct session session;
    weir_tls_tickets *tickets;

    program_require(host, "openssl");
    session_init(&session);
    assert_int_equal(weir_tls_tickets_create(WEIR_OFF, &tickets), 0);
    party = party_listen(
        host, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                       .key_pem = pki()->server.key, .tickets = tickets));
    for (each_version(version)) {
        come(party, &session, version);
        assert_int_equal(weir_tls_tickets_rotate(tickets), 0);
        come_back(party, &session, "Reused", version);
        for (int i = 0; i < WEIR_TLS_TICKET_KEYS_MAX; i++)
            assert_int_equal(weir_tls_tickets_rotate(tickets), 0);
        come_back(party, &session, "New", version);
    }
    weir_tls_tickets_release(tickets);
    party_end(party);
}

/* Who it is was proven the first time. */
TEST_EACH_LOOP(programs, s_client_is_known_when_it_comes_back)
{
    struct party *party;
    struct session session;

    program_require(host, "openssl");
    session_init(&session);
    party = party_listen(host,
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key, .ca_pem = pki()->ca,
                                                  .verify = WEIR_TLS_VERIFY_REQUIRED));
    for (each_version(version)) {
        talk(party,
             s_client(party, version->flag, "-sess_out", session.file, "-cert",
                      pki()->client.certificate_file, "-cert_chain", pki()->client.certificate_file,
                      "-key", pki()->client.key_file),
             "New", version);
        come_back(party, &session, "Reused", version);
        assert_string_equal(party_facts(party).peer, "CN=client");
    }
    party_end(party);
}

TEST_EACH_LOOP(programs, gnutls_cli_takes_its_session_up_again)
{
    struct party *party;

    program_require(host, "gnutls-cli");
    party = party_listen_as_localhost(host);
    for (each_version(version)) {
        struct program *client =
            gnutls_cli(party, "--resume", "--waitresumption", "--priority", version->priority);

        program_await(client, "*** This is a resumed session");
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        (void)program_end(client);
        assert_party(party, "handshake(OK) ended inactive handshake(OK) ended inactive");
        assert_true(party_facts(party).is_resumed);
    }
    party_end(party);
}

/* A session that promises to take early data, of another server with our name: its ticket is
 * nothing to us, and what was sent with it is not taken for anything. */
TEST_EACH_LOOP(programs, s_client_sends_early_data_that_is_ignored)
{
    struct party *party;
    struct party elsewhere = {.port = 0};
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

    party = party_listen_as_localhost(host);
    client =
        s_client(party, "-sess_in", session.file, "-early_data", pki()->server.certificate_file);
    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, "Early data was rejected");
    assert_int_equal(program_end(client), 0);
    assert_party(party, "handshake(OK) ended inactive");
    assert_true(party_has_heard_only(party, "hello\n", strlen("hello\n")));
    party_end(party);
}

/* ---- our client ---- */

static void visit(struct party *party, unsigned port, const char *answer, bool is_resumed)
{
    party_connect(party, port);
    party_say(party, "hello\n");
    party_await_heard(party, answer);
    party_leave(party);
    assert_party(party, "handshake(OK) inactive");
    assert_int_equal(party_facts(party).is_resumed, is_resumed);
}

TEST_EACH_LOOP(programs, s_server_has_us_back)
{
    struct party *party;

    program_require(host, "openssl");
    party = party_visit_localhost(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag, "-rev");

        visit(party, port, "olleh\n", false);
        visit(party, port, "olleh\n", true);
        visit(party, port, "olleh\n", true);
        program_release(server);
    }
    party_end(party);
}

/* The session of one server is not shown to another. */
TEST_EACH_LOOP(programs, s_server_under_another_name_does_not_know_us)
{
    struct party *party;
    struct program *server;
    unsigned port;

    program_require(host, "openssl");
    party = party_visit_localhost(host);
    server = s_server(&port, "-rev");
    visit(party, port, "olleh\n", false);
    party->options.server_name = "example.test";
    visit(party, port, "olleh\n", false);
    visit(party, port, "olleh\n", true);
    program_release(server);
    party_end(party);
}

TEST_EACH_LOOP(programs, gnutls_serv_has_us_back)
{
    struct party *party;

    program_require(host, "gnutls-serv");
    party = party_visit_localhost(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = gnutls_serv(&port, "--priority", version->priority);

        visit(party, port, "hello\n", false);
        visit(party, port, "hello\n", true);
        program_release(server);
    }
    party_end(party);
}
