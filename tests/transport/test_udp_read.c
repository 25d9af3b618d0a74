/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: what is received, when, and what is not.
 *
 * A datagram that was sent over the loopback interface is in the receiver's socket when the send
 * has succeeded: so what is posted to a channel that does not read comes as one batch later.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/loop/sockets.h"
#include "support/transport/datagram_endpoint.h"

#define ON_DEMAND WEIR_CHANNEL_OPTIONS(.read_on_demand = true)

/* Two of them, of which the one does not read by itself. */
struct couple {
    struct datagram_endpoint here;
    struct datagram_endpoint there;
};

static void couple_open(struct couple *couple, struct host *host,
                        const weir_channel_options *options)
{
    endpoint_open(&couple->here, host, options);
    endpoint_open(&couple->there, host, NULL);
}

static void couple_close(struct couple *couple)
{
    endpoint_close(&couple->here);
    endpoint_close(&couple->there);
}

/* "0", "1", ... */
static void post_numbers(struct couple *couple, int from, int count)
{
    char text[12];

    for (int i = from; i < from + count; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        assert_int_equal(endpoint_send(&couple->there, text, &couple->here.address), 0);
    }
}

/* ---- when ---- */

TEST_EACH_HOST(udp, reads_one_datagram_for_each_request)
{
    struct couple couple;

    couple_open(&couple, host, ON_DEMAND);
    post_numbers(&couple, 0, 5);
    weir_channel_request_read(couple.here.channel);
    assert_endpoint_events(&couple.here, "read(0)");
    host_turn(host, 3);
    weir_channel_request_read(couple.here.channel);
    assert_endpoint_events(&couple.here, "read(1)");
    weir_channel_set_auto_read(couple.here.channel, true);
    assert_endpoint_events(&couple.here, "read(2) read(3) read(4)");
    couple_close(&couple);
}

static void ask_for_the_next(weir_ctx *ctx, weir_datagram *datagram)
{
    event_log_write(&endpoint_of(ctx)->events, "got");
    weir_datagram_release(datagram);
    weir_request_read(ctx);
}

TEST_EACH_HOST(udp, reads_on_if_asked_while_it_reads)
{
    struct couple couple;

    couple_open(&couple, host, ON_DEMAND);
    couple.here.on_read = ask_for_the_next;
    post_numbers(&couple, 0, 5);
    weir_channel_request_read(couple.here.channel);
    assert_endpoint_events(&couple.here, "got got got got got");
    couple_close(&couple);
}

/* Stops at each one that ends a batch of two. */
static void stop_at_odd_ones(weir_ctx *ctx, weir_datagram *datagram)
{
    const weir_buf *buf = weir_datagram_buf(datagram);
    char last = (char)weir_buf_bytes(buf)[weir_buf_readable(buf) - 1];

    event_log_write(&endpoint_of(ctx)->events, "%c", last);
    weir_datagram_release(datagram);
    if (last % 2 == 1)
        weir_ctx_set_auto_read(ctx, false);
}

/* What has come with it waits, in order, and comes before what is received later. */
TEST_EACH_HOST(udp, stops_in_the_middle_of_a_batch_and_loses_nothing)
{
    struct couple couple;

    couple_open(&couple, host, ON_DEMAND);
    couple.here.on_read = stop_at_odd_ones;
    post_numbers(&couple, 0, 8);
    for (int i = 0; i < 4; i++) {
        char words[4] = {(char)('0' + 2 * i), ' ', (char)('1' + 2 * i), '\0'};

        weir_channel_set_auto_read(couple.here.channel, true);
        assert_endpoint_events(&couple.here, words);
        host_turn(host, 3);
        if (i == 1)
            post_numbers(&couple, 8, 2);
    }
    weir_channel_set_auto_read(couple.here.channel, true);
    assert_endpoint_events(&couple.here, "8 9");
    couple_close(&couple);
}

TEST_EACH_HOST(udp, releases_waiting_datagrams_when_closed)
{
    struct couple couple;

    couple_open(&couple, host, ON_DEMAND);
    couple.here.on_read = stop_at_odd_ones;
    post_numbers(&couple, 0, 8);
    weir_channel_set_auto_read(couple.here.channel, true);
    assert_endpoint_events(&couple.here, "0 1");
    couple_close(&couple); /* memory would be left */
}

static void close_it(weir_ctx *ctx, weir_datagram *datagram)
{
    event_log_write(&endpoint_of(ctx)->events, "closes");
    weir_datagram_release(datagram);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

TEST_EACH_HOST(udp, reads_nothing_after_a_close_in_the_middle_of_a_batch)
{
    struct couple couple;

    couple_open(&couple, host, ON_DEMAND);
    couple.here.on_read = close_it;
    post_numbers(&couple, 0, 8);
    weir_channel_set_auto_read(couple.here.channel, true);
    events_await(&couple.here.events, &couple.here.notes, "unregistered", 1);
    assert_string_equal(couple.here.events.text, "closes inactive unregistered");
    couple_close(&couple);
}

TEST_EACH_HOST(udp, limits_the_reads_per_turn)
{
    struct couple couple;

    couple_open(&couple, host, WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .reads_per_turn = 4));
    post_numbers(&couple, 0, 10);
    weir_channel_set_auto_read(couple.here.channel, true);
    assert_endpoint_events(&couple.here,
                           "read(0) read(1) read(2) read(3) read(4) read(5) read(6) read(7) "
                           "read(8) read(9)");
    assert_true(call_counter_await(&couple.here.completes, 3));
    couple_close(&couple);
}

/* ---- what ---- */

TEST_EACH_HOST(udp, brings_datagrams_of_no_length)
{
    struct couple couple;
    weir_datagram *nothing;

    couple_open(&couple, host, NULL);
    assert_int_equal(endpoint_send(&couple.there, "", &couple.here.address), 0);
    assert_endpoint_events(&couple.here, "read()");
    assert_int_equal(weir_datagram_create(NULL, &couple.here.address, &nothing), 0);
    assert_int_equal(endpoint_write(&couple.there, weir_datagram_msg(nothing)), 0);
    assert_int_equal(endpoint_send(&couple.there, "x", &couple.here.address), 0);
    assert_endpoint_events(&couple.here, "read() read(x)");
    couple_close(&couple);
}

/* A datagram is delivered as a whole or not at all. */
TEST_EACH_HOST(udp, never_delivers_a_truncated_datagram)
{
    struct couple couple;

    log_capture_start();
    couple_open(&couple, host, WEIR_CHANNEL_OPTIONS(.datagram_size = 4));
    assert_int_equal(endpoint_send(&couple.there, "1234", &couple.here.address), 0);
    assert_int_equal(endpoint_send(&couple.there, "12345", &couple.here.address), 0);
    assert_int_equal(endpoint_send(&couple.there, "123", &couple.here.address), 0);
    assert_endpoint_events(&couple.here, "read(1234) error(EMSGSIZE) read(123)");
    assert_true(weir_channel_is_open(couple.here.channel));
    couple_close(&couple);
}

/* Who has asked for one gets the next: nobody would know that it has to ask again. */
TEST_EACH_HOST(udp, reads_on_for_a_request_if_a_datagram_was_too_long)
{
    struct couple couple;

    log_capture_start();
    couple_open(&couple, host, WEIR_CHANNEL_OPTIONS(.datagram_size = 4, .read_on_demand = true));
    assert_int_equal(endpoint_send(&couple.there, "12345", &couple.here.address), 0);
    weir_channel_request_read(couple.here.channel);
    assert_endpoint_events(&couple.here, "error(EMSGSIZE)");
    assert_int_equal(endpoint_send(&couple.there, "1", &couple.here.address), 0);
    assert_int_equal(endpoint_send(&couple.there, "2", &couple.here.address), 0);
    assert_endpoint_events(&couple.here, "read(1)");
    host_turn(host, 3);
    weir_channel_request_read(couple.here.channel);
    assert_endpoint_events(&couple.here, "read(2)");
    couple_close(&couple);
}

TEST_EACH_HOST(udp, brings_the_longest_datagram)
{
    static char bytes[65507];
    struct couple couple;
    weir_datagram *datagram;
    weir_buf *buf;

    memset(bytes, 'x', sizeof(bytes));
    couple_open(&couple, host, WEIR_CHANNEL_OPTIONS(.datagram_size = sizeof(bytes)));
    couple.here.on_read = stop_at_odd_ones;
    assert_int_equal(weir_buf_wrap_static(bytes, sizeof(bytes), &buf), 0);
    assert_int_equal(weir_datagram_create(weir_buf_msg(buf), &couple.here.address, &datagram), 0);
    assert_int_equal(endpoint_write(&couple.there, weir_datagram_msg(datagram)), 0);
    assert_endpoint_events(&couple.here, "x");
    couple_close(&couple);
}

/* ---- segments that come together ---- */

static void note_length(weir_ctx *ctx, weir_datagram *datagram)
{
    event_log_write(&endpoint_of(ctx)->events, "%zu%c",
                    weir_buf_readable(weir_datagram_buf(datagram)),
                    (char)weir_buf_bytes(weir_datagram_buf(datagram))[0]);
    weir_datagram_release(datagram);
}

static weir_msg *segmented(const char *text, const weir_address *recipient, uint16_t size)
{
    weir_msg *msg = make_datagram(text, recipient);

    weir_datagram_set_segment_size(weir_datagram_of(msg), size);
    return msg;
}

static void receive_segments(struct host *host, const weir_channel_options *options)
{
    struct couple couple;

    couple_open(&couple, host, options);
    couple.here.on_read = note_length;
    assert_int_equal(
        endpoint_write(&couple.there, segmented("aaaabbbbcc", &couple.here.address, 4)), 0);
    assert_endpoint_events(&couple.here, "4a 4b 2c");
    assert_int_equal(endpoint_send(&couple.there, "d", &couple.here.address), 0);
    assert_endpoint_events(&couple.here, "1d");
    couple_close(&couple);
}

TEST_EACH_HOST(udp, delivers_segments_one_by_one)
{
    receive_segments(host, NULL);
}

TEST_EACH_HOST(udp, delivers_coalesced_segments_one_by_one)
{
    receive_segments(host, WEIR_CHANNEL_OPTIONS(.gro = true));
}

/* The longest is that of a datagram, not of all that come together. */
TEST_EACH_HOST(udp, loses_no_joined_segments_if_long_datagrams_are_not_expected)
{
    receive_segments(host, WEIR_CHANNEL_OPTIONS(.gro = true, .datagram_size = 4));
}

TEST_EACH_HOST(udp, reads_one_of_the_joined_segments_for_each_request)
{
    struct couple couple;

    couple_open(&couple, host, WEIR_CHANNEL_OPTIONS(.gro = true, .read_on_demand = true));
    couple.here.on_read = note_length;
    assert_int_equal(
        endpoint_write(&couple.there, segmented("aaaabbbbcc", &couple.here.address, 4)), 0);
    weir_channel_request_read(couple.here.channel);
    assert_endpoint_events(&couple.here, "4a");
    host_turn(host, 3);
    weir_channel_request_read(couple.here.channel);
    assert_endpoint_events(&couple.here, "4b");
    weir_channel_request_read(couple.here.channel);
    assert_endpoint_events(&couple.here, "2c");
    couple_close(&couple);
}

/* ---- order ---- */

static void stop_at_two(weir_ctx *ctx, weir_datagram *datagram)
{
    char digit = (char)weir_buf_bytes(weir_datagram_buf(datagram))[0];

    event_log_write(&endpoint_of(ctx)->events, "%c", digit);
    weir_datagram_release(datagram);
    if (digit == '2')
        weir_ctx_set_auto_read(ctx, false);
}

static void start_again(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_ctx_set_auto_read(ctx, true);
}

/* 2, 3, the one that is too long and 4 come as one batch. */
TEST_EACH_HOST(udp, delivers_in_order_even_if_an_error_makes_it_read_again)
{
    static const weir_handler starter = {.name = "starter", .error = start_again};
    struct couple couple;

    couple_open(&couple, host, WEIR_CHANNEL_OPTIONS(.datagram_size = 4, .read_on_demand = true));
    couple.here.on_read = stop_at_two;
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(couple.here.channel), &starter, NULL), 0);
    post_numbers(&couple, 0, 4);
    assert_int_equal(endpoint_send(&couple.there, "too long", &couple.here.address), 0);
    post_numbers(&couple, 4, 2);
    weir_channel_set_auto_read(couple.here.channel, true);
    assert_endpoint_events(&couple.here, "0 1 2 error(EMSGSIZE) 3 4 5");
    couple_close(&couple);
}

/* ---- errors ---- */

/* The address of a endpoint that is not there any more. */
static weir_address deserted(struct host *host)
{
    struct datagram_endpoint gone;

    endpoint_open(&gone, host, NULL);
    endpoint_close(&gone);
    return gone.address;
}

TEST_EACH_HOST(udp, reports_an_unreachable_port_and_stays_open)
{
    weir_address nobody = deserted(host);
    struct datagram_endpoint here, there;
    char address[WEIR_ADDRESS_TEXT_SIZE];

    log_capture_start();
    endpoint_init(&here, host, NULL);
    assert_int_equal(endpoint_connect(&here, &nobody), 0);
    assert_int_equal(endpoint_write(&here, text_msg("anybody?")), 0);
    assert_endpoint_events(&here, "active error(ECONNREFUSED)");
    assert_true(weir_channel_is_active(here.channel));
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    endpoint_init(&there, host, NULL);
    assert_int_equal(endpoint_bind(&there, weir_address_format(&nobody, address, sizeof(address))),
                     0);
    assert_int_equal(endpoint_write(&here, text_msg("somebody")), 0);
    assert_endpoint_events(&there, "active read(somebody)");
    assert_int_equal(endpoint_send(&there, "yes", &here.address), 0);
    assert_endpoint_events(&here, "read(yes)");
    endpoint_close(&here);
    endpoint_close(&there);
}

TEST_EACH_HOST(udp, reports_an_error_when_it_reads_on_demand)
{
    weir_address nobody = deserted(host);
    struct datagram_endpoint here;

    log_capture_start();
    endpoint_init(&here, host, ON_DEMAND);
    assert_int_equal(endpoint_connect(&here, &nobody), 0);
    assert_int_equal(endpoint_write(&here, text_msg("anybody?")), 0);
    weir_channel_request_read(here.channel);
    assert_endpoint_events(&here, "active error(ECONNREFUSED)");
    endpoint_close(&here);
}

static void complain_of_questions(weir_ctx *ctx, weir_datagram *datagram)
{
    char mark = (char)weir_buf_bytes(weir_datagram_buf(datagram))[0];

    weir_datagram_release(datagram);
    if (mark == '?')
        weir_fire_error(ctx, -EPROTO, "what is this?");
    else
        event_log_write(&endpoint_of(ctx)->events, "answer");
}

TEST_EACH_HOST(udp, is_not_closed_by_an_unhandled_error)
{
    struct couple couple;

    log_capture_start();
    couple_open(&couple, host, NULL);
    couple.here.on_read = complain_of_questions;
    for (int i = 0; i < 3; i++)
        assert_int_equal(endpoint_send(&couple.there, "?", &couple.here.address), 0);
    assert_int_equal(endpoint_send(&couple.there, "!", &couple.here.address), 0);
    assert_endpoint_events(&couple.here, "answer");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1); /* anybody could fill the log */
    couple_close(&couple);
}
