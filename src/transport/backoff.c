/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer and its last delay.
 */
#include "transport/backoff.h"

#define LENGTH_MIN_NS weir_ms(10)
#define LENGTH_MAX_NS weir_seconds(1)

void weir__backoff_init(weir__backoff *pause)
{
    weir_timer_init(&pause->timer);
    pause->length_ns = 0;
}

void weir__backoff_begin(weir__backoff *pause, weir_executor *loop, weir_timer_fn *over)
{
    int64_t length_ns = pause->length_ns > 0 ? 2 * pause->length_ns : LENGTH_MIN_NS;

    pause->length_ns = length_ns < LENGTH_MAX_NS ? length_ns : LENGTH_MAX_NS;
    (void)weir_timer_start(loop, &pause->timer, pause->length_ns, over);
}

void weir__backoff_stop(weir__backoff *pause)
{
    if (weir_timer_is_running(&pause->timer))
        (void)weir_timer_stop(&pause->timer);
}
