/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header fields: a table of offsets, and the text that was added.
 *
 *      area:   [ field 0 | field 1 | ... ->          <- added text | added text ]
 *
 * Fields grow from the start of the area, text from its end. The area begins behind the head in the
 * same block; when it is full, both move to a larger buffer. Offsets into added text count from the
 * end of the area, so that they stay right.
 */
#ifndef WEIR_PROTOCOL_HTTP_HEADERS_H
#define WEIR_PROTOCOL_HTTP_HEADERS_H

#include <weir/http.h>

#include "protocol/http/names.h"

/* Offsets of text. The others are relative to the received head. */
#define WEIR__HTTP_ADDED 0x80000000u    /* set: relative to the end of the area, backwards */
#define WEIR__HTTP_CUSTOMARY UINT32_MAX /* a name: the customary spelling of its number */

typedef struct weir__http_field {
    uint32_t name;
    uint32_t value;
    uint32_t value_length;
    uint16_t name_length;
    uint8_t id;
} weir__http_field;

struct weir_http_headers {
    uint64_t present[2];      /* a bit per number of a name */
    weir__http_field *fields; /* the start of the area */
    uint8_t *end;             /* of the area */
    const uint8_t *received;  /* what other offsets are relative to; may lie in the area */
    weir_buf *area;           /* NULL while the area is that behind the head */
    uint32_t count;           /* fields */
    uint32_t added;           /* bytes of text at the end of the area */
    uint32_t text;            /* those of them that the user added: limited */
    bool has_repeated;        /* a name with a number was received twice */
};

/* Sets some hundred bytes to zero. A call: where they know the size, compilers insert string
 * instructions, which are slow to start. */
void weir__http_clear(void *memory, size_t size);

/* Initializes headers without fields. The area is aligned as fields are. */
static inline void weir__http_headers_init(weir_http_headers *headers, void *area, uint8_t *end)
{
    *headers = (weir_http_headers){.fields = area, .end = end};
}

static inline void weir__http_headers_deinit(weir_http_headers *headers)
{
    weir_buf_release(headers->area);
}

/* Resolves an offset. */
static inline weir_span weir__http_text(const weir_http_headers *headers, uint32_t offset,
                                        size_t length)
{
    return weir_span_of((offset & WEIR__HTTP_ADDED) != 0
                            ? headers->end - (offset & ~WEIR__HTTP_ADDED)
                            : headers->received + offset,
                        length);
}

static inline weir_span weir__http_field_name(const weir_http_headers *headers,
                                              const weir__http_field *field)
{
    if (field->name == WEIR__HTTP_CUSTOMARY)
        return weir__http_name_span((enum weir_http_name)field->id);
    return weir__http_text(headers, field->name, field->name_length);
}

static inline weir_span weir__http_field_value(const weir_http_headers *headers,
                                               const weir__http_field *field)
{
    return weir__http_text(headers, field->value, field->value_length);
}

static inline bool weir__http_headers_have(const weir_http_headers *headers,
                                           enum weir_http_name name)
{
    return (headers->present[(unsigned)name / 64] >> ((unsigned)name % 64) & 1) != 0;
}

/* The bytes between fields and text. */
static inline size_t weir__http_headers_room(const weir_http_headers *headers)
{
    return (size_t)(headers->end - headers->added - (uint8_t *)(headers->fields + headers->count));
}

/* Makes room for one more field and `text` bytes. Fails with -ENOMEM. */
int weir__http_headers_grow(weir_http_headers *headers, size_t text);

/* Appends a field of a received head. Fails with -ENOMEM. */
static inline int weir__http_headers_push(weir_http_headers *headers, weir__http_field field)
{
    uint64_t *present, bit;

    if (weir__http_headers_room(headers) < sizeof(field)) {
        int err = weir__http_headers_grow(headers, 0);

        if (err < 0)
            return err;
    }
    present = &headers->present[field.id / 64u];
    bit = UINT64_C(1) << (field.id % 64u);
    headers->has_repeated |= field.id != WEIR_HTTP_OTHER && (*present & bit) != 0;
    *present |= bit;
    headers->fields[headers->count++] = field;
    return 0;
}

/* Removes from trailers the fields that Connection in their head names (RFC 9110 7.6.1). */
void weir__http_headers_remove_named_by(weir_http_headers *trailers, const weir_http_headers *head);

/* Copies text into the area; unchecked. Fails with -ENOMEM. */
int weir__http_headers_add_bytes(weir_http_headers *headers, weir_span text, uint32_t *ret_offset);

#endif
