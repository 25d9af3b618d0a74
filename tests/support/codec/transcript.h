/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a pipeline as a sequence of records: messages with their bytes, and errors. It is
 * compared with the output of a reference implementation, or of other splits. Fuzz targets use it
 * too, so failures abort.
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
    TRANSCRIPT_WHOLE = 0,    /* all bytes at once */
    TRANSCRIPT_BYTEWISE = 1, /* byte by byte */
    /* any other number: seed of a random split */
};

/* True if the output is as expected for the bytes whole, byte by byte, and split by this seed. */
bool transcript_is_same_for_cuts(const struct transcript *expected, transcript_add_fn *add,
                                 const void *options, const void *bytes, size_t length,
                                 uint32_t cuts);

/* For fuzz targets: aborts if the output differs. Frees the records of `expected`. */
void transcript_expect(struct transcript *expected, transcript_add_fn *add, const void *options,
                       const void *bytes, size_t length, uint32_t cuts);

#endif
