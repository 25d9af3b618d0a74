/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time to wait before something that has failed is tried again: twice as long each time.
 */
#ifndef WEIR_TRANSPORT_BACKOFF_H
#define WEIR_TRANSPORT_BACKOFF_H

#include <weir/timer.h>

typedef struct weir__pause {
    weir_timer timer;
    int64_t length_ns; /* of the last one; 0 = all is well */
} weir__pause;

void weir__pause_init(weir__pause *pause);

/* Calls `over` on the loop, unless it is stopped before, or the loop takes no timers any more. */
void weir__pause_begin(weir__pause *pause, weir_executor *loop, weir_timer_fn *over);
void weir__pause_stop(weir__pause *pause);

static inline bool weir__pause_is_running(const weir__pause *pause)
{
    return weir_timer_is_running(&pause->timer);
}

/* It went well: the next pause is a short one again. */
static inline void weir__pause_forget(weir__pause *pause)
{
    pause->length_ns = 0;
}

#endif
