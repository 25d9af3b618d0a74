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
    struct duettist *duettist;
};

struct duettist *duettist_of(weir_ctx *ctx)
{
    return ((struct witness *)weir_ctx_state(ctx))->duettist;
}

static int init(void *state, const void *options)
{
    *(struct witness *)state = *(const struct witness *)options;
    return 0;
}

static void keep_detail(struct duettist *duettist, const char *detail)
{
    (void)snprintf(duettist->detail, sizeof(duettist->detail), "%s", detail != NULL ? detail : "");
}

static void on_shaken(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    struct duettist *duettist = duettist_of(ctx);
    int err = weir_tls_handshake_result(handshake);

    event_log_write(&duettist->events, "shaken(%s)", err == 0 ? "ok" : weir_error_name(err));
    if (err < 0)
        keep_detail(duettist, weir_tls_handshake_detail(handshake));
    if (duettist->on_shaken != NULL)
        duettist->on_shaken(ctx, handshake);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct duettist *duettist = duettist_of(ctx);
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    if (handshake != NULL)
        on_shaken(ctx, handshake);
    else if (event == weir_event_tls_closed())
        event_log_write(&duettist->events, "ended");
    else if (event == weir_event_input_closed())
        event_log_write(&duettist->events, "input-closed");
    if (event == weir_event_tls_closed() && duettist->on_ended != NULL)
        duettist->on_ended(ctx);
    weir_msg_release(event);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct duettist *duettist = duettist_of(ctx);
    weir_buf *buf = weir_buf_of(msg);

    duettist->received += weir_buf_readable(buf);
    if (duettist->on_read != NULL) {
        duettist->on_read(ctx, msg);
        return;
    }
    if (weir_buf_readable(buf) > 100)
        event_log_write(&duettist->events, "read(%zu)", weir_buf_readable(buf));
    else if (!duettist->is_long)
        event_log_write(&duettist->events, "read(%.*s)", (int)weir_buf_readable(buf),
                        (const char *)weir_buf_bytes(buf));
    weir_msg_release(msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    if (duettist_of(ctx)->on_read_complete != NULL)
        duettist_of(ctx)->on_read_complete(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct duettist *duettist = duettist_of(ctx);

    event_log_write(&duettist->events, "error(%s)", weir_error_name(err));
    keep_detail(duettist, detail != NULL ? detail : weir_error_text(err));
    if (duettist->on_error != NULL)
        duettist->on_error(ctx, err);
}

static void on_inactive(weir_ctx *ctx)
{
    event_log_write(&duettist_of(ctx)->events, "inactive");
}

static void on_writability(weir_ctx *ctx)
{
    struct duettist *duettist = duettist_of(ctx);

    if (duettist->on_writability != NULL)
        duettist->on_writability(ctx);
    else
        event_log_write(&duettist->events, "writable(%s)",
                        weir_ctx_is_writable(ctx) ? "yes" : "no");
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

void duettist_prepare(struct duettist *duettist, weir_tls_context *context,
                      const weir_tls_options *options, const weir_embedded_options *channel)
{
    weir_embedded_options own;

    if (channel != NULL)
        own = *channel;
    else
        own = *WEIR_EMBEDDED_OPTIONS();
    own.not_registered = true;
    event_log_open(&duettist->events);
    assert_int_equal(weir_embedded_create(&own, &duettist->embedded), 0);
    duettist->channel = weir_embedded_channel(duettist->embedded);
    duettist->pipeline = weir_embedded_pipeline(duettist->embedded);
    assert_int_equal(weir_tls_add_with(duettist->pipeline, context, options), 0);
    assert_int_equal(weir_pipeline_add_last(duettist->pipeline, &witness,
                                            &(const struct witness){.duettist = duettist}),
                     0);
}

void duettist_close(struct duettist *duettist)
{
    weir_embedded_release(duettist->embedded);
    event_log_close(&duettist->events);
}

void duet_prepare(struct duet *duet, const struct duet_options *options)
{
    static const struct duet_options none;
    const struct pki *pki_ = pki();

    if (options == NULL)
        options = &none;
    memset(duet, 0, sizeof(*duet));
    assert_int_equal(weir_tls_server_create(
                         options->server_context != NULL
                             ? options->server_context
                             : WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki_->server.certificate,
                                                        .key_pem = pki_->server.key),
                         &duet->server_context),
                     0);
    assert_int_equal(weir_tls_client_create(options->client_context != NULL
                                                ? options->client_context
                                                : WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki_->ca),
                                            &duet->client_context),
                     0);
    duettist_prepare(&duet->server, duet->server_context, options->server, options->server_channel);
    duettist_prepare(&duet->client, duet->client_context,
                     options->client != NULL ? options->client
                                             : WEIR_TLS_OPTIONS(.server_name = "localhost"),
                     options->client_channel);
}

void duet_begin(struct duet *duet)
{
    assert_int_equal(weir_embedded_register(duet->server.embedded), 0);
    assert_int_equal(weir_embedded_register(duet->client.embedded), 0);
}

void duet_open(struct duet *duet, const struct duet_options *options)
{
    duet_prepare(duet, options);
    duet_begin(duet);
    duet_play(duet);
}

void duet_close(struct duet *duet)
{
    duettist_close(&duet->client);
    duettist_close(&duet->server);
    weir_tls_context_release(duet->client_context);
    weir_tls_context_release(duet->server_context);
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
static weir_msg *take_sent(const struct duet *duet, struct duettist *from)
{
    weir_msg *msg = weir_embedded_read_outbound(from->embedded), *next;
    weir_buf *all = NULL;

    if (msg == NULL || !duet->is_joined)
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

bool duet_bring(struct duet *duet, struct duettist *from, struct duettist *to)
{
    weir_msg *msg = take_sent(duet, from);
    weir_buf *buf;

    if (msg == NULL)
        return false;
    buf = weir_buf_of(msg);
    assert_non_null(buf);
    from->sent += weir_buf_readable(buf);
    if (duet->piece == 0) {
        (void)weir_embedded_write_inbound(to->embedded, msg);
        return true;
    }
    while (weir_buf_readable(buf) > 0)
        (void)weir_embedded_write_inbound(to->embedded, piece_of(buf, duet->piece));
    weir_msg_release(msg);
    return true;
}

static void bring_end(struct duettist *from, struct duettist *to)
{
    if (!weir_channel_is_open(from->channel) && weir_channel_is_open(to->channel))
        weir_embedded_end_input(to->embedded);
}

void duet_play(struct duet *duet)
{
    bool goes_on;

    do {
        weir_embedded_run(duet->client.embedded);
        weir_embedded_run(duet->server.embedded);
        goes_on = duet_bring(duet, &duet->client, &duet->server);
        goes_on |= duet_bring(duet, &duet->server, &duet->client);
        if (goes_on)
            continue;
        bring_end(&duet->client, &duet->server);
        bring_end(&duet->server, &duet->client);
    } while (goes_on);
}

void duet_advance(struct duet *duet, int64_t duration_ns)
{
    weir_embedded_advance(duet->client.embedded, duration_ns);
    weir_embedded_advance(duet->server.embedded, duration_ns);
}

/* ---- writing ---- */

void duet_say(struct duettist *duettist, const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    weir_channel_write_and_flush(duettist->channel, weir_buf_msg(buf), NULL);
    weir_embedded_run(duettist->embedded);
}

weir_msg *duet_bytes(size_t length)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(length, 0, &buf), 0);
    for (size_t i = 0; i < length; i++)
        weir_buf_space(buf)[i] = (uint8_t)(i * 7 + i / 251);
    (void)weir_buf_advance(buf, length);
    return weir_buf_msg(buf);
}

struct named {
    struct duettist *duettist;
    char name[16];
};

static void on_done(weir_promise *promise, void *user_data)
{
    struct named *named = user_data;
    int err = weir_promise_result(promise);

    event_log_write(&named->duettist->events, "%s=%s", named->name,
                    err == 0 ? "ok" : weir_error_name(err));
    weir__free(named);
}

weir_promise *duet_promise(struct duettist *duettist, const char *name)
{
    struct named *named = weir__alloc(sizeof(*named));
    weir_promise *promise = NULL;

    assert_non_null(named);
    named->duettist = duettist;
    (void)snprintf(named->name, sizeof(named->name), "%s", name);
    assert_int_equal(weir_promise_create(weir_channel_executor(duettist->channel), &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, on_done, named), 0);
    return promise;
}

void duet_write(struct duettist *duettist, weir_msg *msg, const char *name)
{
    weir_promise *promise = name != NULL ? duet_promise(duettist, name) : NULL;

    weir_channel_write(duettist->channel, msg, promise);
    weir_promise_release(promise);
    weir_embedded_run(duettist->embedded);
}

struct weir__tls *duet_tls(struct duettist *duettist)
{
    weir_ctx *ctx = weir_pipeline_find_handler(duettist->pipeline, &weir__tls_handler.handler);

    return ctx != NULL ? weir__tls_of(ctx) : NULL;
}
