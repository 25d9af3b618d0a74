/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a byte stream to handlers, split in every way, and formats the output:
 *
 *     "one|two|error(WEIR_ETOOLONG)|three"
 *
 * Buffers and composites are formatted as their bytes, other messages as the name of their type in
 * <>, unless the feed has a formatter. The end of the stream comes last.
 */
#ifndef WEIR_TEST_FEED_H
#define WEIR_TEST_FEED_H

#include <weir/embedded.h>
#include <weir/pipeline.h>

#include "support/test.h"

#define FEED_SIZE 4096 /* of the formatted output */

struct feed {
    void (*add)(weir_pipeline *pipeline, const struct feed *feed); /* adds the handlers */
    const void *arg;
    void (*format)(const weir_msg *msg, char *text, size_t size); /* NULL = as above */
};

/* Feeds the bytes, split at these positions (ascending; 0 = none), or byte by byte. */
void feed_cut(const struct feed *feed, const void *bytes, size_t length, size_t first,
              size_t second, char *ret_text);
void feed_bytewise(const struct feed *feed, const void *bytes, size_t length, char *ret_text);

/* Asserts the same output for every split into two and three parts, and byte by byte. */
void assert_fed(const struct feed *feed, const void *bytes, size_t length, const char *expected);

#define assert_text_fed(feed, text, expected) assert_fed(feed, text, strlen(text), expected)

/* Creates a buffer with these bytes. */
weir_msg *feed_bytes(const void *bytes, size_t length);

#endif
