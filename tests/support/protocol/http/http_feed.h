/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a byte stream to the codec, split in every way, and formats what an application sees:
 *
 *     "GET / 1.1 {Host: h} 0|end|POST / 1.1 {Host: h} 3|(abc)|end|refused(400)|error(WEIR_ECUTOFF)"
 *
 * Pieces of content that follow each other are joined. The application of a server answers each
 * request at its end with 200 and the length of its content as text.
 */
#ifndef WEIR_TEST_HTTP_FEED_H
#define WEIR_TEST_HTTP_FEED_H

#include <weir/embedded.h>
#include <weir/http1.h>

#define HTTP_FEED_SIZE 32768

struct http_feed {
    const weir_http1_options *options;
    const char *requests; /* a client's: the methods written before, "GET HEAD" */
};

/* What came out: to the application, and to the peer, without Date fields. */
struct http_fed {
    char in[HTTP_FEED_SIZE];
    char out[HTTP_FEED_SIZE];
    bool is_open; /* the channel, before the end of the input */
};

/* A server or client on an embedded channel, with an application that takes notes in `fed`. */
weir_embedded *http_feed_open(const struct http_feed *feed, struct http_fed *fed);

/* Receives bytes; collects what was sent. */
void http_feed_put(weir_embedded *embedded, const void *bytes, size_t length, struct http_fed *fed);
void http_feed_collect(weir_embedded *embedded, struct http_fed *fed);

/* Ends the input, and frees everything. */
void http_feed_close(weir_embedded *embedded, struct http_fed *fed);

/* Asserts the notes for the whole, every split into two parts, and byte by byte. `out` may be NULL:
 * then it only has to be the same each time. */
void assert_http_fed(const struct http_feed *feed, const void *bytes, size_t length, const char *in,
                     const char *out);

#define assert_http_text_fed(feed, text, in, out) assert_http_fed(feed, text, strlen(text), in, out)

#endif
