/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends to open a WebSocket: the address and the request that a URL means.
 */
#ifndef WEIR_PROTOCOL_WEBSOCKET_CLIENT_H
#define WEIR_PROTOCOL_WEBSOCKET_CLIENT_H

#include "protocol/websocket/handshake.h"

/* Zeroed is empty. */
typedef struct weir__ws_target {
    char *url;     /* for messages: without user and password */
    char *host;    /* for TLS: without brackets */
    char *address; /* "host:port" */
    bool is_tls;
    char key[WEIR__WS_KEY + 1];
    weir_http_request *request;
} weir__ws_target;

/*
 * Reads the URL and creates the request. `ws` was checked; `headers` may be NULL. Fails with
 * -EINVAL (the log says why), -ENOMEM, and as weir_http_headers_add; then `target` is to be freed,
 * too.
 */
int weir__ws_target_init(weir__ws_target *target, const char *url, const weir_ws_options *ws,
                         const weir_http_headers *headers);
void weir__ws_target_deinit(weir__ws_target *target);

#endif
