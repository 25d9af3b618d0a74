/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of traffic.
 */
#include "support/loop/traffic.h"

#include <stdio.h>

#define TURN_NS weir_ms(10)
#define STALL_NS weir_seconds(3) /* without a byte; short, because shrinking meets many stalls */
#define BACKLOG_MAX (1u << 20)   /* an end with this much to send gets no more */

static bool is_fine(const struct traffic *traffic)
{
    return traffic->driver->failure[0] == '\0';
}

/* Small sizes are as frequent as large ones; at most 256 KiB. */
static uint32_t scaled(const uint32_t numbers[3])
{
    return numbers[2] % (1u << (1 + numbers[1] % 18));
}

/* ---- the ends ---- */

static void on_peer_event(struct peer *peer, enum peer_event event)
{
    struct traffic_end *end = peer->arg;
    enum traffic_action action = end->action;

    if (event != PEER_RECEIVED || action == ACTION_NONE)
        return;
    end->action = ACTION_NONE;
    if (action != ACTION_ONCE)
        peer_receive_stop(peer);
    if (action != ACTION_STOP)
        peer_receive_start(peer, action == ACTION_ONCE);
}

static void open_pair(struct traffic *traffic)
{
    static const int sizes[] = {0, 4096, 20000, 100000};
    bool tcp = traffic->pairs % 2 == 0; /* whose small buffers wait for probes, 200 ms each */
    int pair[2];

    socket_pair(tcp ? PAIR_TCP : PAIR_UNIX, pair);
    for (int i = 0; i < 2; i++) {
        struct traffic_end *end = &traffic->ends[i];
        int size = sizes[(traffic->pairs / 2) % 4];

        if (size > 0 && !tcp)
            socket_shrink(pair[i], size);
        *end = (struct traffic_end){.peer = peer_open(traffic->driver, pair[i])};
        end->peer->arg = end;
        end->peer->react = on_peer_event;
        end->peer->elements = 1 + traffic->pairs % 5;
    }
    traffic->pairs++;
}

static bool await_detached(struct traffic *traffic, const struct peer *peer)
{
    int64_t give_up_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (peer->handle != NULL && is_fine(traffic)) {
        if (weir__monotonic_now() > give_up_ns)
            driver_fail(traffic->driver, "traffic: never detached");
        (void)driver_step(traffic->driver, TURN_NS);
    }
    return is_fine(traffic);
}

static bool close_pair(struct traffic *traffic)
{
    for (int i = 0; i < 2; i++)
        peer_close(traffic->ends[i].peer);
    for (int i = 0; i < 2; i++) {
        if (!await_detached(traffic, traffic->ends[i].peer))
            return false;
        traffic->delivered += traffic->ends[i].peer->bytes;
        peer_free(traffic->ends[i].peer);
        traffic->ends[i].peer = NULL;
    }
    return true;
}

/* ---- the steps ---- */

static void send_some(struct traffic_end *end, uint32_t count)
{
    if (end->asked - end->peer->bytes_sent > BACKLOG_MAX)
        return;
    end->asked += count;
    peer_send(end->peer, count);
}

/* The stream continues on the new loop. */
static bool move(struct traffic *traffic, struct peer *peer)
{
    bool receiving = peer->receiving;
    uint32_t window = peer->handle->window;
    int err;

    peer_detach(peer);
    if (!await_detached(traffic, peer))
        return false;
    err = peer_attach(peer, traffic->driver);
    if (err < 0) {
        driver_fail(traffic->driver, "traffic: attach fails with %d", err);
        return false;
    }
    peer->handle->window = window;
    if (receiving)
        peer_receive_start(peer, peer->once);
    peer_send(peer, 0);
    return is_fine(traffic);
}

static bool rebuild(struct traffic *traffic)
{
    int err = weir__io_rebuild(traffic->driver->io);

    if (err < 0)
        driver_fail(traffic->driver, "traffic: rebuild fails with %d", err);
    return is_fine(traffic);
}

static bool turn(struct traffic *traffic, uint32_t count)
{
    for (uint32_t i = 0; i <= count; i++) {
        if (!driver_step(traffic->driver, i == 0 ? weir_ms(1) : 0))
            return false;
    }
    return true;
}

static bool is_settled(const struct traffic *traffic)
{
    return traffic->ends[0].peer->bytes == traffic->ends[1].asked &&
           traffic->ends[1].peer->bytes == traffic->ends[0].asked;
}

static bool is_lost(const struct traffic *traffic)
{
    for (int i = 0; i < 2; i++) {
        const struct peer *peer = traffic->ends[i].peer;

        if (peer->ends + peer->fails > 0 || peer->send_error != 0)
            return true;
    }
    return false;
}

static void complain_of_loss(const struct traffic *traffic, const char *what)
{
    const struct traffic_end *ends = traffic->ends;

    driver_fail(traffic->driver, "traffic %s: %llu of %llu and %llu of %llu arrived", what,
                (unsigned long long)ends[1].peer->bytes, (unsigned long long)ends[0].asked,
                (unsigned long long)ends[0].peer->bytes, (unsigned long long)ends[1].asked);
}

static void receive_all(struct traffic *traffic)
{
    for (int i = 0; i < 2; i++) {
        traffic->ends[i].action = ACTION_NONE;
        if (!traffic->ends[i].peer->receiving)
            peer_receive_start(traffic->ends[i].peer, false);
    }
}

bool traffic_settle(struct traffic *traffic)
{
    int64_t give_up_ns = weir__monotonic_now() + STALL_NS;
    uint64_t delivered = traffic_delivered(traffic);

    traffic->driver->memory.refuse = 0;
    while (is_fine(traffic) && !is_settled(traffic)) {
        if (is_lost(traffic))
            complain_of_loss(traffic, "lost");
        else if (weir__monotonic_now() > give_up_ns)
            complain_of_loss(traffic, "stalled");
        receive_all(traffic);
        (void)driver_step(traffic->driver, TURN_NS);
        if (traffic_delivered(traffic) > delivered) {
            delivered = traffic_delivered(traffic);
            give_up_ns = weir__monotonic_now() + STALL_NS;
        }
    }
    return is_fine(traffic);
}

bool traffic_step(struct traffic *traffic, enum traffic_kind kind, const uint32_t numbers[3])
{
    struct traffic_end *end = &traffic->ends[numbers[0] % 2];

    switch (kind) {
    case TRAFFIC_SEND:
        send_some(end, scaled(numbers));
        break;
    case TRAFFIC_START:
    case TRAFFIC_ONCE:
        peer_receive_start(end->peer, kind == TRAFFIC_ONCE);
        break;
    case TRAFFIC_STOP:
        peer_receive_stop(end->peer);
        break;
    case TRAFFIC_STOP_INSIDE:
        end->action = (enum traffic_action)(ACTION_STOP + numbers[1] % 3);
        break;
    case TRAFFIC_TURN:
        return turn(traffic, numbers[1] % 4);
    case TRAFFIC_WINDOW:
        end->peer->handle->window = 1 + scaled(numbers);
        break;
    case TRAFFIC_STARVE:
        traffic->driver->memory.refuse = numbers[1] % 4;
        break;
    case TRAFFIC_MOVE:
        return move(traffic, end->peer);
    case TRAFFIC_REBUILD:
        return rebuild(traffic);
    case TRAFFIC_REPLACE:
        if (!close_pair(traffic))
            return false;
        open_pair(traffic);
        break;
    case TRAFFIC_SETTLE:
        return traffic_settle(traffic);
    case TRAFFIC_KINDS:
        break;
    }
    return is_fine(traffic);
}

void traffic_describe(enum traffic_kind kind, const uint32_t numbers[3], char *text, size_t size)
{
    static const char *const names[TRAFFIC_KINDS] = {
        [TRAFFIC_SEND] = "send",
        [TRAFFIC_START] = "start receiving",
        [TRAFFIC_ONCE] = "receive once",
        [TRAFFIC_STOP] = "stop receiving",
        [TRAFFIC_STOP_INSIDE] = "stop inside",
        [TRAFFIC_TURN] = "turn",
        [TRAFFIC_WINDOW] = "window",
        [TRAFFIC_STARVE] = "refuse memory",
        [TRAFFIC_MOVE] = "detach and attach",
        [TRAFFIC_REBUILD] = "rebuild",
        [TRAFFIC_REPLACE] = "replace the pair",
        [TRAFFIC_SETTLE] = "settle",
    };

    (void)snprintf(text, size, "%s: end %u, %u, scaled %u", names[kind], numbers[0] % 2, numbers[1],
                   scaled(numbers));
}

/* ---- the whole ---- */

void traffic_open(struct traffic *traffic, struct driver *driver)
{
    *traffic = (struct traffic){.driver = driver};
    open_pair(traffic);
}

uint64_t traffic_delivered(const struct traffic *traffic)
{
    uint64_t delivered = traffic->delivered;

    for (int i = 0; i < 2; i++)
        delivered += traffic->ends[i].peer != NULL ? traffic->ends[i].peer->bytes : 0;
    return delivered;
}

bool traffic_close(struct traffic *traffic)
{
    return close_pair(traffic);
}
