/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of encoders and codecs, whose tables have the same callbacks at different
 * offsets.
 */
#ifndef WEIR_CODEC_ENCODING_H
#define WEIR_CODEC_ENCODING_H

#include <weir/codec.h>

typedef struct weir__encoding {
    const weir_msg_type *type;
    weir_encode_fn *encode;
    size_t (*size)(const weir_msg *msg);
} weir__encoding;

typedef struct weir__msg_encoding {
    const weir_msg_type *type;
    bool (*accepts)(const weir_msg *msg);
    weir_msg_encode_fn *encode;
} weir__msg_encoding;

/* Encode and write a message. Take: msg. Keep: done. */
void weir__encoding_write(weir_ctx *ctx, const weir__encoding *encoding, weir_msg *msg,
                          weir_promise *done);
void weir__msg_encoding_write(weir_ctx *ctx, const weir__msg_encoding *encoding, weir_msg *msg,
                              weir_promise *done);

/* True if a base with this type or this filter handles the message. */
static inline bool weir__msg_matches(const weir_msg_type *type,
                                     bool (*accepts)(const weir_msg *msg), const weir_msg *msg)
{
    if (type != NULL)
        return weir_msg_is(msg, type);
    return accepts == NULL || accepts(msg);
}

#endif
