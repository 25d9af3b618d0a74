/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closing handshake: codes and reasons, who begins, and peers that do not answer.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "support/protocol/websocket/ws_case.h"

#define BYE "\x03\xe8"

static weir_promise *close_with(struct ws_fixture *fixture, unsigned code, const char *reason)
{
    weir_channel *channel = weir_embedded_channel(fixture->embedded);
    weir_promise *done;

    assert_int_equal(weir_promise_create(weir_channel_executor(channel), &done), 0);
    assert_int_equal(weir_ws_close(channel, code, reason, done), 0);
    weir_embedded_run(fixture->embedded);
    return done;
}

static void expect_done(weir_promise *done)
{
    assert_true(weir_promise_is_done(done));
    assert_int_equal(weir_promise_result(done), 0);
    weir_promise_release(done);
}

/* ---- the peer begins ---- */

TEST(closing, answers_with_the_code)
{
    static const struct ws_case rows[] = {
        {{FRAME(FIN | CLOSE, "")}, "closed(1005) inactive", "close()"},
        {{FRAME(FIN | CLOSE, BYE)}, "closed(1000) inactive", "close(1000)"},
        {{FRAME(FIN | CLOSE, BYE "so long")}, "closed(1000,so long) inactive", "close(1000)"},
        {{FRAME(FIN | CLOSE, BYE "\xc3\xb6")}, "closed(1000,\xc3\xb6) inactive", "close(1000)"},
        {{FRAME(FIN | TEXT, "a"), FRAME(FIN | CLOSE, BYE), FRAME(FIN | TEXT, "b"),
          FRAME(FIN | PING, "c"), FRAME(FIN | CLOSE, BYE)},
         "text(a) closed(1000) inactive",
         "text(a) close(1000)"},
        {{FRAME(FIN | CLOSE, BYE), FRAME(FIN | 3, "")}, "closed(1000) inactive", "close(1000)"},
        {{FRAME(FIN | CLOSE, "\x03")}, LOST, "close(1002)"},
        {{FRAME(FIN | CLOSE, BYE "\xce\xba\xed\xa0\x80")}, LOST, "close(1007)"},
        {{FRAME(FIN | CLOSE, BYE "\xc3")}, LOST, "close(1007)"},
    };

    WS_RUN_CASES(rows, NULL);
}

TEST(closing, reasons_have_up_to_123_bytes)
{
    struct ws_fixture fixture = {0};
    char payload[126] = BYE, expected[160];

    memset(payload + 2, 'r', 123);
    (void)snprintf(expected, sizeof(expected), "opened closed(1000,%s) inactive", payload + 2);
    ws_open(&fixture, NULL);
    ws_receive_frame(&fixture, FIN | CLOSE, payload);
    assert_ws_seen(&fixture, expected);
    assert_ws_sent(&fixture, "close(1000)");
    ws_close(&fixture);
}

static void expect_code(unsigned code, bool is_valid)
{
    const char payload[] = {(char)(code >> 8), (char)code, 'x'};
    char seen[64], sent[32];
    const struct ws_case rows[] = {{{{FIN | CLOSE, payload, sizeof(payload)}}, seen, sent}};

    (void)snprintf(seen, sizeof(seen), is_valid ? "closed(%u,x) inactive" : LOST, code);
    (void)snprintf(sent, sizeof(sent), is_valid ? "close(%u)" : "close(1002)", code);
    WS_RUN_CASES(rows, NULL);
}

TEST(closing, codes_are_checked)
{
    static const unsigned valid[] = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010,
                                     1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999};
    static const unsigned invalid[] = {0,    1,    999,  1004, 1005, 1006, 1015,
                                       1016, 1100, 2000, 2999, 5000, 9999, 65535};

    for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
        expect_code(valid[i], true);
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        expect_code(invalid[i], false);
}

/* A server closes the connection; a client waits until it does, but not forever. */
TEST(closing, the_server_ends_the_connection)
{
    struct ws_fixture server = {0}, client = {.is_client = true};

    ws_open(&server, NULL);
    ws_receive_frame(&server, FIN | CLOSE, BYE);
    assert_ws_seen(&server, "opened closed(1000) inactive");
    ws_close(&server);
    ws_open(&client, NULL);
    ws_receive_frame(&client, FIN | CLOSE, BYE);
    assert_ws_seen(&client, "opened closed(1000)");
    weir_embedded_advance(client.embedded, weir_ms(4999));
    assert_ws_seen(&client, "");
    weir_embedded_advance(client.embedded, weir_ms(1));
    assert_ws_seen(&client, "inactive");
    ws_close(&client);
}

/* ---- we begin ---- */

TEST(closing, waits_for_the_answer)
{
    for (int is_client = 0; is_client < 2; is_client++) {
        struct ws_fixture fixture = {.is_client = is_client, .echoes = true};
        weir_promise *done;

        ws_open(&fixture, NULL);
        done = close_with(&fixture, 4000, "enough");
        assert_ws_sent(&fixture, "close(4000)");
        ws_receive_frame(&fixture, FIN | TEXT, "late");
        ws_receive_frame(&fixture, FIN | PING, "late");
        assert_ws_seen(&fixture, "opened text(late)");
        assert_false(weir_promise_is_done(done));
        ws_receive_frame(&fixture, FIN | CLOSE, "\x0f\xa0");
        ws_receive_frame(&fixture, FIN | TEXT, "too late");
        weir_embedded_end_input(fixture.embedded);
        assert_ws_seen(&fixture, "closed(4000) inactive");
        assert_ws_sent(&fixture, "");
        expect_done(done);
        ws_close(&fixture);
    }
}

TEST(closing, waits_no_longer_than_the_timeout)
{
    struct ws_fixture fixture = {0};
    weir_promise *done;

    ws_open(&fixture, WEIR_WS_OPTIONS(.close_timeout_ns = weir_seconds(2)));
    done = close_with(&fixture, 1000, NULL);
    weir_embedded_advance(fixture.embedded, weir_ms(1999));
    ws_receive_frame(&fixture, FIN | TEXT, "still here");
    assert_ws_seen(&fixture, "opened text(still here)");
    assert_false(weir_promise_is_done(done));
    weir_embedded_advance(fixture.embedded, weir_ms(1));
    assert_ws_seen(&fixture, LOST);
    assert_ws_sent(&fixture, "close(1000)");
    expect_done(done);
    ws_close(&fixture);
}

/* The answer, and the end of a stream that the peer does not end. The channel would wait 3 s. */
static void expect_end_after_300_ms(bool is_client, bool answers)
{
    struct ws_fixture fixture = {.is_client = is_client};
    weir_promise *done;

    ws_open_with(&fixture, WEIR_WS_OPTIONS(.close_timeout_ns = weir_ms(300)),
                 WEIR_EMBEDDED_OPTIONS(.peer_stays = true), NULL);
    done = close_with(&fixture, 1000, NULL);
    weir_embedded_advance(fixture.embedded, weir_ms(200));
    if (answers)
        ws_receive_frame(&fixture, FIN | CLOSE, BYE);
    weir_embedded_advance(fixture.embedded, weir_ms(99));
    assert_ws_seen(&fixture, answers ? "opened closed(1000)" : "opened");
    assert_false(weir_promise_is_done(done));
    weir_embedded_advance(fixture.embedded, weir_ms(1));
    assert_ws_seen(&fixture, answers ? "inactive" : LOST);
    expect_done(done);
    ws_close(&fixture);
}

TEST(closing, has_one_timeout)
{
    for (int i = 0; i < 4; i++)
        expect_end_after_300_ms(i % 2 == 1, i >= 2);
}

TEST(closing, rejects_other_channels)
{
    weir_embedded *embedded = NULL;
    weir_promise *done = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_promise_create(weir_channel_executor(weir_embedded_channel(embedded)), &done), 0);
    assert_int_equal(weir_ws_close(weir_embedded_channel(embedded), 1000, NULL, done), -EINVAL);
    assert_int_equal(weir_promise_result(done), -EINVAL);
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_promise_release(done);
    weir_embedded_release(embedded);
}

TEST(closing, a_timeout_that_is_off_never_ends)
{
    struct ws_fixture fixture = {0};

    ws_open(&fixture, WEIR_WS_OPTIONS(.close_timeout_ns = WEIR_OFF));
    weir_channel_close(weir_embedded_channel(fixture.embedded), NULL);
    weir_embedded_advance(fixture.embedded, weir_seconds(3600));
    assert_ws_seen(&fixture, "opened");
    ws_receive_frame(&fixture, FIN | CLOSE, BYE);
    assert_ws_seen(&fixture, "closed(1000) inactive");
    ws_close(&fixture);
}

TEST(closing, several_times_is_once)
{
    struct ws_fixture fixture = {0};
    weir_promise *done[3];

    ws_open(&fixture, NULL);
    for (unsigned i = 0; i < 3; i++)
        done[i] = close_with(&fixture, 4000 + i, NULL);
    weir_channel_close(weir_embedded_channel(fixture.embedded), NULL);
    ws_receive_frame(&fixture, FIN | CLOSE, "\x0f\xa0");
    assert_ws_sent(&fixture, "close(4000)");
    assert_ws_seen(&fixture, "opened closed(4000) inactive");
    for (unsigned i = 0; i < 3; i++)
        expect_done(done[i]);
    ws_close(&fixture);
}

TEST(closing, from_the_reading_handler)
{
    struct ws_fixture fixture = {.echoes = true, .closes = true};

    ws_open(&fixture, NULL);
    ws_receive_frame(&fixture, FIN | TEXT, "a");
    assert_ws_sent(&fixture, "text(a) close(1000)");
    ws_receive_frame(&fixture, FIN | CLOSE, BYE);
    assert_ws_seen(&fixture, "opened text(a) closed(1000) inactive");
    ws_close(&fixture);
}

TEST(closing, rejects_what_must_not_be_sent)
{
    static const unsigned codes[] = {0, 999, 1004, 1005, 1006, 1015, 2999, 5000};
    struct ws_fixture fixture = {0};
    weir_channel *channel;
    char reason[125];

    ws_open(&fixture, NULL);
    channel = weir_embedded_channel(fixture.embedded);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        assert_int_equal(weir_ws_close(channel, codes[i], NULL, NULL), -EINVAL);
    memset(reason, 'r', 124);
    reason[124] = '\0';
    assert_int_equal(weir_ws_close(channel, 1000, reason, NULL), -EINVAL);
    assert_ws_sent(&fixture, "");
    assert_int_equal(weir_ws_close(channel, 1000, reason + 1, NULL), 0);
    assert_ws_sent(&fixture, "close(1000)");
    ws_receive_frame(&fixture, FIN | CLOSE, BYE);
    assert_int_equal(weir_ws_close(channel, 1000, NULL, NULL), WEIR_ECLOSED);
    ws_close(&fixture);
}

TEST(closing, messages_behind_it_fail)
{
    struct ws_fixture fixture = {0};
    weir_ws_message *message;

    ws_open(&fixture, NULL);
    weir_ws_send_text(weir_embedded_channel(fixture.embedded), "before", NULL);
    weir_channel_close(weir_embedded_channel(fixture.embedded), NULL);
    assert_int_equal(weir_ws_message_create_from(WEIR_WS_TEXT, "a", 1, &message), 0);
    assert_int_equal(weir_embedded_write_outbound(fixture.embedded, weir_ws_message_msg(message)),
                     WEIR_ECLOSED);
    assert_ws_sent(&fixture, "text(before) close(1000)");
    ws_close(&fixture);
}

/* ---- without auto-read ---- */

/* An application that reads nothing still sees the answer, at once. */
TEST(closing, needs_no_request_to_read)
{
    for (int is_client = 0; is_client < 2; is_client++) {
        struct ws_fixture fixture = {.is_client = is_client};
        weir_promise *done;

        ws_open(&fixture, NULL);
        weir_channel_set_auto_read(weir_embedded_channel(fixture.embedded), false);
        weir_embedded_run(fixture.embedded);
        done = close_with(&fixture, 1001, NULL);
        ws_receive_frame(&fixture, FIN | PING, "p");
        ws_receive_frame(&fixture, FIN | CLOSE, "\x03\xe9");
        weir_embedded_end_input(fixture.embedded);
        assert_ws_seen(&fixture, "opened closed(1001) inactive");
        expect_done(done);
        ws_close(&fixture);
    }
}

/* A message that nobody requested holds up what is behind it, until the timeout. */
TEST(closing, holds_one_message_that_was_not_requested)
{
    struct ws_fixture fixture = {0};
    weir_promise *done;

    ws_open(&fixture, NULL);
    weir_channel_set_auto_read(weir_embedded_channel(fixture.embedded), false);
    weir_embedded_run(fixture.embedded);
    done = close_with(&fixture, 1000, NULL);
    ws_receive_frame(&fixture, FIN | TEXT, "a");
    ws_receive_frame(&fixture, FIN | TEXT, "b");
    ws_receive_frame(&fixture, FIN | CLOSE, BYE);
    assert_ws_seen(&fixture, "opened");
    weir_channel_request_read(weir_embedded_channel(fixture.embedded));
    assert_ws_seen(&fixture, "text(a)");
    weir_embedded_advance(fixture.embedded, weir_seconds(5));
    assert_ws_seen(&fixture, LOST);
    expect_done(done);
    ws_close(&fixture);
}

/* ---- peers that do not receive ---- */

/* The close frame can not be sent: the output is released, after the timeout. */
TEST(closing, a_peer_that_does_not_receive_is_reset)
{
    for (int breaks = 0; breaks < 2; breaks++) {
        struct ws_fixture fixture = {0};

        ws_open_with(&fixture, NULL, WEIR_EMBEDDED_OPTIONS(.socket_space = 3), NULL);
        weir_ws_send_text(weir_embedded_channel(fixture.embedded), "abc", NULL);
        if (breaks)
            ws_receive_frame(&fixture, FIN | 3, "");
        else
            weir_channel_close(weir_embedded_channel(fixture.embedded), NULL);
        assert_ws_seen(&fixture, "opened");
        weir_embedded_advance(fixture.embedded, weir_ms(4900));
        weir_embedded_make_space(fixture.embedded, 5);
        weir_embedded_advance(fixture.embedded, weir_ms(5000));
        assert_ws_seen(&fixture, ""); /* it is receiving */
        weir_embedded_advance(fixture.embedded, weir_ms(5000));
        assert_ws_seen(&fixture, LOST);
        assert_int_equal(weir_channel_pending_bytes(weir_embedded_channel(fixture.embedded)), 0);
        weir_embedded_release(fixture.embedded);
    }
}
