/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels that are given to a loop which does not take them, while other threads use them: the
 * loop that ends them and the channel's own task must not meet. The race that this is about was
 * seen by a longer run of moves under the thread sanitizer; what can fail here is the end of the
 * channel.
 */
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "os/thread.h"
#include "support/executor/group.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/timeout.h"

#define ROUNDS 100

static _Atomic bool is_over;

static void use(void *channel)
{
    for (unsigned i = 0; !is_over; i++)
        weir_channel_set_auto_read(channel, i % 2 == 0);
}

typedef void operation(weir_channel *channel, weir_executor *loop, weir_promise *done);

static int result_of(operation *operate, weir_channel *channel, weir_executor *loop)
{
    weir_promise *done = NULL;
    int err;

    assert_int_equal(weir_promise_create(NULL, &done), 0);
    operate(channel, loop, done);
    err = weir_promise_sync(done, TEST_TIMEOUT_NS);
    weir_promise_release(done);
    return err;
}

static void deregister(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    (void)loop;
    weir_channel_deregister(channel, done);
}

static void give_while_used(weir_channel *channel, weir_executor *ended)
{
    weir__thread user;

    is_over = false;
    assert_int_equal(weir__thread_start("user", use, channel, &user), 0);
    assert_int_equal(result_of(weir_channel_register, channel, ended), WEIR_EREJECTED);
    is_over = true;
    weir__thread_join(&user);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
}

static void open_two(struct host *live, struct host *ended)
{
    host_open(live, BACKEND_EPOLL);
    host_open(ended, BACKEND_EPOLL);
    assert_int_equal(weir_executor_shutdown(ended->loop, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(ended->group, TEST_TIMEOUT_NS), 0);
}

TEST(move, to_a_loop_that_has_ended_closes_the_channel)
{
    struct host live, ended;
    weir_channel *channel = NULL;

    open_two(&live, &ended);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(weir_udp_create(NULL, &channel), 0);
        assert_int_equal(result_of(weir_channel_register, channel, live.loop), 0);
        assert_int_equal(result_of(deregister, channel, NULL), 0);
        give_while_used(channel, ended.loop);
    }
    host_close(&ended);
    host_close(&live);
}

static void echo_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static int result_of_group(weir_group *group, weir_channel *channel)
{
    weir_promise *done = NULL;
    int err;

    assert_int_equal(weir_promise_create(NULL, &done), 0);
    weir_group_register(group, channel, done);
    err = weir_promise_sync(done, TEST_TIMEOUT_NS);
    weir_promise_release(done);
    return err;
}

static void assert_echo(int descriptor)
{
    struct pollfd answer = {.fd = descriptor, .events = POLLIN};
    char byte = 0;

    assert_int_equal(write(descriptor, "x", 1), 1);
    assert_int_equal(poll(&answer, 1, (int)(TEST_TIMEOUT_NS / weir_ms(1))), 1);
    assert_int_equal(read(descriptor, &byte, 1), 1);
    assert_int_equal(byte, 'x');
}

TEST_EACH_HOST(move, from_a_group_that_has_ended_to_another)
{
    static const weir_handler echo = {.name = "echo", .read = echo_read};
    weir_channel *channel = NULL;
    struct host other;
    int pair[2];

    host_open(&other, (enum backend_id)(host->backend - backends));
    socket_pair(PAIR_TCP, pair);
    assert_int_equal(weir_adopt(pair[0], NULL, &channel), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL), 0);
    assert_int_equal(result_of_group(host->group, channel), 0);
    assert_echo(pair[1]);
    assert_int_equal(result_of(deregister, channel, NULL), 0);
    host_end(host);
    assert_int_equal(result_of_group(other.group, channel), 0);
    assert_echo(pair[1]);
    (void)close(pair[1]);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
    host_close(&other);
}
