/* SPDX-License-Identifier: Apache-2.0 */
#include "support/codec/plain_frames.h"

#include <string.h>

#include <weir/error.h>

#define HUGE_LENGTH (INT64_MAX / 4) /* whatever is added: longer than any limit */

/* ---- length field ---- */

static int64_t plain_field(const uint8_t *field, size_t width, enum weir_byte_order order)
{
    uint64_t value = 0;

    for (size_t i = 0; i < width; i++)
        value = value << 8 | field[order == WEIR_BIG_ENDIAN ? i : width - 1 - i];
    return value > HUGE_LENGTH ? HUGE_LENGTH : (int64_t)value;
}

void plain_length_field(const weir_length_field_options *options, const uint8_t *bytes,
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
        if (frame > (int64_t)options->limit)
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

void plain_delimited(const weir_delimited_options *options, const uint8_t *bytes, size_t length,
                     struct transcript *transcript)
{
    size_t begin = 0, end = 0;

    while (end < length) {
        size_t delimiter =
            plain_delimiter(options->delimiters, options->count, bytes + end, length - end);

        if (delimiter > 0 && end - begin > options->limit)
            transcript_add_error(transcript, WEIR_ETOOLONG);
        else if (delimiter > 0)
            transcript_add_message(transcript, bytes + begin,
                                   end - begin + (options->keep_delimiter ? delimiter : 0));
        end += delimiter > 0 ? delimiter : 1;
        if (delimiter > 0)
            begin = end;
    }
    if (end - begin > options->limit)
        transcript_add_error(transcript, WEIR_ETOOLONG);
}
