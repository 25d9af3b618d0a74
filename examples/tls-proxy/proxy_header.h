/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PROXY header of a TLS connection: its addresses, and as TLVs the server name, the protocol,
 * the version of TLS, the cipher, and the common name of the client's certificate.
 */
#ifndef EXAMPLES_PROXY_HEADER_H
#define EXAMPLES_PROXY_HEADER_H

#include <weir/weir.h>

/* On the loop of the channel, after its handshake. */
int proxy_header_create(weir_channel *channel, weir_proxy_header **ret_header);

#endif
