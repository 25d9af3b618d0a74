/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A choice on its way: to a chooser, who may have it for long and on any thread, and back to the
 * handler, as an event of the channel. So whatever has become of the channel and of the handler
 * meanwhile, it finds its way or is dropped.
 */
#ifndef WEIR_TLS_TLS_CHOICE_H
#define WEIR_TLS_TLS_CHOICE_H

#include <weir/channel.h>
#include <weir/tls_context.h>

#include "tls/engine.h"

struct weir_tls_choice {
    weir_msg msg;          /* first */
    const weir_ctx *ctx;   /* whose it is; only to be compared */
    weir_channel *channel; /* kept */
    weir__tls_wish wish;

    /* What was decided: one of these, or (neither) the context that was asked. */
    weir_tls_context *accepted; /* kept */
    bool is_refused;
    char reason[WEIR__TLS_REASON_SIZE];
};

/* One reference is the caller's, and is the chooser's to decide upon. Fails: -ENOMEM. */
int weir__tls_choice_create(const weir_ctx *ctx, const weir__tls_wish *wish,
                            weir_tls_choice **ret_choice);

/* The choice that an event is, decided upon; NULL if it is something else. */
weir_tls_choice *weir__tls_choice_of(weir_msg *event);

#endif
