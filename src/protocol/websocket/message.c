/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages. The memory of one is a small buffer of the pool, as is that of HTTP's messages.
 */
#include <errno.h>

#include <weir/channel.h>

#include "protocol/websocket/websocket.h"

static void destroy(weir_msg *msg)
{
    weir_ws_message *message = (weir_ws_message *)(void *)msg;

    weir_buf_release(message->payload);
    weir_buf_release(message->block);
}

static size_t size_of(const weir_msg *msg)
{
    return weir_buf_readable(((const weir_ws_message *)(const void *)msg)->payload);
}

static void touch(weir_msg *msg, const char *where)
{
    weir_msg_touch(weir_buf_msg(((weir_ws_message *)(void *)msg)->payload), where);
}

static const weir_msg_type message_type = {
    .name = "weir_ws_message", .destroy = destroy, .size = size_of, .touch = touch};

/* ---- creating ---- */

int weir__ws_message_create(enum weir_ws_type type, weir_buf *payload, enum weir__ws_room room,
                            weir_ws_message **ret_message)
{
    weir_ws_message *message;
    weir_buf *block;
    int err = weir_buf_create(sizeof(*message), 0, &block);

    if (err < 0) {
        weir_buf_release(payload);
        return err;
    }
    message = (weir_ws_message *)(void *)weir_buf_space(block);
    weir_msg_init(&message->msg, &message_type);
    message->payload = payload;
    message->block = block;
    message->type = (uint8_t)type;
    message->room = (uint8_t)room;
    message->is_first = true;
    message->is_last = true;
    *ret_message = message;
    return 0;
}

int weir__ws_payload_create(size_t capacity, weir_buf **ret_payload)
{
    int err;

    if (capacity > WEIR_BUF_MAX - WEIR__WS_HEADER_MAX)
        return -ENOMEM;
    err = weir_buf_create(WEIR__WS_HEADER_MAX + capacity, 0, ret_payload);
    if (err < 0)
        return err;
    (void)weir_buf_advance(*ret_payload, WEIR__WS_HEADER_MAX); /* there is room */
    (void)weir_buf_skip(*ret_payload, WEIR__WS_HEADER_MAX);
    return 0;
}

static bool is_valid(enum weir_ws_type type, size_t length)
{
    switch (type) {
    case WEIR_WS_TEXT:
    case WEIR_WS_BINARY:
        return true;
    case WEIR_WS_PING:
    case WEIR_WS_PONG:
        return length <= WEIR__WS_CONTROL_MAX;
    default:
        return false;
    }
}

int weir_ws_message_create(enum weir_ws_type type, weir_buf *payload, weir_ws_message **ret_message)
{
    if (!is_valid(type, payload != NULL ? weir_buf_readable(payload) : 0)) {
        weir_buf_release(payload);
        return -EINVAL;
    }
    if (payload == NULL)
        return weir_ws_message_create_from(type, NULL, 0, ret_message);
    return weir__ws_message_create(type, payload, WEIR__WS_NO_ROOM, ret_message);
}

int weir_ws_message_create_from(enum weir_ws_type type, const void *bytes, size_t length,
                                weir_ws_message **ret_message)
{
    weir_buf *payload;
    int err;

    if (!is_valid(type, length))
        return -EINVAL;
    err = weir__ws_payload_create(length, &payload);
    if (err < 0)
        return err;
    if (length > 0)
        (void)weir_buf_write_bytes(payload, bytes, length); /* there is room */
    return weir__ws_message_create(type, payload, WEIR__WS_OWN_ROOM, ret_message);
}

/* ---- accessors ---- */

weir_msg *weir_ws_message_msg(weir_ws_message *message)
{
    return &message->msg;
}

weir_ws_message *weir_ws_message_of(const weir_msg *msg)
{
    if (msg == NULL || !weir_msg_is(msg, &message_type))
        return NULL;
    return (weir_ws_message *)(uintptr_t)msg; /* as constant as the caller has it */
}

enum weir_ws_type weir_ws_message_type(const weir_ws_message *message)
{
    return (enum weir_ws_type)message->type;
}

weir_buf *weir_ws_message_payload(const weir_ws_message *message)
{
    return message->payload;
}

weir_span weir_ws_message_bytes(const weir_ws_message *message)
{
    return weir_buf_span(message->payload);
}

bool weir_ws_message_is_first(const weir_ws_message *message)
{
    return message->is_first;
}

bool weir_ws_message_is_last(const weir_ws_message *message)
{
    return message->is_last;
}

void weir_ws_message_set_part(weir_ws_message *message, bool is_first, bool is_last)
{
    message->is_first = is_first;
    message->is_last = is_last;
}

/* ---- writing in one call ---- */

static void write_copy(weir_ctx *ctx, enum weir_ws_type type, weir_span bytes, weir_promise *done)
{
    weir_ws_message *message;
    int err = weir_ws_message_create_from(type, bytes.data, bytes.length, &message);

    if (err < 0)
        weir_ctx_report(ctx, done, err, "no memory for a WebSocket message");
    else
        weir_write_and_flush(ctx, &message->msg, done);
}

static void send_copy(weir_channel *channel, enum weir_ws_type type, weir_span bytes,
                      weir_promise *done)
{
    weir_ws_message *message;
    int err = weir_ws_message_create_from(type, bytes.data, bytes.length, &message);

    if (err == 0)
        weir_channel_write_and_flush(channel, &message->msg, done);
    else if (done != NULL)
        (void)weir_promise_fail(done, err, "no memory for a WebSocket message");
    else
        weir_channel_abort(channel, NULL); /* as a peer that misses a message cannot know it */
}

void weir_ws_write_text(weir_ctx *ctx, const char *text, weir_promise *done)
{
    write_copy(ctx, WEIR_WS_TEXT, weir_span_of_text(text), done);
}

void weir_ws_write_binary(weir_ctx *ctx, const void *bytes, size_t length, weir_promise *done)
{
    write_copy(ctx, WEIR_WS_BINARY, weir_span_of(bytes, length), done);
}

void weir_ws_send_text(weir_channel *channel, const char *text, weir_promise *done)
{
    send_copy(channel, WEIR_WS_TEXT, weir_span_of_text(text), done);
}

void weir_ws_send_binary(weir_channel *channel, const void *bytes, size_t length,
                         weir_promise *done)
{
    send_copy(channel, WEIR_WS_BINARY, weir_span_of(bytes, length), done);
}
