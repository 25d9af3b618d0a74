/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is true of every stream: a handler next to the socket, at both ends.
 *
 *     bytes      an end has received no more than the other one has written, and all of it when the
 *                stream ends in order. What a fault has taken is a reset, or known to the writer.
 *                Only a kernel ends the streams of a process that was killed in order.
 *     marks      after a flush, is_writable agrees with the bytes that wait
 *     progress   bytes that were flushed arrive at an end that wants to read
 *
 * No fault excuses any of this. An end whose peer is not watched is checked for its marks only.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/programs/parts.h"
#include "sim/world.h"

#define ENDS_MAX 4096
#define STALL_NS weir_seconds(90) /* TCP sends again once in a minute */
#define LOOK_NS weir_seconds(1)

struct end {
    weir_address local, remote;
    const weir_sim_process *process;
    struct end *peer;
    uint64_t written, flushed, received;
    bool is_open, is_done; /* it writes no more */
    bool has_left;         /* it reads no more */
    bool wants_input;
    uint64_t seen; /* `received` of the peer at `seen_ns` */
    int64_t seen_ns;
};

static struct end ends[ENDS_MAX]; /* of this world */
static size_t end_count;
static int64_t next_look_ns;
static bool has_check;

void sim_watch_reset(void)
{
    end_count = 0;
    next_look_ns = 0;
    has_check = false;
}

static struct end *end_of(weir_ctx *ctx)
{
    return *(struct end **)weir_ctx_state(ctx);
}

/* What one of the two processes still had to send or to read died with it. */
static bool is_cut(const struct end *end)
{
    return end->process->is_dying || end->peer->process->is_dying;
}

/* ---- progress ---- */

static void check_progress(struct end *end)
{
    if (!end->is_open || end->peer == NULL || !end->peer->is_open || !end->peer->wants_input ||
        end->flushed <= end->peer->received || end->seen != end->peer->received) {
        end->seen = end->peer != NULL ? end->peer->received : 0;
        end->seen_ns = weir_sim_now(weir__sim);
    } else if (weir_sim_now(weir__sim) - end->seen_ns > STALL_NS && !is_cut(end)) {
        weir_sim_fail(weir__sim, "a stream stands still: %llu of %llu bytes have arrived",
                      (unsigned long long)end->peer->received, (unsigned long long)end->flushed);
    }
}

static void check_all(weir_sim *sim, bool at_end, void *arg)
{
    (void)arg;
    if (at_end || weir_sim_now(sim) < next_look_ns)
        return;
    next_look_ns = weir_sim_now(sim) + LOOK_NS;
    for (size_t i = 0; i < end_count; i++)
        check_progress(&ends[i]);
}

/* ---- slots ---- */

static void find_peer(struct end *end)
{
    for (size_t i = end_count; i > 0 && end->peer == NULL; i--) {
        struct end *other = &ends[i - 1];

        if (other != end && other->peer == NULL && other->is_open &&
            weir_address_equal(&other->local, &end->remote) &&
            weir_address_equal(&other->remote, &end->local)) {
            end->peer = other;
            other->peer = end;
        }
    }
}

static void on_active(weir_ctx *ctx)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    struct end *end;

    if (end_of(ctx) == NULL && end_count < ENDS_MAX) {
        end = &ends[end_count];
        *end = (struct end){
            .process = weir__sim_process(),
            .is_open = true,
            .has_left = !weir_channel_is_open(channel), /* by a listener of the connect */
        };
        if (weir_channel_local_address(channel, &end->local) == 0 &&
            weir_channel_remote_address(channel, &end->remote) == 0) {
            end_count++;
            *(struct end **)weir_ctx_state(ctx) = end;
            find_peer(end);
        }
    }
    weir_fire_active(ctx);
}

/* If the peer's stream has ended in order, and this end has not refused from it. */
static void check_all_read(weir_ctx *ctx)
{
    const struct end *end = end_of(ctx);

    if (end != NULL && end->peer != NULL && !end->has_left &&
        weir_channel_has_peer_ended(weir_ctx_channel(ctx)) && end->received != end->peer->written &&
        !is_cut(end))
        weir_sim_fail(weir__sim, "%llu bytes were written, and %llu received before the end",
                      (unsigned long long)end->peer->written, (unsigned long long)end->received);
}

static void on_inactive(weir_ctx *ctx)
{
    struct end *end = end_of(ctx);

    check_all_read(ctx);
    if (end != NULL)
        end->is_open = false;
    weir_fire_inactive(ctx);
}

static uint64_t length_of(weir_msg *msg)
{
    const weir_buf *buf = weir_buf_of(msg);

    return buf != NULL ? weir_buf_readable(buf) : weir_msg_size(msg);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct end *end = end_of(ctx);

    if (end != NULL) {
        end->wants_input = false;
        end->received += length_of(msg);
        if (end->peer != NULL && end->received > end->peer->written)
            weir_sim_fail(weir__sim, "%llu bytes were written, and %llu received",
                          (unsigned long long)end->peer->written,
                          (unsigned long long)end->received);
    }
    weir_fire_read(ctx, msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    if (event == weir_event_input_closed())
        check_all_read(ctx);
    weir_fire_event(ctx, event);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct end *end = end_of(ctx);
    bool counts = end != NULL && !end->is_done && weir_channel_is_open(weir_ctx_channel(ctx));
    uint64_t length = counts ? length_of(msg) : 0;

    if (counts)
        end->written += length;
    weir_write(ctx, msg, done);
    if (counts && done != NULL && weir_promise_is_done(done) && weir_promise_result(done) < 0)
        end->written -= length; /* its writer knows */
}

static void on_flush(weir_ctx *ctx)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    weir_channel_options options;
    int64_t pending;
    bool is_writable;

    if (end_of(ctx) != NULL)
        end_of(ctx)->flushed = end_of(ctx)->written;
    weir_flush(ctx);
    if (!weir_channel_is_open(channel) || !weir_channel_is_active(channel))
        return; /* a channel that closes is not writable */
    weir_channel_get_options(channel, &options);
    pending = weir_channel_pending_bytes(channel);
    is_writable = weir_channel_is_writable(channel);
    if (is_writable ? pending > options.high_mark : pending < options.low_mark)
        weir_sim_fail(weir__sim, "the channel is %swritable with %lld bytes that wait",
                      is_writable ? "" : "not ", (long long)pending);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    if (end_of(ctx) != NULL) {
        end_of(ctx)->is_done = true;
        end_of(ctx)->flushed = end_of(ctx)->written;
    }
    weir_shutdown_output(ctx, done);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    if (end_of(ctx) != NULL)
        end_of(ctx)->has_left = true;
    weir_close(ctx, done);
}

static void on_request_read(weir_ctx *ctx)
{
    if (end_of(ctx) != NULL)
        end_of(ctx)->wants_input = true;
    weir_request_read(ctx);
}

static const weir_handler watch = {
    .name = "watch",
    .state_size = sizeof(struct end *),
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .event = on_event,
    .write = on_write,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
    .close = on_close,
    .request_read = on_request_read,
};

int sim_watch(weir_pipeline *pipeline)
{
    int err = 0;

    if (!has_check) {
        err = weir_sim_check(weir__sim, check_all, NULL);
        has_check = err == 0;
    }
    return err < 0 ? err : weir_pipeline_add_first(pipeline, &watch, NULL);
}

int sim_init_watch(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return sim_watch(weir_channel_pipeline(channel));
}

int sim_add(weir_channel *channel, const weir_handler *handler)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = sim_watch(pipeline);

    return err < 0 ? err : weir_pipeline_add_last(pipeline, handler, NULL);
}
