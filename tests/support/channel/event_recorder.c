/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler that logs its events.
 */
#include "support/channel/event_recorder.h"

#include <weir/buf.h>
#include <weir/error.h>

static int init(void *state, const void *options)
{
    *(struct event_recorder *)state = *(const struct event_recorder *)options;
    return 0;
}

static void write_word(weir_ctx *ctx, const char *word)
{
    struct event_recorder *self = weir_ctx_state(ctx);

    event_log_write(self->events, "%s.%s", self->name, word);
}

static void write_msg(weir_ctx *ctx, const char *word, weir_msg *msg)
{
    struct event_recorder *self = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);

    if (buf != NULL)
        event_log_write(self->events, "%s.%s(%.*s)", self->name, word, (int)weir_buf_readable(buf),
                        (const char *)weir_buf_bytes(buf));
    else
        event_log_write(self->events, "%s.%s(%s)", self->name, word, msg->type->name);
}

static void deinit(void *state)
{
    struct event_recorder *self = state;

    event_log_write(self->events, "%s.deinit", self->name);
}

static void on_added(weir_ctx *ctx)
{
    write_word(ctx, "added");
}

static void on_removed(weir_ctx *ctx)
{
    write_word(ctx, "removed");
}

static void on_registered(weir_ctx *ctx)
{
    write_word(ctx, "registered");
    weir_fire_registered(ctx);
}

static void on_unregistered(weir_ctx *ctx)
{
    write_word(ctx, "unregistered");
    weir_fire_unregistered(ctx);
}

static void on_active(weir_ctx *ctx)
{
    write_word(ctx, "active");
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    write_word(ctx, "inactive");
    weir_fire_inactive(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    write_msg(ctx, "read", msg);
    weir_fire_read(ctx, msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    write_word(ctx, "read_complete");
    weir_fire_read_complete(ctx);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    write_msg(ctx, "event", event);
    weir_fire_event(ctx, event);
}

static void on_writability(weir_ctx *ctx)
{
    write_word(ctx, weir_ctx_is_writable(ctx) ? "writable" : "unwritable");
    weir_fire_writability(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct event_recorder *self = weir_ctx_state(ctx);

    event_log_write(self->events, "%s.error(%s)", self->name, weir_error_name(err));
    weir_fire_error(ctx, err, detail);
}

static void on_draining(weir_ctx *ctx)
{
    write_word(ctx, "draining");
    weir_fire_draining(ctx);
}

static void on_bind(weir_ctx *ctx, const weir_address *local, weir_promise *done)
{
    write_word(ctx, "bind");
    weir_bind(ctx, local, done);
}

static void on_connect(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                       weir_promise *done)
{
    write_word(ctx, "connect");
    weir_connect(ctx, remote, local, done);
}

static void on_disconnect(weir_ctx *ctx, weir_promise *done)
{
    write_word(ctx, "disconnect");
    weir_disconnect(ctx, done);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    write_word(ctx, "close");
    weir_close(ctx, done);
}

static void on_deregister(weir_ctx *ctx, weir_promise *done)
{
    write_word(ctx, "deregister");
    weir_deregister(ctx, done);
}

static void on_request_read(weir_ctx *ctx)
{
    write_word(ctx, "request_read");
    weir_request_read(ctx);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    write_msg(ctx, "write", msg);
    weir_write(ctx, msg, done);
}

static void on_flush(weir_ctx *ctx)
{
    write_word(ctx, "flush");
    weir_flush(ctx);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    write_word(ctx, "shutdown_output");
    weir_shutdown_output(ctx, done);
}

const weir_handler event_recorder = {
    .name = "recorder",
    .state_size = sizeof(struct event_recorder),
    .init = init,
    .deinit = deinit,
    .added = on_added,
    .removed = on_removed,
    .registered = on_registered,
    .unregistered = on_unregistered,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
    .writability = on_writability,
    .error = on_error,
    .draining = on_draining,
    .bind = on_bind,
    .connect = on_connect,
    .disconnect = on_disconnect,
    .close = on_close,
    .deregister = on_deregister,
    .request_read = on_request_read,
    .write = on_write,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
};

const weir_handler lifecycle_recorder = {
    .name = "lifecycle_recorder",
    .state_size = sizeof(struct event_recorder),
    .init = init,
    .deinit = deinit,
    .added = on_added,
    .removed = on_removed,
};

void event_recorder_listen(weir_promise *promise, void *user_data)
{
    struct event_recorder *self = user_data;
    int result = weir_promise_result(promise);

    event_log_write(self->events, "%s=%s", self->name,
                    result == 0 ? "ok" : weir_error_name(result));
}
