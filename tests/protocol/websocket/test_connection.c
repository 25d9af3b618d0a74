/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSockets, both sides: messages, pings, fragments.
 */
#include <weir/websocket.h>

#include <errno.h>
#include <string.h>

#include "support/protocol/websocket/ws_fixture.h"

#define FIN 0x80u

TEST(connection, echoes_messages)
{
    for (int is_client = 0; is_client < 2; is_client++) {
        struct ws_fixture fixture = {.is_client = is_client, .echoes = true};

        ws_open(&fixture, NULL);
        ws_receive_frame(&fixture, FIN | 1, "hello");
        ws_receive_frame(&fixture, FIN | 2, "");
        ws_receive_frame(&fixture, FIN | 9, "x");
        ws_receive_frame(&fixture, 1, "a");
        ws_receive_frame(&fixture, FIN | 0, "b");
        assert_ws_seen(&fixture, "opened text(hello) binary() text(ab)");
        assert_ws_sent(&fixture, "text(hello) binary() pong(x) text(ab)");
        ws_receive_frame(&fixture, FIN | 8,
                         "\x03\xe8"
                         "bye");
        assert_ws_sent(&fixture, "close(1000)");
        weir_embedded_end_input(fixture.embedded);
        assert_ws_seen(&fixture, "closed(1000,bye) inactive");
        ws_close(&fixture);
    }
}
