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
static void exchange(struct tls_endpoint *endpoint, struct program *client)
{
    program_feed(client, megabyte, MEGABYTE);
    program_await_output(client, MEGABYTE);
    assert_memory_equal(program_output(client), megabyte, MEGABYTE);
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
}

TEST_EACH_HOST(programs, s_client_gets_a_megabyte_back)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    for (each_version(version)) {
        exchange(endpoint,
                 s_client(endpoint, version->flag, "-quiet", "-no_ign_eof", "-nocommands"));
        assert_string_equal(tls_endpoint_handshake(endpoint).version, version->name);
        assert_string_equal(tls_endpoint_handshake(endpoint).server_name, "localhost");
    }
    tls_endpoint_close(endpoint);
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
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_listen_localhost(host);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        exchange(endpoint, s_client(endpoint, "-quiet", "-no_ign_eof", "-nocommands", ways[i][0],
                                    ways[i][1], ways[i][2]));
    tls_endpoint_close(endpoint);
}

/* Its first lines are about the connection. It prints byte by byte: what it gets back is less. */
TEST_EACH_HOST(programs, gnutls_cli_sends_a_megabyte_and_gets_some_back)
{
    struct tls_endpoint *endpoint;

    program_require(host, "gnutls-cli");
    endpoint = tls_endpoint_listen_localhost(host);
    for (each_version(version)) {
        struct program *client = gnutls_cli(endpoint, "--priority", version->priority);
        size_t banner;

        program_await(client, "- Simple Client Mode:\n\n");
        banner = program_output_length(client);
        tls_endpoint_clear(endpoint);
        endpoint->on_msg = tls_endpoint_collect;
        program_feed(client, megabyte, MEGABYTE);
        tls_endpoint_await_length(endpoint, MEGABYTE);
        assert_true(tls_endpoint_has_received_only(endpoint, megabyte, MEGABYTE));
        endpoint->on_msg = tls_endpoint_echo;
        program_feed(client, megabyte, SOME);
        program_await_output(client, banner + SOME);
        assert_memory_equal(program_output(client) + banner, megabyte, SOME);
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
        assert_string_equal(tls_endpoint_handshake(endpoint).version, version->name);
    }
    tls_endpoint_close(endpoint);
}

/* An answer without a length: its end is the end of TLS. */
static void answer_http(weir_ctx *ctx, weir_msg *msg)
{
    static const char head[] = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    weir_buf *body = NULL;

    weir_msg_release(msg);
    if (!tls_endpoint_has_received(tls_endpoint_of(ctx), "\r\n\r\n") ||
        weir_buf_create_from(megabyte, MEGABYTE, &body) < 0)
        return;
    tls_endpoint_write(ctx, head);
    weir_write(ctx, weir_buf_msg(body), NULL);
    weir_close(ctx, NULL);
}

TEST_EACH_HOST(programs, curl_gets_a_page_to_its_end)
{
    struct tls_endpoint *endpoint;

    program_require(host, "curl");
    endpoint = tls_endpoint_listen_localhost(host);
    endpoint->on_msg = answer_http;
    for (each_version(version)) {
        struct program *client;

        tls_endpoint_clear(endpoint);
        client = curl(endpoint, "https", "--tls-max", version->number);
        assert_int_equal(program_wait(client), 0);
        assert_int_equal(program_output_length(client), MEGABYTE);
        assert_memory_equal(program_output(client), megabyte, MEGABYTE);
        program_release(client);
        tls_endpoint_await_text(endpoint, "GET / HTTP/1.1\r\n");
        assert_endpoint(endpoint, "handshake(OK) inactive");
        assert_string_equal(tls_endpoint_handshake(endpoint).version, version->name);
    }
    tls_endpoint_close(endpoint);
}

/* ---- our client ---- */

TEST_EACH_HOST(programs, s_server_and_our_client_exchange_a_megabyte)
{
    struct tls_endpoint *endpoint;

    program_require(host, "openssl");
    endpoint = tls_endpoint_create_localhost_client(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag);

        tls_endpoint_connect(endpoint, port);
        tls_endpoint_send(endpoint, megabyte, MEGABYTE);
        program_await_bytes(server, megabyte, MEGABYTE);
        program_feed(server, megabyte, MEGABYTE);
        tls_endpoint_await_length(endpoint, MEGABYTE);
        assert_true(tls_endpoint_has_received_only(endpoint, megabyte, MEGABYTE));
        tls_endpoint_disconnect(endpoint);
        assert_endpoint(endpoint, "handshake(OK) inactive");
        assert_string_equal(tls_endpoint_handshake(endpoint).version, version->name);
        program_await(server, "DONE\n");
        program_release(server);
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_HOST(programs, gnutls_serv_sends_a_megabyte_back)
{
    struct tls_endpoint *endpoint;

    program_require(host, "gnutls-serv");
    endpoint = tls_endpoint_create_localhost_client(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = gnutls_serv(&port, "--priority", version->priority);

        tls_endpoint_connect(endpoint, port);
        tls_endpoint_send(endpoint, megabyte, MEGABYTE);
        tls_endpoint_await_length(endpoint, MEGABYTE);
        assert_true(tls_endpoint_has_received_only(endpoint, megabyte, MEGABYTE));
        tls_endpoint_disconnect(endpoint);
        assert_endpoint(endpoint, "handshake(OK) inactive");
        assert_string_equal(tls_endpoint_handshake(endpoint).version, version->name);
        program_release(server);
    }
    tls_endpoint_close(endpoint);
}
