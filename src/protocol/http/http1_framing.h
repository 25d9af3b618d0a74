/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fields of a received head mean for its connection: where its content ends, and whether
 * another message may follow.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP1_FRAMING_H
#define WEIR_PROTOCOL_HTTP_HTTP1_FRAMING_H

#include <weir/http.h>

enum weir__http1_content {
    WEIR__HTTP1_NO_CONTENT,
    WEIR__HTTP1_LENGTH,
    WEIR__HTTP1_CHUNKED,
    WEIR__HTTP1_UNTIL_CLOSE,
};

typedef struct weir__http1_framing {
    enum weir__http1_content content;
    uint64_t length;    /* of WEIR__HTTP1_LENGTH */
    bool is_persistent; /* the connection stays open */
} weir__http1_framing;

/*
 * Checks the fields of a request and sets its content length, and its Host if its target has
 * another authority. Returns 0, -ENOMEM, or a negative status and sets `ret_detail`.
 */
int weir__http1_check_request(weir_http_request *request, weir__http1_framing *ret_framing,
                              const char **ret_detail);

/* The same for a response to a request with `method`. Every status means that it is malformed. */
int weir__http1_check_response(weir_http_response *response, enum weir_http_method method,
                               weir__http1_framing *ret_framing, const char **ret_detail);

#endif
