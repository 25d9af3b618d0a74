/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of the codec: requests out, responses in.
 */
#include <weir/http1.h>

#include <errno.h>

#include <weir/channel.h>
#include <weir/codec.h>
#include <weir/error.h>
#include <weir/pipeline.h>

#include "protocol/http/full.h"
#include "protocol/http/http1_body.h"
#include "protocol/http/http1_config.h"
#include "protocol/http/http1_writer.h"
#include "protocol/http/reset.h"

enum phase {
    HEAD,
    CONTENT,
    DEAD, /* malformed input, or the last response was read */
};

/* What matters of a request for its response. */
enum kind {
    OTHER,
    TO_HEAD,    /* its response has no content */
    TO_CONNECT, /* a tunnel follows if it succeeds */
    TO_UPGRADE, /* another protocol may follow */
};

#define OUTSTANDING_MAX 32

struct client {
    weir_decoder_state decoder; /* first */
    weir__http1_writer writer;
    weir__http1_parser parser;
    weir__http1_body body;
    weir_http_response *response; /* whose head is being read */
    const weir__http1_config *config;
    uint64_t kinds;      /* two bits for each request without a whole response, the oldest lowest */
    uint8_t outstanding; /* their number */
    uint8_t phase;
    bool closes;       /* the connection ends with this response */
    bool switches;     /* another protocol follows this response */
    bool has_switched; /* everything passes unchanged */
    bool is_broken;    /* an error was reported: the end of the input is not one in order */
};

static struct client *client_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

static int init(void *state, const void *options)
{
    return weir__http1_config_get(options, &((struct client *)state)->config);
}

static void deinit(void *state)
{
    struct client *client = state;

    if (client->response != NULL)
        weir_msg_release(weir_http_response_msg(client->response));
    weir__http1_body_deinit(&client->body);
    weir__http1_writer_deinit(&client->writer);
    weir__http1_config_release(client->config);
}

static void on_removed(weir_ctx *ctx)
{
    weir__http1_writer_pass(ctx, &client_of(ctx)->writer, NULL);
    weir_decoder_removed(ctx);
}

/* ---- reading ---- */

/* Fires an error and closes, from within `decode`. */
static int fail(weir_ctx *ctx, struct client *client, weir_buf *in, int err, const char *detail)
{
    (void)weir_buf_skip(in, weir_buf_readable(in));
    client->phase = DEAD;
    weir_fire_error(ctx, err, detail);
    if (!weir_ctx_is_removed(ctx))
        weir_close(ctx, NULL);
    return 0;
}

/* The result of a parser: a status means that the server's message is malformed. */
static int refuse(weir_ctx *ctx, struct client *client, weir_buf *in, int result)
{
    if (result > -100) /* -ENOMEM */
        return result;
    return fail(ctx, client, in, result == -414 || result == -431 ? WEIR_ETOOLONG : WEIR_EMALFORMED,
                client->parser.detail);
}

static enum kind first_kind(const struct client *client)
{
    return (enum kind)(client->kinds & 3);
}

/* The response has ended: passes its end on. */
static int end_response(weir_ctx *ctx, struct client *client, weir_msg *end)
{
    client->kinds >>= 2;
    client->outstanding--;
    client->phase = HEAD;
    if (client->switches) {
        weir__http1_writer_pass(ctx, &client->writer, NULL);
        client->has_switched = true;
        (void)weir_decoder_finish(ctx);
    } else if (client->closes || client->writer.is_open) {
        /* A response to a request that has not ended: most likely an error; the server may not
         * read the rest. */
        client->phase = DEAD;
    }
    weir_decoder_pass(ctx, end);
    if (!weir_ctx_is_removed(ctx) && client->phase == DEAD)
        weir_close(ctx, NULL);
    return 0;
}

static int begin_head(struct client *client)
{
    weir__http1_parser_init(&client->parser);
    return weir__http_response_alloc(1024, &client->response);
}

/* Sets what follows the response. Fails if it switches protocols without a request. */
static int frame(struct client *client, weir_http_response *response,
                 weir__http1_framing *ret_framing)
{
    static const enum weir_http_method methods[] = {
        [OTHER] = WEIR_HTTP_METHOD_OTHER,
        [TO_HEAD] = WEIR_HTTP_METHOD_HEAD,
        [TO_CONNECT] = WEIR_HTTP_METHOD_CONNECT,
        [TO_UPGRADE] = WEIR_HTTP_METHOD_OTHER,
    };
    enum kind kind = first_kind(client);
    int status = response->status;
    int err =
        weir__http1_check_response(response, methods[kind], ret_framing, &client->parser.detail);

    if (err < 0)
        return err;
    if (status == 101 && kind != TO_UPGRADE) {
        client->parser.detail = "status 101 without an Upgrade in the request";
        return -400;
    }
    client->switches = status == 101 || (kind == TO_CONNECT && status >= 200 && status < 300);
    client->closes = !ret_framing->is_persistent || (kind == TO_CONNECT && !client->switches);
    if (client->switches) {
        ret_framing->content = WEIR__HTTP1_NO_CONTENT;
        response->head.content_length = 0;
    }
    return 0;
}

static int decode_head(weir_ctx *ctx, struct client *client, weir_buf *in, weir_msg **ret_msg)
{
    weir_http_response *response;
    weir__http1_framing framing;
    int result = 0;

    if (client->outstanding == 0)
        return fail(ctx, client, in, WEIR_EMALFORMED, "response without a request");
    if (client->response == NULL)
        result = begin_head(client);
    if (result < 0)
        return result;
    response = client->response;
    result = weir__http1_parse_response(&client->parser, &client->config->limits, response,
                                        weir_buf_span(in));
    if (result == 0)
        return 0;
    if (result > 0) {
        weir__http1_keep(&response->head.headers, &response->head.received, in, client->parser.at);
        (void)weir_buf_skip(in, client->parser.at);
        result = frame(client, response, &framing);
    }
    if (result < 0)
        return refuse(ctx, client, in, result);
    client->response = NULL;
    *ret_msg = weir_http_response_msg(response);
    if (response->status < 200 && response->status != 101)
        return 1; /* another response follows */
    client->phase = CONTENT;
    weir__http1_body_init(&client->body, &framing);
    if (framing.content != WEIR__HTTP1_NO_CONTENT)
        return 1;
    *ret_msg = NULL;
    weir_decoder_pass(ctx, weir_http_response_msg(response));
    if (weir_ctx_is_removed(ctx) || client->phase != CONTENT)
        return 0;
    (void)end_response(ctx, client, weir_http_end_static());
    return weir_ctx_is_removed(ctx) ? 0 : 1;
}

static int decode_content(weir_ctx *ctx, struct client *client, weir_buf *in, weir_msg **ret_msg)
{
    weir_buf *content;
    int result = weir__http1_body_read(&client->body, &client->parser, &client->config->limits,
                                       (uint64_t)client->config->max_chunk, in, &content);

    if (result >= 0 && result < 2) {
        *ret_msg = content != NULL ? weir_buf_msg(content) : NULL;
        return content != NULL ? 1 : result;
    }
    if (content != NULL) {
        weir_decoder_pass(ctx, weir_buf_msg(content));
        if (weir_ctx_is_removed(ctx) || client->phase != CONTENT)
            return 0;
    }
    if (result < 0)
        return refuse(ctx, client, in, result);
    (void)end_response(ctx, client, weir__http1_body_take_end(&client->body));
    return weir_ctx_is_removed(ctx) ? 0 : 1;
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct client *client = client_of(ctx);

    switch (client->phase) {
    case HEAD:
        return decode_head(ctx, client, in, ret_msg);
    case CONTENT:
        return decode_content(ctx, client, in, ret_msg);
    default:
        (void)weir_buf_skip(in, weir_buf_readable(in));
        return 1;
    }
}

/* The server sends nothing more. */
static int decode_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct client *client = client_of(ctx);
    weir_channel *channel = weir_ctx_channel(ctx);

    (void)ret_msg;
    if (client->phase == DEAD || client->is_broken)
        return 0;
    if (client->phase == CONTENT && client->body.content == WEIR__HTTP1_UNTIL_CLOSE &&
        weir_channel_has_peer_ended(channel))
        return end_response(ctx, client, weir_http_end_static());
    if (client->phase == CONTENT || client->response != NULL)
        return fail(ctx, client, in, WEIR_ECUTOFF, "connection closed in the middle of a response");
    client->phase = DEAD;
    if (weir_channel_is_open(channel))
        weir_close(ctx, NULL);
    return 0;
}

/* ---- writing ---- */

static void fail_write(weir_ctx *ctx, struct client *client, weir_promise *done, int err,
                       const char *detail)
{
    client->phase = DEAD;
    weir__http1_writer_deinit(&client->writer);
    weir__http_reset_on_close(weir_ctx_channel(ctx)); /* the report may close it */
    weir_ctx_report(ctx, done, err, detail);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static enum kind kind_of(const weir_http_request *request)
{
    if (request->method == WEIR_HTTP_METHOD_HEAD)
        return TO_HEAD;
    if (request->method == WEIR_HTTP_METHOD_CONNECT)
        return TO_CONNECT;
    return weir__http_headers_have(&request->head.headers, WEIR_HTTP_UPGRADE) ? TO_UPGRADE : OTHER;
}

/* Hop-by-hop fields are named by Connection (RFC 9110 7.6.1). */
static const char *connection_of(const weir_http_headers *headers)
{
    bool has_te = weir__http_headers_have(headers, WEIR_HTTP_TE);

    if (weir__http_headers_have(headers, WEIR_HTTP_UPGRADE))
        return has_te ? "Upgrade, TE" : "Upgrade";
    return has_te ? "TE" : NULL;
}

static bool usually_has_content(const weir_http_request *request)
{
    return request->method == WEIR_HTTP_METHOD_POST || request->method == WEIR_HTTP_METHOD_PUT ||
           request->method == WEIR_HTTP_METHOD_PATCH;
}

static const char *check_request(const struct client *client, const weir_http_request *request,
                                 int *ret_err)
{
    *ret_err = -EINVAL;
    if (client->writer.is_open)
        return "request before the end of the previous one";
    if (!weir__http_headers_have(&request->head.headers, WEIR_HTTP_HOST) &&
        weir_http_request_authority(request).length == 0)
        return "request without Host";
    *ret_err = WEIR_EFULL;
    if (client->outstanding == OUTSTANDING_MAX)
        return "more than 32 requests without a response";
    *ret_err = WEIR_ECLOSED;
    if (client->phase == DEAD)
        return "the connection closes";
    *ret_err = 0;
    return NULL;
}

static void write_request(weir_ctx *ctx, struct client *client, const weir_http_request *request,
                          weir_promise *done)
{
    weir__http1_framed framed = {.length = request->head.content_length};
    int err;
    const char *detail = check_request(client, request, &err);

    if (err < 0) {
        weir_ctx_report(ctx, done, err, detail);
        return;
    }
    framed.connection = connection_of(&request->head.headers);
    if (framed.length > 0)
        framed.content = WEIR__HTTP1_LENGTH;
    else if (framed.length < 0)
        framed.content = WEIR__HTTP1_CHUNKED;
    else if (!usually_has_content(request))
        framed.length = -1;
    err = weir__http1_writer_put_request(ctx, &client->writer, request, &framed);
    if (err < 0) {
        weir_ctx_report(ctx, done, err, NULL); /* nothing was written */
        return;
    }
    client->kinds |= (uint64_t)kind_of(request) << (2 * client->outstanding);
    client->outstanding++;
    if (done != NULL)
        weir__http1_writer_pass(ctx, &client->writer, done);
}

static void write_content(weir_ctx *ctx, struct client *client, weir_msg *msg, weir_promise *done)
{
    int err;

    if (!client->writer.is_open) {
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, client->phase == DEAD ? WEIR_ECLOSED : -EINVAL,
                        "content without a request");
        return;
    }
    if (client->writer.content == WEIR__HTTP1_NO_CONTENT && weir_msg_size(msg) > 0) {
        weir_msg_release(msg);
        fail_write(ctx, client, done, WEIR_ETOOLONG, weir__http1_writer_detail(WEIR_ETOOLONG));
        return;
    }
    err = weir__http1_writer_put_content(ctx, &client->writer, msg, done);
    if (err < 0)
        fail_write(ctx, client, done, err, weir__http1_writer_detail(err));
}

static void write_end(weir_ctx *ctx, struct client *client, const weir_http_end *end,
                      weir_promise *done)
{
    int err;

    if (!client->writer.is_open) {
        weir_ctx_report(ctx, done, client->phase == DEAD ? WEIR_ECLOSED : -EINVAL,
                        "end without a request");
        return;
    }
    err = weir__http1_writer_put_end(ctx, &client->writer, end, done);
    if (err < 0)
        fail_write(ctx, client, done, err, weir__http1_writer_detail(err));
}

static void write_full(weir_ctx *ctx, struct client *client, const weir_http_full *full,
                       weir_promise *done)
{
    const weir_http_request *request = weir_http_full_request(full);
    const char *detail;
    int err = -EINVAL;

    detail =
        request != NULL ? check_request(client, request, &err) : "response written to a server";
    if (err < 0) {
        weir_ctx_report(ctx, done, err, detail);
        return;
    }
    write_request(ctx, client, request, NULL);
    write_content(ctx, client, weir_buf_msg(weir_buf_retain(full->content)), NULL);
    write_end(ctx, client, full->end, done);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct client *client = client_of(ctx);

    if (client->has_switched) {
        weir_write(ctx, msg, done);
        return;
    }
    if (weir_http_request_of(msg) != NULL) {
        write_request(ctx, client, weir_http_request_of(msg), done);
    } else if (weir_http_end_of(msg) != NULL) {
        write_end(ctx, client, weir_http_end_of(msg), done);
    } else if (weir_http_full_of(msg) != NULL) {
        write_full(ctx, client, weir_http_full_of(msg), done);
    } else if (weir_http_response_of(msg) != NULL) {
        weir_ctx_report(ctx, done, -EINVAL, "response written to a server");
    } else {
        write_content(ctx, client, msg, done);
        return;
    }
    weir_msg_release(msg);
}

static void on_flush(weir_ctx *ctx)
{
    weir__http1_writer_pass(ctx, &client_of(ctx)->writer, NULL);
    weir_flush(ctx);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    weir__http1_writer_pass(ctx, &client_of(ctx)->writer, NULL);
    weir_close(ctx, done);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    weir__http1_writer_pass(ctx, &client_of(ctx)->writer, NULL);
    weir_shutdown_output(ctx, done);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    client_of(ctx)->is_broken = true;
    weir_fire_error(ctx, err, detail);
}

static const weir_decoder clients = {.handler = {.name = "http1-client",
                                                 .stays_on_loop = true,
                                                 .state_size = sizeof(struct client),
                                                 .init = init,
                                                 .deinit = deinit,
                                                 .removed = on_removed,
                                                 .inactive = weir_decoder_inactive,
                                                 .read = weir_decoder_read,
                                                 .read_complete = weir_decoder_read_complete,
                                                 .event = weir_decoder_event,
                                                 .error = on_error,
                                                 .request_read = weir_decoder_request_read,
                                                 .buffers_reads = true,
                                                 .write = on_write,
                                                 .flush = on_flush,
                                                 .close = on_close,
                                                 .shutdown_output = on_shutdown_output},
                                     .decode = decode,
                                     .decode_last = decode_last};

int weir_http1_client_add(weir_pipeline *pipeline, const weir_http1_options *options)
{
    return weir_pipeline_add_last(pipeline, &clients.handler, options);
}
