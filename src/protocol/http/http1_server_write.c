/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of the codec: writing responses.
 */
#include "protocol/http/http1_server.h"

#include <errno.h>

#include <weir/channel.h>
#include <weir/error.h>

#include "protocol/http/full.h"
#include "protocol/http/http_counters.h"
#include "protocol/http/reset.h"

static weir__http1_server *server_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

/* A response that is not what its head says must not look like a whole one. */
static void fail(weir_ctx *ctx, weir__http1_server *server, weir_promise *done, int err,
                 const char *detail)
{
    server->phase = WEIR__HTTP1_DEAD;
    weir__http1_writer_deinit(&server->writer);
    weir__http_reset_on_close(weir_ctx_channel(ctx)); /* the report may close it */
    weir_ctx_report(ctx, done, err, detail);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

/* ---- heads ---- */

static void write_informational(weir_ctx *ctx, weir__http1_server *server,
                                const weir_http_response *response, weir_promise *done)
{
    weir__http1_framed framed = {.content = WEIR__HTTP1_NO_CONTENT, .length = -1};
    int err = 0;

    if (response->status == 100)
        server->awaits_continue = false;
    if (!server->is_http10) { /* its clients do not know them */
        err = weir__http1_writer_put_response(ctx, &server->writer, response, &framed);
        server->writer.is_open = false;
    }
    if (err < 0)
        weir_ctx_report(ctx, done, err, NULL);
    else if (done != NULL)
        weir__http1_writer_pass(ctx, &server->writer, done);
}

/* Persistence ends with this response if anyone wants that, and if it is unknown whether the client
 * will send the content that it has announced. Behind a CONNECT that is refused there may be bytes
 * for the tunnel, which are no requests. */
static bool closes_after(const weir__http1_server *server, const weir_http_response *response)
{
    return !server->is_persistent || response->closes || server->is_draining ||
           server->awaits_continue || server->method == WEIR_HTTP_METHOD_CONNECT ||
           server->requests >= server->config->max_requests;
}

static bool is_tunnel(const weir__http1_server *server, int status)
{
    return status == 101 ||
           (server->method == WEIR_HTTP_METHOD_CONNECT && status >= 200 && status < 300);
}

static weir__http1_framed frame(weir__http1_server *server, const weir_http_response *response)
{
    int status = response->status;
    weir__http1_framed framed = {.length = response->head.content_length, .has_date = true};

    if (is_tunnel(server, status)) {
        server->next = WEIR__HTTP1_NEXT_PROTOCOL;
        framed.content = WEIR__HTTP1_NO_CONTENT;
        framed.length = -1;
        framed.connection = status == 101 ? "Upgrade" : NULL;
        return framed;
    }
    server->next =
        closes_after(server, response) ? WEIR__HTTP1_NEXT_CLOSE : WEIR__HTTP1_NEXT_REQUEST;
    if (server->method == WEIR_HTTP_METHOD_HEAD || status == 204 || status == 304) {
        framed.content = WEIR__HTTP1_NO_CONTENT;
        if (status == 204 || (status == 304 && framed.length == 0)) /* 0: not set */
            framed.length = -1;
    } else if (framed.length >= 0) {
        framed.content = WEIR__HTTP1_LENGTH;
    } else if (server->is_http10) {
        framed.content = WEIR__HTTP1_UNTIL_CLOSE;
        server->next = WEIR__HTTP1_NEXT_CLOSE;
    } else {
        framed.content = WEIR__HTTP1_CHUNKED;
    }
    if (server->next == WEIR__HTTP1_NEXT_CLOSE)
        framed.connection = "close";
    else if (server->is_http10)
        framed.connection = "keep-alive";
    return framed;
}

static void write_response(weir_ctx *ctx, weir__http1_server *server,
                           const weir_http_response *response, weir_promise *done)
{
    weir__http1_framed framed;
    int err;

    if (server->phase == WEIR__HTTP1_DEAD) {
        weir_ctx_report(ctx, done, WEIR_ECLOSED,
                        "the request was refused or its connection closes");
        return;
    }
    if (server->phase == WEIR__HTTP1_HEAD || server->writer.is_open || server->has_responded) {
        weir_ctx_report(ctx, done, -EINVAL, "response without a request");
        return;
    }
    if (response->status < 200 && response->status != 101) {
        write_informational(ctx, server, response, done);
        return;
    }
    framed = frame(server, response);
    err = weir__http1_writer_put_response(ctx, &server->writer, response, &framed);
    if (err < 0) {
        fail(ctx, server, done, err, NULL);
        return;
    }
    weir__http_count_response(response->status);
    if (done != NULL)
        weir__http1_writer_pass(ctx, &server->writer, done);
}

/* ---- content and ends ---- */

static void write_content(weir_ctx *ctx, weir__http1_server *server, weir_msg *msg,
                          weir_promise *done)
{
    int err;

    if (!server->writer.is_open) {
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, server->phase == WEIR__HTTP1_DEAD ? WEIR_ECLOSED : -EINVAL,
                        "content without a response");
        return;
    }
    err = weir__http1_writer_put_content(ctx, &server->writer, msg, done);
    if (err < 0)
        fail(ctx, server, done, err, weir__http1_writer_detail(err));
}

/* The response has ended: goes on with the next request, or ends the connection. */
static void end_response(weir_ctx *ctx, weir__http1_server *server)
{
    if ((server->run & WEIR__HTTP1_BEGAN) != 0)
        server->ended++;
    else
        weir__http_record_requests(weir_ctx_now(ctx) - server->begun_ns, 1);
    if (server->next == WEIR__HTTP1_NEXT_CLOSE) {
        weir__http1_server_close(ctx, server);
        return;
    }
    if (server->phase != WEIR__HTTP1_RESPONSE) {
        server->has_responded = true; /* the rest of the request's content comes first */
        return;
    }
    server->phase = WEIR__HTTP1_HEAD;
    if (server->next == WEIR__HTTP1_NEXT_PROTOCOL)
        weir__http1_server_switch(ctx, server);
    else if (server->is_draining) {
        weir__http1_server_close(ctx, server);
        return;
    }
    if (server->input != WEIR__HTTP1_INPUT_OPEN || server->holds_end)
        weir__http1_server_resume(ctx, server);
}

static void write_end(weir_ctx *ctx, weir__http1_server *server, const weir_http_end *end,
                      weir_promise *done)
{
    int err;

    if (!server->writer.is_open) {
        weir_ctx_report(ctx, done, server->phase == WEIR__HTTP1_DEAD ? WEIR_ECLOSED : -EINVAL,
                        "end without a response");
        return;
    }
    err = weir__http1_writer_put_end(ctx, &server->writer, end, done);
    if (err < 0)
        fail(ctx, server, done, err, weir__http1_writer_detail(err));
    else
        end_response(ctx, server);
}

static void write_full(weir_ctx *ctx, weir__http1_server *server, const weir_http_full *full,
                       weir_promise *done)
{
    const weir_http_response *response = weir_http_full_response(full);

    if (response == NULL) {
        weir_ctx_report(ctx, done, -EINVAL, "request written to a client");
        return;
    }
    write_response(ctx, server, response, NULL);
    if (!server->writer.is_open) {
        weir_ctx_report(ctx, done, -EINVAL, "response without a request");
        return;
    }
    write_content(ctx, server, weir_buf_msg(weir_buf_retain(full->content)), NULL);
    write_end(ctx, server, full->end, done);
}

/* ---- small responses ---- */

bool weir__http1_server_answer(weir_ctx *ctx, const weir__http_answer *answer)
{
    weir__http1_server *server = server_of(ctx);

    if ((server->phase != WEIR__HTTP1_CONTENT && server->phase != WEIR__HTTP1_RESPONSE) ||
        server->has_responded || server->writer.is_open || server->is_http10 ||
        server->method == WEIR_HTTP_METHOD_HEAD || server->method == WEIR_HTTP_METHOD_CONNECT ||
        !server->is_persistent || server->is_draining || server->awaits_continue ||
        server->requests >= server->config->max_requests)
        return false;
    server->next = WEIR__HTTP1_NEXT_REQUEST;
    if (weir__http1_writer_put_answer(ctx, &server->writer, answer) < 0)
        return false;
    weir__http_count_response(answer->status);
    return true;
}

void weir__http1_server_end_answer(weir_ctx *ctx)
{
    weir__http1_server *server = server_of(ctx);

    server->writer.is_open = false;
    end_response(ctx, server);
}

/* ---- slots ---- */

void weir__http1_server_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir__http1_server *server = server_of(ctx);

    if (server->next == WEIR__HTTP1_SWITCHED) {
        weir_write(ctx, msg, done);
        return;
    }
    if (weir_http_response_of(msg) != NULL) {
        write_response(ctx, server, weir_http_response_of(msg), done);
    } else if (weir_http_end_of(msg) != NULL) {
        write_end(ctx, server, weir_http_end_of(msg), done);
    } else if (weir_http_full_of(msg) != NULL) {
        write_full(ctx, server, weir_http_full_of(msg), done);
    } else if (weir_http_request_of(msg) != NULL) {
        weir_ctx_report(ctx, done, -EINVAL, "request written to a client");
    } else {
        write_content(ctx, server, msg, done);
        return;
    }
    weir_msg_release(msg);
}

void weir__http1_server_flush(weir_ctx *ctx)
{
    weir__http1_server *server = server_of(ctx);

    if (server->run != 0 && server->next != WEIR__HTTP1_SWITCHED) {
        server->run |= WEIR__HTTP1_FLUSHES;
        return;
    }
    weir__http1_writer_pass(ctx, &server->writer, NULL);
    weir_flush(ctx);
}

void weir__http1_server_on_close(weir_ctx *ctx, weir_promise *done)
{
    weir__http1_server *server = server_of(ctx);

    server->phase = WEIR__HTTP1_DEAD;
    weir__http1_writer_pass(ctx, &server->writer, NULL);
    weir_close(ctx, done);
}

void weir__http1_server_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    weir__http1_writer_pass(ctx, &server_of(ctx)->writer, NULL);
    weir_shutdown_output(ctx, done);
}
