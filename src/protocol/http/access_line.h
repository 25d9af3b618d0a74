/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of the access log.
 */
#ifndef WEIR_PROTOCOL_HTTP_ACCESS_LINE_H
#define WEIR_PROTOCOL_HTTP_ACCESS_LINE_H

#include <weir/address.h>
#include <weir/http_filters.h>

typedef struct weir__http_access {
    const weir_http_request *request; /* NULL = refused before its head was complete */
    const weir_address *remote;
    int64_t time_ns; /* of the request, since 1970 */
    int64_t duration_ns;
    int status;
    uint64_t bytes;     /* of content */
    bool is_aborted;    /* the connection was lost */
    const char *detail; /* of a refusal; NULL = none */
} weir__http_access;

/*
 * Appends a line, with its newline. Bytes of the client that could end a value or a line, or that
 * are not ASCII, are escaped; long values are cut. Fails as weir_buf_write_bytes. The line has at
 * most WEIR__HTTP_ACCESS_LINE_MAX bytes.
 */
int weir__http_access_line(weir_buf *to, enum weir_http_log_format format,
                           const weir__http_access *access);

#define WEIR__HTTP_ACCESS_LINE_MAX 100000

#endif
