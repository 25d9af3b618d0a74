/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the handler "websocket": its state, shared by these files.
 *
 *      connection.c   the handler's table, lifecycle, and the slots that belong to no other file
 *      decoder.c      bytes to messages
 *      encoder.c      messages to bytes
 *      control.c      pings, pongs, and silent peers
 *      closing.c      the closing handshake
 *      message.c      weir_ws_message
 *      accept.c       weir_ws_accept
 *      client.c       weir_ws_connect; client_target.c its URL and request
 *      handshake.c deflate.c mask.c sha1.c
 *
 * Everything runs on the channel's loop.
 *
 * States, each of them a field of its own:
 *
 *      input    OPEN -> CLOSED             the peer's close frame
 *               OPEN -> DEAF               an error of the peer's, the end of its stream
 *      output   BETWEEN <-> WITHIN         parts of a message
 *               either -> CLOSED           our close frame: nothing may be written any more
 *      ending   NONE -> DRAINING           the group ends
 *               either -> CLOSING          weir_close: the channel closes after the handshake
 *               any -> ENDED               weir_close was passed on
 */
#ifndef WEIR_PROTOCOL_WEBSOCKET_WEBSOCKET_H
#define WEIR_PROTOCOL_WEBSOCKET_WEBSOCKET_H

#include <weir/codec.h>
#include <weir/timer.h>
#include <weir/websocket.h>

#include "protocol/http/http_counters.h"
#include "protocol/websocket/deflate.h"
#include "protocol/websocket/handshake.h"

/* ---- frames ---- */

enum weir__ws_opcode {
    WEIR__WS_CONTINUATION = 0,
    WEIR__WS_TEXT = WEIR_WS_TEXT,
    WEIR__WS_BINARY = WEIR_WS_BINARY,
    WEIR__WS_CLOSE = 8,
    WEIR__WS_PING = WEIR_WS_PING,
    WEIR__WS_PONG = WEIR_WS_PONG,
};

/* Of the first byte. */
#define WEIR__WS_FIN 0x80u
#define WEIR__WS_RSV1 0x40u

#define WEIR__WS_HEADER_MAX 14   /* bytes, with a mask */
#define WEIR__WS_CONTROL_MAX 125 /* bytes of payload */

/* ---- messages ---- */

/* The bytes in front of a payload that its message may overwrite with the header of a frame, if
 * nobody else has a reference. */
enum weir__ws_room {
    WEIR__WS_NO_ROOM,
    WEIR__WS_ROOM,     /* the payload may be a view: somebody else may see its bytes */
    WEIR__WS_OWN_ROOM, /* the payload is not a view: its bytes may be masked in place, too */
};

struct weir_ws_message {
    weir_msg msg;
    weir_buf *payload;
    weir_buf *block; /* the memory of this struct */
    uint8_t type;
    uint8_t room; /* enum weir__ws_room */
    bool is_first;
    bool is_last;
};

/* Creates a whole message. Takes the payload, also if it fails. Fails with -ENOMEM. */
int weir__ws_message_create(enum weir_ws_type type, weir_buf *payload, enum weir__ws_room room,
                            weir_ws_message **ret_message);

/* Creates an empty buffer for a payload of `capacity` bytes, behind room for a header. Fails with
 * -ENOMEM. */
int weir__ws_payload_create(size_t capacity, weir_buf **ret_payload);

/* ---- the handler ---- */

/* The frame that is being received, behind its header. */
typedef struct weir__ws_frame {
    uint64_t left;   /* bytes of payload still to come */
    uint64_t offset; /* of the next one in the payload */
    uint8_t key[4];
    bool is_open;
    bool is_final;
} weir__ws_frame;

/* The message that is being received, if it did not arrive as one whole frame. */
typedef struct weir__ws_incoming {
    weir_buf *payload; /* collected; NULL = nothing yet, or it is streamed */
    uint64_t length;   /* bytes so far, decompressed */
    weir_utf8 utf8;
    uint8_t type; /* enum weir_ws_type; 0 = none */
    bool is_compressed;
    bool has_begun; /* its first part was passed on */
} weir__ws_incoming;

enum weir__ws_input {
    WEIR__WS_INPUT_OPEN,
    WEIR__WS_INPUT_DEAF,   /* further input is discarded; */
    WEIR__WS_INPUT_CLOSED, /* this, too: nothing is expected any more */
};

enum weir__ws_output {
    WEIR__WS_OUTPUT_BETWEEN,
    WEIR__WS_OUTPUT_WITHIN, /* a message: a part was written, and the last one was not */
    WEIR__WS_OUTPUT_CLOSED,
};

enum weir__ws_ending {
    WEIR__WS_ENDING_NONE,
    WEIR__WS_ENDING_DRAINING,
    WEIR__WS_ENDING_CLOSING,
    WEIR__WS_ENDING_ENDED,
};

/* Small, because a server has many idle connections. */
typedef struct weir__ws {
    weir_decoder_state decoder; /* first */
    weir__ws_frame frame;
    weir__ws_incoming incoming;
    weir__ws_deflate *deflate; /* NULL = not agreed on */
    weir_promise *close_done;  /* of a weir_close that waits for the peer's close frame */
    weir_buf *pong;            /* to be sent when the channel is writable */

    uint64_t max_message;
    size_t deflate_min;
    size_t deflate_max;
    int64_t ping_interval_ns; /* WEIR_NEVER = off; as the next one */
    int64_t close_timeout_ns;
    bool is_client;
    bool streams;
    bool passes_control;

    bool is_open;        /* weir_ws_opened was fired, weir_ws_closed was not */
    bool is_compressing; /* the message that is being written */
    uint8_t input;
    uint8_t output;
    uint8_t ending;

    /* Timeouts; see control.c. */
    bool has_heard;       /* from the peer since the last tick */
    uint8_t silent_ticks; /* quarters of ping_interval_ns */
    int64_t sent_seen;    /* bytes sent at the last tick */
    weir_timer timer;
} weir__ws;

/* Discards further input; that the peer has closed is not forgotten. */
static inline void weir__ws_go_deaf(weir__ws *ws)
{
    if (ws->input == WEIR__WS_INPUT_OPEN)
        ws->input = WEIR__WS_INPUT_DEAF;
}

/* Counts a received or sent message, or a part of one; `messages` is a counter of a server. */
static inline void weir__ws_count(const weir__ws *ws, enum weir__http_counter messages,
                                  const weir_ws_message *message)
{
    weir__http_counts *own = weir__http_counts_own;
    unsigned counter = messages + (ws->is_client ? 1 : 0);
    size_t bytes = weir_buf_readable(message->payload);

    if (__builtin_expect(own == NULL, 0)) {
        weir__http_count_first(counter, message->is_last);
        weir__http_count(counter + 2, bytes);
        return;
    }
    weir__http_counts_add(own, counter, message->is_last);
    weir__http_counts_add(own, counter + 2, bytes);
}

/* Counts the end of an open connection. */
static inline void weir__ws_count_closed(const weir__ws *ws)
{
    weir__http_count(WEIR__WS_CONNECTIONS_CLOSED + (ws->is_client ? 1u : 0u), 1);
}

extern const weir_decoder weir__ws_handler;

/* The options of the handler: an opened WebSocket. */
typedef struct weir__ws_setup {
    const weir_ws_options *options;
    const weir__ws_agreed *agreed;
    weir_http_request *request;
    weir_http_response *response; /* NULL on a server */
    bool is_client;
} weir__ws_setup;

/* ---- connection.c ---- */

/*
 * On the loop, after the opening handshake: adds "websocket" last, calls options->init to add the
 * application's handlers, and fires weir_ws_opened, which retains request and response. Lends until
 * it returns: setup. Fails as weir_pipeline_add, or with the error of init: the caller resets the
 * connection.
 */
int weir__ws_open(weir_channel *channel, const weir__ws_setup *setup);

/* Copies options, with defaults, and checks them. Logs what is wrong, and fails with -EINVAL. */
int weir__ws_read_options(const weir_ws_options *options, weir_ws_options *ret_options);

/* ---- decoder.c ---- */

weir_decode_fn weir__ws_decode;

/* Releases the message that is being received. */
void weir__ws_forget_incoming(weir__ws *ws);

/* ---- encoder.c ---- */

/* The slot of the same name. */
void weir__ws_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done);

/* Writes a control frame with a copy of the bytes. Fails with -ENOMEM. */
int weir__ws_write_control(weir_ctx *ctx, weir__ws *ws, enum weir__ws_opcode opcode,
                           weir_span bytes);

/* ---- control.c ---- */

/* Answers a ping, at once or when the channel is writable. */
void weir__ws_answer_ping(weir_ctx *ctx, weir__ws *ws, weir_span payload);

/* The channel is writable: sends the pong that waits. */
void weir__ws_send_pong(weir_ctx *ctx, weir__ws *ws);

/* Starts the timer that pings a silent peer. */
void weir__ws_watch_peer(weir_ctx *ctx, weir__ws *ws);

/* Starts the timeout of the closing handshake, in place of the pings. */
void weir__ws_watch_closing(weir_ctx *ctx, weir__ws *ws);

/* ---- closing.c ---- */

/* Type tag of the messages of weir_ws_close. */
extern const weir_msg_type weir__ws_close_type;

/* The message of weir_ws_close was written. Takes: msg. */
void weir__ws_write_close(weir_ctx *ctx, weir__ws *ws, weir_msg *msg, weir_promise *done);

/* Sends a close frame, once. Aborts the channel if there is no memory for it. */
void weir__ws_send_close(weir_ctx *ctx, weir__ws *ws, unsigned code, const char *reason);

/* The peer has broken the protocol: sends the code, discards all input, and closes. */
void weir__ws_fail(weir_ctx *ctx, weir__ws *ws, unsigned code, const char *detail);

/* The peer's close frame has arrived. */
void weir__ws_receive_close(weir_ctx *ctx, weir__ws *ws, weir_span payload);

/* Passes the close on, after the handshake or without one. */
void weir__ws_end(weir_ctx *ctx, weir__ws *ws);

/* Fires weir_ws_closed with WEIR_WS_LOST, unless it was fired. */
void weir__ws_lose(weir_ctx *ctx, weir__ws *ws);

/* The slots of the same name. */
void weir__ws_on_close(weir_ctx *ctx, weir_promise *done);
void weir__ws_on_draining(weir_ctx *ctx);

#endif
