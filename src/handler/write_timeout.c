/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending writes are in a list, oldest first. All have the same timeout, so this is also the order
 * of their deadlines, and one timer for the first write is enough.
 */
#include <weir/timeouts.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/handler.h>
#include <weir/pipeline.h>

#include "base/list.h"
#include "base/options.h"
#include "channel/channel.h"
#include "channel/node_pool.h"
#include "executor/executor.h"
#include "handler/local_promise.h"
#include "handler/write_observer.h"

#define DEFAULT_TIMEOUT_NS weir_seconds(30)

struct write_timeout {
    weir_timer timer;
    int64_t timeout_ns; /* 0 = none */
    weir__list pending;
    bool has_fired; /* the error was fired */
};

/* A pending write. It belongs to its promise, which may outlive the handler. */
struct pending {
    weir__list link; /* first */
    weir__write_observer observer;
    int64_t deadline_ns;
    weir_promise *failed; /* retained, if the write failed and has no promise of the caller */
};

_Static_assert(sizeof(struct pending) <= WEIR__NODE_SIZE, "a pending write is a node");

static int64_t now_of(const weir_ctx *ctx)
{
    return weir__executor_now(weir_ctx_executor(ctx));
}

/* ---- the timer ---- */

static void time_out(weir_ctx *ctx)
{
    struct write_timeout *state = weir_ctx_state(ctx);
    char detail[64];

    state->has_fired = true;
    (void)snprintf(detail, sizeof(detail), "write not sent within %lld ms",
                   (long long)(state->timeout_ns / weir_ms(1)));
    weir_fire_error(ctx, -ETIMEDOUT, detail);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void check_first(weir_ctx *ctx);

static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    check_first(ctx);
}

/* Fires if the first write is late, else starts the timer for it. */
static void check_first(weir_ctx *ctx)
{
    struct write_timeout *state = weir_ctx_state(ctx);
    const struct pending *first;
    int64_t left_ns;

    if (state->has_fired || weir__list_is_empty(&state->pending))
        return;
    first = (const struct pending *)(const void *)state->pending.next;
    left_ns = first->deadline_ns - now_of(ctx);
    if (left_ns > 0)
        (void)weir_ctx_timer_start(ctx, &state->timer, left_ns, on_timer);
    else
        time_out(ctx);
}

/* ---- writes ---- */

static void finish_write(struct pending *pending)
{
    weir_channel *channel = pending->observer.channel;
    weir_promise *failed = pending->failed;

    weir__list_remove(&pending->link);
    weir__node_free(pending);
    if (failed != NULL)
        weir__channel_report(channel, NULL, weir_promise_result(failed),
                             weir_promise_detail(failed));
    weir_promise_release(failed);
    weir_channel_release(channel);
}

static void on_forwarded(weir__mailbox *box, weir__mail *mail, int status)
{
    (void)box;
    (void)status;
    finish_write(WEIR_CONTAINER_OF(weir__write_observer_of(mail), struct pending, observer));
}

static void on_written(weir_promise *promise, void *user_data)
{
    struct pending *pending = user_data;

    (void)promise;
    if (!weir__write_observer_forward(&pending->observer, on_forwarded))
        finish_write(pending);
}

static void on_written_unobserved(weir_promise *promise, void *user_data)
{
    if (weir_promise_result(promise) < 0)
        ((struct pending *)user_data)->failed = weir_promise_retain(promise);
    on_written(promise, user_data);
}

static int track(weir_ctx *ctx, weir_promise *done, weir_promise **ret_promise)
{
    struct write_timeout *state = weir_ctx_state(ctx);
    struct pending *pending = weir__node_alloc();
    int err;

    if (pending == NULL)
        return -ENOMEM;
    err = weir__local_promise(ctx, done, ret_promise);
    if (err < 0) {
        weir__node_free(pending);
        return err;
    }
    *pending = (struct pending){.deadline_ns = weir__deadline(now_of(ctx), state->timeout_ns)};
    weir__list_append(&state->pending, &pending->link);
    weir__write_observer_start(&pending->observer, weir_ctx_channel(ctx), *ret_promise,
                               done != NULL ? on_written : on_written_unobserved, pending);
    if (!weir_timer_is_running(&state->timer))
        check_first(ctx);
    return 0;
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    const struct write_timeout *state = weir_ctx_state(ctx);
    weir_promise *promise = NULL;
    int err = 0;

    if (state->timeout_ns > 0 && !state->has_fired)
        err = track(ctx, done, &promise);
    if (err < 0) {
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, err, "no memory to time a write");
        return;
    }
    weir_write(ctx, msg, promise != NULL ? promise : done);
    weir_promise_release(promise);
}

/* ---- lifecycle ---- */

static int init(void *state, const void *options)
{
    const weir_write_timeout_options *given = options;
    struct write_timeout *self = state;

    int err =
        weir__options_check("write-timeout", NULL, WEIR__OPTION_FROM(given, timeout_ns, WEIR_OFF));

    if (err < 0)
        return err;
    self->timeout_ns = given->timeout_ns == 0  ? DEFAULT_TIMEOUT_NS
                       : given->timeout_ns > 0 ? given->timeout_ns
                                               : 0;
    weir__list_init(&self->pending);
    return 0;
}

/* The channel moved to another loop, which stopped the timer. */
static void on_registered(weir_ctx *ctx)
{
    check_first(ctx);
    weir_fire_registered(ctx);
}

static void on_removed(weir_ctx *ctx)
{
    struct write_timeout *state = weir_ctx_state(ctx);

    while (weir__list_pop(&state->pending) != NULL)
        ;
}

static const weir_handler write_timeout = {
    .name = "write-timeout",
    .state_size = sizeof(struct write_timeout),
    .init = init,
    .removed = on_removed,
    .registered = on_registered,
    .write = on_write,
};

int weir_write_timeout_add(weir_pipeline *pipeline, const weir_write_timeout_options *options)
{
    weir_write_timeout_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    return err < 0 ? err : weir_pipeline_add_last(pipeline, &write_timeout, &own);
}
