/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels that are given to a loop which does not take them, while other threads use them: the
 * loop that ends them and the channel's own task must not meet. The race that this is about was
 * seen by a longer run of moves under the thread sanitizer; what can fail here is the end of the
 * channel.
 */
#include <stdatomic.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/udp.h>

#include "base/thread.h"
#include "support/executor/group.h"
#include "support/loop/host.h"

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
    err = weir_promise_sync(done, PATIENCE_NS);
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
    assert_int_equal(weir__thread_start(&user, "user", use, channel), 0);
    assert_int_equal(result_of(weir_channel_register, channel, ended), WEIR_EREJECTED);
    is_over = true;
    weir__thread_join(&user);
    assert_int_equal(weir_channel_await_closed(channel, PATIENCE_NS), 0);
    weir_channel_release(channel);
}

static void open_two(struct host *live, struct host *ended)
{
    host_open(live, BACKEND_EPOLL);
    host_open(ended, BACKEND_EPOLL);
    assert_int_equal(weir_executor_shutdown(ended->loop, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(ended->group, PATIENCE_NS), 0);
}

TEST(move, to_a_loop_that_has_ended_ends_the_channel_whoever_uses_it)
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
