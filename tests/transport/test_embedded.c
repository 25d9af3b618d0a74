/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel that handlers are tested with.
 */
#include <weir/embedded.h>

#include <errno.h>
#include <string.h>

#include <weir/channel_group.h>
#include <weir/error.h>
#include <weir/timer.h>

#include "support/channel/test_channel.h"
#include "support/executor/call_order.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"

static weir_embedded *create(const weir_embedded_options *options)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(options, &embedded), 0);
    return embedded;
}

static void add_spy(weir_embedded *embedded, struct event_log *events)
{
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &event_recorder,
                                            EVENT_RECORDER(events, "a")),
                     0);
}

static void assert_text(weir_msg *msg, const char *text)
{
    assert_non_null(msg);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), strlen(text));
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), text, strlen(text));
    weir_msg_release(msg);
}

TEST(embedded, is_a_channel_that_is_registered_and_active)
{
    weir_embedded *embedded = create(NULL);
    weir_channel *channel = weir_embedded_channel(embedded);
    char text[128];

    assert_true(weir_channel_is_registered(channel));
    assert_true(weir_channel_is_active(channel));
    assert_non_null(strstr(weir_channel_format(channel, text, sizeof(text)),
                           "inproc:embedded - inproc:embedded]"));
    weir_embedded_release(embedded);
    weir_embedded_release(NULL);
}

TEST(embedded, passes_messages_through_the_handlers)
{
    struct event_log events;
    weir_embedded *embedded = create(NULL);

    event_log_open(&events);
    add_spy(embedded, &events);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("in")), 0);
    assert_int_equal(weir_embedded_write_one_inbound(embedded, text_msg("one")), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("out")), 0);
    assert_events(&events, "a.added a.read(in) a.read_complete a.request_read a.read(one) "
                           "a.write(out) a.flush");
    assert_text(weir_embedded_read_inbound(embedded), "in");
    assert_text(weir_embedded_read_inbound(embedded), "one");
    assert_null(weir_embedded_read_inbound(embedded));
    assert_text(weir_embedded_read_outbound(embedded), "out");
    assert_null(weir_embedded_read_outbound(embedded));
    weir_embedded_release(embedded);
    event_log_close(&events);
}

/* ---- batches ---- */

static weir_embedded *nested;
static unsigned nesting;

static void say_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_write_and_flush(ctx, text_msg("r"), NULL);
}

/* Has the channel read within `read`. */
static void read_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, text_msg("before"), NULL);
    if (nesting++ == 0)
        (void)weir_embedded_write_inbound(nested, text_msg("inner"));
    say_in_read(ctx, msg);
}

static const weir_handler sayer = {.name = "sayer", .read = say_in_read};
static const weir_handler nester = {.name = "nester", .read = read_in_read};

/* Though no read_complete follows. */
TEST(embedded, sends_what_is_flushed_in_a_read_before_the_call_returns)
{
    weir_embedded *embedded = create(NULL);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &sayer, NULL), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("1")), 0);
    assert_text(weir_embedded_read_outbound(embedded), "r");
    assert_int_equal(weir_embedded_write_one_inbound(embedded, text_msg("2")), 0);
    assert_text(weir_embedded_read_outbound(embedded), "r");
    assert_null(weir_embedded_read_outbound(embedded));
    weir_embedded_release(embedded);
}

TEST(embedded, sends_everything_after_a_read_within_a_read)
{
    nesting = 0;
    nested = create(NULL);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(nested), &nester, NULL), 0);
    assert_int_equal(weir_embedded_write_inbound(nested, text_msg("outer")), 0);
    assert_text(weir_embedded_read_outbound(nested), "before");
    assert_text(weir_embedded_read_outbound(nested), "before");
    assert_text(weir_embedded_read_outbound(nested), "r");
    assert_text(weir_embedded_read_outbound(nested), "r");
    assert_null(weir_embedded_read_outbound(nested));
    weir_embedded_release(nested);
}

TEST(embedded, is_inactive_then_unregistered_once_when_it_closes)
{
    struct event_log events;
    weir_embedded *embedded = create(NULL);

    event_log_open(&events);
    add_spy(embedded, &events);
    event_log_clear(&events);
    assert_false(weir_embedded_finish(embedded));
    assert_events(&events, "a.close a.inactive a.unregistered a.removed a.deinit");
    assert_false(weir_embedded_finish(embedded));
    assert_events(&events, "");
    weir_embedded_release(embedded);
    event_log_close(&events);
}

TEST(embedded, closes_on_disconnect_unless_it_has_one)
{
    weir_embedded *embedded = create(NULL);

    weir_channel_disconnect(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);

    embedded = create(WEIR_EMBEDDED_OPTIONS(.has_disconnect = true));
    weir_channel_disconnect(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_false(weir_channel_is_active(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(embedded, releases_what_was_not_read)
{
    weir_embedded *embedded =
        create(WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true),
                                     .socket_space = 3));

    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("in the socket")), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("out")), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("waits")), 0);
    assert_true(weir_embedded_finish(embedded));
    weir_embedded_release(embedded);
}

TEST(embedded, has_a_clock_that_stands_until_time_passes)
{
    weir_embedded *embedded = create(NULL);
    weir_clock *clock = weir_embedded_clock(embedded);
    int64_t now_ns = clock->now(clock);

    weir_embedded_run(embedded);
    assert_int_equal(clock->now(clock), now_ns);
    weir_embedded_advance(embedded, weir_ms(5));
    assert_int_equal(clock->now(clock), now_ns + weir_ms(5));
    weir_embedded_release(embedded);
}

TEST(embedded, runs_timers_only_when_time_passes)
{
    weir_embedded *embedded = create(NULL);
    weir_executor *executor = weir_channel_executor(weir_embedded_channel(embedded));
    struct call_order letters = {0};

    assert_int_equal(
        weir_schedule(executor, weir_ms(10), call_order_task, call_order_arg(&letters, 'b'), NULL),
        0);
    assert_int_equal(
        weir_schedule(executor, weir_ms(5), call_order_task, call_order_arg(&letters, 'a'), NULL),
        0);
    weir_embedded_run(embedded);
    weir_embedded_advance(embedded, weir_ms(5) - 1);
    assert_string_equal(letters.text, "");
    weir_embedded_advance(embedded, 1);
    assert_string_equal(letters.text, "a");
    weir_embedded_advance(embedded, weir_seconds(1));
    assert_string_equal(letters.text, "ab");
    weir_embedded_release(embedded);
}

TEST(embedded, fails_what_is_written_after_it_was_closed)
{
    weir_embedded *embedded = create(NULL);

    (void)weir_embedded_finish(embedded);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("out")), WEIR_ECLOSED);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("in")), WEIR_ECLOSED);
    weir_embedded_release(embedded);
}

TEST(embedded, keeps_the_first_error_that_reaches_the_tail)
{
    weir_embedded *embedded =
        create(WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true)));

    log_capture_start();
    weir_pipeline_fire_error(weir_embedded_pipeline(embedded), -EPROTO, NULL);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    weir_pipeline_fire_error(weir_embedded_pipeline(embedded), -EDOM, NULL);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_int_equal(weir_embedded_take_error(embedded), -EPROTO);
    assert_int_equal(weir_embedded_take_error(embedded), 0);
    weir_embedded_release(embedded);
}

static void reject_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_fire_error(ctx, -EBADMSG, NULL);
}

TEST(embedded, returns_an_error_once_from_the_call_that_caused_it)
{
    static const weir_handler rejecting = {.name = "rejecting", .read = reject_read};
    weir_embedded *embedded =
        create(WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true)));

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &rejecting, NULL), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("1")), -EBADMSG);
    assert_int_equal(weir_embedded_take_error(embedded), 0);
    weir_embedded_release(embedded);
}

TEST(embedded, holds_what_is_received_until_the_channel_reads)
{
    struct event_log events;
    weir_embedded *embedded =
        create(WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)));

    event_log_open(&events);
    add_spy(embedded, &events);
    event_log_clear(&events);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("1")), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("2")), 0);
    weir_embedded_end_input(embedded);
    assert_events(&events, "");
    weir_channel_request_read(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_events(&events, "a.request_read a.read(1) a.read_complete");
    weir_channel_set_auto_read(weir_embedded_channel(embedded), true);
    weir_embedded_run(embedded);
    assert_events(&events, "a.request_read a.read(2) a.read_complete a.request_read a.inactive "
                           "a.unregistered a.removed a.deinit");
    weir_embedded_release(embedded);
    event_log_close(&events);
}

TEST(embedded, continues_reading_in_the_next_turn)
{
    weir_embedded *embedded =
        create(WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)));
    weir_msg *msg;
    int count = 0;

    for (int i = 0; i < 100; i++)
        assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("x")), 0);
    weir_channel_set_auto_read(weir_embedded_channel(embedded), true);
    weir_embedded_run(embedded);
    while ((msg = weir_embedded_read_inbound(embedded)) != NULL) {
        weir_msg_release(msg);
        count++;
    }
    assert_int_equal(count, 100);
    weir_embedded_release(embedded);
}

TEST(embedded, takes_as_much_as_its_socket_has_space_for)
{
    weir_embedded *embedded = create(WEIR_EMBEDDED_OPTIONS(.socket_space = 5));
    weir_channel *channel = weir_embedded_channel(embedded);

    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("123")), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("456")), 0);
    assert_int_equal(weir_channel_pending_bytes(channel), 3 + WEIR__OUTBOUND_COST);
    assert_text(weir_embedded_read_outbound(embedded), "123");
    assert_null(weir_embedded_read_outbound(embedded));
    weir_embedded_make_space(embedded, 1);
    assert_text(weir_embedded_read_outbound(embedded), "456");
    assert_int_equal(weir_channel_pending_bytes(channel), 0);
    weir_embedded_release(embedded);
}

TEST(embedded, lingers_for_a_peer_that_stays)
{
    weir_embedded *embedded = create(WEIR_EMBEDDED_OPTIONS(.peer_stays = true));
    weir_channel *channel = weir_embedded_channel(embedded);

    weir_channel_close(channel, NULL);
    weir_embedded_run(embedded);
    assert_true(weir_channel_is_active(channel));
    weir_embedded_end_input(embedded);
    assert_false(weir_channel_is_active(channel));
    weir_embedded_release(embedded);
}

/* The deadline is for a peer that takes nothing, not for one that is slow. */
TEST(embedded, closes_when_a_slow_peer_has_taken_everything)
{
    weir_embedded *embedded =
        create(WEIR_EMBEDDED_OPTIONS(.socket_space = 3, .peer_stays = true,
                                     .channel = WEIR_CHANNEL_OPTIONS(.close_timeout_ns =
                                                                         weir_seconds(3))));
    weir_channel *channel = weir_embedded_channel(embedded);

    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("123")), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("456")), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("789")), 0);
    weir_channel_close(channel, NULL);
    weir_embedded_advance(embedded, weir_seconds(2));
    weir_embedded_make_space(embedded, 3);
    weir_embedded_advance(embedded, weir_seconds(2));
    weir_embedded_make_space(embedded, 3);
    assert_text(weir_embedded_read_outbound(embedded), "123");
    assert_text(weir_embedded_read_outbound(embedded), "456");
    assert_text(weir_embedded_read_outbound(embedded), "789");
    weir_embedded_advance(embedded, weir_ms(2999));
    assert_true(weir_channel_is_active(channel)); /* it lingers now, for as long */
    weir_embedded_advance(embedded, weir_ms(1));
    assert_false(weir_channel_is_active(channel));
    weir_embedded_release(embedded);
}

TEST(embedded, does_not_wait_longer_for_a_peer_that_takes_nothing)
{
    weir_embedded *embedded = create(WEIR_EMBEDDED_OPTIONS(.socket_space = 3));
    weir_channel *channel = weir_embedded_channel(embedded);

    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("123")), 0);
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("456")), 0);
    weir_channel_close(channel, NULL);
    log_capture_start();
    weir_embedded_advance(embedded, weir_seconds(30) - 1);
    assert_true(weir_channel_is_active(channel));
    weir_embedded_advance(embedded, 1);
    assert_false(weir_channel_is_active(channel));
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    weir_embedded_release(embedded);
}

TEST(embedded, can_be_registered_and_connected_by_the_test)
{
    struct event_log events;
    weir_embedded *embedded =
        create(WEIR_EMBEDDED_OPTIONS(.register_later = true, .connect_later = true));
    weir_address address;

    event_log_open(&events);
    add_spy(embedded, &events);
    assert_int_equal(weir_embedded_register(embedded), 0);
    assert_events(&events, "a.added a.registered");
    assert_int_equal(weir_address_parse("inproc:x", &address), 0);
    weir_channel_connect(weir_embedded_channel(embedded), &address, NULL, NULL);
    weir_embedded_run(embedded);
    assert_events(&events, "a.connect a.active a.request_read");
    assert_int_equal(weir_embedded_register(embedded), -EALREADY);
    weir_embedded_release(embedded);
    event_log_close(&events);
}

TEST(embedded, may_be_outlived_by_its_channel)
{
    weir_embedded *embedded = create(NULL);
    weir_channel *channel = weir_channel_retain(weir_embedded_channel(embedded));

    weir_embedded_release(embedded);
    assert_false(weir_channel_is_open(channel));
    weir_channel_write_and_flush(channel, text_msg("late"), NULL);
    weir_channel_register(channel, weir_executor_global(), NULL);
    weir_channel_close(channel, NULL);
    weir_channel_release(channel);
}

TEST(embedded, that_cannot_be_made_leaves_nothing)
{
    weir_embedded *embedded;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        embedded = NULL;
        if (weir_embedded_create(NULL, &embedded) == 0)
            break;
        assert_true(test_memory_failed());
        assert_null(embedded);
    }
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
}

TEST(embedded, has_the_addresses_of_its_options)
{
    weir_embedded *embedded = NULL;
    weir_address address;
    char text[WEIR_ADDRESS_TEXT_SIZE];

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.local = "192.0.2.1:80",
                                                                .remote = "[2001:db8::1]:1234"),
                                          &embedded),
                     0);
    assert_int_equal(weir_channel_local_address(weir_embedded_channel(embedded), &address), 0);
    assert_string_equal(weir_address_format(&address, text, sizeof(text)), "192.0.2.1:80");
    assert_int_equal(weir_channel_remote_address(weir_embedded_channel(embedded), &address), 0);
    assert_string_equal(weir_address_format(&address, text, sizeof(text)), "[2001:db8::1]:1234");
    weir_embedded_release(embedded);
    log_capture_start();
    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = "nowhere"), &embedded),
                     -EINVAL);
    assert_log_contains("it is not an address");
}

/* Both loops are of this thread. */
TEST(embedded, two_are_members_of_a_group)
{
    weir_embedded *members[] = {create(NULL), create(NULL)};
    weir_channel_group *group;

    assert_int_equal(weir_channel_group_create(NULL, &group), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_channel_group_add(group, weir_embedded_channel(members[i])), 0);
    weir_channel_group_write_and_flush(group, text_msg("hello"), NULL, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        weir_embedded_run(members[i]);
        assert_text(weir_embedded_read_outbound(members[i]), "hello");
        weir_embedded_release(members[i]);
    }
    weir_channel_group_release(group);
}
