/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_sni_request.h"

#include <errno.h>
#include <stdio.h>

#include <weir/handler.h>
#include <weir/memory.h>

static weir_tls_sni_request *request_of(weir_msg *msg)
{
    return (weir_tls_sni_request *)(void *)msg; /* its first member */
}

static void destroy(weir_msg *msg)
{
    weir_tls_sni_request *request = request_of(msg);

    weir_tls_context_release(request->accepted);
    weir_channel_release(request->channel);
    weir_memory_free(request);
}

static const weir_msg_type request_type = {.name = "tls-sni-request", .destroy = destroy};

int weir__tls_sni_request_create(const weir_ctx *ctx, const weir__openssl_hello *hello,
                                 weir_tls_sni_request **ret_request)
{
    weir_tls_sni_request *request = weir_memory_alloc(sizeof(*request));

    if (request == NULL)
        return -ENOMEM;
    *request = (weir_tls_sni_request){
        .ctx = ctx,
        .channel = weir_channel_retain(weir_ctx_channel(ctx)),
        .hello = *hello,
    };
    weir_msg_init(&request->msg, &request_type);
    *ret_request = request;
    return 0;
}

weir_tls_sni_request *weir__tls_sni_request_of(weir_msg *event)
{
    return weir_msg_is(event, &request_type) ? request_of(event) : NULL;
}

const char *weir_tls_sni_request_server_name(const weir_tls_sni_request *request)
{
    return request->hello.server_name;
}

const char *weir_tls_sni_request_alpn(const weir_tls_sni_request *request)
{
    return request->hello.alpn;
}

/* The event holds the only reference to the channel, and may be gone when this returns. */
static void send_back(weir_tls_sni_request *request)
{
    weir_channel *channel = weir_channel_retain(request->channel);

    weir_channel_fire_event(channel, &request->msg);
    weir_channel_release(channel);
}

void weir_tls_sni_request_accept(weir_tls_sni_request *request, weir_tls_context *context)
{
    if (context != NULL)
        request->accepted = weir_tls_context_retain(context);
    send_back(request);
}

void weir_tls_sni_request_reject(weir_tls_sni_request *request, const char *reason)
{
    request->is_rejected = true;
    (void)snprintf(request->reason, sizeof(request->reason), "%s",
                   reason != NULL ? reason : "the server name was rejected");
    send_back(request);
}
