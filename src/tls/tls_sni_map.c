/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted array with binary search: names are looked up with each handshake, and rarely change.
 */
#include "tls/tls_sni_map.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#define LABEL_MAX 63
#define NAME_MAX 253

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* In lower case, without a final dot. False if it is too long. */
static bool normalize(const char *name, char ret_name[WEIR__TLS_NAME_SIZE])
{
    size_t length = strlen(name);

    if (length > 1 && name[length - 1] == '.')
        length--;
    if (length > NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        ret_name[i] = lower(name[i]);
    ret_name[length] = '\0';
    return true;
}

/* Bytes beyond ASCII are allowed, and compared as they are. */
static bool may_be_in_label(char c)
{
    unsigned char byte = (unsigned char)c;

    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
           byte == '_' || byte >= 0x80;
}

static bool is_label(const char *text, size_t length)
{
    if (length == 0 || length > LABEL_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!may_be_in_label(text[i]))
            return false;
    return true;
}

bool weir__tls_name_is_valid(const char *name)
{
    char text[WEIR__TLS_NAME_SIZE];
    const char *label = text;
    size_t length;

    if (name == NULL || !normalize(name, text))
        return false;
    if (strncmp(label, "*.", 2) == 0)
        label += 2;
    for (;; label += length + 1) {
        length = strcspn(label, ".");
        if (!is_label(label, length))
            return false;
        if (label[length] == '\0')
            return true;
    }
}

/* The index of a name, or where it would be inserted. */
static size_t index_of(const weir__sni_map *names, const char *text, bool *ret_found)
{
    size_t low = 0, high = names->count, middle;
    int order;

    *ret_found = false;
    while (low < high) {
        middle = low + (high - low) / 2;
        order = strcmp(text, names->items[middle]->text);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static weir_tls_context *find(const weir__sni_map *names, const char *text)
{
    bool found;
    size_t index = index_of(names, text, &found);

    return found ? names->items[index]->context : NULL;
}

weir_tls_context *weir__sni_map_find(const weir__sni_map *names, const char *name)
{
    char text[WEIR__TLS_NAME_SIZE];
    weir_tls_context *context;
    char *rest;

    if (names->count == 0 || !normalize(name, text) || text[0] == '*')
        return NULL;
    context = find(names, text);
    rest = strchr(text, '.');
    if (context != NULL || rest == NULL || rest == text)
        return context;
    rest[-1] = '*';
    return find(names, rest - 1);
}

static int grow(weir__sni_map *names)
{
    size_t capacity = names->capacity == 0 ? 8 : names->capacity * 2;
    weir__tls_name **items;

    if (names->count < names->capacity)
        return 0;
    items = weir_memory_realloc(names->items, capacity * sizeof(*items));
    if (items == NULL)
        return -ENOMEM;
    names->items = items;
    names->capacity = capacity;
    return 0;
}

static int insert(weir__sni_map *names, size_t index, const char *text, weir_tls_context *context)
{
    size_t size = strlen(text) + 1;
    weir__tls_name *name;

    if (grow(names) < 0)
        return -ENOMEM;
    name = weir_memory_alloc(sizeof(*name) + size);
    if (name == NULL)
        return -ENOMEM;
    name->context = context;
    memcpy(name->text, text, size);
    memmove(&names->items[index + 1], &names->items[index],
            (names->count - index) * sizeof(names->items[0]));
    names->items[index] = name;
    names->count++;
    return 0;
}

static void erase(weir__sni_map *names, size_t index)
{
    weir_memory_free(names->items[index]);
    names->count--;
    memmove(&names->items[index], &names->items[index + 1],
            (names->count - index) * sizeof(names->items[0]));
}

int weir__sni_map_set(weir__sni_map *names, const char *name, weir_tls_context *context,
                      weir_tls_context **ret_former)
{
    char text[WEIR__TLS_NAME_SIZE];
    size_t index;
    bool found;

    if (!normalize(name, text))
        return -EINVAL;
    index = index_of(names, text, &found);
    if (!found && context == NULL)
        return -ENOENT;
    if (!found) {
        *ret_former = NULL;
        return insert(names, index, text, context);
    }
    *ret_former = names->items[index]->context;
    if (context == NULL)
        erase(names, index);
    else
        names->items[index]->context = context;
    return 0;
}

weir_tls_context *weir__sni_map_pop(weir__sni_map *names)
{
    weir_tls_context *context;

    if (names->count == 0)
        return NULL;
    context = names->items[names->count - 1]->context;
    erase(names, names->count - 1);
    return context;
}

void weir__sni_map_deinit(weir__sni_map *names)
{
    assert(names->count == 0);
    weir_memory_free(names->items);
}
