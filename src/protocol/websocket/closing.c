/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closing handshake: each side sends a close frame, then the server closes the connection.
 *
 *      we begin             close frame -> wait for the peer's -> weir_close
 *      the peer begins      its close frame -> ours -> weir_close
 *      a protocol error     close frame -> weir_close, which discards the rest of the input
 *
 * A client waits for the server to close the connection. All of it takes at most close_timeout_ns,
 * unless the peer still receives what was written before.
 */
#include <errno.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "base/log.h"
#include "executor/mailbox.h"
#include "protocol/websocket/websocket.h"

#define REASON_MAX (WEIR__WS_CONTROL_MAX - 2)

/* ---- events ---- */

static void free_event(weir_msg *event)
{
    weir_memory_free(event);
}

static const weir_msg_type closed_type = {.name = "weir_ws_closed", .destroy = free_event};

/* Without a close frame there is nothing to tell: no memory is needed. */
static weir_ws_closed lost = {.base = {.type = &closed_type, .refs = WEIR_MSG_STATIC},
                              .code = WEIR_WS_LOST};

const weir_ws_closed *weir_ws_closed_of(const weir_msg *event)
{
    if (event == NULL || !weir_msg_is(event, &closed_type))
        return NULL;
    return (const weir_ws_closed *)(const void *)event;
}

void weir__ws_lose(weir_ctx *ctx, weir__ws *ws)
{
    if (!ws->is_open)
        return;
    ws->is_open = false;
    weir__ws_count_closed(ws);
    weir_fire_event(ctx, &lost.base);
}

static void fire_closed(weir_ctx *ctx, weir__ws *ws, unsigned code, weir_span reason)
{
    weir_ws_closed *closed;

    if (!ws->is_open)
        return;
    closed = weir_memory_alloc(sizeof(*closed));
    if (closed == NULL) {
        weir__ws_lose(ctx, ws);
        return;
    }
    *closed = (weir_ws_closed){.code = code, .is_clean = true, .length = reason.length};
    weir_msg_init(&closed->base, &closed_type);
    if (reason.length > 0)
        memcpy(closed->reason, reason.data, reason.length);
    ws->is_open = false;
    weir__ws_count_closed(ws);
    weir_fire_event(ctx, &closed->base);
}

/* ---- sending ---- */

/* Codes that a close frame may have: defined ones, and those of libraries and applications. */
static bool is_valid_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

void weir__ws_send_close(weir_ctx *ctx, weir__ws *ws, unsigned code, const char *reason)
{
    uint8_t payload[WEIR__WS_CONTROL_MAX] = {(uint8_t)(code >> 8), (uint8_t)code};
    size_t length = 0;

    if (ws->output == WEIR__WS_OUTPUT_CLOSED)
        return;
    ws->output = WEIR__WS_OUTPUT_CLOSED;
    if (reason != NULL) {
        length = strnlen(reason, REASON_MAX);
        memcpy(payload + 2, reason, length);
    }
    length = code == WEIR_WS_NO_CODE ? 0 : 2 + length;
    if (weir__ws_write_control(ctx, ws, WEIR__WS_CLOSE, weir_span_of(payload, length)) < 0)
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
    else
        weir_flush(ctx);
}

void weir__ws_end(weir_ctx *ctx, weir__ws *ws)
{
    weir_promise *done = ws->close_done;
    bool was_closing = ws->ending == WEIR__WS_ENDING_CLOSING;

    ws->ending = WEIR__WS_ENDING_ENDED;
    ws->close_done = NULL;
    if (!was_closing || !weir_timer_is_running(&ws->timer)) /* one timeout for all of it */
        weir__ws_watch_closing(ctx, ws);
    weir_close(ctx, done);
    weir_promise_release(done);
}

void weir__ws_fail(weir_ctx *ctx, weir__ws *ws, unsigned code, const char *detail)
{
    weir__debug("websocket", weir_ctx_name(ctx), "closed with %u: %s", code, detail);
    weir__ws_go_deaf(ws);
    weir__ws_forget_incoming(ws);
    weir__ws_send_close(ctx, ws, code, detail);
    if (!weir_ctx_is_removed(ctx))
        weir__ws_end(ctx, ws);
}

/* ---- receiving ---- */

void weir__ws_receive_close(weir_ctx *ctx, weir__ws *ws, weir_span payload)
{
    unsigned code = WEIR_WS_NO_CODE;
    weir_span reason = weir_span_of(NULL, 0);

    if (payload.length == 1) {
        weir__ws_fail(ctx, ws, WEIR_WS_PROTOCOL_ERROR, "close frame of one byte");
        return;
    }
    if (payload.length >= 2) {
        code = (unsigned)payload.data[0] << 8 | payload.data[1];
        reason = weir_span_of(payload.data + 2, payload.length - 2);
        if (!is_valid_code(code)) {
            weir__ws_fail(ctx, ws, WEIR_WS_PROTOCOL_ERROR, "invalid close code");
            return;
        }
        if (!weir_span_is_utf8(reason)) {
            weir__ws_fail(ctx, ws, WEIR_WS_NOT_UTF8, "close reason is not UTF-8");
            return;
        }
    }
    ws->input = WEIR__WS_INPUT_CLOSED;
    weir__ws_forget_incoming(ws);
    weir__ws_send_close(ctx, ws, code, NULL);
    fire_closed(ctx, ws, code, reason);
    if (weir_ctx_is_removed(ctx) || ws->ending == WEIR__WS_ENDING_ENDED)
        return;
    if (!ws->is_client)
        weir__ws_end(ctx, ws);
    else if (ws->ending != WEIR__WS_ENDING_CLOSING)
        weir__ws_watch_closing(ctx, ws);
}

/* ---- weir_ws_close ---- */

/* Also a call from another thread, on its way to the loop, which alone knows the handlers. */
struct close_request {
    weir_msg msg;
    weir__mailbox box;
    weir_channel *channel; /* these: retained while it is posted */
    weir_promise *done;    /* NULL = none */
    unsigned code;
    char reason[REASON_MAX + 1];
};

static void free_request(weir_msg *msg)
{
    struct close_request *request = (struct close_request *)(void *)msg;

    weir_promise_release(request->done);
    weir_channel_release(request->channel);
    weir_memory_free(request);
}

const weir_msg_type weir__ws_close_type = {.name = "weir_ws_close", .destroy = free_request};

void weir__ws_write_close(weir_ctx *ctx, weir__ws *ws, weir_msg *msg, weir_promise *done)
{
    const struct close_request *request = (const struct close_request *)(const void *)msg;

    weir__ws_send_close(ctx, ws, request->code, request->reason);
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, 0, NULL);
}

static int create_request(unsigned code, const char *reason, struct close_request **ret_request)
{
    size_t length = reason != NULL ? strlen(reason) : 0;
    struct close_request *request;

    if (!is_valid_code(code) || length > REASON_MAX)
        return -EINVAL;
    request = weir_memory_alloc(sizeof(*request));
    if (request == NULL)
        return -ENOMEM;
    weir_msg_init(&request->msg, &weir__ws_close_type);
    request->channel = NULL;
    request->done = NULL;
    request->code = code;
    memcpy(request->reason, reason != NULL ? reason : "", length + 1);
    *ret_request = request;
    return 0;
}

static bool is_on_loop(const weir_channel *channel)
{
    weir_executor *loop = weir_channel_executor(channel);

    return loop != NULL && weir_in_executor(loop);
}

/* On the loop. Takes: request, on success. */
static int begin(weir_channel *channel, struct close_request *request, weir_promise *done)
{
    if (weir_pipeline_find_handler(weir_channel_pipeline(channel), &weir__ws_handler.handler) ==
        NULL)
        return weir_channel_is_open(channel) ? -EINVAL : WEIR_ECLOSED;
    weir_channel_write(channel, &request->msg, NULL);
    weir_channel_close(channel, done);
    return 0;
}

static void on_posted(struct close_request *request, uint32_t flags, int status)
{
    weir_channel *channel = request->channel;
    int err = status < 0 ? WEIR_ECLOSED : begin(channel, request, request->done);
    char name[128];

    (void)flags;
    if (err == 0)
        return;
    if (request->done != NULL)
        (void)weir_promise_fail(request->done, err, NULL);
    else if (err == -EINVAL)
        weir__warn_limited("websocket", weir_channel_format(channel, name, sizeof(name)),
                           "weir_ws_close: the channel is not a WebSocket");
    weir_msg_release(&request->msg);
}

/* The channel may move meanwhile. */
WEIR__MAILBOX_TYPE(request_type, "websocket", struct close_request, box,
                   weir_channel_executor(owner->channel), weir_msg_retain(&owner->msg),
                   weir_msg_release(&owner->msg), on_posted);

/* Takes: request. */
static void post(weir_channel *channel, struct close_request *request, weir_promise *done)
{
    request->channel = weir_channel_retain(channel);
    request->done = done != NULL ? weir_promise_retain(done) : NULL;
    weir__mailbox_init(&request->box, &request_type);
    (void)weir_msg_retain(&request->msg); /* it may run and be freed before the call returns */
    weir__mailbox_set(&request->box, 1);
    weir_msg_release(&request->msg);
}

int weir_ws_close(weir_channel *channel, unsigned code, const char *reason, weir_promise *done)
{
    struct close_request *request;
    int err = weir_channel_is_open(channel) ? 0 : WEIR_ECLOSED;

    if (err == 0 && weir_channel_executor(channel) == NULL)
        err = -EINVAL;
    if (err == 0)
        err = create_request(code, reason, &request);
    if (err == 0 && !is_on_loop(channel)) {
        post(channel, request, done);
    } else if (err == 0) {
        err = begin(channel, request, done);
        if (err < 0)
            weir_msg_release(&request->msg);
    }
    if (err < 0 && done != NULL)
        (void)weir_promise_fail(done, err, NULL);
    return err;
}

/* ---- slots ---- */

/* Keeps the promise of a close that waits. False if there is no memory. */
static bool hold(weir__ws *ws, weir_promise *done)
{
    if (done == NULL)
        return true;
    if (ws->close_done != NULL)
        return weir_promise_cascade(ws->close_done, done) == 0;
    ws->close_done = weir_promise_retain(done);
    return true;
}

/* Without auto-read the application may request nothing any more; see is_urgent. */
static void await_answer(weir_ctx *ctx)
{
    if (weir_decoder_has_demand(ctx))
        return;
    weir_decoder_resume(ctx);
    if (!weir_ctx_is_removed(ctx))
        weir_request_read(ctx);
}

void weir__ws_on_close(weir_ctx *ctx, weir_promise *done)
{
    weir__ws *ws = weir_ctx_state(ctx);

    if (ws->ending == WEIR__WS_ENDING_ENDED || !ws->is_open || ws->input == WEIR__WS_INPUT_CLOSED) {
        weir_close(ctx, done);
        return;
    }
    weir__ws_send_close(
        ctx, ws, ws->ending == WEIR__WS_ENDING_DRAINING ? WEIR_WS_GOING_AWAY : WEIR_WS_NORMAL,
        NULL);
    if (!hold(ws, done)) {
        weir__ws_end(ctx, ws);
        weir_close(ctx, done);
    } else if (ws->ending != WEIR__WS_ENDING_CLOSING) {
        ws->ending = WEIR__WS_ENDING_CLOSING;
        weir__ws_watch_closing(ctx, ws);
        await_answer(ctx);
    }
}

void weir__ws_on_draining(weir_ctx *ctx)
{
    weir__ws *ws = weir_ctx_state(ctx);

    if (ws->ending == WEIR__WS_ENDING_NONE)
        ws->ending = WEIR__WS_ENDING_DRAINING;
    weir_fire_draining(ctx);
    if (!weir_ctx_is_removed(ctx))
        weir__ws_on_close(ctx, NULL);
}
