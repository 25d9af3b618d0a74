/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What handlers ask of a limit. Any thread; all must go by the same clock.
 */
#ifndef WEIR_HANDLER_TRAFFIC_H
#define WEIR_HANDLER_TRAFFIC_H

#include <weir/traffic.h>

/* When a message of so many bytes may go out: it has its place in the row from now on. */
int64_t weir__traffic_reserve(weir_traffic *traffic, int64_t bytes, int64_t now_ns);

/* So many bytes were read: when the next may be. */
int64_t weir__traffic_charge(weir_traffic *traffic, int64_t bytes, int64_t now_ns);

/* For the figures. */
void weir__traffic_count_written(weir_traffic *traffic, int64_t bytes);
void weir__traffic_count_paused(weir_traffic *traffic);
void weir__traffic_begin_waiting(weir_traffic *traffic, int64_t bytes);
void weir__traffic_end_waiting(weir_traffic *traffic, int64_t bytes);
void weir__traffic_cancel_waiting(weir_traffic *traffic, int64_t bytes); /* it never did wait */

#endif
