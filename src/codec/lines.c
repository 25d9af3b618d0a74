/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include <string.h>

#include "base/options.h"
#include "codec/delimiters.h"

#define SPAN(text)                                \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static const weir_span lf_or_crlf[] = {SPAN("\n"), SPAN("\r\n")};

static int init(void *state, const void *given)
{
    struct weir__delimiters *lines = state;
    weir_lines_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = weir__frames_init(&lines->frames, "line", options.max_length,
                                WEIR__FRAMES_MAX_TEXT_LENGTH);
    if (err < 0)
        return err;
    switch (options.end) {
    case WEIR_LINE_END_ANY:
        weir__delimiters_init(lines, lf_or_crlf, 2);
        break;
    case WEIR_LINE_END_LF:
        weir__delimiters_init(lines, &lf_or_crlf[0], 1);
        break;
    case WEIR_LINE_END_CRLF:
        weir__delimiters_init(lines, &lf_or_crlf[1], 1);
        break;
    default:
        return weir__frames_reject("lines", "unknown line end");
    }
    lines->frames.reports_after_skip = options.report_after_skip;
    lines->keep_delimiter = options.keep_end;
    return 0;
}

static const weir_decoder decoder = {
    .handler = {.name = "lines", .init = init, WEIR_DECODER_SLOTS(struct weir__delimiters)},
    .decode = weir__delimiters_decode,
    .decode_last = weir__delimiters_decode_last,
};

int weir_lines_add(weir_pipeline *pipeline, const weir_lines_options *options)
{
    return weir_pipeline_add_last(pipeline, &decoder.handler, options);
}
