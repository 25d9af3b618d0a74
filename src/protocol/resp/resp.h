/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a value. `parent` and `left` belong to the reader: while a value is being read,
 * the open aggregates are linked from the innermost to the outermost.
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
        int64_t integer; /* also booleans */
        double number;
        uint64_t length; /* of the bytes that follow a bulk header */
        struct {
            weir_resp **elements;
            size_t count;
            size_t capacity;
        };
    };
    weir_resp *attributes;
    weir_resp *parent; /* borrowed */
    uint64_t left;     /* elements that have not started */
};

bool weir__resp_kind_is_text(enum weir_resp_kind kind);
bool weir__resp_kind_is_line(enum weir_resp_kind kind); /* a text that ends with its line */
bool weir__resp_kind_is_aggregate(enum weir_resp_kind kind);
bool weir__resp_kind_is_map(enum weir_resp_kind kind);

#endif
