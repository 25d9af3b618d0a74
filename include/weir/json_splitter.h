/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/json_splitter.h - JSON values one after the other, each a message: objects and arrays, with
 * white space between them or none.
 *
 *      weir_json_splitter_add(pipeline, NULL);
 *
 *      {"a":[1,2]} {"b":"}"}[3]        ->  {"a":[1,2]}   {"b":"}"}   [3]
 *
 * It finds where a value ends, and no more: brackets outside of strings are counted, however deep.
 * Whether what is between them makes sense, the parser behind it says.
 *
 * What is passed on are slices of what came in. A value over the limit is an error, WEIR_ETOOLONG,
 * and is skipped: the channel goes on if somebody handles the error, since at the tail it closes
 * it. Anything else than white space between values is WEIR_EMALFORMED, after which nothing is
 * decoded any more. What is left at the end of a stream is dropped.
 */
#ifndef WEIR_JSON_SPLITTER_H
#define WEIR_JSON_SPLITTER_H

#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_JSON_SPLITTER_OPTIONS(...). */
typedef struct weir_json_splitter_options {
    size_t size;
    size_t limit;   /* for a value, in bytes; default 1 MiB */
    bool tell_late; /* of a value over the limit: when it has been skipped */
} weir_json_splitter_options;

#define WEIR_JSON_SPLITTER_OPTIONS(...) \
    (&(const weir_json_splitter_options){.size = sizeof(weir_json_splitter_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_json_splitter_options_init(weir_json_splitter_options *options);

/*
 * Adds the decoder, "json-splitter", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_json_splitter_add(weir_pipeline *pipeline,
                                    const weir_json_splitter_options *options);

#ifdef __cplusplus
}
#endif

#endif
