/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last handler of a listener: sets the attributes and the initializer of each accepted channel,
 * and registers it with its loop. A channel for which that fails is closed. Errors of the listener
 * do not close it: they concern single connections. On datagram channels, which accept nothing, the
 * handler only notes the close.
 *
 * If all loops accept from one socket, a connection stays on the loop that accepted it, unless that
 * has clearly more than its share: its handles and queued tasks are compared with those of the loop
 * that has the fewest, to which the connection is handed over. Queued tasks are load, and include
 * connections on their way. The numbers are read from other threads and may be late: a connection
 * is then kept or handed over that should not have been, and the next ones make up for it.
 *
 * If connections last less than WINDOW_NS on average (more were closed in that time than there are
 * handles), all stay: to hand them over would cost more than it is worth, and the kernel does not
 * wake a loop that is busy.
 */
#include <weir/error.h>
#include <weir/group.h>
#include <weir/pipeline.h>
#include <weir/timer.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "bootstrap/server.h"
#include "channel/attribute.h"
#include "channel/channel.h"
#include "loop/loop.h"

#define WINDOW_NS weir_ms(100)
#define SHARE_PART 16  /* a loop may have this part more than another */
#define TRUSTED_MAX 16 /* connections kept before the loops are compared again */

struct acceptor {
    weir_server *server;
    bool shares;   /* with other loops; the rest is for this case */
    bool is_short; /* connections do not last */
    int64_t window_ns;
    uint64_t closed;  /* by all loops until then */
    uint64_t limit;   /* a loop with this load keeps the next one, */
    unsigned trusted; /* so often */
};

static int init(void *state, const void *options)
{
    const weir__listening *listening = options;

    *(struct acceptor *)state = (struct acceptor){.server = weir_server_retain(listening->server),
                                                  .shares = listening->shares != NULL};
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

static uint64_t load_of(const weir_executor *loop)
{
    return weir__executor_handles(loop) + weir_executor_pending(loop);
}

/* Relaxed, as are the loads: a number that is late is corrected by the next one. */
static uint64_t closed_by(const weir_executor *loop)
{
    return atomic_load_explicit(&weir__loop_io(loop)->stats.closes, memory_order_relaxed);
}

static void estimate_lifetime(struct acceptor *self, uint64_t closed, uint64_t load, int64_t now_ns)
{
    int64_t length_ns = now_ns - self->window_ns;

    if (length_ns < 2 * WINDOW_NS && closed - self->closed > load)
        self->is_short = true;
    else if (length_ns >= WINDOW_NS)
        self->is_short = false;
    if (length_ns < WINDOW_NS)
        return;
    self->window_ns = now_ns;
    self->closed = closed;
}

/* The loop with the least load, or `here` if that has not clearly more. */
static weir_executor *compare(struct acceptor *self, weir_executor *here, uint64_t own)
{
    const weir_group *group = self->server->workers;
    size_t count = weir_group_count(group);
    uint64_t least = own, all = 0, closed = 0;
    weir_executor *best = here;

    for (size_t i = 0; i < count; i++) {
        weir_executor *loop = weir_group_at(group, i);
        uint64_t load = load_of(loop);

        all += load;
        closed += closed_by(loop);
        if (load < least && weir__executor_state(loop) < WEIR_EXECUTOR_SHUTTING_DOWN) {
            least = load;
            best = loop;
        }
    }
    estimate_lifetime(self, closed, all, weir__executor_now(here));
    self->limit = self->is_short ? UINT64_MAX : least + least / SHARE_PART;
    self->trusted = 0;
    return own > self->limit ? best : here;
}

static weir_executor *choose_loop(struct acceptor *self, weir_executor *here)
{
    uint64_t own = load_of(here);

    return own > self->limit || self->trusted++ == TRUSTED_MAX ? compare(self, here, own) : here;
}

static void register_child(struct acceptor *self, weir_executor *here, weir_channel *child)
{
    if (self->server->stays)
        weir_channel_register(child, here, NULL);
    else if (self->shares)
        weir_channel_register(child, choose_loop(self, here), NULL);
    else
        weir_group_register(self->server->workers, child, NULL);
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
    struct acceptor *self = weir_ctx_state(ctx);
    weir_server *server = self->server;
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
    } else {
        register_child(self, weir_ctx_executor(ctx), child);
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

int weir__acceptor_add(const weir__listening *listening)
{
    return weir_pipeline_add_last(weir_channel_pipeline(listening->channel), &acceptor, listening);
}
