/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exponential backoff: the delay before a retry doubles each time.
 */
#ifndef WEIR_TRANSPORT_BACKOFF_H
#define WEIR_TRANSPORT_BACKOFF_H

#include <weir/timer.h>

typedef struct weir__backoff {
    weir_timer timer;
    int64_t length_ns; /* of the last delay; 0 = no failure */
} weir__backoff;

void weir__backoff_init(weir__backoff *backoff);

/* Calls `over` on the loop after the delay, unless it is stopped before, or the loop shuts down. */
void weir__backoff_begin(weir__backoff *backoff, weir_executor *loop, weir_timer_fn *over);
void weir__backoff_stop(weir__backoff *backoff);

static inline bool weir__backoff_is_running(const weir__backoff *backoff)
{
    return weir_timer_is_running(&backoff->timer);
}

/* After a success: the next delay is the shortest again. */
static inline void weir__backoff_reset(weir__backoff *backoff)
{
    backoff->length_ns = 0;
}

#endif
