/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a number to all subscribers now and then, as server-sent events, until SIGINT or SIGTERM.
 *     sse [--interval-ms 1000] [--port 8080] [--io auto|epoll|uring|poll|blocking] [--threads N]
 *          [--boss-threads N] [--tls] [--cert FILE] [--key FILE]
 *     curl -N http://localhost:8080/events
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/http_events.h>

#include "support/http.h"

#define HISTORY 100 /* events that a client can catch up with */

static const char page[] = "<!DOCTYPE html>\n"
                           "<meta charset=utf-8>\n"
                           "<title>Events</title>\n"
                           "<h1 id=number></h1>\n"
                           "<script>\n"
                           "new EventSource('/events').onmessage = event =>\n"
                           "    document.getElementById('number').textContent = event.data\n"
                           "</script>\n";

struct subscriber {
    weir_http_events *events;
    struct subscriber *next;
    struct subscriber **pprev;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct subscriber *subscribers; /* under the mutex, like the number */
static unsigned long number;           /* of the last event */

static void show_page(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_bytes(exchange, 200, "text/html; charset=utf-8", page, sizeof(page) - 1);
}

/* doc:begin send */
static void send_number(weir_http_events *events, unsigned long id)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%lu", id);
    weir_http_events_send(events, WEIR_HTTP_EVENT(.data = text, .id = text)); /* or it has ended */
}

/* On the global executor. */
static void tick(void *arg, int status)
{
    (void)arg;
    if (status)
        return;
    pthread_mutex_lock(&mutex);
    number++;
    for (struct subscriber *subscriber = subscribers; subscriber != NULL;
         subscriber = subscriber->next)
        send_number(subscriber->events, number);
    pthread_mutex_unlock(&mutex);
}
/* doc:end */

static void on_closed(weir_http_events *events, int err, void *user_data)
{
    struct subscriber *subscriber = user_data;

    (void)err;
    pthread_mutex_lock(&mutex);
    *subscriber->pprev = subscriber->next;
    if (subscriber->next != NULL)
        subscriber->next->pprev = subscriber->pprev;
    pthread_mutex_unlock(&mutex);
    free(subscriber);
    weir_http_events_release(events);
}

/* The events that a client has missed since its last connection. */
static void catch_up(weir_http_events *events)
{
    weir_span last_id = weir_http_events_last_id(events);
    char text[32] = "";
    unsigned long id;

    if (last_id.length == 0 || last_id.length >= sizeof(text))
        return;
    memcpy(text, last_id.data, last_id.length);
    id = strtoul(text, NULL, 10);
    if (number > HISTORY && id < number - HISTORY)
        id = number - HISTORY;
    while (id < number)
        send_number(events, ++id);
}

/* doc:begin subscribe */
static void subscribe(weir_http_exchange *exchange, void *user_data)
{
    struct subscriber *subscriber = calloc(1, sizeof(*subscriber));
    int err = -ENOMEM;

    (void)user_data;
    pthread_mutex_lock(&mutex); /* no number is sent between those it missed and the next */
    if (subscriber != NULL)
        err = weir_http_events_begin(exchange,
                                     WEIR_HTTP_EVENTS_OPTIONS(.retry_ms = 1000, .closed = on_closed,
                                                              .user_data = subscriber),
                                     &subscriber->events);
    if (!err) {
        catch_up(subscriber->events);
        subscriber->next = subscribers;
        subscriber->pprev = &subscribers;
        if (subscribers != NULL)
            subscribers->pprev = &subscriber->next;
        subscribers = subscriber;
    }
    pthread_mutex_unlock(&mutex);
    if (err)
        free(subscriber); /* the exchange is answered with 500 */
}
/* doc:end */

static const weir_http_route routes[] = {WEIR_HTTP_ROUTE("GET", "/", show_page),
                                         WEIR_HTTP_ROUTE("GET", "/events", subscribe),
                                         WEIR_HTTP_ROUTES_END};

int main(int argc, char **argv)
{
    int interval_ms = settings_take_number(&argc, argv, "--interval-ms", 1000);
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);
    weir_promise *ticks = NULL;
    int status = EXIT_FAILURE;

    if (weir_schedule_at_fixed_rate(weir_executor_global(), weir_ms(interval_ms),
                                    weir_ms(interval_ms), tick, NULL, &ticks) == 0)
        status = serve_http(&settings, WEIR_HTTP_SERVER_OPTIONS(.routes = routes));
    if (ticks != NULL)
        weir_promise_cancel(ticks);
    weir_promise_release(ticks);
    return status;
}
