/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/full.h"

static void release_parts(weir_msg *head, weir_buf *content, weir_http_end *end)
{
    weir_msg_release(head);
    weir_buf_release(content);
    weir_msg_release(weir_http_end_msg(end));
}

static void destroy(weir_msg *msg)
{
    weir_http_full *full = (weir_http_full *)(void *)msg;

    release_parts(full->head, full->content, full->end);
    weir_buf_release(full->block);
}

static size_t size(const weir_msg *msg)
{
    const weir_http_full *full = (const weir_http_full *)(const void *)msg;

    return weir_msg_size(full->head) + weir_buf_readable(full->content);
}

const weir_msg_type weir__http_full_type = {.name = "http-full", .destroy = destroy, .size = size};

int weir__http_full_create(weir_msg *head, weir_buf *content, weir_http_end *end,
                           weir_http_full **ret_full)
{
    weir_http_full *full;
    weir_buf *block;
    int err = content == NULL ? weir_buf_wrap_static("", 0, &content) : 0;

    if (err == 0)
        err = weir_buf_create(sizeof(*full), 0, &block);
    if (err < 0) {
        release_parts(head, content, end);
        return err;
    }
    full = (weir_http_full *)(void *)weir_buf_space(block);
    weir_msg_init(&full->msg, &weir__http_full_type);
    full->block = block;
    full->head = head;
    full->content = content;
    full->end = end;
    *ret_full = full;
    return 0;
}

weir_http_full *weir_http_full_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir__http_full_type) ? (weir_http_full *)(void *)msg
                                                                  : NULL;
}

weir_msg *weir_http_full_msg(weir_http_full *full)
{
    return &full->msg;
}

weir_http_request *weir_http_full_request(const weir_http_full *full)
{
    return weir_http_request_of(full->head);
}

weir_http_response *weir_http_full_response(const weir_http_full *full)
{
    return weir_http_response_of(full->head);
}

weir_buf *weir_http_full_content(const weir_http_full *full)
{
    return full->content;
}

weir_http_headers *weir_http_full_trailers(const weir_http_full *full)
{
    return weir_http_end_trailers(full->end);
}
