/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hosts file: lines of an address and its names; "#" starts a comment.
 */
#ifndef WEIR_RESOLVER_HOSTS_FILE_H
#define WEIR_RESOLVER_HOSTS_FILE_H

#include <weir/address.h>

#include "os/file.h"
#include "os/thread.h"

typedef struct weir__hosts {
    weir__mutex lock;
    const char *path; /* borrowed; NULL: no file */
    weir__file_version version;
    char *text; /* NULL: not read */
    size_t length;
} weir__hosts;

void weir__hosts_init(weir__hosts *hosts, const char *path);

/* Frees the text. The next lookup reads the file again. */
void weir__hosts_clear(weir__hosts *hosts);

/*
 * Writes up to `max` addresses of the host, with port 0, and returns their number. Reads the file
 * again if it has changed, so it may block.
 */
size_t weir__hosts_find(weir__hosts *hosts, const char *host, weir_address *ret_addresses,
                        size_t max);

/* The same for a text, which need not be terminated. */
size_t weir__hosts_find_in(const char *text, size_t length, const char *host,
                           weir_address *ret_addresses, size_t max);

#endif
