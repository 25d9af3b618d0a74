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

static weir_promise *begin_connect(struct rig *rig, const char *name)
{
    weir_address address = somewhere();
    weir_promise *promise = rig_promise(rig, name);

    weir_channel_connect(rig->channel, &address, NULL, promise);
    return promise;
}

/* D 75 */
TEST(connect, tells_its_promise_before_the_handlers)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, idle, NULL);
    assert_false(weir_channel_is_active(rig.channel));
    done = begin_connect(&rig, "done");
    assert_diary(&rig.diary, "a.connect CONNECT");
    weir__channel_connected(rig.channel, 0);
    assert_diary(&rig.diary, "done=ok a.active a.request_read READ");
    assert_true(weir_channel_is_active(rig.channel));
    weir_promise_release(done);
    rig_close(&rig);
}

static void close_channel(weir_promise *promise, void *channel)
{
    (void)promise;
    weir_channel_abort(channel, NULL);
}

/* D 84 */
TEST(connect, is_active_before_it_is_inactive_also_if_a_listener_closes)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, idle, NULL);
    done = begin_connect(&rig, "done");
    assert_int_equal(weir_promise_add_listener(done, close_channel, rig.channel), 0);
    diary_clear(&rig.diary);
    weir__channel_connected(rig.channel, 0);
    rig_run(&rig);
    assert_diary(&rig.diary, "done=ok CLOSE a.active a.request_read a.inactive a.unregistered "
                             "a.removed a.deinit");
    weir_promise_release(done);
    rig_close(&rig);
}

/* D 85 */
TEST(connect, is_refused_while_it_is_under_way_and_afterwards)
{
    struct rig rig;
    weir_promise *first, *second, *third;

    rig_open_started(&rig, idle, NULL);
    first = begin_connect(&rig, "first");
    second = begin_connect(&rig, "second");
    assert_int_equal(weir_promise_result(second), -EALREADY);
    weir__channel_connected(rig.channel, 0);
    third = begin_connect(&rig, "third");
    assert_int_equal(weir_promise_result(third), -EISCONN);
    assert_int_equal(weir_promise_result(first), 0);
    weir_promise_release(first);
    weir_promise_release(second);
    weir_promise_release(third);
    rig_close(&rig);
}

/* D 82 */
TEST(connect, that_fails_closes_the_channel_without_having_been_active)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, idle, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    done = begin_connect(&rig, "done");
    weir__channel_connected(rig.channel, -ECONNREFUSED);
    rig_run(&rig);
    assert_diary(&rig.diary, "a.connect CONNECT done=ECONNREFUSED CLOSE a.unregistered a.removed "
                             "a.deinit");
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(connect, that_fails_at_once_closes_the_channel)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, &(struct wire_options){.idle = true, .connect_err = -ENETUNREACH}, NULL);
    done = begin_connect(&rig, "done");
    assert_diary(&rig.diary, "a.connect CONNECT done=ENETUNREACH CLOSE");
    weir_promise_release(done);
    rig_close(&rig);
}

/* D 83 */
TEST(connect, times_out)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, idle, WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_seconds(2)));
    done = begin_connect(&rig, "done");
    (void)stepper_advance(&rig.stepper, weir_seconds(2) - 1);
    assert_diary(&rig.diary, "a.connect CONNECT");
    (void)stepper_advance(&rig.stepper, 1);
    assert_diary(&rig.diary, "done=ETIMEDOUT CLOSE a.unregistered a.removed a.deinit");
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(connect, waits_for_ever_if_the_timeout_is_off)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, idle, WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = WEIR_OFF));
    done = begin_connect(&rig, "done");
    (void)stepper_advance(&rig.stepper, weir_seconds(1000000));
    assert_false(weir_promise_is_done(done));
    weir__channel_connected(rig.channel, 0);
    assert_int_equal(weir_promise_result(done), 0);
    weir_promise_release(done);
    rig_close(&rig);
}

/* D 83 */
TEST(connect, that_is_cancelled_closes_the_channel)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, idle, NULL);
    done = begin_connect(&rig, "done");
    assert_int_equal(weir_promise_cancel(done), 0);
    rig_run(&rig);
    assert_diary(&rig.diary, "a.connect CONNECT done=WEIR_ECANCELED CLOSE a.unregistered "
                             "a.removed a.deinit");
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(connect, that_is_cancelled_too_late_is_active_first)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, idle, NULL);
    done = begin_connect(&rig, "done");
    assert_int_equal(weir_promise_cancel(done), 0);
    diary_clear(&rig.diary);
    weir__channel_connected(rig.channel, 0);
    rig_run(&rig);
    assert_diary(&rig.diary, "a.active a.request_read READ CLOSE a.inactive a.unregistered "
                             "a.removed a.deinit");
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(connect, is_given_up_by_a_close)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, idle, NULL);
    done = begin_connect(&rig, "done");
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.connect CONNECT a.close done=WEIR_ECLOSED CLOSE");
    weir__channel_connected(rig.channel, 0); /* too late */
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "a.active"), 0);
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(connect, without_a_promise_fires_its_failure)
{
    struct rig rig;
    weir_address address = somewhere();

    rig_open_started(&rig, idle, NULL);
    weir_channel_connect(rig.channel, &address, NULL, NULL);
    weir__channel_connected(rig.channel, -ETIMEDOUT);
    assert_diary(&rig.diary, "a.connect CONNECT a.error(ETIMEDOUT) a.close CLOSE");
    rig_close(&rig);
}

TEST(connect, needs_a_loop_and_an_address)
{
    struct rig rig;
    weir_promise *done;

    rig_open_with(&rig, idle, NULL);
    done = begin_connect(&rig, "done");
    assert_int_equal(weir_promise_result(done), -ENOTCONN);
    weir_promise_release(done);
    rig_start(&rig);
    done = rig_promise(&rig, "done");
    weir_channel_connect(rig.channel, NULL, NULL, done);
    assert_int_equal(weir_promise_result(done), -EINVAL);
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(connect, survives_want_of_memory)
{
    struct rig rig;
    weir_promise *done;

    for (unsigned n = 1;; n++) {
        rig_open_started(&rig, idle, NULL);
        done = rig_promise(&rig, "done");
        test_memory_fail_at(n);
        weir_channel_connect(rig.channel, &(const weir_address){.length = 1}, NULL, done);
        if (!test_memory_failed())
            break;
        test_memory_fail_at(0);
        assert_int_equal(weir_promise_result(done), -ENOMEM);
        weir_promise_release(done);
        rig_close(&rig);
    }
    test_memory_fail_at(0);
    weir_promise_release(done);
    rig_close(&rig);
}

/* ---- binding ---- */

TEST(bind, tells_its_promise_at_once_and_the_handlers_later)
{
    struct rig rig;
    weir_address address = somewhere();
    weir_promise *first, *second;

    rig_open_started(&rig, &(struct wire_options){.accepts = true}, NULL);
    first = rig_promise(&rig, "first");
    second = rig_promise(&rig, "second");
    weir_channel_bind(rig.channel, &address, first);
    assert_diary(&rig.diary, "a.bind BIND first=ok");
    assert_true(weir_channel_is_active(rig.channel));
    rig_run(&rig);
    assert_diary(&rig.diary, "a.active a.request_read READ");
    weir_channel_bind(rig.channel, &address, second);
    assert_int_equal(weir_promise_result(second), -EALREADY);
    weir_promise_release(first);
    weir_promise_release(second);
    rig_close(&rig);
}

TEST(bind, that_fails_closes_the_channel)
{
    struct rig rig;
    weir_address address = somewhere();
    weir_promise *done;

    rig_open_started(&rig, &(struct wire_options){.accepts = true, .bind_err = -EADDRINUSE}, NULL);
    done = rig_promise(&rig, "done");
    weir_channel_bind(rig.channel, &address, done);
    assert_diary(&rig.diary, "a.bind BIND done=EADDRINUSE CLOSE");
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(bind, does_not_make_a_client_active)
{
    struct rig rig;
    weir_address address = somewhere();

    rig_open_started(&rig, idle, NULL);
    weir_channel_bind(rig.channel, &address, NULL);
    rig_run(&rig);
    assert_diary(&rig.diary, "a.bind BIND");
    assert_false(weir_channel_is_active(rig.channel));
    rig_close(&rig);
}

static void bind_here(weir_ctx *ctx)
{
    weir_address address;

    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    weir_bind(ctx, &address, NULL);
}

TEST(bind, by_who_hears_of_the_registration_is_told_once)
{
    static weir_handler binder;
    struct rig rig;

    binder = spy;
    binder.registered = bind_here;
    rig_open_with(&rig, &(struct wire_options){.accepts = true, .idle = true}, NULL);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &binder, SPY(&rig.diary, "b")), 0);
    rig_start(&rig);
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "b.active"), 1);
    weir_channel_abort(rig.channel, NULL);
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "b.inactive"), 1);
    rig_close(&rig);
}

/* The event of a disconnect comes in a task: also if it is connected again before that. */
TEST(connect, after_a_disconnect_is_told_in_order)
{
    struct rig rig;
    weir_address address;

    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    rig_open_started(&rig, &(struct wire_options){.can_disconnect = true}, NULL);
    weir_channel_disconnect(rig.channel, NULL);
    weir_channel_connect(rig.channel, &address, NULL, NULL);
    weir__channel_connected(rig.channel, 0);
    rig_run(&rig);
    assert_true(weir_channel_is_active(rig.channel));
    assert_diary(&rig.diary, "a.disconnect DISCONNECT STOP a.connect CONNECT a.inactive a.active "
                             "a.request_read READ");
    rig_close(&rig);
}
