/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name consists of labels of letters, digits, hyphens and underscores, separated by dots. The
 * last label must not be numeric: "1.2.3.400" is a mistyped address, not a name to look up.
 */
#include "resolver/host_name.h"

#include <errno.h>
#include <string.h>

#include "base/address.h"

#define LABEL_MAX 63

static char to_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_allowed(char c)
{
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* The length of the label that starts here; 0 if it is invalid. */
static size_t label_length(const char *label, bool *ret_is_number)
{
    size_t length = 0;

    *ret_is_number = true;
    for (; label[length] != '.' && label[length] != '\0'; length++) {
        if (!is_allowed(label[length]))
            return 0;
        *ret_is_number = *ret_is_number && is_digit(label[length]);
    }
    return length <= LABEL_MAX ? length : 0;
}

static bool is_name(const char *name)
{
    bool is_number = true;

    do {
        size_t length = label_length(name, &is_number);

        if (length == 0)
            return false;
        name += length;
        name += *name == '.';
    } while (*name != '\0');
    return !is_number;
}

int weir__host_parse(const char *text, weir__host *ret_host)
{
    weir__host host = {.port = 0};
    size_t length;

    if (weir__address_split(text, &length, &host.port) < 0)
        return -EINVAL;
    if (length == 0 || length > WEIR__HOST_MAX + (size_t)(text[length - 1] == '.'))
        return -EINVAL;
    for (size_t i = 0; i < length; i++)
        host.name[i] = to_lower(text[i]);
    if (!is_name(host.name))
        return -EINVAL;
    *ret_host = host;
    return 0;
}

/* True if this is the last label of the name. */
static bool is_under(const char *name, const char *label)
{
    size_t length = strlen(name), tail = strlen(label);

    length -= length > 0 && name[length - 1] == '.';
    return length >= tail && memcmp(name + length - tail, label, tail) == 0 &&
           (length == tail || name[length - tail - 1] == '.');
}

bool weir__host_is_local(const char *name)
{
    return is_under(name, "localhost");
}

bool weir__host_is_invalid(const char *name)
{
    return is_under(name, "invalid");
}
