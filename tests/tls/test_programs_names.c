/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with several names, and what else a real program may ask of one: which certificate it
 * gets, a stapled answer.
 */
#include <stdio.h>

#include <openssl/ocsp.h>

#include <weir/tls_context.h>

#include "support/tls/ocsp_response.h"
#include "support/tls/peer_program.h"
#include "support/tls/pki.h"

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
static void find(struct tls_endpoint *endpoint, const char *version, const char *name,
                 const char *alpn)
{
    struct program *client = s_client(endpoint, version, "-servername", name, "-verify_hostname",
                                      name, "-alpn", "usual,other");

    program_say(client, "hello\n");
    program_await(client, "hello\n");
    program_await(client, "Verify return code: 0 (ok)");
    assert_int_equal(program_end(client), 0);
    assert_endpoint(endpoint, "handshake(OK) ended inactive");
    assert_string_equal(tls_endpoint_handshake(endpoint).server_name, name);
    assert_string_equal(tls_endpoint_handshake(endpoint).alpn, alpn);
}

TEST_EACH_LOOP(programs, s_client_gets_the_certificate_of_the_name_it_asks_for)
{
    struct tls_endpoint *endpoint;
    weir_tls_context *other;

    program_require(host, "openssl");
    other = make_other();
    endpoint =
        tls_endpoint_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS(pki()->server), .alpn = "usual"));
    assert_int_equal(weir_tls_context_add_name(endpoint->tls, "other.test", other), 0);
    assert_int_equal(weir_tls_context_add_name(endpoint->tls, "*.wild.test", other), 0);
    weir_tls_context_release(other);
    for (each_version(version)) {
        find(endpoint, version->flag, "localhost", "usual");
        find(endpoint, version->flag, "other.test", "other");
        find(endpoint, version->flag, "any.wild.test", "other");
        find(endpoint, version->flag, "example.test", "usual");
    }
    tls_endpoint_close(endpoint);
}

/* ---- a on_sni ---- */

struct reception {
    struct call_counter asked;
    weir_tls_sni_request *request;
    char name[64];
    char alpn[64];
};

/* The test decides, on its own thread, when it likes to. */
static void choose_later(weir_tls_sni_request *request, void *user_data)
{
    struct reception *reception = user_data;

    (void)snprintf(reception->name, sizeof(reception->name), "%s",
                   weir_tls_sni_request_server_name(request));
    (void)snprintf(reception->alpn, sizeof(reception->alpn), "%s",
                   weir_tls_sni_request_alpn(request));
    reception->request = request;
    call_counter_add(&reception->asked);
}

static struct tls_endpoint *listen_and_choose(struct host *host, struct reception *reception)
{
    return tls_endpoint_listen(host,
                               WEIR_TLS_CONTEXT_OPTIONS(AS(pki()->server), .on_sni = choose_later,
                                                        .on_sni_data = reception));
}

TEST_EACH_LOOP(programs, s_client_waits_until_somebody_has_chosen)
{
    struct reception reception = {.request = NULL};
    weir_tls_context *other;
    struct tls_endpoint *endpoint;
    uint32_t asked = 0;

    program_require(host, "openssl");
    other = make_other();
    endpoint = listen_and_choose(host, &reception);
    for (each_version(version)) {
        struct program *client = s_client(endpoint, version->flag, "-servername", "other.test",
                                          "-verify_hostname", "other.test", "-alpn", "one,other");

        assert_true(call_counter_await(&reception.asked, ++asked));
        assert_string_equal(reception.name, "other.test");
        assert_string_equal(reception.alpn, "one,other");
        weir_tls_sni_request_accept(reception.request, other);
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        program_await(client, "ALPN protocol: other");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
    }
    weir_tls_context_release(other);
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_is_rejected_by_who_chooses)
{
    struct reception reception = {.request = NULL};
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    endpoint = listen_and_choose(host, &reception);
    client = s_client(endpoint, "-servername", "nobody.test");
    assert_true(call_counter_await(&reception.asked, 1));
    weir_tls_sni_request_reject(reception.request, "nobody of this name lives here");
    assert_int_not_equal(program_wait(client), 0);
    assert_printed(client, "SSL alert number 112");
    program_release(client);
    assert_endpoint(endpoint, "handshake(WEIR_ETLS) error(WEIR_ETLS) inactive");
    assert_detail(endpoint, "nobody of this name lives here");
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_client_that_has_gone_may_still_be_decided_upon)
{
    struct reception reception = {.request = NULL};
    struct tls_endpoint *endpoint;
    struct program *client;

    program_require(host, "openssl");
    endpoint = listen_and_choose(host, &reception);
    client = s_client(endpoint, "-tls1_3");
    assert_true(call_counter_await(&reception.asked, 1));
    program_release(client);
    tls_endpoint_await(endpoint, "inactive");
    weir_tls_sni_request_accept(reception.request, NULL);
    tls_endpoint_close(endpoint);
}

/* ---- stapling ---- */

static void write_response(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/ocsp", pki()->folder);
    (void)ocsp_response_write(path, OCSP_RESPONSE_STATUS_SUCCESSFUL, NULL);
}

TEST_EACH_LOOP(programs, s_client_gets_a_stapled_response_if_it_asks)
{
    struct tls_endpoint *endpoint;
    char path[256];

    program_require(host, "openssl");
    write_response(path, sizeof(path));
    endpoint =
        tls_endpoint_listen(host, WEIR_TLS_CONTEXT_OPTIONS(AS(pki()->server), .ocsp_file = path));
    for (each_version(version)) {
        struct program *client = s_client(endpoint, version->flag, "-status");

        program_await(client, "OCSP Response Status: successful (0x0)");
        program_say(client, "hello\n");
        program_await(client, "hello\n");
        assert_int_equal(program_end(client), 0);
        assert_endpoint(endpoint, "handshake(OK) ended inactive");
    }
    tls_endpoint_close(endpoint);
}

TEST_EACH_LOOP(programs, s_server_staples_a_response_for_us)
{
    struct tls_endpoint *endpoint;
    char path[256];

    program_require(host, "openssl");
    write_response(path, sizeof(path));
    endpoint = tls_endpoint_create_localhost_client(host);
    for (each_version(version)) {
        unsigned port;
        struct program *server = s_server(&port, version->flag, "-rev", "-status_file", path);

        tls_endpoint_connect(endpoint, port);
        tls_endpoint_send_text(endpoint, "hello\n");
        tls_endpoint_await_text(endpoint, "olleh\n");
        tls_endpoint_disconnect(endpoint);
        program_release(server);
        assert_endpoint(endpoint, "handshake(OK) inactive");
        assert_true(tls_endpoint_handshake(endpoint).is_stapled);
    }
    tls_endpoint_close(endpoint);
}
