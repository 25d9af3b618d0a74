/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers and composites as contiguous bytes, for codecs that convert whole messages.
 */
#ifndef WEIR_CODEC_CONTIGUOUS_H
#define WEIR_CODEC_CONTIGUOUS_H

#include <weir/buf.h>
#include <weir/composite.h>

/* True for buffers and composites. */
static inline bool weir__is_bytes(const weir_msg *msg)
{
    return weir_msg_is(msg, &weir_buf_type) || weir_msg_is(msg, &weir_composite_type);
}

/* Returns the buffer itself, retained, or a copy of the composite's readable bytes. Fails with
 * -ENOMEM. */
static inline int weir__contiguous_bytes(weir_msg *msg, weir_buf **ret_buf)
{
    weir_composite *composite = weir_composite_of(msg);

    if (composite != NULL)
        return weir_composite_copy(composite, weir_composite_read_index(composite),
                                   weir_composite_readable(composite), ret_buf);
    *ret_buf = weir_buf_retain(weir_buf_of(msg));
    return 0;
}

#endif
