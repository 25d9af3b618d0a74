/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/websocket/ws_case.h"

#include <stdio.h>
#include <string.h>

static void expect(size_t index, const struct ws_fixture *fixture, size_t piece, const char *got,
                   const char *expected)
{
    if (strcmp(got, expected) != 0)
        fail_msg("case %zu on a %s, in pieces of %zu: \"%s\", expected \"%s\"", index,
                 fixture->is_client ? "client" : "server", piece, got, expected);
}

static void run(const struct ws_case *row, size_t index, bool is_client, size_t piece,
                const weir_ws_options *options, const weir__ws_deflate_terms *deflate)
{
    struct ws_fixture fixture = {.is_client = is_client, .echoes = true};
    weir_buf *bytes;

    assert_int_equal(weir_buf_create(64, 0, &bytes), 0);
    for (size_t i = 0; i < FRAMES_MAX && row->frames[i].bytes != NULL; i++)
        ws_put_frame(&fixture, bytes, row->frames[i].first, row->frames[i].bytes,
                     row->frames[i].length);
    ws_open_with(&fixture, options, NULL, deflate);
    assert_ws_seen(&fixture, "opened");
    ws_receive(&fixture, bytes, piece);
    weir_embedded_end_input(fixture.embedded);
    expect(index, &fixture, piece, ws_seen(&fixture), row->seen);
    expect(index, &fixture, piece, ws_sent(&fixture), row->sent);
    ws_close(&fixture);
}

void ws_run_cases(const struct ws_case *cases, size_t count, const weir_ws_options *options,
                  const weir__ws_deflate_terms *deflate)
{
    static const size_t pieces[] = {SIZE_MAX, 1, 2, 5, 16};

    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
            run(&cases[i], i, false, pieces[p], options, deflate);
            run(&cases[i], i, true, pieces[p], options, deflate);
        }
}
