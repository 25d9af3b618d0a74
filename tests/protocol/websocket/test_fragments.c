/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in several frames, with control frames in between; whole, and in parts.
 */
#include <weir/websocket.h>

#include <string.h>

#include "support/protocol/websocket/ws_case.h"

#define BROKEN "close(1002)"

TEST(fragments, become_one_message)
{
    static const struct ws_case rows[] = {
        {{FRAME(TEXT, "fragment1"), FRAME(FIN, "fragment2")},
         "text(fragment1fragment2) " LOST,
         "text(fragment1fragment2)"},
        {{FRAME(BINARY, "a"), FRAME(0, "b"), FRAME(0, ""), FRAME(0, "c"), FRAME(FIN, "d")},
         "binary(abcd) " LOST,
         "binary(abcd)"},
        {{FRAME(TEXT, ""), FRAME(0, ""), FRAME(FIN, "")}, "text() " LOST, "text()"},
        {{FRAME(TEXT, ""), FRAME(0, "middle"), FRAME(FIN, "")},
         "text(middle) " LOST,
         "text(middle)"},
        {{FRAME(TEXT, "a"), FRAME(FIN, "b"), FRAME(BINARY, "c"), FRAME(FIN, "d")},
         "text(ab) binary(cd) " LOST,
         "text(ab) binary(cd)"},
    };

    WS_RUN_CASES(rows, NULL);
}

TEST(fragments, control_frames_may_stand_between)
{
    static const struct ws_case rows[] = {
        {{FRAME(TEXT, "a"), FRAME(FIN | PING, "p"), FRAME(FIN, "b")},
         "text(ab) " LOST,
         "pong(p) text(ab)"},
        {{FRAME(TEXT, "a"), FRAME(FIN | PING, "p"), FRAME(0, "b"), FRAME(FIN | PING, "q"),
          FRAME(FIN | PONG, "r"), FRAME(FIN, "c"), FRAME(FIN | TEXT, "d")},
         "text(abc) text(d) " LOST,
         "pong(p) pong(q) text(abc) text(d)"},
        {{FRAME(TEXT, "a"), FRAME(FIN | CLOSE, "\x03\xe8"), FRAME(FIN, "b")},
         "closed(1000) inactive",
         "close(1000)"},
    };

    WS_RUN_CASES(rows, NULL);
}

TEST(fragments, out_of_order_close)
{
    static const struct ws_case rows[] = {
        {{FRAME(FIN, "b"), FRAME(FIN | TEXT, "a")}, LOST, BROKEN},
        {{FRAME(0, "b"), FRAME(FIN | TEXT, "a")}, LOST, BROKEN},
        {{FRAME(FIN, "")}, LOST, BROKEN},
        {{FRAME(TEXT, "a"), FRAME(FIN | TEXT, "b")}, LOST, BROKEN},
        {{FRAME(TEXT, "a"), FRAME(BINARY, "b"), FRAME(FIN, "c")}, LOST, BROKEN},
        {{FRAME(TEXT, "a"), FRAME(FIN, "b"), FRAME(FIN, "c")},
         "text(ab) " LOST,
         "text(ab) " BROKEN},
        {{FRAME(FIN | TEXT, "a"), FRAME(FIN, "b")}, "text(a) " LOST, "text(a) " BROKEN},
        {{FRAME(PING, "a"), FRAME(FIN, "b")}, LOST, BROKEN},
        {{FRAME(TEXT, "a"), FRAME(PING, "p"), FRAME(FIN, "b")}, LOST, BROKEN},
    };

    WS_RUN_CASES(rows, NULL);
}

TEST(fragments, control_frames_are_passed_on_if_asked)
{
    static const struct ws_case rows[] = {
        {{FRAME(TEXT, "a"), FRAME(FIN | PONG, "p"), FRAME(FIN, "b"), FRAME(FIN | PONG, "")},
         "pong(p) text(ab) pong() " LOST,
         "pong(p) text(ab) pong()"},
    };

    WS_RUN_CASES(rows, WEIR_WS_OPTIONS(.control_frames = true));
}

/* ---- parts ---- */

static void open_streaming(struct ws_fixture *fixture)
{
    ws_open(fixture, WEIR_WS_OPTIONS(.stream = true));
    assert_ws_seen(fixture, "opened");
}

TEST(fragments, are_passed_on_as_they_arrive)
{
    for (int is_client = 0; is_client < 2; is_client++) {
        struct ws_fixture fixture = {.is_client = is_client, .echoes = true};
        weir_buf *bytes;

        open_streaming(&fixture);
        ws_receive_frame(&fixture, TEXT, "one");
        assert_ws_seen(&fixture, "text(one*");
        assert_ws_sent(&fixture, "text(one*");
        ws_receive_frame(&fixture, FIN | PING, "p");
        assert_ws_sent(&fixture, "pong(p)");
        ws_receive_frame(&fixture, 0, "");
        ws_receive_frame(&fixture, FIN, "two");
        ws_receive_frame(&fixture, FIN | BINARY, "whole");
        assert_ws_seen(&fixture, "+two) binary(whole)");
        assert_ws_sent(&fixture, "+two) binary(whole)");

        /* One frame that arrives in two pieces; the last one is empty. */
        assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
        ws_put_frame(&fixture, bytes, FIN | TEXT, "abcdef", 6);
        ws_receive(&fixture, bytes, is_client ? 5 : 9);
        ws_receive_frame(&fixture, TEXT, "g");
        ws_receive_frame(&fixture, FIN, "");
        assert_ws_seen(&fixture, "text(abc* +def) text(g* +)");
        assert_ws_sent(&fixture, "text(abc* +def) text(g* +)");
        ws_close(&fixture);
    }
}

/* The content of parts longer than what is copied. */
TEST(fragments, of_any_size_are_streamed)
{
    for (size_t frame = 500; frame < 5000; frame += 500)
        for (size_t piece = 300; piece < 5000; piece += 700) {
            struct ws_fixture fixture = {.echoes = true};
            weir_buf *bytes, *payload;

            open_streaming(&fixture);
            assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
            assert_int_equal(weir_buf_create(64, 0, &payload), 0);
            ws_put_pattern(payload, frame);
            ws_put_frame(&fixture, bytes, FIN | BINARY, weir_buf_bytes(payload), frame);
            ws_receive(&fixture, bytes, piece);
            assert_null(strchr(ws_seen(&fixture), '?'));
            assert_null(strchr(ws_sent(&fixture), '?'));
            assert_int_equal(fixture.seen_length, frame);
            assert_int_equal(fixture.sent_length, frame);
            weir_buf_release(payload);
            ws_close(&fixture);
        }
}

/* Parts may be of any total length; each text is checked across them. */
TEST(fragments, that_are_streamed_have_no_limit_but_max_message)
{
    struct ws_fixture fixture = {0};

    ws_open(&fixture, WEIR_WS_OPTIONS(.stream = true, .max_message = 5));
    ws_receive_frame(&fixture, TEXT, "abc");
    ws_receive_frame(&fixture, 0, "de");
    ws_receive_frame(&fixture, FIN, "");
    ws_receive_frame(&fixture, TEXT, "abc");
    ws_receive_frame(&fixture, FIN, "def");
    assert_ws_seen(&fixture, "opened text(abc* +de* +) text(abc* " LOST);
    assert_ws_sent(&fixture, "close(1009)");
    ws_close(&fixture);
}

/* ---- parts that are not sent ---- */

static int send_part(struct ws_fixture *fixture, size_t length, bool is_first, bool is_last)
{
    weir_channel *channel = weir_embedded_channel(fixture->embedded);
    weir_ws_message *message;
    weir_promise *done;
    weir_buf *pattern;
    int result;

    assert_int_equal(weir_buf_create(length, 0, &pattern), 0);
    ws_put_pattern(pattern, length);
    assert_int_equal(
        weir_ws_message_create_from(WEIR_WS_BINARY, weir_buf_bytes(pattern), length, &message), 0);
    weir_buf_release(pattern);
    weir_ws_message_set_part(message, is_first, is_last);
    assert_int_equal(weir_promise_create(weir_channel_executor(channel), &done), 0);
    weir_channel_write_and_flush(channel, weir_ws_message_msg(message), done);
    weir_embedded_run(fixture->embedded);
    result = weir_promise_is_done(done) ? weir_promise_result(done) : 0;
    weir_promise_release(done);
    return result;
}

/* The peer would not notice the gap. A whole message is only missing. */
TEST(fragments, a_part_that_is_refused_ends_the_connection)
{
    const weir_channel_options channel = {.size = sizeof(channel), .write_cap = 8000};

    for (int is_whole = 0; is_whole < 2; is_whole++) {
        struct ws_fixture fixture = {0};

        ws_open_with(&fixture, NULL, WEIR_EMBEDDED_OPTIONS(.channel = &channel, .socket_space = 1),
                     NULL);
        assert_int_equal(send_part(&fixture, 2000, true, is_whole), 0);
        assert_int_equal(send_part(&fixture, 20000, is_whole, is_whole), WEIR_EFULL);
        assert_int_equal(weir_channel_is_open(weir_embedded_channel(fixture.embedded)), is_whole);
        ws_close(&fixture);
    }
}
