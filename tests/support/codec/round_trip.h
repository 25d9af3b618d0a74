/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is encoded, cut at random and decoded is what it was: for random messages, one after the
 * other through the same pair of pipelines; buffers, and composites of two.
 */
#ifndef WEIR_TEST_ROUND_TRIP_H
#define WEIR_TEST_ROUND_TRIP_H

#include "support/codec/transcript.h"

struct round_trip {
    const char *name;
    transcript_add_fn *add_encoder;
    const void *encoder; /* options */
    transcript_add_fn *add_decoder;
    const void *decoder;
    size_t length_max;  /* of messages */
    const char *spared; /* characters that messages do not have; NULL = they have any byte */
};

void check_round_trip(const struct round_trip *round_trip);

#endif
