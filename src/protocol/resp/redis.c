/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler behind the codec. Requests come from the tail and wait here for their replies, which
 * arrive in the same order. Values that are not replies:
 *
 *      RESP3   every PUSH, except the confirmation of the subscription that is next
 *      RESP2   with subscriptions, an array that begins with "message" or a similar word
 */
#include <weir/redis.h>

#include <errno.h>
#include <stdarg.h>

#include <weir/error.h>

#include "base/list.h"
#include "base/options.h"
#include "protocol/resp/redis_request.h"

#define MAX_ARGUMENTS 64
#define REPLY_BYTES ((size_t)512 << 20)
#define REPLY_ELEMENTS ((size_t)1 << 20)
#define REPLY_DEPTH 32
#define KINDS 3 /* kinds of subscriptions: channels, patterns, shards */

struct client {
    weir_redis_options options;
    weir__list pending;     /* weir__redis_request.link, oldest first */
    size_t channels[KINDS]; /* active subscriptions */
    int64_t counts[KINDS];  /* last counts of the server, which adds patterns to channels */
    bool is_resp3;
    bool is_draining;
    bool is_closed;
};

static int init(void *state, const void *options)
{
    struct client *client = state;

    weir__list_init(&client->pending);
    return weir__options_read(&client->options, sizeof(client->options), options);
}

/* ---- outbound ---- */

static void send_request(weir_ctx *ctx, weir__redis_request *request, weir_promise *done)
{
    struct client *client = weir_ctx_state(ctx);
    weir_buf *bytes = request->bytes;

    request->bytes = NULL;
    weir__list_append(&client->pending, &request->link);
    weir_write(ctx, weir_buf_msg(bytes), done);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const struct client *client = weir_ctx_state(ctx);
    weir__redis_request *request = weir__redis_request_of(msg);

    if (request == NULL) {
        weir_write(ctx, msg, done);
    } else if (!client->is_closed && weir_promise_set_uncancellable(request->promise)) {
        send_request(ctx, request, done);
    } else {
        weir_msg_release(msg); /* fails its promise; the write itself succeeds */
        weir_ctx_report(ctx, done, 0, NULL);
    }
}

/* ---- subscriptions ---- */

static bool is_subscription(weir__redis_special special)
{
    return special <= WEIR__REDIS_SUNSUBSCRIBE;
}

static bool is_subscribed(const struct client *client)
{
    return client->channels[0] + client->channels[1] + client->channels[2] > 0;
}

static weir__redis_special special_of(const weir_resp *value)
{
    const weir_resp *word = weir_resp_count(value) == 3 ? weir_resp_at(value, 0) : NULL;

    return word != NULL ? weir__redis_special_of(weir_resp_text(word)) : WEIR__REDIS_ORDINARY;
}

/* A confirmation is (what was done, channel, number of subscriptions now). */
static void count_subscription(struct client *client, const weir_resp *value)
{
    weir__redis_special special = special_of(value);
    size_t kind, counted_as;
    int64_t count;

    if (!is_subscription(special))
        return;
    kind = (size_t)special / 2;
    counted_as = kind == 1 ? 0 : kind;
    count = weir_resp_integer(weir_resp_at(value, 2));
    if (count > client->counts[counted_as])
        client->channels[kind]++;
    else if (count < client->counts[counted_as] && client->channels[kind] > 0)
        client->channels[kind]--;
    client->counts[counted_as] = count;
}

static void reset_subscriptions(struct client *client)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        client->channels[kind] = 0;
        client->counts[kind] = 0;
    }
    client->is_resp3 = false;
}

/* ---- inbound ---- */

static weir__redis_request *first_pending(const struct client *client)
{
    if (weir__list_is_empty(&client->pending))
        return NULL;
    return WEIR_CONTAINER_OF(client->pending.next, weir__redis_request, link);
}

static void complete(struct client *client, weir_resp *reply)
{
    weir__redis_request *request = first_pending(client);

    weir__list_remove(&request->link);
    if (request->special == WEIR__REDIS_HELLO && weir_resp_count(reply) > 0)
        client->is_resp3 = weir_resp_kind(reply) == WEIR_RESP_MAP;
    if (request->special == WEIR__REDIS_RESET && weir_resp_is(reply, "RESET"))
        reset_subscriptions(client);
    weir__redis_request_succeed(request, reply);
}

/* One confirmation per channel; for a command without channels, per active subscription. */
static void confirm(struct client *client, weir_resp *value)
{
    weir__redis_request *request = first_pending(client);
    size_t there = client->channels[(size_t)request->special / 2];

    client->is_resp3 = weir_resp_kind(value) == WEIR_RESP_PUSH;
    if (request->confirmations == 0)
        request->confirmations = there > 0 ? there : 1;
    count_subscription(client, value);
    if (--request->confirmations == 0)
        complete(client, value);
}

static bool is_confirmation(const struct client *client, const weir_resp *value)
{
    const weir__redis_request *request = first_pending(client);

    return request != NULL && is_subscription(request->special) &&
           special_of(value) == request->special;
}

static bool is_push(const struct client *client, const weir_resp *value)
{
    const weir_resp *word = weir_resp_at(value, 0);

    if (weir_resp_kind(value) == WEIR_RESP_PUSH)
        return true;
    if (word == NULL || client->is_resp3 || !is_subscribed(client))
        return false;
    return weir_resp_is(word, "message") || weir_resp_is(word, "pmessage") ||
           weir_resp_is(word, "smessage") || is_subscription(special_of(value));
}

static void push(weir_ctx *ctx, struct client *client, weir_resp *value)
{
    count_subscription(client, value);
    if (client->options.push != NULL)
        client->options.push(weir_ctx_channel(ctx), value, client->options.user_data);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct client *client = weir_ctx_state(ctx);
    weir_resp *value = weir_resp_of(msg);

    if (value == NULL) {
        weir_fire_read(ctx, msg);
        return;
    }
    if (is_confirmation(client, value))
        confirm(client, value);
    else if (is_push(client, value) || first_pending(client) == NULL)
        push(ctx, client, value);
    else
        complete(client, value);
    weir_msg_release(msg);
    if (client->is_draining && first_pending(client) == NULL)
        weir_close(ctx, NULL);
}

/* ---- completion ---- */

static void fail_all(struct client *client, int err, const char *detail)
{
    weir__list *link;

    client->is_closed = true;
    while ((link = weir__list_pop(&client->pending)) != NULL)
        weir__redis_request_fail(WEIR_CONTAINER_OF(link, weir__redis_request, link), err, detail);
}

static void on_removed(weir_ctx *ctx)
{
    fail_all(weir_ctx_state(ctx), WEIR_ECLOSED, "the redis handler was removed");
}

static void on_inactive(weir_ctx *ctx)
{
    fail_all(weir_ctx_state(ctx), WEIR_ECLOSED, "connection closed before the reply");
    weir_fire_inactive(ctx);
}

/* Replies can no longer be matched to commands. */
static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    fail_all(weir_ctx_state(ctx), err, detail);
    weir_fire_error(ctx, err, detail);
    if (!weir_ctx_is_removed(ctx))
        weir_close(ctx, NULL);
}

static void on_draining(weir_ctx *ctx)
{
    struct client *client = weir_ctx_state(ctx);

    client->is_draining = true;
    if (first_pending(client) == NULL)
        weir_close(ctx, NULL);
    else
        weir_fire_draining(ctx);
}

static const weir_handler client_table = {
    .name = "redis",
    .stays_on_loop = true,
    .state_size = sizeof(struct client),
    .init = init,
    .removed = on_removed,
    .inactive = on_inactive,
    .read = on_read,
    .error = on_error,
    .draining = on_draining,
    .write = on_write,
};

/* The user chose the server, so the limits are those of Redis itself. */
static int add_codec(weir_pipeline *pipeline, const weir_resp_options *given)
{
    weir_resp_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err < 0)
        return err;
    options.size = sizeof(options);
    if (options.max_bytes == 0)
        options.max_bytes = REPLY_BYTES;
    if (options.max_elements == 0)
        options.max_elements = REPLY_ELEMENTS;
    if (options.max_depth == 0)
        options.max_depth = REPLY_DEPTH;
    if (options.max_memory == 0)
        options.max_memory =
            options.max_bytes + (options.max_elements + 1) * WEIR_RESP_ELEMENT_MEMORY;
    options.stream_threshold = 0; /* a reply is one value */
    options.inline_commands = false;
    return weir_resp_codec_add(pipeline, &options);
}

int weir_redis_add(weir_pipeline *pipeline, const weir_redis_options *given)
{
    weir_redis_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = add_codec(pipeline, options.codec);
    return err < 0 ? err : weir_pipeline_add_last(pipeline, &client_table, given);
}

/* ---- commands ---- */

int weir_redis_command(weir_channel *channel, const weir_span *arguments, size_t count,
                       weir_promise **ret_reply)
{
    weir__redis_request *request;
    int err;

    if (count == 0)
        return -EINVAL;
    err = weir__redis_request_create(weir_channel_executor(channel), arguments, count, &request);
    if (err < 0)
        return err;
    if (ret_reply != NULL)
        *ret_reply = weir_promise_retain(request->promise);
    weir_channel_write_and_flush(channel, &request->msg, NULL);
    return 0;
}

int weir_redis_call(weir_channel *channel, weir_promise **ret_reply, const char *name, ...)
{
    weir_span spans[MAX_ARGUMENTS];
    size_t count = 0;
    va_list texts;

    va_start(texts, name);
    for (const char *text = name; text != NULL && count <= MAX_ARGUMENTS;
         text = va_arg(texts, char *)) {
        if (count < MAX_ARGUMENTS)
            spans[count] = weir_span_of_text(text);
        count++;
    }
    va_end(texts);
    return count > MAX_ARGUMENTS ? -E2BIG : weir_redis_command(channel, spans, count, ret_reply);
}
