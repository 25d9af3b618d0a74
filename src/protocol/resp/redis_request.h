/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command: a message on its way to the redis handler, then an entry in the handler's list of
 * pending replies.
 */
#ifndef WEIR_PROTOCOL_RESP_REDIS_REQUEST_H
#define WEIR_PROTOCOL_RESP_REDIS_REQUEST_H

#include <weir/executor.h>
#include <weir/promise.h>
#include <weir/resp.h>

#include "base/list.h"

/* Commands that need special treatment. The first six are (kind of subscription) * 2 + (1 to
 * unsubscribe). */
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
    weir_buf *bytes; /* the encoded command; NULL once sent */
    weir_promise *promise;
    weir__redis_special special;
    size_t confirmations; /* outstanding confirmations of a subscription; 0 = unknown yet */
} weir__redis_request;

/* The command of a name in any case, such as "subscribe". */
weir__redis_special weir__redis_special_of(weir_span word);

int weir__redis_request_create(weir_executor *executor, const weir_span *arguments, size_t count,
                               weir__redis_request **ret_request);

weir__redis_request *weir__redis_request_of(weir_msg *msg);

/* Complete the promise and free the request. Take: request. The promise retains the reply. */
void weir__redis_request_succeed(weir__redis_request *request, weir_resp *reply);
void weir__redis_request_fail(weir__redis_request *request, int err, const char *detail);

#endif
