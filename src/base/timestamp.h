/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A time of day as text. Unlike gmtime_r it takes no lock.
 */
#ifndef WEIR_BASE_TIMESTAMP_H
#define WEIR_BASE_TIMESTAMP_H

#include <stdint.h>

#define WEIR__TIMESTAMP_SIZE 32

/* Writes "2026-11-16T02:25:03.123Z", the UTC time of `realtime_ns` since 1970, which must not be
 * negative, and returns `buffer`. */
const char *weir__timestamp(int64_t realtime_ns, char buffer[WEIR__TIMESTAMP_SIZE]);

#endif
