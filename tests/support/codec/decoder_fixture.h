/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder on an embedded channel whose errors are recorded, and checks that apply to every frame
 * decoder.
 */
#ifndef WEIR_TEST_DECODER_FIXTURE_H
#define WEIR_TEST_DECODER_FIXTURE_H

#include "support/codec/feed.h"
#include "support/codec/transcript.h"

weir_embedded *fixture_open(transcript_add_fn *add, const void *options);
void fixture_write(weir_embedded *embedded, const void *bytes, size_t length);

#define fixture_write_text(embedded, text) fixture_write(embedded, text, strlen(text))

/* The last error since fixture_open: "WEIR_ETOOLONG: line over ..."; "" if there was none. */
const char *fixture_error(void);

/* Adds the decoder with these options, and returns the result. */
int fixture_try_add(transcript_add_fn *add, const void *options);

/* Asserts that writing these bytes repeatedly does not increase memory. */
void fixture_assert_no_growth(weir_embedded *embedded, const void *bytes, size_t length);

/* Asserts that message `n` of the stream, from 0, is a slice at this offset. */
void fixture_assert_slice(transcript_add_fn *add, const void *options, const void *bytes,
                          size_t length, size_t n, size_t offset);

/* Adds the decoder and feeds it in small pieces, failing each allocation in turn. */
void fixture_assert_survives(transcript_add_fn *add, const void *options, const void *bytes,
                             size_t length);

#endif
