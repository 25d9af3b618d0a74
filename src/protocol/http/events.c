/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of server-sent events.
 *
 *      any thread           the connection's loop
 *      send -> pending ->   mailbox: writes what is pending, as one message, if the channel is
 *                           writable; otherwise the handler does it when it is
 *
 * A mutex guards the queue and the phase. All that touches the response runs on the loop: by the
 * mailbox, and in a handler, which is in the pipeline as long as the stream is open. It sees
 * changes of the writability, the end of the connection, and a drain, which ends the stream;
 * `finish` removes it and calls `closed`. It is the first handler, because a codec keeps the end of
 * the input to itself until it has written the response.
 *
 * References. `users` counts those of the application; the last one closes the stream. `refs`
 * counts the memory: one for all users, one until the stream has finished, one while something is
 * in the mailbox, and one of the handler.
 */
#include <weir/http_events.h>

#include <errno.h>
#include <stdatomic.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/executor.h>
#include <weir/handler.h>
#include <weir/memory.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "base/refcount.h"
#include "executor/mailbox.h"
#include "os/mutex.h"
#include "protocol/http/event_text.h"

#define HEARTBEAT_NS weir_seconds(15)
#define MAX_QUEUED ((size_t)1 << 20)

#define ADVANCE 1u /* the flag of the mailbox */

enum phase {
    OPEN,
    ENDING, /* closed by the application: the rest is sent */
    FULL,   /* the client is too slow */
    LOST,   /* the connection is gone */
    CLOSED,
};

struct weir_http_events {
    weir__refs refs;
    _Atomic uint32_t users;
    weir_http_exchange *exchange; /* retained until the stream has finished */
    weir_executor *loop;          /* retained */
    weir_http_events_options options;
    weir__mailbox box;

    weir__mutex mutex; /* guards these: */
    weir_buf *pending; /* NULL = nothing */
    enum phase phase;
    bool is_waiting; /* the channel is not writable: the handler continues */

    /* On the loop. */
    weir_ctx *ctx;  /* of the handler; NULL before and after */
    bool has_begun; /* the handler was added */

    size_t last_id_length;
    uint8_t last_id[];
};

/* ---- references ---- */

static void release_ref(weir_http_events *events)
{
    if (!weir__refs_release(&events->refs))
        return;
    weir_buf_release(events->pending);
    weir_executor_release(events->loop);
    weir__mutex_deinit(&events->mutex);
    weir_memory_free(events);
}

weir_http_events *weir_http_events_retain(weir_http_events *events)
{
    atomic_fetch_add_explicit(&events->users, 1, memory_order_relaxed);
    return events;
}

void weir_http_events_release(weir_http_events *events)
{
    if (events == NULL)
        return;
    /* acq_rel: the last user closes after all that the others have sent. */
    if (atomic_fetch_sub_explicit(&events->users, 1, memory_order_acq_rel) == 1) {
        weir_http_events_close(events);
        release_ref(events);
    }
}

void weir_http_events_close(weir_http_events *events)
{
    bool is_due;

    weir__mutex_lock(&events->mutex);
    is_due = events->phase != CLOSED;
    if (events->phase == OPEN)
        events->phase = ENDING;
    weir__mutex_unlock(&events->mutex);
    if (is_due)
        weir__mailbox_set(&events->box, ADVANCE);
}

/* ---- on the loop ---- */

/* The state of the handler. */
struct link {
    weir_http_events *events;
    weir_timer timer;
};

static void finish(weir_http_events *events, int err)
{
    weir_http_exchange *exchange = events->exchange;

    weir__mutex_lock(&events->mutex);
    events->phase = CLOSED;
    weir__mutex_unlock(&events->mutex);
    events->exchange = NULL;
    if (events->ctx != NULL)
        weir_ctx_remove(events->ctx);
    if (err == 0 || err == WEIR_ECLOSED)
        (void)weir_http_exchange_end(exchange, NULL);
    else
        weir_http_exchange_abort(exchange);
    if (events->options.closed != NULL)
        events->options.closed(events, err, events->options.user_data);
    weir_http_exchange_release(exchange);
    release_ref(events);
}

/* Takes what can be written now. */
static weir_buf *take_pending(weir_http_events *events, enum phase *ret_phase)
{
    bool is_writable = weir_http_exchange_is_writable(events->exchange);
    weir_buf *taken = NULL;

    weir__mutex_lock(&events->mutex);
    if (events->phase == ENDING || (events->phase == OPEN && is_writable)) {
        taken = events->pending;
        events->pending = NULL;
    }
    events->is_waiting = events->pending != NULL;
    *ret_phase = events->phase;
    weir__mutex_unlock(&events->mutex);
    return taken;
}

static void on_heartbeat(weir_ctx *ctx, weir_timer *timer);

/* Begins to wait for the next heartbeat. */
static void start_timer(weir_http_events *events)
{
    struct link *link = events->ctx != NULL ? weir_ctx_state(events->ctx) : NULL;

    if (link != NULL && events->options.heartbeat_ns > 0)
        (void)weir_ctx_timer_start(events->ctx, &link->timer, events->options.heartbeat_ns,
                                   on_heartbeat);
}

static void on_heartbeat(weir_ctx *ctx, weir_timer *timer)
{
    weir_http_events *events = ((struct link *)weir_ctx_state(ctx))->events;
    weir_buf *comment = NULL;

    (void)timer;
    start_timer(events);
    if (weir_http_exchange_is_writable(events->exchange) &&
        weir_buf_create_from(":\n\n", 3, &comment) == 0)
        (void)weir_http_exchange_write(events->exchange, weir_buf_msg(comment), NULL);
}

/* Writes what is pending, and ends the stream if that is due. The caller has a reference: the write
 * may close the connection, and finish the stream. */
static void advance(weir_http_events *events)
{
    enum phase phase;
    weir_buf *taken = take_pending(events, &phase);

    if (taken != NULL) {
        start_timer(events);
        if (weir_http_exchange_write(events->exchange, weir_buf_msg(taken), NULL) != 0)
            phase = LOST;
    }
    if (events->exchange != NULL && phase != OPEN)
        finish(events, phase == ENDING ? 0 : phase == FULL ? WEIR_EFULL : WEIR_ECLOSED);
}

static int init(void *state, const void *options)
{
    struct link *link = state;

    link->events = *(weir_http_events *const *)options;
    weir__refs_retain(&link->events->refs);
    weir_timer_init(&link->timer);
    return 0;
}

static void deinit(void *state)
{
    release_ref(((struct link *)state)->events);
}

static void on_added(weir_ctx *ctx)
{
    weir_http_events *events = ((struct link *)weir_ctx_state(ctx))->events;

    events->ctx = ctx;
    start_timer(events);
}

static void on_removed(weir_ctx *ctx)
{
    weir_http_events *events = ((struct link *)weir_ctx_state(ctx))->events;

    events->ctx = NULL;
    if (events->exchange != NULL)
        finish(events, WEIR_ECLOSED);
}

static void on_inactive(weir_ctx *ctx)
{
    weir_http_events *events = ((struct link *)weir_ctx_state(ctx))->events;

    weir__refs_retain(&events->refs);
    weir_fire_inactive(ctx);
    if (events->exchange != NULL)
        finish(events, WEIR_ECLOSED);
    release_ref(events);
}

/* A client that has closed its side is gone: the stream has no end that it could wait for. */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    weir_http_events *events = ((struct link *)weir_ctx_state(ctx))->events;
    bool is_gone = event == weir_event_input_closed();

    weir__refs_retain(&events->refs);
    weir_fire_event(ctx, event);
    if (is_gone && events->exchange != NULL)
        finish(events, WEIR_ECLOSED);
    release_ref(events);
}

static void on_writability(weir_ctx *ctx)
{
    weir_http_events *events = ((struct link *)weir_ctx_state(ctx))->events;

    weir__refs_retain(&events->refs);
    weir_fire_writability(ctx);
    if (events->exchange != NULL)
        advance(events);
    release_ref(events);
}

/* At once: the loop may not run another task. */
static void on_draining(weir_ctx *ctx)
{
    weir_http_events *events = ((struct link *)weir_ctx_state(ctx))->events;

    weir__refs_retain(&events->refs);
    weir_fire_draining(ctx);
    weir__mutex_lock(&events->mutex);
    if (events->phase == OPEN)
        events->phase = ENDING;
    weir__mutex_unlock(&events->mutex);
    if (events->exchange != NULL)
        advance(events);
    release_ref(events);
}

static const weir_handler handler = {.name = "http-events",
                                     .stays_on_loop = true,
                                     .state_size = sizeof(struct link),
                                     .init = init,
                                     .deinit = deinit,
                                     .added = on_added,
                                     .removed = on_removed,
                                     .inactive = on_inactive,
                                     .event = on_event,
                                     .writability = on_writability,
                                     .draining = on_draining};

static int begin(weir_http_events *events)
{
    weir_channel *channel = weir_http_exchange_channel(events->exchange);

    events->has_begun = true;
    return weir_pipeline_add_first(weir_channel_pipeline(channel), &handler, &events);
}

/* ---- the mailbox ---- */

/* On the loop, or instead of it if it has ended. */
static void run(weir_http_events *events, uint32_t flags, int status)
{
    int err = status < 0 ? WEIR_ECLOSED : 0;

    (void)flags;
    if (events->exchange == NULL)
        return;
    if (!err && !events->has_begun)
        err = begin(events);
    if (err)
        finish(events, err);
    else
        advance(events);
}

WEIR__MAILBOX_TYPE(mailbox_type, "http", weir_http_events, box, owner->loop,
                   weir__refs_retain(&owner->refs), release_ref(owner), run);

/* ---- sending ---- */

/* With the mutex locked. */
static int queue(weir_http_events *events, const weir_http_event *event)
{
    size_t max = events->options.max_queued, before;
    int err = events->pending == NULL ? weir_buf_create(0, 0, &events->pending) : 0;

    if (err)
        return err;
    before = weir_buf_write_index(events->pending);
    err = weir__http_event_write(event, events->pending);
    if (!err && weir_buf_readable(events->pending) > max)
        err = weir_buf_write_index(events->pending) - before > max ? WEIR_ETOOLONG : WEIR_EFULL;
    if (err)
        (void)weir_buf_set_write_index(events->pending, before);
    if (err == WEIR_EFULL && !events->options.keep_slow)
        events->phase = FULL;
    return err;
}

int weir_http_events_send(weir_http_events *events, const weir_http_event *caller_event)
{
    weir_http_event event;
    bool is_due;
    int err = weir__options_read(&event, sizeof(event), caller_event);

    if (!err)
        err = weir__http_event_check(&event);
    if (err)
        return err;
    weir__mutex_lock(&events->mutex);
    err = events->phase != OPEN ? WEIR_ECLOSED : queue(events, &event);
    is_due = err != WEIR_ECLOSED && (!events->is_waiting || events->phase == FULL);
    weir__mutex_unlock(&events->mutex);
    if (is_due)
        weir__mailbox_set(&events->box, ADVANCE);
    return err;
}

size_t weir_http_events_queued(weir_http_events *events)
{
    size_t queued;

    weir__mutex_lock(&events->mutex);
    queued = events->pending != NULL ? weir_buf_readable(events->pending) : 0;
    weir__mutex_unlock(&events->mutex);
    return queued;
}

bool weir_http_events_is_closed(weir_http_events *events)
{
    bool is_closed;

    weir__mutex_lock(&events->mutex);
    is_closed = events->phase != OPEN;
    weir__mutex_unlock(&events->mutex);
    return is_closed;
}

weir_span weir_http_events_last_id(const weir_http_events *events)
{
    return weir_span_of(events->last_id, events->last_id_length);
}

/* ---- the beginning ---- */

static int create(weir_http_exchange *exchange, const weir_http_events_options *options,
                  weir_http_events **ret_events)
{
    const weir_http_request *request = weir_http_exchange_request(exchange);
    weir_span last_id =
        weir_http_headers_get(weir_http_request_headers(request), WEIR_HTTP_LAST_EVENT_ID);
    weir_http_events *events = weir_memory_alloc(sizeof(*events) + last_id.length);
    int err = 0;

    if (events == NULL)
        return -ENOMEM;
    memset(events, 0, sizeof(*events));
    events->options = *options;
    if (last_id.length > 0)
        memcpy(events->last_id, last_id.data, last_id.length);
    events->last_id_length = last_id.length;
    if (options->retry_ms > 0) {
        err = weir_buf_create(0, 0, &events->pending);
        if (!err)
            err = weir_buf_printf(events->pending, "retry: %lld\n\n", (long long)options->retry_ms);
    }
    if (err) {
        weir_buf_release(events->pending);
        weir_memory_free(events);
        return err;
    }
    weir__refs_init(&events->refs); /* of all users together */
    atomic_init(&events->users, 1);
    weir__mutex_init(&events->mutex);
    weir__mailbox_init(&events->box, &mailbox_type);
    events->loop =
        weir_executor_retain(weir_channel_executor(weir_http_exchange_channel(exchange)));
    *ret_events = events;
    return 0;
}

/* Fields that are missing: nothing between us and the client may keep events back. */
static int add_fields(weir_http_exchange *exchange)
{
    weir_http_headers *headers = weir_http_exchange_headers(exchange);
    int err;

    if (headers == NULL)
        return -EALREADY;
    err = weir_http_headers_set_text(headers, WEIR_HTTP_CONTENT_TYPE, "text/event-stream");
    if (!err && weir_http_headers_get(headers, WEIR_HTTP_CACHE_CONTROL).data == NULL)
        err = weir_http_headers_add_text(headers, WEIR_HTTP_CACHE_CONTROL, "no-store");
    if (!err && weir_http_headers_get_named(headers, "X-Accel-Buffering").data == NULL)
        err = weir_http_headers_add_named(headers, weir_span_of_text("X-Accel-Buffering"),
                                          weir_span_of_text("no"));
    return err;
}

static int read_options(const weir_http_events_options *caller_options,
                        weir_http_events_options *options)
{
    int err = weir__options_read(options, sizeof(*options), caller_options);

    if (!err)
        err = weir__options_check("http", NULL, WEIR__OPTION_FROM(options, heartbeat_ns, WEIR_OFF),
                                  WEIR__OPTION_FROM(options, retry_ms, 0));
    if (!err && options->heartbeat_ns == 0)
        options->heartbeat_ns = HEARTBEAT_NS;
    if (!err && options->max_queued == 0)
        options->max_queued = MAX_QUEUED;
    return err;
}

int weir_http_events_begin(weir_http_exchange *exchange,
                           const weir_http_events_options *caller_options,
                           weir_http_events **ret_events)
{
    bool is_head =
        weir_http_request_method(weir_http_exchange_request(exchange)) == WEIR_HTTP_METHOD_HEAD;
    weir_http_events_options options;
    weir_http_events *events = NULL;
    int err = read_options(caller_options, &options);

    if (!err)
        err = add_fields(exchange);
    if (!err)
        err = create(exchange, &options, &events);
    if (err)
        return err;
    err = weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH);
    if (!err && is_head) {
        (void)weir_http_exchange_end(exchange, NULL);
        err = WEIR_ECLOSED;
    }
    if (err) {
        release_ref(events);
        return err;
    }
    events->exchange = weir_http_exchange_retain(exchange);
    weir__refs_retain(&events->refs); /* until it has finished */
    weir__mailbox_set(&events->box, ADVANCE);
    *ret_events = events;
    return 0;
}
