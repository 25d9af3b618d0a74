/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/ticks.h"

#include <stdio.h>
#include <stdlib.h>
#include <weir/http_events.h>
#include <weir/weir.h>

/* One client. Used on the loop of its connection only. */
struct ticks {
    int owners; /* the stream of events, and the schedule */
    weir_http_events *events;
    weir_promise *schedule; /* NULL until it has begun */
    unsigned long number;
    bool has_ended; /* the stream */
};

static void release(struct ticks *ticks)
{
    if (--ticks->owners > 0)
        return;
    weir_http_events_release(ticks->events);
    weir_promise_release(ticks->schedule);
    free(ticks);
}

/* The call with an error is the last one. */
static void tick(void *arg, int status)
{
    struct ticks *ticks = arg;
    char text[32];

    if (status) {
        weir_http_events_close(ticks->events);
        release(ticks);
        return;
    }
    (void)snprintf(text, sizeof(text), "%lu", ++ticks->number);
    (void)weir_http_events_send(ticks->events, WEIR_HTTP_EVENT(.data = text, .id = text));
}

static void on_closed(weir_http_events *events, int err, void *user_data)
{
    struct ticks *ticks = user_data;

    (void)events;
    (void)err;
    ticks->has_ended = true;
    if (ticks->schedule != NULL)
        (void)weir_promise_cancel(ticks->schedule);
    release(ticks);
}

void send_ticks(weir_http_exchange *exchange, void *user_data)
{
    struct ticks *ticks = calloc(1, sizeof(*ticks));
    weir_executor *loop = weir_channel_executor(weir_http_exchange_channel(exchange));

    (void)user_data;
    if (ticks == NULL)
        return; /* answered with 500 */
    ticks->owners = 2;
    if (weir_http_events_begin(exchange,
                               WEIR_HTTP_EVENTS_OPTIONS(.closed = on_closed, .user_data = ticks),
                               &ticks->events)) {
        free(ticks); /* HEAD, or the connection is lost */
        return;
    }
    if (weir_schedule_at_fixed_rate(loop, 0, weir_seconds(1), tick, ticks, &ticks->schedule))
        tick(ticks, WEIR_EREJECTED);
    else if (ticks->has_ended)
        (void)weir_promise_cancel(ticks->schedule);
}
