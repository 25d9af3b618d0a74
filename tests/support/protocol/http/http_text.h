/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans and messages of HTTP as text.
 */
#ifndef WEIR_TEST_HTTP_TEXT_H
#define WEIR_TEST_HTTP_TEXT_H

#include <stddef.h>

#include <weir/http.h>

void assert_span_text(weir_span span, const char *expected);

/* All fields, "Name: value" each, joined by "|". */
void assert_fields(const weir_http_headers *headers, const char *expected);

/*
 * Formats any message of HTTP: "GET /x 1.1 {Host: a|B: c} 5", "200 OK 1.1 {} ?" with the content
 * length or "?" behind the fields, "(bytes)" for content, "end" and "end {A: b}".
 */
void http_format(weir_msg *msg, char *text, size_t size);

#endif
