/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket/cases.h - the cases of an echo server for WebSocket, after its own part
 * (echo/competitor.h) and `server_upgrades`.
 *
 *      echo   connections=64 size=16 depth=1 deflate=0   a closed loop over many connections
 *      memory connections=10000 size=16 deflate=0        idle connections after one message each
 *
 * `size` is that of a text message. With deflate=1 messages are compressed by the client; the
 * server inflates each, and may compress its echo, with a window of 4 KiB. To a server
 * that does not upgrade the same bytes are sent without a handshake, and expected back. The rest is
 * as in echo/cases.h.
 */
#include <unistd.h>
#include <zlib.h>

#include "echo/script_round.h"
#include "websocket/messages.h"

static const char deflate_opening[] =
    WEBSOCKET_OPENING("Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=12; "
                      "client_max_window_bits\r\n");

enum { TEXT_FRAME = 0x81, COMPRESSED_TEXT_FRAME = 0xc1, WINDOW_BITS = 12, DEFLATE_TAIL = 4 };

/* ---- requests ---- */

/* Compresses a message as RFC 7692, 7.2.1 demands; its length. */
static size_t compress_message(const char *text, size_t size, char *bytes, size_t capacity)
{
    z_stream stream = {0};

    bench_require(deflateInit2(&stream, 6, Z_DEFLATED, -WINDOW_BITS, 5, Z_DEFAULT_STRATEGY) == Z_OK,
                  "deflateInit2");
    stream.next_in = (Bytef *)(uintptr_t)text;
    stream.avail_in = (uInt)size;
    stream.next_out = (Bytef *)bytes;
    stream.avail_out = (uInt)capacity;
    bench_require(deflate(&stream, Z_SYNC_FLUSH) == Z_OK && stream.avail_out > 0, "deflate");
    deflateEnd(&stream);
    return stream.total_out - DEFLATE_TAIL;
}

/* ---- answers that are compressed ---- */

/* The state of websocket_answers. */
struct incoming {
    uint64_t left; /* bytes of payload */
    uint8_t header[2];
    uint8_t has; /* bytes of the header; 0 if it is complete */
    bool is_final;
};

static size_t header_size(const struct incoming *incoming)
{
    unsigned length = incoming->header[1];

    return incoming->has < 2 ? 2 : length == 127 ? 10 : length == 126 ? 4 : 2;
}

/* Takes a byte of a header; true if it was its last. */
static bool take_header(struct incoming *incoming, uint8_t byte)
{
    if (incoming->has < 2) {
        incoming->header[incoming->has++] = byte;
        incoming->left = incoming->has == 2 && byte < 126 ? byte : 0;
    } else {
        incoming->left = incoming->left << 8 | byte;
        incoming->has++;
    }
    if (incoming->has < header_size(incoming))
        return false;
    incoming->is_final = (incoming->header[0] & 0x80) != 0;
    incoming->has = 0;
    return true;
}

/* Counts the last frames of messages: an echo_answers_fn. */
static size_t websocket_answers(uint64_t state[2], const char *bytes, size_t length)
{
    struct incoming incoming;
    size_t answers = 0;

    _Static_assert(sizeof(incoming) == 2 * sizeof(state[0]), "the state's size");
    memcpy(&incoming, state, sizeof(incoming));
    while (length > 0) {
        size_t part = incoming.left < length ? (size_t)incoming.left : length;

        if (incoming.left == 0 || incoming.has > 0) {
            part = 1;
            if (take_header(&incoming, (uint8_t)*bytes) && incoming.left == 0)
                answers += incoming.is_final;
        } else {
            incoming.left -= part;
            answers += incoming.left == 0 && incoming.is_final;
        }
        bytes += part;
        length -= part;
    }
    memcpy(state, &incoming, sizeof(incoming));
    return answers;
}

/* ---- rounds ---- */

/* The text of an answer follows the header in `answer`, which is compared unless compressed. */
static void websocket_script_init(echo_script *script, size_t size, size_t depth, bool deflate)
{
    size_t capacity = size + FRAME_HEADER_MAX + 1024;
    char *text = bench_alloc(1, capacity), *payload = bench_alloc(1, capacity);
    char *request = bench_alloc(1, capacity);
    size_t length = size, header;

    message_fill(text, size);
    memcpy(payload, text, size);
    if (deflate)
        length = compress_message(text, size, payload, capacity);
    length = frame_write(request, deflate ? COMPRESSED_TEXT_FRAME : TEXT_FRAME, payload, length);
    *script = (echo_script){.request = request, .request_size = length, .depth = depth};
    if (server_upgrades()) {
        script->opening = deflate ? deflate_opening : websocket_opening;
        script->answers = deflate ? websocket_answers : NULL;
        header = frame_header(payload, TEXT_FRAME, size, false);
        memcpy(payload + header, text, size);
        script->answer_size = script->answer_known = header + size;
    } else {
        memcpy(payload, request, length);
        script->answer_size = script->answer_known = length;
    }
    script->answer = payload;
    bench_free(text);
}

static void websocket_script_deinit(const echo_script *script)
{
    bench_free((void *)(uintptr_t)script->answer);
    bench_free(script->request);
}

static void run_script(bench_round *round, size_t connections, size_t depth, bool for_memory)
{
    size_t size = (size_t)bench_setting(round, "size", 16);
    bool deflate = bench_setting(round, "deflate", 0) != 0;
    struct measurement *self = measurement_open(round);
    echo_script script;

    websocket_script_init(&script, size, depth, deflate);
    if (for_memory)
        script_round_memory(self, connections, &script);
    else
        script_round_run(self, connections, &script);
    websocket_script_deinit(&script);
    measurement_close(self);
}

static void echo_case(bench_round *round)
{
    size_t connections = (size_t)bench_setting(round, "connections", 64);

    run_script(round, connections, (size_t)bench_setting(round, "depth", 1), false);
}

static void memory_case(bench_round *round)
{
    run_script(round, (size_t)bench_setting(round, "connections", 10000), 1, true);
}

#define WEBSOCKET_CASES       \
    {"echo", echo_case},      \
    {                         \
        "memory", memory_case \
    }
