/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Range and Content-Range (RFC 9110 14).
 */
#ifndef WEIR_PROTOCOL_HTTP_RANGES_H
#define WEIR_PROTOCOL_HTTP_RANGES_H

#include <weir/buf.h>

#define WEIR__HTTP_MAX_RANGES 16
#define WEIR__HTTP_CONTENT_RANGE_SIZE 72 /* with its NUL */

typedef struct weir__http_range {
    uint64_t offset;
    uint64_t length; /* not 0 */
} weir__http_range;

/*
 * Parses "bytes=0-99,200-,-5" for content of `size` bytes, and returns the number of ranges, in the
 * order of the request. Ranges that overlap or are near each other have become one.
 *
 * 0 = ignore the field and send everything: another unit, malformed, more than
 * WEIR__HTTP_MAX_RANGES, or more than two that overlap, which only an attack asks for.
 * WEIR_EBOUNDS = no range is within the content: status 416.
 */
int weir__http_ranges_parse(weir_span value, uint64_t size,
                            weir__http_range ranges[WEIR__HTTP_MAX_RANGES]);

/* Writes "bytes 0-99/1234", without a range "bytes *", then "/1234", for 416; returns `text`. */
const char *weir__http_content_range(const weir__http_range *range, uint64_t size,
                                     char text[WEIR__HTTP_CONTENT_RANGE_SIZE]);

#endif
