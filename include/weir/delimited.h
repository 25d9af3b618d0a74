/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/delimited.h - frames that end with a delimiter, or with one of several.
 *
 *      const weir_span ends[] = {weir_span_of_text(";"), weir_span_of("\0", 1)};
 *      weir_delimited_add(pipeline, WEIR_DELIMITED_OPTIONS(.delimiters = ends, .count = 2));
 *
 *      "one;two\0thr"          ->  "one", "two"               and "thr", when its end has come
 *
 * The delimiter that begins first ends the frame; of those that begin at the same place, the first
 * of the list. So of "\r\n" and "\r" the longer one comes first.
 *
 * What is passed on are slices of what came in. A frame over the limit is an error, WEIR_ETOOLONG,
 * and is skipped: the channel goes on if somebody handles the error, since at the tail it closes
 * it. What comes after the last delimiter of a stream is dropped.
 */
#ifndef WEIR_DELIMITED_H
#define WEIR_DELIMITED_H

#include <weir/bytes.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes that a delimiter may have. */
#define WEIR_DELIMITER_MAX 256

/* Zero means default. Build with WEIR_DELIMITED_OPTIONS(...). */
typedef struct weir_delimited_options {
    size_t size;
    const weir_span *delimiters; /* at least one, none of them empty; copied */
    size_t count;
    size_t limit;        /* for a frame without its delimiter, in bytes; default 64 KiB */
    bool keep_delimiter; /* it is passed on with the frame */
    bool tell_late;      /* of a frame over the limit: when it has been skipped */
} weir_delimited_options;

#define WEIR_DELIMITED_OPTIONS(...) \
    (&(const weir_delimited_options){.size = sizeof(weir_delimited_options), __VA_ARGS__})

/*
 * Makes options that are all default, but for the delimiters, of which there are none.
 * Thread: any.
 */
WEIR_API void weir_delimited_options_init(weir_delimited_options *options);

/*
 * Adds the decoder, "delimited", at the tail.
 * Thread: any.  Lends until it returns: options, delimiters.  Fails: -EINVAL (the log says why),
 * and as weir_pipeline_add.
 */
WEIR_API int weir_delimited_add(weir_pipeline *pipeline, const weir_delimited_options *options);

#ifdef __cplusplus
}
#endif

#endif
