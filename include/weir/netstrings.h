/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/netstrings.h - netstrings (D. J. Bernstein, 1997), as SCGI and QMTP use them; both ways.
 *
 *      weir_netstrings_add(pipeline, NULL);
 *
 *      "5:hello,0:,2:ok,"      <->  "hello", "", "ok"
 *
 * In: slices of what came. A string over the limit is an error, WEIR_ETOOLONG, and is skipped: the
 * channel goes on if somebody handles the error, since at the tail it closes it. What is no
 * netstring is WEIR_EMALFORMED, after which nothing is decoded any more.
 *
 * Out: buffers, composites and file ranges become netstrings, none of which is copied; what is none
 * of these is passed on as it is. A file range goes out in three writes: if one of them fails, the
 * channel is aborted.
 */
#ifndef WEIR_NETSTRINGS_H
#define WEIR_NETSTRINGS_H

#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_NETSTRINGS_OPTIONS(...). */
typedef struct weir_netstrings_options {
    size_t size;
    size_t limit;   /* for a string that comes in, in bytes; default 1 MiB */
    bool tell_late; /* of a string over the limit: when it has been skipped */
} weir_netstrings_options;

#define WEIR_NETSTRINGS_OPTIONS(...) \
    (&(const weir_netstrings_options){.size = sizeof(weir_netstrings_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_netstrings_options_init(weir_netstrings_options *options);

/*
 * Adds the codec, "netstrings", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_netstrings_add(weir_pipeline *pipeline, const weir_netstrings_options *options);

#ifdef __cplusplus
}
#endif

#endif
