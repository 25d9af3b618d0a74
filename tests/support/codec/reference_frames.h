/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference implementations of the frame decoders over contiguous memory.
 */
#ifndef WEIR_TEST_REFERENCE_FRAMES_H
#define WEIR_TEST_REFERENCE_FRAMES_H

#include <weir/frames.h>

#include "support/codec/transcript.h"

void reference_length_field(const weir_length_field_options *options, const uint8_t *bytes,
                            size_t length, struct transcript *transcript);

void reference_delimited(const weir_delimited_options *options, const uint8_t *bytes, size_t length,
                         struct transcript *transcript);

void reference_fixed_frames(size_t frame, const uint8_t *bytes, size_t length,
                            struct transcript *transcript);

void reference_varint_frames(size_t limit, const uint8_t *bytes, size_t length,
                             struct transcript *transcript);

void reference_netstrings(size_t limit, const uint8_t *bytes, size_t length,
                          struct transcript *transcript);

void reference_json_splitter(size_t limit, const uint8_t *bytes, size_t length,
                             struct transcript *transcript);

#endif
