/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting the parts of multipart/form-data.
 *
 * All parts that are not in memory lie in one file, in the order of the request. So content is only
 * ever appended to it: what a piece of the request adds is gathered in one buffer, and written at
 * once on an executor that may block.
 */
#ifndef WEIR_PROTOCOL_HTTP_UPLOAD_H
#define WEIR_PROTOCOL_HTTP_UPLOAD_H

#include <weir/file_range.h>
#include <weir/http_body.h>

typedef struct weir__http_upload_part {
    weir_http_part head; /* in `block` */
    uint64_t length;
    weir_buf *memory; /* NULL if it is in the file */
    uint64_t offset;  /* in the file */
    uint8_t block[];
} weir__http_upload_part;

struct weir_http_upload {
    weir__http_upload_part **parts;
    size_t count;
    size_t capacity;
    size_t memory; /* bytes of content and heads */
    size_t max_memory;
    size_t max_memory_part;
    weir_buf *pending;     /* to be appended to the file; NULL = nothing */
    weir_file_range *file; /* owns the descriptor; NULL = none yet */
    uint64_t file_length;
    char *folder;
    weir_executor *executor; /* writes and closes the file; retained */
};

/* The status of a response to content that cannot be read. */
int weir__http_body_status(int err);

/* Fails with -EINVAL, -ENOMEM. */
int weir__http_upload_create(const weir_http_upload_options *options,
                             weir_http_upload **ret_upload);

/* Adds content as it arrives. Fails as weir_http_multipart_next, and with WEIR_ETOOLONG (heads). */
int weir__http_upload_feed(weir_http_upload *upload, weir_http_multipart *multipart,
                           weir_span input);

/* Writes what is pending. May block. Fails with errors of the file, -ENOMEM. */
int weir__http_upload_write(weir_http_upload *upload);

#endif
