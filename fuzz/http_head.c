/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1: both sides of the codec pass on the same whether the input arrives whole, in pieces, or
 * byte by byte. Input: options, size of pieces, the stream.
 */
#include "support/http_notes.h"

#define COUNTS 2 /* bytes before the stream */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_http1_options options = {.size = sizeof(options)};

    if (size < COUNTS)
        return 0;
    options.max_start_line = (data[0] & 2) != 0 ? 24 : 0;
    options.max_header_bytes = (data[0] & 4) != 0 ? 48 : 0;
    options.max_header_fields = (data[0] & 8) != 0 ? 3 : 0;
    options.max_chunk = (data[0] & 16) != 0 ? 10 : 0;
    run_in_all_pieces(&options, (data[0] & 1) == 0, "", weir_span_of(data + COUNTS, size - COUNTS),
                      (size_t)data[1] + 1);
    return 0;
}
