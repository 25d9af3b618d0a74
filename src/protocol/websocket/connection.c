/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler "websocket": one for both directions and both sides, because closing, pings and the
 * compression of a connection concern both.
 */
#include <errno.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/memory.h>
#include <weir/pipeline.h>

#include "base/keep_frame.h"
#include "base/options.h"
#include "protocol/websocket/websocket.h"

#define MAX_MESSAGE ((uint64_t)16 << 20)
#define DEFLATE_MIN 64
#define DEFLATE_MAX ((size_t)1 << 20)

static weir__ws *ws_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

/* ---- options ---- */

static int64_t or_default(int64_t value, int64_t default_value)
{
    if (value == WEIR_OFF)
        return WEIR_NEVER;
    return value != 0 ? value : default_value;
}

int weir__ws_read_options(const weir_ws_options *options, weir_ws_options *ret_options)
{
    int err = weir__options_read(ret_options, sizeof(*ret_options), options);

    if (err == 0 && ret_options->init == NULL)
        err = weir__options_reject("websocket", NULL, ".init is required");
    if (err == 0)
        err = weir__options_check("websocket", NULL,
                                  WEIR__OPTION_FROM(ret_options, ping_interval_ns, WEIR_OFF),
                                  WEIR__OPTION_FROM(ret_options, close_timeout_ns, WEIR_OFF));
    if (err == 0)
        err = weir__ws_check_options(ret_options);
    if (err < 0)
        return err;
    if (ret_options->max_message == 0)
        ret_options->max_message = MAX_MESSAGE;
    if (!ret_options->stream && ret_options->max_message > WEIR_BUF_MAX / 2)
        ret_options->max_message = WEIR_BUF_MAX / 2;
    if (ret_options->deflate_min == 0)
        ret_options->deflate_min = DEFLATE_MIN;
    if (ret_options->deflate_max == 0)
        ret_options->deflate_max = DEFLATE_MAX;
    ret_options->ping_interval_ns = or_default(ret_options->ping_interval_ns, weir_seconds(30));
    ret_options->close_timeout_ns = or_default(ret_options->close_timeout_ns, weir_seconds(5));
    return 0;
}

/* ---- lifecycle ---- */

static int init(void *state, const void *given)
{
    const weir__ws_setup *setup = given;
    const weir_ws_options *options = setup->options;
    weir__ws *ws = state;

    ws->is_client = setup->is_client;
    ws->max_message = options->max_message;
    ws->streams = options->stream;
    ws->passes_control = options->control_frames;
    ws->ping_interval_ns = options->ping_interval_ns;
    ws->close_timeout_ns = options->close_timeout_ns;
    ws->deflate_min = options->deflate_min;
    ws->deflate_max = options->deflate_max;
    if (!setup->agreed->deflate.is_on)
        return 0;
    return weir__ws_deflate_create(&setup->agreed->deflate, weir__ws_deflate_level(options),
                                   &ws->deflate);
}

static void deinit(void *state)
{
    weir__ws *ws = state;

    weir__ws_forget_incoming(ws);
    weir__ws_deflate_free(ws->deflate);
    weir_buf_release(ws->pong);
}

/* A close that waits for the peer does not wait for a handler that is gone. */
static void on_removed(weir_ctx *ctx)
{
    weir__ws *ws = ws_of(ctx);
    weir_promise *done = ws->close_done;

    if (ws->is_open)
        weir__ws_count_closed(ws);
    ws->close_done = NULL;
    if (done == NULL)
        return;
    weir_close(ctx, done);
    weir_promise_release(done);
}

/* ---- opening ---- */

struct opened_event {
    weir_ws_opened opened;
    weir_http_request *request; /* retained */
    weir_http_response *response;
    char protocol[];
};

static void free_opened(weir_msg *msg)
{
    struct opened_event *event = (struct opened_event *)(void *)msg;

    if (event->request != NULL)
        weir_msg_release(weir_http_request_msg(event->request));
    if (event->response != NULL)
        weir_msg_release(weir_http_response_msg(event->response));
    weir_memory_free(event);
}

static const weir_msg_type opened_type = {.name = "weir_ws_opened", .destroy = free_opened};

const weir_ws_opened *weir_ws_opened_of(const weir_msg *event)
{
    if (event == NULL || !weir_msg_is(event, &opened_type))
        return NULL;
    return (const weir_ws_opened *)(const void *)event;
}

static struct opened_event *create_opened(const weir__ws_setup *setup)
{
    const char *protocol = setup->agreed->protocol != NULL ? setup->agreed->protocol : "";
    size_t size = strlen(protocol) + 1;
    struct opened_event *event = weir_memory_alloc(sizeof(*event) + size);

    if (event == NULL)
        return NULL;
    weir_msg_init(&event->opened.base, &opened_type);
    event->request = setup->request;
    event->response = setup->response;
    if (setup->request != NULL)
        (void)weir_msg_retain(weir_http_request_msg(setup->request));
    if (setup->response != NULL)
        (void)weir_msg_retain(weir_http_response_msg(setup->response));
    memcpy(event->protocol, protocol, size);
    event->opened.request = setup->request;
    event->opened.response = setup->response;
    event->opened.protocol = event->protocol;
    event->opened.has_deflate = setup->agreed->deflate.is_on;
    return event;
}

/* The channel is about to be aborted: handlers that were added must not see what follows. */
static int fail_open(weir_pipeline *pipeline, int err)
{
    weir_ctx *ctx = weir_pipeline_find_handler(pipeline, &weir__ws_handler.handler);

    if (ctx != NULL)
        weir__ws_go_deaf(ws_of(ctx));
    return err;
}

int weir__ws_open(weir_channel *channel, const weir__ws_setup *setup)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    struct opened_event *event;
    weir_ctx *ctx;
    int err = weir_pipeline_add_last(pipeline, &weir__ws_handler.handler, setup);

    if (err == 0) {
        ctx = weir_pipeline_find_handler(pipeline, &weir__ws_handler.handler);
        ws_of(ctx)->decoder.demand.is_requested = false; /* it was HTTP that requested */
        err = setup->options->init(channel, setup->options->user_data);
    }
    if (err < 0)
        return fail_open(pipeline, err);
    ctx = weir_pipeline_find_handler(pipeline, &weir__ws_handler.handler);
    if (ctx == NULL || !weir_channel_is_active(channel))
        return WEIR_ECLOSED; /* by the application's init */
    event = create_opened(setup);
    if (event == NULL)
        return fail_open(pipeline, -ENOMEM);
    ws_of(ctx)->is_open = true;
    weir__http_count(WEIR__WS_CONNECTIONS + (setup->is_client ? 1u : 0u), 1);
    weir__ws_watch_peer(ctx, ws_of(ctx));
    weir_fire_event(ctx, &event->opened.base);
    return 0;
}

/* ---- slots ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    ws_of(ctx)->has_heard = true;
    weir_decoder_read(ctx, msg);
    weir__keep_frame();
}

static void on_writability(weir_ctx *ctx)
{
    weir__ws_send_pong(ctx, ws_of(ctx));
    weir_fire_writability(ctx);
}

/* The peer sends nothing more, not even a close frame. */
static int decode_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir__ws *ws = ws_of(ctx);

    (void)in;
    (void)ret_msg;
    weir__ws_go_deaf(ws);
    if (ws->ending != WEIR__WS_ENDING_ENDED)
        weir__ws_end(ctx, ws);
    return 0;
}

/* The end of the closing handshake is read, requested or not; up to one message that was not
 * requested. */
static bool is_urgent(weir_ctx *ctx)
{
    const weir__ws *ws = ws_of(ctx);

    return ws->ending == WEIR__WS_ENDING_CLOSING ||
           (ws->input == WEIR__WS_INPUT_CLOSED && ws->ending != WEIR__WS_ENDING_ENDED);
}

static void on_inactive(weir_ctx *ctx)
{
    weir__ws *ws = ws_of(ctx);

    weir__ws_go_deaf(ws);
    weir__ws_forget_incoming(ws);
    weir__ws_lose(ctx, ws);
    weir_decoder_inactive(ctx);
}

const weir_decoder weir__ws_handler = {.handler = {.name = "websocket",
                                                   .state_size = sizeof(weir__ws),
                                                   .init = init,
                                                   .deinit = deinit,
                                                   .removed = weir_decoder_removed,
                                                   .inactive = on_inactive,
                                                   .read = on_read,
                                                   .read_complete = weir_decoder_read_complete,
                                                   .event = weir_decoder_event,
                                                   .request_read = weir_decoder_request_read,
                                                   .buffers_reads = true,
                                                   .stays_on_loop = true,
                                                   .writability = on_writability,
                                                   .draining = weir__ws_on_draining,
                                                   .write = weir__ws_write,
                                                   .close = weir__ws_on_close},
                                       .decode = weir__ws_decode,
                                       .decode_last = decode_last,
                                       .is_urgent = is_urgent,
                                       .removed = on_removed};
