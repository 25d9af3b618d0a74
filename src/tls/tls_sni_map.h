/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a server and their contexts: "example.com", or "*.example.com" for all names with
 * one more label. ASCII letters are compared without case. Not locked.
 */
#ifndef WEIR_TLS_TLS_SNI_MAP_H
#define WEIR_TLS_TLS_SNI_MAP_H

#include <weir/tls_context.h>

/* The longest name, with its terminating zero. */
#define WEIR__TLS_NAME_SIZE 256

typedef struct weir__tls_name {
    weir_tls_context *context;
    char text[]; /* in lower case */
} weir__tls_name;

typedef struct weir__sni_map {
    weir__tls_name **items; /* sorted */
    size_t count;
    size_t capacity;
} weir__sni_map;

/* True for a valid server name, including wildcards. */
bool weir__tls_name_is_valid(const char *name);

/* The context of a name, or of the wildcard that matches it; NULL if there is none. */
weir_tls_context *weir__sni_map_find(const weir__sni_map *names, const char *name);

/*
 * Sets the context of a name; NULL removes the name. Returns its former context, or NULL. Fails:
 * -ENOMEM, -ENOENT (nothing to remove).
 */
int weir__sni_map_set(weir__sni_map *names, const char *name, weir_tls_context *context,
                      weir_tls_context **ret_former);

/* Removes any name and returns its context; NULL if the map is empty. */
weir_tls_context *weir__sni_map_pop(weir__sni_map *names);

/* The map must be empty. */
void weir__sni_map_deinit(weir__sni_map *names);

#endif
