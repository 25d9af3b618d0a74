/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that report the client of a request to the next server: Forwarded (RFC 7239),
 * X-Forwarded-For, -Proto and -Host, and Via.
 */
#ifndef WEIR_PROTOCOL_HTTP_FORWARDED_H
#define WEIR_PROTOCOL_HTTP_FORWARDED_H

#include <weir/address.h>
#include <weir/channel.h>
#include <weir/http.h>

/* An address without its port and brackets: 192.0.2.1, 2001:db8::1. Others are as formatted. */
weir_span weir__http_address_host(const weir_address *address, char text[WEIR_ADDRESS_TEXT_SIZE]);

/* Adds the peer of a channel, from which `from` came, to the headers of a request that is sent on.
 * `via` may be "". Fails as weir_http_headers_add. */
int weir__http_forwarded_add(weir_http_headers *headers, const weir_http_request *from,
                             weir_channel *channel, const char *via);

/* ---- encrypted connections ---- */

/* Remembers that a connection of a server has TLS. Fails with -ENOMEM. */
int weir__http_set_encrypted(weir_channel *channel);
bool weir__http_is_encrypted(weir_channel *channel);

#endif
