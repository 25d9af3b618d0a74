/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends chunks. Messages are queued only while chunks are being sent; otherwise they pass.
 *
 * The promise of each piece continues the transfer. If there is no room for a piece and none of
 * ours is in flight, an empty marker is written: it completes when everything before it has been
 * sent. The next piece is then sent in any case: the room is taken by later handlers, and nothing
 * would report when they free it.
 */
#include <weir/chunks.h>

#include <errno.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/error.h>
#include <weir/flow_control.h>
#include <weir/pipeline.h>

#include "channel/channel.h"
#include "channel/closing.h"
#include "channel/node_pool.h"
#include "channel/outbound.h"
#include "handler/chunks.h"
#include "handler/msg_bytes.h"
#include "handler/write_observer.h"

struct chunked_writing {
    weir_pending_writes writes;
    weir_timer close_timer;
    bool is_pumping;          /* pump is on the stack */
    int64_t close_timer_base; /* time of the last progress */
};

/* A piece in flight. */
struct piece {
    weir__write_observer observer;
    weir_chunks *chunks;   /* retained */
    weir_promise *promise; /* retained when it completes */
    int64_t size;
    bool is_marker; /* an empty piece; see above */
};

_Static_assert(sizeof(struct piece) <= WEIR__NODE_SIZE, "a piece is a node");

static void pump(weir_ctx *ctx);

/* ---- completion ---- */

static void report(weir_channel *channel, weir_chunks *chunks, int err, const char *detail)
{
    if (chunks->is_reported)
        return;
    chunks->is_reported = true;
    weir__channel_report(channel, chunks->done, err, detail);
}

/* Removes the first chunks. Their source is closed when no piece is in flight. */
static void remove_first(weir_ctx *ctx)
{
    struct chunked_writing *state = weir_ctx_state(ctx);
    weir_promise *done;
    weir_chunks *chunks = weir_chunks_of(weir_pending_writes_take(ctx, &state->writes, &done));

    chunks->ctx = NULL;
    weir_promise_release(done); /* the chunks have their own reference */
    weir_msg_release(weir_chunks_msg(chunks));
}

static void fail_first(weir_ctx *ctx, weir_chunks *chunks, int err, const char *detail)
{
    weir_msg_retain(weir_chunks_msg(chunks));
    remove_first(ctx);
    report(weir_ctx_channel(ctx), chunks, err, detail);
    weir_msg_release(weir_chunks_msg(chunks));
}

/* ---- pieces ---- */

static void restart_close_timer(weir_ctx *ctx);

/* Not after a failure: user_data may be gone. */
static void report_progress(weir_chunks *chunks, int64_t size)
{
    chunks->sent += size;
    if (size > 0 && chunks->on_progress != NULL && !chunks->is_reported)
        chunks->on_progress(chunks->sent, chunks->length, chunks->user_data);
}

static void finish_piece(const struct piece *piece)
{
    weir_channel *channel = piece->observer.channel;
    weir_chunks *chunks = piece->chunks;
    weir_ctx *ctx = chunks->ctx;
    int err = weir_promise_result(piece->promise);

    chunks->in_flight--;
    chunks->may_send_next = piece->is_marker;
    if (err == 0)
        report_progress(chunks, piece->size);
    else if (ctx != NULL)
        fail_first(ctx, chunks, err, weir_promise_detail(piece->promise));
    else
        report(channel, chunks, err, weir_promise_detail(piece->promise));
    if (ctx != NULL) { /* also after a failure: continue with the next message */
        restart_close_timer(ctx);
        pump(ctx);
    } else if (chunks->in_flight == 0) {
        report(channel, chunks, 0, NULL);
    }
}

static void release_piece(struct piece *node)
{
    struct piece piece = *node;

    weir__node_free(node); /* reusable by the next pieces */
    finish_piece(&piece);
    weir_promise_release(piece.promise);
    weir_msg_release(weir_chunks_msg(piece.chunks));
    weir_channel_release(piece.observer.channel);
}

static void on_forwarded(weir__mailbox *box, weir__mail *mail, int status)
{
    (void)box;
    (void)status;
    release_piece(WEIR_CONTAINER_OF(weir__write_observer_of(mail), struct piece, observer));
}

static void on_sent(weir_promise *promise, void *user_data)
{
    struct piece *piece = user_data;

    piece->promise = weir_promise_retain(promise);
    if (!weir__write_observer_forward(&piece->observer, on_forwarded))
        release_piece(piece);
}

static int write_piece(weir_ctx *ctx, weir_chunks *chunks, weir_msg *msg, bool is_marker)
{
    struct piece *piece = weir__node_alloc();
    weir_promise *promise;

    if (piece == NULL || weir_promise_create(weir_ctx_executor(ctx), &promise) < 0) {
        if (piece != NULL)
            weir__node_free(piece);
        weir_msg_release(msg);
        return -ENOMEM;
    }
    *piece = (struct piece){
        .chunks = chunks, .size = weir__msg_bytes_on_wire(msg), .is_marker = is_marker};
    weir_msg_retain(weir_chunks_msg(chunks));
    chunks->in_flight++;
    weir__write_observer_start(&piece->observer, weir_ctx_channel(ctx), promise, on_sent, piece);
    weir_write_and_flush(ctx, msg, promise);
    weir_promise_release(promise);
    return 0;
}

static bool has_room(weir_ctx *ctx)
{
    const struct chunked_writing *state = weir_ctx_state(ctx);
    const weir_channel *channel = weir_ctx_channel(ctx);

    return weir_channel_pending_bytes(channel) - state->writes.cost <
           weir__channel_options(channel)->high_mark;
}

static int write_marker(weir_ctx *ctx, weir_chunks *chunks)
{
    weir_buf *empty;
    int err = weir_buf_create(0, 0, &empty);

    return err < 0 ? err : write_piece(ctx, chunks, weir_buf_msg(empty), true);
}

/* Pulls one piece from the source. Returns 1 to continue, 0 to wait, or an error. */
static int pull_chunk(weir_ctx *ctx, weir_chunks *chunks)
{
    weir_msg *chunk = NULL;
    int result = chunks->table->next(chunks->source, &chunk);

    if (chunks->ctx == NULL) { /* the source closed the channel, or removed the handler */
        weir_msg_release(chunk);
        return 1;
    }
    if (chunk != NULL) {
        result = write_piece(ctx, chunks, chunk, false);
        return result < 0 ? result : 1;
    }
    if (result == WEIR_CHUNKS_END) {
        remove_first(ctx);
        if (chunks->in_flight == 0)
            report(weir_ctx_channel(ctx), chunks, 0, NULL);
        return 1;
    }
    return result == WEIR_CHUNKS_READY ? -EINVAL : result == WEIR_CHUNKS_AGAIN ? 0 : result;
}

/* ---- the queue ---- */

/* Starts the first chunks of the queue. False if they were cancelled. */
static bool begin(weir_ctx *ctx, weir_chunks *chunks, weir_promise *done)
{
    if (done != NULL && !weir_promise_set_uncancellable(done)) {
        remove_first(ctx);
        return false;
    }
    chunks->ctx = ctx;
    chunks->done = done != NULL ? weir_promise_retain(done) : NULL;
    return true;
}

/* Pulls a piece if there is room, as pull_chunk; else waits for room. */
static int pull_if_room(weir_ctx *ctx, weir_chunks *chunks)
{
    int err;

    if (chunks->may_send_next || has_room(ctx)) {
        chunks->may_send_next = false;
        return pull_chunk(ctx, chunks);
    }
    if (chunks->in_flight > 0)
        return 0;
    err = write_marker(ctx, chunks);
    return err < 0 ? err : chunks->in_flight == 0; /* the marker may complete or fail at once */
}

/* Advances the first message of the queue. False to wait. */
static bool step_first(weir_ctx *ctx)
{
    struct chunked_writing *state = weir_ctx_state(ctx);
    const weir_pending_write *first = state->writes.first;
    weir_chunks *chunks = weir_chunks_of(first->msg);
    int result;

    if (chunks == NULL) {
        weir_pending_writes_pass(ctx, &state->writes);
        return true;
    }
    if (chunks->ctx == NULL && !begin(ctx, chunks, first->done))
        return true;
    weir_msg_retain(weir_chunks_msg(chunks)); /* the queue may change meanwhile */
    result = pull_if_room(ctx, chunks);
    if (result < 0 && chunks->ctx != NULL)
        fail_first(ctx, chunks, result, "the chunk source failed");
    weir_msg_release(weir_chunks_msg(chunks));
    return result != 0;
}

static void pump(weir_ctx *ctx)
{
    struct chunked_writing *state = weir_ctx_state(ctx);

    if (state->is_pumping)
        return;
    state->is_pumping = true;
    while (state->writes.flushed > 0 && step_first(ctx))
        ;
    state->is_pumping = false;
    weir_flush(ctx);
    weir_pending_writes_run_deferred(ctx, &state->writes);
}

/* ---- closing ---- */

static void fail_all(weir_ctx *ctx, int err, const char *detail)
{
    struct chunked_writing *state = weir_ctx_state(ctx);
    weir_chunks *chunks =
        state->writes.first != NULL ? weir_chunks_of(state->writes.first->msg) : NULL;

    if (chunks != NULL && chunks->ctx != NULL)
        fail_first(ctx, chunks, err, detail);
    weir_pending_writes_fail(ctx, &state->writes, err, detail);
}

/* True if a handler nearer to the head delays the pieces, rather than the peer. */
static bool is_delayed_by_handler(weir_ctx *ctx)
{
    const struct chunked_writing *state = weir_ctx_state(ctx);
    const weir_chunks *chunks = weir_chunks_of(state->writes.first->msg);

    return chunks != NULL && chunks->in_flight > 0 &&
           weir__outbound_is_empty(&weir_ctx_channel(ctx)->outbound);
}

static int64_t timeout_of(weir_ctx *ctx)
{
    return weir__channel_options(weir_ctx_channel(ctx))->close_send_timeout_ns;
}

/* Time until the close is aborted, if nothing more is sent. */
static int64_t close_time_left(weir_ctx *ctx)
{
    const struct chunked_writing *state = weir_ctx_state(ctx);
    int64_t moved_at = weir__closing_progress_at(weir_ctx_channel(ctx));

    if (moved_at < state->close_timer_base)
        moved_at = state->close_timer_base;
    return weir__deadline(moved_at, timeout_of(ctx)) - weir__executor_now(weir_ctx_executor(ctx));
}

/* The peer must not take incomplete data for all of it, so the channel is aborted. */
static void abort_close(weir_ctx *ctx)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    char reason[WEIR__CLOSE_REASON_SIZE];

    weir__closing_describe(channel, "no chunk was sent", reason, sizeof(reason));
    if (weir__channel_in_loop(channel))
        weir__channel_give_up(channel, -ETIMEDOUT, reason);
    else
        weir__channel_defer_give_up(channel, -ETIMEDOUT);
    fail_all(ctx, -ETIMEDOUT, reason);
}

static void on_close_timer(weir_ctx *ctx, weir_timer *timer)
{
    const struct chunked_writing *state = weir_ctx_state(ctx);
    int64_t left_ns = close_time_left(ctx);
    int64_t look_ns = weir__closing_poll_ns(weir_ctx_channel(ctx), timeout_of(ctx));

    if (left_ns > 0)
        (void)weir_ctx_timer_start(ctx, timer, left_ns < look_ns ? left_ns : look_ns,
                                   on_close_timer);
    else if (state->writes.count > 0 && is_delayed_by_handler(ctx))
        restart_close_timer(ctx);
    else
        abort_close(ctx);
}

static void restart_close_timer(weir_ctx *ctx)
{
    struct chunked_writing *state = weir_ctx_state(ctx);

    if (!state->writes.close_deferred || timeout_of(ctx) == WEIR_NEVER)
        return;
    state->close_timer_base = weir__executor_now(weir_ctx_executor(ctx));
    (void)weir_ctx_timer_start(ctx, &state->close_timer,
                               weir__closing_poll_ns(weir_ctx_channel(ctx), timeout_of(ctx)),
                               on_close_timer);
}

/* ---- slots ---- */

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct chunked_writing *state = weir_ctx_state(ctx);

    if (weir_pending_writes_is_ending(&state->writes)) {
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, WEIR_ECLOSED, NULL);
    } else if (state->writes.count == 0 && weir_chunks_of(msg) == NULL) {
        weir_write(ctx, msg, done);
    } else {
        (void)weir_pending_writes_add(ctx, &state->writes, msg, done);
    }
}

static void on_flush(weir_ctx *ctx)
{
    struct chunked_writing *state = weir_ctx_state(ctx);

    weir_pending_writes_flush(&state->writes);
    pump(ctx);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    struct chunked_writing *state = weir_ctx_state(ctx);

    if (state->writes.count > 0)
        weir__closing_watch(weir_ctx_channel(ctx));
    weir_pending_writes_close(ctx, &state->writes, done);
    restart_close_timer(ctx);
    pump(ctx);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    struct chunked_writing *state = weir_ctx_state(ctx);

    weir_pending_writes_shutdown_output(ctx, &state->writes, done);
    pump(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    const char *reason;
    int err = weir__closing_error(weir_ctx_channel(ctx), &reason);

    fail_all(ctx, err < 0 ? err : WEIR_ECLOSED, reason);
    weir_fire_inactive(ctx);
}

/* The channel moved to another loop, which stopped the timer. */
static void on_registered(weir_ctx *ctx)
{
    restart_close_timer(ctx);
    weir_fire_registered(ctx);
}

/* Passes other messages on, and returns the remaining chunks in their order. */
static weir_chunks *empty_queue(weir_ctx *ctx)
{
    struct chunked_writing *state = weir_ctx_state(ctx);
    weir_chunks *left = NULL, **end = &left, *chunks;

    if (!weir_ctx_is_writable(ctx)) /* keep the channel unwritable until all have passed: a
                                       listener's write would overtake them */
        weir_ctx_add_pending_bytes(ctx, state->writes.cost);
    while (state->writes.count > 0) {
        chunks = weir_chunks_of(state->writes.first->msg);
        if (chunks == NULL) {
            weir_pending_writes_pass(ctx, &state->writes);
            continue;
        }
        if (chunks->ctx == NULL && !begin(ctx, chunks, state->writes.first->done))
            continue;
        weir_msg_retain(weir_chunks_msg(chunks));
        remove_first(ctx);
        chunks->is_reported = true; /* regardless of pieces in flight */
        *end = chunks;
        end = &chunks->next;
    }
    return left;
}

/* Fails the remaining chunks last: their listeners may write, which must not overtake the queue. */
static void on_removed(weir_ctx *ctx)
{
    struct chunked_writing *state = weir_ctx_state(ctx);
    bool needs_flush = state->writes.flushed > 0;
    weir_chunks *left = empty_queue(ctx), *chunks;

    if (needs_flush)
        weir_flush(ctx);
    weir_pending_writes_run_deferred(ctx, &state->writes);
    while ((chunks = left) != NULL) {
        left = chunks->next;
        weir__channel_report(weir_ctx_channel(ctx), chunks->done, WEIR_ECLOSED,
                             "the chunked-writing handler was removed");
        weir_msg_release(weir_chunks_msg(chunks));
    }
}

static const weir_handler chunked_writing = {
    .name = "chunked-writing",
    .stays_on_loop = true,
    .state_size = sizeof(struct chunked_writing),
    .removed = on_removed,
    .registered = on_registered,
    .inactive = on_inactive,
    .close = on_close,
    .write = on_write,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
};

int weir_chunked_writing_add(weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &chunked_writing, NULL);
}
