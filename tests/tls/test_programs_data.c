/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data with real programs: a megabyte in both directions, whatever the records look like, and how
 * a connection ends.
 */
#include <weir/buf.h>
#include <weir/pipeline.h>

#include "support/tls/peer_program.h"
#include "support/tls/pki.h"

#define MEGABYTE (1u << 20)
#define SOME 65536

static char megabyte[MEGABYTE];

/* Lines of digits: no program takes the first letter of one for a command. */
__attribute__((constructor)) static void fill(void)
{
    for (size_t i = 0; i < MEGABYTE; i++)
        megabyte[i] = i % 1024 == 1023 ? '\n' : (char)('0' + (i * 2654435761u >> 20) % 10);
}

/* ---- our server ---- */

/* s_client sends a megabyte and gets it back, and says goodbye. */
static void exchange(struct party *party, struct program *client)
{
    program_feed(client, megabyte, MEGABYTE);
    program_await_output(client, MEGABYTE);
    assert_memory_equal(program_output(client), megabyte, MEGABYTE);
    assert_int_equal(program_end(client), 0);
    assert_party(party, "handshake(OK) ended inactive");
}

TEST_EACH_HOST(programs, s_client_gets_a_megabyte_back)
{
    struct party *party;

    program_require(host, "openssl");
    party = party_listen_as_localhost(host);
    for (each_version(version)) {
        exchange(party, s_client(party, version->flag, "-quiet", "-no_ign_eof", "-nocommands"));
        assert_string_equal(party_facts(party).version, version->name);
        assert_string_equal(party_facts(party).server_name, "localhost");
    }
    party_end(party);
}

TEST_EACH_LOOP(programs, s_client_may_send_records_of_any_size)
{
    static const char *const ways[][4] = {
        {"-tls1_2", "-max_send_frag", "512", NULL},
        {"-tls1_3", "-max_send_frag", "16384", NULL},
        {"-tls1_3", "-split_send_frag", "700", NULL},
        {"-tls1_2", "-maxfraglen", "512", NULL}, /* ours have to be small as well */
        {"-tls1_3", "-maxfraglen", "1024", NULL},
        {"-tls1_3", "-record_padding", "4096", NULL},
    };
    struct party *party;

    program_require(host, "openssl");
    party = party_listen_as_localhost(host);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        exchange(party, s_client(party, "-quiet", "-no_ign_eof", "-nocommands", ways[i][0],
                                 ways[i][1], ways[i][2]));
    party_end(party);
}

/* Its first lines are about the connection. It prints byte by byte: what it gets back is less. */
TEST_EACH_HOST(programs, gnutls_cli_sends_a_megabyte_and_gets_some_back)
{
    struct party *party;

    program_require(host, "gnutls-cli");
    party = party_listen_as_localhost(host);
    for (each_version(version)) {
        struct program *client = gnutls_cli(party, "--priority", version->priority);
        size_t banner;

        program_await(client, "- Simple Client Mode:\n\n");
        banner = program_output_length(client);
        party_forget(party);
        party->manner = party_keep;
        program_feed(client, megabyte, MEGABYTE);
        party_await_length(party, MEGABYTE);
        assert_true(party_has_heard_only(party, megabyte, MEGABYTE));
        party->manner = party_echo;
        program_feed(client, megabyte, SOME);
        program_await_output(client, banner + SOME);
        assert_memory_equal(program_output(client) + banner, megabyte, SOME);
        assert_int_equal(program_end(client), 0);
        assert_party(party, "handshake(OK) ended inactive");
        assert_string_equal(party_facts(party).version, version->name);
    }
    party_end(party);
}

/* An answer without a length: its end is the end of TLS. */
static void answer_http(weir_ctx *ctx, weir_msg *msg)
{
    static const char head[] = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    weir_buf *body = NULL;

    weir_msg_release(msg);
    if (!party_has_heard(party_of(ctx), "\r\n\r\n") ||
        weir_buf_create_from(megabyte, MEGABYTE, &body) < 0)
        return;
    party_write(ctx, head);
    weir_write(ctx, weir_buf_msg(body), NULL);
    weir_close(ctx, NULL);
}

TEST_EACH_HOST(programs, curl_gets_a_page_to_its_end)
{
    struct party *party;

    program_require(host, "curl");
    party = party_listen_as_localhost(host);
    party->manner = answer_http;
    for (each_version(version)) {
        struct program *client;

        party_forget(party);
        client = curl(party, "https", "--tls-max", version->number);
        assert_int_equal(program_wait(client), 0);
        assert_int_equal(program_output_length(client), MEGABYTE);
        assert_memory_equal(program_output(client), megabyte, MEGABYTE);
        program_release(client);
        party_await_heard(party, "GET / HTTP/1.1\r\n");
        assert_party(party, "handshake(OK) inactive");
        assert_string_equal(party_facts(party).version, version->name);
    }
    party_end(party);
}

/* ---- our client ---- */

TEST_EACH_HOST(programs, s_server_and_our_client_exchange_a_megabyte)
{
    struct party *party;

    program_require(host, "openssl");
    party = party_visit_localhost(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag);

        party_connect(party, port);
        party_send(party, megabyte, MEGABYTE);
        program_await_bytes(server, megabyte, MEGABYTE);
        program_feed(server, megabyte, MEGABYTE);
        party_await_length(party, MEGABYTE);
        assert_true(party_has_heard_only(party, megabyte, MEGABYTE));
        party_leave(party);
        assert_party(party, "handshake(OK) inactive");
        assert_string_equal(party_facts(party).version, version->name);
        program_await(server, "DONE\n");
        program_release(server);
    }
    party_end(party);
}

TEST_EACH_HOST(programs, gnutls_serv_sends_a_megabyte_back)
{
    struct party *party;

    program_require(host, "gnutls-serv");
    party = party_visit_localhost(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = gnutls_serv(&port, "--priority", version->priority);

        party_connect(party, port);
        party_send(party, megabyte, MEGABYTE);
        party_await_length(party, MEGABYTE);
        assert_true(party_has_heard_only(party, megabyte, MEGABYTE));
        party_leave(party);
        assert_party(party, "handshake(OK) inactive");
        assert_string_equal(party_facts(party).version, version->name);
        program_release(server);
    }
    party_end(party);
}
