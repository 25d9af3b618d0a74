/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters on an embedded channel, without a codec: the test is the codec below them and the
 * application above them. Heads are text:
 *
 *      filter_receive(embedded, "GET /path\nHost: a\n");
 *      assert_string_equal(filter_received(embedded), "GET /path (0) Host: a | end");
 *      filter_respond(embedded, 200, "Content-Type: text/plain\n", "hello");
 *      assert_string_equal(filter_sent(embedded), "200 (5) Content-Type: text/plain | hello |
 * end");
 *
 * Everything asserts that it succeeds, except where an allocation was made to fail.
 */
#ifndef WEIR_TEST_FILTER_FIXTURE_H
#define WEIR_TEST_FILTER_FIXTURE_H

#include <weir/embedded.h>
#include <weir/http.h>

#include "support/test.h"

/* A channel whose peer is "192.0.2.1:1000". */
weir_embedded *filter_open(void);

/* ---- as the codec ---- */

weir_http_request *filter_make_request(const char *head, int64_t length);
void filter_receive_head(weir_embedded *embedded, const char *head, int64_t length);
void filter_receive_text(weir_embedded *embedded, const char *text);
void filter_receive_end(weir_embedded *embedded);

/* A request without content. */
void filter_receive(weir_embedded *embedded, const char *head);

/* What was sent, or NULL if nothing was. A head is its status, its length in parentheses ("?" =
 * unknown), its fields and "closes". Valid until the next call. */
const char *filter_sent(weir_embedded *embedded);

/* Takes a sent response with all its content. Returns the number of its pieces. */
unsigned filter_take_response(weir_embedded *embedded, weir_http_response **ret_response,
                              weir_buf **ret_content);

/* ---- as the application ---- */

/* What reached the application, likewise. */
const char *filter_received(weir_embedded *embedded);

/* Write without flushing. */
weir_http_response *filter_make_response(int status, const char *fields, int64_t length);
void filter_write_head(weir_embedded *embedded, int status, const char *fields, int64_t length);
void filter_write(weir_embedded *embedded, weir_msg *msg);
void filter_write_text(weir_embedded *embedded, const char *text);
void filter_write_end(weir_embedded *embedded);

/* A whole response, flushed at the end. `text` may be NULL. */
void filter_respond(weir_embedded *embedded, int status, const char *fields, const char *text);

#endif
