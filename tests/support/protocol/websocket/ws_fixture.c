/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/websocket/ws_fixture.h"

#include <stdio.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/pipeline.h>

#define SHOWN_MAX 64

static void append(char *text, const char *format, ...) WEIR_PRINTF(2, 3);

static void append(char *text, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text + length, WS_TEXT_SIZE - length, format, arguments);
    va_end(arguments);
}

uint8_t ws_pattern_at(size_t index)
{
    return (uint8_t)('a' + (index + index / 251) % 26);
}

void ws_put_pattern(weir_buf *to, size_t length)
{
    assert_int_equal(weir_buf_reserve(to, length), 0);
    for (size_t i = 0; i < length; i++)
        weir_buf_space(to)[i] = ws_pattern_at(i);
    assert_int_equal(weir_buf_advance(to, length), 0);
}

static bool is_pattern(weir_span bytes, size_t offset)
{
    for (size_t i = 0; i < bytes.length; i++)
        if (bytes.data[i] != ws_pattern_at(offset + i))
            return false;
    return true;
}

/* Bytes of a message, behind `*offset` bytes of it. */
static void append_bytes(char *text, weir_span bytes, size_t *offset)
{
    size_t before = *offset;

    *offset += bytes.length;
    if (bytes.length > SHOWN_MAX) {
        append(text, is_pattern(bytes, before) ? "#%zu" : "?%zu", bytes.length);
        return;
    }
    for (size_t i = 0; i < bytes.length; i++)
        append(text, bytes.data[i] > 31 && bytes.data[i] < 127 ? "%c" : "\\x%02x", bytes.data[i]);
}

static const char *name_of(unsigned opcode)
{
    static const char *const names[16] = {
        [1] = "text", [2] = "binary", [9] = "ping", [10] = "pong"};

    return names[opcode] != NULL ? names[opcode] : "?";
}

/* ---- the application ---- */

static struct ws_fixture *fixture_of(weir_ctx *ctx)
{
    return *(struct ws_fixture **)weir_ctx_state(ctx);
}

static int init(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct ws_fixture *));
    return 0;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct ws_fixture *fixture = fixture_of(ctx);
    weir_ws_message *message = weir_ws_message_of(msg);
    char *seen = fixture->seen;

    if (message == NULL) {
        append(seen, "? ");
        weir_msg_release(msg);
        return;
    }
    if (weir_ws_message_is_first(message)) {
        append(seen, "%s(", name_of(weir_ws_message_type(message)));
        fixture->seen_length = 0;
    } else {
        append(seen, "+");
    }
    append_bytes(seen, weir_ws_message_bytes(message), &fixture->seen_length);
    append(seen, weir_ws_message_is_last(message) ? ") " : "* ");
    if (fixture->keeps) {
        weir_buf_release(fixture->kept);
        fixture->kept = weir_buf_retain(weir_ws_message_payload(message));
    }
    if (fixture->echoes)
        weir_write_and_flush(ctx, msg, NULL);
    else
        weir_msg_release(msg);
    if (fixture->closes)
        weir_close(ctx, NULL);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_ws_closed *closed = weir_ws_closed_of(event);
    char *seen = fixture_of(ctx)->seen;

    if (weir_ws_opened_of(event) != NULL) {
        append(seen, "opened ");
    } else if (closed != NULL) {
        append(seen, "closed(%u", closed->code);
        if (closed->length > 0)
            append(seen, ",%s", closed->reason);
        append(seen, closed->is_clean ? ") " : ",lost) ");
    }
    weir_fire_event(ctx, event);
}

static void on_inactive(weir_ctx *ctx)
{
    append(fixture_of(ctx)->seen, "inactive ");
    weir_fire_inactive(ctx);
}

static const weir_handler application = {.name = "application",
                                         .state_size = sizeof(struct ws_fixture *),
                                         .init = init,
                                         .read = on_read,
                                         .event = on_event,
                                         .inactive = on_inactive};

static int add_application(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &application, &user_data);
}

/* ---- opening and closing ---- */

void ws_open_with(struct ws_fixture *fixture, const weir_ws_options *options,
                  const weir_embedded_options *embedded, const weir__ws_deflate_terms *deflate)
{
    weir__ws_agreed agreed = {0};
    weir_ws_options own = {.size = sizeof(own)}, read;

    if (options != NULL)
        own = *options;
    own.init = add_application;
    own.user_data = fixture;
    if (deflate != NULL)
        agreed.deflate = *deflate;
    assert_int_equal(weir__ws_read_options(&own, &read), 0);
    assert_int_equal(weir_embedded_create(embedded, &fixture->embedded), 0);
    assert_int_equal(weir__ws_open(weir_embedded_channel(fixture->embedded),
                                   &(weir__ws_setup){.options = &read,
                                                     .agreed = &agreed,
                                                     .is_client = fixture->is_client}),
                     0);
}

void ws_open(struct ws_fixture *fixture, const weir_ws_options *options)
{
    ws_open_with(fixture, options, NULL, NULL);
}

void ws_open_deflate(struct ws_fixture *fixture, const weir_ws_options *options,
                     const weir__ws_deflate_terms *terms)
{
    const weir__ws_deflate_terms mirrored = {.is_on = true,
                                             .compress_bits = terms->decompress_bits,
                                             .decompress_bits = terms->compress_bits,
                                             .compress_alone = terms->decompress_alone,
                                             .decompress_alone = terms->compress_alone};

    assert_int_equal(weir__ws_deflate_create(&mirrored, 6, &fixture->peer), 0);
    ws_open_with(fixture, options, NULL, terms);
}

void ws_close(struct ws_fixture *fixture)
{
    weir__ws_deflate_free(fixture->peer);
    fixture->peer = NULL;
    weir_embedded_release(fixture->embedded);
    weir_buf_release(fixture->out);
    fixture->out = NULL;
}

/* ---- receiving ---- */

void ws_put_frame(const struct ws_fixture *fixture, weir_buf *to, unsigned first,
                  const void *payload, size_t length)
{
    static const uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};
    uint8_t masked = fixture->is_client ? 0 : 0x80;
    const uint8_t *bytes = payload;

    assert_int_equal(weir_buf_write_u8(to, (uint8_t)first), 0);
    if (length <= 125) {
        assert_int_equal(weir_buf_write_u8(to, (uint8_t)(masked | length)), 0);
    } else if (length <= 65535) {
        assert_int_equal(weir_buf_write_u8(to, masked | 126), 0);
        assert_int_equal(weir_buf_write_u16(to, (uint16_t)length), 0);
    } else {
        assert_int_equal(weir_buf_write_u8(to, masked | 127), 0);
        assert_int_equal(weir_buf_write_u64(to, length), 0);
    }
    if (fixture->is_client) {
        assert_int_equal(weir_buf_write_bytes(to, payload, length), 0);
        return;
    }
    assert_int_equal(weir_buf_write_bytes(to, key, 4), 0);
    assert_int_equal(weir_buf_reserve(to, length), 0);
    for (size_t i = 0; i < length; i++)
        weir_buf_space(to)[i] = bytes[i] ^ key[i % 4];
    assert_int_equal(weir_buf_advance(to, length), 0);
}

void ws_put_compressed(struct ws_fixture *fixture, weir_buf *to, unsigned opcode, weir_span bytes,
                       size_t frame)
{
    size_t sent = 0, length;
    weir_buf *payload;

    assert_int_equal(weir_buf_create(64, 0, &payload), 0);
    assert_int_equal(weir__ws_deflate_compress(fixture->peer, bytes, true, payload), 0);
    length = weir_buf_readable(payload);
    do {
        size_t part = length - sent < frame ? length - sent : frame;
        unsigned first = sent == 0 ? WEIR__WS_RSV1 | opcode : WEIR__WS_CONTINUATION;

        ws_put_frame(fixture, to, first | (sent + part == length ? WEIR__WS_FIN : 0),
                     weir_buf_bytes(payload) + sent, part);
        sent += part;
    } while (sent < length);
    weir_buf_release(payload);
}

void ws_receive(struct ws_fixture *fixture, weir_buf *bytes, size_t piece)
{
    while (weir_buf_readable(bytes) > 0) {
        size_t length = weir_buf_readable(bytes) < piece ? weir_buf_readable(bytes) : piece;
        weir_buf *in;

        assert_int_equal(weir_buf_create_from(weir_buf_bytes(bytes), length, &in), 0);
        assert_int_equal(weir_buf_skip(bytes, length), 0);
        (void)weir_embedded_write_inbound(fixture->embedded, weir_buf_msg(in));
    }
    weir_buf_release(bytes);
}

void ws_receive_whole(struct ws_fixture *fixture, weir_buf *bytes)
{
    (void)weir_embedded_write_inbound(fixture->embedded, weir_buf_msg(bytes));
}

void ws_receive_frame(struct ws_fixture *fixture, unsigned first, const char *text)
{
    weir_buf *bytes;

    assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
    ws_put_frame(fixture, bytes, first, text, strlen(text));
    ws_receive(fixture, bytes, SIZE_MAX);
}

/* ---- results ---- */

/* Cuts the blank at the end, and clears `text`. */
static const char *take(char *text)
{
    static char taken[WS_TEXT_SIZE];
    size_t length = strlen(text);

    memcpy(taken, text, length + 1);
    if (length > 0)
        taken[length - 1] = '\0';
    text[0] = '\0';
    return taken;
}

const char *ws_seen(struct ws_fixture *fixture)
{
    weir_embedded_run(fixture->embedded);
    return take(fixture->seen);
}

static void collect(struct ws_fixture *fixture)
{
    weir_msg *msg;

    if (fixture->out == NULL)
        assert_int_equal(weir_buf_create(256, 0, &fixture->out), 0);
    while ((msg = weir_embedded_read_outbound(fixture->embedded)) != NULL) {
        weir_composite *composite = weir_composite_of(msg);
        size_t length = weir_msg_size(msg);

        assert_int_equal(weir_buf_reserve(fixture->out, length), 0);
        if (composite != NULL)
            assert_int_equal(
                weir_composite_peek_bytes(composite, weir_buf_space(fixture->out), length), 0);
        else
            memcpy(weir_buf_space(fixture->out), weir_buf_bytes(weir_buf_of(msg)), length);
        assert_int_equal(weir_buf_advance(fixture->out, length), 0);
        weir_msg_release(msg);
    }
}

static void append_frame(struct ws_fixture *fixture, unsigned first, weir_span payload)
{
    unsigned opcode = first & 0xf;
    bool is_data = opcode < WEIR__WS_CLOSE;
    weir_buf *plain = NULL;
    char *text = fixture->sent;
    size_t control = 0;

    if (opcode == WEIR__WS_TEXT || opcode == WEIR__WS_BINARY) {
        fixture->is_sent_compressed = (first & WEIR__WS_RSV1) != 0;
        fixture->sent_length = 0;
    }
    if (is_data && fixture->is_sent_compressed && fixture->peer != NULL) {
        assert_int_equal(weir_buf_create(64, 0, &plain), 0);
        assert_int_equal(weir__ws_deflate_decompress(fixture->peer, &payload,
                                                     (first & WEIR__WS_FIN) != 0, SIZE_MAX, plain),
                         0);
        payload = weir_buf_span(plain);
    }

    if ((first & WEIR__WS_RSV1) != 0)
        append(text, "z");
    if (opcode == WEIR__WS_CLOSE) {
        append(text, "close(");
        if (payload.length >= 2)
            append(text, "%u", (unsigned)payload.data[0] << 8 | payload.data[1]);
        append(text, ") ");
        return;
    }
    if (opcode == WEIR__WS_CONTINUATION)
        append(text, "+");
    else
        append(text, "%s(", name_of(opcode));
    append_bytes(text, payload, is_data ? &fixture->sent_length : &control);
    append(text, (first & WEIR__WS_FIN) != 0 ? ") " : "* ");
    weir_buf_release(plain);
}

const char *ws_sent(struct ws_fixture *fixture)
{
    weir_buf *out;

    weir_embedded_run(fixture->embedded);
    collect(fixture);
    out = fixture->out;
    while (weir_buf_readable(out) > 0) {
        uint8_t first = 0, second = 0, key[4] = {0};
        uint64_t length = 0;
        uint16_t wide = 0;

        assert_int_equal(weir_buf_read_u8(out, &first), 0);
        assert_int_equal(weir_buf_read_u8(out, &second), 0);
        length = second & 0x7f;
        if (length == 126) {
            assert_int_equal(weir_buf_read_u16(out, &wide), 0);
            assert_true(wide > 125);
            length = wide;
        } else if (length == 127) {
            assert_int_equal(weir_buf_read_u64(out, &length), 0);
            assert_true(length > 65535);
        }
        assert_int_equal((second & 0x80) != 0, fixture->is_client);
        if (fixture->is_client)
            assert_int_equal(weir_buf_read_bytes(out, key, 4), 0);
        assert_true(weir_buf_readable(out) >= length);
        for (size_t i = 0; i < length; i++)
            (weir_buf_space(out) - weir_buf_readable(out))[i] ^= key[i % 4];
        append_frame(fixture, first, weir_span_of(weir_buf_bytes(out), length));
        assert_int_equal(weir_buf_skip(out, length), 0);
    }
    weir_buf_clear(out);
    return take(fixture->sent);
}
