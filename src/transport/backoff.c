/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer and its last delay.
 */
#include "transport/backoff.h"

#define LENGTH_MIN_NS weir_ms(10)
#define LENGTH_MAX_NS weir_seconds(1)

void weir__backoff_init(weir__backoff *backoff)
{
    weir_timer_init(&backoff->timer);
    backoff->length_ns = 0;
}

void weir__backoff_begin(weir__backoff *backoff, weir_executor *loop, weir_timer_fn *over)
{
    int64_t length_ns = backoff->length_ns > 0 ? 2 * backoff->length_ns : LENGTH_MIN_NS;

    backoff->length_ns = length_ns < LENGTH_MAX_NS ? length_ns : LENGTH_MAX_NS;
    (void)weir_timer_start(loop, &backoff->timer, backoff->length_ns, over);
}

void weir__backoff_stop(weir__backoff *backoff)
{
    if (weir_timer_is_running(&backoff->timer))
        (void)weir_timer_stop(&backoff->timer);
}
