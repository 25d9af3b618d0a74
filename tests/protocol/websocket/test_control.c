/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pings and pongs, and peers that are silent.
 */
#include <weir/websocket.h>

#include <string.h>

#include "support/protocol/websocket/ws_case.h"

TEST(control, pings_are_answered)
{
    static const struct ws_case rows[] = {
        {{FRAME(FIN | PING, "")}, LOST, "pong()"},
        {{FRAME(FIN | PING, "Hello, world!")}, LOST, "pong(Hello, world!)"},
        {{FRAME(FIN | PING, "\x00\xff\xfe\xfd")}, LOST, "pong(\\x00\\xff\\xfe\\xfd)"},
        {{FRAME(FIN | PING, "1"), FRAME(FIN | PING, "2"), FRAME(FIN | PING, "3"),
          FRAME(FIN | PING, "4"), FRAME(FIN | PING, "5")},
         LOST,
         "pong(1) pong(2) pong(3) pong(4) pong(5)"},
        {{FRAME(FIN | PONG, "unasked"), FRAME(FIN | PING, "1"), FRAME(FIN | PONG, "")},
         LOST,
         "pong(1)"},
        {{FRAME(FIN | PING, "1"), FRAME(FIN | TEXT, "a"), FRAME(FIN | PING, "2")},
         "text(a) " LOST,
         "pong(1) text(a) pong(2)"},
    };

    WS_RUN_CASES(rows, NULL);
}

TEST(control, pings_of_125_bytes_are_answered)
{
    struct ws_fixture fixture = {0};
    char payload[126] = "";

    for (size_t i = 0; i < 125; i++)
        payload[i] = (char)ws_pattern_at(i);
    ws_open(&fixture, WEIR_WS_OPTIONS(.control_frames = true));
    ws_receive_frame(&fixture, FIN | PING, payload);
    assert_ws_seen(&fixture, "opened ping(#125)");
    assert_ws_sent(&fixture, "pong(#125)");
    ws_close(&fixture);
}

TEST(control, applications_may_ping)
{
    struct ws_fixture fixture = {0};
    weir_ws_message *ping;

    ws_open(&fixture, WEIR_WS_OPTIONS(.control_frames = true));
    assert_int_equal(weir_ws_message_create_from(WEIR_WS_PING, "x", 1, &ping), 0);
    assert_int_equal(weir_embedded_write_outbound(fixture.embedded, weir_ws_message_msg(ping)), 0);
    assert_ws_sent(&fixture, "ping(x)");
    ws_receive_frame(&fixture, FIN | PONG, "x");
    assert_ws_seen(&fixture, "opened pong(x)");
    ws_close(&fixture);
}

/* A peer that sends pings and does not receive: the latest one is answered when it does. */
TEST(control, pongs_do_not_pile_up)
{
    const weir_channel_options channel = {.size = sizeof(channel), .high_mark = 1, .low_mark = 1};
    struct ws_fixture fixture = {0};
    int64_t pending;

    ws_open_with(&fixture, NULL, WEIR_EMBEDDED_OPTIONS(.channel = &channel, .socket_space = 1),
                 NULL);
    ws_receive_frame(&fixture, FIN | PING, "first");
    pending = weir_channel_pending_bytes(weir_embedded_channel(fixture.embedded));
    for (int i = 0; i < 1000; i++)
        ws_receive_frame(&fixture, FIN | PING, i < 999 ? "other" : "last");
    assert_int_equal(weir_channel_pending_bytes(weir_embedded_channel(fixture.embedded)), pending);
    weir_embedded_make_space(fixture.embedded, 1000);
    assert_ws_sent(&fixture, "pong(first) pong(last)");
    ws_receive_frame(&fixture, FIN | PING, "next");
    assert_ws_sent(&fixture, "pong(next)");
    ws_close(&fixture);
}

/* ---- silence ---- */

TEST(control, a_silent_peer_is_pinged_and_then_closed)
{
    for (int is_client = 0; is_client < 2; is_client++) {
        struct ws_fixture fixture = {.is_client = is_client};

        ws_open(&fixture, NULL);
        weir_embedded_advance(fixture.embedded, weir_ms(29999));
        assert_ws_sent(&fixture, "");
        weir_embedded_advance(fixture.embedded, weir_ms(1));
        assert_ws_sent(&fixture, "ping()");
        ws_receive_frame(&fixture, FIN | PONG, "");
        weir_embedded_advance(fixture.embedded, weir_ms(37499));
        assert_ws_sent(&fixture, "");
        weir_embedded_advance(fixture.embedded, weir_ms(1));
        assert_ws_sent(&fixture, "ping()");
        weir_embedded_advance(fixture.embedded, weir_ms(29999));
        assert_ws_seen(&fixture, "opened");
        weir_embedded_advance(fixture.embedded, weir_ms(1));
        assert_ws_seen(&fixture, LOST);
        assert_ws_sent(&fixture, "");
        ws_close(&fixture);
    }
}

TEST(control, the_interval_is_an_option)
{
    struct ws_fixture fixture = {0}, never = {0};

    ws_open(&fixture, WEIR_WS_OPTIONS(.ping_interval_ns = weir_ms(100)));
    weir_embedded_advance(fixture.embedded, weir_ms(100));
    assert_ws_sent(&fixture, "ping()");
    ws_receive_frame(&fixture, TEXT, "a part is a sign of life, too");
    weir_embedded_advance(fixture.embedded, weir_ms(120));
    assert_ws_sent(&fixture, "");
    ws_close(&fixture);
    ws_open(&never, WEIR_WS_OPTIONS(.ping_interval_ns = WEIR_OFF));
    weir_embedded_advance(never.embedded, weir_seconds(36000));
    assert_ws_sent(&never, "");
    assert_ws_seen(&never, "opened");
    ws_close(&never);
}

/* What is not read can not be heard: an application that pauses does not lose its peer. */
TEST(control, a_peer_that_is_not_read_is_not_silent)
{
    struct ws_fixture fixture = {0};

    ws_open(&fixture, NULL);
    weir_channel_set_auto_read(weir_embedded_channel(fixture.embedded), false);
    weir_embedded_run(fixture.embedded);
    ws_receive_frame(&fixture, FIN | TEXT, "a");
    weir_channel_request_read(weir_embedded_channel(fixture.embedded));
    assert_ws_seen(&fixture, "opened text(a)");
    weir_embedded_advance(fixture.embedded, weir_seconds(600));
    assert_ws_seen(&fixture, "");
    weir_channel_request_read(weir_embedded_channel(fixture.embedded));
    weir_embedded_advance(fixture.embedded, weir_seconds(120));
    assert_ws_seen(&fixture, LOST);
    ws_close(&fixture);
}

/* A peer that receives slowly may have no time for a pong; one that receives nothing is lost. */
TEST(control, a_peer_that_receives_is_not_silent)
{
    struct ws_fixture fixture = {0};

    ws_open_with(&fixture, NULL, WEIR_EMBEDDED_OPTIONS(.socket_space = 1), NULL);
    for (int i = 0; i < 22; i++)
        weir_ws_send_text(weir_embedded_channel(fixture.embedded), "ab", NULL);
    for (int i = 0; i < 20; i++) {
        weir_embedded_advance(fixture.embedded, weir_seconds(20));
        weir_embedded_make_space(fixture.embedded, 4);
    }
    assert_ws_seen(&fixture, "opened");
    weir_embedded_advance(fixture.embedded, weir_seconds(70));
    assert_ws_seen(&fixture, LOST);
    weir_embedded_release(fixture.embedded);
}
