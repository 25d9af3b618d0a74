/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/forward_tunnel.h"

#include <errno.h>

#include <weir/composite.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "protocol/http/reset.h"

struct weir__forward_tunnel {
    unsigned users;        /* the call, and the client's channel */
    weir_http_call *call;  /* retained; NULL = has ended */
    weir_ctx *ctx;         /* of the client's channel; NULL = not yet, or gone */
    weir_composite *early; /* bytes of the origin before there is a ctx; NULL = none */
    int64_t idle_ns;
    weir_timer timer;
    bool has_passed;  /* a byte, since the timer was started */
    bool was_joined;  /* there was a ctx */
    bool wants_piece; /* the call waits until the client reads */
    int err;          /* of the call's end */
};

static void release(weir__forward_tunnel *tunnel)
{
    if (--tunnel->users > 0)
        return;
    weir_composite_release(tunnel->early);
    weir_memory_free(tunnel);
}

static weir__forward_tunnel *tunnel_of(weir_ctx *ctx)
{
    return *(weir__forward_tunnel **)weir_ctx_state(ctx);
}

/* ---- to the client ---- */

static void ask_for_piece(weir__forward_tunnel *tunnel)
{
    if (tunnel->call == NULL)
        return;
    tunnel->wants_piece = !weir_ctx_is_writable(tunnel->ctx);
    if (!tunnel->wants_piece)
        weir_http_call_read(tunnel->call);
}

/* Bytes may come in the same read as the 101. */
static void keep(weir__forward_tunnel *tunnel, weir_msg *msg)
{
    int err = tunnel->early == NULL ? weir_composite_create(SIZE_MAX, &tunnel->early) : 0;

    if (err < 0)
        weir_msg_release(msg);
    else
        err = weir_composite_add(tunnel->early, msg);
    if (err < 0)
        weir_http_call_cancel(tunnel->call);
}

void weir__forward_tunnel_piece(weir__forward_tunnel *tunnel, weir_msg *msg)
{
    tunnel->has_passed = true;
    if (tunnel->ctx != NULL) {
        weir_write_and_flush(tunnel->ctx, msg, NULL);
        if (tunnel->ctx != NULL)
            ask_for_piece(tunnel);
    } else if (tunnel->was_joined) {
        weir_msg_release(msg);
    } else {
        keep(tunnel, msg);
    }
}

/* The client gets what was written before. A tunnel that was cut off must not look complete. */
static void end_client(weir_ctx *ctx, int err)
{
    if (err == 0)
        weir_close(ctx, NULL);
    else
        weir__http_reset(weir_ctx_channel(ctx));
}

void weir__forward_tunnel_end(weir__forward_tunnel *tunnel, int err)
{
    weir_http_call_release(tunnel->call);
    tunnel->call = NULL;
    tunnel->err = err;
    if (tunnel->ctx != NULL)
        end_client(tunnel->ctx, err);
    release(tunnel);
}

/* ---- to the origin ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir__forward_tunnel *tunnel = tunnel_of(ctx);

    tunnel->has_passed = true;
    if (tunnel->call == NULL) {
        weir_msg_release(msg);
        return;
    }
    (void)weir_http_call_write(tunnel->call, msg, NULL);
    if (tunnel->call != NULL && !weir_http_call_is_writable(tunnel->call))
        weir_ctx_set_auto_read(ctx, false);
}

void weir__forward_tunnel_writable(weir__forward_tunnel *tunnel)
{
    if (tunnel->ctx != NULL)
        weir_ctx_set_auto_read(tunnel->ctx, true);
}

/* ---- the client's channel ---- */

static void on_writability(weir_ctx *ctx)
{
    weir__forward_tunnel *tunnel = tunnel_of(ctx);

    if (tunnel->wants_piece)
        ask_for_piece(tunnel);
    weir_fire_writability(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    weir__forward_tunnel *tunnel = tunnel_of(ctx);

    if (event == weir_event_input_closed() && tunnel->call != NULL)
        (void)weir_http_call_end(tunnel->call, NULL);
    weir_fire_event(ctx, event);
}

/* The client is gone: what it has sent still goes to the origin. */
static void leave(weir_ctx *ctx)
{
    weir__forward_tunnel *tunnel = tunnel_of(ctx);

    if (tunnel->ctx == NULL)
        return;
    tunnel->ctx = NULL;
    (void)weir_timer_stop(&tunnel->timer);
    if (tunnel->call != NULL)
        weir__http_call_close_tunnel(tunnel->call);
}

static void on_inactive(weir_ctx *ctx)
{
    leave(ctx);
    weir_fire_inactive(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    weir__forward_tunnel *tunnel = tunnel_of(ctx);

    (void)err;
    (void)detail;
    if (tunnel->call != NULL)
        weir_http_call_cancel(tunnel->call);
    weir__http_reset(weir_ctx_channel(ctx));
}

static void start_timer(weir_ctx *ctx, weir__forward_tunnel *tunnel);

/* After one to two times the time. */
static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    weir__forward_tunnel *tunnel = tunnel_of(ctx);

    (void)timer;
    if (tunnel->has_passed)
        start_timer(ctx, tunnel);
    else
        weir_close(ctx, NULL);
}

static void start_timer(weir_ctx *ctx, weir__forward_tunnel *tunnel)
{
    tunnel->has_passed = false;
    if (tunnel->idle_ns != WEIR_OFF)
        (void)weir_ctx_timer_start(ctx, &tunnel->timer, tunnel->idle_ns, on_timer);
}

static void on_added(weir_ctx *ctx)
{
    weir__forward_tunnel *tunnel = tunnel_of(ctx);
    weir_msg *early = tunnel->early != NULL ? weir_composite_msg(tunnel->early) : NULL;

    tunnel->ctx = ctx;
    tunnel->was_joined = true;
    tunnel->early = NULL;
    start_timer(ctx, tunnel);
    weir_ctx_set_auto_read(ctx, true);
    if (early != NULL)
        weir_write_and_flush(ctx, early, NULL);
    if (tunnel->call == NULL && tunnel->ctx != NULL)
        end_client(ctx, tunnel->err);
    else if (tunnel->ctx != NULL)
        ask_for_piece(tunnel);
}

static int init(void *state, const void *options)
{
    weir__forward_tunnel *tunnel = *(weir__forward_tunnel *const *)options;

    *(weir__forward_tunnel **)state = tunnel;
    tunnel->users++;
    return 0;
}

static void deinit(void *state)
{
    release(*(weir__forward_tunnel **)state);
}

static const weir_handler handler = {
    .name = "http-forward-tunnel",
    .state_size = sizeof(weir__forward_tunnel *),
    .init = init,
    .deinit = deinit,
    .added = on_added,
    .removed = leave,
    .read = on_read,
    .writability = on_writability,
    .event = on_event,
    .inactive = on_inactive,
    .error = on_error,
    .stays_on_loop = true,
};

/* Called exactly once, perhaps with a channel that is closed. */
static int join(weir_channel *channel, void *user_data)
{
    weir__forward_tunnel *tunnel = user_data;
    int err = weir_channel_is_active(channel)
                  ? weir_pipeline_add_last(weir_channel_pipeline(channel), &handler, &tunnel)
                  : WEIR_ECLOSED;

    tunnel->was_joined = true;
    if (err < 0 && tunnel->call != NULL)
        weir_http_call_cancel(tunnel->call);
    release(tunnel);
    return err;
}

int weir__forward_tunnel_begin(weir_http_exchange *exchange, weir_http_call *call, int64_t idle_ns,
                               weir__forward_tunnel **ret_tunnel)
{
    weir__forward_tunnel *tunnel = weir_memory_alloc(sizeof(*tunnel));
    int err;

    if (tunnel == NULL)
        return -ENOMEM;
    *tunnel = (weir__forward_tunnel){.users = 2, .idle_ns = idle_ns};
    tunnel->call = weir_http_call_retain(call);
    *ret_tunnel = tunnel; /* before `join`, which may end the call */
    err = weir_http_exchange_upgrade(exchange, join, tunnel);
    if (err < 0) {
        *ret_tunnel = NULL;
        weir_http_call_release(call);
        weir_memory_free(tunnel);
    }
    return err;
}
