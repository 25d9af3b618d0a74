/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of all lengths in frames of all lengths, and the limit.
 */
#include <weir/websocket.h>

#include <string.h>

#include "support/protocol/websocket/ws_case.h"

#define MIB ((size_t)1024 * 1024)

/* Appends a message of the pattern, in frames of at most `frame` bytes. */
static void put_message(const struct ws_fixture *fixture, weir_buf *to, unsigned opcode,
                        size_t length, size_t frame)
{
    weir_buf *payload;
    size_t sent = 0;

    assert_int_equal(weir_buf_create(64, 0, &payload), 0);
    ws_put_pattern(payload, length);
    do {
        size_t part = length - sent < frame ? length - sent : frame;
        bool is_last = sent + part == length;

        ws_put_frame(fixture, to, (is_last ? FIN : 0) | (sent == 0 ? opcode : CONTINUATION),
                     weir_buf_bytes(payload) + sent, part);
        sent += part;
    } while (sent < length);
    weir_buf_release(payload);
}

static void expect_echo(bool is_client, unsigned opcode, size_t length, size_t frame, size_t piece)
{
    struct ws_fixture fixture = {.is_client = is_client, .echoes = true};
    weir_buf *bytes;

    ws_open(&fixture, NULL);
    assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
    put_message(&fixture, bytes, opcode, length, frame);
    ws_put_frame(&fixture, bytes, FIN | PING, "x", 1);
    ws_receive(&fixture, bytes, piece);
    assert_null(strchr(ws_seen(&fixture), '?'));
    assert_int_equal(fixture.seen_length, length);
    assert_null(strchr(ws_sent(&fixture), '?'));
    assert_int_equal(fixture.sent_length, length);
    ws_close(&fixture);
}

TEST(framing, every_length_in_every_form)
{
    static const size_t lengths[] = {0, 1, 125, 126, 127, 128, 511, 512, 513, 1024, 1025};
    static const size_t pieces[] = {1, 7, 100, SIZE_MAX};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++)
            for (unsigned opcode = TEXT; opcode <= BINARY; opcode++) {
                expect_echo(false, opcode, lengths[i], SIZE_MAX, pieces[p]);
                expect_echo(true, opcode, lengths[i], SIZE_MAX, pieces[p]);
            }
}

TEST(framing, lengths_around_64_kib)
{
    static const size_t pieces[] = {997, 32768, SIZE_MAX};

    for (size_t length = 65534; length <= 65537; length++)
        for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
            expect_echo(false, TEXT, length, SIZE_MAX, pieces[p]);
            expect_echo(true, BINARY, length, SIZE_MAX, pieces[p]);
        }
    expect_echo(false, BINARY, 65535, SIZE_MAX, 1);
}

/* Frames of 1 to 2000 bytes, split by the reads at other places. */
TEST(framing, messages_in_frames_of_all_lengths)
{
    static const size_t frames[] = {1, 13, 125, 126, 600, 1300, 2000};
    static const size_t pieces[] = {17, 1300, SIZE_MAX};

    for (size_t f = 0; f < sizeof(frames) / sizeof(frames[0]); f++)
        for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
            expect_echo(false, TEXT, 4000, frames[f], pieces[p]);
            expect_echo(true, BINARY, 4000, frames[f], pieces[p]);
        }
}

TEST(framing, large_messages)
{
    expect_echo(false, BINARY, 16 * MIB, SIZE_MAX, 65536);
    expect_echo(false, TEXT, MIB, SIZE_MAX, SIZE_MAX);
    expect_echo(true, TEXT, 4 * MIB, 65536, 131072);
    expect_echo(false, BINARY, MIB, 64, 131072);
}

/* The header is enough: the payload is not waited for. */
TEST(framing, a_message_above_the_limit_closes)
{
    static const uint8_t header[] = {0x82, 127, 0, 0, 0, 0, 1, 0, 0, 1};
    struct ws_fixture fixture = {.is_client = true};
    weir_buf *bytes;

    ws_open(&fixture, NULL);
    assert_int_equal(weir_buf_create_from(header, sizeof(header), &bytes), 0);
    ws_receive(&fixture, bytes, SIZE_MAX);
    assert_ws_seen(&fixture, "opened " LOST);
    assert_ws_sent(&fixture, "close(1009)");
    ws_close(&fixture);
}

TEST(framing, the_limit_counts_all_frames)
{
    static const struct ws_case rows[] = {
        {{FRAME(FIN | TEXT, "12345"), FRAME(FIN | BINARY, "12345")},
         "text(12345) binary(12345) " LOST,
         "text(12345) binary(12345)"},
        {{FRAME(FIN | TEXT, "123456")}, LOST, "close(1009)"},
        {{FRAME(TEXT, "123"), FRAME(0, "45"), FRAME(FIN, "")}, "text(12345) " LOST, "text(12345)"},
        {{FRAME(TEXT, "123"), FRAME(0, "45"), FRAME(FIN, "6")}, LOST, "close(1009)"},
        {{FRAME(TEXT, "123"), FRAME(FIN | PING, "1234567"), FRAME(FIN, "45")},
         "text(12345) " LOST,
         "pong(1234567) text(12345)"},
    };

    WS_RUN_CASES(rows, WEIR_WS_OPTIONS(.max_message = 5));
}
