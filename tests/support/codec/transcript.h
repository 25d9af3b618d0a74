/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has come out of a pipeline, as a row of records: messages with their bytes, and errors. Of a
 * decoder it is compared with the transcript of a plain reference, or with its own of other cuts.
 * Fuzz targets use it too, so it knows nothing of tests: what cannot go on aborts.
 */
#ifndef WEIR_TEST_TRANSCRIPT_H
#define WEIR_TEST_TRANSCRIPT_H

#include <weir/pipeline.h>

struct transcript {
    uint8_t *records;
    size_t length;
    size_t capacity;
};

void transcript_add_message(struct transcript *transcript, const void *bytes, size_t length);
void transcript_add_error(struct transcript *transcript, int err);
void transcript_clear(struct transcript *transcript);

/* Adds the handlers. */
typedef int transcript_add_fn(weir_pipeline *pipeline, const void *options);

enum {
    TRANSCRIPT_WHOLE = 0,    /* all bytes come at once */
    TRANSCRIPT_BYTEWISE = 1, /* each byte alone */
    /* any other number: cut at random by it */
};

/* Whether the same comes out however the bytes are cut: whole, in drips, and like that. */
bool transcript_is_same_for_cuts(const struct transcript *expected, transcript_add_fn *add,
                                 const void *options, const void *bytes, size_t length,
                                 uint32_t cuts);

/* For fuzz targets: aborts if that is not so. Frees the records of `expected`. */
void transcript_expect(struct transcript *expected, transcript_add_fn *add, const void *options,
                       const void *bytes, size_t length, uint32_t cuts);

#endif
