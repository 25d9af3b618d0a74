/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain ways to search, beside which a test holds the quick ones.
 */
#ifndef WEIR_BUFFER_SEARCH_H
#define WEIR_BUFFER_SEARCH_H

#include <weir/buf.h>

/* weir_span_find_any a byte at a time: for large sets, and for what does not fill a vector. */
ssize_t weir__span_find_any_plain(weir_span span, const weir_byte_set *set);

#endif
