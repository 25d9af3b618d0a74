/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket on an embedded channel, without the opening handshake. The test receives frames, and
 * compares what the application saw and what was sent, as text:
 *
 *      opened text(hello) ping(x) closed(1000,bye)          events and messages
 *      text(hello) pong(x) close(1002)                      frames; "*" = not final, "+" = a
 *                                                           continuation, "z" = RSV1, shown
 *                                                           decompressed if there is a peer
 *
 * A streamed part is text(hel* for the first, +lo) for the last one. Payloads of more than 64 bytes
 * are a length: #65536 if they are the pattern, otherwise ?65536.
 */
#ifndef WEIR_TEST_WS_FIXTURE_H
#define WEIR_TEST_WS_FIXTURE_H

#include <weir/embedded.h>
#include <weir/websocket.h>

#include "protocol/websocket/websocket.h"
#include "support/test.h"

#define WS_TEXT_SIZE 16384

struct ws_fixture {
    weir_embedded *embedded;
    bool is_client;
    bool echoes; /* the application writes back each message */
    bool closes; /* the application closes at the first message */
    bool keeps;  /* the application keeps the payload of the last message */
    weir_buf *kept;
    size_t seen_length; /* of the last message */
    size_t sent_length;
    char seen[WS_TEXT_SIZE];
    char sent[WS_TEXT_SIZE];
    weir_buf *out;
    weir__ws_deflate *peer; /* decompresses what is sent; see ws_open_deflate */
    bool is_sent_compressed;
};

/* Zeroed members are the defaults. `options` without init. */
void ws_open(struct ws_fixture *fixture, const weir_ws_options *options);
void ws_open_with(struct ws_fixture *fixture, const weir_ws_options *options,
                  const weir_embedded_options *embedded, const weir__ws_deflate_terms *deflate);
void ws_close(struct ws_fixture *fixture);

/* Opens with permessage-deflate, and a peer that has agreed on the same. */
void ws_open_deflate(struct ws_fixture *fixture, const weir_ws_options *options,
                     const weir__ws_deflate_terms *terms);

/* Appends a frame as the peer sends it: masked if that is a client. `first` is the first byte. */
void ws_put_frame(const struct ws_fixture *fixture, weir_buf *to, unsigned first,
                  const void *payload, size_t length);

/* Appends a message that the peer has compressed, in frames of at most `frame` bytes. */
void ws_put_compressed(struct ws_fixture *fixture, weir_buf *to, unsigned opcode, weir_span bytes,
                       size_t frame);

/* Letters in a pattern that does not repeat soon: one of them, and the first `length` ones. */
uint8_t ws_pattern_at(size_t index);
void ws_put_pattern(weir_buf *to, size_t length);

/* Receives bytes, in pieces of at most `piece`. Takes: bytes. */
void ws_receive(struct ws_fixture *fixture, weir_buf *bytes, size_t piece);

/* Receives the bytes as they are, without a copy. Takes: bytes. */
void ws_receive_whole(struct ws_fixture *fixture, weir_buf *bytes);

/* Receives one frame with a text. */
void ws_receive_frame(struct ws_fixture *fixture, unsigned first, const char *text);

/* What the application saw since the last call, and what was sent. Valid until the next one. */
const char *ws_seen(struct ws_fixture *fixture);
const char *ws_sent(struct ws_fixture *fixture);

#define assert_ws_seen(fixture, expected) assert_string_equal(ws_seen(fixture), expected)
#define assert_ws_sent(fixture, expected) assert_string_equal(ws_sent(fixture), expected)

#endif
