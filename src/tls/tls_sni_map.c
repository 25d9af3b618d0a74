/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array in order, searched by halves: names are looked up with each handshake, and hardly ever
 * change.
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

/* As it is filed: in lower case, without the dot that a full name may end in. False if it is too
 * long to be one. */
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

/* Bytes beyond ASCII are let through: what a client writes is what is compared. */
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

/* Where a name is, or would be. */
static size_t place_of(const weir__sni_map *names, const char *text, bool *ret_found)
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
    size_t place = place_of(names, text, &found);

    return found ? names->items[place]->context : NULL;
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

static int make_room(weir__sni_map *names)
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

static int insert(weir__sni_map *names, size_t place, const char *text, weir_tls_context *context)
{
    size_t size = strlen(text) + 1;
    weir__tls_name *name;

    if (make_room(names) < 0)
        return -ENOMEM;
    name = weir_memory_alloc(sizeof(*name) + size);
    if (name == NULL)
        return -ENOMEM;
    name->context = context;
    memcpy(name->text, text, size);
    memmove(&names->items[place + 1], &names->items[place],
            (names->count - place) * sizeof(names->items[0]));
    names->items[place] = name;
    names->count++;
    return 0;
}

static void erase(weir__sni_map *names, size_t place)
{
    weir_memory_free(names->items[place]);
    names->count--;
    memmove(&names->items[place], &names->items[place + 1],
            (names->count - place) * sizeof(names->items[0]));
}

int weir__sni_map_set(weir__sni_map *names, const char *name, weir_tls_context *context,
                      weir_tls_context **ret_former)
{
    char text[WEIR__TLS_NAME_SIZE];
    size_t place;
    bool found;

    if (!normalize(name, text))
        return -EINVAL;
    place = place_of(names, text, &found);
    if (!found && context == NULL)
        return -ENOENT;
    if (!found) {
        *ret_former = NULL;
        return insert(names, place, text, context);
    }
    *ret_former = names->items[place]->context;
    if (context == NULL)
        erase(names, place);
    else
        names->items[place]->context = context;
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
