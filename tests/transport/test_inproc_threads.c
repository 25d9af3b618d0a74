/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels inside the process whose ends run on threads of their own.
 */
#include <weir/transport.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "os/random.h"
#include "os/thread.h"
#include "support/channel/test_channel.h"
#include "support/executor/call_counter.h"
#include "support/loop/backend.h"
#include "support/transport/loops.h"

/* ---- a listener on a group, and callers on another ---- */

struct stage {
    weir_group *near; /* the callers' */
    weir_group *far;  /* the listener's, and of what it accepts */
    weir_address address;
    weir_channel *listener;
    const weir_handler *called; /* what accepted channels get */
};

static struct stage *stage; /* of the test that runs */

/* For threads that may not assert. */
static void must(int err)
{
    if (err < 0)
        abort();
}

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel *channel = weir_channel_of(msg);

    (void)ctx;
    must(weir_pipeline_add_last(weir_channel_pipeline(channel), stage->called, NULL));
    weir_group_register(stage->far, channel, NULL);
    weir_msg_release(msg);
}

static const weir_handler acceptor = {.name = "acceptor", .read = on_accepted};

static void await(weir_promise *promise, int expected)
{
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), expected);
    weir_promise_release(promise);
}

static weir_promise *new_promise(void)
{
    weir_promise *promise;

    must(weir_promise_create(NULL, &promise));
    return promise;
}

static void open_listener(const weir_channel_options *children)
{
    weir_promise *done = new_promise();

    assert_int_equal(weir_inproc_create_server(NULL, children, &stage->listener), 0);
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(stage->listener), &acceptor, NULL), 0);
    weir_group_register(stage->far, stage->listener, NULL);
    weir_channel_bind(stage->listener, &stage->address, done);
    await(done, 0);
}

static void close_listener(void)
{
    weir_channel_close(stage->listener, NULL);
    assert_int_equal(weir_channel_await_closed(stage->listener, TEST_TIMEOUT_NS), 0);
    weir_channel_release(stage->listener);
}

static void open_stage(struct stage *new_stage, const weir_group_options *near,
                       const weir_group_options *far)
{
    stage = new_stage;
    stage->near = make_loops(near);
    stage->far = make_loops(far);
    assert_int_equal(weir_address_parse("inproc:stage", &stage->address), 0);
}

static void close_stage(void)
{
    end_group(stage->near);
    end_group(stage->far);
}

static weir_channel *make_caller(const weir_channel_options *options, const weir_handler *handler,
                                 const void *handler_options)
{
    weir_channel *channel;

    must(weir_inproc_create(options, &channel));
    must(weir_pipeline_add_last(weir_channel_pipeline(channel), handler, handler_options));
    weir_group_register(stage->near, channel, NULL);
    return channel;
}

/* ---- a stream, there and back ---- */

#define STREAM_BYTES (2 * 1024 * 1024)
#define MESSAGE_MAX 5000
#define LOW 8192
#define HIGH 16384

/* The bytes of a stream are numbered, so that each can be checked by itself. */
static uint8_t byte_at(uint64_t position)
{
    return (uint8_t)(position * 31 + (position >> 8));
}

struct stream {
    weir__random random;
    uint64_t sent;
    uint64_t received;
    bool is_wrong;
    int64_t max_pending;
};

static struct stream stream;

static weir_msg *next_piece(void)
{
    size_t length = 1 + (size_t)weir__random_below(&stream.random, MESSAGE_MAX);
    weir_buf *buf;

    if (length > STREAM_BYTES - stream.sent)
        length = STREAM_BYTES - stream.sent;
    must(weir_buf_create(length, length, &buf));
    for (size_t i = 0; i < length; i++)
        weir_buf_space(buf)[i] = byte_at(stream.sent + i);
    (void)weir_buf_advance(buf, length);
    stream.sent += length;
    return weir_buf_msg(buf);
}

static void send_pieces(weir_ctx *ctx)
{
    int64_t pending;

    while (stream.sent < STREAM_BYTES && weir_ctx_is_writable(ctx)) {
        weir_write(ctx, next_piece(), NULL);
        pending = weir_channel_pending_bytes(weir_ctx_channel(ctx));
        stream.max_pending = pending > stream.max_pending ? pending : stream.max_pending;
    }
    weir_flush(ctx);
}

static void check_piece(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    for (size_t i = 0; i < weir_buf_readable(buf); i++)
        stream.is_wrong |= weir_buf_bytes(buf)[i] != byte_at(stream.received + i);
    stream.received += weir_buf_readable(buf);
    weir_msg_release(msg);
    if (stream.received == STREAM_BYTES)
        weir_close(ctx, NULL);
}

static const weir_handler sender = {
    .name = "sender",
    .active = send_pieces,
    .writability = send_pieces,
    .read = check_piece,
};

/* Now and then it does not read for a while. */
static void on_pause_over(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

struct echo {
    weir_timer pause;
};

static void echo_read(weir_ctx *ctx, weir_msg *msg)
{
    struct echo *self = weir_ctx_state(ctx);

    weir_write(ctx, msg, NULL);
    if (weir__random_below(weir__random_thread(), 20) != 0)
        return;
    weir_ctx_set_auto_read(ctx, false);
    (void)weir_ctx_timer_start(ctx, &self->pause, weir_us(200), on_pause_over);
}

static void echo_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void echo_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx));
}

static const weir_handler echo = {
    .name = "echo",
    .state_size = sizeof(struct echo),
    .read = echo_read,
    .read_complete = echo_read_complete,
    .writability = echo_writability,
};

static void echo_stream(const weir_group_options *near, const weir_group_options *far)
{
    const weir_channel_options *options =
        WEIR_CHANNEL_OPTIONS(.low_mark = LOW, .high_mark = HIGH, .receive_buffer = 32768);
    struct stage here = {.called = &echo};
    weir_channel *caller;

    stream = (struct stream){0};
    weir__random_init(&stream.random, 1);
    open_stage(&here, near, far);
    open_listener(options);
    caller = make_caller(options, &sender, NULL);
    weir_channel_connect(caller, &here.address, NULL, NULL);
    assert_int_equal(weir_channel_await_closed(caller, TEST_TIMEOUT_NS), 0);
    assert_int_equal(stream.received, STREAM_BYTES);
    assert_false(stream.is_wrong);
    assert_true(stream.max_pending <= HIGH + MESSAGE_MAX + WEIR__OUTBOUND_COST);
    weir_channel_release(caller);
    close_listener();
    close_stage();
}

TEST(inproc_threads, a_stream_comes_back_from_another_executor)
{
    echo_stream(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1), WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
}

TEST(inproc_threads, a_stream_comes_back_from_an_event_loop)
{
    for (int i = 0; i < BACKEND_COUNT; i++) {
        if (backends[i].type == NULL)
            continue;
        echo_stream(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1),
                    WEIR_GROUP_OPTIONS(.io = backends[i].io, .threads = 1));
    }
}

/* ---- many that come and go ---- */

#define VISITS 10000
#define VISITORS_AT_A_TIME 100

/* What a visitor's number says: which end closes, when, and how. */
enum { CLOSES_WHEN_ACTIVE = 1, CLOSES_WHEN_READ = 2, ABORTS = 4 };

static struct {
    _Atomic unsigned active, inactive, messages;
    struct call_counter gone; /* both ends count */
} visits;

static void leave(weir_ctx *ctx, unsigned plan)
{
    if (plan & ABORTS)
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
    else
        weir_close(ctx, NULL);
}

static unsigned plan_of(weir_ctx *ctx)
{
    return *(unsigned *)weir_ctx_state(ctx);
}

static void visit_active(weir_ctx *ctx)
{
    weir_buf *buf;

    atomic_fetch_add(&visits.active, 1);
    must(weir_buf_create_from("hello", 5, &buf));
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    if (plan_of(ctx) & CLOSES_WHEN_ACTIVE)
        leave(ctx, plan_of(ctx));
}

static void visit_read(weir_ctx *ctx, weir_msg *msg)
{
    atomic_fetch_add(&visits.messages, 1);
    weir_msg_release(msg);
    if (plan_of(ctx) & CLOSES_WHEN_READ)
        leave(ctx, plan_of(ctx));
}

static void visit_inactive(weir_ctx *ctx)
{
    (void)ctx;
    atomic_fetch_add(&visits.inactive, 1);
    call_counter_add(&visits.gone);
}

/* An accepted channel chooses for itself; one of the two must close, so it does if it reads. */
static int visit_init(void *state, const void *options)
{
    *(unsigned *)state =
        options != NULL ? *(const unsigned *)options
                        : CLOSES_WHEN_READ | (unsigned)weir__random_below(weir__random_thread(), 8);
    return 0;
}

static const weir_handler visitor = {
    .name = "visitor",
    .state_size = sizeof(unsigned),
    .init = visit_init,
    .active = visit_active,
    .inactive = visit_inactive,
    .read = visit_read,
};

static void come_and_go(const weir_group_options *near, const weir_group_options *far)
{
    struct stage here = {.called = &visitor};
    weir_channel *caller;
    unsigned plan;

    visits.active = visits.inactive = visits.messages = 0;
    visits.gone = (struct call_counter){0};
    open_stage(&here, near, far);
    open_listener(NULL);
    for (unsigned i = 0; i < VISITS; i++) {
        if (i >= VISITORS_AT_A_TIME)
            assert_true(call_counter_await(&visits.gone, 2 * (i - VISITORS_AT_A_TIME)));
        plan = i % 8;
        caller = make_caller(NULL, &visitor, &plan);
        weir_channel_connect(caller, &here.address, NULL, NULL);
        weir_channel_release(caller);
    }
    assert_true(call_counter_await(&visits.gone, 2 * VISITS));
    assert_int_equal(visits.active, 2 * VISITS);
    assert_int_equal(visits.inactive, 2 * VISITS);
    close_listener();
    close_stage();
}

TEST(inproc_threads, ten_thousand_connections_are_made_and_closed_from_both_ends)
{
    come_and_go(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2), WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
}

TEST(inproc_threads, ten_thousand_connections_are_made_and_closed_on_event_loops)
{
    come_and_go(WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .threads = 1),
                WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .threads = 2));
}

/* ---- a listener that comes and goes ---- */

#define CALLS 3000

static void hear_call(weir_promise *promise, void *failures)
{
    int result = weir_promise_result(promise);

    if (result != 0 && result != -ECONNREFUSED)
        atomic_fetch_add((_Atomic unsigned *)failures, 1);
}

struct calls {
    _Atomic unsigned failures;
    _Atomic bool are_over;
};

/* Each is either accepted or refused; then it goes. */
static void call_often(void *arg)
{
    struct calls *calls = arg;
    unsigned plan = CLOSES_WHEN_ACTIVE;
    weir_channel *caller;
    weir_promise *done;

    for (unsigned i = 0; i < CALLS; i++) {
        done = new_promise();
        caller = make_caller(NULL, &visitor, &plan);
        IGNORE_RESULT(weir_promise_add_listener(done, hear_call, &calls->failures));
        weir_channel_connect(caller, &stage->address, NULL, done);
        if (weir_channel_await_closed(caller, TEST_TIMEOUT_NS) < 0)
            atomic_fetch_add(&calls->failures, 1);
        weir_promise_release(done);
        weir_channel_release(caller);
    }
    atomic_store(&calls->are_over, true);
}

TEST(inproc_threads, connects_are_accepted_or_refused_while_listeners_come_and_go)
{
    struct stage here = {.called = &visitor};
    struct calls calls = {.failures = 0};
    weir__thread thread;

    open_stage(&here, WEIR_GROUP_OPTIONS(PLAIN, .threads = 1),
               WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    assert_int_equal(weir__thread_start("caller", call_often, &calls, &thread), 0);
    while (!atomic_load(&calls.are_over)) {
        open_listener(NULL);
        close_listener();
    }
    weir__thread_join(&thread);
    assert_int_equal(calls.failures, 0);
    close_stage();
}

/* ---- an end that moves ---- */

#define NUMBERS 20000

static struct {
    unsigned sent, next;
    bool is_wrong;
    struct call_counter all;
} numbers;

static void send_numbers(weir_ctx *ctx)
{
    weir_buf *buf;

    while (numbers.sent < NUMBERS && weir_ctx_is_writable(ctx)) {
        must(weir_buf_create_from(&numbers.sent, sizeof(numbers.sent), &buf));
        numbers.sent++;
        weir_write(ctx, weir_buf_msg(buf), NULL);
    }
    weir_flush(ctx);
}

static const weir_handler counter_out = {
    .name = "counter", .active = send_numbers, .writability = send_numbers};

/* Several numbers may come in one buffer. */
static void check_numbers(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);
    unsigned number;

    (void)ctx;
    while (weir_buf_readable(buf) > 0) {
        numbers.is_wrong |= weir_buf_readable(buf) < sizeof(number);
        memcpy(&number, weir_buf_bytes(buf), sizeof(number));
        numbers.is_wrong |= number != numbers.next++;
        (void)weir_buf_skip(buf, sizeof(number));
    }
    weir_msg_release(msg);
    if (numbers.next == NUMBERS)
        call_counter_add(&numbers.all);
}

static const weir_handler counter_in = {.name = "counter", .read = check_numbers};

static void move(weir_channel *channel, weir_group *group)
{
    weir_promise *done = new_promise();

    weir_channel_deregister(channel, done);
    await(done, 0);
    done = new_promise();
    weir_group_register(group, channel, done);
    await(done, 0);
}

/* Moves an end until all has come: the one that reads, or the one that writes. */
static void move_while_it_runs(bool reader_moves)
{
    struct stage here = {.called = reader_moves ? &counter_out : &counter_in};
    weir_channel *caller;
    weir_promise *done = new_promise();

    memset(&numbers, 0, sizeof(numbers));
    open_stage(&here, WEIR_GROUP_OPTIONS(PLAIN, .threads = 3),
               WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    open_listener(
        WEIR_CHANNEL_OPTIONS(.low_mark = 1000, .high_mark = 2000, .receive_buffer = 5000));
    caller = make_caller(
        WEIR_CHANNEL_OPTIONS(.low_mark = 1000, .high_mark = 2000, .receive_buffer = 5000),
        reader_moves ? &counter_in : &counter_out, NULL);
    weir_channel_connect(caller, &here.address, NULL, done);
    await(done, 0);
    do
        move(caller, here.near);
    while (atomic_load(&numbers.all.calls) == 0);
    assert_false(numbers.is_wrong);
    weir_channel_close(caller, NULL);
    assert_int_equal(weir_channel_await_closed(caller, TEST_TIMEOUT_NS), 0);
    weir_channel_release(caller);
    close_listener();
    close_stage();
}

TEST(inproc_threads, nothing_is_lost_or_overtaken_when_an_end_moves)
{
    move_while_it_runs(true);
    move_while_it_runs(false);
}

/* ---- names ---- */

static void bind_often(void *arg)
{
    _Atomic unsigned *held = arg;
    weir_channel *channel;
    weir_promise *done;
    int result;

    for (int i = 0; i < 500; i++) {
        done = new_promise();
        must(weir_inproc_create_server(NULL, NULL, &channel));
        weir_group_register(stage->near, channel, NULL);
        weir_channel_bind(channel, &stage->address, done);
        result = weir_promise_sync(done, TEST_TIMEOUT_NS);
        if (result == 0 && atomic_fetch_add(&held[0], 1) != 0)
            atomic_fetch_add(&held[1], 1); /* somebody else has it too */
        if (result == 0)
            atomic_fetch_sub(&held[0], 1);
        else if (result != -EADDRINUSE)
            atomic_fetch_add(&held[1], 1);
        weir_channel_close(channel, NULL);
        (void)weir_channel_await_closed(channel, TEST_TIMEOUT_NS);
        weir_promise_release(done);
        weir_channel_release(channel);
    }
}

TEST(inproc_threads, a_name_has_one_holder_at_a_time)
{
    struct stage here = {0};
    _Atomic unsigned held[2] = {0, 0};
    weir__thread threads[3];

    open_stage(&here, WEIR_GROUP_OPTIONS(PLAIN, .threads = 2),
               WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__thread_start("binder", bind_often, held, &threads[i]), 0);
    for (int i = 0; i < 3; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(held[1], 0);
    close_stage();
}

/* ---- groups that end ---- */

/* Listener, accepted channel and caller are open when their groups end. */
static void end_with_channels(const weir_group_options *options)
{
    struct stage here = {.called = &echo};
    weir_promise *done = new_promise();
    weir_channel *caller;

    open_stage(&here, options, options);
    open_listener(NULL);
    caller = make_caller(NULL, &echo, NULL);
    weir_channel_connect(caller, &here.address, NULL, done);
    await(done, 0);
    close_stage();
    weir_channel_abort(caller, NULL);
    weir_channel_abort(here.listener, NULL);
    assert_int_equal(weir_channel_await_closed(caller, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_channel_await_closed(here.listener, TEST_TIMEOUT_NS), 0);
    weir_channel_release(caller);
    weir_channel_release(here.listener);
}

TEST(inproc_threads, nothing_is_left_when_groups_end_before_their_channels)
{
    end_with_channels(WEIR_GROUP_OPTIONS(.io = WEIR_IO_EPOLL, .threads = 1));
    end_with_channels(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
}
