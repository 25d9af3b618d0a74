/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/lines.h - a line of text is a message.
 *
 *      weir_lines_add(pipeline, NULL);
 *
 *      "one\ntwo\r\n\nthr"     ->  "one", "two", ""          and "thr", when its end has come
 *
 * What is passed on are slices of what came in. A line over the limit is an error, WEIR_ETOOLONG,
 * and is skipped: the channel goes on if somebody handles the error, since at the tail it closes
 * it. What comes after the last line end of a stream is not a line, and is dropped.
 */
#ifndef WEIR_LINES_H
#define WEIR_LINES_H

#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a line ends with. */
enum weir_line_end {
    WEIR_LINE_END_ANY, /* either of: */
    WEIR_LINE_END_LF,  /* a CR is a character like others */
    WEIR_LINE_END_CRLF,
};

/* Zero means default. Build with WEIR_LINES_OPTIONS(...). */
typedef struct weir_lines_options {
    size_t size;
    size_t limit; /* for a line without its end, in bytes; default 64 KiB */
    enum weir_line_end end;
    bool keep_end;  /* it is passed on with the line */
    bool tell_late; /* of a line over the limit: when it has been skipped */
} weir_lines_options;

#define WEIR_LINES_OPTIONS(...) \
    (&(const weir_lines_options){.size = sizeof(weir_lines_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_lines_options_init(weir_lines_options *options);

/*
 * Adds the decoder, "lines", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_lines_add(weir_pipeline *pipeline, const weir_lines_options *options);

#ifdef __cplusplus
}
#endif

#endif
