/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of a limit. Any thread may call them; all callers use the same clock.
 */
#ifndef WEIR_HANDLER_TRAFFIC_H
#define WEIR_HANDLER_TRAFFIC_H

#include <weir/traffic.h>

/* Reserves the rate for a message of `bytes` bytes. Returns the time when it may be sent. */
int64_t weir__traffic_reserve(weir_traffic *traffic, int64_t bytes, int64_t now_ns);

/* Charges `bytes` bytes that were read. Returns the time when the channel may read again. */
int64_t weir__traffic_charge(weir_traffic *traffic, int64_t bytes, int64_t now_ns);

/* For the stats. */
void weir__traffic_count_written(weir_traffic *traffic, int64_t bytes);
void weir__traffic_count_paused(weir_traffic *traffic);
void weir__traffic_begin_waiting(weir_traffic *traffic, int64_t bytes);
void weir__traffic_end_waiting(weir_traffic *traffic, int64_t bytes);
void weir__traffic_cancel_waiting(weir_traffic *traffic,
                                  int64_t bytes); /* the message did not wait after all */

#endif
