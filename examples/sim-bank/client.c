/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the bank: one call at a time, repeated until it is answered.
 */
#include "bank.h"

#include <stdlib.h>

#define ANSWER_TIMEOUT_NS weir_ms(200)
#define RETRY_DELAY_NS weir_ms(10)

/* ---- a call: a message with the promise of its answer ---- */

struct call {
    weir_msg msg;
    struct bank_transfer transfer;
    weir_promise *answer;
};

static void destroy_call(weir_msg *msg)
{
    struct call *call = WEIR_CONTAINER_OF(msg, struct call, msg);

    (void)weir_promise_fail(call->answer, WEIR_ECLOSED, NULL); /* unless it is complete */
    weir_promise_release(call->answer);
    free(call);
}

static const weir_msg_type call_type = {.name = "call", .destroy = destroy_call};

/* ---- the handler: the call that waits for its answer ---- */

struct pending {
    struct call *call;
};

static void drop_call(struct pending *pending)
{
    if (pending->call != NULL)
        weir_msg_release(&pending->call->msg);
    pending->call = NULL;
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct pending *pending = weir_ctx_state(ctx);
    struct call *call = WEIR_CONTAINER_OF(msg, struct call, msg);
    weir_buf *buf;
    int err = weir_buf_create(20, 0, &buf);

    if (err < 0) {
        weir_msg_release(msg); /* which fails the call */
        weir_ctx_report(ctx, done, err, NULL);
        return;
    }
    (void)weir_buf_write_u32(buf, call->transfer.client);
    (void)weir_buf_write_u32(buf, call->transfer.number);
    (void)weir_buf_write_u32(buf, call->transfer.from);
    (void)weir_buf_write_u32(buf, call->transfer.to);
    (void)weir_buf_write_u32(buf, call->transfer.amount);
    drop_call(pending);
    pending->call = call;
    weir_write(ctx, weir_buf_msg(buf), done);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct pending *pending = weir_ctx_state(ctx);
    uint32_t number = 0, answer = 0;
    bool valid = weir_buf_read_u32(weir_buf_of(msg), &number) == 0 &&
                 weir_buf_read_u32(weir_buf_of(msg), &answer) == 0 && pending->call != NULL &&
                 number == pending->call->transfer.number;

    weir_msg_release(msg);
    if (!valid) {
        weir_fire_error(ctx, WEIR_EMALFORMED, "an answer without a call");
        return;
    }
    (void)weir_promise_succeed(pending->call->answer, (void *)(uintptr_t)answer);
    drop_call(pending);
}

static void on_inactive(weir_ctx *ctx)
{
    drop_call(weir_ctx_state(ctx));
    weir_fire_inactive(ctx);
}

static const weir_handler calls = {
    .name = "calls",
    .state_size = sizeof(struct pending),
    .write = on_write,
    .read = on_read,
    .inactive = on_inactive,
};

static int init(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = bank_frames_add(pipeline);

    (void)user_data;
    return err ? err : weir_pipeline_add_last(pipeline, &calls, NULL);
}

/* ---- the client ---- */

int bank_client_open(struct bank_client *client, const char *address)
{
    *client = (struct bank_client){.address = address};
    return weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &client->group);
}

static void disconnect(struct bank_client *client)
{
    if (client->channel == NULL)
        return;
    weir_channel_close(client->channel, NULL);
    weir_channel_release(client->channel);
    client->channel = NULL;
}

void bank_client_close(struct bank_client *client)
{
    disconnect(client);
    weir_group_release(client->group);
    client->group = NULL;
}

/* One attempt. */
static int try_transfer(struct bank_client *client, const struct bank_transfer *transfer,
                        enum bank_answer *ret_answer)
{
    struct call *call = calloc(1, sizeof(*call));
    weir_promise *answer = NULL;
    int err = call == NULL ? -ENOMEM : 0;

    if (!err && client->channel == NULL)
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = client->group, .address = client->address, .init = init),
            &client->channel);
    if (!err)
        err = weir_promise_create(weir_channel_executor(client->channel), &answer);
    if (err) {
        free(call);
        return err;
    }
    weir_msg_init(&call->msg, &call_type);
    call->transfer = *transfer;
    call->answer = weir_promise_retain(answer);
    weir_channel_write_and_flush(client->channel, &call->msg, NULL);
    err = weir_promise_sync(answer, ANSWER_TIMEOUT_NS);
    if (!err)
        *ret_answer = (enum bank_answer)(uintptr_t)weir_promise_value(answer);
    weir_promise_release(answer);
    return err;
}

static void on_retry(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static void wait_for_retry(struct bank_client *client)
{
    weir_promise *timer = NULL;

    if (weir_group_schedule(client->group, RETRY_DELAY_NS, on_retry, NULL, &timer) == 0)
        (void)weir_promise_await(timer, WEIR_NEVER);
    weir_promise_release(timer);
}

/* doc:begin retry */
enum bank_answer bank_client_transfer(struct bank_client *client,
                                      const struct bank_transfer *transfer)
{
    enum bank_answer answer = BANK_REFUSED;

    while (try_transfer(client, transfer, &answer) < 0) {
        disconnect(client); /* was it executed? The number is the same, so it does not matter */
        wait_for_retry(client);
    }
    return answer;
}
/* doc:end */
