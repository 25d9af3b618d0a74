/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/refusal.h"

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/memory.h>

#include "base/log.h"

struct weir_http_refusal {
    weir_msg msg;
    int status;
    const char *detail;
};

static void destroy(weir_msg *msg)
{
    weir_memory_free(msg);
}

static const weir_msg_type refusal_type = {.name = "http-refusal", .destroy = destroy};

const weir_http_refusal *weir_http_refusal_of(const weir_msg *event)
{
    return event != NULL && weir_msg_is(event, &refusal_type)
               ? (const weir_http_refusal *)(const void *)event
               : NULL;
}

int weir_http_refusal_status(const weir_http_refusal *refusal)
{
    return refusal->status;
}

const char *weir_http_refusal_detail(const weir_http_refusal *refusal)
{
    return refusal->detail;
}

static void log_refusal(weir_ctx *ctx, int status, const char *detail)
{
    char name[128];

    if (weir_log_enabled(WEIR_LOG_DEBUG))
        weir__debug("http", weir_channel_format(weir_ctx_channel(ctx), name, sizeof(name)),
                    "request refused with %d: %s", status, detail);
}

void weir__http_refusal_fire(weir_ctx *ctx, int status, const char *detail)
{
    weir_http_refusal *refusal = weir_memory_alloc(sizeof(*refusal));

    log_refusal(ctx, status, detail);
    if (refusal == NULL)
        return; /* the refusal itself does not depend on the event */
    weir_msg_init(&refusal->msg, &refusal_type);
    refusal->status = status;
    refusal->detail = detail;
    weir_fire_event(ctx, &refusal->msg);
}

int weir__http_refusal_answer(int status, const char *detail, weir_http_response **ret_response,
                              weir_buf **ret_content)
{
    weir_http_response *response = NULL;
    weir_buf *content = NULL;
    int err = weir_http_response_create(status, &response);

    if (err == 0)
        err = weir_buf_create(strlen(detail) + 1, 0, &content);
    if (err == 0)
        err = weir_buf_printf(content, "%s\n", detail);
    if (err == 0)
        err = weir_http_headers_add_text(weir_http_response_headers(response),
                                         WEIR_HTTP_CONTENT_TYPE, "text/plain");
    if (err < 0) {
        weir_msg_release(response != NULL ? weir_http_response_msg(response) : NULL);
        weir_buf_release(content);
        return err;
    }
    (void)weir_http_response_set_content_length(response, (int64_t)weir_buf_readable(content));
    weir_http_response_set_closes(response, true);
    *ret_response = response;
    *ret_content = content;
    return 0;
}

int weir__http_refusal_write(weir_ctx *ctx, int status, const char *detail)
{
    weir_http_response *response;
    weir_buf *content;
    int err = weir__http_refusal_answer(status, detail, &response, &content);

    if (err < 0)
        return err;
    weir_write(ctx, weir_http_response_msg(response), NULL);
    weir_write(ctx, weir_buf_msg(content), NULL);
    weir_write_and_flush(ctx, weir_http_end_static(), NULL);
    return 0;
}
