/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of https, with a scripted server behind TLS and an authority of the test.
 */
#include <weir/http_client.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/tls.h>

#include "support/executor/log_capture.h"
#include "support/protocol/http/client_fixture.h"
#include "support/protocol/http/scripted_server.h"
#include "support/test.h"
#include "support/tls/pki.h"

#define REPLIES(...) ((const struct scripted_reply[]){__VA_ARGS__, {0}})
#define OK SCRIPTED_OK

static weir_tls_context *server_tls;
static char negotiated[64]; /* by ALPN */

static void note_alpn(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    if (handshake != NULL)
        (void)snprintf(negotiated, sizeof(negotiated), "%s", weir_tls_handshake_alpn(handshake));
    weir_fire_event(ctx, event);
}

static const weir_handler noting = {.name = "noting", .event = note_alpn};

static int init_tls(weir_channel *channel, void *user_data)
{
    int err = weir_tls_add(weir_channel_pipeline(channel), server_tls);

    (void)user_data;
    return err < 0 ? err : weir_pipeline_add_last(weir_channel_pipeline(channel), &noting, NULL);
}

struct secure {
    struct scripted_server server;
    weir_tls_context *trust;
    weir_http_client *client;
    char url[256];
};

static void open_secure(struct secure *secure, struct host *host, const struct pki_leaf *leaf,
                        const struct scripted_reply *replies)
{
    assert_int_equal(
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = leaf->certificate_file,
                                                        .key_file = leaf->key_file),
                               &server_tls),
        0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_file = pki()->ca_file), &secure->trust),
        0);
    scripted_server_open_with(&secure->server, host, replies, init_tls);
    secure->client = client_open(
        host, WEIR_HTTP_CLIENT_OPTIONS(.tls = secure->trust, .add_tls = weir_tls_add_client));
    (void)scripted_server_url(&secure->server, "https", "/a", secure->url);
}

static void close_secure(struct secure *secure)
{
    client_close(secure->client);
    scripted_server_close(&secure->server);
    weir_tls_context_release(secure->trust);
    weir_tls_context_release(server_tls);
}

TEST_EACH_LOOP(tls_http_client, fetches_and_reuses_connections)
{
    struct secure secure;

    open_secure(&secure, host, &pki()->server, REPLIES({.text = OK(5, "hello")}));
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(client_get(secure.client, secure.url).content, "hello");
    assert_int_equal(secure.server.connections, 1);
    close_secure(&secure);
}

TEST_EACH_LOOP(tls_http_client, sends_and_receives_much)
{
    enum { LENGTH = 300000 };
    static char reply[LENGTH + 256];
    struct secure secure;
    struct fetched fetched;
    weir_buf *content = NULL;
    int head =
        snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LENGTH);

    memset(reply + head, 'x', LENGTH);
    assert_int_equal(weir_buf_create(LENGTH, 0, &content), 0);
    assert_int_equal(weir_buf_write_fill(content, 'y', LENGTH), 0);
    open_secure(&secure, host, &pki()->server, REPLIES({.text = reply}));
    fetched =
        client_fetch(secure.client, WEIR_HTTP_FETCH_OPTIONS(.method = "PUT", .url = secure.url,
                                                            .content = weir_buf_msg(content)));
    assert_int_equal(fetched.err, 0);
    assert_int_equal(fetched.length, LENGTH);
    assert_true(secure.server.last_length > LENGTH);
    weir_buf_release(content);
    close_secure(&secure);
}

static void refuse(struct host *host, const struct pki_leaf *leaf)
{
    struct secure secure;
    struct fetched fetched;

    open_secure(&secure, host, leaf, REPLIES({.text = OK(5, "hello")}));
    fetched = client_get(secure.client, secure.url);
    assert_int_equal(fetched.err, WEIR_EUNTRUSTED);
    if (strstr(fetched.detail, "/a: TLS: ") == NULL)
        fail_msg("no phase in \"%s\"", fetched.detail);
    assert_int_equal(secure.server.requests, 0);
    close_secure(&secure);
}

TEST_EACH_LOOP(tls_http_client, trusts_no_stranger)
{
    refuse(host, &pki()->stranger);
}

TEST_EACH_LOOP(tls_http_client, trusts_no_server_of_another_name)
{
    refuse(host, &pki()->wrong_host);
}

TEST_EACH_LOOP(tls_http_client, does_not_take_a_cut_off_for_an_end)
{
    struct secure secure;
    struct fetched fetched;

    open_secure(&secure, host, &pki()->server,
                REPLIES({.text = "HTTP/1.1 200 OK\r\n\r\nuntil the en", .action = SCRIPTED_RESET}));
    fetched = client_get(secure.client, secure.url);
    assert_true(fetched.err < 0);
    close_secure(&secure);
}

/* ---- ALPN ---- */

TEST_EACH_LOOP(tls_http_client, offers_http_1)
{
    struct secure secure;
    int err;

    open_secure(&secure, host, &pki()->server, REPLIES({.text = OK(5, "hello")}));
    err = weir_tls_context_replace(
        server_tls,
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = pki()->server.certificate_file,
                                 .key_file = pki()->server.key_file, .alpn = "h2,http/1.1"));
    assert_int_equal(err, 0);
    assert_string_equal(client_get(secure.client, secure.url).content, "hello");
    assert_string_equal(negotiated, "http/1.1");
    close_secure(&secure);
}

TEST(tls_http_client, refuses_a_context_with_http_2)
{
    weir_http_client *none = NULL;
    weir_tls_context *tls = NULL;

    assert_int_equal(weir_tls_client_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.ca_file = pki()->ca_file, .alpn = "h2"), &tls),
                     0);
    log_capture_start();
    assert_int_equal(
        weir_http_client_create(
            WEIR_HTTP_CLIENT_OPTIONS(.tls = tls, .add_tls = weir_tls_add_client), &none),
        -EPROTONOSUPPORT);
    assert_log_contains("alpn \"h2\": expected http/1.1");
    assert_null(none);
    weir_tls_context_release(tls);
}
