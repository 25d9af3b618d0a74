/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static files: the root, and the responses. See weir/http_files.h.
 */
#ifndef WEIR_PROTOCOL_HTTP_FILES_H
#define WEIR_PROTOCOL_HTTP_FILES_H

#include <stdatomic.h>

#include <weir/http_files.h>

#include "base/refcount.h"
#include "protocol/http/file.h"
#include "protocol/http/file_cache.h"

#define WEIR__HTTP_CACHE_CONTROL_SIZE 32

struct weir_http_files_root {
    weir__refs refs;
    weir__http_file_rules rules;
    weir__http_file_cache *cache;
    weir_group *group; /* NULL = files are opened on the calling thread */
    char *parameter;
    char *charset;
    char **index_files;
    char cache_control[WEIR__HTTP_CACHE_CONTROL_SIZE]; /* "" = none */
    _Atomic int64_t warned_at;                         /* second of the last message */
    _Atomic int64_t failed_at;
};

/* Answers with a file, or with what its conditions and ranges ask for. Fails as
 * weir_http_respond. */
int weir__http_files_respond(const weir_http_files_root *root, weir_http_exchange *exchange,
                             const weir__http_file *file);

/* Answers with the status of an error of weir__http_file_open. */
int weir__http_files_respond_error(weir_http_files_root *root, weir_http_exchange *exchange,
                                   const char *path, int err);

#endif
