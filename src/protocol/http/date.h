/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates of header fields, as seconds since 1970, UTC.
 */
#ifndef WEIR_PROTOCOL_HTTP_DATE_H
#define WEIR_PROTOCOL_HTTP_DATE_H

#include <weir/buf.h>

#define WEIR__HTTP_DATE_SIZE 30 /* with its NUL */

/* Writes "Sun, 06 Nov 1994 08:49:37 GMT" and returns `text`. Years before 1970 and after 9999 are
 * clamped. */
const char *weir__http_date_format(int64_t seconds, char text[WEIR__HTTP_DATE_SIZE]);

/*
 * Parses one of the three formats of RFC 9110 5.6.7. `now` decides the century of a year of two
 * digits. The name of the day is not compared with the date. Fails with WEIR_EMALFORMED, also for
 * years before 1601.
 */
int weir__http_date_parse(weir_span text, int64_t now, int64_t *ret_seconds);

/* Parses the date of a cookie, which may have almost any format (RFC 6265 5.1.1). */
int weir__http_date_parse_cookie(weir_span text, int64_t *ret_seconds);

#endif
