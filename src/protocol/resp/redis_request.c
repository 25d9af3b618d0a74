/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/resp/redis_request.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include <weir/error.h>
#include <weir/resp.h>

#include "base/memory.h"

/* A request that is destroyed with its promise was never sent. */
static void destroy(weir_msg *msg)
{
    weir__redis_request *request = weir__redis_request_of(msg);

    if (request->promise != NULL) {
        (void)weir_promise_fail(request->promise, WEIR_ECLOSED,
                                "connection closed before the command was sent");
        weir_promise_release(request->promise);
    }
    weir_buf_release(request->bytes);
    weir__free(request);
}

static size_t size_of(const weir_msg *msg)
{
    const weir__redis_request *request = (const weir__redis_request *)(const void *)msg;

    return request->bytes != NULL ? weir_buf_readable(request->bytes) : 0;
}

static const weir_msg_type type = {.name = "redis-command", .destroy = destroy, .size = size_of};

weir__redis_request *weir__redis_request_of(weir_msg *msg)
{
    return weir_msg_is(msg, &type) ? WEIR_CONTAINER_OF(msg, weir__redis_request, msg) : NULL;
}

weir__redis_special weir__redis_special_of(weir_span word)
{
    static const char *const names[] = {
        "subscribe",  "unsubscribe",  "psubscribe", "punsubscribe",
        "ssubscribe", "sunsubscribe", "hello",      "reset",
    };
    size_t i = 0;

    while (i < WEIR__REDIS_ORDINARY &&
           (strlen(names[i]) != word.length ||
            strncasecmp(names[i], (const char *)word.data, word.length) != 0))
        i++;
    return (weir__redis_special)i;
}

static int write_bytes(weir__redis_request *request, const weir_span *arguments, size_t count)
{
    size_t size = 16;
    int err;

    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(size, arguments[i].length + 16, &size) || size > WEIR_BUF_MAX)
            return WEIR_EBOUNDS;
    err = weir_buf_create(size, 0, &request->bytes);
    return err < 0 ? err : weir_resp_write_command(arguments, count, request->bytes);
}

int weir__redis_request_create(weir_executor *executor, const weir_span *arguments, size_t count,
                               weir__redis_request **ret_request)
{
    weir__redis_request *request = weir__zalloc(sizeof(*request));
    int err;

    if (request == NULL)
        return -ENOMEM;
    weir_msg_init(&request->msg, &type);
    weir__list_init(&request->link);
    request->special = weir__redis_special_of(arguments[0]);
    request->confirmations = count - 1;
    err = write_bytes(request, arguments, count);
    if (err == 0)
        err = weir_promise_create(executor, &request->promise);
    if (err < 0)
        weir_msg_release(&request->msg);
    else
        *ret_request = request;
    return err;
}

/* ---- completion ---- */

static weir_promise *take_promise(weir__redis_request *request)
{
    weir_promise *promise = request->promise;

    request->promise = NULL;
    weir_msg_release(&request->msg);
    return promise;
}

void weir__redis_request_fail(weir__redis_request *request, int err, const char *detail)
{
    weir_promise *promise = take_promise(request);

    (void)weir_promise_fail(promise, err, detail);
    weir_promise_release(promise);
}

static void release_value(void *value)
{
    weir_resp_release(value);
}

/* The server's text has no NUL, and may be long. */
static void fail_with_reply(weir_promise *promise, const weir_resp *reply)
{
    weir_span text = weir_resp_text(reply);
    char detail[512];

    (void)snprintf(detail, sizeof(detail), "%.*s", (int)(text.length < 511 ? text.length : 511),
                   (const char *)text.data);
    (void)weir_promise_fail(promise, WEIR_EREPLY, detail);
}

void weir__redis_request_succeed(weir__redis_request *request, weir_resp *reply)
{
    weir_promise *promise = take_promise(request);

    if (weir_resp_kind(reply) == WEIR_RESP_ERROR || weir_resp_kind(reply) == WEIR_RESP_BULK_ERROR)
        fail_with_reply(promise, reply);
    else
        (void)weir_promise_succeed_with(promise, weir_resp_retain(reply), release_value);
    weir_promise_release(promise);
}
