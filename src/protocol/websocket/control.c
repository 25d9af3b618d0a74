/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pings, pongs, and the one timer of a connection, which no message moves:
 *
 *      open       fires four times in ping_interval_ns, and compares what has happened since
 *      closing    fires after close_timeout_ns, and again while the peer still receives
 */
#include <weir/channel.h>

#include "base/log.h"
#include "protocol/websocket/websocket.h"

#define TICKS 4 /* in ping_interval_ns */

/* ---- pongs ---- */

/* While the channel is unwritable only the latest ping is answered: a peer that sends pings and
 * does not receive must not fill our memory with pongs. Without memory a pong is left out. */
void weir__ws_answer_ping(weir_ctx *ctx, weir__ws *ws, weir_span payload)
{
    weir_buf *pong;

    if (ws->output == WEIR__WS_OUTPUT_CLOSED)
        return;
    if (ws->pong == NULL && weir_ctx_is_writable(ctx)) {
        if (weir__ws_write_control(ctx, ws, WEIR__WS_PONG, payload) == 0)
            weir_flush(ctx);
    } else if (weir_buf_create_from(payload.data, payload.length, &pong) == 0) {
        weir_buf_release(ws->pong);
        ws->pong = pong;
    }
}

void weir__ws_send_pong(weir_ctx *ctx, weir__ws *ws)
{
    weir_buf *pong = ws->pong;

    if (pong == NULL || !weir_ctx_is_writable(ctx))
        return;
    ws->pong = NULL;
    weir__ws_answer_ping(ctx, ws, weir_buf_span(pong));
    weir_buf_release(pong);
}

/* ---- silent peers ---- */

/* True if the peer has received something since the last call, and has more to receive. */
static bool is_receiving(weir_ctx *ctx, weir__ws *ws)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    int64_t sent_before = ws->sent_seen;

    if (weir_channel_pending_bytes(channel) == 0)
        return false; /* an idle channel does not need the memory that counting takes */
    ws->sent_seen = weir_channel_bytes_sent(channel);
    return ws->sent_seen != sent_before;
}

/* A peer is not silent if we do not read, or if it is still receiving. */
static bool has_heard(weir_ctx *ctx, weir__ws *ws)
{
    bool heard = is_receiving(ctx, ws) || ws->has_heard || !weir_decoder_has_demand(ctx);

    ws->has_heard = false;
    return heard;
}

static void on_tick(weir_ctx *ctx, weir_timer *timer)
{
    weir__ws *ws = weir_ctx_state(ctx);

    (void)timer;
    if (has_heard(ctx, ws))
        ws->silent_ticks = 0;
    else
        ws->silent_ticks++;
    if (ws->silent_ticks >= 2 * TICKS) {
        weir__debug("websocket", weir_ctx_name(ctx), "the peer does not answer a ping: closed");
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
        return;
    }
    if (ws->silent_ticks == TICKS &&
        weir__ws_write_control(ctx, ws, WEIR__WS_PING, weir_span_of(NULL, 0)) == 0)
        weir_flush(ctx);
    if (!weir_ctx_is_removed(ctx) && ws->output != WEIR__WS_OUTPUT_CLOSED)
        weir__ws_watch_peer(ctx, ws);
}

void weir__ws_watch_peer(weir_ctx *ctx, weir__ws *ws)
{
    if (ws->ping_interval_ns != WEIR_NEVER)
        (void)weir_ctx_timer_start(ctx, &ws->timer, ws->ping_interval_ns / TICKS, on_tick);
}

/* ---- the timeout of closing ---- */

/* Output that the peer does not receive is released: weir_close would wait for it, and for the end
 * of the peer's stream. */
static void on_close_timeout(weir_ctx *ctx, weir_timer *timer)
{
    weir__ws *ws = weir_ctx_state(ctx);

    (void)timer;
    if (is_receiving(ctx, ws)) {
        weir__ws_watch_closing(ctx, ws);
    } else if (weir_channel_pending_bytes(weir_ctx_channel(ctx)) > 0 ||
               ws->ending == WEIR__WS_ENDING_ENDED) {
        weir__debug("websocket", weir_ctx_name(ctx), "the peer does not receive or close: reset");
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
    } else {
        weir_channel_skip_linger(weir_ctx_channel(ctx));
        weir__ws_end(ctx, ws);
    }
}

void weir__ws_watch_closing(weir_ctx *ctx, weir__ws *ws)
{
    ws->sent_seen = weir_channel_bytes_sent(weir_ctx_channel(ctx));
    if (ws->close_timeout_ns == WEIR_NEVER)
        (void)weir_timer_stop(&ws->timer);
    else if (weir_ctx_timer_start(ctx, &ws->timer, ws->close_timeout_ns, on_close_timeout) < 0 &&
             ws->ending != WEIR__WS_ENDING_ENDED)
        weir__ws_end(ctx, ws);
}
