/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path that has been looked up on disk: a file with its precompressed siblings, or a folder.
 * Immutable and reference-counted, so that any number of threads send it at the same time.
 */
#ifndef WEIR_PROTOCOL_HTTP_FILE_H
#define WEIR_PROTOCOL_HTTP_FILE_H

#include <weir/buf.h>
#include <weir/file_range.h>

#include "base/refcount.h"
#include "protocol/http/date.h"

#define WEIR__HTTP_ETAG_SIZE 56 /* three numbers of 16 digits, with quotes, dashes and NUL */
#define WEIR__HTTP_TYPE_SIZE 128

/* As it is, and with the codings of its siblings: br, zstd, gzip. */
#define WEIR__HTTP_MAX_REPRESENTATIONS 4

typedef struct weir__http_representation {
    const char *coding; /* "gzip"; NULL = none */
    int64_t size;
    weir_buf *bytes;          /* of a small file; otherwise NULL */
    weir_file_range *range;   /* of another one: all of it, owning the descriptor */
    int64_t modified_seconds; /* since 1970; -1 = unknown */
    char modified[WEIR__HTTP_DATE_SIZE];
    char etag[WEIR__HTTP_ETAG_SIZE]; /* "" = none */
} weir__http_representation;

enum weir__http_file_kind {
    WEIR__HTTP_FILE_CONTENT,
    WEIR__HTTP_FILE_FOLDER, /* its path has no "/" at the end: the client is redirected */
};

typedef struct weir__http_file {
    weir__refs refs;
    enum weir__http_file_kind kind;
    char type[WEIR__HTTP_TYPE_SIZE]; /* Content-Type */
    size_t count;
    weir__http_representation representations[WEIR__HTTP_MAX_REPRESENTATIONS];
    size_t bytes;         /* memory */
    unsigned descriptors; /* open ones */
} weir__http_file;

/* How paths are looked up. */
typedef struct weir__http_file_rules {
    int root;
    uint32_t disk_flags;      /* of weir__http_disk_open */
    char *const *index_files; /* NULL-terminated */
    const char *charset;
    size_t small; /* bytes up to which a file is read into memory */
    bool precompressed;
    bool listing;
    bool dotfiles;
    size_t max_listing;
} weir__http_file_rules;

/*
 * True if a path may be looked up: relative, and each of its segments is the name of a file or
 * folder, not "." or "..", and, unless `dotfiles`, does not begin with a dot. Only the last one may
 * be empty. Control characters and backslashes are not allowed either.
 */
bool weir__http_file_path_is_valid(weir_span path, bool dotfiles);

/* Looks up a valid path: blocks. A path that is empty or ends in "/" is a folder: its index file is
 * opened, or it is listed. Fails with the errors of weir__http_disk_open. */
int weir__http_file_open(const weir__http_file_rules *rules, const char *path,
                         weir__http_file **ret_file);

weir__http_file *weir__http_file_retain(weir__http_file *file);
void weir__http_file_release(weir__http_file *file);

/* Creates a file of kind CONTENT with one representation, `bytes`, which it takes also on failure.
 * Fails with -ENOMEM. */
int weir__http_file_create_from(weir_buf *bytes, const char *type, weir__http_file **ret_file);

#endif
