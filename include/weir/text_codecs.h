/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/text_codecs.h - messages as NUL-terminated strings, and Base64.
 *
 *      err = weir_lines_add(pipeline, NULL);
 *      err = weir_strings_add(pipeline, WEIR_STRINGS_OPTIONS(.utf8 = true));
 *
 *      static void on_read(weir_ctx *ctx, weir_msg *msg)
 *      {
 *          weir_string *answer, *line = weir_string_of(msg);
 *
 *          if (weir_string_format(&answer, "you said %s\n", weir_string_text(line)) == 0)
 *              weir_write_and_flush(ctx, weir_string_msg(answer), NULL);
 *          weir_string_release(line);
 *      }
 *
 * Both codecs convert whole messages: add a decoder in front of them that splits the stream
 * (weir/frames.h). Messages other than buffers, composites and strings are passed on.
 */
#ifndef WEIR_TEXT_CODECS_H
#define WEIR_TEXT_CODECS_H

#include <sys/types.h>

#include <weir/buf.h>
#include <weir/options.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- strings ---------------------------------------------------------------------------------- */

/* An immutable string without embedded NULs: any thread may use it and retain it. */
typedef struct weir_string weir_string;

/*
 * Type tag of strings; see weir_string_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_string_type;

/*
 * Creates a string with a copy of a text.
 * Thread: any.  Gives: ret_string.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_string_create(const char *text, weir_string **ret_string);

/*
 * Creates a string with a copy of `length` bytes.
 * Thread: any.  Gives: ret_string.  Fails: -ENOMEM, -EINVAL (embedded NUL).
 */
WEIR_API WEIR_MUST_USE int weir_string_create_from(const void *bytes, size_t length,
                                                   weir_string **ret_string);

/*
 * Creates a string from a printf format. As in asprintf, the out-parameter comes first.
 * Thread: any.  Gives: ret_string.  Fails: -ENOMEM, -EINVAL (invalid format, or embedded NUL).
 */
WEIR_API WEIR_MUST_USE int weir_string_format(weir_string **ret_string, const char *format, ...)
    WEIR_PRINTF(2, 3);

/*
 * Casts a message to a string. NULL if it is something else.
 * Thread: any.
 */
static inline weir_string *weir_string_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_string_type) ? (weir_string *)(void *)msg : NULL;
}

/*
 * Casts a string to a message.
 * Thread: any.
 */
static inline weir_msg *weir_string_msg(weir_string *string)
{
    return (weir_msg *)(void *)string; /* its first member */
}

/*
 * Retains a string.
 * Thread: any.
 */
static inline weir_string *weir_string_retain(weir_string *string)
{
    weir_msg_retain(weir_string_msg(string));
    return string;
}

/*
 * Releases a string. NULL is ignored.
 * Thread: any.  Takes: string.
 */
static inline void weir_string_release(weir_string *string)
{
    if (string != NULL)
        weir_msg_release(weir_string_msg(string));
}

/*
 * The text, NUL-terminated.
 * Thread: any.  Lends until the string is released: the text.
 */
WEIR_API const char *weir_string_text(const weir_string *string);

/*
 * The length in bytes, without the NUL. It is also the size that counts against the water marks.
 * Thread: any.
 */
WEIR_API size_t weir_string_length(const weir_string *string);

/* Zero means default. Build with WEIR_STRINGS_OPTIONS(...). */
typedef struct weir_strings_options {
    size_t size;
    bool utf8; /* reject inbound text that is not UTF-8 */
} weir_strings_options;

#define WEIR_STRINGS_OPTIONS(...) WEIR_OPTIONS(weir_strings_options, __VA_ARGS__)

/*
 * Adds the codec "strings" at the tail. Inbound buffers and composites become strings; invalid ones
 * fire WEIR_EMALFORMED instead. Outbound strings become buffers.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_strings_add(weir_pipeline *pipeline,
                                            const weir_strings_options *options);

/* --- base64 ----------------------------------------------------------------------------------- */

/*
 * Base64 (RFC 4648), as functions and as a codec.
 *
 *      err = weir_lines_add(pipeline, NULL);
 *      err = weir_base64_add(pipeline, 0);
 *
 *      "aGVsbG8=\n"    ->  "hello"             and a write of "ok" sends "b2s="
 *
 * Decoding is strict, so that every byte sequence has exactly one encoding: no white space, padding
 * exactly as the flags say, unused bits zero.
 */

#define WEIR_BASE64_URL (1u << 0)      /* '-' and '_' in place of '+' and '/' */
#define WEIR_BASE64_UNPADDED (1u << 1) /* no '=' at the end */

/*
 * The number of characters that encode `length` bytes; `length` is at most SIZE_MAX / 2.
 * Thread: any.
 */
WEIR_API size_t weir_base64_encoded_length(size_t length, uint32_t flags);

/*
 * Encodes bytes into weir_base64_encoded_length characters, without a NUL. Returns their number.
 * Thread: any.
 */
WEIR_API size_t weir_base64_encode(weir_span bytes, uint32_t flags, char *ret_text);

/*
 * The maximum number of bytes that `length` characters decode to.
 * Thread: any.
 */
static inline size_t weir_base64_decoded_max(size_t length)
{
    return length / 4 * 3 + length % 4;
}

/*
 * Decodes a text into at most weir_base64_decoded_max bytes, and returns their number. It may have
 * written some bytes before it fails.
 * Thread: any.  Fails: WEIR_EMALFORMED.
 */
WEIR_API WEIR_MUST_USE ssize_t weir_base64_decode(weir_span text, uint32_t flags, void *ret_bytes);

/*
 * Adds the codec "base64" at the tail. Inbound buffers and composites are decoded; invalid ones
 * fire WEIR_EMALFORMED instead. Outbound ones are encoded.
 * Thread: any.  Fails: -EINVAL (unknown flags), and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_base64_add(weir_pipeline *pipeline, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
