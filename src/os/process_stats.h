/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources that this process uses, from /proc and the system. Values that cannot be read are
 * 0.
 */
#ifndef WEIR_OS_PROCESS_STATS_H
#define WEIR_OS_PROCESS_STATS_H

#include <stdint.h>

int64_t weir__process_cpu_time(void); /* nanoseconds of all threads, user and system */
int64_t weir__process_virtual_bytes(void);
int64_t weir__process_resident_bytes(void);
int64_t weir__process_threads(void);
int64_t weir__process_open_descriptors(void);
int64_t weir__process_max_descriptors(void);
int64_t weir__process_start_time(void); /* nanoseconds since 1970 */

#endif
