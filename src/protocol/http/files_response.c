/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a file to a response: conditions, codings, ranges, and sending.
 */
#include "protocol/http/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/memory.h>
#include <weir/promise.h>
#include <weir/random.h>

#include "base/log.h"
#include "os/clock.h"
#include "protocol/http/accept.h"
#include "protocol/http/conditions.h"
#include "protocol/http/exchange.h"
#include "protocol/http/ranges.h"
#include "protocol/http/reset.h"

#define MAX_ACCEPT_LINES 8
#define BOUNDARY_SIZE 33

/* A response that is being made. */
struct response {
    const weir_http_files_root *root;
    weir_http_exchange *exchange;
    const weir_http_headers *request;
    weir_http_headers *headers;
    const weir__http_file *file;
    const weir__http_representation *representation;
    bool is_head;
};

/* ---- representations ---- */

static const weir__http_representation *choose(const weir_http_headers *request,
                                               const weir__http_file *file)
{
    const char *codings[WEIR__HTTP_MAX_REPRESENTATIONS];
    weir_span lines[MAX_ACCEPT_LINES];
    size_t line_count = 0, index = 0;
    int chosen;

    if (file->count == 1)
        return &file->representations[0];
    for (size_t i = 1; i < file->count; i++)
        codings[i - 1] = file->representations[i].coding;
    while (line_count < MAX_ACCEPT_LINES &&
           weir_http_headers_next(request, WEIR_HTTP_ACCEPT_ENCODING, &index, &lines[line_count]))
        line_count++;
    chosen = weir__http_accept_coding(lines, line_count, codings, file->count - 1);
    return &file->representations[chosen == WEIR__HTTP_IDENTITY ? 0 : chosen + 1];
}

/* A part of a representation, as a message. */
static int slice(const weir__http_representation *representation, int64_t offset, int64_t length,
                 weir_msg **ret_msg)
{
    weir_file_range *range;
    weir_buf *bytes;
    int err;

    if (representation->bytes != NULL) {
        err = weir_buf_slice(representation->bytes, (size_t)offset, (size_t)length, &bytes);
        if (err == 0)
            *ret_msg = weir_buf_msg(bytes);
        return err;
    }
    err = weir_file_range_slice(representation->range, offset, length, &range);
    if (err == 0)
        *ret_msg = weir_file_range_msg(range);
    return err;
}

/* ---- sending ---- */

/* A file that is being sent. */
struct sending {
    weir_listener listener;
    weir_channel *channel;
};

/* True if the file, or a lack of memory, is the reason, not the client. */
static bool is_file_error(int err)
{
    return err == WEIR_ETRUNCATED || err == -EIO || err == -ESTALE || err == -ENOMEM ||
           err == -EINVAL || err == -EOVERFLOW;
}

/* The client has been promised more bytes than the file has now: it must not take what follows for
 * the rest. */
static void on_sent(weir_promise *promise, void *user_data)
{
    struct sending *sending = user_data;
    weir_channel *channel = sending->channel;
    int err = weir_promise_result(promise);
    char name[128];

    if (is_file_error(err))
        weir__error_limited("http_files", weir_channel_format(channel, name, sizeof(name)),
                            "a file could not be sent: %s", weir_error_text(err));
    if (err < 0)
        weir__http_reset(channel);
    weir_channel_release(channel);
    weir_memory_free(sending);
}

/* A promise for the sending of a file. */
static int watch(weir_channel *channel, weir_promise **ret_done)
{
    struct sending *sending = weir_memory_alloc(sizeof(*sending));

    if (sending == NULL || weir_promise_create(weir_channel_executor(channel), ret_done) < 0) {
        weir_memory_free(sending);
        return -ENOMEM;
    }
    memset(sending, 0, sizeof(*sending));
    sending->listener.fn = on_sent;
    sending->listener.user_data = sending;
    sending->channel = weir_channel_retain(channel);
    weir_promise_listen(*ret_done, &sending->listener);
    return 0;
}

/* A part of the representation, and a promise if it is sent from a file; otherwise NULL. */
static int take_part(const struct response *response, int64_t offset, int64_t length,
                     weir_msg **ret_msg, weir_promise **ret_done)
{
    int err = slice(response->representation, offset, length, ret_msg);

    *ret_done = NULL;
    if (err < 0 || weir_file_range_of(*ret_msg) == NULL)
        return err;
    err = watch(weir_http_exchange_channel(response->exchange), ret_done);
    if (err < 0)
        weir_msg_release(*ret_msg);
    return err;
}

/* Writes a part, as one of several. */
static int write_part(const struct response *response, int64_t offset, int64_t length)
{
    weir_promise *done;
    weir_msg *msg;
    int err = take_part(response, offset, length, &msg, &done);

    if (err < 0)
        return err;
    err = weir_http_exchange_write(response->exchange, msg, done);
    weir_promise_release(done);
    return err;
}

/*
 * Sends one part: head, content and end at once, because filters decide by the content what to do
 * with the head. With HEAD and 304 only its length counts.
 */
static int send_part(const struct response *response, int status, int64_t offset, int64_t length)
{
    weir_promise *done;
    weir_msg *msg;
    int err = take_part(response, offset, length, &msg, &done);

    if (err < 0)
        return err;
    err = weir__http_exchange_respond(response->exchange, status, msg, done);
    weir_promise_release(done);
    return err;
}

/* ---- headers ---- */

static int add(const struct response *response, enum weir_http_name name, const char *value)
{
    return weir_http_headers_add_text(response->headers, name, value);
}

/* The fields that a 304 has, too. */
static int add_validators(const struct response *response)
{
    const weir__http_representation *representation = response->representation;
    const char *cache_control = response->root->cache_control;
    int err = 0;

    if (representation->etag[0] != '\0')
        err = add(response, WEIR_HTTP_ETAG, representation->etag);
    if (err == 0 && representation->etag[0] != '\0')
        err = add(response, WEIR_HTTP_LAST_MODIFIED, representation->modified);
    if (err == 0 && cache_control[0] != '\0' &&
        weir_http_headers_get(response->headers, WEIR_HTTP_CACHE_CONTROL).data == NULL)
        err = add(response, WEIR_HTTP_CACHE_CONTROL, cache_control);
    if (err == 0 && response->file->count > 1)
        err = add(response, WEIR_HTTP_VARY, "Accept-Encoding");
    return err;
}

static int add_content_fields(const struct response *response, const char *type)
{
    int err = add_validators(response);

    if (err == 0 && weir_http_headers_get(response->headers, WEIR_HTTP_CONTENT_TYPE).data == NULL)
        err = add(response, WEIR_HTTP_CONTENT_TYPE, type);
    if (err == 0 && response->representation->coding != NULL)
        err = add(response, WEIR_HTTP_CONTENT_ENCODING, response->representation->coding);
    if (err == 0 && response->representation->etag[0] != '\0')
        err = add(response, WEIR_HTTP_ACCEPT_RANGES, "bytes");
    return err;
}

/* ---- ranges ---- */

static int send_range(const struct response *response, const weir__http_range *range)
{
    char text[WEIR__HTTP_CONTENT_RANGE_SIZE];
    int err = add_content_fields(response, response->file->type);

    if (err == 0)
        err = add(response, WEIR_HTTP_CONTENT_RANGE,
                  weir__http_content_range(range, (uint64_t)response->representation->size, text));
    return err < 0 ? err : send_part(response, 206, (int64_t)range->offset, (int64_t)range->length);
}

static void make_boundary(char boundary[BOUNDARY_SIZE])
{
    uint8_t bytes[(BOUNDARY_SIZE - 1) / 2];

    weir_random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(boundary + 2 * i, 3, "%02x", bytes[i]);
}

/* Writes the heads of all parts, and the end, into one buffer; heads[i] is the end of head i. Their
 * type is that of a response with the whole file. */
static int write_part_heads(const struct response *response, const weir__http_range *ranges,
                            size_t count, const char *boundary, weir_buf *text, size_t *heads)
{
    weir_span type = weir_http_headers_get(response->headers, WEIR_HTTP_CONTENT_TYPE);
    char content_range[WEIR__HTTP_CONTENT_RANGE_SIZE];
    int err = 0;

    if (type.data == NULL)
        type = weir_span_of_text(response->file->type);
    for (size_t i = 0; i < count && err == 0; i++) {
        (void)weir__http_content_range(&ranges[i], (uint64_t)response->representation->size,
                                       content_range);
        err = weir_buf_printf(text, "\r\n--%s\r\nContent-Type: %.*s\r\nContent-Range: %s\r\n\r\n",
                              boundary, (int)type.length, (const char *)type.data, content_range);
        heads[i] = weir_buf_readable(text);
    }
    return err < 0 ? err : weir_buf_printf(text, "\r\n--%s--\r\n", boundary);
}

static int write_text(const struct response *response, weir_buf *text, size_t length)
{
    weir_buf *piece;
    int err = weir_buf_read_slice(text, length, &piece);

    return err < 0 ? err : weir_http_exchange_write(response->exchange, weir_buf_msg(piece), NULL);
}

static int write_parts(const struct response *response, const weir__http_range *ranges,
                       size_t count, weir_buf *text, const size_t *heads)
{
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++) {
        err = write_text(response, text, heads[i] - (i > 0 ? heads[i - 1] : 0));
        if (err == 0)
            err = write_part(response, (int64_t)ranges[i].offset, (int64_t)ranges[i].length);
    }
    if (err == 0)
        err = write_text(response, text, weir_buf_readable(text));
    return err < 0 ? err : weir_http_exchange_end(response->exchange, NULL);
}

/* Several ranges: multipart/byteranges (RFC 9110 14.6). */
static int send_ranges(const struct response *response, const weir__http_range *ranges,
                       size_t count)
{
    char boundary[BOUNDARY_SIZE], type[64];
    size_t heads[WEIR__HTTP_MAX_RANGES];
    int64_t length;
    weir_buf *text;
    int err = weir_buf_create(1024, 0, &text);

    if (err < 0)
        return err;
    make_boundary(boundary);
    (void)snprintf(type, sizeof(type), "multipart/byteranges; boundary=%s", boundary);
    err = write_part_heads(response, ranges, count, boundary, text, heads);
    if (err == 0) {
        (void)weir_http_headers_remove(response->headers, WEIR_HTTP_CONTENT_TYPE);
        err = add_content_fields(response, type);
    }
    length = (int64_t)weir_buf_readable(text);
    for (size_t i = 0; i < count; i++)
        length += (int64_t)ranges[i].length;
    if (err == 0)
        err = weir_http_exchange_begin(response->exchange, 206, length);
    if (err == 0)
        err = write_parts(response, ranges, count, text, heads);
    weir_buf_release(text);
    return err;
}

static int refuse_range(const struct response *response)
{
    char text[WEIR__HTTP_CONTENT_RANGE_SIZE];
    int err = add(response, WEIR_HTTP_CONTENT_RANGE,
                  weir__http_content_range(NULL, (uint64_t)response->representation->size, text));

    return err < 0 ? err : weir_http_respond_error(response->exchange, 416, NULL);
}

/* ---- conditions ---- */

static int send_content(const struct response *response, const weir__http_conditions *conditions,
                        const weir__http_validators *validators, int64_t now)
{
    weir__http_range ranges[WEIR__HTTP_MAX_RANGES];
    weir_span field = weir_http_headers_get(response->request, WEIR_HTTP_RANGE);
    int count = 0, err;

    if (field.data != NULL && !response->is_head && validators->etag.data != NULL &&
        weir__http_conditions_allow_range(conditions, validators, now))
        count = weir__http_ranges_parse(field, (uint64_t)response->representation->size, ranges);
    if (count < 0)
        return refuse_range(response);
    if (count > 0)
        return count == 1 ? send_range(response, ranges)
                          : send_ranges(response, ranges, (size_t)count);
    err = add_content_fields(response, response->file->type);
    return err < 0 ? err : send_part(response, 200, 0, response->representation->size);
}

/* The content fields are for the compression filter; exchange_response.c removes them otherwise. */
static int not_modified(const struct response *response)
{
    int err = add_content_fields(response, response->file->type);

    (void)weir_http_headers_remove(response->headers, WEIR_HTTP_ACCEPT_RANGES);

    return err < 0 ? err : send_part(response, 304, 0, response->representation->size);
}

static int send_file(const struct response *response)
{
    const weir_http_headers *request = response->request;
    const weir__http_representation *representation = response->representation;
    const weir__http_conditions conditions = {
        .if_match = weir_http_headers_get(request, WEIR_HTTP_IF_MATCH),
        .if_none_match = weir_http_headers_get(request, WEIR_HTTP_IF_NONE_MATCH),
        .if_modified_since = weir_http_headers_get(request, WEIR_HTTP_IF_MODIFIED_SINCE),
        .if_unmodified_since = weir_http_headers_get(request, WEIR_HTTP_IF_UNMODIFIED_SINCE),
        .if_range = weir_http_headers_get(request, WEIR_HTTP_IF_RANGE),
    };
    const weir__http_validators validators = {
        .etag = representation->etag[0] != '\0' ? weir_span_of_text(representation->etag)
                                                : weir_span_of(NULL, 0),
        .modified = representation->modified_seconds,
        .is_there = true,
    };
    bool has_conditions =
        conditions.if_match.data != NULL || conditions.if_none_match.data != NULL ||
        conditions.if_modified_since.data != NULL || conditions.if_unmodified_since.data != NULL ||
        conditions.if_range.data != NULL;
    int64_t now = has_conditions ? weir_time_of_day() / 1000000000 : 0;

    if (!has_conditions)
        return send_content(response, &conditions, &validators, now);
    switch (weir__http_conditions_status(&conditions, &validators, true, now)) {
    case 304:
        return not_modified(response);
    case 412:
        return weir_http_respond_error(response->exchange, 412, NULL);
    default:
        return send_content(response, &conditions, &validators, now);
    }
}

/* ---- folders ---- */

/*
 * Redirects to the path with a "/" at the end, so that relative links of the folder's page work.
 * Several slashes at the beginning would name another host.
 */
static int redirect(const struct response *response, const weir_http_request *request)
{
    weir_span path = weir_http_request_path(request), query = weir_http_request_query(request);
    weir_buf *location;
    int err = weir_buf_create(path.length + query.length + 4, 0, &location);

    if (err < 0)
        return err;
    while (path.length > 1 && path.data[0] == '/' && path.data[1] == '/')
        path = weir_span_of(path.data + 1, path.length - 1);
    err = weir_buf_write_bytes(location, path.data, path.length);
    if (err == 0)
        err = weir_buf_write_string(location, query.length > 0 ? "/?" : "/");
    if (err == 0)
        err = weir_buf_write_bytes(location, query.data, query.length);
    if (err == 0)
        err = weir_buf_write_bytes(location, "", 1);
    if (err == 0)
        err = weir_http_respond_redirect(response->exchange, 301,
                                         (const char *)weir_buf_bytes(location));
    weir_buf_release(location);
    return err;
}

int weir__http_files_respond(const weir_http_files_root *root, weir_http_exchange *exchange,
                             const weir__http_file *file)
{
    const weir_http_request *request = weir_http_exchange_request(exchange);
    struct response response = {
        .root = root,
        .exchange = exchange,
        .request = weir_http_request_headers(request),
        .headers = weir_http_exchange_headers(exchange),
        .file = file,
        .is_head = weir_http_request_method(request) == WEIR_HTTP_METHOD_HEAD,
    };

    if (response.headers == NULL)
        return -EALREADY;
    if (file->kind == WEIR__HTTP_FILE_FOLDER)
        return redirect(&response, request);
    response.representation = choose(response.request, file);
    return send_file(&response);
}

/* ---- errors ---- */

/* Limits what clients can make the log say: one line a second of each kind. */
static bool may_log(_Atomic int64_t *logged_at)
{
    int64_t now = weir_time_of_day() / 1000000000;

    return atomic_exchange_explicit(logged_at, now, memory_order_relaxed) != now;
}

int weir__http_files_respond_error(weir_http_files_root *root, weir_http_exchange *exchange,
                                   const char *path, int err)
{
    switch (err) {
    case -ENOENT:
    case -ENOTDIR:
    case -ELOOP:
    case -EXDEV:
    case -EACCES:
    case -EPERM:
    case -EINVAL:
    case -ENAMETOOLONG:
        weir__debug("http_files", path, "not found: %s", weir_error_text(err));
        return weir_http_respond_error(exchange, 404, NULL);
    case -ENOMEM:
    case -EMFILE:
    case -ENFILE:
    case WEIR_EREJECTED:
    case WEIR_EFULL:
    case WEIR_ECANCELED:
        if (may_log(&root->warned_at))
            weir__warn_limited("http_files", path, "cannot be opened now: %s",
                               weir_error_text(err));
        return weir_http_respond_error(exchange, 503, NULL);
    default:
        if (may_log(&root->failed_at))
            weir__error_limited("http_files", path, "cannot be opened: %s", weir_error_text(err));
        return weir_http_respond_error(exchange, 500, NULL);
    }
}
