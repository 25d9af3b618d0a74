/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 validation; see weir_utf8_check.
 */
#ifndef WEIR_BUFFER_UTF8_H
#define WEIR_BUFFER_UTF8_H

#include <weir/buf.h>

/*
 * Skips valid characters: returns the length of a text that begins at `bytes`, has at most `length`
 * bytes, and consists of whole characters. It need not be the longest.
 */
typedef size_t weir__utf8_skip_fn(const uint8_t *bytes, size_t length);

/* All ways to do it, for tests: `name` is NULL behind the last one. */
typedef struct weir__utf8_skipper {
    const char *name;
    weir__utf8_skip_fn *skip;
    bool (*is_there)(void); /* the processor can run it */
} weir__utf8_skipper;

extern const weir__utf8_skipper weir__utf8_skippers[];

#endif
