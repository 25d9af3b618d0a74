/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binding, connecting, and giving up.
 */
#include <errno.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

static const struct wire_options *idle = &(const struct wire_options){.idle = true};

static weir_address somewhere(void)
{
    weir_address address;

    assert_int_equal(weir_address_parse("127.0.0.1:8007", &address), 0);
    return address;
}

static weir_promise *begin_connect(struct test_channel *tc, const char *name)
{
    weir_address address = somewhere();
    weir_promise *promise = tc_promise(tc, name);

    weir_channel_connect(tc->channel, &address, NULL, promise);
    return promise;
}

TEST(connect, completes_its_promise_before_active)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, idle, NULL);
    assert_false(weir_channel_is_active(tc.channel));
    done = begin_connect(&tc, "done");
    assert_events(&tc.events, "a.connect CONNECT");
    weir__channel_connected(tc.channel, 0);
    assert_events(&tc.events, "done=ok a.active a.request_read READ");
    assert_true(weir_channel_is_active(tc.channel));
    weir_promise_release(done);
    tc_close(&tc);
}

static void close_channel(weir_promise *promise, void *channel)
{
    (void)promise;
    weir_channel_abort(channel, NULL);
}

TEST(connect, is_active_before_it_is_inactive_also_if_a_listener_closes)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, idle, NULL);
    done = begin_connect(&tc, "done");
    assert_int_equal(weir_promise_add_listener(done, close_channel, tc.channel), 0);
    event_log_clear(&tc.events);
    weir__channel_connected(tc.channel, 0);
    tc_run(&tc);
    assert_events(&tc.events, "done=ok CLOSE a.active a.request_read a.inactive a.unregistered "
                              "a.removed a.deinit");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, is_refused_while_it_is_under_way_and_afterwards)
{
    struct test_channel tc;
    weir_promise *first, *second, *third;

    tc_open_started(&tc, idle, NULL);
    first = begin_connect(&tc, "first");
    second = begin_connect(&tc, "second");
    assert_int_equal(weir_promise_result(second), -EALREADY);
    weir__channel_connected(tc.channel, 0);
    third = begin_connect(&tc, "third");
    assert_int_equal(weir_promise_result(third), -EISCONN);
    assert_int_equal(weir_promise_result(first), 0);
    weir_promise_release(first);
    weir_promise_release(second);
    weir_promise_release(third);
    tc_close(&tc);
}

TEST(connect, that_fails_closes_the_channel_without_having_been_active)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, idle, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    done = begin_connect(&tc, "done");
    weir__channel_connected(tc.channel, -ECONNREFUSED);
    tc_run(&tc);
    assert_events(&tc.events, "a.connect CONNECT done=ECONNREFUSED CLOSE a.unregistered a.removed "
                              "a.deinit");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, that_fails_at_once_closes_the_channel)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, &(struct wire_options){.idle = true, .connect_err = -ENETUNREACH}, NULL);
    done = begin_connect(&tc, "done");
    assert_events(&tc.events, "a.connect CONNECT done=ENETUNREACH CLOSE");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, times_out)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, idle, WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_seconds(2)));
    done = begin_connect(&tc, "done");
    (void)stepper_advance(&tc.stepper, weir_seconds(2) - 1);
    assert_events(&tc.events, "a.connect CONNECT");
    (void)stepper_advance(&tc.stepper, 1);
    assert_events(&tc.events, "done=ETIMEDOUT CLOSE a.unregistered a.removed a.deinit");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, waits_for_ever_if_the_timeout_is_off)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, idle, WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = WEIR_OFF));
    done = begin_connect(&tc, "done");
    (void)stepper_advance(&tc.stepper, weir_seconds(1000000));
    assert_false(weir_promise_is_done(done));
    weir__channel_connected(tc.channel, 0);
    assert_int_equal(weir_promise_result(done), 0);
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, that_is_cancelled_closes_the_channel)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, idle, NULL);
    done = begin_connect(&tc, "done");
    assert_int_equal(weir_promise_cancel(done), 0);
    tc_run(&tc);
    assert_events(&tc.events, "a.connect CONNECT done=WEIR_ECANCELED CLOSE a.unregistered "
                              "a.removed a.deinit");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, that_is_cancelled_too_late_is_active_first)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, idle, NULL);
    done = begin_connect(&tc, "done");
    assert_int_equal(weir_promise_cancel(done), 0);
    event_log_clear(&tc.events);
    weir__channel_connected(tc.channel, 0);
    tc_run(&tc);
    assert_events(&tc.events, "a.active a.request_read READ CLOSE a.inactive a.unregistered "
                              "a.removed a.deinit");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, is_given_up_by_a_close)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, idle, NULL);
    done = begin_connect(&tc, "done");
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.connect CONNECT a.close done=WEIR_ECLOSED CLOSE");
    weir__channel_connected(tc.channel, 0); /* too late */
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "a.active"), 0);
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, without_a_promise_fires_its_failure)
{
    struct test_channel tc;
    weir_address address = somewhere();

    tc_open_started(&tc, idle, NULL);
    weir_channel_connect(tc.channel, &address, NULL, NULL);
    weir__channel_connected(tc.channel, -ETIMEDOUT);
    assert_events(&tc.events, "a.connect CONNECT a.error(ETIMEDOUT) a.close CLOSE");
    tc_close(&tc);
}

TEST(connect, needs_a_loop_and_an_address)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_with(&tc, idle, NULL);
    done = begin_connect(&tc, "done");
    assert_int_equal(weir_promise_result(done), -ENOTCONN);
    weir_promise_release(done);
    tc_start(&tc);
    done = tc_promise(&tc, "done");
    weir_channel_connect(tc.channel, NULL, NULL, done);
    assert_int_equal(weir_promise_result(done), -EINVAL);
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(connect, survives_want_of_memory)
{
    struct test_channel tc;
    weir_promise *done;

    for (unsigned n = 1;; n++) {
        tc_open_started(&tc, idle, NULL);
        done = tc_promise(&tc, "done");
        test_memory_fail_at(n);
        weir_channel_connect(tc.channel, &(const weir_address){.length = 1}, NULL, done);
        if (!test_memory_failed())
            break;
        test_memory_fail_at(0);
        assert_int_equal(weir_promise_result(done), -ENOMEM);
        weir_promise_release(done);
        tc_close(&tc);
    }
    test_memory_fail_at(0);
    weir_promise_release(done);
    tc_close(&tc);
}

/* ---- binding ---- */

TEST(bind, completes_its_promise_at_once_and_fires_active_later)
{
    struct test_channel tc;
    weir_address address = somewhere();
    weir_promise *first, *second;

    tc_open_started(&tc, &(struct wire_options){.accepts = true}, NULL);
    first = tc_promise(&tc, "first");
    second = tc_promise(&tc, "second");
    weir_channel_bind(tc.channel, &address, first);
    assert_events(&tc.events, "a.bind BIND first=ok");
    assert_true(weir_channel_is_active(tc.channel));
    tc_run(&tc);
    assert_events(&tc.events, "a.active a.request_read READ");
    weir_channel_bind(tc.channel, &address, second);
    assert_int_equal(weir_promise_result(second), -EALREADY);
    weir_promise_release(first);
    weir_promise_release(second);
    tc_close(&tc);
}

TEST(bind, that_fails_closes_the_channel)
{
    struct test_channel tc;
    weir_address address = somewhere();
    weir_promise *done;

    tc_open_started(&tc, &(struct wire_options){.accepts = true, .bind_err = -EADDRINUSE}, NULL);
    done = tc_promise(&tc, "done");
    weir_channel_bind(tc.channel, &address, done);
    assert_events(&tc.events, "a.bind BIND done=EADDRINUSE CLOSE");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(bind, does_not_make_a_client_active)
{
    struct test_channel tc;
    weir_address address = somewhere();

    tc_open_started(&tc, idle, NULL);
    weir_channel_bind(tc.channel, &address, NULL);
    tc_run(&tc);
    assert_events(&tc.events, "a.bind BIND");
    assert_false(weir_channel_is_active(tc.channel));
    tc_close(&tc);
}

static void bind_here(weir_ctx *ctx)
{
    weir_address address;

    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    weir_bind(ctx, &address, NULL);
}

TEST(bind, in_registered_fires_active_once)
{
    static weir_handler binder;
    struct test_channel tc;

    binder = event_recorder;
    binder.registered = bind_here;
    tc_open_with(&tc, &(struct wire_options){.accepts = true, .idle = true}, NULL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &binder, EVENT_RECORDER(&tc.events, "b")),
                     0);
    tc_start(&tc);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "b.active"), 1);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "b.inactive"), 1);
    tc_close(&tc);
}

/* The event of a disconnect comes in a task: also if it is connected again before that. */
TEST(connect, after_a_disconnect_fires_in_order)
{
    struct test_channel tc;
    weir_address address;

    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    tc_open_started(&tc, &(struct wire_options){.can_disconnect = true}, NULL);
    weir_channel_disconnect(tc.channel, NULL);
    weir_channel_connect(tc.channel, &address, NULL, NULL);
    weir__channel_connected(tc.channel, 0);
    tc_run(&tc);
    assert_true(weir_channel_is_active(tc.channel));
    assert_events(&tc.events, "a.disconnect DISCONNECT STOP a.connect CONNECT a.inactive a.active "
                              "a.request_read READ");
    tc_close(&tc);
}

static void close_here(weir_ctx *ctx)
{
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

/* A handler closes the channel when it sees the disconnect: there is nothing to connect. */
TEST(connect, after_a_disconnect_may_be_given_up_in_inactive)
{
    static const weir_handler closer = {.name = "closer", .inactive = close_here};
    struct test_channel tc;
    weir_promise *done;
    weir_address address;

    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    tc_open_started(&tc, &(struct wire_options){.can_disconnect = true}, NULL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &closer, NULL), 0);
    done = tc_promise(&tc, "done");
    weir_channel_disconnect(tc.channel, NULL);
    weir_channel_connect(tc.channel, &address, NULL, done);
    weir__channel_connected(tc.channel, 0);
    tc_run(&tc);
    assert_int_equal(weir_promise_result(done), WEIR_ECLOSED);
    assert_false(weir_channel_is_active(tc.channel));
    assert_int_equal(event_log_count(&tc.events, "a.active"), 0);
    weir_promise_release(done);
    tc_close(&tc);
}
