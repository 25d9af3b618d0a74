/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values with parameters: `text/html; charset="utf-8"`, `gzip;q=0.5` (RFC 9110 5.6.6).
 */
#ifndef WEIR_PROTOCOL_HTTP_PARAMETERS_H
#define WEIR_PROTOCOL_HTTP_PARAMETERS_H

#include <weir/buf.h>

typedef struct weir__http_parameter {
    weir_span name;
    weir_span value; /* between its quotes, if it had any; see weir__http_unquote */
    bool is_quoted;
} weir__http_parameter;

/* Cuts the value before the first ";" off `*rest`, without blanks around it. */
weir_span weir__http_parameters_begin(weir_span *rest);

/*
 * Cuts the next parameter off `*rest`, which begins with ";" or is empty. Returns 1, 0 at the end,
 * or WEIR_EMALFORMED. Empty parameters (";;") are skipped.
 */
int weir__http_parameters_next(weir_span *rest, weir__http_parameter *ret_parameter);

/* The first parameter of a name. Returns 1, 0 if there is none, or WEIR_EMALFORMED. */
int weir__http_parameters_find(weir_span parameters, const char *name,
                               weir__http_parameter *ret_parameter);

/* Copies a value without the backslashes of a quoted one to `to`, which has room for
 * `value.length` bytes. Returns the length. */
size_t weir__http_unquote(const weir__http_parameter *parameter, void *to);

/* Cuts the next element off a comma-separated list, without blanks around it; commas in quotes do
 * not count. False at the end; empty elements are skipped. */
bool weir__http_list_next(weir_span *rest, weir_span *ret_element);

#endif
