/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: what they are made of, writing them, and one that is written to several channels.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "support/memory.h"
#include "support/protocol/websocket/ws_case.h"

static weir_ws_message *create(enum weir_ws_type type, const char *text)
{
    weir_ws_message *message;

    assert_int_equal(weir_ws_message_create_from(type, text, strlen(text), &message), 0);
    return message;
}

static int write_message(struct ws_fixture *fixture, weir_ws_message *message)
{
    return weir_embedded_write_outbound(fixture->embedded, weir_ws_message_msg(message));
}

TEST(message, has_type_and_content)
{
    weir_ws_message *message = create(WEIR_WS_BINARY, "abc"), *empty;
    weir_buf *buf;

    assert_int_equal(weir_ws_message_type(message), WEIR_WS_BINARY);
    assert_true(weir_span_equal(weir_ws_message_bytes(message), weir_span_of_text("abc")));
    assert_int_equal(weir_msg_size(weir_ws_message_msg(message)), 3);
    assert_true(weir_ws_message_is_first(message) && weir_ws_message_is_last(message));
    assert_ptr_equal(weir_ws_message_of(weir_ws_message_msg(message)), message);
    assert_null(weir_ws_message_of(weir_buf_msg(weir_ws_message_payload(message))));
    assert_null(weir_ws_message_of(NULL));
    weir_msg_release(weir_ws_message_msg(message));
    assert_int_equal(weir_ws_message_create(WEIR_WS_TEXT, NULL, &empty), 0);
    assert_int_equal(weir_ws_message_bytes(empty).length, 0);
    weir_msg_release(weir_ws_message_msg(empty));
    assert_int_equal(weir_buf_create_from("xyz", 3, &buf), 0);
    assert_int_equal(weir_ws_message_create(WEIR_WS_PONG, buf, &message), 0);
    assert_ptr_equal(weir_ws_message_payload(message), buf);
    weir_msg_release(weir_ws_message_msg(message));
}

TEST(message, rejects_unknown_types_and_long_pings)
{
    const char zeros[126] = {0};
    weir_ws_message *message;
    weir_buf *buf;

    assert_int_equal(weir_ws_message_create_from((enum weir_ws_type)8, "", 0, &message), -EINVAL);
    assert_int_equal(weir_ws_message_create_from((enum weir_ws_type)0, "", 0, &message), -EINVAL);
    assert_int_equal(weir_ws_message_create_from(WEIR_WS_PING, zeros, 126, &message), -EINVAL);
    assert_int_equal(weir_buf_create_from(zeros, 126, &buf), 0);
    assert_int_equal(weir_ws_message_create(WEIR_WS_PONG, buf, &message), -EINVAL);
}

TEST(message, may_be_a_buffer_of_the_caller)
{
    static const size_t lengths[] = {0, 5, 1024, 1025, 70000};

    for (int is_client = 0; is_client < 2; is_client++)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            struct ws_fixture fixture = {.is_client = is_client};
            weir_ws_message *message;
            weir_buf *buf, *kept;

            ws_open(&fixture, NULL);
            assert_int_equal(weir_buf_create(16, 0, &buf), 0);
            ws_put_pattern(buf, lengths[i]);
            kept = weir_buf_retain(buf);
            assert_int_equal(weir_ws_message_create(WEIR_WS_BINARY, buf, &message), 0);
            assert_int_equal(write_message(&fixture, message), 0);
            assert_null(strchr(ws_sent(&fixture), '?'));
            assert_int_equal(fixture.sent_length, lengths[i]);
            for (size_t at = 0; at < lengths[i]; at++) /* neither masked nor moved */
                assert_int_equal(weir_buf_bytes(kept)[at], ws_pattern_at(at));
            assert_int_equal(weir_buf_readable(kept), lengths[i]);
            weir_buf_release(kept);
            ws_close(&fixture);
        }
}

/* The same message to servers and clients; the last one gets it alone. */
TEST(message, may_be_written_to_several_channels)
{
    static const size_t lengths[] = {0, 5, 125, 126, 1024, 1025, 70000};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (int kept = 0; kept < 2; kept++) {
            struct ws_fixture fixtures[4] = {{0}, {.is_client = true}, {0}, {.is_client = true}};
            weir_ws_message *message;
            weir_buf *pattern;

            assert_int_equal(weir_buf_create(16, 0, &pattern), 0);
            ws_put_pattern(pattern, lengths[i]);
            assert_int_equal(weir_ws_message_create_from(WEIR_WS_TEXT, weir_buf_bytes(pattern),
                                                         lengths[i], &message),
                             0);
            for (int f = 0; f < 4; f++)
                ws_open(&fixtures[f], NULL);
            for (int f = 0; f < 4; f++) {
                if (f < 3 || kept)
                    (void)weir_msg_retain(weir_ws_message_msg(message));
                assert_int_equal(write_message(&fixtures[f], message), 0);
            }
            if (kept) {
                assert_true(
                    weir_span_equal(weir_ws_message_bytes(message), weir_buf_span(pattern)));
                weir_msg_release(weir_ws_message_msg(message));
            }
            for (int f = 0; f < 4; f++) {
                assert_null(strchr(ws_sent(&fixtures[f]), '?'));
                assert_int_equal(fixtures[f].sent_length, lengths[i]);
                ws_close(&fixtures[f]);
            }
            weir_buf_release(pattern);
        }
}

/* What was received is echoed from where it lies, and is intact if somebody else has it. */
TEST(message, that_was_received_may_be_kept)
{
    for (int is_client = 0; is_client < 2; is_client++) {
        struct ws_fixture fixture = {.is_client = is_client, .keeps = true, .echoes = true};
        weir_buf *bytes, *pattern;

        ws_open(&fixture, NULL);
        assert_int_equal(weir_buf_create(16, 0, &bytes), 0);
        assert_int_equal(weir_buf_create(16, 0, &pattern), 0);
        ws_put_pattern(pattern, 5000);
        ws_put_frame(&fixture, bytes, FIN | BINARY, weir_buf_bytes(pattern), 5000);
        ws_receive(&fixture, bytes, SIZE_MAX);
        assert_ws_seen(&fixture, "opened binary(#5000)");
        assert_ws_sent(&fixture, "binary(#5000)");
        assert_true(weir_span_equal(weir_buf_span(fixture.kept), weir_buf_span(pattern)));
        weir_buf_release(fixture.kept);
        weir_buf_release(pattern);
        ws_close(&fixture);
    }
}

/* ---- parts ---- */

static int write_part(struct ws_fixture *fixture, const char *text, bool is_first, bool is_last)
{
    weir_ws_message *message = create(WEIR_WS_TEXT, text);

    weir_ws_message_set_part(message, is_first, is_last);
    return write_message(fixture, message);
}

TEST(message, parts_must_be_written_in_order)
{
    struct ws_fixture fixture = {0};

    ws_open(&fixture, NULL);
    assert_int_equal(write_part(&fixture, "x", false, true), -EINVAL);
    assert_int_equal(write_part(&fixture, "x", false, false), -EINVAL);
    assert_int_equal(write_part(&fixture, "a", true, false), 0);
    assert_int_equal(write_part(&fixture, "x", true, false), -EINVAL);
    assert_int_equal(write_part(&fixture, "x", true, true), -EINVAL);
    assert_int_equal(write_message(&fixture, create(WEIR_WS_PING, "p")), 0);
    assert_int_equal(write_part(&fixture, "b", false, false), 0);
    assert_int_equal(write_part(&fixture, "c", false, true), 0);
    assert_int_equal(write_part(&fixture, "x", false, true), -EINVAL);
    assert_int_equal(write_part(&fixture, "d", true, true), 0);
    assert_ws_sent(&fixture, "text(a* ping(p) +b* +c) text(d)");
    ws_close(&fixture);
}

TEST(message, others_can_not_be_written)
{
    struct ws_fixture fixture = {0};
    weir_buf *buf;

    ws_open(&fixture, NULL);
    assert_int_equal(weir_buf_create_from("raw", 3, &buf), 0);
    assert_int_equal(weir_embedded_write_outbound(fixture.embedded, weir_buf_msg(buf)), -EINVAL);
    assert_ws_sent(&fixture, "");
    ws_close(&fixture);
}

TEST(message, in_one_call)
{
    struct ws_fixture fixture = {0};
    weir_channel *channel;

    ws_open(&fixture, NULL);
    channel = weir_embedded_channel(fixture.embedded);
    weir_ws_send_text(channel, "text", NULL);
    weir_ws_send_binary(channel, "bytes", 5, NULL);
    weir_ws_send_binary(channel, NULL, 0, NULL);
    assert_ws_sent(&fixture, "text(text) binary(bytes) binary()");
    ws_close(&fixture);
}

/* ---- without memory ---- */

/* Receives and sends with each allocation failing in turn: nothing leaks, nothing is sent wrong. */
static void run_without_memory(bool is_client, bool has_deflate, bool streams)
{
    const weir__ws_deflate_terms terms = {.is_on = true, .compress_bits = 9, .decompress_bits = 9};

    for (unsigned n = 1; n < 200; n++) {
        struct ws_fixture fixture = {.is_client = is_client, .echoes = true};
        weir_buf *bytes, *pattern;
        bool has_failed;

        if (has_deflate)
            ws_open_deflate(&fixture, WEIR_WS_OPTIONS(.stream = streams), &terms);
        else
            ws_open(&fixture, WEIR_WS_OPTIONS(.stream = streams));
        assert_int_equal(weir_buf_create(16, 0, &bytes), 0);
        assert_int_equal(weir_buf_create(16, 0, &pattern), 0);
        ws_put_pattern(pattern, 3000);
        if (has_deflate)
            ws_put_compressed(&fixture, bytes, TEXT, weir_buf_span(pattern), 100);
        ws_put_frame(&fixture, bytes, TEXT, weir_buf_bytes(pattern), 100);
        ws_put_frame(&fixture, bytes, FIN | PING, "p", 1);
        ws_put_frame(&fixture, bytes, FIN, weir_buf_bytes(pattern) + 100, 2900);
        ws_put_frame(&fixture, bytes, FIN | CLOSE, "\x03\xe8", 2);
        test_memory_fail_at(n);
        ws_receive_whole(&fixture, bytes);
        weir_embedded_end_input(fixture.embedded);
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_null(strchr(ws_sent(&fixture), '?'));
        assert_non_null(strstr(ws_seen(&fixture), "inactive"));
        weir_buf_release(pattern);
        ws_close(&fixture);
        if (!has_failed)
            return;
    }
    fail_msg("allocations never end");
}

TEST(message, without_memory)
{
    for (int mask = 0; mask < 8; mask++)
        run_without_memory(mask & 1, mask & 2, mask & 4);
}
