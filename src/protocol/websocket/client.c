/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_ws_connect: the opening handshake of a client.
 *
 *      socket <-> [tls] <-> [http1-client] <-> [ws-opening]                  until the 101
 *      socket <-> [tls] <-> [websocket] <-> the handlers of options->init    from its end on
 *
 * An opening runs on one loop, from `begin` to `finish`, which every path calls. Calls from other
 * threads are flags of its mailbox. With several
 * addresses there are several channels; `channel` is the one that was connected first, and the
 * handlers of the others do nothing.
 */
#include "protocol/websocket/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/client.h>
#include <weir/error.h>
#include <weir/loop.h>
#include <weir/memory.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "base/refcount.h"
#include "executor/mailbox.h"
#include "protocol/http/alpn.h"
#include "protocol/http/http_client.h"
#include "protocol/websocket/websocket.h"

#define CONNECT_TIMEOUT_NS weir_seconds(10)

/* Flags of the mailbox, which are handled in this order. */
enum { BEGIN = 1 << 0, CANCEL = 1 << 1 };

struct opening {
    weir__refs
        refs; /* of the loop until `finish`, of each listener, of each handler, the mailbox */
    weir__mailbox box;
    weir_group *group; /* NULL = none */
    weir_executor *loop;
    weir_resolver *resolver; /* NULL = the default */
    weir_promise *done;
    weir_promise *connecting;     /* NULL before and after it */
    weir_channel *channel;        /* NULL before it is connected */
    weir_http_response *response; /* the 101 */
    weir__ws_agreed agreed;       /* by it */
    weir__ws_target target;
    weir_ws_options ws;
    char **protocols; /* copies, that ws and agreed point to */
    weir_channel_options channel_options;
    weir_tls_context *tls;
    weir_http_client_tls_fn *add_tls;
    weir_init_fn *init_connection; /* NULL = none */
    void *user_data;
    int64_t timeout_ns; /* WEIR_OFF = none */
    weir_timer timer;
    weir_listener connected;
    weir_listener completed;
    bool is_finished;
    bool is_open; /* the handler is being replaced */
};

/* ---- references ---- */

static void release_channel(void *channel)
{
    weir_channel_release(channel);
}

static void release(struct opening *opening)
{
    if (!weir__refs_release(&opening->refs))
        return;
    if (opening->response != NULL)
        weir_msg_release(weir_http_response_msg(opening->response));
    weir_channel_release(opening->channel);
    weir__ws_target_deinit(&opening->target);
    for (char **protocol = opening->protocols; protocol != NULL && *protocol != NULL; protocol++)
        weir_memory_free(*protocol);
    weir_memory_free(opening->protocols);
    weir_promise_release(opening->done);
    weir_resolver_release(opening->resolver);
    weir_executor_release(opening->loop);
    weir_group_release(opening->group);
    weir_memory_free(opening);
}

/* ---- the end ---- */

/* Completes `done`: with the channel if err is 0. */
static void finish(struct opening *opening, int err, const char *detail)
{
    char text[1024];

    if (opening->is_finished)
        return;
    opening->is_finished = true;
    (void)weir_timer_stop(&opening->timer);
    if (opening->connecting != NULL)
        (void)weir_promise_cancel(opening->connecting);
    if (err == 0) {
        err = weir_promise_succeed_with(opening->done, weir_channel_retain(opening->channel),
                                        release_channel);
    } else {
        (void)snprintf(text, sizeof(text), "%s: %s", opening->target.url,
                       detail != NULL ? detail : weir_error_text(err));
        (void)weir_promise_fail(opening->done, err, text);
    }
    if (err < 0 && opening->channel != NULL)
        weir_channel_abort(opening->channel, NULL);
    release(opening);
}

static void on_timer(weir_timer *timer)
{
    struct opening *opening = WEIR_CONTAINER_OF(timer, struct opening, timer);
    char detail[80];

    (void)snprintf(detail, sizeof(detail), "not open after %lld ms",
                   (long long)(opening->timeout_ns / weir_ms(1)));
    finish(opening, -ETIMEDOUT, detail);
}

/* On the executor of `done`. */
static void on_completed(weir_promise *done, void *user_data)
{
    struct opening *opening = user_data;

    if (weir_promise_is_cancelled(done))
        weir__mailbox_set(&opening->box, CANCEL);
    release(opening);
}

/* ---- the handler ---- */

/* NULL if the handler is not that of the connection, or no longer. */
static struct opening *opening_of(weir_ctx *ctx)
{
    struct opening *opening = *(struct opening **)weir_ctx_state(ctx);

    return opening->channel == weir_ctx_channel(ctx) && !opening->is_finished && !opening->is_open
               ? opening
               : NULL;
}

static int init_handler(void *state, const void *options)
{
    struct opening *const *opening = options;

    weir__refs_retain(&(*opening)->refs);
    memcpy(state, options, sizeof(struct opening *));
    return 0;
}

static void deinit_handler(void *state)
{
    release(*(struct opening **)state);
}

static void request_more(weir_ctx *ctx)
{
    if (!weir_ctx_is_removed(ctx) && !weir_channel_auto_read(weir_ctx_channel(ctx)))
        weir_request_read(ctx);
}

static void on_active(weir_ctx *ctx)
{
    struct opening *opening = opening_of(ctx);

    if (opening != NULL) {
        weir_write(ctx, weir_msg_retain(weir_http_request_msg(opening->target.request)), NULL);
        if (!weir_ctx_is_removed(ctx))
            weir_write_and_flush(ctx, weir_http_end_static(), NULL);
        request_more(ctx);
    }
    weir_fire_active(ctx);
}

/* A status below 200 announces another response, except 101. */
static void on_response(struct opening *opening, weir_http_response *response)
{
    int status = weir_http_response_status(response);
    const char *reason;
    char detail[64];

    if (status == 101) {
        int err = weir__ws_check_response(response, opening->target.key, &opening->ws,
                                          &opening->agreed, &reason);

        if (err < 0) {
            finish(opening, err, reason);
        } else {
            (void)weir_msg_retain(weir_http_response_msg(response));
            opening->response = response;
        }
    } else if (status >= 200) {
        (void)snprintf(detail, sizeof(detail), "the server answered %d, expected 101", status);
        finish(opening, status == 401 || status == 403 ? -EACCES : -ECONNREFUSED, detail);
    }
}

/* Behind the 101 the codec passes everything unchanged. */
static void open_websocket(weir_ctx *ctx, struct opening *opening)
{
    char detail[128];
    int err;

    if (!weir_promise_set_uncancellable(opening->done)) {
        finish(opening, WEIR_ECANCELED, NULL);
        return;
    }
    opening->is_open = true;
    weir_ctx_remove(ctx);
    err = weir__ws_open(opening->channel, &(weir__ws_setup){.options = &opening->ws,
                                                            .agreed = &opening->agreed,
                                                            .request = opening->target.request,
                                                            .response = opening->response,
                                                            .is_client = true});
    (void)snprintf(detail, sizeof(detail), "cannot add the handlers: %s", weir_error_text(err));
    finish(opening, err, detail);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct opening *opening = opening_of(ctx);
    weir_http_response *response = weir_http_response_of(msg);

    if (opening != NULL) {
        weir__refs_retain(&opening->refs);
        if (response != NULL)
            on_response(opening, response);
        else if (opening->response != NULL && weir_http_end_of(msg) != NULL)
            open_websocket(ctx, opening);
        request_more(ctx);
        release(opening);
    }
    weir_msg_release(msg);
}

static void lose(weir_ctx *ctx, int err, const char *detail)
{
    struct opening *opening = opening_of(ctx);

    if (opening != NULL)
        finish(opening, err, detail);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    lose(ctx, err, detail);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void on_inactive(weir_ctx *ctx)
{
    lose(ctx, WEIR_ECLOSED, "the server closed the connection");
    weir_fire_inactive(ctx);
}

static void on_removed(weir_ctx *ctx)
{
    lose(ctx, WEIR_ECLOSED, "the connection was closed");
}

static void on_draining(weir_ctx *ctx)
{
    lose(ctx, WEIR_ECLOSED, "the group shuts down");
    if (!weir_ctx_is_removed(ctx))
        weir_fire_draining(ctx);
}

static const weir_handler handler = {
    .name = "ws-opening",
    .state_size = sizeof(struct opening *),
    .init = init_handler,
    .deinit = deinit_handler,
    .removed = on_removed,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .error = on_error,
    .draining = on_draining,
    .stays_on_loop = true,
};

/* ---- connecting ---- */

static int init_connection(weir_channel *channel, void *user_data)
{
    struct opening *opening = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = 0;

    if (opening->target.is_tls)
        err = opening->add_tls(pipeline, opening->tls, opening->target.host);
    if (err == 0)
        err = weir_http1_client_add(pipeline, NULL);
    if (err == 0 && opening->init_connection != NULL)
        err = opening->init_connection(channel, opening->user_data);
    return err < 0 ? err : weir_pipeline_add_last(pipeline, &handler, &opening);
}

/* On the loop, before `active`. */
static void on_connected(weir_promise *connecting, void *user_data)
{
    struct opening *opening = user_data;
    int err = weir_promise_result(connecting);
    char detail[600];

    opening->connecting = NULL;
    if (err < 0) {
        (void)snprintf(detail, sizeof(detail), "connect: %s", weir_promise_detail(connecting));
        finish(opening, err, detail);
    } else if (opening->is_finished) {
        weir_channel_abort(weir_promise_value(connecting), NULL);
    } else {
        opening->channel = weir_channel_retain(weir_promise_value(connecting));
    }
    weir_promise_release(connecting);
    release(opening);
}

static void begin(struct opening *opening, int status)
{
    weir_promise *connecting;
    int err = status < 0 ? WEIR_EREJECTED : 0;

    if (err == 0 && opening->timeout_ns != WEIR_OFF)
        err = weir_timer_start(opening->loop, &opening->timer, opening->timeout_ns, on_timer);
    if (err == 0)
        err = weir_client_connect(WEIR_CLIENT_OPTIONS(.loop = opening->loop,
                                                      .address = opening->target.address,
                                                      .init = init_connection, .user_data = opening,
                                                      .options = &opening->channel_options,
                                                      .resolver = opening->resolver),
                                  &connecting);
    if (err < 0) {
        finish(opening, err, NULL);
        return;
    }
    weir__refs_retain(&opening->refs);
    opening->connecting = connecting;
    opening->connected = (weir_listener){.fn = on_connected, .user_data = opening};
    weir_promise_listen(connecting, &opening->connected);
}

static void run(struct opening *opening, uint32_t flags, int status)
{
    if (flags & BEGIN)
        begin(opening, status);
    if (flags & CANCEL)
        finish(opening, WEIR_ECANCELED, NULL);
}

WEIR__MAILBOX_TYPE(mailbox_type, "websocket", struct opening, box, owner->loop,
                   weir__refs_retain(&owner->refs), release(owner), run);

/* ---- options ---- */

static int check(const weir_ws_client_options *options)
{
    enum weir_io io;

    if (options->ws == NULL)
        return weir__options_reject("websocket", NULL, ".ws is required");
    if ((options->group != NULL) == (options->loop != NULL))
        return weir__options_reject("websocket", NULL, "one of .group and .loop is required");
    if ((options->tls != NULL) != (options->add_tls != NULL))
        return weir__options_reject("websocket", NULL, ".tls and .add_tls are for each other");
    if (options->loop != NULL)
        io = weir_loop_io(options->loop);
    else
        io = weir_group_count(options->group) > 0 ? weir_loop_io(weir_group_at(options->group, 0))
                                                  : WEIR_IO_BLOCKING;
    if (io == WEIR_IO_NONE || io == WEIR_IO_BLOCKING)
        return -ENOTSUP;
    return weir__options_check("websocket", NULL,
                               WEIR__OPTION_FROM(options, connect_timeout_ns, WEIR_OFF));
}

static int copy_protocols(struct opening *opening)
{
    const char *const *given = opening->ws.protocols;
    size_t count = 0;

    opening->ws.origins = NULL;
    if (given == NULL)
        return 0;
    while (given[count] != NULL)
        count++;
    opening->protocols = weir__http_client_alloc((count + 1) * sizeof(*opening->protocols));
    for (size_t i = 0; opening->protocols != NULL && i < count; i++) {
        opening->protocols[i] = weir__http_client_copy(weir_span_of_text(given[i]));
        if (opening->protocols[i] == NULL)
            return -ENOMEM;
    }
    opening->ws.protocols = (const char *const *)opening->protocols;
    return opening->protocols != NULL ? 0 : -ENOMEM;
}

static int copy_options(struct opening *opening, const weir_ws_client_options *options)
{
    int err = weir__ws_read_options(options->ws, &opening->ws);

    if (err == 0)
        err = weir__options_read(&opening->channel_options, sizeof(opening->channel_options),
                                 options->channel_options);
    if (err == 0)
        err = copy_protocols(opening);
    if (err == 0)
        err = weir__ws_target_init(&opening->target, options->url, &opening->ws, options->headers);
    if (err == 0 && opening->target.is_tls && options->add_tls == NULL)
        err = weir__options_reject("websocket", NULL, ".url \"%s\" needs .tls and .add_tls",
                                   opening->target.url);
    if (err < 0)
        return err;
    opening->tls = options->tls;
    opening->add_tls = options->add_tls;
    opening->init_connection = options->init_connection;
    opening->user_data = options->user_data;
    opening->timeout_ns =
        options->connect_timeout_ns != 0 ? options->connect_timeout_ns : CONNECT_TIMEOUT_NS;
    if (opening->channel_options.connect_timeout_ns == 0)
        opening->channel_options.connect_timeout_ns = opening->timeout_ns;
    opening->channel_options.alpn = WEIR__HTTP_CLIENT_ALPN;
    return 0;
}

static int create_opening(const weir_ws_client_options *options, weir_promise *done,
                          struct opening **ret_opening)
{
    struct opening *opening = weir__http_client_alloc(sizeof(*opening));
    int err;

    if (opening == NULL)
        return -ENOMEM;
    weir__refs_init(&opening->refs);
    weir__mailbox_init(&opening->box, &mailbox_type);
    weir_timer_init(&opening->timer);
    err = copy_options(opening, options);
    if (err < 0) {
        release(opening);
        return err;
    }
    opening->group = options->group != NULL ? weir_group_retain(options->group) : NULL;
    opening->loop = weir_executor_retain(options->loop != NULL ? options->loop
                                                               : weir_group_next(options->group));
    opening->done = weir_promise_retain(done);
    if (options->resolver != NULL)
        opening->resolver = weir_resolver_retain(options->resolver);
    *ret_opening = opening;
    return 0;
}

int weir_ws_connect(const weir_ws_client_options *given, weir_promise *done)
{
    weir_ws_client_options options;
    struct opening *opening;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = check(&options);
    if (err == 0 && done == NULL)
        err = weir__options_reject("websocket", NULL, "weir_ws_connect needs a promise");
    if (err == 0)
        err = create_opening(&options, done, &opening);
    if (err < 0)
        return err;
    if (weir_executor_state(opening->loop) >= WEIR_EXECUTOR_SHUTDOWN) {
        release(opening);
        return WEIR_EREJECTED;
    }
    weir__refs_retain(&opening->refs); /* of the loop */
    weir__mailbox_set(&opening->box, BEGIN);
    opening->completed = (weir_listener){.fn = on_completed, .user_data = opening};
    weir_promise_listen(done, &opening->completed);
    return 0;
}
