/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opening handshake (RFC 6455, 4) as header fields, of both sides; and the parameters of
 * permessage-deflate in it (RFC 7692, 7.1).
 */
#ifndef WEIR_PROTOCOL_WEBSOCKET_HANDSHAKE_H
#define WEIR_PROTOCOL_WEBSOCKET_HANDSHAKE_H

#include <weir/http.h>
#include <weir/websocket.h>

#include "protocol/websocket/deflate.h"

#define WEIR__WS_KEY 24    /* characters of Sec-WebSocket-Key */
#define WEIR__WS_ACCEPT 28 /* and of Sec-WebSocket-Accept */

/* What both sides agreed on. */
typedef struct weir__ws_agreed {
    const char *protocol; /* one of the options; NULL = none */
    weir__ws_deflate_terms deflate;
    uint8_t server_bits; /* window bits in the answer of a server; 0 = not mentioned */
    uint8_t client_bits;
} weir__ws_agreed;

/* Computes the answer to a key: characters, and a NUL. */
void weir__ws_accept_of(weir_span key, char ret_accept[WEIR__WS_ACCEPT + 1]);

/* ---- server ---- */

/*
 * Checks a request for a WebSocket. `origins` as in weir_ws_options. Returns 0, or the status to
 * answer with, 400, 403 or 426, and what is wrong, a literal. A 426 has Upgrade: websocket and
 * Sec-WebSocket-Version: 13; see weir__ws_add_version.
 */
int weir__ws_check_request(const weir_http_request *request, const char *const *origins,
                           const char **ret_detail);

/* Adds the fields of a 426. Fails as weir_http_headers_add. */
int weir__ws_add_version(weir_http_headers *headers);

/* Selects subprotocol and extension for a request that was checked. */
void weir__ws_agree(const weir_http_request *request, const weir_ws_options *options,
                    weir__ws_agreed *ret_agreed);

/* Adds the fields of the 101, except Connection. Fails as weir_http_headers_add. */
int weir__ws_add_response_fields(weir_http_headers *headers, const weir_http_request *request,
                                 const weir__ws_agreed *agreed);

/* ---- client ---- */

/* Creates a random key: characters, and a NUL. */
void weir__ws_create_key(char ret_key[WEIR__WS_KEY + 1]);

/* Adds the fields of the request, except Host and Connection. Fails as weir_http_headers_add. */
int weir__ws_add_request_fields(weir_http_headers *headers, const char *key,
                                const weir_ws_options *options);

/*
 * Checks a response of status 101 to such a request. Returns 0, or WEIR_EMALFORMED and what is
 * wrong, a literal: the client must close the connection.
 */
int weir__ws_check_response(const weir_http_response *response, const char *key,
                            const weir_ws_options *options, weir__ws_agreed *ret_agreed,
                            const char **ret_detail);

/* ---- options ---- */

/* The options of permessage-deflate with their defaults. */
static inline int weir__ws_deflate_level(const weir_ws_options *options)
{
    return options->deflate_level != 0 ? options->deflate_level : 6;
}

static inline int weir__ws_deflate_bits(const weir_ws_options *options)
{
    return options->deflate_window_bits != 0 ? options->deflate_window_bits : 12;
}

static inline int weir__ws_inflate_bits(const weir_ws_options *options)
{
    return options->inflate_window_bits != 0 ? options->inflate_window_bits : 15;
}

/* Checks the options of both sides that the handshake uses. Logs what is wrong, and fails with
 * -EINVAL. */
int weir__ws_check_options(const weir_ws_options *options);

#endif
