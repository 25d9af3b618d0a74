/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/tls_pair.h"

#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/handler.h>

#include "base/memory.h"
#include "support/tls/pki.h"
#include "tls/tls.h"

/* ---- the last handler ---- */

struct witness {
    struct tls_side *side;
};

struct tls_side *tls_side_of(weir_ctx *ctx)
{
    return ((struct witness *)weir_ctx_state(ctx))->side;
}

static int init(void *state, const void *options)
{
    *(struct witness *)state = *(const struct witness *)options;
    return 0;
}

static void keep_detail(struct tls_side *side, const char *detail)
{
    (void)snprintf(side->detail, sizeof(side->detail), "%s", detail != NULL ? detail : "");
}

static void on_handshake(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    struct tls_side *side = tls_side_of(ctx);
    int err = weir_tls_handshake_result(handshake);

    event_log_write(&side->events, "handshake(%s)", err == 0 ? "ok" : weir_error_name(err));
    if (err < 0)
        keep_detail(side, weir_tls_handshake_detail(handshake));
    if (side->on_handshake != NULL)
        side->on_handshake(ctx, handshake);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct tls_side *side = tls_side_of(ctx);
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    if (side->on_event != NULL)
        side->on_event(ctx, event);
    if (handshake != NULL)
        on_handshake(ctx, handshake);
    else if (event == weir_event_tls_closed())
        event_log_write(&side->events, "ended");
    else if (event == weir_event_input_closed())
        event_log_write(&side->events, "input-closed");
    if (event == weir_event_tls_closed() && side->on_ended != NULL)
        side->on_ended(ctx);
    weir_msg_release(event);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct tls_side *side = tls_side_of(ctx);
    weir_buf *buf = weir_buf_of(msg);

    side->received += weir_buf_readable(buf);
    if (side->on_read != NULL) {
        side->on_read(ctx, msg);
        return;
    }
    if (weir_buf_readable(buf) > 100)
        event_log_write(&side->events, "read(%zu)", weir_buf_readable(buf));
    else if (!side->is_long)
        event_log_write(&side->events, "read(%.*s)", (int)weir_buf_readable(buf),
                        (const char *)weir_buf_bytes(buf));
    weir_msg_release(msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    if (tls_side_of(ctx)->on_read_complete != NULL)
        tls_side_of(ctx)->on_read_complete(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct tls_side *side = tls_side_of(ctx);

    event_log_write(&side->events, "error(%s)", weir_error_name(err));
    keep_detail(side, detail != NULL ? detail : weir_error_text(err));
    if (side->on_error != NULL)
        side->on_error(ctx, err);
}

static void on_inactive(weir_ctx *ctx)
{
    event_log_write(&tls_side_of(ctx)->events, "inactive");
}

static void on_writability(weir_ctx *ctx)
{
    struct tls_side *side = tls_side_of(ctx);

    if (side->on_writability != NULL)
        side->on_writability(ctx);
    else
        event_log_write(&side->events, "writable(%s)", weir_ctx_is_writable(ctx) ? "yes" : "no");
}

static const weir_handler witness = {
    .name = "witness",
    .state_size = sizeof(struct witness),
    .init = init,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
    .writability = on_writability,
    .error = on_error,
};

/* ---- both ---- */

void tls_side_prepare(struct tls_side *side, weir_tls_context *context,
                      const weir_tls_options *options, const weir_embedded_options *channel)
{
    weir_embedded_options own;

    if (channel != NULL)
        own = *channel;
    else
        own = *WEIR_EMBEDDED_OPTIONS();
    own.register_later = true;
    event_log_open(&side->events);
    assert_int_equal(weir_embedded_create(&own, &side->embedded), 0);
    side->channel = weir_embedded_channel(side->embedded);
    side->pipeline = weir_embedded_pipeline(side->embedded);
    assert_int_equal(weir_tls_add_with(side->pipeline, context, options), 0);
    assert_int_equal(
        weir_pipeline_add_last(side->pipeline, &witness, &(const struct witness){.side = side}), 0);
}

void tls_side_close(struct tls_side *side)
{
    weir_embedded_release(side->embedded);
    event_log_close(&side->events);
}

void tls_pair_prepare(struct tls_pair *pair, const struct tls_pair_options *options)
{
    static const struct tls_pair_options none;
    const struct pki *pki_ = pki();

    if (options == NULL)
        options = &none;
    memset(pair, 0, sizeof(*pair));
    assert_int_equal(weir_tls_server_create(
                         options->server_context != NULL
                             ? options->server_context
                             : WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki_->server.certificate,
                                                        .key_pem = pki_->server.key),
                         &pair->server_context),
                     0);
    assert_int_equal(weir_tls_client_create(options->client_context != NULL
                                                ? options->client_context
                                                : WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki_->ca),
                                            &pair->client_context),
                     0);
    tls_side_prepare(&pair->server, pair->server_context, options->server, options->server_channel);
    tls_side_prepare(&pair->client, pair->client_context,
                     options->client != NULL ? options->client
                                             : WEIR_TLS_OPTIONS(.server_name = "localhost"),
                     options->client_channel);
}

void tls_pair_begin(struct tls_pair *pair)
{
    assert_int_equal(weir_embedded_register(pair->server.embedded), 0);
    assert_int_equal(weir_embedded_register(pair->client.embedded), 0);
}

void tls_pair_open(struct tls_pair *pair, const struct tls_pair_options *options)
{
    tls_pair_prepare(pair, options);
    tls_pair_begin(pair);
    tls_pair_run(pair);
}

void tls_pair_close(struct tls_pair *pair)
{
    tls_side_close(&pair->client);
    tls_side_close(&pair->server);
    weir_tls_context_release(pair->client_context);
    weir_tls_context_release(pair->server_context);
}

/* ---- playing ---- */

static weir_msg *piece_of(weir_buf *buf, size_t length)
{
    weir_buf *copy = NULL;

    if (length == 0 || length > weir_buf_readable(buf))
        length = weir_buf_readable(buf);
    assert_int_equal(weir_buf_create_from(weir_buf_bytes(buf), length, &copy), 0);
    (void)weir_buf_skip(buf, length);
    return weir_buf_msg(copy);
}

/* All that was sent, or as much as was at once. */
static weir_msg *take_sent(const struct tls_pair *pair, struct tls_side *from)
{
    weir_msg *msg = weir_embedded_read_outbound(from->embedded), *next;
    weir_buf *all = NULL;

    if (msg == NULL || !pair->is_joined)
        return msg;
    assert_int_equal(weir_buf_create(0, 0, &all), 0);
    for (; msg != NULL; msg = next) {
        next = weir_embedded_read_outbound(from->embedded);
        assert_int_equal(weir_buf_write_bytes(all, weir_buf_bytes(weir_buf_of(msg)),
                                              weir_buf_readable(weir_buf_of(msg))),
                         0);
        weir_msg_release(msg);
    }
    return weir_buf_msg(all);
}

bool tls_pair_transfer(struct tls_pair *pair, struct tls_side *from, struct tls_side *to)
{
    weir_msg *msg = take_sent(pair, from);
    weir_buf *buf;

    if (msg == NULL)
        return false;
    buf = weir_buf_of(msg);
    assert_non_null(buf);
    from->sent += weir_buf_readable(buf);
    if (pair->piece == 0) {
        (void)weir_embedded_write_inbound(to->embedded, msg);
        return true;
    }
    while (weir_buf_readable(buf) > 0)
        (void)weir_embedded_write_inbound(to->embedded, piece_of(buf, pair->piece));
    weir_msg_release(msg);
    return true;
}

static void bring_end(struct tls_side *from, struct tls_side *to)
{
    if (!weir_channel_is_open(from->channel) && weir_channel_is_open(to->channel))
        weir_embedded_end_input(to->embedded);
}

void tls_pair_run(struct tls_pair *pair)
{
    bool goes_on;

    do {
        weir_embedded_run(pair->client.embedded);
        weir_embedded_run(pair->server.embedded);
        goes_on = tls_pair_transfer(pair, &pair->client, &pair->server);
        goes_on |= tls_pair_transfer(pair, &pair->server, &pair->client);
        if (goes_on)
            continue;
        bring_end(&pair->client, &pair->server);
        bring_end(&pair->server, &pair->client);
    } while (goes_on);
}

void tls_pair_advance(struct tls_pair *pair, int64_t duration_ns)
{
    weir_embedded_advance(pair->client.embedded, duration_ns);
    weir_embedded_advance(pair->server.embedded, duration_ns);
}

/* ---- writing ---- */

void tls_side_send_text(struct tls_side *side, const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    weir_channel_write_and_flush(side->channel, weir_buf_msg(buf), NULL);
    weir_embedded_run(side->embedded);
}

weir_msg *tls_pair_bytes(size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(length, 0, &buf), 0);
    for (size_t i = 0; i < length; i++)
        weir_buf_space(buf)[i] = (uint8_t)(i * 7 + i / 251);
    (void)weir_buf_advance(buf, length);
    return weir_buf_msg(buf);
}

struct named {
    struct tls_side *side;
    char name[16];
};

static void on_done(weir_promise *promise, void *user_data)
{
    struct named *named = user_data;
    int err = weir_promise_result(promise);

    event_log_write(&named->side->events, "%s=%s", named->name,
                    err == 0 ? "ok" : weir_error_name(err));
    weir__free(named);
}

weir_promise *tls_side_promise(struct tls_side *side, const char *name)
{
    struct named *named = weir__alloc(sizeof(*named));
    weir_promise *promise = NULL;

    assert_non_null(named);
    named->side = side;
    (void)snprintf(named->name, sizeof(named->name), "%s", name);
    assert_int_equal(weir_promise_create(weir_channel_executor(side->channel), &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, on_done, named), 0);
    return promise;
}

void tls_side_write(struct tls_side *side, weir_msg *msg, const char *name)
{
    weir_promise *promise = name != NULL ? tls_side_promise(side, name) : NULL;

    weir_channel_write(side->channel, msg, promise);
    weir_promise_release(promise);
    weir_embedded_run(side->embedded);
}

struct weir__tls *tls_side_state(struct tls_side *side)
{
    weir_ctx *ctx = weir_pipeline_find_handler(side->pipeline, &weir__tls_handler.handler);

    return ctx != NULL ? weir__tls_of(ctx) : NULL;
}
