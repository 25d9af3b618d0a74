/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/filters.h"

#include <weir/error.h>

#define DISCARDED_MAX 65536 /* bytes of content; the connection is closed rather than read more */

/* A client that waits for status 100 may send the content or not: nobody knows what follows. */
static bool must_close(const weir_http_request *request)
{
    int64_t length = weir_http_request_content_length(request);

    return length < 0 || length > DISCARDED_MAX ||
           (length > 0 && weir_http_request_expects_continue(request));
}

int weir__http_local_reply_create(const weir_http_request *request, int status,
                                  weir_http_response **ret_response)
{
    weir_http_response *response = NULL;
    int err = weir_http_response_create(status, &response);

    if (err < 0)
        return err;
    (void)weir_http_response_set_content_length(response, 0);
    if (must_close(request))
        weir_http_response_set_closes(response, true);
    *ret_response = response;
    return 0;
}

void weir__http_local_reply_send(weir_ctx *ctx, weir__http_local_reply *reply,
                                 weir_http_response *response, weir_http_request *request)
{
    weir_msg_release(weir_http_request_msg(request));
    reply->is_discarding = true;
    reply->needs_request = true;
    if (response == NULL) {
        weir_close(ctx, NULL);
        return;
    }
    weir_write(ctx, weir_http_response_msg(response), NULL);
    weir_write_and_flush(ctx, weir_http_end_static(), NULL);
}

bool weir__http_local_reply_discards(weir__http_local_reply *reply, weir_msg *msg)
{
    if (!reply->is_discarding)
        return false;
    if (weir_http_request_of(msg) != NULL) { /* the codec ended the discarded one */
        reply->is_discarding = false;
        return false;
    }
    if (weir_http_end_of(msg) != NULL)
        reply->is_discarding = false;
    reply->needs_request = true;
    weir_msg_release(msg);
    return true;
}

void weir__http_local_reply_read_complete(weir_ctx *ctx, weir__http_local_reply *reply)
{
    bool needs_request = reply->needs_request;

    reply->needs_request = false;
    weir_fire_read_complete(ctx);
    if (needs_request && !weir_ctx_is_removed(ctx))
        weir_request_read(ctx);
}
