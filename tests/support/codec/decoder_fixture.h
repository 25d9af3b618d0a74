/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder on an embedded channel, with somebody behind it who hears of its errors; and what has
 * to hold for every decoder of frames.
 */
#ifndef WEIR_TEST_DECODER_FIXTURE_H
#define WEIR_TEST_DECODER_FIXTURE_H

#include "support/codec/feed.h"
#include "support/codec/transcript.h"

weir_embedded *fixture_open(transcript_add_fn *add, const void *options);
void fixture_write(weir_embedded *embedded, const void *bytes, size_t length);

#define fixture_write_text(embedded, text) fixture_write(embedded, text, strlen(text))

/* The last error since fixture_open in words: "WEIR_ETOOLONG: a line is ..."; "" if there was none.
 */
const char *fixture_error(void);

/* What adding it with these options returns. */
int fixture_try_add(transcript_add_fn *add, const void *options);

/* However often these bytes are put in, it keeps no more memory. */
void fixture_assert_no_growth(weir_embedded *embedded, const void *bytes, size_t length);

/* The n-th message of the stream, from 0 on, is a slice that begins at that offset of it. */
void fixture_assert_slice(transcript_add_fn *add, const void *options, const void *bytes,
                          size_t length, size_t n, size_t offset);

/* Adds it and feeds it in small pieces, while each allocation fails in turn. */
void fixture_assert_survives(transcript_add_fn *add, const void *options, const void *bytes,
                             size_t length);

#endif
