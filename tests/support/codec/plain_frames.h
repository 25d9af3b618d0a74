/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the decoders of frames ought to find, each written plainly over flat memory.
 */
#ifndef WEIR_TEST_PLAIN_FRAMES_H
#define WEIR_TEST_PLAIN_FRAMES_H

#include <weir/frames.h>

#include "support/codec/transcript.h"

void plain_length_field(const weir_length_field_options *options, const uint8_t *bytes,
                        size_t length, struct transcript *transcript);

void plain_delimited(const weir_delimited_options *options, const uint8_t *bytes, size_t length,
                     struct transcript *transcript);

void plain_fixed_frames(size_t frame, const uint8_t *bytes, size_t length,
                        struct transcript *transcript);

void plain_varint_frames(size_t limit, const uint8_t *bytes, size_t length,
                         struct transcript *transcript);

void plain_netstrings(size_t limit, const uint8_t *bytes, size_t length,
                      struct transcript *transcript);

void plain_json_splitter(size_t limit, const uint8_t *bytes, size_t length,
                         struct transcript *transcript);

#endif
