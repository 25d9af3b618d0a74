/* SPDX-License-Identifier: Apache-2.0 */
#include "support/codec/reference_frames.h"

#include <string.h>

#include <weir/error.h>

#define HUGE_LENGTH (INT64_MAX / 4) /* a length above any limit */

/* ---- length field ---- */

static int64_t plain_field(const uint8_t *field, size_t width, enum weir_byte_order order)
{
    uint64_t value = 0;

    for (size_t i = 0; i < width; i++)
        value = value << 8 | field[order == WEIR_BIG_ENDIAN ? i : width - 1 - i];
    return value > HUGE_LENGTH ? HUGE_LENGTH : (int64_t)value;
}

void reference_length_field(const weir_length_field_options *options, const uint8_t *bytes,
                            size_t length, struct transcript *transcript)
{
    int64_t header = (int64_t)(options->offset + options->width), left = (int64_t)length, frame;

    for (; left >= header; bytes += frame, left -= frame) {
        frame = plain_field(bytes + options->offset, options->width, options->order) +
                options->adjustment + header;
        if (frame < header || frame < (int64_t)options->strip) {
            transcript_add_error(transcript, WEIR_EMALFORMED);
            return;
        }
        if (frame > (int64_t)options->max_length)
            transcript_add_error(transcript, WEIR_ETOOLONG);
        else if (frame <= left)
            transcript_add_message(transcript, bytes + options->strip,
                                   (size_t)frame - options->strip);
        if (frame > left)
            return;
    }
}

/* ---- delimiters ---- */

static size_t plain_delimiter(const weir_span *list, size_t count, const uint8_t *bytes,
                              size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].length <= length && memcmp(list[i].data, bytes, list[i].length) == 0)
            return list[i].length;
    return 0;
}

void reference_delimited(const weir_delimited_options *options, const uint8_t *bytes, size_t length,
                         struct transcript *transcript)
{
    size_t begin = 0, end = 0;

    while (end < length) {
        size_t delimiter =
            plain_delimiter(options->delimiters, options->count, bytes + end, length - end);

        if (delimiter > 0 && end - begin > options->max_length)
            transcript_add_error(transcript, WEIR_ETOOLONG);
        else if (delimiter > 0)
            transcript_add_message(transcript, bytes + begin,
                                   end - begin + (options->keep_delimiter ? delimiter : 0));
        end += delimiter > 0 ? delimiter : 1;
        if (delimiter > 0)
            begin = end;
    }
    if (end - begin > options->max_length)
        transcript_add_error(transcript, WEIR_ETOOLONG);
}

/* ---- fixed, varint, netstrings ---- */

void reference_fixed_frames(size_t frame, const uint8_t *bytes, size_t length,
                            struct transcript *transcript)
{
    for (; length >= frame; bytes += frame, length -= frame)
        transcript_add_message(transcript, bytes, frame);
}

/* Handles a frame of known length: complete, incomplete or too long. True if another may follow. */
static bool plain_body(const uint8_t *body, uint64_t length, size_t left, size_t limit,
                       struct transcript *transcript)
{
    if (length > limit)
        transcript_add_error(transcript, WEIR_ETOOLONG);
    else if (length <= left)
        transcript_add_message(transcript, body, (size_t)length);
    return length <= left;
}

static bool plain_malformed(struct transcript *transcript)
{
    transcript_add_error(transcript, WEIR_EMALFORMED);
    return false;
}

static bool plain_varint_frame(const uint8_t **bytes, size_t *length, size_t limit,
                               struct transcript *transcript)
{
    const uint8_t *from = *bytes;
    uint64_t value = 0;
    size_t i = 0;

    do {
        if (i == 5)
            return plain_malformed(transcript);
        if (i == *length)
            return false;
        value |= (uint64_t)(from[i] & 0x7f) << 7 * i;
    } while (from[i++] >= 0x80);
    if (value > UINT32_MAX || (i > 1 && from[i - 1] == 0))
        return plain_malformed(transcript);
    if (!plain_body(from + i, value, *length - i, limit, transcript))
        return false;
    *bytes += i + value;
    *length -= i + (size_t)value;
    return true;
}

void reference_varint_frames(size_t limit, const uint8_t *bytes, size_t length,
                             struct transcript *transcript)
{
    while (plain_varint_frame(&bytes, &length, limit, transcript))
        continue;
}

static bool plain_netstring(const uint8_t **bytes, size_t *length, size_t limit,
                            struct transcript *transcript)
{
    const uint8_t *from = *bytes;
    uint64_t value = 0;
    size_t i = 0, left;

    for (; i < *length && from[i] >= '0' && from[i] <= '9'; i++) {
        if (i == 19 || (i == 1 && from[0] == '0'))
            return plain_malformed(transcript);
        value = value * 10 + (from[i] - '0');
    }
    if (i == *length)
        return false;
    if (i == 0 || from[i] != ':')
        return plain_malformed(transcript);
    left = *length - i - 1;
    if (value <= limit && value >= left) /* incomplete without its comma */
        return false;
    if (value <= limit && from[i + 1 + value] != ',')
        return plain_malformed(transcript);
    if (!plain_body(from + i + 1, value, left, limit, transcript) || value >= left)
        return false;
    if (from[i + 1 + value] != ',')
        return plain_malformed(transcript);
    *bytes += i + 1 + value + 1;
    *length -= i + 1 + (size_t)value + 1;
    return true;
}

void reference_netstrings(size_t limit, const uint8_t *bytes, size_t length,
                          struct transcript *transcript)
{
    while (plain_netstring(&bytes, &length, limit, transcript))
        continue;
}

/* ---- JSON ---- */

/* The length of the string or bracketed value that starts here; 0 if it is incomplete. */
static size_t plain_json_string(const uint8_t *bytes, size_t length)
{
    for (size_t i = 1; i < length; i++)
        if (bytes[i] == '\\')
            i++;
        else if (bytes[i] == '"')
            return i + 1;
    return 0;
}

static size_t plain_json_value(const uint8_t *bytes, size_t length)
{
    size_t depth = 0, part;

    for (size_t i = 0; i < length; i += part) {
        part = bytes[i] == '"' ? plain_json_string(bytes + i, length - i) : 1;
        if (part == 0)
            return 0;
        if (bytes[i] == '{' || bytes[i] == '[')
            depth++;
        if ((bytes[i] == '}' || bytes[i] == ']') && --depth == 0)
            return i + 1;
    }
    return 0;
}

void reference_json_splitter(size_t limit, const uint8_t *bytes, size_t length,
                             struct transcript *transcript)
{
    size_t value;

    for (; length > 0; bytes += value, length -= value) {
        value = 1;
        if (bytes[0] == ' ' || bytes[0] == '\t' || bytes[0] == '\r' || bytes[0] == '\n')
            continue;
        if (bytes[0] != '{' && bytes[0] != '[') {
            (void)plain_malformed(transcript);
            return;
        }
        value = plain_json_value(bytes, length);
        if (value > limit || (value == 0 && length > limit))
            transcript_add_error(transcript, WEIR_ETOOLONG);
        else if (value > 0)
            transcript_add_message(transcript, bytes, value);
        if (value == 0)
            return;
    }
}
