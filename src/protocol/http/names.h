/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of methods and header fields, and the bytes that they are made of.
 */
#ifndef WEIR_PROTOCOL_HTTP_NAMES_H
#define WEIR_PROTOCOL_HTTP_NAMES_H

#include <weir/http.h>

/* Classes of bytes, as bits of weir__http_classes. */
enum {
    WEIR__HTTP_TOKEN = 1 << 0,  /* RFC 9110 5.6.2: names, methods */
    WEIR__HTTP_VALUE = 1 << 1,  /* field values: HTAB, blank, visible, and above 127 */
    WEIR__HTTP_TARGET = 1 << 2, /* visible ASCII: request targets */
    WEIR__HTTP_HEX = 1 << 3,    /* hexadecimal digits */
};

extern const uint8_t weir__http_classes[256];

static inline bool weir__http_is(uint8_t byte, unsigned classes)
{
    return (weir__http_classes[byte] & classes) != 0;
}

/* True if all bytes are of a class; also if there are none. */
bool weir__http_all(weir_span text, unsigned classes);

/* True if the text is a token: not empty. */
static inline bool weir__http_is_token(weir_span text)
{
    return text.length > 0 && weir__http_all(text, WEIR__HTTP_TOKEN);
}

/* weir_http_name_of for a token. */
enum weir_http_name weir__http_name_of_token(weir_span token);

/* The customary spelling of a name. */
weir_span weir__http_name_span(enum weir_http_name name);

/* Compares ASCII texts without regard to case. */
bool weir__http_equal_nocase(weir_span a, weir_span b);

/* Without blanks and tabs around it. */
weir_span weir__http_trim(weir_span text);

/*
 * Cuts the next element off a comma-separated list, without blanks around it; empty elements are
 * skipped. False if there is none. Commas in quoted strings do not separate.
 */
bool weir__http_next_element(weir_span *list, weir_span *ret_element);

#endif
