/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats a time of day. Takes no lock, unlike gmtime_r.
 */
#ifndef WEIR_BASE_TIMESTAMP_H
#define WEIR_BASE_TIMESTAMP_H

#include <stdint.h>

#define WEIR__TIMESTAMP_SIZE 32

/* Writes "2026-11-16T02:25:03.123Z", the UTC time `realtime_ns` after 1970, and returns `buffer`.
 * `realtime_ns` is not negative. */
const char *weir__timestamp(int64_t realtime_ns, char buffer[WEIR__TIMESTAMP_SIZE]);

#endif
