/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events over sockets: several threads, several clients, slow clients, a drain.
 */
#include <weir/http_events.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"
#include "support/litmus.h"
#include "support/loop/host.h"
#include "support/protocol/http/exchange_fixture.h"

#define CLIENTS 3
#define SENDERS 2
#define EVENTS 200

static const weir_channel_options quick = {.size = sizeof(quick),
                                           .close_timeout_ns = 200 * 1000 * 1000};

/* The streams of all clients; begun on the loop, used by the senders afterwards. */
static struct {
    weir_http_events *streams[CLIENTS];
    _Atomic int count;
    struct call_counter begun;
    struct call_counter closed;
    _Atomic int closed_err;
} all;

static void on_closed(weir_http_events *events, int err, void *user_data)
{
    (void)events;
    (void)user_data;
    atomic_store(&all.closed_err, err);
    call_counter_add(&all.closed);
}

static void subscribe(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    if (weir_http_events_begin(exchange,
                               WEIR_HTTP_EVENTS_OPTIONS(.closed = on_closed, .max_queued = 100000),
                               &all.streams[atomic_fetch_add(&all.count, 1)]) == 0)
        call_counter_add(&all.begun);
}

static const weir_http_route routes[] = {{"GET", "/", subscribe}, {0}};

static weir_http_server *start(weir_group *group)
{
    weir_http_server *server = NULL;

    memset(&all, 0, sizeof(all));
    assert_int_equal(
        weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes,
                                                        .workers = group, .child_options = &quick),
                               &server),
        0);
    return server;
}

static int connect_client(const weir_http_server *server, uint32_t number)
{
    int peer = raw_client_connect(weir_http_server_server(server));

    raw_client_send(peer, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_true(call_counter_await(&all.begun, number + 1));
    return peer;
}

/* Sends its events to all streams, each with a number, beginning with its letter. */
static void *run_sender(void *arg)
{
    char data[16];

    for (int i = 0; i < EVENTS; i++) {
        (void)snprintf(data, sizeof(data), "%c%d", *(char *)arg, i);
        for (int client = 0; client < CLIENTS; client++)
            if (weir_http_events_send(all.streams[client], WEIR_HTTP_EVENT(.data = data)) != 0)
                return arg;
    }
    return NULL;
}

/* Receives until the end. Returns the text, chunked as it is, until the next call. */
static const char *receive_all(int peer)
{
    static char text[1 << 16];

    assert_true(raw_client_receive_all(peer, text, sizeof(text)) < sizeof(text));
    return text;
}

/* Each event of the sender, in order. A chunk may end anywhere between events. */
static void assert_received(const char *text, char sender)
{
    char event[32];

    for (int i = 0; i < EVENTS; i++) {
        (void)snprintf(event, sizeof(event), "data: %c%d\n\n", sender, i);
        text = strstr(text, event);
        if (text == NULL)
            fail_msg("%s is missing", event);
    }
}

TEST_EACH_LOOP(events, of_several_threads_reach_all_clients)
{
    weir_http_server *server = start(host->group);
    static char letters[] = "AB";
    pthread_t senders[SENDERS];
    int peers[CLIENTS];
    void *failed;
    const char *text;

    for (uint32_t i = 0; i < CLIENTS; i++)
        peers[i] = connect_client(server, i);
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&senders[i], NULL, run_sender, &letters[i]), 0);
    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal(pthread_join(senders[i], &failed), 0);
        assert_null(failed);
    }
    for (int i = 0; i < CLIENTS; i++)
        weir_http_events_release(all.streams[i]);
    for (int i = 0; i < CLIENTS; i++) {
        text = receive_all(peers[i]);
        assert_received(text, 'A');
        assert_received(text, 'B');
        assert_non_null(strstr(text, "\r\n0\r\n\r\n"));
        raw_client_close(peers[i]);
    }
    assert_true(call_counter_await(&all.closed, CLIENTS));
    assert_int_equal(atomic_load(&all.closed_err), 0);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(events, end_when_the_client_goes)
{
    weir_http_server *server = start(host->group);
    int peer = connect_client(server, 0);

    raw_client_close(peer);
    assert_true(call_counter_await(&all.closed, 1));
    assert_int_equal(atomic_load(&all.closed_err), WEIR_ECLOSED);
    weir_http_events_release(all.streams[0]);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(events, of_a_client_that_does_not_read_end)
{
    weir_http_server *server = start(host->group);
    int peer = connect_client(server, 0), err = 0;
    char data[1024];

    memset(data, 'x', sizeof(data));
    data[sizeof(data) - 1] = '\0';
    while (!err)
        err = weir_http_events_send(all.streams[0], WEIR_HTTP_EVENT(.data = data));
    assert_int_equal(err, WEIR_EFULL);
    assert_true(call_counter_await(&all.closed, 1));
    assert_int_equal(atomic_load(&all.closed_err), WEIR_EFULL);
    weir_http_events_release(all.streams[0]);
    raw_client_close(peer);
    weir_http_server_release(server);
}

TEST_EACH_LOOP(events, end_when_the_server_drains)
{
    weir_http_server *server = start(host->group);
    int peer = connect_client(server, 0);
    const char *text;

    assert_int_equal(weir_http_events_send(all.streams[0], WEIR_HTTP_EVENT(.data = "1")), 0);
    assert_int_equal(weir_http_server_stop(server, TEST_TIMEOUT_NS), 0);
    text = receive_all(peer);
    assert_non_null(strstr(text, "data: 1\n\n\r\n0\r\n\r\n"));
    raw_client_close(peer);
    assert_true(call_counter_await(&all.closed, 1));
    assert_int_equal(atomic_load(&all.closed_err), 0);
    weir_http_events_release(all.streams[0]);
    weir_http_server_release(server);
}

/* ---- several threads on behalf of one holder ---- */

static void retain(void *events)
{
    weir_http_events_retain(events);
}

static void release(void *events)
{
    weir_http_events_release(events);
}

TEST(events, retains_on_behalf_of_one_holder)
{
    weir_embedded *embedded = exchange_open(routes);

    memset(&all, 0, sizeof(all));
    exchange_put(embedded, "GET", "/");
    assert_int_equal(atomic_load(&all.count), 1);
    litmus_references(retain, release, all.streams[0]);
    assert_false(weir_http_events_is_closed(all.streams[0]));
    weir_http_events_release(all.streams[0]);
    weir_embedded_run(embedded);
    assert_int_equal(all.closed.calls, 1);
    weir_embedded_release(embedded);
}
