/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSocket frames: the same messages, events and frames whether the input arrives whole, in
 * pieces, or byte by byte; texts are UTF-8, messages are within the limit. Input: options, piece,
 * the stream.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/embedded.h>

#include "protocol/websocket/websocket.h"

#define COUNTS 2 /* bytes before the stream */

enum { IS_CLIENT = 1, STREAMS = 2, DEFLATES = 4, ALONE = 8, SMALL = 16, CONTROL = 32, SLOW = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

struct run {
    uint8_t flags;
    size_t max;
    weir_embedded *embedded;
    weir_buf *notes;
    weir_buf *message; /* the parts of a message so far */
    bool is_closed;
};

static void note(weir_buf *notes, uint8_t what, weir_span bytes)
{
    expect(weir_buf_write_u8(notes, what) == 0 &&
           weir_buf_write_u32(notes, (uint32_t)bytes.length) == 0);
    if (bytes.length > 0)
        expect(weir_buf_write_bytes(notes, bytes.data, bytes.length) == 0);
}

/* ---- the application ---- */

static struct run *run_of(weir_ctx *ctx)
{
    return *(struct run **)weir_ctx_state(ctx);
}

static int init(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct run *));
    return 0;
}

/* Notes whole messages; how they are divided into parts depends on how they arrive. */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_ws_message *message = weir_ws_message_of(msg);
    struct run *run = run_of(ctx);
    weir_span bytes = weir_ws_message_bytes(message);

    expect(!run->is_closed);
    if (weir_ws_message_type(message) > WEIR_WS_BINARY) {
        expect((run->flags & CONTROL) != 0 && bytes.length <= 125);
        note(run->notes, weir_ws_message_type(message), bytes);
        weir_msg_release(msg);
        return;
    }
    expect(weir_ws_message_is_first(message) == (run->message == NULL));
    if (run->message == NULL)
        expect(weir_buf_create(0, 0, &run->message) == 0);
    if (bytes.length > 0)
        expect(weir_buf_write_bytes(run->message, bytes.data, bytes.length) == 0);
    expect(weir_buf_readable(run->message) <= run->max);
    if (weir_ws_message_is_last(message)) {
        bytes = weir_buf_span(run->message);
        expect(weir_ws_message_type(message) != WEIR_WS_TEXT || weir_span_is_utf8(bytes));
        note(run->notes, weir_ws_message_type(message), bytes);
        weir_buf_release(run->message);
        run->message = NULL;
    }
    if ((run->flags & STREAMS) == 0)
        weir_write_and_flush(ctx, msg, NULL);
    else
        weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_ws_closed *closed = weir_ws_closed_of(event);
    struct run *run = run_of(ctx);

    if (closed != NULL) {
        const uint8_t code[] = {(uint8_t)(closed->code >> 8), (uint8_t)closed->code};

        expect(!run->is_closed);
        run->is_closed = true;
        note(run->notes, 'c', weir_span_of(code, sizeof(code)));
        note(run->notes, 'r', weir_span_of(closed->reason, closed->length));
    }
    weir_fire_event(ctx, event);
}

static const weir_handler application = {.name = "application",
                                         .state_size = sizeof(struct run *),
                                         .init = init,
                                         .read = on_read,
                                         .event = on_event};

static int add_application(weir_channel *channel, void *user_data)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &application, &user_data);
}

/* ---- what is sent ---- */

static weir_buf *collect_sent(weir_embedded *embedded)
{
    weir_buf *all = NULL;
    weir_msg *msg;

    expect(weir_buf_create(0, 0, &all) == 0);
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        size_t length = weir_msg_size(msg);

        expect(weir_buf_reserve(all, length) == 0);
        if (weir_composite_of(msg) != NULL)
            expect(weir_composite_peek_bytes(weir_composite_of(msg), weir_buf_space(all), length) ==
                   0);
        else
            memcpy(weir_buf_space(all), weir_buf_bytes(weir_buf_of(msg)), length);
        expect(weir_buf_advance(all, length) == 0);
        weir_msg_release(msg);
    }
    return all;
}

/* Notes the opcodes, and the code of a close. Compressed data may be too large or malformed,
 * depending on which is seen first. */
static void note_sent(const struct run *run)
{
    weir_buf *sent = collect_sent(run->embedded);
    size_t mask = (run->flags & IS_CLIENT) != 0 ? 4 : 0;

    while (weir_buf_readable(sent) > 0) {
        const uint8_t *bytes = weir_buf_bytes(sent);
        uint64_t length = bytes[1] & 0x7f, wide = length == 126 ? 2 : length == 127 ? 8 : 0;

        expect((bytes[1] >> 7 != 0) == (mask != 0));
        for (uint64_t i = 0; i < wide; i++)
            length = (i == 0 ? 0 : length << 8) | bytes[2 + i];
        note(run->notes, bytes[0], weir_span_of(NULL, 0));
        if ((bytes[0] & 0xf) == WEIR__WS_CLOSE && length >= 2) {
            uint8_t code = bytes[3 + wide + mask] ^ (mask != 0 ? bytes[3 + wide] : 0);

            if ((run->flags & DEFLATES) != 0 && code == (uint8_t)WEIR_WS_TOO_LARGE)
                code = (uint8_t)WEIR_WS_NOT_UTF8;
            note(run->notes, code, weir_span_of(NULL, 0));
        }
        expect(weir_buf_skip(sent, (size_t)(2 + wide + mask + length)) == 0);
    }
    weir_buf_release(sent);
}

/* ---- runs ---- */

static void open_websocket(struct run *run)
{
    weir__ws_agreed agreed = {.deflate = {.is_on = (run->flags & DEFLATES) != 0,
                                          .compress_bits = 9,
                                          .decompress_bits = 9,
                                          .compress_alone = true,
                                          .decompress_alone = (run->flags & ALONE) != 0}};
    weir_ws_options given = {.size = sizeof(given),
                             .init = add_application,
                             .user_data = run,
                             .max_message = run->max,
                             .stream = (run->flags & STREAMS) != 0,
                             .control_frames = (run->flags & CONTROL) != 0};
    weir_ws_options options;
    weir__ws_setup setup = {
        .options = &options, .agreed = &agreed, .is_client = (run->flags & IS_CLIENT) != 0};

    expect(weir__ws_read_options(&given, &options) == 0);
    expect(weir_embedded_create(NULL, &run->embedded) == 0);
    expect(weir__ws_open(weir_embedded_channel(run->embedded), &setup) == 0);
}

static void receive(struct run *run, weir_span bytes, size_t piece)
{
    size_t length;
    weir_buf *buf;

    for (size_t from = 0; from < bytes.length; from += length) {
        length = bytes.length - from < piece ? bytes.length - from : piece;
        expect(weir_buf_create_from(bytes.data + from, length, &buf) == 0);
        (void)weir_embedded_write_inbound(run->embedded, weir_buf_msg(buf));
        weir_channel_request_read(weir_embedded_channel(run->embedded)); /* if SLOW, one of them */
    }
    weir_channel_set_auto_read(weir_embedded_channel(run->embedded), true);
    weir_embedded_end_input(run->embedded);
}

static weir_buf *run_in_pieces(uint8_t flags, weir_span bytes, size_t piece)
{
    struct run run = {.flags = flags, .max = (flags & SMALL) != 0 ? 20 : 65536};

    expect(weir_buf_create(0, 0, &run.notes) == 0);
    open_websocket(&run);
    if ((flags & SLOW) != 0)
        weir_channel_set_auto_read(weir_embedded_channel(run.embedded), false);
    receive(&run, bytes, piece);
    note_sent(&run);
    expect(run.is_closed || weir_channel_is_open(weir_embedded_channel(run.embedded)));
    weir_buf_release(run.message);
    run.message = NULL;
    weir_embedded_release(run.embedded);
    weir_buf_release(run.message);
    return run.notes;
}

static void expect_same(weir_buf *a, weir_buf *b)
{
    expect(weir_buf_equal(a, b));
    weir_buf_release(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_span bytes;
    weir_buf *notes;

    if (size < COUNTS)
        return 0;
    bytes = weir_span_of(data + COUNTS, size - COUNTS);
    notes = run_in_pieces(data[0], bytes, SIZE_MAX);
    expect_same(notes, run_in_pieces(data[0], bytes, 1));
    expect_same(notes, run_in_pieces(data[0], bytes, 1 + data[1]));
    weir_buf_release(notes);
    return 0;
}
