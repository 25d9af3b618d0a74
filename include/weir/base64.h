/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/base64.h - Base64 (RFC 4648): as functions on memory, and as a codec of messages.
 *
 *      weir_lines_add(pipeline, NULL);
 *      weir_base64_add(pipeline, 0);
 *
 *      "aGVsbG8=\n"    ->  "hello"             and what is written as "ok" goes out as "b2s="
 *
 * Decoding is strict, so that each run of bytes has one form: no white space, the padding is there
 * or is not, as the flags say, and bits that mean nothing are zero.
 */
#ifndef WEIR_BASE64_H
#define WEIR_BASE64_H

#include <sys/types.h>

#include <weir/bytes.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BASE64_URL (1u << 0)        /* '-' and '_' in place of '+' and '/' */
#define WEIR_BASE64_NO_PADDING (1u << 1) /* no '=' at the end */

/*
 * How many characters so many bytes will be. At most SIZE_MAX / 2 bytes.
 * Thread: any.
 */
WEIR_API size_t weir_base64_encoded_length(size_t length, uint32_t flags);

/*
 * Writes the bytes as characters, as many as weir_base64_encoded_length says, without a NUL.
 * Returns how many.
 * Thread: any.
 */
WEIR_API size_t weir_base64_encode(weir_span bytes, uint32_t flags, char *ret_text);

/*
 * How many bytes so many characters are at most.
 * Thread: any.
 */
static inline size_t weir_base64_decoded_max(size_t length)
{
    return length / 4 * 3 + length % 4;
}

/*
 * Writes the bytes that the characters stand for, weir_base64_decoded_max of them at most, and
 * returns how many; it may have written some before it fails.
 * Thread: any.  Fails: WEIR_EMALFORMED.
 */
WEIR_API ssize_t weir_base64_decode(weir_span text, uint32_t flags, void *ret_bytes);

/*
 * Adds the codec, "base64", at the tail: each buffer or composite that comes in is decoded, what is
 * not Base64 is an error, WEIR_EMALFORMED, in its place; each that goes out is encoded. Other
 * messages are passed on. What a message is, a decoder before it has to say (weir/lines.h, ...).
 * Thread: any.  Fails: -EINVAL (unknown flags), and as weir_pipeline_add.
 */
WEIR_API int weir_base64_add(weir_pipeline *pipeline, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
