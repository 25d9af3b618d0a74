/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last handler of a connection: passes on the response to the call that has the connection. It
 * works with the messages of every version of HTTP.
 */
#include <errno.h>

#include <weir/error.h>

#include "protocol/http/http_client.h"

static int init(void *state, const void *options)
{
    weir__http_connection *connection = state;
    weir__http_origin *const *origin = options;

    connection->origin = weir__http_origin_retain(*origin);
    return 0;
}

static void deinit(void *state)
{
    weir__http_connection *connection = state;

    weir__http_origin_release(connection->origin);
}

static void on_added(weir_ctx *ctx)
{
    weir__http_connection *connection = weir_ctx_state(ctx);

    connection->ctx = ctx;
}

static void on_active(weir_ctx *ctx)
{
    weir__http_connection *connection = weir_ctx_state(ctx);
    weir__http_shard *shard = connection->origin->shard;

    connection->is_active = true;
    weir__http_shard_count(shard, WEIR__HTTP_OPENED, 1);
    weir__http_shard_count(shard, WEIR__HTTP_CONNECTED, 1);
    if (connection->call != NULL)
        weir__http_call_on_active(connection->call);
    weir_fire_active(ctx);
}

/* ---- reuse ---- */

/*
 * Bytes behind a response must not become the response of the next call. They may follow in the
 * same read, in another one of the turn, or, on a ring, after a `read_complete`. So the next
 * request is written by a task, which runs after all of them; until then the codec expects no
 * response, and any byte is an error that closes the connection.
 */
static void on_settled(void *arg, int status)
{
    weir_ctx *ctx = arg;
    weir__http_connection *connection = weir_ctx_is_removed(ctx) ? NULL : weir_ctx_state(ctx);

    if (connection != NULL) {
        connection->is_settling = false;
        if (status == 0 && connection->call != NULL && !connection->is_closed)
            weir__http_call_on_active(connection->call);
    }
    weir_ctx_release(ctx);
}

/* The reference keeps the memory of the task. */
int weir__http_connection_settle(weir__http_connection *connection)
{
    int err;

    weir_task_init(&connection->settling, on_settled, weir_ctx_retain(connection->ctx));
    err = weir_execute_task(connection->origin->shard->loop, &connection->settling);
    if (err < 0)
        weir_ctx_release(connection->ctx);
    connection->is_settling = err == 0;
    return err;
}

/* ---- the response ---- */

static void pass(weir_http_call *call, weir_msg *msg)
{
    weir_http_response *response = weir_http_response_of(msg);
    weir_http_end *end = weir_http_end_of(msg);

    if (response != NULL)
        weir__http_call_on_head(call, response);
    else if (end != NULL)
        weir__http_call_on_end(call, end);
    else
        weir__http_call_on_content(call, weir_msg_retain(msg));
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir__http_connection *connection = weir_ctx_state(ctx);

    if (connection->call != NULL)
        pass(connection->call, msg);
    else if (!connection->is_closed)
        weir_close(ctx, NULL); /* nothing was asked for */
    weir_msg_release(msg);
}

static void on_writability(weir_ctx *ctx)
{
    weir__http_connection *connection = weir_ctx_state(ctx);

    if (connection->call != NULL)
        weir__http_call_on_writability(connection->call);
    weir_fire_writability(ctx);
}

/* ---- the end ---- */

static void lose(weir__http_connection *connection, int err, const char *detail)
{
    weir_http_call *call = connection->call;

    if (!connection->is_closed && connection->is_active)
        weir__http_shard_count(connection->origin->shard, WEIR__HTTP_CLOSED, 1);
    connection->is_closed = true;
    if (call != NULL)
        weir__http_call_on_lost(call, err, detail);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    lose(weir_ctx_state(ctx), err, detail);
    weir_channel_abort(weir_ctx_channel(ctx), NULL); /* a close would keep its place in the pool */
}

static void on_inactive(weir_ctx *ctx)
{
    lose(weir_ctx_state(ctx), WEIR_ECLOSED, "the server closed the connection");
    weir_fire_inactive(ctx);
}

static void on_removed(weir_ctx *ctx)
{
    lose(weir_ctx_state(ctx), WEIR_ECLOSED, "the connection was closed");
}

static void on_draining(weir_ctx *ctx)
{
    weir__http_connection *connection = weir_ctx_state(ctx);

    connection->is_draining = true;
    if (connection->call == NULL)
        weir_close(ctx, NULL);
    else
        weir_fire_draining(ctx);
}

static const weir_handler handler = {
    .name = "http-client",
    .stays_on_loop = true,
    .state_size = sizeof(weir__http_connection),
    .init = init,
    .deinit = deinit,
    .added = on_added,
    .removed = on_removed,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .writability = on_writability,
    .error = on_error,
    .draining = on_draining,
};

int weir__http_connection_add(weir_pipeline *pipeline, weir__http_origin *origin)
{
    return weir_pipeline_add_last(pipeline, &handler, &origin);
}

weir__http_connection *weir__http_connection_of(weir_channel *channel)
{
    weir_ctx *ctx = weir_pipeline_find_handler(weir_channel_pipeline(channel), &handler);
    weir__http_connection *connection = ctx != NULL ? weir_ctx_state(ctx) : NULL;

    return connection != NULL && !connection->is_closed ? connection : NULL;
}
