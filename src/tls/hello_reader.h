/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads numbers and blocks from a handshake message, which may span several records:
 *
 *      22 3 1  length | part of the message || 22 3 1  length | the rest
 *
 * A reader is limited to its block: an inner block that claims to be longer than the outer one
 * cannot be read. Readers are values: a copy reads the same bytes again. Nothing is copied or
 * allocated.
 */
#ifndef WEIR_TLS_HELLO_READER_H
#define WEIR_TLS_HELLO_READER_H

#include <string.h>

#include <weir/buf.h>

#define WEIR__TLS_RECORD_HEADER 5

typedef struct weir__hello_reader {
    const uint8_t *at;
    size_t in_record; /* bytes until the next header */
    size_t left;      /* bytes of the block */
} weir__hello_reader;

/* A reader of `length` bytes within complete records. */
static inline weir__hello_reader weir__hello_reader_of_records(const uint8_t *records,
                                                               size_t length)
{
    return (weir__hello_reader){.at = records, .in_record = 0, .left = length};
}

/* A reader of bytes without record headers. */
static inline weir__hello_reader weir__hello_reader_of_span(weir_span bytes)
{
    return (weir__hello_reader){.at = bytes.data, .in_record = bytes.length, .left = bytes.length};
}

/* The next contiguous bytes: at least one, at most `max`, which must not exceed `left`. */
static inline weir_span weir__hello_reader_run(weir__hello_reader *reader, size_t max)
{
    weir_span run;

    if (reader->in_record == 0) {
        reader->in_record = (size_t)reader->at[3] << 8 | reader->at[4];
        reader->at += WEIR__TLS_RECORD_HEADER;
    }
    run.data = reader->at;
    run.length = max < reader->in_record ? max : reader->in_record;
    reader->at += run.length;
    reader->in_record -= run.length;
    reader->left -= run.length;
    return run;
}

/* Copies the next bytes, or skips them (NULL). False if there are fewer. */
static inline bool weir__hello_reader_bytes(weir__hello_reader *reader, void *to, size_t length)
{
    uint8_t *end = to;

    if (length > reader->left)
        return false;
    while (length > 0) {
        weir_span run = weir__hello_reader_run(reader, length);

        if (end != NULL) {
            memcpy(end, run.data, run.length);
            end += run.length;
        }
        length -= run.length;
    }
    return true;
}

/* A number of `size` bytes, at most 4. */
static inline bool weir__hello_reader_number(weir__hello_reader *reader, size_t size,
                                             uint32_t *ret_number)
{
    uint8_t bytes[4];
    uint32_t number = 0;

    if (!weir__hello_reader_bytes(reader, bytes, size))
        return false;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | bytes[i];
    *ret_number = number;
    return true;
}

/* A block preceded by its length, a number of `size` bytes. */
static inline bool weir__hello_reader_block(weir__hello_reader *reader, size_t size,
                                            weir__hello_reader *ret_block)
{
    weir__hello_reader block;
    uint32_t length;

    if (!weir__hello_reader_number(reader, size, &length))
        return false;
    block = *reader;
    block.left = length;
    if (!weir__hello_reader_bytes(reader, NULL, length))
        return false;
    *ret_block = block;
    return true;
}

#endif
