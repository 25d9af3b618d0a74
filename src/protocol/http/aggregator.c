/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns heads, content and ends into whole messages.
 */
#include <weir/http.h>

#include <errno.h>

#include <weir/codec.h>
#include <weir/composite.h>
#include <weir/error.h>

#include "protocol/http/full.h"
#include "protocol/http/refusal.h"

#define MAX_CONTENT_DEFAULT (UINT64_C(1) << 20)

struct aggregator {
    weir_msg_decoder_state decoder;
    weir_msg *head;    /* NULL between messages */
    weir_buf *content; /* NULL = none yet */
    uint64_t max_content;
    bool is_shared;   /* content is a piece as it was received */
    bool is_skipping; /* the message was refused */
};

static int init(void *state, const void *options)
{
    struct aggregator *aggregator = state;
    uint64_t max = *(const uint64_t *)options;

    aggregator->max_content = max != 0 ? max : MAX_CONTENT_DEFAULT;
    if (aggregator->max_content > WEIR_BUF_MAX)
        aggregator->max_content = WEIR_BUF_MAX;
    return 0;
}

static void discard(struct aggregator *aggregator)
{
    weir_msg_release(aggregator->head);
    weir_buf_release(aggregator->content);
    aggregator->head = NULL;
    aggregator->content = NULL;
}

static void deinit(void *state)
{
    discard(state);
}

/* The server answers and the codec closes; a client can only close. */
static int refuse(weir_ctx *ctx, struct aggregator *aggregator)
{
    static const char detail[] = "content longer than the limit";
    bool is_request = weir_http_request_of(aggregator->head) != NULL;
    int err;

    discard(aggregator);
    aggregator->is_skipping = true;
    if (!is_request) {
        err = weir_msg_decoder_fail(ctx, WEIR_ETOOLONG, detail);
        weir_close(ctx, NULL);
        return err;
    }
    err = weir__http_refusal_write(ctx, 413, detail);
    if (err == 0)
        weir__http_refusal_fire(ctx, 413, detail);
    else
        weir_close(ctx, NULL);
    return err;
}

static int send_continue(weir_ctx *ctx)
{
    weir_http_response *response;
    int err = weir_http_response_create(100, &response);

    if (err == 0)
        weir_write_and_flush(ctx, weir_http_response_msg(response), NULL);
    return err;
}

static int on_request(weir_ctx *ctx, struct aggregator *aggregator, weir_http_request *request)
{
    int64_t length = weir_http_request_content_length(request);

    discard(aggregator);
    aggregator->is_skipping = false;
    aggregator->head = weir_msg_retain(weir_http_request_msg(request));
    if (length > 0 && (uint64_t)length > aggregator->max_content)
        return refuse(ctx, aggregator);
    return weir_http_request_expects_continue(request) ? send_continue(ctx) : 0;
}

static int on_response(struct aggregator *aggregator, weir_http_response *response,
                       weir_msg_list *out)
{
    int status = weir_http_response_status(response);
    weir_msg *head = weir_msg_retain(weir_http_response_msg(response));

    if (status < 200 && status != 101)
        return weir_msg_list_add(out, head);
    discard(aggregator);
    aggregator->is_skipping = false;
    aggregator->head = head;
    return 0;
}

/* Makes the content a buffer that can be appended to. */
static int make_own(struct aggregator *aggregator, size_t more)
{
    weir_buf *own, *before = aggregator->content;
    size_t length = before != NULL ? weir_buf_readable(before) : 0;
    int err;

    if (before != NULL && !aggregator->is_shared)
        return 0;
    err = weir_buf_create(length + more, 0, &own);
    if (err < 0)
        return err;
    if (length > 0)
        (void)weir_buf_write_bytes(own, weir_buf_bytes(before), length);
    weir_buf_release(before);
    aggregator->content = own;
    aggregator->is_shared = false;
    return 0;
}

static int append(struct aggregator *aggregator, weir_msg *msg, size_t length)
{
    weir_buf *buf = weir_buf_of(msg), *content;
    int err;

    if (aggregator->content == NULL && buf != NULL) {
        aggregator->content = weir_buf_retain(buf);
        aggregator->is_shared = true;
        return 0;
    }
    err = make_own(aggregator, length);
    content = aggregator->content;
    if (err < 0)
        return err;
    if (buf != NULL)
        return weir_buf_write_bytes(content, weir_buf_bytes(buf), length);
    err = weir_buf_reserve(content, length);
    if (err == 0)
        err = weir_composite_peek_bytes(weir_composite_of(msg), weir_buf_space(content), length);
    return err == 0 ? weir_buf_advance(content, length) : err;
}

/* A message without its content would be a wrong one: it is dropped. */
static int on_content(weir_ctx *ctx, struct aggregator *aggregator, weir_msg *msg)
{
    size_t length = weir_msg_size(msg);
    uint64_t before =
        aggregator->content != NULL ? weir_buf_readable(aggregator->content) : UINT64_C(0);
    int err;

    if (length > aggregator->max_content - before)
        return refuse(ctx, aggregator);
    err = append(aggregator, msg, length);
    if (err < 0) {
        discard(aggregator);
        aggregator->is_skipping = true;
        weir_close(ctx, NULL);
    }
    return err;
}

static int on_end(weir_ctx *ctx, struct aggregator *aggregator, weir_msg *msg, weir_msg_list *out)
{
    weir_msg *head = aggregator->head;
    weir_buf *content = aggregator->content;
    weir_http_full *full;
    int err;

    aggregator->head = NULL;
    aggregator->content = NULL;
    err = weir__http_full_create(head, content, weir_http_end_of(weir_msg_retain(msg)), &full);
    if (err == 0)
        return weir_msg_list_add(out, weir_http_full_msg(full));
    weir_close(ctx, NULL);
    return err;
}

static int decode(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    struct aggregator *aggregator = weir_ctx_state(ctx);

    if (weir_http_request_of(msg) != NULL)
        return on_request(ctx, aggregator, weir_http_request_of(msg));
    if (weir_http_response_of(msg) != NULL)
        return on_response(aggregator, weir_http_response_of(msg), out);
    if (aggregator->is_skipping)
        return 0;
    if (aggregator->head == NULL)
        return weir_msg_list_add(out, weir_msg_retain(msg));
    if (weir_http_end_of(msg) != NULL)
        return on_end(ctx, aggregator, msg, out);
    if (weir_buf_of(msg) != NULL || weir_composite_of(msg) != NULL)
        return on_content(ctx, aggregator, msg);
    return weir_msg_list_add(out, weir_msg_retain(msg));
}

static const weir_msg_decoder aggregators = {.handler = {.name = "http-aggregator",
                                                         WEIR_MSG_DECODER_SLOTS(struct aggregator),
                                                         .init = init,
                                                         .deinit = deinit},
                                             .decode = decode};

int weir_http_aggregator_add(weir_pipeline *pipeline, uint64_t max_content)
{
    return weir_pipeline_add_last(pipeline, &aggregators.handler, &max_content);
}
