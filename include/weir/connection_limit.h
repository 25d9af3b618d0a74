/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/connection_limit.h - how many connections there may be at once: in all, and from one IP
 * address.
 *
 *      weir_connection_limit_create(
 *          WEIR_CONNECTION_LIMIT_OPTIONS(.max = 10000, .max_per_address = 1), &limit);
 *      weir_connection_limit_add(pipeline, limit);     in init_server, or in init_child
 *
 * What is beyond is aborted when it becomes active, before the handlers behind have heard of it.
 * Any number of servers, loops and connections may share a limit. A connection counts until its
 * handlers are gone: when it has been closed, or the handler was removed.
 */
#ifndef WEIR_CONNECTION_LIMIT_H
#define WEIR_CONNECTION_LIMIT_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_connection_limit weir_connection_limit;

/* Zero means default: no limit of that kind. Build with WEIR_CONNECTION_LIMIT_OPTIONS(.max = ...).
 */
typedef struct weir_connection_limit_options {
    size_t size;
    size_t max;
    size_t max_per_address; /* whatever the port; connections without an IP address have none */
} weir_connection_limit_options;

#define WEIR_CONNECTION_LIMIT_OPTIONS(...)                                                 \
    (&(const weir_connection_limit_options){.size = sizeof(weir_connection_limit_options), \
                                            __VA_ARGS__})

typedef struct weir_connection_limit_stats {
    size_t open;      /* that count now */
    size_t addresses; /* from so many; 0 without max_per_address */
    uint64_t entered; /* since it was made */
    uint64_t refused;
} weir_connection_limit_stats;

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_connection_limit_options_init(weir_connection_limit_options *options);

/*
 * Makes a limit.
 * Thread: any.  Lends until it returns: options.  Gives: limit.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_connection_limit_create(const weir_connection_limit_options *options,
                                          weir_connection_limit **ret_limit);

/*
 * Keeps a limit; and gives a reference back, of which NULL is fine.
 * Thread: any.  Takes, by the second: limit.
 */
WEIR_API weir_connection_limit *weir_connection_limit_retain(weir_connection_limit *limit);
WEIR_API void weir_connection_limit_release(weir_connection_limit *limit);

/*
 * What it has counted, all at one moment.
 * Thread: any.
 */
WEIR_API void weir_connection_limit_read(weir_connection_limit *limit,
                                         weir_connection_limit_stats *ret_stats);

/*
 * Adds the handler at the end of a connection's pipeline; or of a listener's, for all that it
 * accepts. Best it is the first there.
 * Thread: any.  Keeps: limit.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_connection_limit_add(weir_pipeline *pipeline, weir_connection_limit *limit);

#ifdef __cplusplus
}
#endif

#endif
