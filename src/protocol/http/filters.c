/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/filters.h"

#include <stdio.h>

#include <weir/error.h>
#include <weir/pipeline.h>

#include "protocol/http/reset.h"

#define VARY_MAX 256 /* longer ones get another line */

void weir__http_filters_remove(weir_pipeline *pipeline)
{
    const weir_handler *const filters[] = {&weir__http_access_log_handler,
                                           &weir__http_request_ids_handler,
                                           &weir__http_client_limit_handler,
                                           &weir__http_security_handler,
                                           &weir__http_cors_handler,
                                           &weir__http_compression_handler,
                                           &weir__http_decompression_handler.handler};
    weir_ctx *ctx;

    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        while ((ctx = weir_pipeline_find_handler(pipeline, filters[i])) != NULL)
            weir_ctx_remove(ctx);
}

bool weir__http_is_interim(const weir_http_response *response)
{
    int status = weir_http_response_status(response);

    return status < 200 && status != 101;
}

int weir__http_vary_add(weir_http_headers *headers, const char *name)
{
    char merged[VARY_MAX];
    weir_span old, second;
    size_t index = 0;
    int length;

    if (weir_http_headers_have_token(headers, WEIR_HTTP_VARY, name) ||
        weir_http_headers_have_token(headers, WEIR_HTTP_VARY, "*"))
        return 0;
    if (!weir_http_headers_next(headers, WEIR_HTTP_VARY, &index, &old) ||
        weir_http_headers_next(headers, WEIR_HTTP_VARY, &index, &second))
        return weir_http_headers_add_text(headers, WEIR_HTTP_VARY, name);
    length =
        snprintf(merged, sizeof(merged), "%.*s, %s", (int)old.length, (const char *)old.data, name);
    if (length < 0 || (size_t)length >= sizeof(merged))
        return weir_http_headers_add_text(headers, WEIR_HTTP_VARY, name);
    return weir_http_headers_set_text(headers, WEIR_HTTP_VARY, merged);
}

void weir__http_fail_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done, int err)
{
    weir_msg_release(msg);
    if (done != NULL)
        weir_ctx_report(ctx, done, err, "a filter cannot change the response");
    else
        weir_fire_error(ctx, err, "a filter cannot change the response");
    weir__http_reset(weir_ctx_channel(ctx));
}
