/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: writing more than the socket takes, files, and writes that are taken back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/file_range.h>

#include "base/memory.h"
#include "loop/loop.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/system.h"
#include "os/thread.h"
#include "support/channel/test_channel.h"
#include "support/executor/run_on_thread.h"
#include "support/transport/connection.h"

TEST_EACH_PAIR(tcp, leaves_out_what_was_cancelled)
{
    weir_promise *promises[5];

    connection_open(connection, NULL);
    for (int i = 0; i < 5; i++) {
        const char text[2] = {(char)('a' + i), '\0'};

        promises[i] = connection_promise(&connection->client);
        weir_channel_write(connection->client.channel, text_msg(text), promises[i]);
    }
    assert_int_equal(weir_promise_cancel(promises[0]), 0);
    assert_int_equal(weir_promise_cancel(promises[3]), 0);
    weir_channel_flush(connection->client.channel);
    for (int i = 0; i < 5; i++)
        assert_int_equal(connection_result(promises[i]), i == 0 || i == 3 ? WEIR_ECANCELED : 0);
    connection_await_received(&connection->server, 3);
    assert_end_events(&connection->server, "read(bce)");
}

/* A single buffer takes the usual flush, and a composite the general one. */
TEST_EACH_PAIR(tcp, sends_the_same_by_both_flushes)
{
    connection_open(connection, NULL);
    for (int i = 0; i < 2; i++) {
        weir_promise *done = connection_promise(&connection->client);
        weir_composite *composite;
        weir_msg *msg = text_msg("ab");

        if (i > 0) {
            assert_int_equal(weir_composite_create(0, &composite), 0);
            assert_int_equal(weir_composite_add(composite, msg), 0);
            msg = weir_composite_msg(composite);
        }
        weir_channel_write_and_flush(connection->client.channel, msg, done);
        assert_int_equal(connection_result(done), 0);
        connection_await_received(&connection->server, 2 * ((uint64_t)i + 1));
        assert_end_events(&connection->server, "read(ab)");
    }
}

/* ---- marks ---- */

/* A sender that stops at the high mark and goes on below the low one. */
struct transfer {
    int64_t left;
    int64_t most; /* that was ever pending */
};

static void transfer_some(weir_ctx *ctx)
{
    struct transfer *transfer = connection_end_of(ctx)->user_data;
    int64_t pending;

    while (transfer->left > 0 && weir_ctx_is_writable(ctx)) {
        transfer->left -= 4096; /* first: the write may call this again, for writability */
        weir_write(ctx, sized_msg(4096), NULL);
        pending = weir_channel_pending_bytes(weir_ctx_channel(ctx));
        transfer->most = pending > transfer->most ? pending : transfer->most;
    }
    weir_flush(ctx);
}

/* ./dev soak echo transfers more. */
#ifdef __SANITIZE_THREAD__
#define TRANSFER (1 << 20)
#else
#define TRANSFER (16 << 20)
#endif

TEST_EACH_PAIR(tcp, transfers_much_between_its_marks)
{
    struct transfer transfer = {.left = TRANSFER};

    connection_prepare(connection,
                       &(const struct connection_options){
                           .client = WEIR_CHANNEL_OPTIONS(.low_mark = 8192, .high_mark = 16384)});
    connection->client.user_data = &transfer;
    connection->client.on_active = transfer_some;
    connection->client.on_writability = transfer_some;
    connection->server.on_read = connection_discard;
    connection_connect(connection);
    connection_await_received(&connection->server, TRANSFER);
    host_turn(&connection->near, 1);
    assert_true(transfer.most > 16384 && transfer.most <= 16384 + 4096 + 96);
}

/* ---- byte by byte ---- */

/* What was sent, and what has come of it. */
struct image {
    uint8_t *bytes;
    size_t size;
    size_t seen;
    bool differs;
};

static void image_make(struct image *image, size_t size)
{
    weir__random random;

    weir__random_init(&random, 42);
    *image = (struct image){.bytes = malloc(size), .size = size};
    assert_non_null(image->bytes);
    for (size_t i = 0; i < size; i++)
        image->bytes[i] = (uint8_t)weir__random_next(&random);
}

static void compare(weir_ctx *ctx, weir_msg *msg)
{
    struct image *image = connection_end_of(ctx)->user_data;
    const weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_buf_readable(buf);

    if (length > image->size - image->seen ||
        memcmp(image->bytes + image->seen, weir_buf_bytes(buf), length) != 0)
        image->differs = true;
    image->seen += length;
    weir_msg_release(msg);
}

static int image_file(const struct image *image)
{
    char path[] = "/tmp/weir-test-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC);

    assert_true(file >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(file, image->bytes, image->size), image->size);
    return file;
}

static weir_msg *range_msg(int file, size_t offset, size_t length)
{
    weir_file_range *range;

    assert_int_equal(weir_file_range_create(file, (int64_t)offset, (int64_t)length, 0, &range), 0);
    return weir_file_range_msg(range);
}

static weir_msg *bytes_msg(const void *bytes, size_t length)
{
    weir_buf *buf;

    assert_int_equal(weir_buf_create_from(bytes, length, &buf), 0);
    return weir_buf_msg(buf);
}

static weir_msg *pieces_msg(const uint8_t *bytes, size_t length)
{
    weir_composite *composite;

    assert_int_equal(weir_composite_create(0, &composite), 0);
    for (size_t i = 0; i < length; i += length / 3 + 1) {
        size_t piece = i + length / 3 + 1 < length ? length / 3 + 1 : length - i;

        assert_int_equal(weir_composite_add(composite, bytes_msg(bytes + i, piece)), 0);
    }
    return weir_composite_msg(composite);
}

static weir_msg *any_msg(const struct image *image, int file, size_t offset, size_t length,
                         unsigned kind)
{
    switch (kind) {
    case 0:
        return range_msg(file, offset, length);
    case 1:
        return pieces_msg(image->bytes + offset, length);
    default:
        return bytes_msg(image->bytes + offset, length);
    }
}

TEST_EACH_PAIR(tcp, sends_files_buffers_and_composites_in_order)
{
    struct image image;
    weir_promise *promise = NULL;
    weir__random random;
    size_t length;
    int file;

    image_make(&image, 4 << 20);
    file = image_file(&image);
    connection_open(connection, NULL);
    connection->server.user_data = &image;
    connection->server.on_read = compare;
    weir__random_init(&random, 1);
    for (size_t offset = 0; offset < image.size; offset += length) {
        length = 1 + weir__random_below(&random, 200000);
        if (length > image.size - offset)
            length = image.size - offset;
        weir_promise_release(promise);
        promise = connection_promise(&connection->client);
        weir_channel_write(
            connection->client.channel,
            any_msg(&image, file, offset, length, (unsigned)weir__random_below(&random, 3)),
            promise);
    }
    weir_channel_flush(connection->client.channel);
    assert_int_equal(connection_result(promise), 0);
    connection_await_received(&connection->server, image.size);
    host_turn(&connection->far, 1);
    assert_false(image.differs);
    assert_int_equal(close(file), 0);
    free(image.bytes);
}

TEST_EACH_CONNECTION(tcp, closes_when_a_file_ends_before_its_range)
{
    struct image image;
    weir_promise *promise;
    int file;

    image_make(&image, 1000);
    file = image_file(&image);
    connection_open(connection, NULL);
    promise = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, range_msg(file, 500, 1000), promise);
    assert_int_equal(connection_result(promise), WEIR_ETRUNCATED);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(close(file), 0);
    free(image.bytes);
}

static void forget(weir_msg *msg)
{
    weir__free(msg);
}

TEST_EACH_CONNECTION(tcp, refuses_what_has_no_bytes)
{
    static const weir_msg_type odd = {.name = "odd", .destroy = forget};
    weir_msg *msg = weir__zalloc(sizeof(*msg));
    weir_promise *promise;

    assert_non_null(msg);
    weir_msg_init(msg, &odd);
    connection_open(connection, NULL);
    promise = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, msg, promise);
    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    assert_non_null(strstr(weir_promise_detail(promise), "cannot send a message of type odd"));
    assert_int_equal(connection_result(promise), -EPROTOTYPE);
    connection_send(&connection->client, "x");
    assert_end_events(&connection->server, "read(x)");
}

/* More pieces than a system call takes. */
TEST_EACH_CONNECTION(tcp, sends_thousands_of_small_messages_at_once)
{
    struct image image;

    image_make(&image, 3000);
    connection_open(connection, NULL);
    connection->server.user_data = &image;
    connection->server.on_read = compare;
    for (size_t i = 0; i < image.size; i++)
        weir_channel_write(connection->client.channel, bytes_msg(image.bytes + i, 1), NULL);
    weir_channel_flush(connection->client.channel);
    connection_await_received(&connection->server, image.size);
    host_turn(&connection->far, 1);
    assert_false(image.differs);
    free(image.bytes);
}

/* ---- a peer that takes all that it is sent ---- */

#define FLOOD_CALLS 3000

/* The client's loop's own, but for the calls. */
static struct flood {
    uint64_t turn;
    _Atomic unsigned calls;
    unsigned calls_in_turn, most_in_turn;
} flood;

static uint64_t turns_here(void)
{
    weir_executor_stats stats;

    weir_executor_read_stats(weir_executor_current(), &stats);
    return stats.turns;
}

static ssize_t swallow(int descriptor, const struct msghdr *message, int flags)
{
    uint64_t turn = turns_here();
    size_t length = 0;

    (void)descriptor;
    (void)flags;
    flood.calls++;
    flood.calls_in_turn = turn == flood.turn ? flood.calls_in_turn + 1 : 1;
    flood.turn = turn;
    if (flood.calls_in_turn > flood.most_in_turn)
        flood.most_in_turn = flood.calls_in_turn;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        length += message->msg_iov[i].iov_len;
    return (ssize_t)length;
}

static void flood_on(weir_ctx *ctx)
{
    while (flood.calls < FLOOD_CALLS && weir_ctx_is_writable(ctx))
        weir_write(ctx, sized_msg(4096), NULL);
    weir_flush(ctx);
    if (flood.calls >= FLOOD_CALLS)
        weir_close(ctx, NULL);
}

/* In the first turn there are two flushes, and what goes on after them; then it goes on. */
TEST_EACH_CONNECTION(tcp, lets_others_have_their_turn_however_much_it_can_send)
{
    ssize_t (*as_ever)(int, const struct msghdr *, int) = weir__sys.sendmsg;

    flood = (struct flood){0};
    weir__sys.sendmsg = swallow;
    connection_prepare(connection, NULL);
    connection->client.on_active = flood_on;
    connection->client.on_writability = flood_on;
    connection_start(connection);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
    connection_close(connection);
    weir__sys.sendmsg = as_ever;
    assert_true(flood.calls >= FLOOD_CALLS);
    assert_in_range(flood.most_in_turn, 16, 4 * 16);
}

/* ---- moving ---- */

struct moving {
    struct image *image;
    size_t sent;
};

static void send_image(weir_ctx *ctx)
{
    struct moving *moving = connection_end_of(ctx)->user_data;
    struct image *image = moving->image;
    size_t length;
    weir_buf *buf;

    while (moving->sent < image->size && weir_ctx_is_writable(ctx)) {
        length = image->size - moving->sent < 5000 ? image->size - moving->sent : 5000;
        if (weir_buf_create_from(image->bytes + moving->sent, length, &buf) < 0)
            return;
        moving->sent += length; /* first: the write may call this again, for writability */
        weir_write(ctx, weir_buf_msg(buf), NULL);
    }
    weir_flush(ctx);
}

static bool is_of(const weir_executor *loop, const weir_group *group)
{
    for (size_t i = 0; i < weir_group_count(group); i++)
        if (weir_group_at(group, i) == loop)
            return true;
    return false;
}

static void register_on(struct connection_end *end, struct host *host)
{
    weir_promise *promise = connection_promise(end);

    assert_int_equal(connection_do(end, weir_channel_deregister), 0);
    assert_false(weir_channel_is_registered(end->channel));
    weir_group_register(host->group, end->channel, promise);
    assert_int_equal(connection_result(promise), 0);
    assert_true(is_of(weir_channel_executor(end->channel), host->group));
}

static void move(struct connection_end *end, struct host *host)
{
    register_on(end, host);
    connection_await(end, "registered", 1);
    event_log_clear(&end->events);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* With the recorder behind a border, which may let `unregistered` and `registered` cancel each
 * other. */
static void move_with_border(struct connection_end *end, struct host *host, weir_executor *executor)
{
    register_on(end, host);
    run_on_executor(weir_channel_executor(end->channel), nothing, NULL);
    run_on_executor(executor, nothing, NULL);
    event_log_clear(&end->events);
}

/* Both ends go from loop to loop, while the data flow, and nothing is lost. */
TEST_EACH_PAIR(tcp, moves_between_loops_while_data_flow)
{
    struct image image;
    struct moving moving = {.image = &image};

    image_make(&image, 2 << 20);
    connection_prepare(connection, NULL);
    connection->client.user_data = &moving;
    connection->client.on_active = send_image;
    connection->client.on_writability = send_image;
    connection->server.user_data = &image;
    connection->server.on_read = compare;
    connection_connect(connection);
    for (int i = 0; i < 4; i++) {
        move(&connection->server, &connection->near);
        move(&connection->client, &connection->far);
        move(&connection->server, &connection->far);
        move(&connection->client, &connection->near);
    }
    connection_await_received(&connection->server, image.size);
    host_turn(&connection->far, 1);
    assert_false(image.differs);
    assert_int_equal(image.seen, image.size);
    connection_close(connection); /* what its hooks use goes now */
    free(image.bytes);
}

static void flood_for_ever(weir_ctx *ctx)
{
    while (weir_ctx_is_writable(ctx))
        weir_write(ctx, sized_msg(4096), NULL);
    weir_flush(ctx);
}

static void await_calls(unsigned count)
{
    int64_t give_up_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (flood.calls < count) {
        assert_true(weir__monotonic_now() < give_up_ns);
        weir__thread_yield();
    }
}

/* A flush goes on, at the end of a turn, wherever the channel is by then; and lets it be ended. */
TEST_EACH_CONNECTION(tcp, moves_between_loops_while_a_flush_never_ends)
{
    ssize_t (*as_ever)(int, const struct msghdr *, int) = weir__sys.sendmsg;

    flood = (struct flood){0};
    weir__sys.sendmsg = swallow;
    connection_prepare(connection, NULL);
    connection->client.on_active = flood_for_ever;
    connection->client.on_writability = flood_for_ever;
    connection_connect(connection);
    for (int i = 0; i < 8; i++) {
        move(&connection->client, i % 2 == 0 ? &connection->far : &connection->near);
        await_calls(flood.calls + 100);
    }
    assert_int_equal(connection_do(&connection->client, weir_channel_abort), 0);
    connection_close(connection);
    weir__sys.sendmsg = as_ever;
}

/* ---- where handlers run ---- */

static void note_executor(weir_ctx *ctx, weir_msg *msg)
{
    weir_executor **seen = *(weir_executor ***)weir_ctx_state(ctx);

    *seen = weir_in_executor(weir_ctx_executor(ctx)) ? weir_ctx_executor(ctx) : NULL;
    weir_fire_read(ctx, msg);
}

static int copy_pointer(void *state, const void *options)
{
    *(const void **)state = options;
    return 0;
}

static const weir_handler scout = {
    .name = "scout", .state_size = sizeof(void *), .init = copy_pointer, .read = note_executor};

/* `added` was called: from now on the handler sees every event. */
static void add_scout(struct connection_end *end, weir_group *group, weir_executor **seen)
{
    weir_promise *added = connection_promise(end);

    assert_int_equal(weir_pipeline_add(weir_channel_pipeline(end->channel),
                                       WEIR_PLACE(.first = true, .group = group, .done = added),
                                       &scout, seen),
                     0);
    assert_int_equal(connection_result(added), 0);
}

TEST_EACH_CONNECTION(tcp, takes_its_handlers_along_but_not_those_of_a_group)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_executor *loops = NULL, *pinned = NULL;

    connection_open(connection, NULL);
    add_scout(&connection->server, group, &pinned);
    add_scout(&connection->server, NULL, &loops); /* in front of the border */
    connection_send(&connection->client, "a");
    assert_end_events(&connection->server, "read(a)");
    assert_true(is_of(loops, connection->far.group));
    assert_ptr_equal(pinned, weir_group_at(group, 0));
    move_with_border(&connection->server, &connection->near, pinned);
    connection_send(&connection->client, "b");
    assert_end_events(&connection->server, "read(b)");
    assert_true(is_of(loops, connection->near.group));
    assert_ptr_equal(pinned, weir_group_at(group, 0));
    connection_close(connection);
    end_group(group);
}

/* ---- batches of reads ---- */

static uint64_t sends_of(const struct connection_end *end)
{
    const weir__loop *loop = weir__loop_of(weir_channel_executor(end->channel));

    return atomic_load_explicit(&loop->io->stats.sends, memory_order_relaxed);
}

static void answer_in_pieces(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    for (int i = 0; i < 4; i++)
        weir_write_and_flush(ctx, text_msg("r"), NULL);
}

TEST_EACH_CONNECTION(tcp, sends_once_what_is_flushed_in_a_read)
{
    uint64_t before;

    connection_open(connection, NULL);
    connection->server.on_read = answer_in_pieces;
    before = sends_of(&connection->server);
    connection_send(&connection->client, "x");
    connection_await_received(&connection->client, 4);
    assert_end_events(&connection->client, "read(rrrr)");
    assert_in_range(sends_of(&connection->server) - before, 1, 1);
}

TEST_EACH_CONNECTION(tcp, sends_once_what_is_flushed_in_a_requested_read)
{
    uint64_t before;

    connection_open(connection, &(const struct connection_options){
                                    .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    connection->server.on_read = answer_in_pieces;
    before = sends_of(&connection->server);
    for (unsigned i = 1; i <= 3; i++) {
        connection_send(&connection->client, "x");
        weir_channel_request_read(connection->server.channel);
        connection_await_received(&connection->client, 4 * i);
        assert_in_range(sends_of(&connection->server) - before, i, i);
    }
}

/* Each piece waits for the promise of the one before it. */
static void answer_next(weir_promise *promise, void *user_data)
{
    struct connection_end *end = user_data;
    uintptr_t left = (uintptr_t)end->user_data;
    weir_promise *sent;

    if (left == 0 || (promise != NULL && weir_promise_result(promise) < 0) ||
        weir_promise_create(weir_channel_executor(end->channel), &sent) < 0)
        return;
    end->user_data = (void *)(left - 1);
    if (weir_promise_add_listener(sent, answer_next, end) == 0)
        weir_channel_write_and_flush(end->channel, text_msg("r"), sent);
    weir_promise_release(sent);
}

static void answer_one_by_one(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    answer_next(NULL, connection_end_of(ctx));
}

TEST_EACH_CONNECTION(tcp, sends_pieces_that_wait_for_each_other_after_a_read)
{
    connection_open(connection, NULL);
    connection->server.user_data = (void *)(uintptr_t)20;
    connection->server.on_read = answer_one_by_one;
    connection_send(&connection->client, "x");
    connection_await_received(&connection->client, 20);
}

static void answer_and_close(weir_ctx *ctx, weir_msg *msg)
{
    answer_in_pieces(ctx, msg);
    weir_close(ctx, NULL);
}

static void answer_and_abort(weir_ctx *ctx, weir_msg *msg)
{
    answer_in_pieces(ctx, msg);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

TEST_EACH_CONNECTION(tcp, sends_what_is_flushed_in_a_read_that_closes)
{
    connection_open(connection, NULL);
    connection->server.on_read = answer_and_close;
    connection_send(&connection->client, "x");
    connection_await(&connection->client, "inactive", 1);
    assert_int_equal(connection->client.received, 4);
}

TEST_EACH_CONNECTION(tcp, sends_what_is_flushed_in_a_read_that_aborts)
{
    connection_open(connection, NULL);
    connection->server.on_read = answer_and_abort;
    connection_send(&connection->client, "x");
    connection_await_received(&connection->client, 4);
}

#define MUCH (4 << 20)

/* More than the high mark, and than a socket takes, in pieces that are all flushed. */
static void answer_much(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    for (int sent = 0; sent < MUCH; sent += 4096)
        weir_write_and_flush(ctx, sized_msg(4096), NULL);
}

TEST_EACH_CONNECTION(tcp, sends_in_a_read_when_the_high_mark_is_exceeded)
{
    connection_open(connection,
                    &(const struct connection_options){
                        .server = WEIR_CHANNEL_OPTIONS(.low_mark = 8192, .high_mark = 16384)});
    connection->client.on_read = connection_discard;
    connection->server.on_read = answer_much;
    connection_send(&connection->client, "x");
    connection_await_received(&connection->client, MUCH);
}
