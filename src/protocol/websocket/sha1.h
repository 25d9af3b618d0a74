/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1 (FIPS 180-4) of short texts: the answer to a WebSocket key is defined by it. Not for
 * anything that needs a secure hash.
 */
#ifndef WEIR_PROTOCOL_WEBSOCKET_SHA1_H
#define WEIR_PROTOCOL_WEBSOCKET_SHA1_H

#include <weir/buf.h>

#define WEIR__SHA1_LENGTH 20

void weir__sha1(weir_span text, uint8_t ret_hash[WEIR__SHA1_LENGTH]);

#endif
