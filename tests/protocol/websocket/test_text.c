/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts are UTF-8, whole and in parts, and a byte that can not follow closes at once.
 */
#include <weir/websocket.h>

#include <string.h>

#include "support/protocol/websocket/ws_case.h"

#define KOSME "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"

static const struct {
    const char *bytes;
    size_t length;
    int invalid_at; /* the first byte that can not follow; -1 = valid; the length = incomplete */
} rows[] = {
#define ROW(bytes, invalid_at)               \
    {                                        \
        bytes, sizeof(bytes) - 1, invalid_at \
    }
    ROW("", -1),
    ROW("Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!", -1),
    ROW(KOSME, -1),
    ROW("\0", -1),
    ROW("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", -1),
    ROW("\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbd", -1),
    ROW("\xef\xbf\xbe\xef\xbf\xbf\xf0\x9f\xbf\xbe\xf4\x8f\xbf\xbe", -1), /* non-characters */
    ROW("\x80", 0),
    ROW("\xbf" KOSME, 0),
    ROW(KOSME "\xed\xa0\x80"
              "edited",
        12), /* a surrogate */
    ROW("\xed\xbf\xbf", 1),
    ROW("\xc0\xaf", 0), /* not in the shortest form */
    ROW("\xc1\xbf", 0),
    ROW("\xe0\x80\xaf", 1),
    ROW("\xe0\x9f\xbf", 1),
    ROW("\xf0\x80\x80\xaf", 1),
    ROW("\xf0\x8f\xbf\xbf", 1),
    ROW(KOSME "\xf4\x90\x80\x80"
              "edited",
        12), /* above U+10FFFF */
    ROW("\xf5\x80\x80\x80", 0),
    ROW("\xf8\x88\x80\x80\x80", 0),
    ROW("\xfe", 0),
    ROW("\xff", 0),
    ROW("a\xc3"
        "b",
        2),
    ROW("a\xe1\xbd"
        "b",
        3),
    ROW("a\xf0\x9f\x98"
        "b",
        4),
    ROW("\xce", 1), /* incomplete */
    ROW("a\xe1\xbd", 3),
    ROW("a\xf0\x9f\x98", 4),
#undef ROW
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void put_text(struct ws_fixture *fixture, size_t row, size_t frame, size_t piece)
{
    size_t sent = 0, length = rows[row].length;
    weir_buf *bytes;

    assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
    do {
        size_t part = length - sent < frame ? length - sent : frame;

        ws_put_frame(fixture, bytes,
                     (sent + part == length ? FIN : 0) | (sent == 0 ? TEXT : CONTINUATION),
                     rows[row].bytes + sent, part);
        sent += part;
    } while (sent < length);
    ws_receive(fixture, bytes, piece);
}

TEST(text, is_checked_however_it_arrives)
{
    static const size_t sizes[] = {1, 2, 3, SIZE_MAX};

    for (size_t row = 0; row < ROWS; row++)
        for (size_t f = 0; f < 4; f++)
            for (size_t p = 0; p < 4; p++) {
                struct ws_fixture fixture = {.is_client = p % 2 == 0};

                ws_open(&fixture, WEIR_WS_OPTIONS(.stream = f == 1));
                (void)ws_seen(&fixture);
                put_text(&fixture, row, sizes[f], sizes[p]);
                if (rows[row].invalid_at < 0) {
                    assert_ws_sent(&fixture, "");
                    assert_int_equal(fixture.seen_length, rows[row].length);
                } else {
                    assert_ws_sent(&fixture, "close(1007)");
                    assert_non_null(strstr(ws_seen(&fixture), LOST));
                }
                ws_close(&fixture);
            }
}

/* The frame announces more bytes than ever arrive: the wrong one closes. */
TEST(text, fails_at_the_first_wrong_byte)
{
    for (size_t row = 0; row < ROWS; row++) {
        struct ws_fixture fixture = {.is_client = true};
        int invalid_at = rows[row].invalid_at;
        weir_buf *bytes;

        if (invalid_at < 0 || (size_t)invalid_at == rows[row].length)
            continue;
        ws_open(&fixture, NULL);
        assert_int_equal(weir_buf_create_from("\x81\x70", 2, &bytes), 0);
        assert_int_equal(weir_buf_write_bytes(bytes, rows[row].bytes, (size_t)invalid_at), 0);
        ws_receive(&fixture, bytes, 3);
        assert_ws_sent(&fixture, "");
        assert_int_equal(weir_buf_create_from(rows[row].bytes + invalid_at, 1, &bytes), 0);
        ws_receive(&fixture, bytes, 1);
        assert_ws_sent(&fixture, "close(1007)");
        ws_close(&fixture);
    }
}

TEST(text, of_binary_messages_and_control_frames_is_anything)
{
    static const struct ws_case cases[] = {
        {{FRAME(FIN | BINARY, "\xff"), FRAME(FIN | PING, "\xfe")},
         "binary(\\xff) " LOST,
         "binary(\\xff) pong(\\xfe)"},
        {{FRAME(BINARY, "\xff"), FRAME(FIN, "\xff")},
         "binary(\\xff\\xff) " LOST,
         "binary(\\xff\\xff)"},
    };

    WS_RUN_CASES(cases, NULL);
}

/* A message does not see the incomplete character of the one before it. */
TEST(text, begins_anew_with_each_message)
{
    static const struct ws_case cases[] = {
        {{FRAME(TEXT, "\xc3"), FRAME(FIN, "\xb6"), FRAME(FIN | TEXT, "\xb6")},
         "text(\\xc3\\xb6) " LOST,
         "text(\\xc3\\xb6) close(1007)"},
        {{FRAME(TEXT, "\xc3"), FRAME(FIN | PING, "\xff"), FRAME(FIN, "\xb6"),
          FRAME(FIN | TEXT, "a")},
         "text(\\xc3\\xb6) text(a) " LOST,
         "pong(\\xff) text(\\xc3\\xb6) text(a)"},
    };

    WS_RUN_CASES(cases, NULL);
}
