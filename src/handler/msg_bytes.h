/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readable bytes of messages that are made of them: buffers, composites, and what comes with
 * descriptors. For handlers that only look.
 */
#ifndef WEIR_HANDLER_MSG_BYTES_H
#define WEIR_HANDLER_MSG_BYTES_H

#include <weir/msg.h>

/* Whether it has any such. */
bool weir__msg_has_bytes(weir_msg *msg);

/* How many, 0 if it has none; and a copy of some of them, from an offset on. */
size_t weir__msg_bytes_length(weir_msg *msg);
void weir__msg_bytes_copy(weir_msg *msg, size_t offset, uint8_t *to, size_t length);

/* How many bytes any message is on the wire: files count, which take no memory. */
int64_t weir__msg_bytes_on_wire(weir_msg *msg);

#endif
