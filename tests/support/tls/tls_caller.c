/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/tls_caller.h"

#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/client.h>
#include <weir/pipeline.h>
#include <weir/tls.h>

#include "support/test.h"

void tls_send_text(weir_ctx *ctx, const char *text)
{
    weir_buf *buf;

    if (weir_buf_create_from(text, strlen(text), &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static int init(void *state, const void *call)
{
    *(struct tls_call **)state = *(struct tls_call *const *)call;
    return 0;
}

static struct tls_call *call_of(weir_ctx *ctx)
{
    return *(struct tls_call **)weir_ctx_state(ctx);
}

/* ---- the call ---- */

static void remember(struct tls_call *call, const weir_tls_handshake *handshake)
{
    weir_tls_certificate *peer = weir_tls_handshake_peer(handshake);

    call->result = weir_tls_handshake_result(handshake);
    snprintf(call->detail, sizeof(call->detail), "%s", weir_tls_handshake_detail(handshake));
    snprintf(call->alpn, sizeof(call->alpn), "%s", weir_tls_handshake_alpn(handshake));
    if (peer != NULL)
        snprintf(call->subject, sizeof(call->subject), "%s", weir_tls_certificate_subject(peer));
}

/* doc:begin event */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    if (handshake != NULL) {
        remember(call_of(ctx), handshake); /* the certificate, for example */
        if (weir_tls_handshake_result(handshake) == 0)
            tls_send_text(ctx, call_of(ctx)->text);
    }
    weir_fire_event(ctx, event);
}
/* doc:end */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct tls_call *call = call_of(ctx);
    weir_buf *buf = weir_buf_of(msg);

    if (strlen(call->received) + weir_buf_readable(buf) < sizeof(call->received))
        strncat(call->received, (const char *)weir_buf_bytes(buf), weir_buf_readable(buf));
    weir_msg_release(msg);
    if (strlen(call->received) >= strlen(call->text))
        weir_close(ctx, NULL);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail; /* the event has said it */
    weir_close(ctx, NULL);
}

static const weir_handler caller = {
    .name = "caller",
    .state_size = sizeof(struct tls_call *),
    .init = init,
    .read = on_read,
    .event = on_event,
    .error = on_error,
};

/* doc:begin client */
static int add_tls(weir_pipeline *pipeline, const struct tls_call *call, const weir_place *place)
{
    const char *name = call->server_name ? call->server_name : "localhost";

    return weir_tls_add_with(pipeline, call->tls,
                             WEIR_TLS_OPTIONS(.server_name = name, .place = place));
}

static int init_channel(weir_channel *channel, void *call)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = add_tls(pipeline, call, NULL);

    return err ? err : weir_pipeline_add_last(pipeline, &caller, &call);
}
/* doc:end */

/* ---- one that begins in mid-stream ---- */

static void on_active(weir_ctx *ctx)
{
    tls_send_text(ctx, "STARTTLS\n");
    weir_fire_active(ctx);
}

/* doc:begin go-ahead */
static void on_go_ahead(weir_ctx *ctx, weir_msg *msg)
{
    weir_pipeline *pipeline = weir_channel_pipeline(weir_ctx_channel(ctx));

    weir_msg_release(msg);
    if (add_tls(pipeline, call_of(ctx), WEIR_PLACE(.first = true)) < 0)
        weir_close(ctx, NULL);
    weir_pipeline_remove(pipeline, "asker", NULL);
}
/* doc:end */

static const weir_handler asker = {
    .name = "asker",
    .state_size = sizeof(struct tls_call *),
    .init = init,
    .active = on_active,
    .read = on_go_ahead,
};

static int init_asker(weir_channel *channel, void *call)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &asker, &call);

    return err ? err : weir_pipeline_add_last(pipeline, &caller, &call);
}

void tls_call_run(weir_group *group, const weir_server *server, struct tls_call *call)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_channel *channel = NULL;
    weir_address address;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    weir_address_format(&address, text, sizeof(text));
    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = group, .address = text, .user_data = call,
                                .init = call->starts_plainly ? init_asker : init_channel),
            &channel),
        0);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
}
