/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of compression.c and decompression.c.
 */
#ifndef WEIR_PROTOCOL_HTTP_COMPRESSION_H
#define WEIR_PROTOCOL_HTTP_COMPRESSION_H

#include "base/refcount.h"
#include "protocol/http/content_coding.h"
#include "protocol/http/filters.h"

struct weir__http_compression {
    weir__refs refs;
    int level;
    int64_t min_length;
    bool decodes_requests;
    weir__http_decoder_limits limits;
    const weir__http_coding *codings[WEIR__HTTP_CODINGS_MAX]; /* the preferred one first */
    const char *coding_names[WEIR__HTTP_CODINGS_MAX];
    size_t coding_count;
    size_t type_count;
    const char *types[]; /* "text/html", "text/" or "+json" */
};

/* Adds the handler that decodes requests, or responses. Keeps the settings. */
int weir__http_decompression_add(weir_pipeline *pipeline, weir__http_compression *compression,
                                 bool is_client);

#endif
