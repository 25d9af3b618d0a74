/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last handler of a listener: sets the attributes and the initializer of each accepted channel,
 * and registers it with its loop. A channel for which that fails is closed. Errors of the listener
 * do not close it: they concern single connections. On datagram channels, which accept nothing, the
 * handler only notes the close.
 */
#include <weir/error.h>
#include <weir/pipeline.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "bootstrap/server.h"
#include "channel/attribute.h"
#include "channel/channel.h"

struct acceptor {
    weir_server *server;
};

static int init(void *state, const void *options)
{
    weir_server *server = (weir_server *)(uintptr_t)options; /* passed by weir__acceptor_add */

    ((struct acceptor *)state)->server = weir_server_retain(server);
    return 0;
}

static void deinit(void *state)
{
    weir_server_release(((struct acceptor *)state)->server);
}

static void on_removed(weir_ctx *ctx)
{
    weir_server *server = ((struct acceptor *)weir_ctx_state(ctx))->server;

    if (weir_ctx_channel(ctx) == server->listeners[0].channel)
        weir__server_mark(server, WEIR__SERVER_CLOSED);
}

static int prepare(weir_server *server, weir_channel *child)
{
    int err = weir__attributes_lend(child, server->child_attributes, server->child_attribute_count);

    if (err < 0)
        return err;
    return weir_pipeline_add_initializer(weir_channel_pipeline(child), server->init_child,
                                         server->user_data);
}

static void log_failure(weir_channel *child, int err)
{
    static weir__log_limit limit;
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];
    weir__log_note note;

    if (weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("server", weir__channel_log_name(child, name),
                   "connection closed, setup failed: %s%s", weir_error_text(err), note.text);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_server *server = ((struct acceptor *)weir_ctx_state(ctx))->server;
    weir_channel *child = weir_channel_of(msg);
    int err;

    if (child == NULL) {
        weir_fire_read(ctx, msg);
        return;
    }
    err = prepare(server, child);
    if (err < 0) {
        log_failure(child, err);
        weir_channel_abort(child, NULL);
    } else if (server->stays) {
        weir_channel_register(child, weir_ctx_executor(ctx), NULL);
    } else {
        weir_group_register(server->workers, child, NULL);
    }
    weir_msg_release(msg);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    const weir_server *server = ((struct acceptor *)weir_ctx_state(ctx))->server;
    static weir__log_limit limit;
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];
    weir__log_note note;

    if (server->kind == WEIR_KIND_DATAGRAM) {
        weir_fire_error(ctx, err, detail);
        return;
    }
    if (weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("server", weir__channel_log_name(weir_ctx_channel(ctx), name),
                   "listener error, still listening: %s%s%s%s", detail != NULL ? detail : "",
                   detail != NULL ? ": " : "", weir_error_text(err), note.text);
}

static const weir_handler acceptor = {
    .name = "acceptor",
    .stays_on_loop = true,
    .state_size = sizeof(struct acceptor),
    .init = init,
    .deinit = deinit,
    .removed = on_removed,
    .read = on_read,
    .error = on_error,
};

int weir__acceptor_add(weir_channel *listener, weir_server *server)
{
    return weir_pipeline_add_last(weir_channel_pipeline(listener), &acceptor, server);
}
