/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as RESP writes them, whatever the program's locale.
 */
#ifndef WEIR_PROTOCOL_RESP_RESP_NUMBER_H
#define WEIR_PROTOCOL_RESP_RESP_NUMBER_H

#include <weir/buf.h>

#define WEIR__RESP_NUMBER_MAX 64 /* the longest that is understood, in characters */

/* Decimal, with a sign or not. Fails with -EINVAL. */
int weir__resp_read_integer(weir_span text, int64_t *ret_integer);

/* Decimal, with an exponent or not, or inf, -inf, nan. Fails with -EINVAL. */
int weir__resp_read_double(weir_span text, double *ret_number);

/* Whether it is an integer of any length. */
bool weir__resp_is_big_number(weir_span text);

/* As text that weir__resp_read_double reads as the same number. Returns its length. */
size_t weir__resp_write_double(double number, char ret_text[WEIR__RESP_NUMBER_MAX]);

#endif
