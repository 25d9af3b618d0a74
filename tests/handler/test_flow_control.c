/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control: the cases of Netty's FlowControlHandlerTest, and more.
 */
#include <weir/flow_control.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/embedded.h>

#include "support/codec/feed.h"
#include "support/codec/letter_consumer.h"
#include "support/memory.h"

/* ---- letters: one message for each byte, requested or not ---- */

static void split(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *word = weir_buf_of(msg), *letter;

    while (weir_buf_readable(word) > 0) {
        if (weir_buf_read_slice(word, 1, &letter) < 0)
            break;
        weir_fire_read(ctx, weir_buf_msg(letter));
    }
    weir_msg_release(msg);
}

static const weir_handler letters = {.name = "letters", .read = split};

static weir_embedded *open_channel(bool on_demand)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    memset(&consumed, 0, sizeof(consumed));
    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = on_demand)),
            &embedded),
        0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_pipeline_add_last(pipeline, &letters, NULL), 0);
    assert_int_equal(weir_flow_control_add(pipeline), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &letter_consumer, NULL), 0);
    return embedded;
}

TEST(flow_control, passes_everything_with_auto_read)
{
    weir_embedded *embedded = open_channel(false);

    letters_put(embedded, "abc");
    assert_consumed("abc;");
    letters_put(embedded, "d");
    assert_consumed("d;");
    weir_embedded_release(embedded);
}

TEST(flow_control, passes_one_message_for_each_request)
{
    weir_embedded *embedded = open_channel(true);

    letters_put(embedded, "abc");
    letters_put(embedded, "de");
    assert_consumed("");
    letters_request(embedded);
    assert_consumed("a;");
    letters_request(embedded);
    assert_consumed("b;");
    letters_request(embedded);
    assert_consumed("c;");
    letters_request(embedded); /* from here on the socket has to be read again */
    assert_consumed("d;");
    letters_request(embedded);
    assert_consumed("e;");
    letters_request(embedded); /* waits for data */
    assert_consumed("");
    letters_put(embedded, "fg");
    assert_consumed("f;");
    letters_request(embedded);
    assert_consumed("g;");
    weir_embedded_release(embedded);
}

TEST(flow_control, requests_do_not_add_up)
{
    weir_embedded *embedded = open_channel(true);

    letters_request(embedded);
    letters_request(embedded);
    letters_put(embedded, "abc");
    assert_consumed("a;");
    weir_embedded_release(embedded);
}

static void switch_off(weir_ctx *ctx, char letter)
{
    if (letter == 'b')
        weir_ctx_set_auto_read(ctx, false);
}

TEST(flow_control, stops_in_the_middle_when_auto_read_is_switched_off)
{
    weir_embedded *embedded = open_channel(false);

    consumed.on_letter = switch_off;
    letters_put(embedded, "abcd");
    assert_consumed("ab;");
    letters_put(embedded, "ef");
    assert_consumed("");
    letters_request(embedded);
    assert_consumed("c;");
    letters_set_auto_read(embedded, true); /* everything queued, and the data in the socket */
    assert_consumed("d;ef;");
    letters_put(embedded, "g");
    assert_consumed("g;");
    weir_embedded_release(embedded);
}

static void ask_for_more(weir_ctx *ctx, char letter)
{
    (void)letter;
    weir_request_read(ctx);
}

TEST(flow_control, accepts_a_request_from_inside_a_read)
{
    weir_embedded *embedded = open_channel(true);
    char text[2001];

    consumed.on_letter = ask_for_more;
    letters_request(embedded);
    memset(text, 'x', 2000);
    text[2000] = '\0';
    letters_put(embedded, text);
    assert_int_equal(consumed.max_depth, 2); /* read_complete inside read, but no recursion */
    letters_put(embedded, "y");
    assert_int_equal(consumed.max_depth, 2);
    weir_embedded_release(embedded);
}

static void ask_when_complete(weir_ctx *ctx)
{
    weir_request_read(ctx);
}

TEST(flow_control, accepts_a_request_from_inside_a_read_complete)
{
    weir_embedded *embedded = open_channel(true);

    consumed.on_complete = ask_when_complete;
    letters_request(embedded);
    letters_put(embedded, "abc");
    assert_consumed("a;b;c;");
    letters_put(embedded, "d");
    assert_consumed("d;");
    assert_int_equal(consumed.max_depth, 1);
    weir_embedded_release(embedded);
}

TEST(flow_control, forwards_its_messages_when_removed)
{
    weir_embedded *embedded = open_channel(true);

    letters_put(embedded, "abc");
    letters_request(embedded);
    assert_consumed("a;");
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(embedded), "flow-control", NULL),
                     0);
    assert_consumed("bc;");
    weir_embedded_release(embedded);
}

static void remove_it(weir_ctx *ctx, char letter)
{
    if (letter == 'b')
        assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "flow-control", NULL), 0);
}

TEST(flow_control, may_be_removed_from_inside_a_read)
{
    weir_embedded *embedded = open_channel(false);

    consumed.on_letter = remove_it;
    letters_put(embedded, "abc");
    assert_consumed("abc;");
    letters_put(embedded, "d");
    assert_consumed("d;");
    weir_embedded_release(embedded);
}

TEST(flow_control, releases_unrequested_messages_at_the_end)
{
    weir_embedded *embedded = open_channel(true);

    letters_put(embedded, "abc");
    letters_request(embedded);
    (void)weir_embedded_finish(embedded);
    assert_consumed("a;");
    weir_embedded_release(embedded);
}

static bool read_without(unsigned n)
{
    weir_embedded *embedded = open_channel(true);
    weir_msg *msgs[2] = {feed_bytes("abc", 3), feed_bytes("de", 2)};
    bool failed;

    test_memory_fail_at(n);
    for (size_t i = 0; i < 2; i++)
        (void)weir_embedded_write_inbound(embedded, msgs[i]);
    for (size_t i = 0; i < 4; i++)
        letters_request(embedded);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return failed;
}

TEST(flow_control, survives_allocation_failures)
{
    for (unsigned n = 1; read_without(n); n++)
        ;
}
