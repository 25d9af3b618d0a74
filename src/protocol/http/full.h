/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole messages.
 */
#ifndef WEIR_PROTOCOL_HTTP_FULL_H
#define WEIR_PROTOCOL_HTTP_FULL_H

#include <weir/http.h>

struct weir_http_full {
    weir_msg msg;
    weir_buf *block; /* the memory of the message */
    weir_msg *head;
    weir_buf *content;
    weir_http_end *end;
};

extern const weir_msg_type weir__http_full_type;

/* Takes all parts, also if it fails, with -ENOMEM. `content` may be NULL. */
int weir__http_full_create(weir_msg *head, weir_buf *content, weir_http_end *end,
                           weir_http_full **ret_full);

#endif
