/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/client_pools.h - a pool of connections for each address, made when it is first asked for.
 *
 *      weir_client_pools_create(WEIR_CLIENT_POOL_OPTIONS(.client = ..., .max = 8), &pools);
 *      weir_client_pools_get(pools, "example.org:80", &pool);
 */
#ifndef WEIR_CLIENT_POOLS_H
#define WEIR_CLIENT_POOLS_H

#include <weir/client_pool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_client_pools weir_client_pools;

/*
 * Creates an empty set of pools, which will all have these options; the client's have no address.
 * Thread: any.  Keeps: executor, and the client's group and resolver, until it is closed.  Gives:
 * pools.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_client_pools_create(const weir_client_pool_options *options,
                                      weir_client_pools **ret_pools);

/*
 * Keeps the set.
 * Thread: any.
 */
WEIR_API weir_client_pools *weir_client_pools_retain(weir_client_pools *pools);

/*
 * Gives a reference back; NULL is fine. The last one closes all pools.
 * Thread: any.  Takes: pools.
 */
WEIR_API void weir_client_pools_release(weir_client_pools *pools);

/*
 * The pool for an address, which is told from others by its text. It is made if there is none, or
 * if the one that there was has been closed.
 * Thread: any.  Gives: pool.  Fails: WEIR_ECLOSED, and as weir_client_pool_create.
 */
WEIR_API int weir_client_pools_get(weir_client_pools *pools, const char *address,
                                   weir_client_pool **ret_pool);

/*
 * How many pools there are.
 * Thread: any.
 */
WEIR_API size_t weir_client_pools_count(weir_client_pools *pools);

/*
 * Closes all pools; no more can be had.
 * Thread: any.
 */
WEIR_API void weir_client_pools_close(weir_client_pools *pools);

#ifdef __cplusplus
}
#endif

#endif
