/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/crowd.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "support/bench.h"

enum { EVENTS_MAX = 256, READ_SIZE = 64 * 1024, WAIT_MS_MAX = 10 * 1000 };

struct client {
    tls_line line;
    enum { AWAY, SHAKING, ASKING, RESTING, LEAVING } state;
    size_t received; /* of the answer */
    int64_t began_ns;
};

struct tls_crowd {
    tls_lines *lines;
    uint16_t port;
    int epoll;
    size_t count;
    size_t busy;        /* clients that wait for something */
    bool stay;          /* who was answered does not leave, */
    bool ask;           /* and asks again; or the next one comes */
    size_t answer_size; /* with its head */
    struct client *clients;
    echo_counts *counts;
    char request[TLS_REQUEST_SIZE + 1];
    char answer[READ_SIZE];
    struct epoll_event events[EVENTS_MAX];
};

/* ---- one client ---- */

static void client_go_on(tls_crowd *crowd, struct client *client);

static void client_come(tls_crowd *crowd, struct client *client)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};

    client->began_ns = bench_now_ns();
    tls_line_open(&client->line, crowd->lines, crowd->port);
    bench_require(epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, client->line.descriptor, &event) == 0,
                  "epoll_ctl");
    client->state = SHAKING;
    crowd->busy++;
    client_go_on(crowd, client);
}

static void client_ask(tls_crowd *crowd, struct client *client)
{
    client->received = 0;
    client->state = ASKING;
    tls_line_send(&client->line, crowd->request, TLS_REQUEST_SIZE);
}

static void client_rest(tls_crowd *crowd, struct client *client)
{
    client->state = RESTING;
    crowd->busy--;
}

static void client_answered(tls_crowd *crowd, struct client *client)
{
    int64_t now_ns = bench_now_ns();

    bench_require(client->received == crowd->answer_size, "the answer's length");
    if (!crowd->stay) {
        client->state = LEAVING;
        tls_line_end(&client->line);
        return;
    }
    crowd->counts->requests++;
    latency_record(&crowd->counts->latency, now_ns - client->began_ns);
    client->began_ns = now_ns;
    if (crowd->ask)
        client_ask(crowd, client);
    else
        client_rest(crowd, client);
}

static void client_gone(tls_crowd *crowd, struct client *client)
{
    bench_require(client->state == LEAVING, "staying");
    tls_line_close(&client->line);
    client->state = AWAY;
    crowd->busy--;
    crowd->counts->requests++;
    latency_record(&crowd->counts->latency, bench_now_ns() - client->began_ns);
    if (crowd->ask)
        client_come(crowd, client);
}

/* Takes all that has come: OpenSSL may have read it from the socket already. */
static void client_receive(tls_crowd *crowd, struct client *client)
{
    ssize_t got;

    while ((got = tls_line_receive(&client->line, crowd->answer, READ_SIZE)) > 0) {
        client->received += (size_t)got;
        if (client->state == ASKING && client->received >= crowd->answer_size)
            client_answered(crowd, client);
    }
    if (got < 0)
        client_gone(crowd, client);
}

static void client_go_on(tls_crowd *crowd, struct client *client)
{
    if (client->state == SHAKING) {
        if (!tls_line_shake(&client->line, crowd->lines))
            return;
        client_ask(crowd, client);
    }
    client_receive(crowd, client);
}

/* ---- all of them ---- */

static void serve_events(tls_crowd *crowd)
{
    int count = epoll_wait(crowd->epoll, crowd->events, EVENTS_MAX, WAIT_MS_MAX);

    bench_require(count > 0, "waiting for an answer");
    for (int i = 0; i < count; i++)
        client_go_on(crowd, crowd->events[i].data.ptr);
}

/* Asks for so long, and waits until nobody is busy any more. */
static void serve(tls_crowd *crowd, int64_t duration_ns)
{
    int64_t end_ns = bench_now_ns() + duration_ns;

    while (crowd->busy > 0) {
        serve_events(crowd);
        if (bench_now_ns() >= end_ns)
            crowd->ask = false;
    }
}

void tls_crowd_visit(tls_crowd *crowd, int64_t duration_ns, echo_counts *counts)
{
    crowd->counts = counts;
    crowd->stay = false;
    crowd->ask = true;
    for (size_t i = 0; i < crowd->count; i++)
        client_come(crowd, &crowd->clients[i]);
    serve(crowd, duration_ns);
}

/* A handshake at a time for each that is over: the listener's backlog is not without end. */
void tls_crowd_settle(tls_crowd *crowd)
{
    enum { AT_ONCE = 64 };
    echo_counts *counts = bench_alloc(1, sizeof(*counts));

    crowd->counts = counts;
    crowd->stay = true;
    crowd->ask = false;
    for (size_t i = 0; i < crowd->count; i++) {
        client_come(crowd, &crowd->clients[i]);
        while (crowd->busy >= AT_ONCE)
            serve_events(crowd);
    }
    serve(crowd, 0);
    bench_free(counts);
}

void tls_crowd_talk(tls_crowd *crowd, int64_t duration_ns, echo_counts *counts)
{
    crowd->counts = counts;
    crowd->ask = true;
    crowd->busy = crowd->count;
    for (size_t i = 0; i < crowd->count; i++) {
        crowd->clients[i].began_ns = bench_now_ns();
        client_ask(crowd, &crowd->clients[i]);
    }
    serve(crowd, duration_ns);
}

/* ---- how long an answer is ---- */

static void wait_readable(const tls_line *line)
{
    struct pollfd waits = {.fd = line->descriptor, .events = POLLIN};

    bench_require(poll(&waits, 1, WAIT_MS_MAX) == 1, "waiting for an answer");
}

/* The length of an HTTP head, and 0 of anything else. Not all of it may be there. */
static size_t head_length(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");

    if (strncmp(answer, "HTTP/1.1 200", strlen("HTTP/1.1 200")) != 0)
        return 0;
    bench_require(end != NULL, "a whole head");
    return (size_t)(end + strlen("\r\n\r\n") - answer);
}

static void ask_once(tls_crowd *crowd, tls_line *line)
{
    ssize_t got;

    while (!tls_line_shake(line, crowd->lines))
        wait_readable(line);
    tls_line_send(line, crowd->request, TLS_REQUEST_SIZE);
    while ((got = tls_line_receive(line, crowd->answer, READ_SIZE - 1)) == 0)
        wait_readable(line);
    bench_require(got > 0, "receiving");
    crowd->answer[got] = '\0';
}

/* One that comes first; it also brings the ticket for those who take up its session. */
static size_t measure_answer(tls_crowd *crowd, size_t answer)
{
    bool resumes = crowd->lines->resumes;
    tls_line line;
    size_t head;

    crowd->lines->resumes = false;
    tls_line_open(&line, crowd->lines, crowd->port);
    ask_once(crowd, &line);
    crowd->lines->resumes = resumes;
    head = head_length(crowd->answer);
    tls_line_reset(&line);
    return head + (answer > 0 ? answer : TLS_REQUEST_SIZE);
}

static void write_request(tls_crowd *crowd, size_t answer)
{
    int length = snprintf(crowd->request, sizeof(crowd->request),
                          "GET /%zu HTTP/1.1\r\nHost: localhost\r\nX: ", answer);
    size_t rest = TLS_REQUEST_SIZE - (size_t)length;

    memset(crowd->request + length, 'x', rest);
    memcpy(crowd->request + TLS_REQUEST_SIZE - 4, "\r\n\r\n", 4);
}

tls_crowd *tls_crowd_open(tls_lines *lines, uint16_t port, size_t clients, size_t answer)
{
    tls_crowd *crowd = bench_alloc(1, sizeof(*crowd));

    crowd->lines = lines;
    crowd->port = port;
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    bench_require(crowd->epoll >= 0, "epoll_create1");
    crowd->count = clients;
    crowd->clients = bench_alloc(clients, sizeof(*crowd->clients));
    write_request(crowd, answer);
    crowd->answer_size = measure_answer(crowd, answer);
    return crowd;
}

void tls_crowd_close(tls_crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++)
        if (crowd->clients[i].state != AWAY)
            tls_line_reset(&crowd->clients[i].line);
    close(crowd->epoll);
    bench_free(crowd->clients);
    bench_free(crowd);
}
