/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a value is made of. While it is read it is a link of the chain that leads from the innermost
 * open aggregate to the outermost: `parent` and `left` are the reader's.
 */
#ifndef WEIR_PROTOCOL_RESP_RESP_H
#define WEIR_PROTOCOL_RESP_RESP_H

#include <weir/resp.h>

struct weir_resp {
    weir_msg msg;
    enum weir_resp_kind kind;
    bool is_header;
    union {
        weir_buf *text;
        int64_t integer; /* and booleans */
        double number;
        uint64_t length; /* of what follows a head */
        struct {
            weir_resp **elements;
            size_t count;
            size_t capacity;
        };
    };
    weir_resp *attributes;
    weir_resp *parent; /* not kept */
    uint64_t left;     /* elements that have not begun */
};

bool weir__resp_kind_is_text(enum weir_resp_kind kind);
bool weir__resp_kind_is_line(enum weir_resp_kind kind); /* a text that ends with its line */
bool weir__resp_kind_is_aggregate(enum weir_resp_kind kind);
bool weir__resp_kind_is_map(enum weir_resp_kind kind);

#endif
