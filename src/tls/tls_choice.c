/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_choice.h"

#include <errno.h>
#include <stdio.h>

#include <weir/handler.h>
#include <weir/memory.h>

static weir_tls_choice *choice_of(weir_msg *msg)
{
    return (weir_tls_choice *)(void *)msg; /* its first member */
}

static void destroy(weir_msg *msg)
{
    weir_tls_choice *choice = choice_of(msg);

    weir_tls_context_release(choice->accepted);
    weir_channel_release(choice->channel);
    weir_memory_free(choice);
}

static const weir_msg_type choice_type = {.name = "tls-choice", .destroy = destroy};

int weir__tls_choice_create(const weir_ctx *ctx, const weir__tls_wish *wish,
                            weir_tls_choice **ret_choice)
{
    weir_tls_choice *choice = weir_memory_alloc(sizeof(*choice));

    if (choice == NULL)
        return -ENOMEM;
    *choice = (weir_tls_choice){
        .ctx = ctx,
        .channel = weir_channel_retain(weir_ctx_channel(ctx)),
        .wish = *wish,
    };
    weir_msg_init(&choice->msg, &choice_type);
    *ret_choice = choice;
    return 0;
}

weir_tls_choice *weir__tls_choice_of(weir_msg *event)
{
    return weir_msg_is(event, &choice_type) ? choice_of(event) : NULL;
}

const char *weir_tls_choice_server_name(const weir_tls_choice *choice)
{
    return choice->wish.server_name;
}

const char *weir_tls_choice_alpn(const weir_tls_choice *choice)
{
    return choice->wish.alpn;
}

/* The channel is kept by the event, which may be gone when this returns. */
static void send_back(weir_tls_choice *choice)
{
    weir_channel *channel = weir_channel_retain(choice->channel);

    weir_channel_fire_event(channel, &choice->msg);
    weir_channel_release(channel);
}

void weir_tls_choice_accept(weir_tls_choice *choice, weir_tls_context *context)
{
    if (context != NULL)
        choice->accepted = weir_tls_context_retain(context);
    send_back(choice);
}

void weir_tls_choice_refuse(weir_tls_choice *choice, const char *reason)
{
    choice->is_refused = true;
    (void)snprintf(choice->reason, sizeof(choice->reason), "%s",
                   reason != NULL ? reason : "the name was refused");
    send_back(choice);
}
