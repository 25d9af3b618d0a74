/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content to encode and decode, whole or in pieces.
 */
#ifndef WEIR_TEST_CODED_CONTENT_H
#define WEIR_TEST_CODED_CONTENT_H

#include <weir/buf.h>

#include "protocol/http/content_coding.h"

/* Text that compresses well, of any length; the same for the same length. */
weir_buf *content_text(size_t length);

/* Bytes that do not compress. */
weir_buf *content_noise(size_t length);

/* `length` zeroes, encoded with each of the codings in turn. NULL ends the list. */
weir_buf *content_bomb(size_t length, const weir__http_coding *const *codings);

/* Encodes in pieces of `piece` bytes, flushing after each one if told so. */
weir_buf *content_encode(const weir__http_coding *coding, const weir_buf *content, size_t piece,
                         bool flushes);

/* The output of a program that reads `in`; NULL if the program is missing. */
weir_buf *content_pipe(const char *command, const weir_buf *in);

#endif
