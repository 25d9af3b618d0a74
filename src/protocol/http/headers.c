/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/headers.h"

#include <errno.h>
#include <string.h>

#include "protocol/http/http1_scan.h"

#define TEXT_MAX 65536u /* bytes that can be added */
#define COUNT_MAX 65536u
#define AREA_MIN 1024u

/* ---- memory ---- */

void weir__http_clear(void *memory, size_t size)
{
    memset(memory, 0, size);
}

int weir__http_headers_grow(weir_http_headers *headers, size_t text)
{
    size_t fields = headers->count * sizeof(headers->fields[0]);
    size_t used = fields + headers->added, need = used + sizeof(headers->fields[0]) + text;
    bool is_inside = headers->received >= (uint8_t *)headers->fields && /* a copied head */
                     headers->received < headers->end;
    size_t size = need * 2 > AREA_MIN ? need * 2 : AREA_MIN;
    weir_buf *area;
    uint8_t *start, *end;
    int err = weir_buf_create(size, 0, &area);

    if (err < 0)
        return err;
    start = weir_buf_space(area);
    end = start + (weir_buf_capacity(area) & ~(size_t)7);
    memcpy(start, headers->fields, fields);
    memcpy(end - headers->added, headers->end - headers->added, headers->added);
    if (is_inside)
        headers->received = end - (headers->end - headers->received);
    headers->fields = (weir__http_field *)(void *)start;
    headers->end = end;
    weir_buf_release(headers->area);
    headers->area = area;
    return 0;
}

/* Copies text to the area, which has room. */
static uint32_t put(weir_http_headers *headers, weir_span text)
{
    headers->added += (uint32_t)text.length;
    if (text.length > 0)
        memcpy(headers->end - headers->added, text.data, text.length);
    return headers->added | WEIR__HTTP_ADDED;
}

/* Text of the headers themselves moves when the area grows: its new place. */
static weir_span moved(const weir_http_headers *headers, const uint8_t *old_end, weir_span text,
                       bool is_inside)
{
    return is_inside ? weir_span_of(headers->end - (old_end - text.data), text.length) : text;
}

static bool is_inside(const weir_http_headers *headers, weir_span text)
{
    return text.data >= (const uint8_t *)headers->fields && text.data <= headers->end;
}

/* Grows for a field with two texts, which may be in the area. */
static int grow(weir_http_headers *headers, weir_span *name, weir_span *value)
{
    bool has_name = is_inside(headers, *name), has_value = is_inside(headers, *value);
    const uint8_t *old_end = headers->end;
    int err = weir__http_headers_grow(headers, name->length + value->length);

    *name = moved(headers, old_end, *name, has_name);
    *value = moved(headers, old_end, *value, has_value);
    return err;
}

/* Makes room for it. */
static inline int reserve(weir_http_headers *headers, weir_span *name, weir_span *value)
{
    size_t need = sizeof(headers->fields[0]) + name->length + value->length;

    return weir__http_headers_room(headers) >= need ? 0 : grow(headers, name, value);
}

int weir__http_headers_add_bytes(weir_http_headers *headers, weir_span text, uint32_t *ret_offset)
{
    weir_span none = {0};
    int err = reserve(headers, &none, &text);

    if (err == 0)
        *ret_offset = put(headers, text);
    return err;
}

/* ---- reading ---- */

size_t weir_http_headers_count(const weir_http_headers *headers)
{
    return headers->count;
}

weir_http_field weir_http_headers_at(const weir_http_headers *headers, size_t index)
{
    const weir__http_field *field = &headers->fields[index];

    return (weir_http_field){.id = (enum weir_http_name)field->id,
                             .name = weir__http_field_name(headers, field),
                             .value = weir__http_field_value(headers, field)};
}

/* The index of the next field with a name, from `index` on; the count if there is none. */
static size_t next(const weir_http_headers *headers, enum weir_http_name name, size_t index)
{
    while (index < headers->count && headers->fields[index].id != name)
        index++;
    return index;
}

weir_span weir_http_headers_get(const weir_http_headers *headers, enum weir_http_name name)
{
    size_t index;

    if (name == WEIR_HTTP_OTHER || !weir__http_headers_have(headers, name))
        return (weir_span){0};
    index = next(headers, name, 0);
    return weir__http_field_value(headers, &headers->fields[index]);
}

static bool is_named(const weir_http_headers *headers, const weir__http_field *field,
                     enum weir_http_name id, weir_span name)
{
    return field->id == id && (id != WEIR_HTTP_OTHER ||
                               weir__http_same_text(weir__http_field_name(headers, field), name));
}

weir_span weir_http_headers_get_named(const weir_http_headers *headers, const char *name)
{
    weir_span text = weir_span_of_text(name);
    enum weir_http_name id = weir_http_name_of(text);

    if (id != WEIR_HTTP_OTHER)
        return weir_http_headers_get(headers, id);
    for (size_t i = 0; i < headers->count; i++)
        if (is_named(headers, &headers->fields[i], id, text))
            return weir__http_field_value(headers, &headers->fields[i]);
    return (weir_span){0};
}

bool weir_http_headers_next(const weir_http_headers *headers, enum weir_http_name name,
                            size_t *index, weir_span *ret_value)
{
    size_t found = headers->count;

    if (name != WEIR_HTTP_OTHER && weir__http_headers_have(headers, name))
        found = next(headers, name, *index);
    if (found == headers->count)
        return false;
    *index = found + 1;
    *ret_value = weir__http_field_value(headers, &headers->fields[found]);
    return true;
}

bool weir_http_headers_have_token(const weir_http_headers *headers, enum weir_http_name name,
                                  const char *token)
{
    weir_span wanted = weir_span_of_text(token), list, element;
    size_t index = 0;

    while (weir_http_headers_next(headers, name, &index, &list))
        while (weir__http_list_next(&list, &element))
            if (weir__http_same_text(element, wanted))
                return true;
    return false;
}

/* ---- changing ---- */

static int check_length(const weir_http_headers *headers, size_t length)
{
    return headers->count >= COUNT_MAX || length > TEXT_MAX - headers->text ? WEIR_ETOOLONG : 0;
}

static int check_value(const weir_http_headers *headers, size_t name_length, weir_span value)
{
    const uint8_t *end = value.data + value.length;

    if (value.length > 0 && weir__http1_scan_value(value.data, end) != end)
        return -EINVAL;
    return check_length(headers, name_length + value.length);
}

static int check_id(enum weir_http_name name)
{
    return name > WEIR_HTTP_OTHER && name < WEIR_HTTP_NAME_COUNT ? 0 : -EINVAL;
}

/* Adds a checked field whose name has the customary spelling, unless there is one. */
static int append(weir_http_headers *headers, enum weir_http_name id, weir_span name,
                  weir_span value)
{
    weir__http_field *field;
    int err = reserve(headers, &name, &value);

    if (err < 0)
        return err;
    field = &headers->fields[headers->count++];
    headers->present[(unsigned)id / 64] |= UINT64_C(1) << ((unsigned)id % 64);
    headers->text += (uint32_t)(name.length + value.length);
    field->id = (uint8_t)id;
    field->name_length = (uint16_t)name.length;
    field->name = name.length > 0 ? put(headers, name) : WEIR__HTTP_CUSTOMARY;
    field->value = put(headers, value);
    field->value_length = (uint32_t)value.length;
    return 0;
}

int weir_http_headers_add(weir_http_headers *headers, enum weir_http_name name, weir_span value)
{
    int err = check_id(name);

    value = weir__http_trimmed(value);
    if (err == 0)
        err = check_value(headers, 0, value);
    return err == 0 ? append(headers, name, (weir_span){0}, value) : err;
}

int weir_http_headers_add_text(weir_http_headers *headers, enum weir_http_name name,
                               const char *value)
{
    return weir_http_headers_add(headers, name, weir_span_of_text(value));
}

int weir_http_headers_add_named(weir_http_headers *headers, weir_span name, weir_span value)
{
    enum weir_http_name id;
    int err;

    if (!weir__http_is_token(name))
        return -EINVAL;
    value = weir__http_trimmed(value);
    err = check_value(headers, name.length, value);
    if (err < 0)
        return err;
    if (name.length > UINT16_MAX)
        return WEIR_ETOOLONG;
    id = weir_http_name_of(name);
    if (id != WEIR_HTTP_OTHER && memcmp(weir__http_name_span(id).data, name.data, name.length) == 0)
        name = (weir_span){0};
    return append(headers, id, name, value);
}

/* Removes the fields with a name, from `from` on. */
static size_t remove_from(weir_http_headers *headers, size_t from, enum weir_http_name id,
                          weir_span name)
{
    size_t kept = from, removed;

    for (size_t i = from; i < headers->count; i++)
        if (!is_named(headers, &headers->fields[i], id, name))
            headers->fields[kept++] = headers->fields[i];
    removed = headers->count - kept;
    headers->count = (uint32_t)kept;
    return removed;
}

static size_t remove_all(weir_http_headers *headers, enum weir_http_name id, weir_span name)
{
    if (!weir__http_headers_have(headers, id))
        return 0;
    if (id != WEIR_HTTP_OTHER)
        headers->present[(unsigned)id / 64] &= ~(UINT64_C(1) << ((unsigned)id % 64));
    return remove_from(headers, 0, id, name);
}

int weir_http_headers_set(weir_http_headers *headers, enum weir_http_name name, weir_span value)
{
    weir_span none = {0};
    weir__http_field *field;
    size_t index;
    int err;

    if (check_id(name) < 0 || !weir__http_headers_have(headers, name))
        return weir_http_headers_add(headers, name, value);
    value = weir__http_trimmed(value);
    err = check_value(headers, 0, value);
    if (err == 0)
        err = reserve(headers, &none, &value);
    if (err < 0)
        return err;
    index = next(headers, name, 0);
    field = &headers->fields[index];
    headers->text += (uint32_t)value.length;
    field->value = put(headers, value);
    field->value_length = (uint32_t)value.length;
    (void)remove_from(headers, index + 1, name, none);
    return 0;
}

int weir_http_headers_set_text(weir_http_headers *headers, enum weir_http_name name,
                               const char *value)
{
    return weir_http_headers_set(headers, name, weir_span_of_text(value));
}

size_t weir_http_headers_remove(weir_http_headers *headers, enum weir_http_name name)
{
    return check_id(name) == 0 ? remove_all(headers, name, (weir_span){0}) : 0;
}

size_t weir_http_headers_remove_named(weir_http_headers *headers, const char *name)
{
    weir_span text = weir_span_of_text(name);

    return remove_all(headers, weir_http_name_of(text), text);
}

/* Removes the fields that a Connection field names. Host stays: without it the request would mean
 * something else. */
static void remove_listed(weir_http_headers *headers, weir_span list)
{
    weir_span name;

    while (weir__http_list_next(&list, &name)) {
        enum weir_http_name id = weir_http_name_of(name);

        if (id != WEIR_HTTP_HOST && id != WEIR_HTTP_CONNECTION)
            (void)remove_all(headers, id, name);
    }
}

static void remove_first(weir_http_headers *headers, enum weir_http_name name)
{
    size_t index = next(headers, name, 0);

    headers->count--;
    memmove(&headers->fields[index], &headers->fields[index + 1],
            (headers->count - index) * sizeof(headers->fields[0]));
    if (next(headers, name, 0) == headers->count)
        headers->present[(unsigned)name / 64] &= ~(UINT64_C(1) << ((unsigned)name % 64));
}

void weir_http_headers_remove_hop_by_hop(weir_http_headers *headers)
{
    static const enum weir_http_name always[] = {WEIR_HTTP_CONNECTION,        WEIR_HTTP_KEEP_ALIVE,
                                                 WEIR_HTTP_PROXY_CONNECTION,  WEIR_HTTP_TE,
                                                 WEIR_HTTP_TRANSFER_ENCODING, WEIR_HTTP_UPGRADE};
    weir_span list;

    while ((list = weir_http_headers_get(headers, WEIR_HTTP_CONNECTION)).data != NULL) {
        remove_first(headers, WEIR_HTTP_CONNECTION);
        remove_listed(headers, list); /* the text itself stays where it is */
    }
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        (void)weir_http_headers_remove(headers, always[i]);
}

void weir__http_headers_remove_named_by(weir_http_headers *trailers, const weir_http_headers *head)
{
    weir_span list;
    size_t index = 0;

    while (weir_http_headers_next(head, WEIR_HTTP_CONNECTION, &index, &list))
        remove_listed(trailers, list);
}

/* Fields that were received or added are valid: they are not checked again. */
int weir_http_headers_append(weir_http_headers *headers, const weir_http_headers *from)
{
    uint64_t present[2] = {headers->present[0], headers->present[1]};
    uint32_t before = headers->count;
    int err = 0;

    for (size_t i = 0, count = from->count; i < count && err == 0; i++) {
        weir_http_field field = weir_http_headers_at(from, i);

        if (from->fields[i].name == WEIR__HTTP_CUSTOMARY)
            field.name.length = 0;
        err = check_length(headers, field.name.length + field.value.length);
        if (err == 0)
            err = append(headers, field.id, field.name, field.value);
    }
    if (err < 0) {
        headers->count = before;
        memcpy(headers->present, present, sizeof(present));
    }
    return err;
}
