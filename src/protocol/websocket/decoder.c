/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames to messages. A message that arrives as one frame in one buffer is passed on from there:
 * unmasked in place, and without a copy unless it is short. All other messages are collected as
 * they arrive, or passed on in parts. Everything is checked as early as possible: lengths at the
 * header, UTF-8 with each byte.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/no_stack_protector.h"
#include "protocol/websocket/mask.h"
#include "protocol/websocket/websocket.h"

/* Shorter payloads are copied: they do not keep a receive buffer of up to 128 KiB alive. */
#define COPIED_MAX 512

/* Compressed bytes that are made one part of a streamed message; they become at most a thousand
 * times as many. */
#define INFLATED_AT_ONCE 512

struct frame_header {
    uint64_t length; /* of the payload */
    size_t size;     /* of the header */
    uint8_t key[4];
    uint8_t opcode;
    bool is_final;
    bool is_compressed;
};

static uint8_t *bytes_of(weir_buf *buf)
{
    return weir_buf_space(buf) - weir_buf_readable(buf);
}

/* Fails the connection from within `decode`: the rest of the input is discarded. */
static int fail(weir_ctx *ctx, weir__ws *ws, weir_buf *in, unsigned code, const char *detail)
{
    (void)weir_buf_skip(in, weir_buf_readable(in));
    weir__ws_fail(ctx, ws, code, detail);
    return 0;
}

/* The same for the error of a function. */
static int fail_with(weir_ctx *ctx, weir__ws *ws, weir_buf *in, int err)
{
    if (err == WEIR_EMALFORMED)
        return fail(ctx, ws, in, WEIR_WS_NOT_UTF8, "malformed compressed data");
    return fail(ctx, ws, in, WEIR_WS_INTERNAL_ERROR, weir_error_text(err));
}

void weir__ws_forget_incoming(weir__ws *ws)
{
    weir_buf_release(ws->incoming.payload);
    ws->incoming = (weir__ws_incoming){0};
    ws->frame.is_open = false;
}

/* ---- headers ---- */

/* Checks the first two bytes. Returns what is wrong, or NULL. */
static const char *find_fault(const weir__ws *ws, const uint8_t *bytes)
{
    uint8_t opcode = bytes[0] & 0xf, reserved = bytes[0] & 0x70;
    bool is_data = opcode == WEIR__WS_TEXT || opcode == WEIR__WS_BINARY;

    if (reserved != 0 && !(reserved == WEIR__WS_RSV1 && is_data && ws->deflate != NULL))
        return "reserved bits are set";
    if (((bytes[1] & 0x80) != 0) == ws->is_client)
        return ws->is_client ? "masked frame from a server" : "unmasked frame from a client";
    if (is_data)
        return ws->incoming.type != 0 ? "new message inside another one" : NULL;
    if (opcode == WEIR__WS_CONTINUATION)
        return ws->incoming.type == 0 ? "continuation without a message" : NULL;
    if (opcode < WEIR__WS_CLOSE || opcode > WEIR__WS_PONG)
        return "unknown opcode";
    if ((bytes[0] & WEIR__WS_FIN) == 0)
        return "fragmented control frame";
    return (bytes[1] & 0x7f) > WEIR__WS_CONTROL_MAX ? "control frame above 125 bytes" : NULL;
}

static uint64_t read_length(const uint8_t *bytes, size_t size)
{
    uint64_t length = 0;

    for (size_t i = 0; i < size; i++)
        length = length << 8 | bytes[i];
    return length;
}

/* Parses a header. Returns 1; 0 if it is incomplete; or negative, with what is wrong. */
WEIR__NO_STACK_PROTECTOR static inline int parse_header(weir_ctx *ctx, const weir__ws *ws,
                                                        const weir_buf *in,
                                                        struct frame_header *ret_header,
                                                        const char **ret_detail)
{
    const uint8_t *bytes = weir_buf_bytes(in);
    size_t readable = weir_buf_readable(in), wide = 0, size;

    if (readable < 2)
        return weir_decoder_need(ctx, 2);
    *ret_detail = find_fault(ws, bytes);
    if (*ret_detail != NULL)
        return -1;
    ret_header->length = bytes[1] & 0x7f;
    if (ret_header->length > WEIR__WS_CONTROL_MAX)
        wide = ret_header->length == 126 ? 2 : 8;
    size = 2 + wide + (ws->is_client ? 0 : 4);
    if (readable < size)
        return weir_decoder_need(ctx, size);
    if (wide > 0) {
        ret_header->length = read_length(bytes + 2, wide);
        if (ret_header->length <= (wide == 2 ? WEIR__WS_CONTROL_MAX : UINT16_MAX) ||
            ret_header->length >> 63 != 0) {
            *ret_detail = "length not in its shortest form, or negative";
            return -1;
        }
    }
    if (!ws->is_client)
        memcpy(ret_header->key, bytes + size - 4, 4);
    ret_header->size = size;
    ret_header->opcode = bytes[0] & 0xf;
    ret_header->is_final = (bytes[0] & WEIR__WS_FIN) != 0;
    ret_header->is_compressed = (bytes[0] & WEIR__WS_RSV1) != 0;
    return 1;
}

/* ---- short messages ---- */

/* Passes on a message that arrived whole. */
static inline int pass_whole(const weir__ws *ws, weir_ws_message *message, weir_msg **ret_msg)
{
    weir__ws_count(ws, WEIR__WS_MESSAGES_RECEIVED, message);
    *ret_msg = &message->msg;
    return 1;
}

/* The usual frame: a whole message of at most 125 bytes. */
static inline bool is_short(const weir__ws *ws, const weir_buf *in)
{
    const uint8_t *bytes = weir_buf_bytes(in);
    size_t readable = weir_buf_readable(in), length;

    if (readable < 2 || ws->incoming.type != 0 ||
        (bytes[0] != (WEIR__WS_FIN | WEIR__WS_TEXT) &&
         bytes[0] != (WEIR__WS_FIN | WEIR__WS_BINARY)))
        return false;
    length = bytes[1] ^ (ws->is_client ? 0 : 0x80); /* too long if the bit of the mask is wrong */
    return length <= WEIR__WS_CONTROL_MAX && length <= ws->max_message &&
           readable - 2 >= length + (ws->is_client ? 0 : 4);
}

WEIR__NO_STACK_PROTECTOR static int fast_decode(weir_ctx *ctx, weir__ws *ws, weir_buf *in,
                                                weir_msg **ret_msg)
{
    const uint8_t *bytes = weir_buf_bytes(in);
    size_t length = bytes[1] & 0x7f, size = ws->is_client ? 2 : 6;
    enum weir_ws_type type = (enum weir_ws_type)(bytes[0] & 0xf);
    weir_ws_message *message;
    weir_buf *payload;
    bool is_ascii;
    int err = weir__ws_payload_create(length, &payload);

    if (err < 0)
        return fail_with(ctx, ws, in, err);
    is_ascii = weir__ws_copy_unmasked(weir_buf_space(payload), bytes + size, length,
                                      ws->is_client ? NULL : bytes + 2);
    (void)weir_buf_advance(payload, length);
    (void)weir_buf_skip(in, size + length);
    if (!is_ascii && type == WEIR_WS_TEXT && !weir_buf_is_utf8(payload)) {
        weir_buf_release(payload);
        return fail(ctx, ws, in, WEIR_WS_NOT_UTF8, "text is not UTF-8");
    }
    err = weir__ws_message_create(type, payload, WEIR__WS_OWN_ROOM, &message);
    return err < 0 ? fail_with(ctx, ws, in, err) : pass_whole(ws, message, ret_msg);
}

/* ---- whole messages ---- */

/* The payload of a whole frame: a copy if it is short or cannot be unmasked in place. */
WEIR__NO_STACK_PROTECTOR static inline int take_payload(const weir__ws *ws, weir_buf *in,
                                                        const struct frame_header *header,
                                                        weir_buf **ret_payload,
                                                        enum weir__ws_room *ret_room)
{
    size_t length = (size_t)header->length;
    int err;

    if (length <= COPIED_MAX || (weir_buf_is_read_only(in) && !ws->is_client)) {
        err = weir__ws_payload_create(length, ret_payload);
        if (err < 0)
            return err;
        (void)weir_buf_skip(in, header->size);
        if (length > 0)
            (void)weir_buf_write_buf(*ret_payload, in, length); /* there is room */
        *ret_room = WEIR__WS_OWN_ROOM;
    } else {
        err = weir_buf_read_slice(in, header->size + length, ret_payload);
        if (err < 0)
            return err;
        (void)weir_buf_skip(*ret_payload, header->size);
        *ret_room = WEIR__WS_ROOM;
    }
    if (!ws->is_client)
        weir__ws_mask(bytes_of(*ret_payload), length, header->key, 0);
    return 0;
}

WEIR__NO_STACK_PROTECTOR static int decode_whole(weir_ctx *ctx, weir__ws *ws, weir_buf *in,
                                                 const struct frame_header *header,
                                                 weir_msg **ret_msg)
{
    weir_ws_message *message;
    enum weir__ws_room room;
    weir_buf *payload;
    int err = take_payload(ws, in, header, &payload, &room);

    if (err < 0)
        return fail_with(ctx, ws, in, err);
    if (header->opcode == WEIR__WS_TEXT && !weir_buf_is_utf8(payload)) {
        weir_buf_release(payload);
        return fail(ctx, ws, in, WEIR_WS_NOT_UTF8, "text is not UTF-8");
    }
    err = weir__ws_message_create((enum weir_ws_type)header->opcode, payload, room, &message);
    return err < 0 ? fail_with(ctx, ws, in, err) : pass_whole(ws, message, ret_msg);
}

/* ---- control frames ---- */

static int decode_control(weir_ctx *ctx, weir__ws *ws, weir_buf *in,
                          const struct frame_header *header, weir_msg **ret_msg)
{
    size_t length = (size_t)header->length;
    uint8_t bytes[WEIR__WS_CONTROL_MAX];
    weir_ws_message *message;

    if (weir_buf_readable(in) < header->size + length)
        return weir_decoder_need(ctx, header->size + length);
    (void)weir_buf_skip(in, header->size);
    (void)weir_buf_read_bytes(in, bytes, length);
    if (!ws->is_client)
        weir__ws_mask(bytes, length, header->key, 0);
    if (header->opcode == WEIR__WS_CLOSE) {
        weir__ws_receive_close(ctx, ws, weir_span_of(bytes, length));
        if (ws->input != WEIR__WS_INPUT_OPEN)
            (void)weir_buf_skip(in, weir_buf_readable(in));
        return 0;
    }
    if (header->opcode == WEIR__WS_PING)
        weir__ws_answer_ping(ctx, ws, weir_span_of(bytes, length));
    if (ws->passes_control) {
        int err =
            weir_ws_message_create_from((enum weir_ws_type)header->opcode, bytes, length, &message);

        if (err < 0)
            return fail_with(ctx, ws, in, err);
        *ret_msg = &message->msg;
    }
    return 1;
}

/* ---- messages that arrive in pieces ---- */

static bool is_too_large(const weir__ws *ws, uint64_t more)
{
    return more > ws->max_message - ws->incoming.length;
}

/* Moves bytes of the frame to the end of `to`, and unmasks them there. */
static int append_payload(weir__ws *ws, weir_buf *in, size_t length, weir_buf *to)
{
    int err = weir_buf_write_buf(to, in, length);

    if (err == 0 && !ws->is_client)
        weir__ws_mask(weir_buf_space(to) - length, length, ws->frame.key, ws->frame.offset);
    return err;
}

/* The buffer that the message is collected in: not much larger than what has arrived. */
static int begin_payload(weir__ws *ws, size_t length)
{
    uint64_t capacity = ws->incoming.length + ws->frame.left;

    if (ws->incoming.payload != NULL)
        return 0;
    if (capacity > 2 * (uint64_t)length)
        capacity = 2 * (uint64_t)length;
    return weir__ws_payload_create((size_t)capacity, &ws->incoming.payload);
}

/* The next bytes as a buffer of their own, unmasked. */
static int take_piece(weir__ws *ws, weir_buf *in, size_t length, weir_buf **ret_piece)
{
    int err;

    if (length > COPIED_MAX && (ws->is_client || !weir_buf_is_read_only(in))) {
        err = weir_buf_read_slice(in, length, ret_piece);
        if (err == 0 && !ws->is_client)
            weir__ws_mask(bytes_of(*ret_piece), length, ws->frame.key, ws->frame.offset);
        return err;
    }
    err = weir__ws_payload_create(length, ret_piece);
    if (err < 0)
        return err;
    err = append_payload(ws, in, length, *ret_piece);
    if (err < 0)
        weir_buf_release(*ret_piece);
    return err;
}

/* Decompresses the next bytes to the end of `to`. Returns 1 if the message becomes too large. */
static int decompress(weir__ws *ws, weir_buf *in, size_t length, bool is_last, weir_buf *to)
{
    uint64_t allowed = ws->max_message - ws->incoming.length;
    size_t before = weir_buf_readable(to);
    size_t max = allowed < WEIR_BUF_MAX ? (size_t)allowed + 1 : WEIR_BUF_MAX;
    weir_buf *piece;
    weir_span rest;
    int err = take_piece(ws, in, length, &piece);

    if (err < 0)
        return err;
    rest = weir_buf_span(piece);
    err = weir__ws_deflate_decompress(ws->deflate, &rest, is_last, max, to);
    weir_buf_release(piece);
    return err < 0 ? err : err > 0 || weir_buf_readable(to) - before > allowed;
}

/*
 * The next bytes of the message: appended to what was collected; if it is streamed, as a part of
 * their own. `*ret_new` is the number of bytes that the payload has got. Returns 1 if the message
 * becomes too large.
 */
static int receive(weir__ws *ws, weir_buf *in, size_t length, bool is_last, weir_buf **ret_part,
                   size_t *ret_new)
{
    size_t before = 0;
    int err = 0;

    if (ws->streams && !ws->incoming.is_compressed) {
        *ret_new = length;
        return take_piece(ws, in, length, ret_part);
    }
    err = begin_payload(ws, length);
    if (err < 0)
        return err;
    before = weir_buf_readable(ws->incoming.payload);
    if (ws->incoming.is_compressed)
        err = decompress(ws, in, length, is_last, ws->incoming.payload);
    else
        err = append_payload(ws, in, length, ws->incoming.payload);
    *ret_new = weir_buf_readable(ws->incoming.payload) - before;
    if (ws->streams) {
        *ret_part = ws->incoming.payload;
        ws->incoming.payload = NULL;
    }
    return err;
}

static bool is_valid_text(weir__ws *ws, const weir_buf *payload, size_t new, bool is_last)
{
    const uint8_t *end = weir_buf_bytes(payload) + weir_buf_readable(payload);

    if (ws->incoming.type != WEIR_WS_TEXT)
        return true;
    return weir_utf8_check(&ws->incoming.utf8, weir_span_of(end - new, new)) == 0 &&
           (!is_last || weir_utf8_is_complete(&ws->incoming.utf8));
}

/* Passes on a part of a streamed message, or what was collected, after its last byte. */
static int pass_part(weir__ws *ws, weir_buf *part, bool is_last, weir_msg **ret_msg)
{
    weir_ws_message *message;
    int err;

    if (part == NULL && !is_last)
        return 0;
    if (part == NULL) {
        part = ws->incoming.payload;
        ws->incoming.payload = NULL;
    } else if (weir_buf_readable(part) == 0 && !is_last) {
        weir_buf_release(part);
        return 0;
    }
    err = weir__ws_message_create((enum weir_ws_type)ws->incoming.type, part, WEIR__WS_OWN_ROOM,
                                  &message);
    if (err < 0)
        return err;
    if (weir_buf_read_index(part) < WEIR__WS_HEADER_MAX)
        message->room = WEIR__WS_NO_ROOM; /* a view */
    weir_ws_message_set_part(message, !ws->incoming.has_begun, is_last);
    ws->incoming.has_begun = true;
    weir__ws_count(ws, WEIR__WS_MESSAGES_RECEIVED, message);
    *ret_msg = &message->msg;
    return 0;
}

/* Payload of the frame whose header has been consumed. */
static int decode_payload(weir_ctx *ctx, weir__ws *ws, weir_buf *in, weir_msg **ret_msg)
{
    size_t length = weir_buf_readable(in), new = 0;
    weir_buf *part = NULL;
    bool is_last;
    int err;

    if (ws->streams && ws->incoming.is_compressed && length > INFLATED_AT_ONCE)
        length = INFLATED_AT_ONCE;
    if (length > ws->frame.left)
        length = (size_t)ws->frame.left;
    is_last = length == ws->frame.left && ws->frame.is_final;
    err = receive(ws, in, length, is_last, &part, &new);
    if (err == 0 && !is_valid_text(ws, part != NULL ? part : ws->incoming.payload, new, is_last)) {
        weir_buf_release(part);
        return fail(ctx, ws, in, WEIR_WS_NOT_UTF8, "text is not UTF-8");
    }
    if (err != 0)
        weir_buf_release(part);
    if (err > 0)
        return fail(ctx, ws, in, WEIR_WS_TOO_LARGE, "message above max_message");
    if (err < 0)
        return fail_with(ctx, ws, in, err);
    ws->incoming.length += new;
    ws->frame.left -= length;
    ws->frame.offset += length;
    ws->frame.is_open = ws->frame.left > 0;
    err = pass_part(ws, part, is_last, ret_msg);
    if (err < 0)
        return fail_with(ctx, ws, in, err);
    if (is_last)
        weir__ws_forget_incoming(ws);
    return 1;
}

/* A data frame that is not a whole message in one buffer. */
static int begin_frame(weir_ctx *ctx, weir__ws *ws, weir_buf *in, const struct frame_header *header,
                       weir_msg **ret_msg)
{
    if (header->opcode != WEIR__WS_CONTINUATION) {
        ws->incoming.type = header->opcode;
        ws->incoming.is_compressed = header->is_compressed;
    }
    if (!ws->incoming.is_compressed && is_too_large(ws, header->length))
        return fail(ctx, ws, in, WEIR_WS_TOO_LARGE, "message above max_message");
    (void)weir_buf_skip(in, header->size);
    ws->frame.left = header->length;
    ws->frame.offset = 0;
    ws->frame.is_open = true;
    ws->frame.is_final = header->is_final;
    memcpy(ws->frame.key, header->key, sizeof(ws->frame.key));
    if (header->length > 0 && weir_buf_readable(in) == 0)
        return 1; /* the payload is still to come */
    return decode_payload(ctx, ws, in, ret_msg);
}

/* ---- entry point ---- */

/* Not inlined: the short messages of weir__ws_decode need none of its registers. */
static __attribute__((noinline)) int decode_frame(weir_ctx *ctx, weir__ws *ws, weir_buf *in,
                                                  weir_msg **ret_msg)
{
    const char *detail;
    struct frame_header header;
    int result;

    if (ws->input != WEIR__WS_INPUT_OPEN) {
        (void)weir_buf_skip(in, weir_buf_readable(in));
        return 1;
    }
    if (ws->frame.is_open)
        return decode_payload(ctx, ws, in, ret_msg);
    result = parse_header(ctx, ws, in, &header, &detail);
    if (result < 0)
        return fail(ctx, ws, in, WEIR_WS_PROTOCOL_ERROR, detail);
    if (result == 0)
        return 0;
    if (header.opcode >= WEIR__WS_CLOSE)
        return decode_control(ctx, ws, in, &header, ret_msg);
    if (header.is_final && header.opcode != WEIR__WS_CONTINUATION && !header.is_compressed &&
        header.length <= ws->max_message && header.length <= weir_buf_readable(in) - header.size)
        return decode_whole(ctx, ws, in, &header, ret_msg);
    return begin_frame(ctx, ws, in, &header, ret_msg);
}

WEIR__NO_STACK_PROTECTOR int weir__ws_decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir__ws *ws = weir_ctx_state(ctx);

    if (ws->input == WEIR__WS_INPUT_OPEN && is_short(ws, in))
        return fast_decode(ctx, ws, in, ret_msg);
    return decode_frame(ctx, ws, in, ret_msg);
}
