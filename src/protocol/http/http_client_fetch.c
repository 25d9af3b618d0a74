/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole responses: a call whose events collect the response, and a promise.
 */
#include <errno.h>

#include <weir/composite.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "base/log.h"
#include "base/options.h"
#include "protocol/http/full.h"
#include "protocol/http/http_client.h"

#define MAX_CONTENT ((uint64_t)16 << 20)
#define MAX_RESERVED 65536 /* of a length that the server has announced */
#define SHUTDOWN_NS weir_seconds(5)

/* Freed after the end of the call and the completion of the promise. */
struct fetch {
    weir__refs refs;
    weir_promise *promise;
    weir_listener completed;
    weir_http_call *call;
    weir_http_response *response;
    weir_buf *content;
    bool is_own; /* the content is a buffer of this fetch, not one that was received */
    int err;     /* of collecting */
};

static void release(struct fetch *fetch)
{
    if (!weir__refs_release(&fetch->refs))
        return;
    weir_promise_release(fetch->promise);
    weir_http_call_release(fetch->call);
    if (fetch->response != NULL)
        weir_msg_release(weir_http_response_msg(fetch->response));
    weir_buf_release(fetch->content);
    weir_memory_free(fetch);
}

/* ---- events ---- */

static void on_head(weir_http_call *call, weir_http_response *response, void *user_data)
{
    struct fetch *fetch = user_data;

    (void)call;
    weir_msg_retain(weir_http_response_msg(response));
    fetch->response = response;
}

/* Makes the content a buffer of its own, which can grow. */
static int own_content(struct fetch *fetch, size_t more)
{
    int64_t announced = weir_http_response_content_length(fetch->response);
    size_t length = fetch->content != NULL ? weir_buf_readable(fetch->content) : 0;
    size_t capacity = length + more;
    weir_buf *own;
    int err;

    if (fetch->is_own)
        return 0;
    if (announced > 0 && announced <= MAX_RESERVED && (size_t)announced > capacity)
        capacity = (size_t)announced;
    err = weir_buf_create(capacity, 0, &own);
    if (err == 0 && length > 0)
        err = weir_buf_write_bytes(own, weir_buf_bytes(fetch->content), length);
    if (err < 0)
        return err;
    weir_buf_release(fetch->content);
    fetch->content = own;
    fetch->is_own = true;
    return 0;
}

static int collect(struct fetch *fetch, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);
    weir_composite *composite = weir_composite_of(msg);
    size_t length = weir_msg_size(msg);
    int err;

    if (buf != NULL && fetch->content == NULL) {
        fetch->content = weir_buf_retain(buf);
        return 0;
    }
    if (buf == NULL && composite == NULL)
        return -ENOTSUP;
    err = own_content(fetch, length);
    if (err == 0)
        err = weir_buf_reserve(fetch->content, length);
    if (err < 0)
        return err;
    if (buf != NULL)
        return weir_buf_write_bytes(fetch->content, weir_buf_bytes(buf), length);
    err = weir_composite_read_bytes(composite, weir_buf_space(fetch->content), length);
    return err < 0 ? err : weir_buf_advance(fetch->content, length);
}

static void on_content(weir_http_call *call, weir_msg *msg, void *user_data)
{
    struct fetch *fetch = user_data;

    if (fetch->err == 0)
        fetch->err = collect(fetch, msg);
    weir_msg_release(msg);
    if (fetch->err < 0)
        weir_http_call_cancel(call);
}

static void release_full(void *value)
{
    weir_msg_release(weir_http_full_msg(value));
}

static int complete(struct fetch *fetch, weir_http_call *call)
{
    weir_http_end *end = call->trailers_end;
    weir_msg *head = weir_http_response_msg(fetch->response);
    weir_buf *content = fetch->content;
    weir_http_full *full;
    int err;

    if (end != NULL)
        weir_msg_retain(weir_http_end_msg(end));
    fetch->response = NULL;
    fetch->content = NULL;
    err = weir__http_full_create(head, content, end, &full);
    if (err == 0)
        (void)weir_promise_succeed_with(fetch->promise, full, release_full);
    return err;
}

static void on_end(weir_http_call *call, int err, const char *detail, void *user_data)
{
    struct fetch *fetch = user_data;

    if (fetch->err < 0)
        err = fetch->err;
    if (err == 0)
        err = complete(fetch, call);
    if (err < 0)
        (void)weir_promise_fail(fetch->promise, err, detail[0] != '\0' ? detail : NULL);
    release(fetch);
}

static const weir_http_call_events events = {.head = on_head, .content = on_content, .end = on_end};

static void on_completed(weir_promise *promise, void *user_data)
{
    struct fetch *fetch = user_data;

    if (weir_promise_is_cancelled(promise))
        weir_http_call_cancel(fetch->call);
    release(fetch);
}

/* ---- fetching ---- */

static int create_request(const weir_http_fetch_options *options, weir_http_request **ret_request)
{
    weir_http_request *request;
    int err = weir_http_request_create(options->method != NULL ? options->method : "GET",
                                       options->url, &request);

    for (size_t i = 0; err == 0 && options->fields != NULL && options->fields[i] != NULL; i += 2) {
        if (options->fields[i + 1] == NULL)
            err = -EINVAL;
        else
            err = weir_http_headers_add_named(weir_http_request_headers(request),
                                              weir_span_of_text(options->fields[i]),
                                              weir_span_of_text(options->fields[i + 1]));
        if (err < 0)
            weir_msg_release(weir_http_request_msg(request));
    }
    if (err == 0)
        *ret_request = request;
    return err;
}

static int create_fetch(weir_executor *executor, struct fetch **ret_fetch)
{
    struct fetch *fetch = weir__http_client_alloc(sizeof(*fetch));
    int err;

    if (fetch == NULL)
        return -ENOMEM;
    weir__refs_init(&fetch->refs);
    err =
        weir_promise_create(executor != NULL ? executor : weir_executor_current(), &fetch->promise);
    if (err < 0)
        weir_memory_free(fetch);
    else
        *ret_fetch = fetch;
    return err;
}

static int send_fetch(weir_http_client *client, const weir_http_fetch_options *options,
                      struct fetch *fetch)
{
    weir_http_request *request = NULL;
    int err = create_request(options, &request);

    if (err < 0)
        return err;
    return weir_http_client_send(
        client, request, options->content != NULL ? weir_msg_retain(options->content) : NULL,
        WEIR_HTTP_CALL_OPTIONS(.events = &events, .user_data = fetch,
                               .timeout_ns = options->timeout_ns,
                               .max_redirects = options->max_redirects,
                               .max_content =
                                   options->max_content > 0 ? options->max_content : MAX_CONTENT),
        &fetch->call);
}

int weir_http_client_fetch(weir_http_client *client, const weir_http_fetch_options *given,
                           weir_promise **ret_fetching)
{
    weir_http_fetch_options options;
    struct fetch *fetch;
    weir_promise *promise;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0 && options.url == NULL)
        err = weir__options_reject("http client", NULL, ".url is required");
    if (err == 0)
        err = create_fetch(options.executor, &fetch);
    if (err < 0)
        return err;
    weir__refs_retain(&fetch->refs); /* of the call; it may end before this returns */
    promise = weir_promise_retain(fetch->promise);
    err = send_fetch(client, &options, fetch);
    if (err < 0) {
        release(fetch);
        release(fetch);
        weir_promise_release(promise);
        return err;
    }
    fetch->completed = (weir_listener){.fn = on_completed, .user_data = fetch};
    weir_promise_listen(promise, &fetch->completed);
    *ret_fetching = promise;
    return 0;
}

static const char *reason_of(int err)
{
    switch (err) {
    case -EINVAL:
        return "expected a URL such as http://host:port/path, and names and values as fields";
    case -EPROTONOSUPPORT:
        return "expected http, or https with .tls and .add_tls";
    case -EDEADLK:
        return "this thread runs an event loop and cannot wait for the response";
    default:
        return weir_error_text(err);
    }
}

/* A call that was not made has no detail. */
static void log_failure(const weir_http_fetch_options *options, int err, const char *detail)
{
    char url[WEIR__HTTP_REDACTED_SIZE];

    if (detail[0] != '\0')
        weir__warn_limited("http client", NULL, "%s", detail);
    else if (options != NULL && options->url != NULL)
        weir__warn_limited("http client", NULL, "%s \"%s\": %s",
                           options->method != NULL ? options->method : "GET",
                           weir__http_redact(options->url, url), reason_of(err));
}

int weir_http_client_fetch_sync(weir_http_client *client, const weir_http_fetch_options *options,
                                weir_http_full **ret_full)
{
    weir_promise *promise;
    weir_http_full *full;
    int err = weir_http_client_fetch(client, options, &promise);

    if (err < 0) {
        log_failure(options, err, "");
        return err;
    }
    err = weir_promise_sync(promise, WEIR_NEVER);
    if (err == 0) {
        full = weir_promise_value(promise);
        weir_msg_retain(weir_http_full_msg(full));
        *ret_full = full;
    } else {
        log_failure(options, err, weir_promise_detail(promise));
        if (err == -EDEADLK)
            (void)weir_promise_cancel(promise);
    }
    weir_promise_release(promise);
    return err;
}

/* Nothing of the client is left when this returns. */
static void end_client(weir_http_client *client, weir_group *own_group)
{
    weir_http_client_close(client);
    (void)weir_promise_await(weir_http_client_closed(client), SHUTDOWN_NS);
    weir_http_client_release(client);
    if (own_group == NULL)
        return;
    (void)weir_group_shutdown(own_group, 0, SHUTDOWN_NS);
    (void)weir_group_await_termination(own_group, SHUTDOWN_NS);
    weir_group_release(own_group);
}

int weir_http_get_sync(const char *url, const weir_http_client_options *given,
                       weir_http_full **ret_full)
{
    weir_http_client_options options;
    weir_http_client *client;
    weir_group *own_group = NULL;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0 && options.group == NULL && options.loop == NULL) {
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "http"), &own_group);
        options.group = own_group;
    }
    if (err < 0)
        return err;
    err = weir_http_client_create(&options, &client);
    if (err < 0) {
        weir_group_release(own_group);
        return err;
    }
    err = weir_http_client_fetch_sync(client, WEIR_HTTP_FETCH_OPTIONS(.url = url), ret_full);
    end_client(client, own_group);
    return err;
}
