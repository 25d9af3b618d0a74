/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a stream of bytes to handlers, cut in every way, and writes down what comes out:
 *
 *     "one|two|error(WEIR_ETOOLONG)|three"
 *
 * Buffers and composites are written as their bytes, other messages by their type's name in <>,
 * unless the feed has words for them. The end of the stream comes last.
 */
#ifndef WEIR_TEST_FEED_H
#define WEIR_TEST_FEED_H

#include <weir/embedded.h>
#include <weir/pipeline.h>

#include "support/test.h"

#define FEED_SIZE 4096 /* of what is written down */

struct feed {
    void (*add)(weir_pipeline *pipeline, const struct feed *feed); /* the handlers */
    const void *arg;
    void (*format)(const weir_msg *msg, char *text, size_t size); /* NULL = as above */
};

/* Feeds the bytes, cut at these places (ascending, at most two; 0 = not), or byte by byte. */
void feed_cut(const struct feed *feed, const void *bytes, size_t length, size_t first,
              size_t second, char *ret_text);
void feed_bytewise(const struct feed *feed, const void *bytes, size_t length, char *ret_text);

/* In every split into two and three parts, and byte by byte: always the same comes out. */
void assert_fed(const struct feed *feed, const void *bytes, size_t length, const char *expected);

#define assert_text_fed(feed, text, expected) assert_fed(feed, text, strlen(text), expected)

/* A buffer with these bytes. */
weir_msg *feed_bytes(const void *bytes, size_t length);

#endif
