/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunked content of HTTP/1.1: the same whether it arrives whole, in pieces, or byte by byte.
 * Input: options, size of pieces, the chunks and what follows them.
 */
#include "support/http_notes.h"

#define COUNTS 2 /* bytes before the stream */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char request[] =
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const char response[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    weir_http1_options options = {.size = sizeof(options)};
    bool is_server;

    if (size < COUNTS)
        return 0;
    is_server = (data[0] & 1) == 0;
    options.max_header_bytes = (data[0] & 4) != 0 ? 60 : 0;
    options.max_header_fields = (data[0] & 8) != 0 ? 3 : 0;
    options.max_chunk = (data[0] & 16) != 0 ? 10 : 0;
    run_in_all_pieces(&options, is_server, is_server ? request : response,
                      weir_span_of(data + COUNTS, size - COUNTS), (size_t)data[1] + 1);
    return 0;
}
