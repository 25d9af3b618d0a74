/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static files on an embedded channel, without a codec. The root is the folder "root" of a
 * temporary tree; it is served at "/files/". Files are opened on the test's thread, unless the
 * options have a group.
 *
 *     struct file_site site;
 *     struct file_reply reply;
 *
 *     file_site_open(&site, WEIR_HTTP_FILES_OPTIONS(.listing = true));
 *     disk_tree_file(site.tree, "root/name", "hello");
 *     file_site_get(&site, "GET", "/files/name", "Range: bytes=1-2", &reply);
 *     assert_int_equal(reply.status, 206);
 */
#ifndef WEIR_TEST_FILE_SITE_H
#define WEIR_TEST_FILE_SITE_H

#include <weir/embedded.h>
#include <weir/http_files.h>

#include "support/protocol/http/disk_tree.h"
#include "support/test.h"

struct file_site {
    disk_tree *tree;
    weir_http_files_root *root;
    weir_embedded *embedded;
};

/* A response. */
struct file_reply {
    int status;     /* 0 = none */
    int64_t length; /* that of the head */
    bool has_ended;
    bool has_range; /* a part of the content was a file range */
    size_t size;
    char body[65536];  /* with a NUL behind the content */
    char fields[1024]; /* "Name: value\n", as they were sent */
};

/* `options` without a root. */
void file_site_open(struct file_site *site, const weir_http_files_options *options);
void file_site_close(struct file_site *site);

/* Sends a request; `fields` are lines, "" = none. */
void file_site_put(struct file_site *site, const char *method, const char *target,
                   const char *fields);

/* Reads the response, as far as it has been sent. */
void file_site_read(struct file_site *site, struct file_reply *reply);

/* Both. */
void file_site_get(struct file_site *site, const char *method, const char *target,
                   const char *fields, struct file_reply *reply);

/* The value of a field of the last reply; "" if it has none. */
const char *file_reply_field(const struct file_reply *reply, const char *name);

#endif
