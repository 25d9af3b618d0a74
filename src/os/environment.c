/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environments as arrays of strings, as execve(2) expects them.
 */
#include "os/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/virtual_os.h"

const char *weir__environment_get(const char *name)
{
    return weir__os_is_virtual() ? weir__virtual_os_set->environment_get(name) : getenv(name);
}

int weir__environment_put(const char *name, const char *value)
{
    if (weir__os_is_virtual())
        return weir__virtual_os_set->environment_put(name, value);
    return setenv(name, value, 1) < 0 ? -errno : 0;
}

void weir__environment_unset(const char *name)
{
    if (weir__os_is_virtual())
        weir__virtual_os_set->environment_unset(name);
    else
        (void)unsetenv(name);
}

static bool has_name(const char *entry, const char *name, size_t length)
{
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* Returns the count if there is none. */
static size_t find(const weir__environment *environment, const char *name, size_t length)
{
    size_t i = 0;

    while (i < environment->count && !has_name(environment->entries[i], name, length))
        i++;
    return i;
}

/* Makes room for one more entry and the final NULL. */
static int make_room(weir__environment *environment)
{
    size_t capacity = environment->capacity * 2 + 16;
    char **entries;

    if (environment->count + 1 < environment->capacity)
        return 0;
    entries = weir__realloc(environment->entries, capacity * sizeof(*entries));
    if (entries == NULL)
        return -ENOMEM;
    environment->entries = entries;
    environment->capacity = capacity;
    return 0;
}

static int append(weir__environment *environment, const char *entry)
{
    char *copy;

    if (make_room(environment) < 0)
        return -ENOMEM;
    copy = weir__strdup(entry);
    if (copy == NULL)
        return -ENOMEM;
    environment->entries[environment->count++] = copy;
    environment->entries[environment->count] = NULL;
    return 0;
}

int weir__environment_init(weir__environment *environment, char *const *entries)
{
    char *const *entry = entries != NULL         ? entries
                         : weir__os_is_virtual() ? weir__virtual_os_set->environment_entries()
                                                 : environ;
    int err;

    memset(environment, 0, sizeof(*environment));
    err = make_room(environment);
    if (err < 0)
        return err;
    environment->entries[0] = NULL;
    for (; entry != NULL && *entry != NULL && err == 0; entry++)
        err = append(environment, *entry);
    if (err < 0)
        weir__environment_deinit(environment);
    return err;
}

void weir__environment_deinit(weir__environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        weir__free(environment->entries[i]);
    weir__free(environment->entries);
    memset(environment, 0, sizeof(*environment));
}

int weir__environment_set(weir__environment *environment, const char *entry)
{
    const char *equals = strchr(entry, '=');
    size_t i;
    char *copy;

    if (equals == NULL || equals == entry)
        return -EINVAL;
    i = find(environment, entry, (size_t)(equals - entry));
    if (i == environment->count)
        return append(environment, entry);
    copy = weir__strdup(entry);
    if (copy == NULL)
        return -ENOMEM;
    weir__free(environment->entries[i]);
    environment->entries[i] = copy;
    return 0;
}

void weir__environment_remove(weir__environment *environment, const char *name)
{
    size_t i = find(environment, name, strlen(name));

    if (i == environment->count)
        return;
    weir__free(environment->entries[i]);
    environment->entries[i] = environment->entries[--environment->count];
    environment->entries[environment->count] = NULL;
}

char *weir__environment_value(const weir__environment *environment, const char *name)
{
    size_t length = strlen(name), i = find(environment, name, length);

    return i < environment->count ? environment->entries[i] + length + 1 : NULL;
}
