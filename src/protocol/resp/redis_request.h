/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command on its way to the handler that sends it, as a message; then the one that waits there
 * for its reply.
 */
#ifndef WEIR_PROTOCOL_RESP_REDIS_REQUEST_H
#define WEIR_PROTOCOL_RESP_REDIS_REQUEST_H

#include <weir/executor.h>
#include <weir/promise.h>
#include <weir/resp.h>

#include "base/list.h"

/* What is special about a command. The first six are (kind of subscription) * 2 + (its end). */
typedef enum weir__redis_special {
    WEIR__REDIS_SUBSCRIBE,
    WEIR__REDIS_UNSUBSCRIBE,
    WEIR__REDIS_PSUBSCRIBE,
    WEIR__REDIS_PUNSUBSCRIBE,
    WEIR__REDIS_SSUBSCRIBE,
    WEIR__REDIS_SUNSUBSCRIBE,
    WEIR__REDIS_HELLO,
    WEIR__REDIS_RESET,
    WEIR__REDIS_ORDINARY,
} weir__redis_special;

typedef struct weir__redis_request {
    weir_msg msg;
    weir__list link;
    weir_buf *bytes; /* the command; NULL when it is sent */
    weir_promise *promise;
    weir__redis_special special;
    size_t confirmations; /* of a subscription that are to come; 0 = not known yet */
} weir__redis_request;

/* Which command a word is: "subscribe", in whatever case. */
weir__redis_special weir__redis_special_of(weir_span word);

int weir__redis_request_create(weir_executor *executor, const weir_span *arguments, size_t count,
                               weir__redis_request **ret_request);

weir__redis_request *weir__redis_request_of(weir_msg *msg);

/* Completes its promise, and releases it. Takes: request. The reply is kept by the promise. */
void weir__redis_request_succeed(weir__redis_request *request, weir_resp *reply);
void weir__redis_request_fail(weir__redis_request *request, int err, const char *detail);

#endif
