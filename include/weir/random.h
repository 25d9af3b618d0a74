/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/random.h - random bytes for ids, sampling and backoff. Not for secrets.
 */
#ifndef WEIR_RANDOM_H
#define WEIR_RANDOM_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Fills memory from the calling thread's generator (xoshiro256**), which is seeded by the kernel,
 * without a system call. 16 bytes are unique for all practical purposes, but not secret: the next
 * numbers can be computed from earlier ones. With WEIR_SEED in the environment they repeat from run
 * to run.
 * Thread: any.
 */
WEIR_API void weir_random_bytes(void *ret_bytes, size_t length);

#ifdef __cplusplus
}
#endif

#endif
