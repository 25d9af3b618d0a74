/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response of an exchange. On the loop it is written at once; calls from other threads are
 * posted there.
 */
#include <errno.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/file_range.h>
#include <weir/memory.h>

#include "base/log.h"
#include "base/no_stack_protector.h"
#include "protocol/http/exchange.h"
#include "protocol/http/filters.h"
#include "protocol/http/reset.h"

#define ANSWER_MAX 1024 /* longer content is not copied */

static const char text_plain[] = "text/plain; charset=utf-8";

/* ---- phases ---- */

static int phase_of(const weir_http_exchange *exchange)
{
    return atomic_load_explicit(&exchange->phase, memory_order_relaxed);
}

/* Claims the next phase. Only one thread succeeds. */
static bool claim(weir_http_exchange *exchange, uint8_t from, uint8_t to)
{
    if (exchange->is_shared)
        return atomic_compare_exchange_strong_explicit(&exchange->phase, &from, to,
                                                       memory_order_acq_rel, memory_order_relaxed);
    if (phase_of(exchange) != from)
        return false;
    atomic_store_explicit(&exchange->phase, to, memory_order_relaxed);
    return true;
}

static void set_phase(weir_http_exchange *exchange, uint8_t phase)
{
    atomic_store_explicit(&exchange->phase, phase, memory_order_release);
}

static bool is_lost(const weir_http_exchange *exchange)
{
    return atomic_load_explicit(&exchange->is_lost, memory_order_relaxed);
}

/* ---- writing, on the loop ---- */

/* Any event may have removed the handler meanwhile. */
static void flush(weir_ctx *ctx)
{
    if (!weir_ctx_is_removed(ctx))
        weir_flush(ctx);
}

/* Status 100 must not follow a final one, nor another 100. */
static void forget_continue(weir_http_exchange *exchange)
{
    if (exchange->input == WEIR__EXCHANGE_INPUT_AWAITS_CONTINUE)
        exchange->input = WEIR__EXCHANGE_INPUT_OPEN;
}

static void write_head(weir_http_exchange *exchange, weir_http_response *response, int64_t length,
                       bool is_whole)
{
    (void)weir_http_response_set_content_length(response, length);
    if (is_whole && weir__http_content_is_long(exchange))
        weir_http_response_set_closes(response, true);
    forget_continue(exchange);
    weir_write(exchange->ctx, weir_http_response_msg(response), NULL);
}

/*
 * Writes the end of the response. The exchange is detached before, because the end lets the codec
 * decode the next request. The caller holds its memory.
 */
static void write_end(weir_http_exchange *exchange, weir_msg *end, weir_promise *done)
{
    weir_ctx *ctx = exchange->ctx;

    exchange->has_ended_response = true;
    if (exchange->is_shared)
        weir__http_exchange_check(exchange);
    if (exchange->input == WEIR__EXCHANGE_INPUT_ENDED)
        weir__http_exchange_detach(exchange);
    weir_write(ctx, end, done);
    if (exchange->connection != NULL)
        weir__http_content_discard(exchange);
    flush(ctx);
}

static bool is_head(const weir_http_exchange *exchange)
{
    return exchange->request->method == WEIR_HTTP_METHOD_HEAD;
}

static bool has_no_content(const weir_http_exchange *exchange, int status)
{
    return is_head(exchange) || status == 204 || status == 304;
}

static int64_t length_of(weir_msg *body)
{
    if (body == NULL)
        return 0;
    if (weir_buf_of(body) != NULL)
        return (int64_t)weir_buf_readable(weir_buf_of(body));
    if (weir_composite_of(body) != NULL)
        return (int64_t)weir_composite_readable(weir_composite_of(body));
    if (weir_file_range_of(body) != NULL)
        return weir_file_range_remaining(weir_file_range_of(body));
    return WEIR_HTTP_UNKNOWN_LENGTH;
}

/* Removes the content's type and coding from a 304. With a compression filter they stay: the filter
 * reads and removes them. */
static void remove_content_fields(weir_http_exchange *exchange, weir_http_response *response)
{
    weir_pipeline *pipeline = weir_channel_pipeline(weir_ctx_channel(exchange->ctx));
    weir_http_headers *headers = weir_http_response_headers(response);

    if (weir_pipeline_find_handler(pipeline, &weir__http_compression_handler) != NULL)
        return;
    (void)weir_http_headers_remove(headers, WEIR_HTTP_CONTENT_TYPE);
    (void)weir_http_headers_remove(headers, WEIR_HTTP_CONTENT_ENCODING);
}

static void write_whole(weir_http_exchange *exchange, weir_http_response *response, weir_msg *body,
                        weir_promise *done)
{
    bool has_content = !has_no_content(exchange, weir_http_response_status(response));
    int64_t length = length_of(body);

    response->is_file = weir_file_range_of(body) != NULL;
    if (response->status == 304)
        remove_content_fields(exchange, response);
    write_head(exchange, response, length, true);
    if (exchange->connection == NULL || length == 0 || !has_content) {
        weir_msg_release(body);
        if (done != NULL)
            (void)weir_promise_succeed(done, NULL);
    } else {
        weir_write(exchange->ctx, body, done);
    }
    if (exchange->connection != NULL)
        write_end(exchange, weir_http_end_static(), NULL);
}

/* ---- operations ---- */

enum op_kind { OP_RESPOND, OP_BEGIN, OP_WRITE, OP_END, OP_UPGRADE };

/* A call of the API, on its way to the loop if it came from another thread. */
struct op {
    enum op_kind kind;
    int status; /* 0 = an operation without a head */
    weir_http_response *response;
    int64_t length;
    weir_msg *msg;
    weir_promise *done;
    enum weir_http_name name; /* OTHER = none: a field that is added unless it is there */
    const char *value;
    struct weir__exchange_upgrade upgrade;
};

struct posted_op {
    weir__mail mail;
    struct op op;
    int64_t bytes; /* of op.msg */
};

static void fail(const struct op *op, int err)
{
    if (op->response != NULL)
        weir_msg_release(weir_http_response_msg(op->response));
    weir_msg_release(op->msg);
    if (op->done != NULL)
        (void)weir_promise_fail(op->done, err, NULL);
}

/* The headers of the exchange become those of the response. */
static weir_http_response *complete_head(weir_http_exchange *exchange, weir_http_response *response)
{
    if (exchange->headers.count > 0) {
        weir__http_headers_deinit(&response->head.headers);
        response->head.headers = exchange->headers;
        weir__http_headers_init(&exchange->headers, exchange->values, (uint8_t *)exchange->values);
    }
    return response;
}

static void write_piece(weir_http_exchange *exchange, const struct op *op)
{
    if (is_head(exchange)) {
        weir_msg_release(op->msg);
        if (op->done != NULL)
            (void)weir_promise_succeed(op->done, NULL);
    } else {
        weir_write(exchange->ctx, op->msg, op->done);
        flush(exchange->ctx);
    }
}

static int write_upgrade(weir_http_exchange *exchange, const struct op *op)
{
    weir_promise *written;
    int err = weir__http_upgrade_begin(exchange->ctx, &op->upgrade, &written);

    if (err < 0) {
        fail(op, err);
        weir__http_reset(weir_ctx_channel(exchange->ctx));
        return err;
    }
    write_head(exchange, complete_head(exchange, op->response), 0, false);
    if (exchange->connection != NULL)
        write_end(exchange, weir_http_end_static(), written);
    weir_promise_release(written);
    return 0;
}

/* On the loop. The phase has been claimed. */
static int perform(weir_http_exchange *exchange, const struct op *op)
{
    if (exchange->connection == NULL) {
        fail(op, WEIR_ECLOSED);
        return WEIR_ECLOSED;
    }
    if (exchange->has_ended_response) { /* by a call on another thread that came first */
        fail(op, -EALREADY);
        return -EALREADY;
    }
    switch (op->kind) {
    case OP_RESPOND:
        write_whole(exchange, complete_head(exchange, op->response), op->msg, op->done);
        break;
    case OP_BEGIN:
        write_head(exchange, complete_head(exchange, op->response), op->length, false);
        flush(exchange->ctx);
        break;
    case OP_WRITE:
        write_piece(exchange, op);
        break;
    case OP_END:
        write_end(exchange, op->msg, NULL);
        break;
    case OP_UPGRADE:
        return write_upgrade(exchange, op);
    }
    return 0;
}

static void on_posted(weir__mailbox *box, weir__mail *mail, int status)
{
    weir_http_exchange *exchange = WEIR_CONTAINER_OF(box, weir_http_exchange, to_loop);
    struct posted_op *posted = WEIR_CONTAINER_OF(mail, struct posted_op, mail);

    (void)status; /* if the loop has ended, the exchange is detached */
    if (perform(exchange, &posted->op) < 0)
        weir__http_upgrade_cancel(weir_ctx_channel(exchange->ctx), &posted->op.upgrade);
    weir_promise_release(posted->op.done);
    if (posted->bytes > 0) {
        atomic_fetch_sub_explicit(&exchange->posted_bytes, posted->bytes, memory_order_relaxed);
        weir__http_exchange_check(exchange); /* there is more room, and no event says so */
    }
    weir_memory_free(posted);
}

static void post(weir_http_exchange *exchange, struct posted_op *posted, const struct op *op)
{
    posted->mail.fn = on_posted;
    posted->op = *op;
    posted->bytes = op->kind == OP_WRITE ? (int64_t)weir_msg_size(op->msg) : 0;
    if (op->done != NULL)
        (void)weir_promise_retain(op->done);
    /* Relaxed: the loop subtracts them after the mailbox has passed the operation on. */
    atomic_fetch_add_explicit(&exchange->posted_bytes, posted->bytes, memory_order_relaxed);
    weir__mailbox_post(&exchange->to_loop, &posted->mail);
}

/* After the claim: until then, another thread may respond, too. */
static int complete_fields(weir_http_exchange *exchange, const struct op *op)
{
    weir_http_headers *headers;

    if (op->kind == OP_UPGRADE)
        return weir_http_headers_get(&exchange->headers, WEIR_HTTP_UPGRADE).data != NULL ? 0
                                                                                         : -EINVAL;
    if (op->name == WEIR_HTTP_OTHER)
        return 0;
    headers = exchange->headers.count > 0 ? &exchange->headers : &op->response->head.headers;
    if (weir_http_headers_get(headers, op->name).data != NULL)
        return 0;
    return weir_http_headers_add_text(headers, op->name, op->value);
}

/* Claims the phase `to` and performs the operation, here or on the loop. `from` and `to` are equal
 * for writes. Takes op->msg. */
static int submit(weir_http_exchange *exchange, struct op *op, uint8_t from, uint8_t to)
{
    bool is_direct = weir__http_exchange_is_direct(exchange);
    struct posted_op *posted = NULL;
    int err = is_lost(exchange) ? WEIR_ECLOSED : 0;

    /* What is left of the loop's connections may not have learned yet that it has ended. */
    if (!is_direct && weir_executor_state(exchange->loop) >= WEIR_EXECUTOR_SHUTDOWN)
        err = WEIR_ECLOSED;
    if (err == 0 && !is_direct) {
        posted = weir_memory_alloc(sizeof(*posted));
        err = posted != NULL ? 0 : -ENOMEM;
    }
    if (err == 0 && op->status != 0)
        err = weir_http_response_create(op->status, &op->response);
    if (err == 0 && (from == to ? phase_of(exchange) != from : !claim(exchange, from, to)))
        err = phase_of(exchange) == WEIR__EXCHANGE_OPEN ? -EINVAL : -EALREADY;
    if (err < 0) {
        weir_memory_free(posted);
        fail(op, err);
        return err;
    }
    err = complete_fields(exchange, op);
    if (err < 0) {
        weir_memory_free(posted);
        set_phase(exchange, from);
        fail(op, err);
        return err;
    }
    if (is_direct)
        return perform(exchange, op);
    post(exchange, posted, op);
    return 0;
}

/* ---- the API ---- */

static int respond(weir_http_exchange *exchange, struct op *op)
{
    if (op->status < 200 || op->status > 599) {
        fail(op, -EINVAL);
        return -EINVAL;
    }
    return submit(exchange, op, WEIR__EXCHANGE_OPEN, WEIR__EXCHANGE_ENDED);
}

int weir__http_exchange_respond(weir_http_exchange *exchange, int status, weir_msg *body,
                                weir_promise *done)
{
    return respond(exchange,
                   &(struct op){.kind = OP_RESPOND, .status = status, .msg = body, .done = done});
}

int weir_http_respond(weir_http_exchange *exchange, int status, weir_msg *body)
{
    return weir__http_exchange_respond(exchange, status, body, NULL);
}

int weir_http_exchange_begin(weir_http_exchange *exchange, int status, int64_t length)
{
    struct op op = {.kind = OP_BEGIN, .status = status, .length = length};

    if (status < 200 || status > 599 || length < WEIR_HTTP_UNKNOWN_LENGTH)
        return -EINVAL;
    return submit(exchange, &op, WEIR__EXCHANGE_OPEN, WEIR__EXCHANGE_BEGUN);
}

int weir_http_exchange_write(weir_http_exchange *exchange, weir_msg *msg, weir_promise *done)
{
    struct op op = {.kind = OP_WRITE, .msg = msg, .done = done};

    return submit(exchange, &op, WEIR__EXCHANGE_BEGUN, WEIR__EXCHANGE_BEGUN);
}

int weir_http_exchange_end(weir_http_exchange *exchange, weir_http_end *end)
{
    struct op op = {.kind = OP_END,
                    .msg = end != NULL ? weir_http_end_msg(end) : weir_http_end_static()};

    return submit(exchange, &op, WEIR__EXCHANGE_BEGUN, WEIR__EXCHANGE_ENDED);
}

int weir__http_exchange_respond_upgrade(weir_http_exchange *exchange,
                                        const struct weir__exchange_upgrade *upgrade)
{
    struct op op = {.kind = OP_UPGRADE, .status = 101, .upgrade = *upgrade};

    return submit(exchange, &op, WEIR__EXCHANGE_OPEN, WEIR__EXCHANGE_ENDED);
}

void weir_http_exchange_abort(weir_http_exchange *exchange)
{
    /* A response that has ended is not aborted: the connection may serve the next request. */
    if (atomic_exchange_explicit(&exchange->phase, WEIR__EXCHANGE_ENDED, memory_order_acq_rel) !=
        WEIR__EXCHANGE_ENDED)
        weir__http_reset(weir_ctx_channel(exchange->ctx));
}

/*
 * Answers by the codec, without messages for head and content, if that is possible: nothing stands
 * between it and the exchange, and no headers were set. The type is checked.
 */
WEIR__NO_STACK_PROTECTOR static bool fast_respond(weir_http_exchange *exchange, int status,
                                                  weir_span type, weir_span content)
{
    const weir__http_codec *codec = exchange->request->codec;
    const weir__http_answer given = {status, type, content};
    weir_ctx *ctx = exchange->ctx, *next;

    if (exchange->is_shared || codec == NULL || exchange->connection == NULL || is_lost(exchange) ||
        phase_of(exchange) != WEIR__EXCHANGE_OPEN || exchange->headers.count > 0 ||
        exchange->input != WEIR__EXCHANGE_INPUT_ENDED || content.length > ANSWER_MAX ||
        content.length == 0 || status < 200 || status > 599 || status == 204 || status == 304)
        return false;
    next = weir_ctx_next_writer(ctx);
    if (next == NULL || weir_ctx_handler(next) != codec->handler || !codec->answer(next, &given))
        return false;
    set_phase(exchange, WEIR__EXCHANGE_ENDED);
    exchange->has_ended_response = true;
    weir__http_exchange_detach(exchange); /* before the end, as in write_end */
    codec->end(next);
    flush(ctx);
    return true;
}

static int respond_typed(weir_http_exchange *exchange, int status, const char *content_type,
                         weir_buf *body)
{
    return respond(exchange, &(struct op){.kind = OP_RESPOND,
                                          .status = status,
                                          .msg = weir_buf_msg(body),
                                          .name = WEIR_HTTP_CONTENT_TYPE,
                                          .value = content_type});
}

static int respond_copied(weir_http_exchange *exchange, int status, const char *content_type,
                          weir_span content)
{
    weir_buf *body;
    int err = weir_buf_create_from(content.data, content.length, &body);

    return err < 0 ? err : respond_typed(exchange, status, content_type, body);
}

int weir_http_respond_bytes(weir_http_exchange *exchange, int status, const char *content_type,
                            const void *bytes, size_t length)
{
    weir_span type = weir_span_of_text(content_type), content = weir_span_of(bytes, length);

    if (weir__http_is_plain_value(type) && fast_respond(exchange, status, type, content))
        return 0;
    return respond_copied(exchange, status, content_type, content);
}

WEIR__NO_STACK_PROTECTOR int weir_http_respond_text(weir_http_exchange *exchange, int status,
                                                    const char *text)
{
    weir_span content = weir_span_of_text(text);

    if (fast_respond(exchange, status, weir_span_of(text_plain, sizeof(text_plain) - 1), content))
        return 0;
    return respond_copied(exchange, status, text_plain, content);
}

int weir_http_respond_json(weir_http_exchange *exchange, int status, weir_buf *json)
{
    static const char type[] = "application/json";

    if (fast_respond(exchange, status, weir_span_of(type, sizeof(type) - 1), weir_buf_span(json))) {
        weir_buf_release(json);
        return 0;
    }
    return respond_typed(exchange, status, type, json);
}

int weir_http_respond_redirect(weir_http_exchange *exchange, int status, const char *location)
{
    if (status < 300 || status > 399)
        return -EINVAL;
    return respond(exchange, &(struct op){.kind = OP_RESPOND,
                                          .status = status,
                                          .name = WEIR_HTTP_LOCATION,
                                          .value = location});
}

static int create_text(const char *text, weir_buf **ret_buf)
{
    size_t length = strlen(text);
    int err = weir_buf_create(length + 1, 0, ret_buf);

    if (err == 0) {
        (void)weir_buf_write_bytes(*ret_buf, text, length); /* there is room */
        (void)weir_buf_write_bytes(*ret_buf, "\n", 1);
    }
    return err;
}

int weir_http_respond_error(weir_http_exchange *exchange, int status, const char *detail)
{
    weir_buf *body;
    int err = create_text(detail != NULL ? detail : weir_http_status_text(status), &body);

    return err < 0 ? err : respond_typed(exchange, status, text_plain, body);
}

/* ---- the end of unanswered exchanges ---- */

/*
 * Answers with a new head: that of the exchange may be in use by a thread of the handler's group.
 * The phase has been claimed, and the caller holds the memory.
 */
static void respond_instead(weir_http_exchange *exchange, int status, bool closes)
{
    weir_http_response *response;
    weir_buf *body;
    int err = weir_http_response_create(status, &response);

    if (err == 0) {
        err = create_text(weir_http_status_text(status), &body);
        if (err == 0)
            err = weir_http_headers_add_text(weir_http_response_headers(response),
                                             WEIR_HTTP_CONTENT_TYPE, text_plain);
        else
            body = NULL;
        if (err < 0) {
            weir_buf_release(body);
            weir_msg_release(weir_http_response_msg(response));
        }
    }
    if (err < 0) {
        weir__http_reset(weir_ctx_channel(exchange->ctx));
        return;
    }
    weir_http_response_set_closes(response, closes);
    write_whole(exchange, response, weir_buf_msg(body), NULL);
}

static void cancel_run(weir_http_exchange *exchange)
{
    if (exchange->use == WEIR__EXCHANGE_PENDING) {
        exchange->use = WEIR__EXCHANGE_CALLED;
        weir_http_exchange_release(exchange);
    }
}

void weir__http_exchange_give_up(weir_http_exchange *exchange)
{
    if (claim(exchange, WEIR__EXCHANGE_OPEN, WEIR__EXCHANGE_ENDED)) {
        weir__warn_limited("http", exchange->route->given.path,
                           "the handler has released an exchange without a response: 500");
        respond_instead(exchange, 500, false);
    } else if (claim(exchange, WEIR__EXCHANGE_BEGUN, WEIR__EXCHANGE_ENDED)) {
        weir__warn_limited(
            "http", exchange->route->given.path,
            "the handler has released an exchange without the end of its response: reset");
        weir__http_reset(weir_ctx_channel(exchange->ctx));
    }
}

void weir__http_exchange_refuse(weir_http_exchange *exchange, int status)
{
    weir__refs_retain(&exchange->refs);
    if (claim(exchange, WEIR__EXCHANGE_OPEN, WEIR__EXCHANGE_ENDED)) {
        respond_instead(exchange, status, true);
    } else if (claim(exchange, WEIR__EXCHANGE_BEGUN, WEIR__EXCHANGE_ENDED)) {
        weir__http_reset(weir_ctx_channel(exchange->ctx));
    }
    /* A response may be on its way to the loop, and a reset takes a while. */
    if (exchange->connection != NULL && exchange->mode != WEIR__EXCHANGE_DISCARD)
        weir__http_content_discard(exchange);
    cancel_run(exchange);
    weir__http_exchange_release_memory(exchange);
}

void weir__http_exchange_lose(weir_http_exchange *exchange)
{
    atomic_store_explicit(&exchange->is_lost, true, memory_order_relaxed);
    weir__http_content_fail(exchange, WEIR_ECLOSED);
    exchange->connection->exchange = NULL;
    exchange->connection = NULL;
    if (exchange->is_shared)
        weir__http_exchange_check(exchange);
    cancel_run(exchange);
    weir__http_exchange_release_memory(exchange); /* the connection's */
}

void weir__http_exchange_inform(weir_http_exchange *exchange, weir_http_response *response)
{
    if (exchange->connection == NULL || phase_of(exchange) != WEIR__EXCHANGE_OPEN ||
        !weir__http_exchange_has_room(exchange)) {
        weir_msg_release(weir_http_response_msg(response));
        return;
    }
    weir_write(exchange->ctx, weir_http_response_msg(response), NULL);
    flush(exchange->ctx);
}

void weir__http_exchange_continue(weir_http_exchange *exchange)
{
    weir_http_response *response;

    forget_continue(exchange);
    if (weir_http_response_create(100, &response) < 0)
        return; /* clients send their content after a while, nevertheless */
    weir_write(exchange->ctx, weir_http_response_msg(response), NULL);
    flush(exchange->ctx);
}
