/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a part of multipart/form-data (RFC 7578 4).
 */
#ifndef WEIR_PROTOCOL_HTTP_PART_H
#define WEIR_PROTOCOL_HTTP_PART_H

#include <weir/http_body.h>

/*
 * Parses lines of header fields, each with its CRLF. The part lies in them and in `decoded`, which
 * has room for as many bytes. Returns the number of bytes decoded there. Fails with
 * WEIR_EMALFORMED, also if the name is missing.
 */
ssize_t weir__http_part_parse(weir_span fields, uint8_t *decoded, weir_http_part *ret_part);

/* The memory that the parser's part lies in. */
weir_span weir__http_multipart_block(const weir_http_multipart *multipart);

/* Moves a part to a copy of the block that it lies in. */
void weir__http_part_move(weir_http_part *part, weir_span block, const uint8_t *copy);

#endif
