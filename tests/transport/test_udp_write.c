/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: what is sent, how, and what is not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/error.h>
#include <weir/handler.h>
#include <weir/loop.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/transport/datagram_endpoint.h"

#define MANY 100

struct couple {
    struct datagram_endpoint here;
    struct datagram_endpoint there;
};

/* The sender is connected. */
static void couple_open(struct couple *couple, struct host *host,
                        const weir_channel_options *options)
{
    endpoint_open(&couple->there, host, NULL);
    endpoint_init(&couple->here, host, options);
    assert_int_equal(endpoint_connect(&couple->here, &couple->there.address), 0);
    assert_endpoint_events(&couple->here, "active");
}

static void couple_close(struct couple *couple)
{
    endpoint_close(&couple->here);
    endpoint_close(&couple->there);
}

/* ---- what is admitted ---- */

TEST_EACH_HOST(udp, wants_an_address_unless_it_is_connected)
{
    struct datagram_endpoint endpoint;

    endpoint_open(&endpoint, host, NULL);
    assert_int_equal(endpoint_write(&endpoint, text_msg("x")), -EDESTADDRREQ);
    assert_int_equal(endpoint_write(&endpoint, make_datagram("x", NULL)), -EDESTADDRREQ);
    assert_int_equal(endpoint_send(&endpoint, "y", &endpoint.address), 0);
    assert_endpoint_events(&endpoint, "read(y)");
    endpoint_close(&endpoint);
}

TEST_EACH_HOST(udp, sends_nothing_but_bytes)
{
    struct datagram_endpoint endpoint;

    endpoint_open(&endpoint, host, NULL);
    assert_int_equal(endpoint_write(&endpoint, weir_msg_retain(weir_event_input_closed())),
                     -EPROTOTYPE);
    endpoint_close(&endpoint);
}

TEST_EACH_HOST(udp, fails_what_is_written_before_it_is_bound)
{
    struct datagram_endpoint endpoint, other;

    endpoint_open(&other, host, NULL);
    endpoint_init(&endpoint, host, NULL);
    assert_int_equal(endpoint_send(&endpoint, "x", &other.address), -ENOTCONN);
    endpoint_close(&endpoint);
    endpoint_close(&other);
}

/* ---- batches ---- */

static uint64_t sends_of(const struct datagram_endpoint *endpoint)
{
    weir_loop_stats stats;

    assert_int_equal(weir_loop_read_stats(weir_channel_executor(endpoint->channel), &stats), 0);
    return stats.sends;
}

TEST_EACH_HOST(udp, sends_many_by_a_few_calls)
{
    struct couple couple;
    uint64_t before;
    char text[12], last[16];

    couple_open(&couple, host, NULL);
    before = sends_of(&couple.here);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        weir_channel_write(couple.here.channel, text_msg(text), NULL);
    }
    weir_channel_flush(couple.here.channel);
    (void)snprintf(last, sizeof(last), "read(%d)", MANY - 1);
    events_await(&couple.there.events, &couple.there.notes, last, 1);
    assert_int_equal(event_log_count(&couple.there.events, "read("), MANY);
    assert_true(sends_of(&couple.here) - before <= 8);
    couple_close(&couple);
}

TEST_EACH_HOST(udp, continues_when_its_budget_is_used_up)
{
    struct couple couple;
    weir_promise *last;

    couple_open(&couple, host, WEIR_CHANNEL_OPTIONS(.writes_per_flush = 1));
    last = endpoint_promise(&couple.here);
    for (int i = 1; i < MANY; i++)
        weir_channel_write(couple.here.channel, text_msg("x"), NULL);
    weir_channel_write(couple.here.channel, text_msg("x"), last);
    weir_channel_flush(couple.here.channel);
    assert_int_equal(endpoint_result(last), 0);
    events_await(&couple.there.events, &couple.there.notes, "read(x)", MANY);
    couple_close(&couple);
}

/* ---- messages of several pieces ---- */

static weir_msg *composite_of(unsigned parts, size_t part_size)
{
    weir_composite *composite;
    char part[64];

    assert_int_equal(weir_composite_create(parts, &composite), 0);
    for (unsigned i = 0; i < parts; i++) {
        weir_buf *buf;

        memset(part, 'a' + (int)(i % 26), part_size);
        assert_int_equal(weir_buf_create_from(part, part_size, &buf), 0);
        assert_int_equal(weir_composite_add(composite, weir_buf_msg(buf)), 0);
    }
    return weir_composite_msg(composite);
}

TEST_EACH_HOST(udp, sends_a_composite_as_one_datagram)
{
    struct couple couple;
    weir_datagram *datagram;

    couple_open(&couple, host, NULL);
    assert_int_equal(endpoint_write(&couple.here, composite_of(4, 2)), 0);
    assert_endpoint_events(&couple.there, "read(aabbccdd)");
    assert_int_equal(weir_datagram_create(composite_of(3, 1), NULL, &datagram), 0);
    assert_int_equal(endpoint_write(&couple.here, weir_datagram_msg(datagram)), 0);
    assert_endpoint_events(&couple.there, "read(abc)");
    couple_close(&couple);
}

static void note_length(weir_ctx *ctx, weir_datagram *datagram)
{
    const weir_buf *buf = weir_datagram_buf(datagram);
    size_t length = weir_buf_readable(buf);

    event_log_write(&endpoint_of(ctx)->events, "%zu%c%c", length, (char)weir_buf_bytes(buf)[0],
                    (char)weir_buf_bytes(buf)[length - 1]);
    weir_datagram_release(datagram);
}

/* More than one batch has room for, alone and together. */
TEST_EACH_HOST(udp, sends_composites_of_very_many_parts)
{
    struct couple couple;

    couple_open(&couple, host, NULL);
    couple.there.on_read = note_length;
    weir_channel_write(couple.here.channel, composite_of(40, 1), NULL);
    weir_channel_write(couple.here.channel, composite_of(40, 1), NULL);
    weir_channel_write(couple.here.channel, composite_of(300, 1), NULL);
    assert_int_equal(endpoint_write(&couple.here, composite_of(2, 1)), 0);
    assert_endpoint_events(&couple.there, "40an 40an 300an 2ab");
    couple_close(&couple);
}

/* ---- segments ---- */

static weir_msg *segmented(weir_msg *content, uint16_t size)
{
    weir_datagram *datagram;

    assert_int_equal(weir_datagram_create(content, NULL, &datagram), 0);
    weir_datagram_set_segment_size(datagram, size);
    return weir_datagram_msg(datagram);
}

TEST_EACH_HOST(udp, sends_segments_by_one_call)
{
    struct couple couple;
    uint64_t before;

    couple_open(&couple, host, NULL);
    before = sends_of(&couple.here);
    assert_int_equal(endpoint_write(&couple.here, segmented(text_msg("aaabbbc"), 3)), 0);
    assert_endpoint_events(&couple.there, "read(aaa) read(bbb) read(c)");
    assert_int_equal(sends_of(&couple.here) - before, 1);
    couple_close(&couple);
}

/* More than the system makes of one, from many parts. */
TEST_EACH_HOST(udp, sends_as_many_segments_as_there_are)
{
    struct couple couple;
    uint64_t before;

    couple_open(&couple, host, NULL);
    before = sends_of(&couple.here);
    assert_int_equal(endpoint_write(&couple.here, segmented(composite_of(150, 2), 2)), 0);
    assert_int_equal(sends_of(&couple.here) - before, 1);
    events_await(&couple.there.events, &couple.there.notes, "read(", 150);
    assert_int_equal(event_log_count(&couple.there.events, "read(aa)"), 6);
    assert_int_equal(event_log_count(&couple.there.events, "read(zz)"), 5);
    couple_close(&couple);
}

TEST_EACH_HOST(udp, sends_segments_of_which_no_two_fit_into_one)
{
    static char bytes[150000];
    struct couple couple;
    weir_buf *buf;

    memset(bytes, 'x', sizeof(bytes));
    endpoint_init(&couple.there, host,
                  WEIR_CHANNEL_OPTIONS(.datagram_size = 65000, .receive_buffer = 1 << 20));
    assert_int_equal(endpoint_bind(&couple.there, "127.0.0.1:0"), 0);
    assert_endpoint_events(&couple.there, "active");
    couple.there.on_read = note_length;
    endpoint_init(&couple.here, host, NULL);
    assert_int_equal(endpoint_connect(&couple.here, &couple.there.address), 0);
    assert_int_equal(weir_buf_wrap_static(bytes, sizeof(bytes), &buf), 0);
    assert_int_equal(endpoint_write(&couple.here, segmented(weir_buf_msg(buf), 65000)), 0);
    assert_endpoint_events(&couple.there, "65000xx 65000xx 20000xx");
    couple_close(&couple);
}

/* ---- failures ---- */

TEST_EACH_HOST(udp, fails_only_the_datagram_that_is_too_long)
{
    static char bytes[70000];
    struct couple couple;
    weir_promise *before, *failed, *after;
    weir_buf *buf;

    couple_open(&couple, host, NULL);
    before = endpoint_promise(&couple.here);
    failed = endpoint_promise(&couple.here);
    after = endpoint_promise(&couple.here);
    assert_int_equal(weir_buf_wrap_static(bytes, sizeof(bytes), &buf), 0);
    weir_channel_write(couple.here.channel, text_msg("before"), before);
    weir_channel_write(couple.here.channel, weir_buf_msg(buf), failed);
    weir_channel_write(couple.here.channel, text_msg("after"), after);
    weir_channel_flush(couple.here.channel);
    assert_int_equal(endpoint_result(before), 0);
    assert_int_equal(endpoint_result(failed), -EMSGSIZE);
    assert_int_equal(endpoint_result(after), 0);
    assert_endpoint_events(&couple.there, "read(before) read(after)");
    assert_true(weir_channel_is_active(couple.here.channel));
    couple_close(&couple);
}

/* The system tells it to the next who sends, unless somebody receives. */
TEST_EACH_HOST(udp, fails_one_datagram_after_an_unreachable_port)
{
    struct datagram_endpoint here, gone;

    endpoint_open(&gone, host, NULL);
    endpoint_close(&gone);
    endpoint_init(&here, host, WEIR_CHANNEL_OPTIONS(.read_on_demand = true));
    assert_int_equal(endpoint_connect(&here, &gone.address), 0);
    assert_int_equal(endpoint_write(&here, text_msg("1")), 0);
    assert_int_equal(endpoint_write(&here, text_msg("2")), -ECONNREFUSED);
    assert_int_equal(endpoint_write(&here, text_msg("3")), 0);
    assert_true(weir_channel_is_active(here.channel));
    endpoint_close(&here);
}

TEST_EACH_HOST(udp, broadcasts_only_if_it_may)
{
    weir_address everybody;
    struct datagram_endpoint endpoint;

    assert_int_equal(weir_address_parse("127.255.255.255:9", &everybody), 0);
    endpoint_open(&endpoint, host, NULL);
    assert_int_equal(endpoint_send(&endpoint, "x", &everybody), -EACCES);
    assert_int_equal(
        weir_channel_set_options(endpoint.channel, WEIR_CHANNEL_OPTIONS(.broadcast = true)), 0);
    assert_int_equal(endpoint_send(&endpoint, "x", &everybody), 0);
    assert_true(weir_channel_is_open(endpoint.channel));
    endpoint_close(&endpoint);
}

/* ---- marks ---- */

static void do_nothing(void *arg)
{
    (void)arg;
}

TEST_EACH_HOST(udp, counts_what_is_written_against_its_marks)
{
    struct couple couple;
    weir_msg *last;

    couple_open(&couple, host, WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    for (int i = 0; i < 10; i++)
        weir_channel_write(couple.here.channel, make_datagram("0123456789", NULL), NULL);
    assert_endpoint_events(&couple.here, "unwritable");
    /* Returns behind the writes. */
    run_on_executor(weir_channel_executor(couple.here.channel), do_nothing, NULL);
    last = make_datagram("0123456789", NULL);
    assert_int_equal(weir_channel_pending_bytes(couple.here.channel),
                     10 * weir__outbound_cost(last));
    assert_int_equal(endpoint_write(&couple.here, last), 0);
    assert_endpoint_events(&couple.here, "writable");
    assert_int_equal(weir_channel_pending_bytes(couple.here.channel), 0);
    couple_close(&couple);
}
