/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that encoding, splitting at random and decoding restores random messages, buffers and
 * composites, one after the other through the same two pipelines.
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
    const char *spared; /* bytes that messages do not contain; NULL = they contain any byte */
};

void check_round_trip(const struct round_trip *round_trip);

#endif
