/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ws-test-client URL [OPTIONS]: talks to a server of another maker, which echoes, and closes at the
 * text "close CODE REASON". Prints what was agreed on; exits with 1 at the first surprise.
 *
 *      --io NAME      of its group
 *      --ca FILE      of the server's certificate, for wss
 *      --deflate
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/error.h>
#include <weir/group.h>
#include <weir/websocket.h>
#ifdef WEIR_TEST_TLS
#include <weir/tls.h>
#endif

#define TIMEOUT_NS weir_seconds(60)

/* ---- what is sent, one after the other ---- */

static const struct step {
    enum weir_ws_type type;
    const char *text;
    size_t repeats;
    size_t parts; /* 0 or 1: in one frame */
} steps[] = {
    {WEIR_WS_TEXT, "hello", 1, 1},
    {WEIR_WS_TEXT, "", 1, 1},
    {WEIR_WS_TEXT,
     "gr\xc3\xbc\xc3\x9f"
     "e \xf0\x9f\x98\x80 ",
     1000, 1},
    {WEIR_WS_BINARY, "\x01\x80\xff.", 64, 1},
    {WEIR_WS_BINARY, "sixteen bytes ..", 65536, 1}, /* 1 MiB */
    {WEIR_WS_TEXT, "one two three ", 3, 3},
    {WEIR_WS_BINARY, "sixteen bytes ..", 4096, 7},
    {WEIR_WS_PING, "are you there", 1, 1},
    {WEIR_WS_TEXT, "hello again", 20, 1},
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct session {
    size_t step;
    bool closes;         /* by itself, instead of asking the server to */
    weir_promise *ended; /* by weir_ws_closed, or by a surprise */
};

static struct session *session_of(weir_ctx *ctx)
{
    return *(struct session **)weir_ctx_state(ctx);
}

static int payload_of(const struct step *step, weir_buf **ret_payload)
{
    size_t length = strlen(step->text);
    int err = weir_buf_create(length * step->repeats + 1, 0, ret_payload);

    for (size_t i = 0; err == 0 && i < step->repeats; i++)
        err = weir_buf_write_bytes(*ret_payload, step->text, length);
    return err;
}

static void surprise(weir_ctx *ctx, const char *what)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "step %zu: %s", session_of(ctx)->step, what);
    (void)weir_promise_fail(session_of(ctx)->ended, -EBADMSG, text);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void send_part(weir_ctx *ctx, const struct step *step, weir_span part, size_t index)
{
    weir_ws_message *message;

    if (weir_ws_message_create_from(step->type, part.data, part.length, &message) < 0) {
        surprise(ctx, "no memory");
        return;
    }
    weir_ws_message_set_part(message, index == 0, index + 1 == step->parts);
    weir_write(ctx, weir_ws_message_msg(message), NULL);
}

static void send_step(weir_ctx *ctx)
{
    const struct step *step = &steps[session_of(ctx)->step];
    weir_buf *payload;
    weir_span all;
    size_t size;

    if (payload_of(step, &payload) < 0) {
        surprise(ctx, "no memory");
        return;
    }
    all = weir_buf_span(payload);
    size = all.length / step->parts;
    for (size_t i = 0; i < step->parts; i++)
        send_part(
            ctx, step,
            weir_span_of(all.data + i * size, i + 1 == step->parts ? all.length - i * size : size),
            i);
    weir_buf_release(payload);
    weir_flush(ctx);
}

static void end(weir_ctx *ctx)
{
    if (session_of(ctx)->closes)
        (void)weir_ws_close(weir_ctx_channel(ctx), 4001, "done", NULL);
    else
        weir_ws_write_text(ctx, "close 4001 done", NULL);
}

/* ---- the handler ---- */

static bool is_answer(const weir_ws_message *message, const struct step *step)
{
    enum weir_ws_type type = step->type == WEIR_WS_PING ? WEIR_WS_PONG : step->type;
    bool is_same = false;
    weir_buf *payload;

    if (payload_of(step, &payload) == 0)
        is_same = weir_ws_message_type(message) == type &&
                  weir_span_equal(weir_ws_message_bytes(message), weir_buf_span(payload));
    weir_buf_release(payload);
    return is_same;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct session *session = session_of(ctx);
    bool fits = session->step < STEPS && is_answer(weir_ws_message_of(msg), &steps[session->step]);

    weir_msg_release(msg);
    if (!fits) {
        surprise(ctx, "another answer");
        return;
    }
    session->step++;
    if (session->step < STEPS)
        send_step(ctx);
    else
        end(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_ws_opened *opened = weir_ws_opened_of(event);
    const weir_ws_closed *closed = weir_ws_closed_of(event);
    char text[256];

    if (opened != NULL) {
        printf("open: protocol \"%s\", %s\n", opened->protocol,
               opened->has_deflate ? "deflate" : "no deflate");
        send_step(ctx);
    }
    if (closed != NULL) {
        bool is_expected = closed->is_clean && closed->code == 4001 &&
                           (session_of(ctx)->closes || strcmp(closed->reason, "done") == 0);

        (void)snprintf(text, sizeof(text), "step %zu: closed with %u \"%s\", %s",
                       session_of(ctx)->step, closed->code, closed->reason,
                       closed->is_clean ? "clean" : "not clean");
        if (is_expected)
            (void)weir_promise_succeed(session_of(ctx)->ended, NULL);
        else
            (void)weir_promise_fail(session_of(ctx)->ended, -EPROTO, text);
    }
    weir_fire_event(ctx, event);
}

static int init(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct session *));
    return 0;
}

static const weir_handler handler = {.name = "session",
                                     .state_size = sizeof(struct session *),
                                     .init = init,
                                     .read = on_read,
                                     .event = on_event};

static int add_session(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &handler, &user_data);
}

/* ---- the program ---- */

static int run(weir_ws_client_options *options, const weir_ws_options *ws, bool closes)
{
    struct session session = {.closes = closes};
    weir_ws_options own = *ws;
    weir_promise *done = NULL;
    int err = weir_promise_create(NULL, &session.ended);

    own.user_data = &session;
    options->ws = &own;
    if (err == 0)
        err = weir_promise_create(NULL, &done);
    if (err == 0)
        err = weir_ws_connect(options, done);
    if (err == 0)
        err = weir_promise_sync(done, TIMEOUT_NS);
    if (err < 0) {
        (void)fprintf(stderr, "ws-test-client: %s\n",
                      done != NULL ? weir_promise_detail(done) : weir_error_text(err));
    } else {
        err = weir_promise_sync(session.ended, TIMEOUT_NS);
        if (err < 0)
            (void)fprintf(stderr, "ws-test-client: %s\n", weir_promise_detail(session.ended));
        (void)weir_promise_await(weir_channel_closed(weir_promise_value(done)), TIMEOUT_NS);
    }
    weir_promise_release(done);
    weir_promise_release(session.ended);
    return err;
}

static enum weir_io io_named(const char *name)
{
    return strcmp(name, "uring") == 0  ? WEIR_IO_URING
           : strcmp(name, "poll") == 0 ? WEIR_IO_POLL
                                       : WEIR_IO_EPOLL;
}

static int add_tls(weir_ws_client_options *options, const char *ca)
{
#ifdef WEIR_TEST_TLS
    options->add_tls = weir_tls_add_client;
    return weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_file = ca), &options->tls);
#else
    (void)options;
    (void)ca;
    return -ENOTSUP;
#endif
}

int main(int argc, char **argv)
{
    static const struct option arguments[] = {{"io", required_argument, NULL, 'i'},
                                              {"ca", required_argument, NULL, 'c'},
                                              {"deflate", no_argument, NULL, 'd'},
                                              {0}};
    static const char *const protocols[] = {"other", "chat", NULL};
    weir_ws_client_options options = *WEIR_WS_CLIENT_OPTIONS(.url = NULL);
    weir_ws_options ws =
        *WEIR_WS_OPTIONS(.init = add_session, .protocols = protocols, .control_frames = true);
    weir_group_options group = *WEIR_GROUP_OPTIONS(.threads = 1);
    int option, err = 0;

    while ((option = getopt_long(argc, argv, "", arguments, NULL)) != -1) {
        if (option == 'i')
            group.io = io_named(optarg);
        else if (option == 'c')
            err = add_tls(&options, optarg);
        else if (option == 'd')
            ws.deflate = true;
        else
            return 2;
    }
    options.url = argv[optind];
    if (err == 0)
        err = weir_group_create(&group, &options.group);
    if (err == 0)
        err = run(&options, &ws, false);
    if (err == 0)
        err = run(&options, &ws, true);
    if (options.group != NULL) {
        (void)weir_group_shutdown(options.group, 0, TIMEOUT_NS);
        (void)weir_group_await_termination(options.group, TIMEOUT_NS);
    }
    weir_group_release(options.group);
#ifdef WEIR_TEST_TLS
    weir_tls_context_release(options.tls);
#endif
    return err == 0 ? 0 : 1;
}
