/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of this process, and one for a process to be: entries of the form "NAME=value".
 */
#ifndef WEIR_OS_ENVIRONMENT_H
#define WEIR_OS_ENVIRONMENT_H

#include <stddef.h>

/* Of this process: the value, or NULL. Nobody may change the environment meanwhile. */
const char *weir__environment_get(const char *name);
int weir__environment_put(const char *name, const char *value); /* fails with -ENOMEM */
void weir__environment_unset(const char *name);

typedef struct weir__environment {
    char **entries; /* all of its own, to the first NULL */
    size_t count;
    size_t capacity;
} weir__environment;

/* Copies the entries, to the first NULL; those of this process if `entries` is NULL. Fails with
 * -ENOMEM. */
int weir__environment_init(weir__environment *environment, char *const *entries);
void weir__environment_deinit(weir__environment *environment);

/* In place of what it had of this name. Fails with -EINVAL (there is no name), -ENOMEM. */
int weir__environment_set(weir__environment *environment, const char *entry);
void weir__environment_remove(weir__environment *environment, const char *name);

/* The value, to be read or overwritten in its length; NULL if there is none. */
char *weir__environment_value(const weir__environment *environment, const char *name);

#endif
