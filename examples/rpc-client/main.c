/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends many remote calls to the example rpc without waiting; the results arrive in any order, each
 * as a promise.
 *     rpc-client [--calls 10000] [--host 127.0.0.1] [--port 8025]
 *                [--io auto|epoll|uring|poll|blocking] [--tls] [--ca FILE] [--insecure]
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/rpc.h"
#include "support/settings.h"

#define PENDING_MAX (1 << 16) /* a power of two */

/* ---- a pending call: a message with the promise of its result ---- */

struct call {
    weir_msg msg;
    weir_promise *result;
    enum rpc_method method;
    uint64_t number;
};

/* Released unsent: the call fails. */
static void destroy_call(weir_msg *msg)
{
    struct call *call = WEIR_CONTAINER_OF(msg, struct call, msg);

    (void)weir_promise_fail(call->result, WEIR_ECLOSED, NULL); /* unless it is complete */
    weir_promise_release(call->result);
    free(call);
}

static const weir_msg_type call_type = {.name = "call", .destroy = destroy_call};

/* doc:begin call */
/* Any thread. The value of the promise points to the result. */
static int make_call(weir_channel *channel, enum rpc_method method, uint64_t number,
                     weir_promise **ret_result)
{
    struct call *call = calloc(1, sizeof(*call));

    if (call == NULL || weir_promise_create(weir_channel_executor(channel), &call->result) < 0) {
        free(call);
        return -ENOMEM;
    }
    weir_msg_init(&call->msg, &call_type);
    call->method = method;
    call->number = number;
    *ret_result = weir_promise_retain(call->result);
    weir_channel_write_and_flush(channel, &call->msg, NULL);
    return 0;
}
/* doc:end */

/* ---- the handler: pending calls by id ---- */

struct client {
    uint32_t next;
    uint32_t last_result; /* its id, and the number of results that overtook an earlier call */
    uint32_t overtaken;
    struct call *pending[PENDING_MAX]; /* by id */
};

static int encode(const struct call *call, uint32_t id, weir_buf **ret_buf)
{
    int err = weir_buf_create(13, 0, ret_buf);

    if (err)
        return err;
    (void)weir_buf_write_u32(*ret_buf, id);
    (void)weir_buf_write_u8(*ret_buf, (uint8_t)call->method);
    (void)weir_buf_write_u64(*ret_buf, call->number);
    return 0;
}

/* doc:begin match */
static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct client *client = weir_ctx_state(ctx);
    struct call *call = WEIR_CONTAINER_OF(msg, struct call, msg);
    struct call **place = &client->pending[client->next % PENDING_MAX];
    weir_buf *buf = NULL;
    int err = *place != NULL ? WEIR_EFULL : encode(call, client->next, &buf);

    if (err) {
        (void)weir_promise_fail(call->result, err, NULL);
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, 0, NULL);
        return;
    }
    *place = call;
    client->next++;
    weir_write(ctx, weir_buf_msg(buf), done);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct client *client = weir_ctx_state(ctx);
    struct call *call = NULL;
    uint64_t *number = malloc(sizeof(*number));
    uint32_t id = 0;

    if (number != NULL && weir_buf_read_u32(weir_buf_of(msg), &id) == 0 &&
        weir_buf_read_u64(weir_buf_of(msg), number) == 0) {
        call = client->pending[id % PENDING_MAX];
        client->pending[id % PENDING_MAX] = NULL;
    }
    weir_msg_release(msg);
    if (call == NULL) {
        free(number);
        weir_fire_error(ctx, WEIR_EMALFORMED, "nobody has asked for that");
        return;
    }
    client->overtaken += id < client->last_result;
    client->last_result = id;
    (void)weir_promise_succeed_with(call->result, number, free);
    weir_msg_release(&call->msg);
}
/* doc:end */

static void on_inactive(weir_ctx *ctx)
{
    struct client *client = weir_ctx_state(ctx);

    for (size_t i = 0; i < PENDING_MAX; i++) {
        if (client->pending[i] != NULL)
            weir_msg_release(&client->pending[i]->msg); /* which fails the promise */
        client->pending[i] = NULL;
    }
    printf("%u results were overtaken by others\n", client->overtaken);
    weir_fire_inactive(ctx);
}

static const weir_handler client_handler = {
    .name = "client",
    .state_size = sizeof(struct client),
    .write = on_write,
    .read = on_read,
    .inactive = on_inactive,
};

static int init(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = rpc_frames_add(pipeline);

    (void)user_data;
    return err ? err : weir_pipeline_add_last(pipeline, &client_handler, NULL);
}

/* ---- many calls ---- */

/* Every tenth takes longer: 65521 * 65521 has no smaller factor. */
static int make_calls(weir_channel *channel, weir_promise **results, size_t count)
{
    int err = 0;

    for (size_t i = 0; !err && i < count; i++)
        err = i % 10 == 0 ? make_call(channel, RPC_FACTOR, UINT64_C(65521) * 65521, &results[i])
                          : make_call(channel, RPC_SQUARE, i, &results[i]);
    return err;
}

static int await_results(weir_promise **results, size_t count)
{
    int err = 0;

    for (size_t i = 0; !err && i < count; i++) {
        err = weir_promise_sync(results[i], WEIR_NEVER);
        if (!err && *(uint64_t *)weir_promise_value(results[i]) != (i % 10 == 0 ? 65521 : i * i))
            err = -EBADMSG;
    }
    return err;
}

int main(int argc, char **argv)
{
    const char *calls = settings_take(&argc, argv, "--calls");
    struct settings settings = settings_read_tls(argc, argv, "127.0.0.1", 8025);
    size_t count = calls ? strtoul(calls, NULL, 10) : 10000;
    weir_promise **results = calloc(count + 1, sizeof(*results));
    weir_group *group = NULL;
    weir_channel *channel = NULL;
    int err = results == NULL ? -ENOMEM : 0;

    if (!err)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = settings.io), &group);
    if (!err)
        err = connect_to(&settings, group, init, NULL, &channel);
    if (!err)
        err = make_calls(channel, results, count);
    if (!err)
        err = await_results(results, count);
    if (err)
        fprintf(stderr, "rpc-client: %s: %s\n", settings.address, weir_error_text(err));
    else
        printf("%zu calls, all with the right result\n", count);
    for (size_t i = 0; results != NULL && i < count; i++)
        weir_promise_release(results[i]);
    free(results);
    weir_channel_release(channel);
    weir_group_release(group); /* joins its thread */
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
