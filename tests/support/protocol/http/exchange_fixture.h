/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes on an embedded channel, without a codec: the test writes the messages of requests and
 * compares those of responses, as text:
 *
 *      200 Content-Type: text/plain | hello | end
 */
#ifndef WEIR_TEST_EXCHANGE_FIXTURE_H
#define WEIR_TEST_EXCHANGE_FIXTURE_H

#include <weir/embedded.h>
#include <weir/http_server.h>

#include "support/test.h"

/* A channel with these routes. */
weir_embedded *exchange_open(const weir_http_route *routes);

/* Receives a head. `length` is that of the content; If it `expects`, the client
 * waits for status 100. */
void exchange_put_head(weir_embedded *embedded, const char *method, const char *target,
                       int64_t length, bool expects);

/* Receives content, and the end. */
void exchange_put_content(weir_embedded *embedded, const char *text);
void exchange_put_end(weir_embedded *embedded);

/* Receives a whole request without content. */
void exchange_put(weir_embedded *embedded, const char *method, const char *target);

/*
 * Compares everything that was sent. A head is its status, its length in parentheses if there is
 * one other than 0 ("?" = unknown), its fields except Content-Type of text/plain, and "close".
 */
void assert_exchange_sent(weir_embedded *embedded, const char *expected);

#endif
