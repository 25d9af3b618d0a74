/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket that sends every message back: up to 16 MiB, with permessage-deflate if the client
 * offers it.
 */
#ifndef EXAMPLES_DEMO_WS_ECHO_H
#define EXAMPLES_DEMO_WS_ECHO_H

#include <weir/http_server.h>

/* Handler of a route for GET. */
void open_ws_echo(weir_http_exchange *exchange, void *user_data);

#endif
