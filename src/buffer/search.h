/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scalar search, which tests compare with the vectorized one.
 */
#ifndef WEIR_BUFFER_SEARCH_H
#define WEIR_BUFFER_SEARCH_H

#include <weir/buf.h>

/* weir_span_find_any one byte at a time: for large sets and short spans. */
ssize_t weir__span_find_any_plain(weir_span span, const weir_byte_set *set);

#endif
