/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS client: prints the negotiated parameters and the server's certificate, then relays standard
 * input and output. Like openssl s_client, but it verifies.
 *     tls-client [--host NAME] [--port 8443] [--ca FILE] [--pin sha256/BASE64] [--alpn LIST]
 *                [--io auto|epoll|uring|poll|blocking]
 *
 * The server needs a certificate for NAME issued by an authority in FILE or of the system. With a
 * pin its key must match; without FILE the pin alone decides, so that a self-signed certificate can
 * be trusted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <weir/tls.h>
#include <weir/weir.h>

#include "support/settings.h"

/* What the connection is made with, and how it went. */
struct visit {
    weir_tls_context *tls;
    const char *name;
    weir_promise *handshake; /* of the connection that is made: there may be several attempts */
    int err;
};

static struct visit *visit_of(weir_ctx *ctx)
{
    return *(struct visit **)weir_ctx_state(ctx);
}

/* ---- on the channel's loop ---- */

static int keep_visit(void *state, const void *visit)
{
    *(const void **)state = visit;
    return 0;
}

/* doc:begin agreed */
static void print_agreed(const weir_tls_handshake *handshake)
{
    weir_tls_certificate *peer = weir_tls_handshake_peer(handshake);
    time_t end = (time_t)weir_tls_certificate_not_after(peer);

    fprintf(stderr, "version    %s, %s%s%s\n", weir_tls_handshake_version(handshake),
            weir_tls_handshake_cipher(handshake),
            weir_tls_handshake_alpn(handshake)[0] != '\0' ? ", " : "",
            weir_tls_handshake_alpn(handshake));
    fprintf(stderr, "subject    %s\n", weir_tls_certificate_subject(peer));
    fprintf(stderr, "issuer     %s\n", weir_tls_certificate_issuer(peer));
    fprintf(stderr, "until      %s", ctime(&end));
    fprintf(stderr, "pin        %s\n", weir_tls_certificate_pin(peer));
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    if (handshake != NULL && weir_tls_handshake_result(handshake) == 0) {
        print_agreed(handshake);
        (void)weir_promise_succeed(visit_of(ctx)->handshake, NULL);
    }
    weir_fire_event(ctx, event);
}
/* doc:end */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_buf *buf = weir_buf_of(msg);

    (void)ctx;
    (void)fwrite(weir_buf_bytes(buf), 1, weir_buf_readable(buf), stdout);
    (void)fflush(stdout);
    weir_msg_release(msg);
}

/* The first is what the others come from. */
static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct visit *visit = visit_of(ctx);

    if (visit->err == 0)
        fprintf(stderr, "tls-client: %s\n", detail != NULL ? detail : weir_error_text(err));
    visit->err = err;
    (void)weir_promise_fail(visit->handshake, err, NULL); /* unless it was over */
    weir_close(ctx, NULL);
}

static const weir_handler printer = {
    .name = "printer",
    .state_size = sizeof(struct visit *),
    .init = keep_visit,
    .event = on_event,
    .read = on_read,
    .error = on_error,
};

/* doc:begin client */
static int init(weir_channel *channel, void *user_data)
{
    struct visit *visit = user_data;
    int err = weir_tls_add_with(
        weir_channel_pipeline(channel), visit->tls,
        WEIR_TLS_OPTIONS(.server_name = visit->name, .peer_close_timeout_ns = weir_seconds(10)));

    return err ? err : weir_pipeline_add_last(weir_channel_pipeline(channel), &printer, visit);
}
/* doc:end */

/* ---- on the main thread ---- */

/* Waits until the bytes have been sent, so that no more are queued. */
static int send_bytes(weir_channel *channel, const char *bytes, size_t length)
{
    weir_promise *sent;
    weir_buf *buf;
    int err = weir_promise_create(weir_channel_executor(channel), &sent);

    if (err)
        return err;
    err = weir_buf_create_from(bytes, length, &buf);
    if (!err) {
        weir_channel_write_and_flush(channel, weir_buf_msg(buf), sent);
        err = weir_promise_sync(sent, WEIR_NEVER);
    }
    weir_promise_release(sent);
    return err;
}

/* Sends all input, then receives until the server closes. */
static int talk(weir_channel *channel)
{
    char bytes[16384];
    ssize_t length;
    int err = 0;

    while (!err && (length = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0)
        err = send_bytes(channel, bytes, (size_t)length);
    weir_channel_close(channel, NULL);
    (void)weir_channel_await_closed(channel, WEIR_NEVER);
    return err;
}

static int visit_server(struct visit *visit, const struct settings *settings, weir_group *group)
{
    weir_channel *channel = NULL;
    int err = weir_promise_create(weir_executor_immediate(), &visit->handshake);

    if (!err)
        err = weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group,
                                                           .address = settings->address,
                                                           .init = init, .user_data = visit),
                                       &channel);
    if (err)
        fprintf(stderr, "tls-client: %s: %s\n", settings->address, weir_error_text(err));
    else
        err = weir_promise_sync(visit->handshake, WEIR_NEVER); /* if it fails on_error says why */
    if (!err)
        err = talk(channel);
    weir_channel_release(channel);
    weir_promise_release(visit->handshake);
    return err;
}

int main(int argc, char **argv)
{
    const char *ca = settings_take(&argc, argv, "--ca");
    const char *pin = settings_take(&argc, argv, "--pin");
    const char *alpn = settings_take(&argc, argv, "--alpn");
    struct settings settings = settings_read(argc, argv, "localhost", 8443);
    struct visit visit = {.name = settings.host};
    bool pin_only = pin != NULL && ca == NULL;
    weir_group *group = NULL;
    int err = weir_tls_client_create(
        WEIR_TLS_CONTEXT_OPTIONS(.ca_file = ca, .pins = pin, .alpn = alpn,
                                 .verify =
                                     pin_only ? WEIR_TLS_VERIFY_PINS : WEIR_TLS_VERIFY_DEFAULT),
        &visit.tls);

    if (err)
        fprintf(stderr, "tls-client: %s\n", weir_tls_reason());
    else
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = settings.io), &group);
    if (!err)
        err = visit_server(&visit, &settings, group);
    weir_group_release(group); /* joins its thread */
    weir_tls_context_release(visit.tls);
    return err || visit.err ? EXIT_FAILURE : EXIT_SUCCESS;
}
