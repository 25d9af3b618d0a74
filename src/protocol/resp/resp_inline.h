/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inline commands: words, "with \"escapes\" and \x00 bytes", 'or without'.
 */
#ifndef WEIR_PROTOCOL_RESP_RESP_INLINE_H
#define WEIR_PROTOCOL_RESP_RESP_INLINE_H

#include <weir/resp.h>

/*
 * Parses the words of the next `length` readable bytes, without consuming them, into an array of
 * bulks; NULL if there are none. Fails with -ENOMEM, -E2BIG (more than `max` words), -EINVAL (a
 * quote that is not closed, or not followed by a space).
 */
int weir__resp_read_inline(weir_buf *in, size_t length, size_t max, weir_resp **ret_command);

#endif
