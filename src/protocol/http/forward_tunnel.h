/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel between the client of an exchange that was upgraded and a call that was: bytes pass both
 * ways, each under the back-pressure of the other side. All on one loop.
 */
#ifndef WEIR_PROTOCOL_HTTP_FORWARD_TUNNEL_H
#define WEIR_PROTOCOL_HTTP_FORWARD_TUNNEL_H

#include "protocol/http/exchange.h"
#include "protocol/http/http_client.h"

typedef struct weir__forward_tunnel weir__forward_tunnel;

/* Answers the exchange with 101 and its headers, and upgrades it. The call is retained until its
 * end. The tunnel is closed when no byte has passed for `idle_ns`; WEIR_OFF = never. Fails as
 * weir_http_exchange_upgrade. */
int weir__forward_tunnel_begin(weir_http_exchange *exchange, weir_http_call *call, int64_t idle_ns,
                               weir__forward_tunnel **ret_tunnel);

/* Events of the call: a piece, which it takes; more can be written; the end, after which the caller
 * does not use the tunnel any more. */
void weir__forward_tunnel_piece(weir__forward_tunnel *tunnel, weir_msg *msg);
void weir__forward_tunnel_writable(weir__forward_tunnel *tunnel);
void weir__forward_tunnel_end(weir__forward_tunnel *tunnel, int err);

#endif
