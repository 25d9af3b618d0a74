/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to frames. Each message, or part of one, becomes one frame, which is one write: it is
 * sent as a whole or not at all.
 *
 *      its payload has room in front, and nobody else has it     the header is written there
 *      it is short, or has to be masked or compressed            header and payload in a new buffer
 *      otherwise                                                 both, uncopied, in a composite
 */
#include <errno.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/random.h>

#include "base/no_stack_protector.h"
#include "buffer/msg.h"
#include "protocol/websocket/mask.h"
#include "protocol/websocket/websocket.h"

#define COPIED_MAX 1024 /* longer payloads are not copied */

/* ---- headers ---- */

/* Fills in the header of a frame with `length` bytes of payload, without the mask. Returns its
 * length. */
static size_t put_header(uint8_t *header, uint8_t first, uint64_t length)
{
    header[0] = first;
    if (length <= WEIR__WS_CONTROL_MAX) {
        header[1] = (uint8_t)length;
        return 2;
    }
    if (length <= UINT16_MAX) {
        header[1] = 126;
        header[2] = (uint8_t)(length >> 8);
        header[3] = (uint8_t)length;
        return 4;
    }
    header[1] = 127;
    for (int i = 0; i < 8; i++)
        header[2 + i] = (uint8_t)(length >> (56 - 8 * i));
    return 10;
}

static size_t header_length(const weir__ws *ws, size_t length)
{
    size_t header = length <= WEIR__WS_CONTROL_MAX ? 2 : length <= UINT16_MAX ? 4 : 10;

    return header + (ws->is_client ? 4 : 0);
}

static uint8_t *bytes_of(weir_buf *buf)
{
    return weir_buf_space(buf) - weir_buf_readable(buf);
}

/* Masks a client's payload, and puts the header in front of it: there is room, and nobody else has
 * the buffer. */
static void complete_frame(const weir__ws *ws, uint8_t first, weir_buf *payload)
{
    size_t length = weir_buf_readable(payload), size = header_length(ws, length);
    uint8_t *header = bytes_of(payload) - size;

    (void)weir_buf_set_read_index(payload, weir_buf_read_index(payload) - size);
    (void)put_header(header, first, length);
    if (ws->is_client) {
        header[1] |= 0x80;
        weir_random_bytes(header + size - 4, 4);
        weir__ws_mask(header + size, length, header + size - 4, 0);
    }
}

/* ---- payloads ---- */

/* True if header and mask can be written into the message's own memory. */
static bool is_own(const weir__ws *ws, const weir_ws_message *message)
{
    const weir_buf *payload = message->payload;

    return message->room >= (ws->is_client ? WEIR__WS_OWN_ROOM : WEIR__WS_ROOM) &&
           weir__msg_is_sole(&message->msg) && weir__msg_is_sole(&payload->msg) &&
           weir_buf_read_index(payload) >= header_length(ws, weir_buf_readable(payload)) &&
           !weir_buf_is_read_only(payload);
}

static int copy_payload(weir_span bytes, weir_buf **ret_payload)
{
    int err = weir__ws_payload_create(bytes.length, ret_payload);

    if (err == 0 && bytes.length > 0)
        (void)weir_buf_write_bytes(*ret_payload, bytes.data, bytes.length); /* there is room */
    return err;
}

/* The payload as a frame of two buffers. The payload is shared: the message may be written to
 * several channels. */
static int join_payload(uint8_t first, const weir_ws_message *message, weir_msg **ret_frame)
{
    uint8_t header[WEIR__WS_HEADER_MAX];
    size_t length = put_header(header, first, weir_buf_readable(message->payload));
    weir_composite *frame = NULL;
    weir_msg *view = NULL;
    weir_buf *buf = NULL;
    int err = weir_composite_create(SIZE_MAX, &frame);

    if (err == 0)
        err = weir_buf_create_from(header, length, &buf);
    if (err == 0)
        err = weir_composite_add(frame, weir_buf_msg(buf));
    if (err == 0)
        err = weir_msg_share(weir_buf_msg(message->payload), &view);
    if (err == 0)
        err = weir_composite_add(frame, view);
    if (err < 0)
        weir_composite_release(frame);
    else
        *ret_frame = weir_composite_msg(frame);
    return err;
}

/* Compresses a part: the frame has its own memory. */
static int compress(const weir__ws *ws, const weir_ws_message *message, weir_buf **ret_payload)
{
    weir_span bytes = weir_buf_span(message->payload);
    int err = weir__ws_payload_create(64 + bytes.length / 4, ret_payload);

    if (err < 0)
        return err;
    err = weir__ws_deflate_compress(ws->deflate, bytes, message->is_last, *ret_payload);
    if (err < 0)
        weir_buf_release(*ret_payload);
    return err;
}

/* ---- messages ---- */

/* Decides at the first part: the length of a streamed message is unknown. */
static bool compresses(const weir__ws *ws, const weir_ws_message *message)
{
    size_t length = weir_buf_readable(message->payload);

    if (ws->deflate == NULL || !weir__ws_deflate_compresses(ws->deflate))
        return false;
    return !message->is_last || (length >= ws->deflate_min && length <= ws->deflate_max);
}

/* The first byte of the frame; the parts of a message must come in order. */
static int begin_frame(weir__ws *ws, const weir_ws_message *message, uint8_t *ret_first)
{
    uint8_t first = WEIR__WS_FIN | message->type;

    *ret_first = first;
    if (message->type > WEIR_WS_BINARY)
        return 0;
    if (message->is_first == (ws->output == WEIR__WS_OUTPUT_WITHIN))
        return -EINVAL;
    if (message->is_first && message->is_last && ws->deflate == NULL)
        return 0;
    if (message->is_first && !message->is_last)
        ws->output = WEIR__WS_OUTPUT_WITHIN;
    if (message->is_first)
        ws->is_compressing = compresses(ws, message);
    if (!message->is_last)
        first &= ~WEIR__WS_FIN;
    else
        ws->output = WEIR__WS_OUTPUT_BETWEEN;
    if (!message->is_first)
        first &= WEIR__WS_FIN;
    else if (ws->is_compressing)
        first |= WEIR__WS_RSV1;
    *ret_first = first;
    return 0;
}

static int make_frame(const weir__ws *ws, uint8_t first, const weir_ws_message *message,
                      weir_msg **ret_frame)
{
    weir_buf *payload;
    int err;

    if (message->type <= WEIR_WS_BINARY && ws->is_compressing)
        err = compress(ws, message, &payload);
    else if (ws->is_client || weir_buf_readable(message->payload) <= COPIED_MAX)
        err = copy_payload(weir_buf_span(message->payload), &payload);
    else
        return join_payload(first, message, ret_frame);
    if (err < 0)
        return err;
    complete_frame(ws, first, payload);
    *ret_frame = weir_buf_msg(payload);
    return 0;
}

static bool is_part(const weir_ws_message *message)
{
    return !message->is_first || !message->is_last;
}

/* A whole message that is not sent is missing. Without a part, or with a compressor that has lost
 * track, nothing that follows makes sense. */
static bool is_needed(const weir__ws *ws, const weir_ws_message *message)
{
    return is_part(message) || (ws->is_compressing && message->type <= WEIR_WS_BINARY);
}

static void fail_message(weir_ctx *ctx, const weir__ws *ws, const weir_ws_message *message,
                         weir_promise *done, int err)
{
    weir_ctx_report(ctx, done, err, "no memory for a WebSocket frame");
    if (is_needed(ws, message))
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

/* A channel refuses a write at once: above its cap, or without memory. Without a promise that
 * closes it. */
static void write_needed(weir_ctx *ctx, weir_msg *frame, weir_promise *done)
{
    int err;

    weir_write(ctx, frame, done);
    err = done != NULL && weir_promise_is_done(done) ? weir_promise_result(done) : 0;
    if (err < 0 && err != WEIR_ECLOSED)
        weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static __attribute__((noinline)) void refuse_message(weir_ctx *ctx, const weir__ws *ws,
                                                     weir_ws_message *message, weir_promise *done)
{
    weir_msg_release(&message->msg);
    if (ws->output == WEIR__WS_OUTPUT_CLOSED)
        weir_ctx_report(ctx, done, WEIR_ECLOSED, "the WebSocket is closing");
    else if (ws->output == WEIR__WS_OUTPUT_WITHIN)
        weir_ctx_report(ctx, done, -EINVAL, "a WebSocket message inside another one");
    else
        weir_ctx_report(ctx, done, -EINVAL, "a part of a WebSocket message without a first one");
}

static __attribute__((noinline)) void write_copy(weir_ctx *ctx, const weir__ws *ws, uint8_t first,
                                                 weir_ws_message *message, weir_promise *done)
{
    weir_msg *frame;
    int err = make_frame(ws, first, message, &frame);

    if (err < 0)
        fail_message(ctx, ws, message, done, err);
    else if (is_needed(ws, message))
        write_needed(ctx, frame, done);
    else
        weir_write(ctx, frame, done);
    weir_msg_release(&message->msg);
}

/* True if the write was cancelled. From here on a frame that may be needed cannot be. */
static bool is_cancelled(const weir__ws *ws, const weir_ws_message *message, weir_promise *done)
{
    return done != NULL && (is_part(message) || ws->deflate != NULL) &&
           !weir_promise_set_uncancellable(done);
}

WEIR__NO_STACK_PROTECTOR static void write_message(weir_ctx *ctx, weir__ws *ws,
                                                   weir_ws_message *message, weir_promise *done)
{
    weir_buf *payload = message->payload;
    bool is_own_part;
    uint8_t first;

    if (is_cancelled(ws, message, done)) {
        weir_msg_release(&message->msg);
        return;
    }
    if (ws->output == WEIR__WS_OUTPUT_CLOSED || begin_frame(ws, message, &first) < 0) {
        refuse_message(ctx, ws, message, done);
        return;
    }
    if (message->type <= WEIR_WS_BINARY)
        weir__ws_count(ws, WEIR__WS_MESSAGES_SENT, message);
    if ((ws->is_compressing && message->type <= WEIR_WS_BINARY) || !is_own(ws, message)) {
        write_copy(ctx, ws, first, message, done);
        return;
    }
    is_own_part = is_part(message);
    message->payload = NULL;
    weir_msg_release(&message->msg);
    complete_frame(ws, first, payload);
    if (is_own_part)
        write_needed(ctx, weir_buf_msg(payload), done);
    else
        weir_write(ctx, weir_buf_msg(payload), done);
}

void weir__ws_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir__ws *ws = weir_ctx_state(ctx);
    weir_ws_message *message = weir_ws_message_of(msg);

    if (message != NULL) {
        write_message(ctx, ws, message, done);
    } else if (weir_msg_is(msg, &weir__ws_close_type)) {
        weir__ws_write_close(ctx, ws, msg, done);
    } else {
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, -EINVAL, "only weir_ws_message can be written to a WebSocket");
    }
}

int weir__ws_write_control(weir_ctx *ctx, weir__ws *ws, enum weir__ws_opcode opcode,
                           weir_span bytes)
{
    weir_buf *payload;
    int err = copy_payload(bytes, &payload);

    if (err < 0)
        return err;
    complete_frame(ws, (uint8_t)(WEIR__WS_FIN | opcode), payload);
    weir_write(ctx, weir_buf_msg(payload), NULL);
    return 0;
}
