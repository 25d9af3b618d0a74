/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request begins with a method, which is in upper case, a TLS record with a byte below 32: the
 * first byte decides.
 */
#include "protocol/http/plain_refusal.h"

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/handler.h>

#include "base/log.h"
#include "protocol/http/http_counters.h"

static const char answer[] = "HTTP/1.1 400 Bad Request\r\n"
                             "Content-Type: text/plain\r\n"
                             "Content-Length: 40\r\n"
                             "Connection: close\r\n\r\n"
                             "a plain HTTP request to a port with TLS\n";

struct plain_refusal {
    bool has_refused;
};

static void refuse(weir_ctx *ctx)
{
    char name[128];
    weir_buf *buf;

    weir__limited(WEIR_LOG_INFO, "http",
                  weir_channel_format(weir_ctx_channel(ctx), name, sizeof(name)),
                  "a plain HTTP request to a port with TLS: 400");
    weir__http_count(WEIR__HTTP_REFUSED, 1);
    if (weir_buf_create_from(answer, sizeof(answer) - 1, &buf) == 0) {
        weir__http_count_response(400);
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    }
    weir_close(ctx, NULL); /* which lets the client read the answer */
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct plain_refusal *self = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);

    if (!self->has_refused && buf != NULL && weir_buf_readable(buf) > 0) {
        uint8_t first = weir_buf_bytes(buf)[0];

        self->has_refused = first >= 'A' && first <= 'Z';
        if (self->has_refused)
            refuse(ctx);
        else
            weir_ctx_remove(ctx);
    }
    if (self->has_refused)
        weir_msg_release(msg);
    else
        weir_fire_read(ctx, msg);
}

static const weir_handler plain_refusal = {.name = "plain-refusal",
                                           .state_size = sizeof(struct plain_refusal),
                                           .read = on_read,
                                           .stays_on_loop = true};

int weir__http_plain_refusal_add(weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &plain_refusal, NULL);
}
