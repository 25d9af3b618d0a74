/* SPDX-License-Identifier: Apache-2.0 */
/* The names of metrics: a family and labels. */
#include "base/metric.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_family(const char *family, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_key_char(family[i]) && strchr(".#-", family[i]) == NULL)
            return false;
    return length > 0;
}

/* `le` is added to the buckets of histograms; other systems reserve keys with two underscores. */
static bool is_key(const char *key, size_t length)
{
    return length > 0 && !(key[0] >= '0' && key[0] <= '9') &&
           !(length == 2 && memcmp(key, "le", 2) == 0) &&
           !(length >= 2 && memcmp(key, "__", 2) == 0);
}

static size_t key_length(const char *key)
{
    size_t length = 0;

    while (is_key_char(key[length]))
        length++;
    return length;
}

/* The end of a quoted value, after its second quote; NULL if it is invalid. */
static const char *skip_value(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if (*at == '\0' || *at == '\n')
            return NULL;
        if (*at == '\\' && (*++at == '\0' || strchr("\\\"n", *at) == NULL))
            return NULL;
    }
    return at + 1;
}

/* True if one of the labels before `key` has the same key. The labels before it are valid. */
static bool is_repeated(const char *labels, const char *key, size_t length)
{
    for (const char *at = labels + 1; at < key;) {
        size_t other = key_length(at);

        if (other == length && memcmp(at, key, length) == 0)
            return true;
        at = skip_value(at + other + 1) + 1;
    }
    return false;
}

static bool are_labels(const char *labels)
{
    const char *at = labels;

    if (*at == '\0')
        return true;
    do {
        const char *key = ++at; /* after "{" or "," */
        size_t length = key_length(key);

        if (!is_key(key, length) || is_repeated(labels, key, length) || key[length] != '=')
            return false;
        at = skip_value(key + length + 1);
    } while (at != NULL && *at == ',');
    return at != NULL && strcmp(at, "}") == 0;
}

int weir__metric_name_check(weir__metric_name name)
{
    size_t length = name.family != NULL ? strcspn(name.family, "{") : 0;
    const char *labels;

    if (length == 0)
        return -EINVAL;
    labels = name.labels != NULL ? name.labels : name.family + length;
    if (length + strlen(labels) >= WEIR_METRIC_NAME_SIZE)
        return -ENAMETOOLONG;
    return is_family(name.family, length) && are_labels(labels) ? 0 : -EINVAL;
}

void weir__metric_name_extend(char ret_name[WEIR_METRIC_NAME_SIZE + 1], const char *name,
                              const char *suffix)
{
    size_t length = strcspn(name, "{");

    if (length > WEIR_METRIC_NAME_SIZE)
        length = WEIR_METRIC_NAME_SIZE;
    (void)snprintf(ret_name, WEIR_METRIC_NAME_SIZE + 1, "%.*s.%s%s", (int)length, name, suffix,
                   name + length);
}

static size_t escape(char *to, const char *value)
{
    size_t length = 0;

    for (; *value != '\0'; value++) {
        if (strchr("\\\"\n", *value) != NULL)
            to[length++] = '\\';
        to[length++] = *value == '\n' ? 'n' : *value;
    }
    return length;
}

void weir__metric_add_label(char *labels, size_t size, const char *key, const char *value)
{
    size_t used = strlen(labels), needed = strlen(key) + 2 * strlen(value) + sizeof("{=\"\"}");

    if (size < used || size - used < needed)
        return;
    if (used > 0)
        used--; /* the brace */
    used += (size_t)snprintf(labels + used, size - used, "%c%s=\"", used > 0 ? ',' : '{', key);
    used += escape(labels + used, value);
    memcpy(labels + used, "\"}", sizeof("\"}"));
}
