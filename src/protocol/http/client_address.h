/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of the client of a request. Behind proxies that a server trusts it is the one that
 * they report in Forwarded (RFC 7239) or X-Forwarded-For: the last one that is not a trusted proxy
 * itself, since each proxy appends the address that it sees, and clients can send any.
 */
#ifndef WEIR_PROTOCOL_HTTP_CLIENT_ADDRESS_H
#define WEIR_PROTOCOL_HTTP_CLIENT_ADDRESS_H

#include <weir/address.h>
#include <weir/channel.h>
#include <weir/http.h>

/* The proxies that a server trusts. Immutable. */
typedef struct weir__http_trust weir__http_trust;

/* `networks` ends with NULL; `field` is that of weir_http_server_options. Fails with -EINVAL, which
 * is logged, or -ENOMEM. */
int weir__http_trust_create(const char *const *networks, enum weir_http_name field,
                            weir__http_trust **ret_trust);
void weir__http_trust_release(weir__http_trust *trust);

/* Makes it that of a connection, which it outlives. Fails with -ENOMEM. */
int weir__http_trust_set(weir_channel *channel, const weir__http_trust *trust);

/* True if the peer of a connection is a trusted proxy, whose requests may be of many clients. */
bool weir__http_is_from_proxy(weir_channel *channel);

/* The client's address; `request` may be NULL: then that of the peer. Fails as weir_proxy_source.
 */
int weir__http_client_address(weir_channel *channel, const weir_http_request *request,
                              weir_address *ret_address);

#endif
