/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percent-encoding, and the pairs of query strings and urlencoded forms.
 */
#include <weir/http_uri.h>

#include "protocol/http/chars.h"

#define NO_CHAR '\0' /* a character that is not decoded or encoded specially */

static const char hex_digits[] = "0123456789ABCDEF";

/* The byte at `at` and, in `*at`, the index behind it; -1 if it is malformed. */
static int next_byte(weir_span text, size_t *at, char blank)
{
    const uint8_t *data = text.data + *at;

    if (*data != '%') {
        *at += 1;
        return blank != NO_CHAR && *data == (uint8_t)blank ? ' ' : *data;
    }
    if (text.length - *at < 3 || !weir__http_char_is(data[1], WEIR__HTTP_HEX) ||
        !weir__http_char_is(data[2], WEIR__HTTP_HEX))
        return -1;
    *at += 3;
    return (int)(weir__http_hex_value(data[1]) << 4 | weir__http_hex_value(data[2]));
}

static ssize_t decode(weir_span text, uint8_t *to, char blank)
{
    size_t length = 0, at = 0;
    int byte;

    while (at < text.length) {
        byte = next_byte(text, &at, blank);
        if (byte < 0)
            return WEIR_EMALFORMED;
        to[length++] = (uint8_t)byte;
    }
    return (ssize_t)length;
}

ssize_t weir_http_percent_decode(weir_span text, void *to)
{
    return decode(text, to, NO_CHAR);
}

ssize_t weir_http_query_decode(weir_span text, void *to)
{
    return decode(text, to, '+');
}

/* ---- encoding ---- */

/* How characters are encoded: `classes` and `extra` are kept, a blank becomes `blank`. */
struct encoding {
    unsigned classes;
    char extra;
    char blank;
};

static const struct encoding component = {WEIR__HTTP_UNRESERVED, NO_CHAR, NO_CHAR};
static const struct encoding path = {
    WEIR__HTTP_UNRESERVED | WEIR__HTTP_SUB_DELIM | WEIR__HTTP_COLON_AT, '/', NO_CHAR};
static const struct encoding form = {WEIR__HTTP_UNRESERVED, NO_CHAR, '+'};

static bool is_kept(uint8_t byte, const struct encoding *encoding)
{
    return weir__http_char_is(byte, encoding->classes) ||
           (byte != NO_CHAR && byte == (uint8_t)encoding->extra);
}

static size_t encoded_length(weir_span bytes, const struct encoding *encoding)
{
    size_t length = 0;

    for (size_t i = 0; i < bytes.length; i++)
        length +=
            is_kept(bytes.data[i], encoding) || (bytes.data[i] == ' ' && encoding->blank != NO_CHAR)
                ? 1
                : 3;
    return length;
}

/* Returns the end of what it has written to `to`, which has room. */
static uint8_t *encode(uint8_t *to, weir_span bytes, const struct encoding *encoding)
{
    for (size_t i = 0; i < bytes.length; i++) {
        if (is_kept(bytes.data[i], encoding)) {
            *to++ = bytes.data[i];
        } else if (bytes.data[i] == ' ' && encoding->blank != NO_CHAR) {
            *to++ = (uint8_t)encoding->blank;
        } else {
            *to++ = '%';
            *to++ = (uint8_t)hex_digits[bytes.data[i] >> 4];
            *to++ = (uint8_t)hex_digits[bytes.data[i] & 15];
        }
    }
    return to;
}

int weir_http_percent_encode(weir_buf *to, weir_span bytes, enum weir_http_percent kind)
{
    const struct encoding *encoding = kind == WEIR_HTTP_PERCENT_PATH ? &path : &component;
    size_t length = encoded_length(bytes, encoding);
    int err = weir_buf_reserve(to, length);

    if (err)
        return err;
    encode(weir_buf_space(to), bytes, encoding);
    return weir_buf_advance(to, length);
}

int weir_http_query_add(weir_buf *query, weir_span name, weir_span value)
{
    bool is_first = weir_buf_readable(query) == 0;
    size_t length = encoded_length(name, &form) + encoded_length(value, &form) + 1 + !is_first;
    int err = weir_buf_reserve(query, length);
    uint8_t *to;

    if (err)
        return err;
    to = weir_buf_space(query);
    if (!is_first)
        *to++ = '&';
    to = encode(to, name, &form);
    *to++ = '=';
    encode(to, value, &form);
    return weir_buf_advance(query, length);
}

/* ---- pairs ---- */

bool weir_http_query_next(weir_span *rest, weir_span *ret_name, weir_span *ret_value)
{
    weir_span pair = weir_span_of(NULL, 0), name;

    while (pair.length == 0) {
        if (rest->length == 0)
            return false;
        pair = weir__http_cut(rest, '&');
    }
    name = weir__http_cut(&pair, '=');
    *ret_value = pair.data != NULL ? pair : weir_span_of(name.data + name.length, 0);
    *ret_name = name;
    return true;
}

static bool decodes_to(weir_span text, weir_span expected)
{
    size_t at = 0, length = 0;

    if (text.length < expected.length)
        return false;
    while (at < text.length) {
        if (length == expected.length)
            return false;
        if (next_byte(text, &at, '+') != expected.data[length++])
            return false;
    }
    return length == expected.length;
}

bool weir_http_query_find(weir_span query, weir_span name, weir_span *ret_value)
{
    weir_span found, value;

    while (weir_http_query_next(&query, &found, &value)) {
        if (decodes_to(found, name)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}
