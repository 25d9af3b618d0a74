/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The character classes of RFC 3986 (URIs), RFC 9110 (tokens, field values) and RFC 6265 (cookies).
 */
#ifndef WEIR_PROTOCOL_HTTP_CHARS_H
#define WEIR_PROTOCOL_HTTP_CHARS_H

#include <weir/buf.h>

#define WEIR__HTTP_UNRESERVED 0x01u   /* letters, digits, - . _ ~ */
#define WEIR__HTTP_SUB_DELIM 0x02u    /* ! $ & ' ( ) * + , ; = */
#define WEIR__HTTP_HEX 0x04u          /* hexadecimal digits */
#define WEIR__HTTP_TOKEN 0x08u        /* characters of a token */
#define WEIR__HTTP_DIGIT 0x10u        /* 0 to 9 */
#define WEIR__HTTP_ALPHA 0x20u        /* letters */
#define WEIR__HTTP_COOKIE_OCTET 0x40u /* visible, except " , ; and backslash */
#define WEIR__HTTP_COLON_AT 0x80u     /* : @ */
#define WEIR__HTTP_VALUE 0x100u       /* field values: HTAB, blank, visible, and above 127 */
#define WEIR__HTTP_TARGET 0x200u      /* visible: request targets */
#define WEIR__HTTP_TARGET_MARK                                         \
    0x400u /* # % ?: the path of a target is not all of it, or encoded \
            */

extern const uint16_t weir__http_chars[256];

static inline bool weir__http_char_is(uint8_t byte, unsigned classes)
{
    return (weir__http_chars[byte] & classes) != 0;
}

/* True if all bytes are of one of the classes; also if there are none. */
static inline bool weir__http_chars_are(weir_span text, unsigned classes)
{
    for (size_t i = 0; i < text.length; i++)
        if (!weir__http_char_is(text.data[i], classes))
            return false;
    return true;
}

/* A field value as it is sent: not empty, and without blanks around it. */
static inline bool weir__http_is_plain_value(weir_span text)
{
    return text.length > 0 && weir__http_chars_are(text, WEIR__HTTP_VALUE) && text.data[0] > ' ' &&
           text.data[text.length - 1] > ' ';
}

static inline bool weir__http_is_token(weir_span text)
{
    return text.length > 0 && weir__http_chars_are(text, WEIR__HTTP_TOKEN);
}

static inline uint8_t weir__http_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;
}

/* Compares without regard to the case of ASCII letters. */
static inline bool weir__http_same_text(weir_span a, weir_span b)
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (weir__http_lower(a.data[i]) != weir__http_lower(b.data[i]))
            return false;
    return true;
}

static inline bool weir__http_is_text(weir_span a, const char *text)
{
    return weir__http_same_text(a, weir_span_of_text(text));
}

/* The value of a hexadecimal digit. */
static inline unsigned weir__http_hex_value(uint8_t digit)
{
    return digit <= '9' ? digit - (unsigned)'0' : (digit | 0x20u) - 'a' + 10u;
}

/* The text from `from` on; also of a missing text, whose data is NULL. */
static inline weir_span weir__http_span_from(weir_span text, size_t from)
{
    return from > 0 ? weir_span_of(text.data + from, text.length - from) : text;
}

/* Without blanks and tabs around it. */
static inline weir_span weir__http_trimmed(weir_span text)
{
    while (text.length > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = weir__http_span_from(text, 1);
    while (text.length > 0 &&
           (text.data[text.length - 1] == ' ' || text.data[text.length - 1] == '\t'))
        text.length--;
    return text;
}

/* Cuts the text before the first `byte` off `*rest`, which is then behind the byte; all of it, and
 * `rest->data` NULL, if there is none. */
static inline weir_span weir__http_cut(weir_span *rest, uint8_t byte)
{
    weir_span text = *rest;
    ssize_t at = weir_span_find(text, byte);

    if (at < 0) {
        *rest = weir_span_of(NULL, 0);
        return text;
    }
    *rest = weir__http_span_from(text, (size_t)at + 1);
    text.length = (size_t)at;
    return text;
}

#endif
