/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http1_server.h"

#include <errno.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/memory.h>
#include <weir/pipeline.h>

#include "base/no_stack_protector.h"
#include "protocol/http/http_counters.h"
#include "protocol/http/refusal.h"
#include "protocol/http/reset.h"

#define WAITING_MAX 65536u   /* bytes of later requests until reading is paused */
#define COPIED_HEAD_MAX 512u /* as http1_head.c */
#define FIELDS_SIZE 384u     /* room for fields behind a request */

static weir__http1_server *server_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

/* ---- lifecycle ---- */

static int init(void *state, const void *options)
{
    weir__http1_server *server = state;

    server->armed_until_ns = WEIR_NEVER;
    server->writer.is_server = true;
    return weir__http1_config_get(options, &server->config);
}

static void end_reading(weir__http1_server *server)
{
    weir__http1_reading *reading = server->reading;

    if (reading == NULL)
        return;
    server->reading = NULL;
    if (reading->request != NULL)
        weir_msg_release(weir_http_request_msg(reading->request));
    weir__http1_body_deinit(&reading->body);
    weir_memory_free(reading);
}

static void deinit(void *state)
{
    weir__http1_server *server = state;

    end_reading(server);
    weir__http1_writer_deinit(&server->writer);
    weir__http1_config_release(server->config);
}

static void on_added(weir_ctx *ctx)
{
    weir__http_count(WEIR__HTTP_CONNECTIONS, 1);
    if (weir_channel_is_active(weir_ctx_channel(ctx)))
        weir__http1_server_start_timer(ctx, server_of(ctx));
}

static void on_active(weir_ctx *ctx)
{
    weir__http1_server_start_timer(ctx, server_of(ctx));
    weir_fire_active(ctx);
}

static void resume_input(weir_ctx *ctx, weir__http1_server *server)
{
    server->waiting = 0;
    if (server->input == WEIR__HTTP1_INPUT_PAUSED)
        weir_ctx_resume_input(ctx);
    server->input = WEIR__HTTP1_INPUT_OPEN;
}

/*
 * Records the requests that began and ended in this run, with one clock read: they arrived
 * together, and their responses are sent together.
 */
static void record_run(weir_ctx *ctx, weir__http1_server *server)
{
    if (server->ended > 0)
        weir__http_record_requests(weir_ctx_turn_elapsed(ctx), server->ended);
    server->ended = 0;
}

static void on_removed(weir_ctx *ctx)
{
    weir__http1_server *server = server_of(ctx);

    record_run(ctx, server);
    weir__http_count(WEIR__HTTP_CONNECTIONS_CLOSED, 1);
    resume_input(ctx, server);
    weir__http1_writer_pass(ctx, &server->writer, NULL);
    if ((server->run & WEIR__HTTP1_FLUSHES) != 0)
        weir_flush(ctx);
    weir_decoder_removed(ctx);
}

static void set_stuck(weir__http1_server *server)
{
    if (server->input == WEIR__HTTP1_INPUT_OPEN)
        server->input = WEIR__HTTP1_INPUT_STUCK;
}

/* ---- the end of a connection ---- */

void weir__http1_server_close(weir_ctx *ctx, weir__http1_server *server)
{
    server->phase = WEIR__HTTP1_DEAD;
    weir__http1_writer_pass(ctx, &server->writer, NULL);
    weir_close(ctx, NULL);
}

static void reset(weir_ctx *ctx, weir__http1_server *server)
{
    server->phase = WEIR__HTTP1_DEAD;
    weir__http1_writer_deinit(&server->writer);
    weir__http_reset(weir_ctx_channel(ctx));
}

static int write_answer(weir_ctx *ctx, weir__http1_server *server, int status, const char *detail)
{
    weir__http1_framed framed = {
        .content = WEIR__HTTP1_LENGTH, .connection = "close", .has_date = true};
    weir_http_response *response;
    weir_buf *content;
    int err = weir__http_refusal_answer(status, detail, &response, &content);

    if (err < 0)
        return err;
    framed.length = (int64_t)weir_buf_readable(content);
    err = weir__http1_writer_put_response(ctx, &server->writer, response, &framed);
    if (err == 0)
        weir__http_count_response(status);
    weir_msg_release(weir_http_response_msg(response));
    if (err == 0 && server->method == WEIR_HTTP_METHOD_HEAD)
        server->writer.content = WEIR__HTTP1_NO_CONTENT;
    if (err == 0)
        return weir__http1_writer_put_content(ctx, &server->writer, weir_buf_msg(content), NULL);
    weir_buf_release(content);
    return err;
}

/* A response that has begun cannot be replaced: its client must not take it for a whole one. */
void weir__http1_server_refuse(weir_ctx *ctx, weir__http1_server *server, int status,
                               const char *detail)
{
    bool can_answer = !server->writer.is_open && !server->has_responded;

    if (server->reading != NULL && server->reading->request != NULL)
        server->method = server->reading->request->method;
    end_reading(server);
    server->phase = WEIR__HTTP1_DEAD;
    weir__http_count(WEIR__HTTP_REFUSED, 1);
    if (can_answer)
        can_answer = write_answer(ctx, server, status, detail) == 0;
    weir__http_refusal_fire(ctx, status, detail);
    if (weir_ctx_is_removed(ctx))
        return;
    if (can_answer)
        weir__http1_server_close(ctx, server);
    else
        reset(ctx, server);
}

void weir__http1_server_switch(weir_ctx *ctx, weir__http1_server *server)
{
    weir__http1_writer_pass(ctx, &server->writer, NULL);
    weir__http_count(WEIR__HTTP_UPGRADES, 1);
    server->next = WEIR__HTTP1_SWITCHED;
    (void)weir_timer_stop(&server->timer);
    (void)weir_decoder_finish(ctx);
    set_stuck(server);
}

/* ---- decoding ---- */

static const weir_decoder servers;
static const weir__http_codec codec = {&servers.handler, weir__http1_server_answer,
                                       weir__http1_server_end_answer};

/* Waits for something other than bytes. */
static int stall(weir_ctx *ctx, weir__http1_server *server)
{
    set_stuck(server);
    return weir_decoder_need(ctx, SIZE_MAX);
}

/* Refuses a request from within `decode`. */
static int refuse(weir_ctx *ctx, weir__http1_server *server, weir_buf *in, int result,
                  const char *detail)
{
    if (result > -100) /* -ENOMEM */
        return result;
    (void)weir_buf_skip(in, weir_buf_readable(in));
    weir__http1_server_refuse(ctx, server, -result, detail);
    return 0;
}

/* The request has ended: what is read next depends on its response. Returns as `decode`. */
static int end_request(weir_ctx *ctx, weir__http1_server *server, weir_msg *end, weir_msg **ret_msg)
{
    if (!server->has_responded) {
        server->phase = WEIR__HTTP1_RESPONSE;
        *ret_msg = end;
        return 1;
    }
    server->has_responded = false;
    server->phase = WEIR__HTTP1_HEAD;
    /* As after a response; the end comes first. */
    if (server->is_draining && server->next != WEIR__HTTP1_NEXT_PROTOCOL) {
        weir_decoder_pass(ctx, end);
        if (!weir_ctx_is_removed(ctx))
            weir__http1_server_close(ctx, server);
        return 0;
    }
    if (server->next == WEIR__HTTP1_NEXT_PROTOCOL)
        weir__http1_server_switch(ctx, server);
    *ret_msg = end;
    return 1;
}

/* Keeps the state of a head or of content beyond this call. */
static int begin_reading(weir__http1_server *server)
{
    server->reading = weir_memory_alloc(sizeof(*server->reading));
    if (server->reading == NULL)
        return -ENOMEM;
    *server->reading = (weir__http1_reading){0};
    return 0;
}

/* Begins the exchange of a complete head. */
static void begin_exchange(weir_ctx *ctx, weir__http1_server *server, weir_http_request *request,
                           const weir__http1_framing *framing)
{
    weir__http_count(WEIR__HTTP_REQUESTS + request->method, 1);
    if (server->run != 0)
        server->run |= WEIR__HTTP1_BEGAN;
    else
        server->begun_ns = weir_ctx_now(ctx);
    request->codec = &codec;
    server->phase = WEIR__HTTP1_CONTENT;
    server->method = request->method;
    server->is_http10 = request->head.version == WEIR_HTTP_1_0;
    server->is_persistent = framing->is_persistent;
    server->awaits_continue = request->expects_continue;
    server->next = WEIR__HTTP1_NEXT_REQUEST;
    server->since = WEIR__HTTP1_SINCE_NOTHING;
    server->requests += server->requests < UINT32_MAX;
}

/* Parses a head that has begun, or a new one with a parser on the stack. Returns as
 * weir__http1_parse_request. */
static int parse_head(weir__http1_server *server, weir__http1_parser *parser, weir_buf *in,
                      weir_http_request **request)
{
    size_t length = weir_buf_readable(in);
    int result;

    if (server->reading == NULL) {
        weir__http1_parser_init(parser);
        result =
            weir__http_request_alloc(sizeof(**request) + FIELDS_SIZE +
                                         (length < COPIED_HEAD_MAX ? length : COPIED_HEAD_MAX / 4),
                                     WEIR__HTTP_REQUEST_ROOM, request);
        if (result < 0)
            return result;
    } else {
        *parser = server->reading->parser;
        *request = server->reading->request;
        server->reading->request = NULL;
    }
    return weir__http1_parse_request(parser, &server->config->limits, *request, weir_buf_span(in));
}

/* The head is incomplete: keeps what was parsed. */
static int suspend_head(weir__http1_server *server, const weir__http1_parser *parser,
                        weir_http_request *request)
{
    if (server->reading == NULL && begin_reading(server) < 0) {
        weir_msg_release(weir_http_request_msg(request));
        return -ENOMEM;
    }
    server->reading->parser = *parser;
    server->reading->request = request;
    return 0;
}

/* Passes a complete head on; its end, too, if there is no content. */
static int pass_head(weir_ctx *ctx, weir__http1_server *server, weir_http_request *request,
                     const weir__http1_framing *framing, weir_msg **ret_msg)
{
    if (framing->content != WEIR__HTTP1_NO_CONTENT) {
        if (server->reading == NULL && begin_reading(server) < 0) {
            weir_msg_release(weir_http_request_msg(request));
            return -ENOMEM;
        }
        weir__http1_body_init(&server->reading->body, framing);
        begin_exchange(ctx, server, request, framing);
        *ret_msg = weir_http_request_msg(request);
        return 1;
    }
    end_reading(server);
    begin_exchange(ctx, server, request, framing);
    weir_decoder_pass(ctx, weir_http_request_msg(request));
    if (weir_ctx_is_removed(ctx) || server->phase != WEIR__HTTP1_CONTENT)
        return 0;
    return end_request(ctx, server, weir_http_end_static(), ret_msg);
}

WEIR__NO_STACK_PROTECTOR static int decode_head(weir_ctx *ctx, weir__http1_server *server,
                                                weir_buf *in, weir_msg **ret_msg)
{
    weir_http_request *request = NULL;
    weir__http1_framing framing;
    weir__http1_parser parser;
    int result;

    if (server->reading == NULL && !weir_ctx_is_writable(ctx))
        return stall(ctx, server);
    result = parse_head(server, &parser, in, &request);
    if (result == 0)
        return suspend_head(server, &parser, request);
    if (result > 0) {
        weir__http1_keep(&request->head.headers, &request->head.received, in, parser.at);
        (void)weir_buf_skip(in, parser.at);
        result = weir__http1_check_request(request, &framing, &parser.detail);
    }
    if (result < 0) {
        if (request != NULL) {
            server->method = request->method;
            weir_msg_release(weir_http_request_msg(request));
        }
        return refuse(ctx, server, in, result, parser.detail);
    }
    server->writer.expects_more = weir_buf_readable(in) > 0;
    return pass_head(ctx, server, request, &framing, ret_msg);
}

WEIR__NO_STACK_PROTECTOR static int decode_content(weir_ctx *ctx, weir__http1_server *server,
                                                   weir_buf *in, weir_msg **ret_msg)
{
    weir__http1_reading *reading = server->reading;
    size_t before = weir_buf_readable(in);
    weir_msg *end;
    weir_buf *content;
    int result = weir__http1_body_read(&reading->body, &reading->parser, &server->config->limits,
                                       (uint64_t)server->config->max_chunk, in, &content);

    server->received += (int64_t)(before - weir_buf_readable(in));
    server->awaits_continue = false;
    if (result >= 0 && result < 2) {
        *ret_msg = content != NULL ? weir_buf_msg(content) : NULL;
        return content != NULL ? 1 : result;
    }
    if (content != NULL) {
        weir_decoder_pass(ctx, weir_buf_msg(content));
        if (weir_ctx_is_removed(ctx) || server->phase != WEIR__HTTP1_CONTENT)
            return 0;
    }
    if (result < 0)
        return refuse(ctx, server, in, result, reading->parser.detail);
    end = weir__http1_body_take_end(&reading->body);
    end_reading(server);
    return end_request(ctx, server, end, ret_msg);
}

WEIR__NO_STACK_PROTECTOR static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir__http1_server *server = server_of(ctx);

    switch (server->phase) {
    case WEIR__HTTP1_HEAD:
        return decode_head(ctx, server, in, ret_msg);
    case WEIR__HTTP1_CONTENT:
        return decode_content(ctx, server, in, ret_msg);
    case WEIR__HTTP1_RESPONSE:
        return stall(ctx, server);
    default:
        (void)weir_buf_skip(in, weir_buf_readable(in));
        return 1;
    }
}

/* The client sends nothing more; all its whole requests have been answered. */
static int decode_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir__http1_server *server = server_of(ctx);

    (void)ret_msg;
    if (server->phase == WEIR__HTTP1_DEAD || server->next == WEIR__HTTP1_SWITCHED ||
        !weir_channel_is_active(weir_ctx_channel(ctx)))
        return 0;
    if (server->phase == WEIR__HTTP1_CONTENT || weir_buf_readable(in) > 0)
        weir__http1_server_refuse(ctx, server, 400, "stream ended in the middle of a request");
    else
        weir__http1_server_close(ctx, server);
    return 0;
}

/* ---- the end of a run ---- */

/* True if the end of the input has to wait behind requests that were received before it. */
static bool has_requests(const weir__http1_server *server)
{
    return server->phase == WEIR__HTTP1_RESPONSE || server->input != WEIR__HTTP1_INPUT_OPEN;
}

/* True if a client that has ended its stream is taken to have left in the middle of a request. */
static bool is_abandoned(const weir__http1_server *server)
{
    bool is_answering = server->phase == WEIR__HTTP1_RESPONSE ||
                        (server->phase == WEIR__HTTP1_CONTENT && !server->has_responded);

    return is_answering && !server->config->keeps_half_closed;
}

static void pass_end_if_due(weir_ctx *ctx, weir__http1_server *server)
{
    if (is_abandoned(server)) {
        reset(ctx, server);
    } else if (!has_requests(server)) {
        server->holds_end = false;
        weir_decoder_event(ctx, weir_msg_retain(weir_event_input_closed()));
    }
}

/* Ends a run, which is what a read, or a resumption, decodes: flushes and resumes, in a loop,
 * because either may cause the other. */
static void flush_and_resume(weir_ctx *ctx, weir__http1_server *server)
{
    while ((server->run & (WEIR__HTTP1_FLUSHES | WEIR__HTTP1_RESUMES)) != 0) {
        if ((server->run & WEIR__HTTP1_FLUSHES) != 0) {
            server->run &= (uint8_t)~WEIR__HTTP1_FLUSHES;
            weir__http1_writer_pass(ctx, &server->writer, NULL);
            weir_flush(ctx);
        } else {
            server->run &= (uint8_t)~WEIR__HTTP1_RESUMES;
            resume_input(ctx, server);
            weir_decoder_resume(ctx);
        }
        if (weir_ctx_is_removed(ctx))
            return;
    }
    record_run(ctx, server);
    if ((server->run & WEIR__HTTP1_BEGAN) != 0 &&
        server->phase != WEIR__HTTP1_HEAD) /* it is answered later */
        server->begun_ns = weir_ctx_now(ctx) - weir_ctx_turn_elapsed(ctx);
    server->run = 0;
    if (server->holds_end)
        pass_end_if_due(ctx, server);
}

void weir__http1_server_resume(weir_ctx *ctx, weir__http1_server *server)
{
    bool is_inside = server->run != 0;

    server->run |= WEIR__HTTP1_RUNS;
    if (server->input != WEIR__HTTP1_INPUT_OPEN)
        server->run |= WEIR__HTTP1_RESUMES;
    if (!is_inside)
        flush_and_resume(ctx, server);
}

static void count_waiting(weir_ctx *ctx, weir__http1_server *server, size_t bytes)
{
    server->waiting += (uint32_t)bytes;
    if (server->waiting > WAITING_MAX && server->input == WEIR__HTTP1_INPUT_STUCK &&
        weir_ctx_pause_input(ctx) == 0)
        server->input = WEIR__HTTP1_INPUT_PAUSED;
}

/* After the removal: the end of the input follows the bytes of the next protocol. */
static void pass_held_end(weir_ctx *ctx)
{
    const weir__http1_server *server = server_of(ctx);

    if (server->holds_end && server->next == WEIR__HTTP1_SWITCHED &&
        weir_channel_is_active(weir_ctx_channel(ctx)))
        weir_fire_event(ctx, weir_msg_retain(weir_event_input_closed()));
}

/* ---- slots ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir__http1_server *server = server_of(ctx);

    if (server->next != WEIR__HTTP1_SWITCHED)
        weir__http_count(WEIR__HTTP_BYTES_RECEIVED, weir__http_bytes_of(msg));
    if (server->input != WEIR__HTTP1_INPUT_OPEN)
        count_waiting(ctx, server, weir_msg_size(msg));
    if (server->run != 0) {
        weir_decoder_read(ctx, msg);
        return;
    }
    server->run = WEIR__HTTP1_RUNS;
    weir_decoder_read(ctx, msg);
    if (weir_ctx_is_removed(ctx))
        return;
    flush_and_resume(ctx, server);
    if (!weir_ctx_is_removed(ctx) &&
        (server->phase == WEIR__HTTP1_CONTENT || server->reading != NULL))
        weir__http1_server_watch(ctx, server);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    weir__http1_server *server = server_of(ctx);

    if (event == weir_event_hangup() &&
        server->next != WEIR__HTTP1_SWITCHED) { /* overtakes what was not read */
        if (is_abandoned(server)) {
            weir_msg_release(event);
            reset(ctx, server);
        } else {
            weir_fire_event(ctx, event);
        }
        return;
    }
    if (event != weir_event_input_closed() || server->next == WEIR__HTTP1_SWITCHED ||
        !has_requests(server)) {
        weir_decoder_event(ctx, event);
        return;
    }
    weir_msg_release(event);
    server->holds_end = true;
    if (server->run == 0)
        pass_end_if_due(ctx, server); /* which resets the connection of a client that left */
}

static void on_writability(weir_ctx *ctx)
{
    weir__http1_server *server = server_of(ctx);

    server->output_since_ns = 0; /* a new period begins when it is unwritable again */
    if (!weir_ctx_is_writable(ctx))
        weir__http1_server_watch(ctx, server);
    else if (server->input != WEIR__HTTP1_INPUT_OPEN && server->phase == WEIR__HTTP1_HEAD)
        weir__http1_server_resume(ctx, server);
    if (!weir_ctx_is_removed(ctx))
        weir_fire_writability(ctx);
}

/* The first request of a connection may be on its way: the head timeout limits the wait for it. */
static bool is_idle(const weir__http1_server *server)
{
    return server->phase == WEIR__HTTP1_HEAD && server->reading == NULL && server->requests > 0 &&
           server->next != WEIR__HTTP1_SWITCHED;
}

static void on_draining(weir_ctx *ctx)
{
    weir__http1_server *server = server_of(ctx);

    server->is_draining = true;
    weir_fire_draining(ctx);
    if (!weir_ctx_is_removed(ctx) && is_idle(server))
        weir__http1_server_close(ctx, server);
}

static const weir_decoder servers = {
    .handler = {.name = "http1-server",
                .stays_on_loop = true,
                .state_size = sizeof(weir__http1_server),
                .init = init,
                .deinit = deinit,
                .added = on_added,
                .removed = on_removed,
                .read = on_read,
                .event = on_event,
                .inactive = weir_decoder_inactive,
                .read_complete = weir_decoder_read_complete,
                .request_read = weir_decoder_request_read,
                .buffers_reads = true,
                .active = on_active,
                .writability = on_writability,
                .draining = on_draining,
                .write = weir__http1_server_write,
                .flush = weir__http1_server_flush,
                .close = weir__http1_server_on_close,
                .shutdown_output = weir__http1_server_shutdown_output},
    .decode = decode,
    .decode_last = decode_last,
    .removed = pass_held_end};

int weir_http1_server_add(weir_pipeline *pipeline, const weir_http1_options *options)
{
    return weir_pipeline_add_last(pipeline, &servers.handler, options);
}
