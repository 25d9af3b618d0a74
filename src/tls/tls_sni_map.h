/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a server, and which context each stands for: "example.com", or "*.example.com" for
 * all names with one label more. Upper and lower case are the same; what is not ASCII stays as it
 * is. It has no lock.
 */
#ifndef WEIR_TLS_TLS_SNI_MAP_H
#define WEIR_TLS_TLS_SNI_MAP_H

#include <weir/tls_context.h>

/* The longest name that there can be, with its end. */
#define WEIR__TLS_NAME_SIZE 256

typedef struct weir__tls_name {
    weir_tls_context *context;
    char text[]; /* in lower case */
} weir__tls_name;

typedef struct weir__sni_map {
    weir__tls_name **items; /* in order */
    size_t count;
    size_t capacity;
} weir__sni_map;

/* Whether a server can have such a name; a wildcard is one. */
bool weir__tls_name_is_valid(const char *name);

/* The context of a name, else of the wildcard that covers it; NULL if there is none. */
weir_tls_context *weir__sni_map_find(const weir__sni_map *names, const char *name);

/*
 * The name stands for `context` from now on, for nothing if that is NULL. What it stood for before
 * is given back, or NULL. Fails: -ENOMEM, -ENOENT (nothing to forget).
 */
int weir__sni_map_set(weir__sni_map *names, const char *name, weir_tls_context *context,
                      weir_tls_context **ret_former);

/* Takes any name out, and gives what it stood for; NULL if all are gone. */
weir_tls_context *weir__sni_map_pop(weir__sni_map *names);

/* All names have been taken out. */
void weir__sni_map_deinit(weir__sni_map *names);

#endif
