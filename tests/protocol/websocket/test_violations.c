/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that break the protocol: reserved bits, opcodes, masks, lengths.
 */
#include <weir/websocket.h>

#include <string.h>

#include "support/protocol/websocket/ws_case.h"

#define FAILED LOST
#define BROKEN "close(1002)"

TEST(violations, reserved_bits_close)
{
    for (unsigned bits = 1; bits < 8; bits++)
        for (unsigned opcode = 0; opcode < 16; opcode++) {
            const struct ws_case rows[] = {
                {{FRAME(FIN | TEXT, "a"), FRAME(FIN | bits << 4 | opcode, "b"),
                  FRAME(FIN | TEXT, "c")},
                 "text(a) " FAILED,
                 "text(a) " BROKEN},
            };

            WS_RUN_CASES(rows, NULL);
        }
}

TEST(violations, reserved_opcodes_close)
{
    for (unsigned opcode = 3; opcode < 16; opcode++) {
        const struct ws_case rows[] = {
            {{FRAME(FIN | TEXT, "a"), FRAME(FIN | opcode, "")},
             "text(a) " FAILED,
             "text(a) " BROKEN},
            {{FRAME(FIN | opcode, "b"), FRAME(FIN | PING, "c")}, FAILED, BROKEN},
            {{FRAME(opcode, "b")}, FAILED, BROKEN},
        };

        if (opcode < 8 || opcode > 10)
            WS_RUN_CASES(rows, NULL);
    }
}

static void expect_broken(bool is_client, const char *bytes, size_t length)
{
    struct ws_fixture fixture = {.is_client = is_client, .echoes = true};
    weir_buf *in;

    ws_open(&fixture, NULL);
    assert_int_equal(weir_buf_create_from(bytes, length, &in), 0);
    ws_receive(&fixture, in, SIZE_MAX);
    assert_ws_seen(&fixture, "opened " FAILED);
    assert_ws_sent(&fixture, BROKEN);
    ws_close(&fixture);
}

TEST(violations, a_server_requires_masks)
{
    expect_broken(false, "\x81\x01", 2);
    expect_broken(false, "\x89\x00", 2);
    expect_broken(false, "\x88\x02\x03\xe8", 4);
}

TEST(violations, a_client_rejects_masks)
{
    expect_broken(true, "\x81\x81", 2);
    expect_broken(true, "\x8a\x80", 2);
}

TEST(violations, lengths_are_in_their_shortest_form)
{
    static const struct {
        const char *bytes;
        size_t length;
    } rows[] = {
        {"\x81\x7e\x00\x7d", 4},
        {"\x81\x7e\x00\x00", 4},
        {"\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", 10},
        {"\x82\x7f\x80\x00\x00\x00\x00\x01\x00\x00", 10},
        {"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char masked[14] = {0};

        expect_broken(true, rows[i].bytes, rows[i].length);
        memcpy(masked, rows[i].bytes, rows[i].length);
        masked[1] = (char)(masked[1] | 0x80);
        expect_broken(false, masked, rows[i].length + 4);
    }
}

TEST(violations, control_frames_are_short_and_whole)
{
    expect_broken(true, "\x89\x7e", 2);
    expect_broken(true, "\x8a\x7f", 2);
    expect_broken(true, "\x88\x7e", 2);
    expect_broken(true, "\x09\x00", 2);
    expect_broken(true, "\x0a\x00", 2);
    expect_broken(true, "\x08\x00", 2);
    expect_broken(false, "\x89\xfe", 2);
    expect_broken(false, "\x09\x80", 2);
}

/* The application hears nothing of what follows, in the same read or later. */
TEST(violations, input_behind_is_discarded)
{
    struct ws_fixture fixture = {.echoes = true};

    ws_open_with(&fixture, NULL, WEIR_EMBEDDED_OPTIONS(.peer_stays = true), NULL);
    ws_receive_frame(&fixture, FIN | 3, "");
    ws_receive_frame(&fixture, FIN | TEXT, "late");
    ws_receive_frame(&fixture, FIN | CLOSE, "\x03\xe8");
    weir_embedded_end_input(fixture.embedded);
    assert_ws_seen(&fixture, "opened " FAILED);
    assert_ws_sent(&fixture, BROKEN);
    ws_close(&fixture);
}
