/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender that writes burst after burst, and a receiver that ticks off what comes.
 */
#include "support/transport/flood.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>

#include <weir/pipeline.h>
#include <weir/transport.h>

#include "support/channel/pointer_state.h"
#include "support/executor/group.h"
#include "support/loop/stream.h"

#define BURST 32 /* messages */
#define SIZE_MIN 16
#define SIZE_MAX_USED 1400
#define SEGMENT 1000
#define UNDER_WAY_MAX 16 /* before a patient sender's next burst: a socket has room for both */

/* ---- a datagram ---- */

static size_t size_of(const struct flood *flood, uint32_t number)
{
    if (flood->segments > 0)
        return SEGMENT;
    return SIZE_MIN + (size_t)number * 7919 % (SIZE_MAX_USED - SIZE_MIN);
}

static void compose(uint8_t *bytes, uint32_t number, size_t size)
{
    struct stream stream = {.seed = number};

    memcpy(bytes, &number, sizeof(number));
    stream_write(&stream, bytes + sizeof(number), size - sizeof(number));
}

static bool is_as_sent(const struct flood *flood, const weir_buf *buf, uint32_t number)
{
    struct stream stream = {.seed = number};
    size_t size = weir_buf_readable(buf);

    return number < flood->count && size == size_of(flood, number) &&
           stream_check(&stream, weir_buf_bytes(buf) + sizeof(number), size - sizeof(number));
}

/* ---- the receiver ---- */

static struct flood *flood_of(weir_ctx *ctx)
{
    return *(struct flood **)weir_ctx_state(ctx);
}

static void tick_off(struct flood *flood, const weir_buf *buf)
{
    uint32_t number = UINT32_MAX;

    if (weir_buf_readable(buf) >= SIZE_MIN)
        memcpy(&number, weir_buf_bytes(buf), sizeof(number));
    if (!is_as_sent(flood, buf, number)) {
        atomic_fetch_add(&flood->wrong, 1);
        return;
    }
    if ((flood->seen[number / 8] & 1 << number % 8) != 0)
        atomic_fetch_add(&flood->doubled, 1);
    flood->seen[number / 8] |= (uint8_t)(1 << number % 8);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct flood *flood = flood_of(ctx);

    tick_off(flood, weir_datagram_buf(weir_datagram_of(msg)));
    atomic_fetch_add(&flood->received, 1);
    weir_msg_release(msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    call_counter_add(&flood_of(ctx)->progress);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    atomic_fetch_add(&flood_of(ctx)->errors, 1);
    weir_fire_error(ctx, err, detail);
}

static void on_turn(void *arg, int status);

static void on_writability(weir_ctx *ctx)
{
    struct flood *flood = flood_of(ctx);

    if (flood->is_unix && weir_ctx_is_writable(ctx) && flood->sent < flood->count)
        on_turn(flood, 0);
}

static const weir_handler handler = {
    .name = "flood",
    .state_size = sizeof(struct flood *),
    .init = pointer_keep,
    .read = on_read,
    .read_complete = on_read_complete,
    .writability = on_writability,
    .error = on_error,
};

/* What the socket had no room for. */
static uint32_t dropped_by(weir_channel *channel)
{
    uint32_t meminfo[SK_MEMINFO_VARS] = {0};
    size_t length = sizeof(meminfo);

    if (weir_channel_get_socket_option(channel, SOL_SOCKET, SO_MEMINFO, meminfo, &length) < 0)
        return 0;
    return meminfo[SK_MEMINFO_DROPS];
}

/* ---- the sender ---- */

/* Then on_writability goes on. */
static bool waits_for_room(const struct flood *flood)
{
    return flood->is_unix && !weir_channel_is_writable(flood->sender);
}

static bool may_go_on(struct flood *flood)
{
    return !flood->patient ||
           flood->sent - atomic_load(&flood->received) - dropped_by(flood->receiver) <
               UNDER_WAY_MAX;
}

/* Writes the next message; without a promise, a failure is an error event. */
static int write_next(struct flood *flood)
{
    uint32_t left = flood->count - flood->sent;
    uint32_t segments = flood->segments < left ? flood->segments : left;
    uint32_t count = flood->segments > 0 ? segments : 1;
    size_t size = size_of(flood, flood->sent);
    weir_datagram *datagram;
    weir_buf *buf;
    int err = weir_buf_create(count * size, 0, &buf);

    if (err < 0)
        return err;
    for (uint32_t i = 0; i < count; i++) {
        compose(weir_buf_space(buf), flood->sent++, size);
        (void)weir_buf_advance(buf, size);
    }
    err = weir_datagram_create(weir_buf_msg(buf), NULL, &datagram);
    if (err < 0)
        return err;
    if (flood->segments > 0)
        weir_datagram_set_segment_size(datagram, SEGMENT);
    weir_channel_write(flood->sender, weir_datagram_msg(datagram), NULL);
    return 0;
}

static void on_turn(void *arg, int status)
{
    struct flood *flood = arg;

    for (int i = may_go_on(flood) ? 0 : BURST;
         i < BURST && status == 0 && flood->sent < flood->count && !waits_for_room(flood); i++)
        status = write_next(flood);
    weir_channel_flush(flood->sender);
    if (status == 0 && flood->sent < flood->count && !waits_for_room(flood))
        status = weir_execute(weir_channel_executor(flood->sender), on_turn, flood);
    if (status < 0)
        atomic_fetch_add(&flood->errors, 1);
    if (status < 0 || flood->sent == flood->count) {
        call_counter_add(&flood->sent_all);
        call_counter_add(&flood->progress);
    }
}

/* ---- both ---- */

static int await(weir_promise *promise)
{
    int err = weir_promise_sync(promise, TEST_TIMEOUT_NS);

    weir_promise_release(promise);
    return err;
}

static int open_channel(struct flood *flood, weir_group *group, weir_channel **ret_channel)
{
    int err = flood->is_unix ? weir_unix_create(WEIR_KIND_DATAGRAM, NULL, ret_channel)
                             : weir_udp_create(NULL, ret_channel);

    if (err == 0)
        err = weir_pipeline_add_last(weir_channel_pipeline(*ret_channel), &handler, flood);
    if (err == 0)
        weir_group_register(group, *ret_channel, NULL);
    return err;
}

static int choose_address(const struct flood *flood, weir_address *ret_address)
{
    static const weir_address any_name = {.length = sizeof(sa_family_t),
                                          .storage = {.ss_family = AF_UNIX}};

    if (!flood->is_unix)
        return weir_address_parse("127.0.0.1:0", ret_address);
    *ret_address = any_name;
    return 0;
}

static int open_receiver(struct flood *flood, weir_group *group, weir_address *ret_address)
{
    weir_promise *bound;
    int err = open_channel(flood, group, &flood->receiver);

    if (err == 0)
        err = choose_address(flood, ret_address);
    if (err == 0)
        err = weir_promise_create(weir_channel_executor(flood->receiver), &bound);
    if (err < 0)
        return err;
    weir_channel_bind(flood->receiver, ret_address, bound);
    err = await(bound);
    return err == 0 ? weir_channel_local_address(flood->receiver, ret_address) : err;
}

static int open_sender(struct flood *flood, weir_group *group, const weir_address *address)
{
    weir_promise *connected;
    int err = open_channel(flood, group, &flood->sender);

    if (err == 0)
        err = weir_promise_create(weir_channel_executor(flood->sender), &connected);
    if (err < 0)
        return err;
    weir_channel_connect(flood->sender, address, NULL, connected);
    return await(connected);
}

/* On this interface what was sent is in the receiver's socket, or has been dropped. */
static bool is_through(struct flood *flood)
{
    if (atomic_load(&flood->sent_all.calls) == 0)
        return false;
    flood->dropped = dropped_by(flood->receiver);
    return atomic_load(&flood->received) + flood->dropped >= flood->count;
}

static int await_all(struct flood *flood)
{
    for (;;) {
        uint32_t calls = atomic_load(&flood->progress.calls);

        if (is_through(flood))
            return 0;
        if (!call_counter_await(&flood->progress, calls + 1))
            return -ETIMEDOUT;
    }
}

static void close_channel(weir_channel *channel)
{
    if (channel == NULL)
        return;
    weir_channel_abort(channel, NULL);
    (void)weir_channel_await_closed(channel, TEST_TIMEOUT_NS);
    weir_channel_release(channel);
}

int flood_run(struct flood *flood, weir_group *far, weir_group *near)
{
    weir_address address;
    int err;

    flood->seen = calloc(flood->count / 8 + 1, 1);
    err = flood->seen != NULL ? open_receiver(flood, far, &address) : -ENOMEM;
    if (err == 0)
        err = open_sender(flood, near, &address);
    if (err == 0)
        err = weir_execute(weir_channel_executor(flood->sender), on_turn, flood);
    if (err == 0)
        err = await_all(flood);
    close_channel(flood->sender);
    close_channel(flood->receiver);
    free(flood->seen);
    return err;
}

bool flood_is_good(const struct flood *flood)
{
    return flood->received + flood->dropped == flood->count && flood->wrong == 0 &&
           flood->doubled == 0 && flood->errors == 0;
}
