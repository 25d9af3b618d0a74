/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed messages through a connection: all terms, lengths and fragmentations; bombs and
 * misuse.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <string.h>

#include "support/memory.h"
#include "support/protocol/websocket/ws_case.h"

#define MIB ((size_t)1024 * 1024)
#define PLAIN ((weir__ws_deflate_terms){.is_on = true, .compress_bits = 12, .decompress_bits = 15})

static void put_pattern(struct ws_fixture *fixture, weir_buf *to, unsigned opcode, size_t length,
                        size_t frame)
{
    weir_buf *pattern;

    assert_int_equal(weir_buf_create(64, 0, &pattern), 0);
    ws_put_pattern(pattern, length);
    ws_put_compressed(fixture, to, opcode, weir_buf_span(pattern), frame);
    weir_buf_release(pattern);
}

/* Two messages, so that the second one may refer to the first. */
static void expect_echo(bool is_client, bool streams, const weir__ws_deflate_terms *terms,
                        size_t length, size_t frame, size_t piece)
{
    struct ws_fixture fixture = {.is_client = is_client, .echoes = true};
    weir_buf *bytes;

    ws_open_deflate(&fixture, WEIR_WS_OPTIONS(.stream = streams), terms);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
        put_pattern(&fixture, bytes, i == 0 ? TEXT : BINARY, length, frame);
        ws_put_frame(&fixture, bytes, FIN | PING, "p", 1);
        ws_receive(&fixture, bytes, piece);
        assert_null(strchr(ws_seen(&fixture), '?'));
        assert_int_equal(fixture.seen_length, length);
        assert_null(strchr(ws_sent(&fixture), '?'));
        assert_int_equal(fixture.sent_length, length);
    }
    ws_close(&fixture);
}

TEST(compression, every_length)
{
    static const size_t lengths[] = {0, 1, 16, 63, 64, 256, 1024, 4096, 8192, 32768, 131072};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        expect_echo(false, false, &PLAIN, lengths[i], SIZE_MAX, SIZE_MAX);
        expect_echo(true, false, &PLAIN, lengths[i], SIZE_MAX, 1000);
        expect_echo(false, true, &PLAIN, lengths[i], SIZE_MAX, 1000);
    }
}

TEST(compression, all_terms)
{
    for (uint8_t bits = 9; bits <= 15; bits += 3)
        for (int alone = 0; alone < 4; alone++) {
            const weir__ws_deflate_terms terms = {.is_on = true,
                                                  .compress_bits = bits,
                                                  .decompress_bits = (uint8_t)(24 - bits),
                                                  .compress_alone = (alone & 1) != 0,
                                                  .decompress_alone = (alone & 2) != 0};

            expect_echo(alone % 2 == 0, false, &terms, 20000, SIZE_MAX, 5000);
        }
}

TEST(compression, fragments)
{
    static const size_t frames[] = {1, 7, 256};
    static const size_t pieces[] = {1, 100, SIZE_MAX};

    for (size_t f = 0; f < sizeof(frames) / sizeof(frames[0]); f++)
        for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
            expect_echo(false, false, &PLAIN, 3000, frames[f], pieces[p]);
            expect_echo(true, true, &PLAIN, 3000, frames[f], pieces[p]);
        }
}

TEST(compression, compressed_and_plain_messages_may_be_mixed)
{
    struct ws_fixture fixture = {.echoes = true};
    weir_buf *bytes;

    ws_open_deflate(&fixture, NULL, &PLAIN);
    assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
    ws_put_frame(&fixture, bytes, FIN | TEXT, "plain", 5);
    put_pattern(&fixture, bytes, BINARY, 100, 10);
    ws_put_frame(&fixture, bytes, TEXT, "pl", 2);
    ws_put_frame(&fixture, bytes, FIN | PING, "p", 1);
    ws_put_frame(&fixture, bytes, FIN, "ain", 3);
    put_pattern(&fixture, bytes, TEXT, 63, 10);
    ws_receive(&fixture, bytes, SIZE_MAX);
    assert_ws_sent(&fixture,
                   "text(plain) zbinary(#100) pong(p) text(plain) "
                   "text(abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk)");
    ws_close(&fixture);
}

/* RFC 7692, 7.2.3: "Hello" as in the examples. */
TEST(compression, examples_of_the_standard)
{
    static const struct ws_case rows[] = {
        {{FRAME(FIN | RSV1 | TEXT, "\xf2\x48\xcd\xc9\xc9\x07\x00")},
         "text(Hello) " LOST,
         "text(Hello)"},
        {{FRAME(RSV1 | TEXT, "\xf2\x48\xcd"), FRAME(FIN, "\xc9\xc9\x07\x00")},
         "text(Hello) " LOST,
         "text(Hello)"},
        {{FRAME(FIN | RSV1 | TEXT, "\xf2\x48\xcd\xc9\xc9\x07\x00"),
          FRAME(FIN | RSV1 | TEXT, "\xf2\x00\x11\x00\x00")},
         "text(Hello) text(Hello) " LOST,
         "text(Hello) text(Hello)"},
        {{FRAME(FIN | RSV1 | TEXT, "\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00")},
         "text(Hello) " LOST,
         "text(Hello)"},
        {{FRAME(FIN | RSV1 | TEXT, "\xf3\x48\xcd\xc9\xc9\x07\x00\x00")},
         "text(Hello) " LOST,
         "text(Hello)"},
        {{FRAME(FIN | RSV1 | TEXT, "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00")},
         "text(Hello) " LOST,
         "text(Hello)"},
        {{FRAME(FIN | RSV1 | TEXT, "\x00")}, "text() " LOST, "text()"},
        {{FRAME(RSV1 | TEXT, ""), FRAME(0, ""), FRAME(FIN, "\x00")}, "text() " LOST, "text()"},
    };

    ws_run_cases(rows, sizeof(rows) / sizeof(rows[0]), NULL, &PLAIN);
}

TEST(compression, misuse_closes)
{
    static const struct ws_case rows[] = {
        {{FRAME(FIN | RSV1 | PING, "")}, LOST, "close(1002)"},
        {{FRAME(FIN | RSV1 | CLOSE, "")}, LOST, "close(1002)"},
        {{FRAME(FIN | RSV2 | TEXT, "")}, LOST, "close(1002)"},
        {{FRAME(FIN | RSV1 | RSV3 | TEXT, "")}, LOST, "close(1002)"},
        {{FRAME(RSV1 | TEXT, "\xf2\x48\xcd"), FRAME(FIN | RSV1, "\xc9\xc9\x07\x00")},
         LOST,
         "close(1002)"},
        {{FRAME(TEXT, "a"), FRAME(FIN | RSV1, "b")}, LOST, "close(1002)"},
        {{FRAME(FIN | RSV1 | TEXT, "not deflate")}, LOST, "close(1007)"},
        {{FRAME(FIN | RSV1 | BINARY, "\xff\xff\xff")}, LOST, "close(1007)"},
        {{FRAME(FIN | RSV1 | TEXT, "\xf2\x48\xcd")}, LOST, "close(1007)"},
        {{FRAME(FIN | RSV1 | TEXT, "\x00\x01\x00\xfe\xff\xff\x00")}, LOST, "close(1007)"}, /* ff */
    };

    ws_run_cases(rows, sizeof(rows) / sizeof(rows[0]), NULL, &PLAIN);
}

/* ---- limits ---- */

static weir_buf *create_bomb(struct ws_fixture *fixture, size_t length)
{
    weir_buf *zeros, *bytes;

    assert_int_equal(weir_buf_create(length, 0, &zeros), 0);
    assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
    memset(weir_buf_space(zeros), 'z', length);
    assert_int_equal(weir_buf_advance(zeros, length), 0);
    ws_put_compressed(fixture, bytes, TEXT, weir_buf_span(zeros), SIZE_MAX);
    weir_buf_release(zeros);
    return bytes;
}

TEST(compression, a_bomb_closes)
{
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        struct ws_fixture fixture = {0};
        size_t max = is_exact ? MIB : MIB - 1;

        ws_open_deflate(&fixture, WEIR_WS_OPTIONS(.max_message = max), &PLAIN);
        ws_receive(&fixture, create_bomb(&fixture, MIB), SIZE_MAX);
        assert_ws_sent(&fixture, is_exact ? "" : "close(1009)");
        assert_ws_seen(&fixture, is_exact ? "opened text(?1048576)" : "opened " LOST);
        ws_close(&fixture);
    }
}

static void count_part(weir_ctx *ctx, weir_msg *msg)
{
    size_t *sizes = *(size_t **)weir_ctx_state(ctx);
    size_t size = weir_msg_size(msg);

    sizes[0] += size;
    sizes[1] = size > sizes[1] ? size : sizes[1];
    weir_msg_release(msg);
}

static int init_counter(void *state, const void *options)
{
    memcpy(state, options, sizeof(size_t *));
    return 0;
}

static const weir_handler counter = {
    .name = "counter", .state_size = sizeof(size_t *), .init = init_counter, .read = count_part};

/* A streamed message is decompressed in steps: no part is much larger than what arrives. */
TEST(compression, a_streamed_bomb_comes_in_parts)
{
    struct ws_fixture fixture = {0};
    size_t sizes[2] = {0}, *pointer = sizes;

    ws_open_deflate(&fixture, WEIR_WS_OPTIONS(.stream = true, .max_message = 64 * MIB), &PLAIN);
    assert_int_equal(weir_pipeline_add_before(weir_embedded_pipeline(fixture.embedded),
                                              "application", &counter, &pointer),
                     0);
    ws_receive(&fixture, create_bomb(&fixture, 8 * MIB), SIZE_MAX);
    assert_int_equal(sizes[0], 8 * MIB);
    assert_true(sizes[1] <= 600 * 1024);
    ws_close(&fixture);
}

/* ---- sending ---- */

static int send_part(struct ws_fixture *fixture, const char *text, bool is_first, bool is_last)
{
    weir_ws_message *message;

    assert_int_equal(weir_ws_message_create_from(WEIR_WS_TEXT, text, strlen(text), &message), 0);
    weir_ws_message_set_part(message, is_first, is_last);
    return weir_embedded_write_outbound(fixture->embedded, weir_ws_message_msg(message));
}

TEST(compression, parts_are_sent_as_they_are_written)
{
    for (int is_client = 0; is_client < 2; is_client++) {
        struct ws_fixture fixture = {.is_client = is_client};
        weir_ws_message *ping;

        ws_open_deflate(&fixture, NULL, &PLAIN);
        assert_int_equal(send_part(&fixture, "one", true, false), 0);
        assert_ws_sent(&fixture, "ztext(one*");
        assert_int_equal(weir_ws_message_create_from(WEIR_WS_PING, "p", 1, &ping), 0);
        assert_int_equal(weir_embedded_write_outbound(fixture.embedded, weir_ws_message_msg(ping)),
                         0);
        assert_int_equal(send_part(&fixture, "", false, false), 0);
        assert_int_equal(send_part(&fixture, "two", false, true), 0);
        assert_ws_sent(&fixture, "ping(p) +* +two)");
        assert_int_equal(send_part(&fixture, "short", true, true), 0);
        assert_ws_sent(&fixture, "text(short)");
        ws_close(&fixture);
    }
}

/* Long messages would take the loop for too long. */
TEST(compression, is_for_messages_of_medium_length)
{
    static const struct {
        size_t length;
        const char *sent;
    } rows[] = {
        {69, "binary(#69)"}, {70, "zbinary(#70)"}, {90, "zbinary(#90)"}, {91, "binary(#91)"}};
    struct ws_fixture fixture = {0};

    ws_open_deflate(&fixture, WEIR_WS_OPTIONS(.deflate_min = 70, .deflate_max = 90), &PLAIN);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir_ws_message *message;
        weir_buf *pattern;

        assert_int_equal(weir_buf_create(64, 0, &pattern), 0);
        ws_put_pattern(pattern, rows[i].length);
        assert_int_equal(weir_ws_message_create(WEIR_WS_BINARY, pattern, &message), 0);
        assert_int_equal(
            weir_embedded_write_outbound(fixture.embedded, weir_ws_message_msg(message)), 0);
        assert_ws_sent(&fixture, rows[i].sent);
    }
    ws_close(&fixture);
}

static int send_pattern(struct ws_fixture *fixture, size_t length)
{
    weir_ws_message *message;
    weir_buf *pattern;

    assert_int_equal(weir_buf_create(64, 0, &pattern), 0);
    ws_put_pattern(pattern, length);
    assert_int_equal(weir_ws_message_create(WEIR_WS_BINARY, pattern, &message), 0);
    return weir_embedded_write_outbound(fixture->embedded, weir_ws_message_msg(message));
}

/* Control frames never are, also if they are copied, behind a compressed message. */
TEST(compression, is_not_for_pings_of_several_channels)
{
    struct ws_fixture fixture = {0};
    weir_ws_message *ping;

    ws_open_deflate(&fixture, NULL, &PLAIN);
    assert_int_equal(send_pattern(&fixture, 1000), 0);
    assert_int_equal(weir_ws_message_create_from(WEIR_WS_PING, "ping", 4, &ping), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_embedded_write_outbound(fixture.embedded,
                                                      weir_msg_retain(weir_ws_message_msg(ping))),
                         0);
    weir_msg_release(weir_ws_message_msg(ping));
    assert_ws_sent(&fixture, "zbinary(#1000) ping(ping) ping(ping)");
    ws_close(&fixture);
}

/* A message that the compressor has seen and the peer has not: the next one would refer to it. */
TEST(compression, that_fails_ends_the_connection)
{
    bool has_failed = true;

    for (unsigned n = 1; has_failed; n++) {
        struct ws_fixture fixture = {0};
        weir_ws_message *message;
        weir_channel *channel;
        weir_promise *done;
        weir_buf *pattern;

        ws_open_deflate(&fixture, NULL, &PLAIN);
        channel = weir_embedded_channel(fixture.embedded);
        assert_int_equal(weir_buf_create(64, 0, &pattern), 0);
        ws_put_pattern(pattern, 20000);
        assert_int_equal(weir_ws_message_create(WEIR_WS_BINARY, pattern, &message), 0);
        assert_int_equal(weir_promise_create(weir_channel_executor(channel), &done), 0);
        test_memory_fail_at(n);
        weir_write(weir_pipeline_find(weir_channel_pipeline(channel), "application"),
                   weir_ws_message_msg(message), done);
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_channel_flush(channel);
        weir_embedded_run(fixture.embedded);
        assert_int_equal(weir_promise_result(done) == 0, weir_channel_is_open(channel));
        assert_int_equal(weir_promise_result(done) == 0, !has_failed);
        weir_promise_release(done);
        ws_close(&fixture);
    }
}

/* Nor is a frame sent behind one that was refused. */
TEST(compression, that_is_refused_ends_the_connection)
{
    const weir_channel_options channel = {.size = sizeof(channel), .write_cap = 2000};
    struct ws_fixture fixture = {0};
    weir_promise *done;
    weir_ws_message *message;

    ws_open_with(&fixture, NULL, WEIR_EMBEDDED_OPTIONS(.channel = &channel, .socket_space = 1),
                 &PLAIN);
    for (int i = 0, result = 0; result == 0; i++) {
        weir_buf *pattern;

        assert_int_equal(weir_buf_create(64, 0, &pattern), 0);
        ws_put_pattern(pattern, 1000 + (size_t)i);
        assert_int_equal(weir_ws_message_create(WEIR_WS_BINARY, pattern, &message), 0);
        assert_int_equal(weir_promise_create(
                             weir_channel_executor(weir_embedded_channel(fixture.embedded)), &done),
                         0);
        weir_channel_write_and_flush(weir_embedded_channel(fixture.embedded),
                                     weir_ws_message_msg(message), done);
        weir_embedded_run(fixture.embedded);
        result = weir_promise_is_done(done) ? weir_promise_result(done) : 0;
        assert_int_equal(result == 0,
                         weir_channel_is_open(weir_embedded_channel(fixture.embedded)));
        weir_promise_release(done);
    }
    ws_close(&fixture);
}

/* One that is cancelled in time has never been compressed; later it is too late. */
TEST(compression, is_not_for_messages_that_are_cancelled)
{
    struct ws_fixture fixture = {0};
    weir_channel *channel;
    weir_promise *done[2];

    ws_open_deflate(&fixture, NULL, &PLAIN);
    channel = weir_embedded_channel(fixture.embedded);
    for (int i = 0; i < 2; i++) {
        weir_ws_message *message;
        weir_buf *pattern;

        assert_int_equal(weir_buf_create(64, 0, &pattern), 0);
        ws_put_pattern(pattern, 1000 + (size_t)i);
        assert_int_equal(weir_ws_message_create(WEIR_WS_BINARY, pattern, &message), 0);
        assert_int_equal(weir_promise_create(weir_channel_executor(channel), &done[i]), 0);
        if (i == 0)
            assert_int_equal(weir_promise_cancel(done[i]), 0);
        weir_channel_write(channel, weir_ws_message_msg(message), done[i]);
        if (i == 1)
            assert_int_equal(weir_promise_cancel(done[i]), -EBUSY);
    }
    assert_int_equal(send_pattern(&fixture, 1002), 0);
    assert_ws_sent(&fixture, "zbinary(#1001) zbinary(#1002)");
    for (int i = 0; i < 2; i++)
        weir_promise_release(done[i]);
    ws_close(&fixture);
}
