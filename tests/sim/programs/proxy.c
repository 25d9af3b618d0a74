/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients, a proxy (examples/support/relay.c) and a server. Both ends send streams of their own at
 * the same time, with pauses in reading; each end half-closes, closes or resets. Bytes arrive in
 * order, a stream that was cut off never looks complete, a reset is passed on as a reset, and the
 * proxy holds a bounded number of bytes.
 */
#include <sys/socket.h>

#include "sim/programs/parts.h"
#include "sim/programs/program.h"
#include "support/relay.h"

#define PAIRS 6
#define MAX_TOTAL 12000
#define MARK 2048
#define SERVER "10.0.0.3:9000"

/* Faults that break a connection. */
#define BREAKING (SIM_SCARCITY | SIM_KIND(RESET) | SIM_KIND(DEATH))
#define SILENCING (BREAKING | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP))

enum {
    FINISHES, /* half-closes behind its last byte, and closes when the other has ended, too */
    CLOSES,   /* closes behind its last byte; what the other sends is discarded */
    RESETS,   /* resets in the middle */
};

/* One end of a pair: 0 is the client, 1 the server. */
struct end {
    unsigned total, sent, received;
    unsigned ending;
    bool is_open, was_open;
    bool has_ended; /* its stream, in order */
    bool has_reset; /* on purpose */
    bool saw_end;   /* of the other's stream */
    bool saw_error;
};

static struct pair {
    struct end ends[2];
} pairs[PAIRS];

static bool is_rough;
static bool has_given_up; /* clients or the proxy close in the middle of streams */
static unsigned open_ends;

static void fail(const char *what, unsigned pair, unsigned side)
{
    const struct end *self = &pairs[pair].ends[side], *other = &pairs[pair].ends[1 - side];

    weir_sim_fail(weir_sim_current(), "pair %u, %s: %s (received %u, the other sent %u of %u)",
                  pair, side == 0 ? "client" : "server", what, self->received, other->sent,
                  other->total);
}

/* ---- both ends ---- */

struct state {
    weir_timer timer;
    int pair; /* -1: the server does not know it yet */
    unsigned side;
};

static struct end *end_of(struct state *state)
{
    return &pairs[state->pair].ends[state->side];
}

static void reset(weir_ctx *ctx, struct end *end)
{
    const struct linger none = {.l_onoff = 1};
    weir_channel *channel = weir_ctx_channel(ctx);

    end->has_reset = true;
    (void)weir_channel_set_socket_option(channel, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    weir_channel_abort(channel, NULL);
}

/* Faults of the process can break it off in the middle: then it must not look like an end. */
static void finish(weir_ctx *ctx, struct end *end)
{
    end->has_ended = true;
    if (end->ending == CLOSES)
        weir_close(ctx, NULL);
    else
        weir_shutdown_output(ctx, NULL);
}

static void go_on(weir_ctx *ctx, weir_timer *timer)
{
    struct state *state = weir_ctx_state(ctx);
    struct end *end = end_of(state);

    (void)timer;
    if (!end->is_open || end->has_ended || end->has_reset)
        return;
    while (end->sent < end->total && weir_ctx_is_writable(ctx)) {
        unsigned left = end->total - end->sent, piece = 1 + sim_below(MARK);

        piece = piece < left ? piece : left;
        if (sim_write_bytes(ctx, (unsigned)state->pair * 2 + state->side, end->sent, piece) < 0) {
            reset(ctx, end);
            return;
        }
        end->sent += piece;
        weir_flush(ctx);
        if (end->ending == RESETS && sim_once_in(4)) {
            reset(ctx, end);
            return;
        }
    }
    if (end->sent == end->total)
        finish(ctx, end);
}

static void resume(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir_ctx_set_auto_read(ctx, true);
}

/* Stops reading for a while. */
static void pause_reading(weir_ctx *ctx, struct state *state)
{
    weir_ctx_set_auto_read(ctx, false);
    if (weir_ctx_timer_start(ctx, &state->timer, sim_delay(weir_ms(20)), resume) < 0)
        weir_ctx_set_auto_read(ctx, true);
}

static void begin(weir_ctx *ctx, struct state *state)
{
    struct end *end = end_of(state);

    if (end->was_open)
        fail("opened twice", (unsigned)state->pair, state->side);
    end->is_open = end->was_open = true;
    go_on(ctx, NULL);
}

static void on_active(weir_ctx *ctx)
{
    struct state *state = weir_ctx_state(ctx);
    const uint8_t pair = (uint8_t)state->pair;
    weir_buf *buf;

    open_ends++;
    if (state->side != 0)
        return; /* waits for the number of the pair */
    if (weir_buf_create(1, 0, &buf) < 0) {
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
        return;
    }
    (void)weir_buf_write_bytes(buf, &pair, 1);
    weir_write(ctx, weir_buf_msg(buf), NULL);
    begin(ctx, state);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct state *state = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);
    struct end *end;

    if (state->pair < 0) {
        state->pair = weir_buf_bytes(buf)[0];
        weir_buf_skip(buf, 1);
        if (state->pair >= PAIRS) {
            weir_sim_fail(weir_sim_current(), "pair %d", state->pair);
            state->pair = 0;
        }
        begin(ctx, state);
    }
    end = end_of(state);
    end->received += (unsigned)sim_check_bytes(msg, (unsigned)state->pair * 2 + (1 - state->side),
                                               end->received, "proxy");
    weir_msg_release(msg);
    if (end->received > pairs[state->pair].ends[1 - state->side].sent)
        fail("more than was sent", (unsigned)state->pair, state->side);
    if (is_rough && sim_once_in(8))
        pause_reading(ctx, state);
}

static void on_writability(weir_ctx *ctx)
{
    struct state *state = weir_ctx_state(ctx);

    if (state->pair >= 0 && weir_ctx_is_writable(ctx))
        go_on(ctx, NULL);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    struct state *state = weir_ctx_state(ctx);

    if (event == weir_event_input_closed() && state->pair >= 0) {
        struct end *end = end_of(state);
        const struct end *other = &pairs[state->pair].ends[1 - state->side];

        end->saw_end = other->was_open; /* without a server the relay closes */
        /* The kernel ends the streams of a killed process in order. */
        if (other->was_open && (!other->has_ended || end->received != other->total) &&
            sim_faults(SIM_KIND(DEATH)) == 0 && !has_given_up)
            fail("a stream that was cut off looks complete", (unsigned)state->pair, state->side);
        if (end->has_ended || !other->was_open)
            weir_close(ctx, NULL);
    } else if (event == weir_event_input_closed()) {
        weir_close(ctx, NULL);
    } else if (event == weir_event_output_closed() && state->pair >= 0 && end_of(state)->saw_end) {
        weir_close(ctx, NULL);
    }
    weir_msg_release(event);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct state *state = weir_ctx_state(ctx);

    (void)err;
    (void)detail;
    if (state->pair >= 0) {
        const struct end *other = &pairs[state->pair].ends[1 - state->side];

        end_of(state)->saw_error = true;
        if (!other->has_reset && other->ending != CLOSES && sim_faults(BREAKING) == 0 &&
            !end_of(state)->has_reset)
            fail(weir_error_text(err), (unsigned)state->pair, state->side);
    }
    reset(ctx, state->pair >= 0 ? end_of(state) : &(struct end){0});
}

static void on_inactive(weir_ctx *ctx)
{
    struct state *state = weir_ctx_state(ctx);

    if (state->pair >= 0)
        end_of(state)->is_open = false;
    open_ends--;
}

/* A server that is stopped, or cannot be run for want of memory, ends its streams in order. */
static void on_draining(weir_ctx *ctx)
{
    has_given_up = true;
    weir_close(ctx, NULL);
}

static const weir_handler end_handler = {
    .name = "end",
    .draining = on_draining,
    .state_size = sizeof(struct state),
    .active = on_active,
    .read = on_read,
    .writability = on_writability,
    .event = on_event,
    .inactive = on_inactive,
    .error = on_error,
};

static int add_end(weir_channel *channel, int pair, unsigned side)
{
    struct state *state;
    int err = sim_add(channel, &end_handler);

    if (err < 0)
        return err;
    state = weir_ctx_state(weir_pipeline_find(weir_channel_pipeline(channel), "end"));
    state->pair = pair;
    state->side = side;
    return 0;
}

#define END_OPTIONS                                                                     \
    WEIR_CHANNEL_OPTIONS(.half_closure = true, .high_mark = MARK, .low_mark = MARK / 2, \
                         .receive_initial = 512, .receive_max = 2048)

/* ---- the server ---- */

static int init_server_end(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return add_end(channel, -1, 1);
}

static int server_main(void *arg)
{
    (void)arg;
    return sim_serve_stubbornly("0.0.0.0:9000", 1, init_server_end, NULL, END_OPTIONS);
}

/* ---- the proxy ---- */

/* The relay stops reading above its mark; what it has read by then is one read, or what a message
 * counts at least. */
#define HELD_MAX (MARK + 16 * (2048 + 208) + 1024)

static void check_held(weir_ctx *ctx)
{
    int64_t held = weir_channel_pending_bytes(weir_ctx_channel(ctx));

    if (held > HELD_MAX)
        weir_sim_fail(weir_sim_current(), "the proxy holds %lld bytes", (long long)held);
    weir_flush(ctx);
}

static const weir_handler held_handler = {
    .name = "held", .flush = check_held, .draining = on_draining};

/* Smaller marks than RELAY_OPTIONS. */
#define SMALL_OPTIONS                                                                     \
    WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .half_closure = true, .high_mark = MARK, \
                         .low_mark = MARK / 2, .receive_initial = 512, .receive_max = 2048)

static int init_back(weir_channel *channel, void *front)
{
    int err = sim_add(channel, &held_handler);

    return err < 0 ? err : relay_init_back(channel, front);
}

static int connect_back(weir_channel *front, weir_init_fn *init, void *user_data,
                        weir_promise **ret_connecting)
{
    (void)init;
    (void)user_data;
    return weir_client_connect(WEIR_CLIENT_OPTIONS(.loop = weir_channel_executor(front),
                                                   .address = SERVER, .init = init_back,
                                                   .user_data = front, .options = SMALL_OPTIONS),
                               ret_connecting);
}

static int init_front(weir_channel *channel, void *user_data)
{
    int err = sim_add(channel, &held_handler);

    return err < 0 ? err : relay_init_with(channel, connect_back, user_data);
}

static int proxy_main(void *arg)
{
    (void)arg;
    return sim_serve_stubbornly("0.0.0.0:8443", 2, init_front, NULL, SMALL_OPTIONS);
}

/* ---- the clients ---- */

static int init_client_end(weir_channel *channel, void *pair)
{
    return add_end(channel, (int)((struct pair *)pair - pairs), 0);
}

static int connect_client(weir_group *group, unsigned pair)
{
    weir_promise *connecting = NULL;
    int err = weir_client_connect(
        WEIR_CLIENT_OPTIONS(.group = group, .address = "10.0.0.2:8443", .init = init_client_end,
                            .user_data = &pairs[pair], .options = END_OPTIONS),
        &connecting);

    if (err == 0)
        err = weir_promise_await(connecting, weir_seconds(60));
    weir_promise_release(connecting);
    return err;
}

static int client_main(void *arg)
{
    weir_group *group = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "client", .threads = 1), &group);

    (void)arg;
    for (unsigned i = 0; i < PAIRS && err == 0; i++) {
        err = sim_excuse(connect_client(group, i));
        if (is_rough)
            weir_sim_sleep(sim_delay(weir_ms(10)));
    }
    /* An end that was reset or died behind a partition never reports it. */
    for (int64_t waited_ns = 0; open_ends > 0; waited_ns += weir_ms(50)) {
        if (waited_ns > weir_seconds(sim_faults(SILENCING) > 0 ? 5 : 200)) {
            has_given_up = true;
            if (sim_faults(SILENCING) == 0)
                weir_sim_fail(weir_sim_current(), "%u ends are still open", open_ends);
            break;
        }
        weir_sim_sleep(weir_ms(50));
    }
    sim_end_group(group);
    return sim_excuse(err);
}

/* ---- the world ---- */

/* Without faults that break connections each end learns how the other has ended. */
static void check_end(weir_sim *sim, bool at_end, void *arg)
{
    (void)sim;
    (void)arg;
    if (!at_end || sim_faults(BREAKING | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP)) > 0)
        return;
    for (unsigned i = 0; i < PAIRS * 2; i++) {
        const struct end *self = &pairs[i / 2].ends[i % 2], *other = &pairs[i / 2].ends[1 - i % 2];

        if (!self->was_open)
            continue;
        if (self->ending == FINISHES && other->ending == FINISHES &&
            (!self->saw_end || self->received != other->total))
            fail("lost the end", i / 2, i % 2);
        if (other->has_reset && self->ending == FINISHES && !self->saw_error)
            fail("a reset was not passed on", i / 2, i % 2);
    }
}

static void draw_pairs(void)
{
    for (unsigned i = 0; i < PAIRS * 2; i++) {
        struct end *end = &pairs[i / 2].ends[i % 2];

        *end = (struct end){.total = sim_below(is_rough ? MAX_TOTAL : 1000)};
        if (is_rough && sim_once_in(3))
            end->ending = sim_once_in(2) ? CLOSES : RESETS;
    }
    open_ends = 0;
    has_given_up = false;
}

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *hosts[3];
    weir_sim_process *server, *proxy, *client;
    int err = weir_sim_check(sim, check_end, NULL);

    draw_pairs();
    if (err == 0)
        err = weir_sim_host_create(sim, "client", "10.0.0.1", &hosts[0]);
    if (err == 0)
        err = weir_sim_host_create(sim, "proxy", "10.0.0.2", &hosts[1]);
    if (err == 0)
        err = weir_sim_host_create(sim, "server", "10.0.0.3", &hosts[2]);
    if (err == 0)
        err = weir_sim_start(hosts[2], "server", server_main, arg, &server);
    if (err == 0)
        err = weir_sim_start(hosts[1], "proxy", proxy_main, arg, &proxy);
    if (err < 0)
        return err;
    weir_sim_restart(proxy, weir_ms(2));
    sim_await_listener(hosts[2], server);
    sim_await_listener(hosts[1], proxy);
    err = weir_sim_start(hosts[0], "client", client_main, arg, &client);
    if (err == 0)
        err = weir_sim_join(client);
    has_given_up = true; /* a proxy that drains ends its streams in order */
    if (err == 0)
        err = sim_stop(proxy);
    return err < 0 ? err : sim_stop(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    uint32_t kinds = SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                     SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED);

    is_rough = seed % 4 != 0;
    if (is_rough)
        options->network.socket_buffer = 1024;
    if (seed % 4 > 1) {
        kinds |= SIM_SCARCITY | SIM_KIND(RESET) | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) |
                 SIM_KIND(DEATH) | SIM_KIND(CLOCK_STEP);
        options->max_outage_ns = weir_ms(500);
    }
    sim_draw_rates(seed, kinds, options);
}

SIM_PROGRAM(proxy, "a proxy with back-pressure, ends and resets", configure, run)
