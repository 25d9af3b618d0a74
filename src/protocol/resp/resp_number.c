/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/resp/resp_number.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static size_t sign_length(weir_span text)
{
    return text.length > 0 && (text.data[0] == '-' || text.data[0] == '+');
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static size_t count_digits(weir_span text, size_t from)
{
    size_t end = from;

    while (end < text.length && is_digit(text.data[end]))
        end++;
    return end - from;
}

int weir__resp_read_integer(weir_span text, int64_t *ret_integer)
{
    size_t sign = sign_length(text);
    int64_t integer = 0;

    if (!weir__resp_is_big_number(text))
        return -EINVAL;
    /* Accumulates negatively, since -INT64_MIN overflows. */
    for (size_t i = sign; i < text.length; i++)
        if (__builtin_mul_overflow(integer, 10, &integer) ||
            __builtin_sub_overflow(integer, text.data[i] - '0', &integer))
            return -EINVAL;
    if ((sign == 0 || text.data[0] == '+') && __builtin_sub_overflow(0, integer, &integer))
        return -EINVAL;
    *ret_integer = integer;
    return 0;
}

bool weir__resp_is_big_number(weir_span text)
{
    size_t sign = sign_length(text);

    return text.length > sign && count_digits(text, sign) == text.length - sign;
}

/* ---- doubles ---- */

/* Accepts digits [. digits] [e [sign] digits]; strtod accepts much more. */
static bool is_decimal(weir_span text, size_t *ret_point)
{
    size_t at = sign_length(text), digits = count_digits(text, at);

    at += digits;
    *ret_point = text.length;
    if (at < text.length && text.data[at] == '.') {
        *ret_point = at++;
        digits += count_digits(text, at);
        at += count_digits(text, at);
    }
    if (digits == 0 || at == text.length)
        return digits > 0;
    if (text.data[at] != 'e' && text.data[at] != 'E')
        return false;
    at++;
    at += at < text.length && (text.data[at] == '-' || text.data[at] == '+');
    digits = count_digits(text, at);
    return digits > 0 && at + digits == text.length;
}

static bool equals(weir_span text, const char *word)
{
    return text.length == strlen(word) && memcmp(text.data, word, text.length) == 0;
}

int weir__resp_read_double(weir_span text, double *ret_number)
{
    char copy[WEIR__RESP_NUMBER_MAX + 1];
    size_t point;

    if (equals(text, "inf") || equals(text, "+inf")) {
        *ret_number = (double)INFINITY;
    } else if (equals(text, "-inf")) {
        *ret_number = -(double)INFINITY;
    } else if (equals(text, "nan") || equals(text, "-nan")) {
        *ret_number = (double)NAN;
    } else if (text.length <= WEIR__RESP_NUMBER_MAX && is_decimal(text, &point)) {
        memcpy(copy, text.data, text.length);
        copy[text.length] = '\0';
        if (point < text.length)
            copy[point] = nl_langinfo(RADIXCHAR)[0];
        *ret_number = strtod(copy, NULL);
    } else {
        return -EINVAL;
    }
    return 0;
}

size_t weir__resp_write_double(double number, char ret_text[WEIR__RESP_NUMBER_MAX])
{
    char *point;

    if (isnan(number))
        return (size_t)snprintf(ret_text, WEIR__RESP_NUMBER_MAX, "nan");
    if (isinf(number))
        return (size_t)snprintf(ret_text, WEIR__RESP_NUMBER_MAX, number > 0 ? "inf" : "-inf");
    (void)snprintf(ret_text, WEIR__RESP_NUMBER_MAX, "%.17g", number);
    point = strchr(ret_text, nl_langinfo(RADIXCHAR)[0]);
    if (point != NULL)
        *point = '.';
    return strlen(ret_text);
}
