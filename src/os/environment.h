/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of this process, and environments for new processes: entries of the form
 * "NAME=value".
 */
#ifndef WEIR_OS_ENVIRONMENT_H
#define WEIR_OS_ENVIRONMENT_H

#include <stddef.h>

/* The environment of this process. Must not be changed concurrently. get returns NULL if it is
 * unset. */
const char *weir__environment_get(const char *name);
int weir__environment_put(const char *name, const char *value); /* fails with -ENOMEM */
void weir__environment_unset(const char *name);

typedef struct weir__environment {
    char **entries; /* owned; terminated by NULL */
    size_t count;
    size_t capacity;
} weir__environment;

/* Copies entries up to the first NULL; those of this process if `entries` is NULL. Fails with
 * -ENOMEM. */
int weir__environment_init(weir__environment *environment, char *const *entries);
void weir__environment_deinit(weir__environment *environment);

/* Adds or replaces an entry. Fails with -EINVAL (no name), -ENOMEM. */
int weir__environment_set(weir__environment *environment, const char *entry);
void weir__environment_remove(weir__environment *environment, const char *name);

/* The value, which may be overwritten within its length; NULL if it is unset. */
char *weir__environment_value(const weir__environment *environment, const char *name);

#endif
