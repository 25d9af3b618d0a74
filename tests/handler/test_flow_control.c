/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control: FlowControlHandlerTest of Netty, and more. D "Others".
 */
#include <weir/flow_control.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/embedded.h>

#include "support/codec/feed.h"
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

/* ---- a consumer that writes down what it gets: letters, and ';' for read_complete ---- */

static struct {
    char text[256];
    size_t length;
    void (*on_letter)(weir_ctx *ctx, char letter);
    void (*on_complete)(weir_ctx *ctx);
    unsigned depth;
    unsigned max_depth;
} seen;

static void consume(weir_ctx *ctx, weir_msg *msg)
{
    char letter = (char)weir_buf_bytes(weir_buf_of(msg))[0];

    weir_msg_release(msg);
    if (seen.length < sizeof(seen.text) - 1)
        seen.text[seen.length++] = letter;
    seen.depth++;
    seen.max_depth = seen.depth > seen.max_depth ? seen.depth : seen.max_depth;
    if (seen.on_letter != NULL)
        seen.on_letter(ctx, letter);
    seen.depth--;
}

static void consume_complete(weir_ctx *ctx)
{
    if (seen.length < sizeof(seen.text) - 1)
        seen.text[seen.length++] = ';';
    seen.depth++;
    if (seen.on_complete != NULL)
        seen.on_complete(ctx);
    seen.depth--;
}

static const weir_handler consumer = {
    .name = "consumer", .read = consume, .read_complete = consume_complete};

#define assert_seen(expected)                     \
    do {                                          \
        seen.text[seen.length] = '\0';            \
        assert_string_equal(seen.text, expected); \
        seen.length = 0;                          \
    } while (0)

static weir_embedded *open_channel(bool on_demand)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    memset(&seen, 0, sizeof(seen));
    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = on_demand)),
            &embedded),
        0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_pipeline_add_last(pipeline, &letters, NULL), 0);
    assert_int_equal(weir_flow_control_add(pipeline), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &consumer, NULL), 0);
    return embedded;
}

static void put(weir_embedded *embedded, const char *text)
{
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text))), 0);
}

static void request(weir_embedded *embedded)
{
    weir_channel_request_read(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
}

static void set_auto_read(weir_embedded *embedded, bool on)
{
    weir_channel_set_auto_read(weir_embedded_channel(embedded), on);
    weir_embedded_run(embedded);
}

TEST(flow_control, passes_everything_with_auto_read)
{
    weir_embedded *embedded = open_channel(false);

    put(embedded, "abc");
    assert_seen("abc;");
    put(embedded, "d");
    assert_seen("d;");
    weir_embedded_release(embedded);
}

TEST(flow_control, passes_one_message_for_each_request)
{
    weir_embedded *embedded = open_channel(true);

    put(embedded, "abc");
    put(embedded, "de");
    assert_seen("");
    request(embedded);
    assert_seen("a;");
    request(embedded);
    assert_seen("b;");
    request(embedded);
    assert_seen("c;");
    request(embedded); /* from here on the socket has to be read again */
    assert_seen("d;");
    request(embedded);
    assert_seen("e;");
    request(embedded); /* waits for what comes */
    assert_seen("");
    put(embedded, "fg");
    assert_seen("f;");
    request(embedded);
    assert_seen("g;");
    weir_embedded_release(embedded);
}

TEST(flow_control, requests_do_not_add_up)
{
    weir_embedded *embedded = open_channel(true);

    request(embedded);
    request(embedded);
    put(embedded, "abc");
    assert_seen("a;");
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

    seen.on_letter = switch_off;
    put(embedded, "abcd");
    assert_seen("ab;");
    put(embedded, "ef");
    assert_seen("");
    request(embedded);
    assert_seen("c;");
    set_auto_read(embedded, true); /* all that waits, and what is in the socket */
    assert_seen("d;ef;");
    put(embedded, "g");
    assert_seen("g;");
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

    seen.on_letter = ask_for_more;
    request(embedded);
    memset(text, 'x', 2000);
    text[2000] = '\0';
    put(embedded, text);
    assert_int_equal(seen.max_depth, 1); /* of the stack */
    put(embedded, "y");
    assert_int_equal(seen.max_depth, 1);
    weir_embedded_release(embedded);
}

static void ask_when_complete(weir_ctx *ctx)
{
    weir_request_read(ctx);
}

TEST(flow_control, accepts_a_request_from_inside_a_read_complete)
{
    weir_embedded *embedded = open_channel(true);

    seen.on_complete = ask_when_complete;
    request(embedded);
    put(embedded, "abc");
    assert_seen("a;b;c;");
    put(embedded, "d");
    assert_seen("d;");
    assert_int_equal(seen.max_depth, 1);
    weir_embedded_release(embedded);
}

TEST(flow_control, forwards_its_messages_when_removed)
{
    weir_embedded *embedded = open_channel(true);

    put(embedded, "abc");
    request(embedded);
    assert_seen("a;");
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(embedded), "flow-control", NULL),
                     0);
    assert_seen("bc;");
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

    seen.on_letter = remove_it;
    put(embedded, "abc");
    assert_seen("abc;");
    put(embedded, "d");
    assert_seen("d;");
    weir_embedded_release(embedded);
}

TEST(flow_control, releases_unrequested_messages_at_the_end)
{
    weir_embedded *embedded = open_channel(true);

    put(embedded, "abc");
    request(embedded);
    (void)weir_embedded_finish(embedded);
    assert_seen("a;");
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
        request(embedded);
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
