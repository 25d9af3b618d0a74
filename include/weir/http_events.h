/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_events.h - server-sent events: a response that lasts, with an event now and then.
 *
 *      err = weir_http_events_begin(exchange, NULL, &events);
 *      ...
 *      err = weir_http_events_send(events, WEIR_HTTP_EVENT(.data = "42", .id = "7"));
 *
 * In a browser: new EventSource("/clock").onmessage = event => ... event.data. After a lost
 * connection the browser connects again, and sends the id of the last event it has seen.
 *
 * Events are queued, and sent by the connection's loop together. A client that does not read, or
 * reads too slowly, fills its queue: then it is disconnected, or events are refused, as the options
 * say. Other clients do not notice.
 *
 * Link with libweir-http.
 */
#ifndef WEIR_HTTP_EVENTS_H
#define WEIR_HTTP_EVENTS_H

#include <weir/http_server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The stream of events to one client. */
typedef struct weir_http_events weir_http_events;

/*
 * Called once, on the connection's loop, when the stream has ended: err is 0 after
 * weir_http_events_close and when the server drains, WEIR_ECLOSED if the client has closed its side
 * of the connection, or it is lost, WEIR_EFULL if the client was too slow.
 */
typedef void weir_http_events_closed_fn(weir_http_events *events, int err, void *user_data);

/* Zero means default. Build with WEIR_HTTP_EVENTS_OPTIONS(...). */
typedef struct weir_http_events_options {
    size_t size;
    int64_t heartbeat_ns; /* sends a comment if nothing else was sent for that long, so that proxies
                             keep the connection, and lost ones are noticed; default 15 s; WEIR_OFF
                             = none */
    int64_t retry_ms;     /* after which a client connects again; default: the client's */
    size_t max_queued;    /* bytes that wait for a slow client; default 1 MiB */
    bool keep_slow;       /* refuses events that do not fit, instead of disconnecting */
    weir_http_events_closed_fn *closed;
    void *user_data; /* for it */
} weir_http_events_options;

#define WEIR_HTTP_EVENTS_OPTIONS(...) WEIR_OPTIONS(weir_http_events_options, __VA_ARGS__)

/*
 * Answers a request with a stream of events: status 200, text/event-stream. Header fields that the
 * exchange has are kept. A request with the method HEAD is answered completely.
 * Thread: any.  Keeps: exchange.  Gives: events.  Fails: -EINVAL, -ENOMEM, WEIR_ECLOSED (the
 * connection is gone, or HEAD), and as weir_http_exchange_begin.
 */
WEIR_API WEIR_MUST_USE int weir_http_events_begin(weir_http_exchange *exchange,
                                                  const weir_http_events_options *options,
                                                  weir_http_events **ret_events);

/*
 * Retains or releases a reference. NULL is ignored by release. The last release closes the stream.
 * Thread: any.  Takes: events (release).
 */
WEIR_API weir_http_events *weir_http_events_retain(weir_http_events *events);
WEIR_API void weir_http_events_release(weir_http_events *events);

/*
 * The Last-Event-ID of the request: the events behind it are to be sent again. Empty if there is
 * none.
 * Thread: any.  Lends until the events are released: the text.
 */
WEIR_API weir_span weir_http_events_last_id(const weir_http_events *events);

/* An event. Build with WEIR_HTTP_EVENT(.data = ...). NULL members are not sent. */
typedef struct weir_http_event {
    size_t size;
    const char *type; /* without line ends; NULL = "message" */
    const char *data; /* UTF-8, perhaps of several lines; CR, LF and CRLF arrive as LF */
    const char *id;   /* without line ends */
} weir_http_event;

#define WEIR_HTTP_EVENT(...) WEIR_OPTIONS(weir_http_event, __VA_ARGS__)

/*
 * Queues an event. Events of one thread are sent in their order.
 * Thread: any.  Lends until it returns: event.  Fails: WEIR_ECLOSED (it has ended), WEIR_EFULL (too
 * slow a client: it is being disconnected, unless .keep_slow is set), WEIR_ETOOLONG (longer than
 * the queue), -EINVAL (a line end in type or id, not UTF-8, neither data nor id), -ENOMEM.
 */
WEIR_API int weir_http_events_send(weir_http_events *events, const weir_http_event *event);

/*
 * The number of bytes that wait for the client, and true if the stream has ended.
 * Thread: any.
 */
WEIR_API size_t weir_http_events_queued(weir_http_events *events);
WEIR_API bool weir_http_events_is_closed(weir_http_events *events);

/*
 * Sends what is queued, and ends the response. Does nothing if it has ended.
 * Thread: any.
 */
WEIR_API void weir_http_events_close(weir_http_events *events);

#ifdef __cplusplus
}
#endif

#endif
