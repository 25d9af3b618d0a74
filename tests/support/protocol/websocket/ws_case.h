/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of frames and their effects. Each case runs on a server and on a client, and the bytes
 * arrive whole and in pieces of several sizes, down to one byte. The application echoes messages.
 */
#ifndef WEIR_TEST_WS_CASE_H
#define WEIR_TEST_WS_CASE_H

#include "support/protocol/websocket/ws_fixture.h"

#define FIN 0x80u
#define RSV1 0x40u
#define RSV2 0x20u
#define RSV3 0x10u

enum { CONTINUATION, TEXT, BINARY, CLOSE = 8, PING, PONG };

/* A frame with the bytes of a literal. */
#define FRAME(first, bytes)             \
    {                                   \
        first, bytes, sizeof(bytes) - 1 \
    }
#define FRAMES_MAX 10

struct ws_case {
    struct {
        unsigned first;
        const char *bytes;
        size_t length;
    } frames[FRAMES_MAX];
    const char *seen; /* behind "opened"; then the peer ends its side */
    const char *sent;
};

/* Runs the cases. The options and the terms of deflate may be NULL. */
void ws_run_cases(const struct ws_case *cases, size_t count, const weir_ws_options *options,
                  const weir__ws_deflate_terms *deflate);

#define WS_RUN_CASES(cases, options) \
    ws_run_cases(cases, sizeof(cases) / sizeof((cases)[0]), options, NULL)

#define LOST "closed(1006,lost) inactive"

#endif
