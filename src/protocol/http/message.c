/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, responses and ends.
 */
#include "protocol/http/message.h"

#include <errno.h>
#include <string.h>

#include "base/no_stack_protector.h"

/* ---- heads ---- */

/* Headers are reached through a const head, but belong to its holder. */
static weir_http_headers *writable(const weir_http_headers *headers)
{
    return (weir_http_headers *)(uintptr_t)headers;
}

WEIR__NO_STACK_PROTECTOR static int alloc_head(size_t size, size_t struct_size, size_t room,
                                               const weir_msg_type *type,
                                               weir__http_head **ret_head)
{
    weir__http_head *head;
    weir_buf *block;
    uint8_t *start;
    int err = weir_buf_create(size, 0, &block);

    if (err < 0)
        return err;
    start = weir_buf_space(block);
    head = (weir__http_head *)(void *)start;
    weir__http_clear(start, struct_size);
    weir_msg_init(&head->msg, type);
    head->block = block;
    head->version = WEIR_HTTP_1_1;
    weir__http_headers_init(&head->headers, start + struct_size + room,
                            start + (weir_buf_capacity(block) & ~(size_t)7));
    *ret_head = head;
    return 0;
}

static void destroy_head(weir_msg *msg)
{
    weir__http_head *head = (weir__http_head *)(void *)msg;

    weir__http_headers_deinit(&head->headers);
    weir_buf_release(head->received);
    weir_buf_release(head->block);
}

/* The memory that a head occupies, roughly. */
static size_t head_size(const weir_msg *msg)
{
    const weir__http_head *head = (const weir__http_head *)(const void *)msg;

    return 256 + head->headers.count * 32 + head->headers.added;
}

static int set_content_length(weir__http_head *head, int64_t length)
{
    if (length < WEIR_HTTP_UNKNOWN_LENGTH)
        return -EINVAL;
    head->content_length = length;
    return 0;
}

/* ---- requests ---- */

const weir_msg_type weir_http_request_type = {
    .name = "http-request", .destroy = destroy_head, .size = head_size};

WEIR__NO_STACK_PROTECTOR int weir__http_request_alloc(size_t size, size_t room,
                                                      weir_http_request **ret_request)
{
    weir__http_head *head;
    int err = alloc_head(size + room, sizeof(**ret_request), room, &weir_http_request_type, &head);

    if (err < 0)
        return err;
    *ret_request = (weir_http_request *)(void *)head;
    (*ret_request)->room = (uint16_t)room;
    return 0;
}

int weir_http_request_create(const char *method, const char *target,
                             weir_http_request **ret_request)
{
    weir_span text = weir_span_of_text(method);
    weir_http_request *request;
    int err;

    if (!weir__http_is_token(text))
        return -EINVAL;
    err = weir__http_request_alloc(WEIR__HTTP_REQUEST_SIZE, 0, &request);
    if (err < 0)
        return err;
    request->method = (uint8_t)weir_http_method_of(text);
    request->method_length = (uint32_t)text.length;
    err = weir__http_headers_add_bytes(&request->head.headers, text, &request->method_text);
    if (err == 0)
        err = weir_http_request_set_target(request, weir_span_of_text(target));
    if (err < 0) {
        weir_msg_release(&request->head.msg);
        return err;
    }
    *ret_request = request;
    return 0;
}

enum weir_http_method weir_http_request_method(const weir_http_request *request)
{
    return (enum weir_http_method)request->method;
}

weir_span weir_http_request_method_text(const weir_http_request *request)
{
    return weir__http_text(&request->head.headers, request->method_text, request->method_length);
}

weir_span weir_http_request_target(const weir_http_request *request)
{
    return weir__http_text(&request->head.headers, request->target, request->target_length);
}

/* The length of the scheme and "://" of an absolute target; 0 if it has none. */
static size_t scheme_length(weir_span target)
{
    size_t i;

    if (target.length == 0 || !weir__http_char_is(target.data[0], WEIR__HTTP_ALPHA))
        return 0;
    for (i = 1; i < target.length && target.data[i] != ':'; i++)
        if (!weir__http_char_is(target.data[i], WEIR__HTTP_ALPHA | WEIR__HTTP_DIGIT) &&
            memchr("+-.", target.data[i], 3) == NULL)
            return 0;
    return target.length - i >= 3 && memcmp(target.data + i, "://", 3) == 0 ? i + 3 : 0;
}

weir_span weir__http_target_authority(weir_span target)
{
    size_t start = scheme_length(target), end = start;

    if (start == 0)
        return (weir_span){0};
    while (end < target.length && target.data[end] != '/' && target.data[end] != '?')
        end++;
    return weir_span_of(target.data + start, end - start);
}

static size_t until(weir_span text, size_t from, uint8_t byte)
{
    const uint8_t *found = memchr(text.data + from, byte, text.length - from);

    return found != NULL ? (size_t)(found - text.data) : text.length;
}

static void find_odd_path(weir_http_request *request, weir_span target)
{
    weir_span authority;
    size_t start = 0, end;

    if (target.data[0] != '/' && !(target.length == 1 && target.data[0] == '*')) {
        authority = weir__http_target_authority(target);
        start = authority.data == NULL ? target.length /* "host:port" has no path */
                                       : (size_t)(authority.data + authority.length - target.data);
    }
    end = until(target, start, '?');
    request->path = (uint32_t)start;
    request->path_length = (uint32_t)(end - start);
    request->is_encoded = until(target, start, '%') < end;
    request->has_fragment = until(target, 0, '#') < target.length;
}

void weir__http_request_find_path(weir_http_request *request)
{
    weir_span target = weir__http_request_target(request);
    size_t i = 0;

    if (target.data[0] == '/')
        while (i < target.length && !weir__http_char_is(target.data[i], WEIR__HTTP_TARGET_MARK))
            i++;
    if (i < target.length) {
        find_odd_path(request, target);
        return;
    }
    request->path = 0; /* the whole target is a path */
    request->path_length = (uint32_t)i;
    request->is_encoded = request->has_fragment = false;
}

weir_span weir_http_request_path(const weir_http_request *request)
{
    weir_span target = weir_http_request_target(request);

    return weir_span_of(target.data + request->path, request->path_length);
}

weir_span weir_http_request_query(const weir_http_request *request)
{
    weir_span target = weir_http_request_target(request);
    size_t start = (size_t)request->path + request->path_length;

    if (start < target.length)
        start++; /* the question mark */
    return weir_span_of(target.data + start, target.length - start);
}

weir_span weir_http_request_authority(const weir_http_request *request)
{
    weir_span target = weir_http_request_target(request);
    weir_span authority = weir__http_target_authority(target);

    if (authority.data == NULL && request->method == WEIR_HTTP_METHOD_CONNECT)
        authority = target;
    if (authority.data == NULL)
        authority = weir_http_headers_get(&request->head.headers, WEIR_HTTP_HOST);
    return authority.data != NULL ? authority : weir_span_of("", 0);
}

enum weir_http_version weir_http_request_version(const weir_http_request *request)
{
    return (enum weir_http_version)request->head.version;
}

int weir_http_request_set_target(weir_http_request *request, weir_span target)
{
    int err;

    if (target.length == 0 || target.length > UINT16_MAX ||
        !weir__http_chars_are(target, WEIR__HTTP_TARGET))
        return -EINVAL;
    err = weir__http_headers_add_bytes(&request->head.headers, target, &request->target);
    if (err < 0)
        return err;
    request->target_length = (uint32_t)target.length;
    weir__http_request_find_path(request);
    return 0;
}

weir_http_headers *weir_http_request_headers(const weir_http_request *request)
{
    return writable(&request->head.headers);
}

int64_t weir_http_request_content_length(const weir_http_request *request)
{
    return request->head.content_length;
}

int weir_http_request_set_content_length(weir_http_request *request, int64_t length)
{
    return set_content_length(&request->head, length);
}

bool weir_http_request_expects_continue(const weir_http_request *request)
{
    return request->expects_continue;
}

/* ---- responses ---- */

const weir_msg_type weir_http_response_type = {
    .name = "http-response", .destroy = destroy_head, .size = head_size};

int weir__http_response_alloc(size_t size, weir_http_response **ret_response)
{
    return alloc_head(size, sizeof(**ret_response), 0, &weir_http_response_type,
                      (weir__http_head **)(void *)ret_response);
}

int weir_http_response_create(int status, weir_http_response **ret_response)
{
    weir_http_response *response;
    int err;

    if (status < 100 || status > 599)
        return -EINVAL;
    err = weir__http_response_alloc(WEIR__HTTP_RESPONSE_SIZE, &response);
    if (err < 0)
        return err;
    response->status = (uint16_t)status;
    *ret_response = response;
    return 0;
}

int weir_http_response_status(const weir_http_response *response)
{
    return response->status;
}

weir_span weir_http_response_reason(const weir_http_response *response)
{
    if (response->has_reason)
        return weir__http_text(&response->head.headers, response->reason, response->reason_length);
    return weir_span_of_text(weir_http_status_text(response->status));
}

enum weir_http_version weir_http_response_version(const weir_http_response *response)
{
    return (enum weir_http_version)response->head.version;
}

int weir_http_response_set_status(weir_http_response *response, int status)
{
    if (status < 100 || status > 599)
        return -EINVAL;
    response->status = (uint16_t)status;
    response->has_reason = false;
    return 0;
}

weir_http_headers *weir_http_response_headers(const weir_http_response *response)
{
    return writable(&response->head.headers);
}

int64_t weir_http_response_content_length(const weir_http_response *response)
{
    return response->head.content_length;
}

int weir_http_response_set_content_length(weir_http_response *response, int64_t length)
{
    return set_content_length(&response->head, length);
}

bool weir_http_response_closes(const weir_http_response *response)
{
    return response->closes;
}

void weir_http_response_set_closes(weir_http_response *response, bool closes)
{
    response->closes = closes;
}

/* ---- ends ---- */

static void destroy_end(weir_msg *msg)
{
    weir_http_end *end = (weir_http_end *)(void *)msg;

    weir__http_headers_deinit(&end->trailers);
    weir_buf_release(end->received);
    weir_buf_release(end->block);
}

static size_t end_size(const weir_msg *msg)
{
    const weir_http_end *end = (const weir_http_end *)(const void *)msg;

    return end->has_trailers ? 256 + end->trailers.added : 0;
}

const weir_msg_type weir_http_end_type = {
    .name = "http-end", .destroy = destroy_end, .size = end_size};

static weir_http_end end_without_trailers = {
    .msg = {.type = &weir_http_end_type, .refs = WEIR_MSG_STATIC}};

weir_msg *weir_http_end_static(void)
{
    return &end_without_trailers.msg;
}

int weir_http_end_create(weir_http_end **ret_end)
{
    weir_http_end *end;
    weir_buf *block;
    uint8_t *start;
    int err = weir_buf_create(WEIR__HTTP_END_SIZE, 0, &block);

    if (err < 0)
        return err;
    start = weir_buf_space(block);
    end = (weir_http_end *)(void *)start;
    *end = (weir_http_end){.block = block, .has_trailers = true};
    weir_msg_init(&end->msg, &weir_http_end_type);
    weir__http_headers_init(&end->trailers, end + 1,
                            start + (weir_buf_capacity(block) & ~(size_t)7));
    *ret_end = end;
    return 0;
}

weir_http_headers *weir_http_end_trailers(const weir_http_end *end)
{
    return end->has_trailers ? writable(&end->trailers) : NULL;
}
