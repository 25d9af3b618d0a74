/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with several names, and what else a real program may ask of one: which certificate it
 * gets, a stapled answer.
 */
#include <stdio.h>

#include <openssl/ocsp.h>

#include <weir/tls_context.h>

#include "support/tls/peer_program.h"
#include "support/tls/pki.h"
#include "support/tls/staple.h"

#define AS(leaf) .certificate_pem = (leaf).certificate, .key_pem = (leaf).key

static weir_tls_context *make_other(void)
{
    weir_tls_context *other;

    assert_int_equal(
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(AS(pki()->other), .alpn = "other"), &other),
        0);
    return other;
}

/* s_client wants this name, and finds it in the certificate. */
static void find(struct party *party, const char *version, const char *name, const char *alpn)
{
    struct program *client = s_client(party, version, "-servername", name, "-verify_hostname", name,
                                      "-alpn", "usual,other");

    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, "Verify return code: 0 (ok)");
    assert_int_equal(program_end(client), 0);
    assert_party(party, "handshake(OK) ended inactive");
    assert_string_equal(party_facts(party).server_name, name);
    assert_string_equal(party_facts(party).alpn, alpn);
}

TEST_EACH_LOOP(programs, s_client_gets_the_certificate_of_the_name_it_asks_for)
{
    struct party *party;
    weir_tls_context *other;

    program_require(host, "openssl");
    other = make_other();
    party = party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS(pki()->server), .alpn = "usual"));
    assert_int_equal(weir_tls_context_add_name(party->tls, "other.test", other), 0);
    assert_int_equal(weir_tls_context_add_name(party->tls, "*.wild.test", other), 0);
    weir_tls_context_release(other);
    for (each_version(version)) {
        find(party, version->flag, "localhost", "usual");
        find(party, version->flag, "other.test", "other");
        find(party, version->flag, "any.wild.test", "other");
        find(party, version->flag, "example.test", "usual");
    }
    party_end(party);
}

/* ---- a chooser ---- */

struct reception {
    struct call_counter asked;
    weir_tls_choice *choice;
    char name[64];
    char alpn[64];
};

/* The test decides, on its own thread, when it likes to. */
static void choose_later(weir_tls_choice *choice, void *user_data)
{
    struct reception *reception = user_data;

    (void)snprintf(reception->name, sizeof(reception->name), "%s",
                   weir_tls_choice_server_name(choice));
    (void)snprintf(reception->alpn, sizeof(reception->alpn), "%s", weir_tls_choice_alpn(choice));
    reception->choice = choice;
    call_counter_add(&reception->asked);
}

static struct party *listen_and_choose(struct host *host, struct reception *reception)
{
    return party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS(pki()->server), .choose = choose_later,
                                                       .choose_data = reception));
}

TEST_EACH_LOOP(programs, s_client_waits_until_somebody_has_chosen)
{
    struct reception reception = {.choice = NULL};
    weir_tls_context *other;
    struct party *party;
    uint32_t asked = 0;

    program_require(host, "openssl");
    other = make_other();
    party = listen_and_choose(host, &reception);
    for (each_version(version)) {
        struct program *client = s_client(party, version->flag, "-servername", "other.test",
                                          "-verify_hostname", "other.test", "-alpn", "one,other");

        assert_true(call_counter_await(&reception.asked, ++asked));
        assert_string_equal(reception.name, "other.test");
        assert_string_equal(reception.alpn, "one,other");
        weir_tls_choice_accept(reception.choice, other);
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        program_await(client, "ALPN protocol: other");
        assert_int_equal(program_end(client), 0);
        assert_party(party, "handshake(OK) ended inactive");
    }
    weir_tls_context_release(other);
    party_end(party);
}

TEST_EACH_LOOP(programs, s_client_is_refused_by_who_chooses)
{
    struct reception reception = {.choice = NULL};
    struct party *party;
    struct program *client;

    program_require(host, "openssl");
    party = listen_and_choose(host, &reception);
    client = s_client(party, "-servername", "nobody.test");
    assert_true(call_counter_await(&reception.asked, 1));
    weir_tls_choice_refuse(reception.choice, "nobody of this name lives here");
    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, "SSL alert number 112");
    program_release(client);
    assert_party(party, "handshake(WEIR_ETLS) error(WEIR_ETLS) inactive");
    assert_words(party, "nobody of this name lives here");
    party_end(party);
}

TEST_EACH_LOOP(programs, s_client_that_has_gone_may_still_be_decided_upon)
{
    struct reception reception = {.choice = NULL};
    struct party *party;
    struct program *client;

    program_require(host, "openssl");
    party = listen_and_choose(host, &reception);
    client = s_client(party, "-tls1_3");
    assert_true(call_counter_await(&reception.asked, 1));
    program_release(client);
    party_await(party, "inactive");
    weir_tls_choice_accept(reception.choice, NULL);
    party_end(party);
}

/* ---- stapling ---- */

static void write_response(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/ocsp", pki()->folder);
    (void)staple_write(path, OCSP_RESPONSE_STATUS_SUCCESSFUL, NULL);
}

TEST_EACH_LOOP(programs, s_client_gets_a_stapled_response_if_it_asks)
{
    struct party *party;
    char path[256];

    program_require(host, "openssl");
    write_response(path, sizeof(path));
    party = party_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS(pki()->server), .ocsp_file = path));
    for (each_version(version)) {
        struct program *client = s_client(party, version->flag, "-status");

        program_await(client, "OCSP Response Status: successful (0x0)");
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_party(party, "handshake(OK) ended inactive");
    }
    party_end(party);
}

TEST_EACH_LOOP(programs, s_server_staples_a_response_for_us)
{
    struct party *party;
    char path[256];

    program_require(host, "openssl");
    write_response(path, sizeof(path));
    party = party_visit_localhost(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag, "-rev", "-status_file", path);

        party_connect(party, port);
        party_say(party, "hello\n");
        party_await_heard(party, "olleh\n");
        party_leave(party);
        program_release(server);
        assert_party(party, "handshake(OK) inactive");
        assert_true(party_facts(party).is_stapled);
    }
    party_end(party);
}
