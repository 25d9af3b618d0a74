/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text form of numbers in RESP, independent of the locale.
 */
#ifndef WEIR_PROTOCOL_RESP_RESP_NUMBER_H
#define WEIR_PROTOCOL_RESP_RESP_NUMBER_H

#include <weir/buf.h>

#define WEIR__RESP_NUMBER_MAX 64 /* maximum length of a number in characters */

/* Parses a decimal integer with an optional sign. Fails with -EINVAL. */
int weir__resp_read_integer(weir_span text, int64_t *ret_integer);

/* Parses a decimal number with an optional exponent, or inf, -inf, nan. Fails with -EINVAL. */
int weir__resp_read_double(weir_span text, double *ret_number);

/* True if the text is an integer of any length. */
bool weir__resp_is_big_number(weir_span text);

/* Formats a number so that weir__resp_read_double restores it exactly. Returns the length. */
size_t weir__resp_write_double(double number, char ret_text[WEIR__RESP_NUMBER_MAX]);

#endif
