/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_files.h - static files.
 *
 *      weir_http_files_root *site = NULL;
 *
 *      err = weir_http_files_root_create(WEIR_HTTP_FILES_OPTIONS(.root = "/srv/www"), &site);
 *      ...
 *      const weir_http_route routes[] = {
 *          {"GET", "/static/{path*}", weir_http_files, .user_data = site},
 *          {0}};
 *
 * Answers GET and HEAD with files of a folder: with ETag and Last-Modified, conditional requests,
 * ranges, content types, precompressed siblings, index files and, if wanted, listings. A path never
 * leads out of the folder, whatever its encoding, and neither does a symbolic link.
 *
 * Files are opened by other threads than those of the connections, because a disk may be slow. What
 * has been opened is kept for a short time: small files as bytes, others as descriptors, which the
 * kernel sends from (sendfile). A file that changes is seen when that time is over. A file that
 * becomes shorter while it is being sent: the connection is reset. The compression of a server
 * applies to small files only, since the others are not read: put compressed siblings beside them.
 *
 * Link with libweir-http.
 */
#ifndef WEIR_HTTP_FILES_H
#define WEIR_HTTP_FILES_H

#include <weir/group.h>
#include <weir/http_server.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A folder whose files are served. */
typedef struct weir_http_files_root weir_http_files_root;

/* Zero means default. Build with WEIR_HTTP_FILES_OPTIONS(.root = ...). */
typedef struct weir_http_files_options {
    size_t size;
    const char *root;               /* the folder; required */
    const char *parameter;          /* of the route, that has the path; default "path" */
    const char *const *index_files; /* of folders, NULL-terminated; default "index.html" */
    bool listing;                   /* lists folders without an index file; otherwise 404 */
    int max_listing;                /* entries of a listing; default 10,000 */
    bool dotfiles;                  /* names that begin with "." are served; otherwise 404 */
    bool links;            /* symbolic links within the folder are followed; otherwise 404 */
    bool no_precompressed; /* ignores siblings "a.js.br", "a.js.zst" and "a.js.gz", which
                              are sent for "a.js" to clients that accept their coding */
    const char *charset;   /* of text; default "utf-8"; "" = none */
    int max_age_seconds;   /* of Cache-Control; default: none is sent; WEIR_OFF =
                              "no-cache": clients revalidate each time */

    /* The cache: for each root, all threads together. */
    int64_t cache_lifetime_ns; /* then a file is looked up again; default 1 s; WEIR_OFF: no cache */
    size_t cache_bytes;        /* of small files; default 16 MiB */
    size_t cache_file_size;    /* up to which a file is small; default 16 KiB, at most 1 MiB */
    int cache_descriptors;     /* of other files; default 256 */

    weir_group *group; /* plain executors that open files; retained; default two threads of its
                          own */
    bool blocking;     /* opens files on the calling thread: for routes with a group */
} weir_http_files_options;

#define WEIR_HTTP_FILES_OPTIONS(...) WEIR_OPTIONS(weir_http_files_options, __VA_ARGS__)

/*
 * Opens a folder, which is served even if it is renamed. Copies the options.
 * Thread: any that may wait.  Gives: root.  Fails: -EINVAL (the log says why), -ENOMEM, with the
 * error of opening the folder, and as weir_group_create.
 */
WEIR_API WEIR_MUST_USE int weir_http_files_root_create(const weir_http_files_options *options,
                                                       weir_http_files_root **ret_root);

/*
 * Retains or releases a reference. NULL is ignored by release. Files that are being sent stay open.
 * Thread: any; best one that may wait, if it is the last release.  Takes: root (release).
 */
WEIR_API weir_http_files_root *weir_http_files_root_retain(weir_http_files_root *root);
WEIR_API void weir_http_files_root_release(weir_http_files_root *root);

/*
 * The handler of a route "/prefix/{path*}". Its user_data is a weir_http_files_root, which must
 * stay as long as the server.
 * Thread: that of the route's handler.
 */
WEIR_API void weir_http_files(weir_http_exchange *exchange, void *user_data);

/*
 * Answers an exchange with a file, as weir_http_files; the path is relative to the root.
 * Thread: any.  Keeps: exchange, root.  Fails: -ENOMEM, and as weir_http_respond. A file that does
 * not exist is no failure: the client gets 404.
 */
WEIR_API int weir_http_respond_file(weir_http_exchange *exchange, weir_http_files_root *root,
                                    weir_span path);

#ifdef __cplusplus
}
#endif

#endif
