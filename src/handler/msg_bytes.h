/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readable bytes of buffers, composites and descriptor messages, for handlers that only
 * observe.
 */
#ifndef WEIR_HANDLER_MSG_BYTES_H
#define WEIR_HANDLER_MSG_BYTES_H

#include <weir/msg.h>

/* True if the message is one of these. */
bool weir__msg_has_bytes(weir_msg *msg);

/* The number of readable bytes, 0 for other messages; and a copy of some of them. */
size_t weir__msg_bytes_length(weir_msg *msg);
void weir__msg_bytes_copy(weir_msg *msg, size_t offset, uint8_t *to, size_t length);

/* The number of bytes that a message takes on the wire, including file ranges. */
int64_t weir__msg_bytes_on_wire(weir_msg *msg);

#endif
