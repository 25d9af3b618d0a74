/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tls_detect.h - plain or TLS on one port: the first bytes decide.
 *
 *      weir_tls_detect_add(pipeline, WEIR_TLS_DETECT_OPTIONS(.context = tls,
 *                                                            .init = init_echo));
 *
 * A client that begins as TLS does gets the TLS handler in this place; any other none. Then `init`
 * runs, which adds the handlers behind, and the bytes go on to them. A client that says nothing is
 * closed after a while, with the error -ETIMEDOUT: this is for protocols in which clients speak
 * first.
 */
#ifndef WEIR_TLS_DETECT_H
#define WEIR_TLS_DETECT_H

#include <weir/tls.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The pipeline behind: an error closes the channel. Thread: loop. */
typedef int weir_tls_detect_fn(weir_channel *channel, bool is_tls, void *user_data);

/* Zero means default. Build with WEIR_TLS_DETECT_OPTIONS(...). */
typedef struct weir_tls_detect_options {
    size_t size;
    weir_tls_context *context;   /* of a server; kept */
    const weir_tls_options *tls; /* of the handler: its time limits, and where it works; NULL =
                                    every default */
    weir_tls_detect_fn *init;
    void *user_data;
    int64_t timeout_ns; /* for the first bytes, default 10 s; WEIR_OFF = none */
} weir_tls_detect_options;

#define WEIR_TLS_DETECT_OPTIONS(...) \
    (&(const weir_tls_detect_options){.size = sizeof(weir_tls_detect_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_tls_detect_options_init(weir_tls_detect_options *options);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Lends until init has run: user_data.  Keeps:
 * context.  Fails: -EINVAL, and as weir_pipeline_add.
 */
WEIR_API int weir_tls_detect_add(weir_pipeline *pipeline, const weir_tls_detect_options *options);

#ifdef __cplusplus
}
#endif

#endif
