/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of calls that any thread may use. On the loop of the call they act at once, unless
 * something is in the call's mailbox; from other threads they go through it. Content that is
 * written before there is a connection waits as operations, too.
 */
#include <errno.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/error.h>
#include <weir/file_range.h>
#include <weir/memory.h>

#include "base/options.h"
#include "protocol/http/http_client.h"

/* A piece of streamed content or its end, from another thread or too early. */
enum operation_kind { CONTENT, END };

struct operation {
    weir__mail mail; /* these: one at a time */
    weir__list link;
    enum operation_kind kind;
    weir_msg *msg;
    weir_promise *done;
};

static int create_operation(enum operation_kind kind, weir_msg *msg, weir_promise *done,
                            struct operation **ret_operation)
{
    struct operation *operation = weir__http_client_alloc(sizeof(*operation));

    if (operation == NULL)
        return -ENOMEM;
    weir__list_init(&operation->link);
    operation->kind = kind;
    operation->msg = msg;
    operation->done = done != NULL ? weir_promise_retain(done) : NULL;
    *ret_operation = operation;
    return 0;
}

static void free_operation(struct operation *operation)
{
    weir_promise_release(operation->done);
    weir_memory_free(operation);
}

static void drop(weir_msg *msg, weir_promise *done, int err)
{
    weir_msg_release(msg);
    if (done != NULL && err < 0)
        (void)weir_promise_fail(done, err, "the call has ended");
    else if (done != NULL)
        (void)weir_promise_succeed(done, NULL);
}

void weir__http_call_drop_pending(weir_http_call *call)
{
    weir__list *link;

    while ((link = weir__list_pop(&call->pending)) != NULL) {
        struct operation *operation = WEIR_CONTAINER_OF(link, struct operation, link);

        drop(operation->msg, operation->done, WEIR_ECLOSED);
        free_operation(operation);
    }
}

/* ---- on the loop ---- */

/* With can_write. A write may lose the connection. */
static void write_piece(weir_http_call *call, enum operation_kind kind, weir_msg *msg,
                        weir_promise *done)
{
    call->streaming = WEIR__HTTP_CALL_BEGUN;
    if (kind == END && call->protocol == WEIR__HTTP_CALL_TUNNEL) {
        call->output = WEIR__HTTP_CALL_WRITTEN;
        weir_msg_release(msg);
        weir_shutdown_output(call->connection->ctx, done);
        return;
    }
    if (kind == END)
        weir__http_call_end_request(call);
    else if (call->phase == WEIR__HTTP_CALL_SENDING)
        weir__http_call_limit_phase(call, call->client->options.progress_timeout_ns);
    weir_write(call->connection->ctx, msg, done);
}

void weir__http_call_write_pending(weir_http_call *call)
{
    weir__list *link;

    while (weir__http_call_can_write(call) && (link = weir__list_pop(&call->pending)) != NULL) {
        struct operation *operation = WEIR_CONTAINER_OF(link, struct operation, link);

        write_piece(call, operation->kind, operation->msg, operation->done);
        free_operation(operation);
    }
}

/* Takes msg. */
static int write_or_queue(weir_http_call *call, enum operation_kind kind, weir_msg *msg,
                          weir_promise *done)
{
    struct operation *operation;
    int err;

    if (call->phase == WEIR__HTTP_CALL_ENDED || !weir__http_call_streams(call) ||
        call->output == WEIR__HTTP_CALL_WRITTEN) {
        /* A redirection may have dropped the content: then it is of no interest. */
        drop(msg, done, call->phase == WEIR__HTTP_CALL_ENDED ? WEIR_ECLOSED : 0);
        return 0;
    }
    if (weir__http_call_can_write(call) && weir__list_is_empty(&call->pending)) {
        weir__http_connection *connection = call->connection;

        write_piece(call, kind, msg, done);
        if (call->connection == connection)
            weir_flush(connection->ctx);
        return 0;
    }
    err = create_operation(kind, msg, done, &operation);
    if (err < 0)
        drop(msg, done, err);
    else
        weir__list_append(&call->pending, &operation->link);
    return err;
}

/* A shard that was closed meanwhile, or whose loop has ended, fails the call. */
static void start(weir_http_call *call, int status)
{
    if (status == 0 && !call->shard->is_closed)
        weir__http_call_start(call);
    else
        weir__http_call_refuse(call, status < 0 ? WEIR_EREJECTED : WEIR_ECLOSED);
}

/* ---- the mailbox ---- */

static void run(weir_http_call *call, uint32_t flags, int status)
{
    if (flags & WEIR__HTTP_CALL_START)
        start(call, status);
    if (flags & WEIR__HTTP_CALL_END)
        weir__http_call_deliver_end(call, call->end_err,
                                    call->end_detail != NULL ? call->end_detail : "");
    if (status < 0)
        return;
    if (flags & WEIR__HTTP_CALL_CANCEL && call->phase != WEIR__HTTP_CALL_ENDED)
        weir__http_call_fail(call, WEIR_ECANCELED, "cancelled");
    if (flags & WEIR__HTTP_CALL_READ)
        weir__http_call_read_more(call);
    if (flags & WEIR__HTTP_CALL_WRITABLE && weir_http_call_is_writable(call))
        call->events->writable(call, call->user_data);
}

WEIR__MAILBOX_TYPE(mailbox_type, "http client", weir_http_call, box, owner->shard->loop,
                   weir_http_call_retain(owner), weir_http_call_release(owner), run);

static void on_operation(weir__mailbox *box, weir__mail *mail, int status)
{
    struct operation *operation = WEIR_CONTAINER_OF(mail, struct operation, mail);

    if (status == 0)
        (void)write_or_queue(mailbox_type_owner(box), operation->kind, operation->msg,
                             operation->done);
    else
        drop(operation->msg, operation->done, status);
    free_operation(operation);
}

/* ---- from any thread ---- */

static bool is_direct(const weir_http_call *call)
{
    return weir__mailbox_is_empty(&call->box) && weir_in_executor(call->shard->loop);
}

static void set(weir_http_call *call, uint32_t flag)
{
    if (is_direct(call)) {
        weir_http_call_retain(call);
        run(call, flag, 0);
        weir_http_call_release(call);
    } else {
        weir__mailbox_set(&call->box, flag);
    }
}

static int submit(weir_http_call *call, enum operation_kind kind, weir_msg *msg, weir_promise *done)
{
    struct operation *operation;
    int err;

    if (is_direct(call)) {
        weir_http_call_retain(call);
        err = write_or_queue(call, kind, msg, done);
        weir_http_call_release(call);
        return err;
    }
    err = create_operation(kind, msg, done, &operation);
    if (err < 0) {
        drop(msg, done, err);
        return err;
    }
    operation->mail.fn = on_operation;
    weir__mailbox_post(&call->box, &operation->mail);
    return 0;
}

void weir_http_call_cancel(weir_http_call *call)
{
    set(call, WEIR__HTTP_CALL_CANCEL);
}

void weir_http_call_read(weir_http_call *call)
{
    set(call, WEIR__HTTP_CALL_READ);
}

int weir_http_call_write(weir_http_call *call, weir_msg *msg, weir_promise *done)
{
    if (!call->takes_content) {
        drop(msg, done, -EINVAL);
        return -EINVAL;
    }
    return submit(call, CONTENT, msg, done);
}

int weir_http_call_end(weir_http_call *call, weir_http_end *end)
{
    weir_msg *msg = end != NULL ? weir_http_end_msg(end) : weir_http_end_static();

    if (!call->takes_content) {
        weir_msg_release(msg);
        return -EINVAL;
    }
    return submit(call, END, msg, NULL);
}

bool weir_http_call_is_writable(const weir_http_call *call)
{
    return atomic_load_explicit(&call->is_writable, memory_order_relaxed);
}

/* ---- creation ---- */

static bool is_idempotent(enum weir_http_method method)
{
    return method == WEIR_HTTP_METHOD_GET || method == WEIR_HTTP_METHOD_HEAD ||
           method == WEIR_HTTP_METHOD_PUT || method == WEIR_HTTP_METHOD_DELETE ||
           method == WEIR_HTTP_METHOD_OPTIONS || method == WEIR_HTTP_METHOD_TRACE;
}

static int64_t length_of(weir_msg *content)
{
    if (content == NULL)
        return 0;
    if (weir_buf_of(content) != NULL)
        return (int64_t)weir_buf_readable(weir_buf_of(content));
    if (weir_composite_of(content) != NULL)
        return (int64_t)weir_composite_readable(weir_composite_of(content));
    if (weir_file_range_of(content) != NULL)
        return (int64_t)weir_file_range_length(weir_file_range_of(content));
    return -EINVAL;
}

static int read_url(weir_http_request *request, const char *origin, weir__http_origin_key *ret_key)
{
    weir_http_uri uri;
    weir_buf *url;
    int err;

    if (origin != NULL) {
        if (weir_http_uri_parse(weir_span_of_text(origin), &uri) < 0)
            return -EINVAL;
        return weir__http_origin_key_of(&uri, ret_key);
    }
    /* A copy, since the target is about to change. */
    err = weir_buf_create_from(weir_http_request_target(request).data,
                               weir_http_request_target(request).length, &url);
    if (err < 0)
        return err;
    err = weir__http_call_take_url(request, weir_buf_span(url), ret_key);
    weir_buf_release(url);
    return err;
}

/* The shard whose loop runs this; NULL if that is none of the client's. */
static weir__http_shard *current_shard(weir_http_client *client)
{
    const weir_executor *current = weir_executor_current();

    for (size_t i = 0; current != NULL && i < client->shard_count; i++)
        if (client->shards[i].loop == current)
            return &client->shards[i];
    return NULL;
}

bool weir__http_client_is_here(weir_http_client *client)
{
    return current_shard(client) != NULL;
}

/* Sets the shard and the origin, or what the shard needs to find it. */
static int choose_origin(weir_http_call *call, const char *text)
{
    weir_http_client *client = call->client;
    weir__http_origin *origin = NULL;
    int err;

    call->shard = current_shard(client);
    if (text != NULL && call->shard != NULL)
        origin = weir__http_origin_find(call->shard, weir_span_of_text(text));
    if (origin != NULL) {
        weir__http_call_enter_origin(call, origin);
        return 0;
    }
    call->key = weir__http_client_alloc(sizeof(*call->key));
    if (call->key == NULL)
        return -ENOMEM;
    err = read_url(call->request, text, call->key);
    if (err == 0 && call->key->is_tls && client->options.add_tls == NULL)
        err = -EPROTONOSUPPORT;
    if (err == 0 && call->shard == NULL)
        call->shard = &client->shards[call->key->hash % client->shard_count];
    return err;
}

static int prepare(weir_http_call *call, const weir_http_call_options *options, weir_msg *content)
{
    int64_t length = length_of(content);

    if (length < 0)
        return weir__options_reject("http client", NULL, "content of type \"%s\"",
                                    content->type->name);
    if (!options->stream_content) {
        int err = weir_http_request_set_content_length(call->request, length);

        if (err < 0)
            return err;
    }
    return choose_origin(call, options->origin);
}

/* Takes request and content, on failure as well. */
static int create(weir_http_client *client, weir_http_request *request, weir_msg *content,
                  const weir_http_call_options *options, weir_http_call **ret_call)
{
    const weir_http_client_options *defaults = &client->options;
    weir_http_call *call = weir__http_client_alloc(sizeof(*call));
    int err;

    if (call == NULL) {
        weir_msg_release(weir_http_request_msg(request));
        weir_msg_release(content);
        return -ENOMEM;
    }
    weir__refs_init(&call->refs);
    weir__mailbox_init(&call->box, &mailbox_type);
    weir__list_init(&call->link);
    weir__list_init(&call->pending);
    weir__http_client_retain_memory(client);
    call->client = client;
    call->request = request;
    call->content = content;
    call->events = options->events;
    call->user_data = options->user_data;
    call->takes_content = options->stream_content || options->upgrades;
    if (options->stream_content)
        call->streaming = WEIR__HTTP_CALL_STREAMED;
    if (options->read_on_demand)
        call->reading = WEIR__HTTP_CALL_READS_ON_DEMAND;
    if (options->upgrades)
        call->protocol = WEIR__HTTP_CALL_UPGRADES;
    call->is_idempotent =
        options->is_idempotent || is_idempotent(weir_http_request_method(request));
    call->max_content = options->max_content > 0 ? options->max_content : UINT64_MAX;
    call->max_redirects =
        options->max_redirects != 0 ? options->max_redirects : defaults->max_redirects;
    call->timeout_ns = options->timeout_ns != 0 ? options->timeout_ns : defaults->timeout_ns;
    call->whole_at_ns = WEIR_NEVER;
    call->phase_at_ns = WEIR_NEVER;
    err = prepare(call, options, content);
    if (err < 0) {
        weir_http_call_release(call);
        return err;
    }
    *ret_call = call;
    return 0;
}

static int start_or_post(weir_http_call *call)
{
    weir_executor *loop = call->shard->loop;

    if (weir_executor_state(loop) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    if (!weir_in_executor(loop)) {
        weir__mailbox_set(&call->box, WEIR__HTTP_CALL_START);
        return 0;
    }
    if (call->shard->is_closed)
        return WEIR_ECLOSED;
    call->delivery = WEIR__HTTP_CALL_EVENTS_LATER;
    weir__http_call_start(call);
    weir__http_call_end_send(call);
    return 0;
}

int weir_http_client_send(weir_http_client *client, weir_http_request *request, weir_msg *content,
                          const weir_http_call_options *given, weir_http_call **ret_call)
{
    weir_http_call_options options;
    weir_http_call *call;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0 && options.stream_content && content != NULL)
        err = weir__options_reject("http client", NULL, ".stream_content with content");
    if (err == 0)
        err = weir__options_check("http client", NULL,
                                  WEIR__OPTION_FROM(&options, timeout_ns, WEIR_OFF),
                                  WEIR__OPTION_FROM(&options, max_redirects, WEIR_OFF));
    /* Relaxed: the shard decides; this only saves the way to it. */
    if (err == 0 && atomic_load_explicit(&client->is_closing, memory_order_relaxed))
        err = WEIR_ECLOSED;
    if (err < 0) {
        weir_msg_release(weir_http_request_msg(request));
        weir_msg_release(content);
        return err;
    }
    err = create(client, request, content, &options, &call);
    if (err < 0)
        return err;
    weir_http_call_retain(call); /* the caller's; the other one is released by its end */
    err = start_or_post(call);
    if (err < 0)
        weir_http_call_release(call);
    if (err == 0 && ret_call != NULL)
        *ret_call = call;
    else
        weir_http_call_release(call);
    return err;
}
