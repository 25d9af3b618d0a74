/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/text_codecs.h - text as messages: strings as C has them, with a NUL at the end.
 *
 *      weir_lines_add(pipeline, NULL);
 *      weir_strings_add(pipeline, WEIR_STRINGS_OPTIONS(.utf8 = true));
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
 * A string is not changed once it has been made: several may hold it, on any thread. It has no NUL
 * but the last: bytes that have one are no text.
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

typedef struct weir_string weir_string;

/*
 * What a message's type is if it is a string: weir_string_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_string_type;

/* ---- strings ---- */

/*
 * Creates a string that is a copy of a text.
 * Thread: any.  Gives: ret_string.  Fails: -ENOMEM.
 */
WEIR_API int weir_string_create(const char *text, weir_string **ret_string);

/*
 * Creates a string of these bytes.
 * Thread: any.  Gives: ret_string.  Fails: -ENOMEM, -EINVAL (there is a NUL among them).
 */
WEIR_API int weir_string_create_from(const void *bytes, size_t length, weir_string **ret_string);

/*
 * Creates a string of what printf would print.
 * Thread: any.  Gives: ret_string.  Fails: -ENOMEM, -EINVAL (the format, or a NUL).
 */
WEIR_API int weir_string_format(weir_string **ret_string, const char *format, ...)
    WEIR_PRINTF(2, 3);

/*
 * The string that a message is, or NULL if it is something else.
 * Thread: any.
 */
static inline weir_string *weir_string_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_string_type) ? (weir_string *)(void *)msg : NULL;
}

/*
 * The string as the message that it is.
 * Thread: any.
 */
static inline weir_msg *weir_string_msg(weir_string *string)
{
    return (weir_msg *)(void *)string; /* it begins with one */
}

/*
 * Takes one more reference.
 * Thread: any.
 */
static inline weir_string *weir_string_retain(weir_string *string)
{
    weir_msg_retain(weir_string_msg(string));
    return string;
}

/*
 * Gives a reference back; NULL is fine.
 * Thread: any.  Takes: string.
 */
static inline void weir_string_release(weir_string *string)
{
    if (string != NULL)
        weir_msg_release(weir_string_msg(string));
}

/*
 * The text, with a NUL at its end.
 * Thread: any.  Lends until the string is released: the text.
 */
WEIR_API const char *weir_string_text(const weir_string *string);

/*
 * How many bytes the text has, without the NUL. This is also its size against water marks.
 * Thread: any.
 */
WEIR_API size_t weir_string_length(const weir_string *string);

/* ---- the codec ---- */

/* Zero means default. Build with WEIR_STRINGS_OPTIONS(...). */
typedef struct weir_strings_options {
    size_t size;
    bool utf8; /* what comes in and is not UTF-8 is an error */
} weir_strings_options;

#define WEIR_STRINGS_OPTIONS(...) WEIR_OPTIONS(weir_strings_options, __VA_ARGS__)

/*
 * Adds the codec, "strings", at the tail: each buffer or composite that comes in becomes a string,
 * what is no text is an error, WEIR_EMALFORMED, in its place; each string that goes out becomes
 * bytes. Other messages are passed on. What a message is, a decoder before it has to say.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_strings_add(weir_pipeline *pipeline, const weir_strings_options *options);

/* --- base64 ----------------------------------------------------------------------------------- */

/*
 * Base64 (RFC 4648): as functions on memory, and as a codec of messages.
 *
 *      weir_lines_add(pipeline, NULL);
 *      weir_base64_add(pipeline, 0);
 *
 *      "aGVsbG8=\n"    ->  "hello"             and what is written as "ok" goes out as "b2s="
 *
 * Decoding is strict, so that each run of bytes has one form: no white space, the padding is there
 * or is not, as the flags say, and bits that mean nothing are zero.
 */

#define WEIR_BASE64_URL (1u << 0)      /* '-' and '_' in place of '+' and '/' */
#define WEIR_BASE64_UNPADDED (1u << 1) /* no '=' at the end */

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
 * messages are passed on. What a message is, a decoder before it has to say (weir/frames.h, ...).
 * Thread: any.  Fails: -EINVAL (unknown flags), and as weir_pipeline_add.
 */
WEIR_API int weir_base64_add(weir_pipeline *pipeline, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
