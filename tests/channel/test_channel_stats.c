/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics of channels: each counter by the event that increments it, and no other with it.
 */
#include "channel/channel_stats.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/metric.h>

#include "support/channel/stats.h"
#include "support/channel/test_channel.h"

static const char *const rigs = "other";

static weir_address somewhere(void)
{
    weir_address address;

    assert_int_equal(weir_address_parse("127.0.0.1:8007", &address), 0);
    return address;
}

static void connect_somewhere(struct test_channel *tc)
{
    weir_address address = somewhere();

    weir_channel_connect(tc->channel, &address, NULL, NULL);
    tc_run(tc);
}

/* ---- how many there are ---- */

TEST(channel_stats, follow_a_channel_from_its_creation_to_its_end)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;

    tc_open(&tc);
    assert_stats(&stats, .open = 1, .created = 1);
    tc_start(&tc);
    assert_stats(&stats, .open = 1, .created = 1, .active = 1);
    weir_channel_abort(tc.channel, NULL);
    assert_stats(&stats, .created = 1, .closed = 1);
    tc_close(&tc);
    assert_stats(&stats, .created = 1, .closed = 1);
}

TEST(channel_stats, count_a_channel_that_was_never_registered)
{
    struct stats stats = stats_from_now(rigs);
    struct event_log events;
    weir_channel *channel;

    event_log_open(&events);
    assert_int_equal(wire_create(&events, NULL, NULL, NULL, &channel), 0);
    assert_stats(&stats, .open = 1, .created = 1);
    weir_channel_release(channel);
    assert_stats(&stats, .created = 1, .closed = 1);
    event_log_close(&events);
}

TEST(channel_stats, count_one_as_open_until_its_transport_has_let_go)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.slow_close = true}, NULL);
    weir_channel_abort(tc.channel, NULL);
    assert_stats(&stats, .open = 1, .active = 1, .created = 1);
    tc_finish_detach(&tc);
    assert_stats(&stats, .created = 1, .closed = 1);
    tc_close(&tc);
}

TEST(channel_stats, count_listeners_apart)
{
    struct stats stats = stats_from_now(rigs);
    weir_address address = somewhere();
    weir_channel *child;
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.accepts = true}, NULL);
    assert_stats(&stats, .listeners = 1);
    weir_channel_bind(tc.channel, &address, NULL);
    tc_run(&tc);
    assert_stats(&stats, .listeners = 1, .listeners_active = 1);
    assert_int_equal(wire_create(&tc.events, NULL, NULL, tc.channel, &child), 0);
    assert_stats(&stats, .listeners = 1, .listeners_active = 1, .open = 1, .created = 1,
                 .accepted = 1);
    weir_channel_release(child);
    tc_close(&tc);
    assert_stats(&stats, .created = 1, .closed = 1, .accepted = 1);
}

TEST(channel_stats, count_a_disconnect_and_the_next_connection)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.idle = true, .can_disconnect = true}, NULL);
    connect_somewhere(&tc);
    weir__channel_connected(tc.channel, 0);
    assert_stats(&stats, .open = 1, .created = 1, .active = 1, .connected = 1);
    weir_channel_disconnect(tc.channel, NULL);
    tc_run(&tc);
    assert_stats(&stats, .open = 1, .created = 1, .connected = 1);
    connect_somewhere(&tc);
    weir__channel_connected(tc.channel, 0);
    assert_stats(&stats, .open = 1, .created = 1, .active = 1, .connected = 2);
    tc_close(&tc);
}

/* ---- what has been sent ---- */

static weir_channel_stats active_rig(void)
{
    return (weir_channel_stats){.open = 1, .created = 1, .active = 1};
}

#define assert_active_rig(stats, figure, value)             \
    do {                                                    \
        weir_channel_stats expected_ = active_rig();        \
        expected_.figure = value;                           \
        stats_check(stats, &expected_, __FILE__, __LINE__); \
    } while (0)

TEST(channel_stats, count_bytes_when_the_wire_has_them_and_messages_when_it_has_all)
{
    struct stats stats = stats_from_now(rigs);
    weir_channel_stats expected = active_rig();
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 4;
    tc_write(&tc, "abc", NULL);
    tc_write(&tc, "defgh", NULL);
    tc_write(&tc, "", NULL);
    assert_stats(&stats, .open = 1, .created = 1, .active = 1);
    weir_channel_flush(tc.channel);
    tc_run(&tc);
    expected.messages_sent = 1;
    expected.bytes_sent = 4;
    stats_check(&stats, &expected, __FILE__, __LINE__);
    tc_make_room(&tc, 4);
    expected.messages_sent = 3;
    expected.bytes_sent = 8;
    stats_check(&stats, &expected, __FILE__, __LINE__);
    tc_close(&tc);
}

struct witness {
    struct stats stats;
    uint64_t messages;
    uint64_t bytes;
};

static void look(weir_promise *promise, void *arg)
{
    struct witness *witness = arg;
    weir_channel_stats since = stats_since(&witness->stats);

    (void)promise;
    witness->messages = since.messages_sent;
    witness->bytes = since.bytes_sent;
}

TEST(channel_stats, have_counted_a_write_when_its_promise_completes)
{
    struct witness witness = {.stats = stats_from_now(rigs)};
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, NULL, NULL);
    done = tc_promise(&tc, "done");
    assert_int_equal(weir_promise_add_listener(done, look, &witness), 0);
    weir_channel_write_and_flush(tc.channel, text_msg("12345"), done);
    assert_int_equal(witness.messages, 1);
    assert_int_equal(witness.bytes, 5);
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(channel_stats, count_writes_that_fail_and_not_those_that_are_cancelled)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;
    weir_promise *cancelled;

    tc_open_started(&tc, NULL, NULL);
    cancelled = tc_promise(&tc, "cancelled");
    weir_channel_write(tc.channel, text_msg("never"), cancelled);
    assert_int_equal(weir_promise_cancel(cancelled), 0);
    weir_channel_flush(tc.channel);
    tc_run(&tc);
    assert_active_rig(&stats, writes_failed, 0);
    tc.wire->options.admit_err = -EPROTOTYPE; /* one that it cannot send */
    tc_write(&tc, "x", "odd");
    tc.wire->options.admit_err = 0;
    tc_write(&tc, "y", NULL); /* and one that the end comes before */
    assert_active_rig(&stats, writes_failed, 1);
    weir_channel_abort(tc.channel, NULL);
    assert_stats(&stats, .created = 1, .closed = 1, .writes_failed = 2);
    tc_write(&tc, "z", "late");
    assert_stats(&stats, .created = 1, .closed = 1, .writes_failed = 3);
    weir_promise_release(cancelled);
    tc_close(&tc);
}

TEST(channel_stats, count_how_often_a_channel_becomes_unwritable)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.low_mark = 200, .high_mark = 300));
    tc.wire->room = 0;
    weir_channel_write(tc.channel, sized_msg(250), NULL);
    assert_active_rig(&stats, unwritable, 1);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 1, false), 0); /* it is already */
    assert_active_rig(&stats, unwritable, 1);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 1, true), 0);
    weir_channel_abort(tc.channel, NULL);
    assert_stats(&stats, .created = 1, .closed = 1, .writes_failed = 1, .unwritable = 1);
    tc_close(&tc);
}

/* ---- what went wrong ---- */

#define ERRORS(...) .errors = {__VA_ARGS__}

TEST(channel_stats, count_errors_by_their_cause)
{
    static const struct {
        int err;
        weir_channel_stats expected;
    } rows[] = {
        {-ECONNREFUSED, {ERRORS(.refused = 1)}},
        {-ECONNRESET, {ERRORS(.reset = 1)}},
        {-ECONNABORTED, {ERRORS(.reset = 1)}},
        {-EPIPE, {ERRORS(.pipe = 1)}},
        {-ETIMEDOUT, {ERRORS(.timed_out = 1)}},
        {-ENETUNREACH, {ERRORS(.unreachable = 1)}},
        {-EHOSTUNREACH, {ERRORS(.unreachable = 1)}},
        {-ENETDOWN, {ERRORS(.unreachable = 1)}},
        {-EHOSTDOWN, {ERRORS(.unreachable = 1)}},
        {-EADDRINUSE, {ERRORS(.address = 1)}},
        {-EADDRNOTAVAIL, {ERRORS(.address = 1)}},
        {-EMFILE, {ERRORS(.descriptors = 1)}},
        {-ENFILE, {ERRORS(.descriptors = 1)}},
        {-ENOMEM, {ERRORS(.memory = 1)}},
        {-ENOBUFS, {ERRORS(.memory = 1)}},
        {-EMSGSIZE, {ERRORS(.too_long = 1)}},
        {WEIR_EREJECTED, {ERRORS(.rejected = 1)}},
        {-EIO, {ERRORS(.other = 1)}},
        {WEIR_EREBUILT, {ERRORS(.other = 1)}},
        {WEIR_ECLOSED, {0}},
        {WEIR_ECANCELED, {0}},
    };
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stats stats = stats_from_now(rigs);

        weir__channel_nonfatal_error(tc.channel, rows[i].err, NULL);
        stats_check(&stats, &rows[i].expected, __FILE__, __LINE__);
    }
    tc_close(&tc);
}

TEST(channel_stats, count_an_error_of_a_listener_as_an_accept_that_failed)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.accepts = true},
                    WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    weir__channel_nonfatal_error(tc.channel, -EMFILE, NULL);
    assert_stats(&stats, .listeners = 1, .accepts_failed = 1, ERRORS(.descriptors = 1));
    tc_close(&tc);
}

TEST(channel_stats, count_a_connection_that_fails_at_once_later_or_by_its_time)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.idle = true, .connect_err = -ENETUNREACH},
                    NULL);
    connect_somewhere(&tc);
    tc_close(&tc);
    assert_stats(&stats, .created = 1, .closed = 1, .connects_failed = 1, ERRORS(.unreachable = 1));

    tc_open_started(&tc, &(const struct wire_options){.idle = true}, NULL);
    connect_somewhere(&tc);
    weir__channel_connected(tc.channel, -ECONNREFUSED);
    tc_close(&tc);
    assert_stats(&stats, .created = 2, .closed = 2, .connects_failed = 2,
                 ERRORS(.unreachable = 1, .refused = 1));

    tc_open_started(&tc, &(const struct wire_options){.idle = true},
                    WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_ms(5)));
    connect_somewhere(&tc);
    stepper_advance(&tc.stepper, weir_ms(5));
    tc_run(&tc);
    tc_close(&tc);
    assert_stats(&stats, .created = 3, .closed = 3, .connects_failed = 3,
                 ERRORS(.unreachable = 1, .refused = 1, .timed_out = 1));
}

TEST(channel_stats, count_a_connection_that_is_given_up_but_not_as_an_error)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.idle = true}, NULL);
    connect_somewhere(&tc);
    tc_close(&tc);
    assert_stats(&stats, .created = 1, .closed = 1, .connects_failed = 1);
}

TEST(channel_stats, count_what_ends_a_channel)
{
    struct stats stats = stats_from_now(rigs);
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir__channel_input_ended(tc.channel, -ECONNRESET);
    tc_close(&tc);
    assert_stats(&stats, .created = 1, .closed = 1, ERRORS(.reset = 1));

    tc_open_started(&tc, NULL, NULL);
    tc.wire->flush_err = -EPIPE;
    weir_channel_write_and_flush(tc.channel, text_msg("x"), NULL);
    tc_close(&tc);
    assert_stats(&stats, .created = 2, .closed = 2, .writes_failed = 1,
                 ERRORS(.reset = 1, .pipe = 1));
}

TEST(channel_stats, count_a_bind_and_a_registration_that_fail)
{
    struct stats stats = stats_from_now(rigs);
    weir_address address = somewhere();
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.accepts = true, .bind_err = -EADDRINUSE},
                    NULL);
    weir_channel_bind(tc.channel, &address, NULL);
    tc_close(&tc);
    assert_stats(&stats, ERRORS(.address = 1));

    tc_open_with(&tc, &(const struct wire_options){.attach_err = -ENOMEM}, NULL);
    tc_start(&tc);
    tc_close(&tc);
    assert_stats(&stats, .created = 1, .closed = 1, ERRORS(.address = 1, .memory = 1));
}

TEST(channel_stats, count_a_registration_that_comes_too_late)
{
    struct stats stats = stats_from_now(rigs);
    struct stepper ended = stepper_open();
    struct test_channel tc;

    tc_open(&tc);
    assert_int_equal(weir_executor_shutdown(ended.executor, 0, 0), 0);
    (void)stepper_run(&ended);
    weir_channel_register(tc.channel, ended.executor, NULL);
    assert_stats(&stats, .created = 1, .closed = 1, ERRORS(.rejected = 1));
    tc_close(&tc);
    stepper_close(&ended);
}

/* ---- by name ---- */

static int64_t metric(const char *name)
{
    weir_metric_value value;

    assert_int_equal(weir_metric_read(name, &value), 0);
    return value.value;
}

static void count_ours(const weir_metric_value *value, void *count)
{
    if (strncmp(value->name, "channels.", 9) == 0)
        ++*(unsigned *)count;
}

TEST(channel_stats, are_in_the_metric_registry)
{
    int64_t open = metric("channels.open{transport=\"other\"}");
    int64_t created = metric("channels.created{transport=\"other\"}");
    int64_t refused = metric("channels.errors{transport=\"other\",cause=\"refused\"}");
    int64_t tcp = metric("channels.created{transport=\"tcp\"}");
    unsigned count = 0;
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.idle = true}, NULL);
    assert_int_equal(metric("channels.open{transport=\"other\"}"), open + 1);
    connect_somewhere(&tc);
    weir__channel_connected(tc.channel, -ECONNREFUSED);
    tc_close(&tc);
    assert_int_equal(metric("channels.open{transport=\"other\"}"), open);
    assert_int_equal(metric("channels.created{transport=\"other\"}"), created + 1);
    assert_int_equal(metric("channels.created{transport=\"tcp\"}"), tcp);
    assert_int_equal(metric("channels.errors{transport=\"other\",cause=\"refused\"}"), refused + 1);
    weir_metrics_foreach(count_ours, &count);
    assert_int_equal(count, 6 * 28);
}

TEST(channel_stats, know_no_other_kinds)
{
    weir_channel_stats stats;

    assert_int_equal(weir_channel_read_stats_of("carrier pigeon", &stats), -EINVAL);
    assert_int_equal(weir_channel_read_stats_of(NULL, &stats), -EINVAL);
}
