/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/resp/resp.h"

#include <errno.h>

#include <weir/buf.h>

#include "base/memory.h"
#include "protocol/resp/resp_number.h"

#define VERBATIM_PREFIX 4 /* "txt:" */
#define ELEMENTS_MIN 4

/* ---- kinds ---- */

bool weir__resp_kind_is_line(enum weir_resp_kind kind)
{
    return kind == WEIR_RESP_SIMPLE || kind == WEIR_RESP_ERROR || kind == WEIR_RESP_BIG_NUMBER;
}

bool weir__resp_kind_is_text(enum weir_resp_kind kind)
{
    return weir__resp_kind_is_line(kind) || kind == WEIR_RESP_BULK ||
           kind == WEIR_RESP_BULK_ERROR || kind == WEIR_RESP_VERBATIM;
}

bool weir__resp_kind_is_map(enum weir_resp_kind kind)
{
    return kind == WEIR_RESP_MAP || kind == WEIR_RESP_ATTRIBUTE;
}

bool weir__resp_kind_is_aggregate(enum weir_resp_kind kind)
{
    return weir__resp_kind_is_map(kind) || kind == WEIR_RESP_ARRAY || kind == WEIR_RESP_SET ||
           kind == WEIR_RESP_PUSH;
}

static bool has_text(const weir_resp *value)
{
    return weir__resp_kind_is_text(value->kind) && !value->is_header;
}

/* ---- the message ---- */

static void destroy(weir_msg *msg)
{
    weir_resp *value = (weir_resp *)(void *)msg;

    if (has_text(value))
        weir_buf_release(value->text);
    if (weir__resp_kind_is_aggregate(value->kind)) {
        for (size_t i = 0; i < value->count; i++)
            weir_resp_release(value->elements[i]);
        weir__free(value->elements);
    }
    weir_resp_release(value->attributes);
    weir__free(value);
}

/* The approximate size on the wire. */
static size_t size_of(const weir_msg *msg)
{
    const weir_resp *value = (const weir_resp *)(const void *)msg;
    size_t size = 16;

    if (has_text(value))
        size += weir_buf_readable(value->text);
    for (size_t i = 0; i < weir_resp_count(value); i++)
        size += size_of(&value->elements[i]->msg);
    return size;
}

const weir_msg_type weir_resp_type = {.name = "resp", .destroy = destroy, .size = size_of};

weir_resp *weir_resp_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_resp_type) ? (weir_resp *)(void *)msg : NULL;
}

weir_msg *weir_resp_msg(weir_resp *value)
{
    return &value->msg;
}

weir_resp *weir_resp_retain(weir_resp *value)
{
    weir_msg_retain(&value->msg);
    return value;
}

void weir_resp_release(weir_resp *value)
{
    if (value != NULL)
        weir_msg_release(&value->msg);
}

/* ---- creating ---- */

static int create(enum weir_resp_kind kind, weir_resp **ret_value)
{
    weir_resp *value = weir__zalloc(sizeof(*value));

    if (value == NULL)
        return -ENOMEM;
    weir_msg_init(&value->msg, &weir_resp_type);
    value->kind = kind;
    *ret_value = value;
    return 0;
}

static bool is_allowed(enum weir_resp_kind kind, weir_span text)
{
    weir_byte_set ends;

    if (kind == WEIR_RESP_BIG_NUMBER)
        return weir__resp_is_big_number(text);
    if (kind == WEIR_RESP_VERBATIM)
        return text.length >= VERBATIM_PREFIX && text.data[VERBATIM_PREFIX - 1] == ':';
    if (!weir__resp_kind_is_line(kind))
        return weir__resp_kind_is_text(kind);
    weir_byte_set_init(&ends, "\r\n", 2);
    return weir_span_find_any(text, &ends) < 0;
}

int weir_resp_create_from(enum weir_resp_kind kind, weir_buf *text, weir_resp **ret_value)
{
    int err = is_allowed(kind, weir_buf_span(text)) ? 0 : -EINVAL;

    if (err == 0)
        err = create(kind, ret_value);
    if (err == 0)
        (*ret_value)->text = text;
    else
        weir_buf_release(text);
    return err;
}

int weir_resp_create_text(enum weir_resp_kind kind, const void *bytes, size_t length,
                          weir_resp **ret_value)
{
    weir_buf *text;
    int err = weir_buf_create_from(bytes, length, &text);

    return err < 0 ? err : weir_resp_create_from(kind, text, ret_value);
}

int weir_resp_create_bulk_header(uint64_t length, weir_resp **ret_value)
{
    int err = create(WEIR_RESP_BULK, ret_value);

    if (err < 0)
        return err;
    (*ret_value)->is_header = true;
    (*ret_value)->length = length;
    return 0;
}

int weir_resp_create_null(weir_resp **ret_value)
{
    return create(WEIR_RESP_NULL, ret_value);
}

int weir_resp_create_integer(int64_t integer, weir_resp **ret_value)
{
    int err = create(WEIR_RESP_INTEGER, ret_value);

    if (err == 0)
        (*ret_value)->integer = integer;
    return err;
}

int weir_resp_create_boolean(bool boolean, weir_resp **ret_value)
{
    int err = create(WEIR_RESP_BOOLEAN, ret_value);

    if (err == 0)
        (*ret_value)->integer = boolean;
    return err;
}

int weir_resp_create_double(double number, weir_resp **ret_value)
{
    int err = create(WEIR_RESP_DOUBLE, ret_value);

    if (err == 0)
        (*ret_value)->number = number;
    return err;
}

int weir_resp_create_aggregate(enum weir_resp_kind kind, weir_resp **ret_value)
{
    return weir__resp_kind_is_aggregate(kind) ? create(kind, ret_value) : -EINVAL;
}

/* ---- appending ---- */

static int grow(weir_resp *value)
{
    size_t capacity = value->capacity == 0 ? ELEMENTS_MIN : value->capacity * 2;
    weir_resp **elements;

    if (value->count < value->capacity)
        return 0;
    elements = weir__realloc(value->elements, capacity * sizeof(weir_resp *));
    if (elements == NULL)
        return -ENOMEM;
    value->elements = elements;
    value->capacity = capacity;
    return 0;
}

int weir_resp_add(weir_resp *value, weir_resp *element)
{
    int err = -EINVAL;

    if (weir__resp_kind_is_aggregate(value->kind) && element->kind != WEIR_RESP_ATTRIBUTE &&
        !element->is_header)
        err = grow(value);
    if (err == 0)
        value->elements[value->count++] = element;
    else
        weir_resp_release(element);
    return err;
}

int weir_resp_set_attributes(weir_resp *value, weir_resp *attributes)
{
    if (attributes->kind != WEIR_RESP_ATTRIBUTE) {
        weir_resp_release(attributes);
        return -EINVAL;
    }
    weir_resp_release(value->attributes);
    value->attributes = attributes;
    return 0;
}

/* ---- reading ---- */

enum weir_resp_kind weir_resp_kind(const weir_resp *value)
{
    return value->kind;
}

weir_buf *weir_resp_buf(const weir_resp *value)
{
    return has_text(value) ? value->text : NULL;
}

weir_span weir_resp_text(const weir_resp *value)
{
    weir_span text = has_text(value) ? weir_buf_span(value->text) : weir_span_of("", 0);

    if (value->kind == WEIR_RESP_VERBATIM)
        text = weir_span_of(text.data + VERBATIM_PREFIX, text.length - VERBATIM_PREFIX);
    return text;
}

bool weir_resp_is(const weir_resp *value, const char *text)
{
    return has_text(value) && weir_span_equal(weir_resp_text(value), weir_span_of_text(text));
}

bool weir_resp_is_bulk_header(const weir_resp *value)
{
    return value->is_header;
}

uint64_t weir_resp_bulk_length(const weir_resp *value)
{
    return value->is_header ? value->length : 0;
}

/* Clamped to the range of int64_t. */
static int64_t whole_part(double number)
{
    if (number != number)
        return 0;
    if (number >= 0x1p63)
        return INT64_MAX;
    return number < -0x1p63 ? INT64_MIN : (int64_t)number;
}

int64_t weir_resp_integer(const weir_resp *value)
{
    int64_t integer = 0;

    if (value->kind == WEIR_RESP_INTEGER || value->kind == WEIR_RESP_BOOLEAN)
        return value->integer;
    if (value->kind == WEIR_RESP_DOUBLE)
        return whole_part(value->number);
    return weir__resp_read_integer(weir_resp_text(value), &integer) == 0 ? integer : 0;
}

double weir_resp_double(const weir_resp *value)
{
    double number = 0;

    if (value->kind == WEIR_RESP_DOUBLE)
        return value->number;
    if (value->kind == WEIR_RESP_INTEGER)
        return (double)value->integer;
    return weir__resp_read_double(weir_resp_text(value), &number) == 0 ? number : 0;
}

size_t weir_resp_count(const weir_resp *value)
{
    return weir__resp_kind_is_aggregate(value->kind) ? value->count : 0;
}

weir_resp *weir_resp_at(const weir_resp *value, size_t index)
{
    return index < weir_resp_count(value) ? value->elements[index] : NULL;
}

weir_resp *weir_resp_find(const weir_resp *value, const char *key)
{
    for (size_t i = 0; i + 1 < weir_resp_count(value); i += 2)
        if (weir_resp_is(value->elements[i], key))
            return value->elements[i + 1];
    return NULL;
}

weir_resp *weir_resp_attributes(const weir_resp *value)
{
    return value->attributes;
}
