/* SPDX-License-Identifier: Apache-2.0 */
#include "echo/load.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "echo/server.h"
#include "support/bench.h"

enum {
    EVENTS_MAX = 256,
    READ_SIZE = 128 * 1024,
    WAIT_MS_MAX = 10 * 1000,
    PORTS_MAX = 8192, /* of one address: finding a free one gets slow beyond half of them */
};

/* ---- sockets ---- */

/* Gives the n-th connection a source address of its own every PORTS_MAX connections. */
static void bind_source(int descriptor, size_t n)
{
    struct sockaddr_in source = {.sin_family = AF_INET};
    int on = 1;

    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(n / PORTS_MAX));
    setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    bench_require(bind(descriptor, (struct sockaddr *)&source, sizeof(source)) == 0, "bind");
}

/* The n-th of some connections. */
static int connect_to(uint16_t port, size_t n)
{
    struct sockaddr_storage address;
    socklen_t length = echo_server_address(port, &address);
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    bench_require(descriptor >= 0, "socket");
    if (address.ss_family == AF_INET)
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (address.ss_family == AF_INET && n >= PORTS_MAX)
        bind_source(descriptor, n);
    bench_require(connect(descriptor, (struct sockaddr *)&address, length) == 0, "connecting");
    return descriptor;
}

static void set_nonblocking(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFL);

    bench_require(fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0, "O_NONBLOCK");
}

/* Without a trace: thousands of ports in TIME_WAIT would be in the way of later rounds. */
static void reset(int descriptor)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(descriptor);
}

/* Bytes that show when one of them is missing, or comes twice. */
static void fill(char *bytes, size_t size)
{
    uint64_t state = size;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)bench_random(&state);
}

/* ---- many connections ---- */

struct connection {
    int descriptor;
    bool answered;
    size_t received;      /* of the answer that is coming, */
    uint64_t counting[2]; /* or the state of script.answers */
    size_t unsent;        /* of those that are due; its end is the end of a request */
    int64_t sent_ns;
};

struct echo_load {
    int epoll;
    echo_script script;
    size_t count;
    size_t silent; /* connections that have had no answer yet */
    struct connection *connections;
    char *requests; /* `depth` of them, one after another */
    char *answers;
    echo_counts *counts;
    bool drains; /* asks nothing more */
    bool checks; /* compares the answers: those of the first run */
    struct epoll_event events[EVENTS_MAX];
};

static void watch(echo_load *load, struct connection *connection, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};

    bench_require(epoll_ctl(load->epoll, operation, connection->descriptor, &event) == 0,
                  "epoll_ctl");
}

/* What is due ends with a request's end: so much is left of the requests' copy. */
static ssize_t send_some(echo_load *load, struct connection *connection)
{
    const char *from =
        load->requests + load->script.request_size * load->script.depth - connection->unsent;

    return send(connection->descriptor, from, connection->unsent, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* True if all that is due has gone out. */
static bool send_due(echo_load *load, struct connection *connection)
{
    ssize_t sent = send_some(load, connection);

    bench_require(sent > 0 || errno == EAGAIN, "sending");
    connection->unsent -= sent > 0 ? (size_t)sent : 0;
    return connection->unsent == 0;
}

static void ask(echo_load *load, struct connection *connection, size_t requests, int64_t now_ns)
{
    bool was_waiting = connection->unsent > 0;

    connection->sent_ns = now_ns;
    connection->unsent += requests * load->script.request_size;
    if (!was_waiting && !send_due(load, connection))
        watch(load, connection, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
}

static void check_answer(const echo_script *script, size_t offset, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t left = script->answer_size - offset;
        size_t part = left < length ? left : length;
        size_t known = script->answer_known > offset ? script->answer_known - offset : 0;

        known = known < part ? known : part;
        bench_require(memcmp(bytes, script->answer + offset, known) == 0, "the answer");
        bytes += part;
        length -= part;
        offset = 0;
    }
}

/* The number of answers that these bytes complete. */
static size_t count_answers(const echo_load *load, struct connection *connection, size_t length)
{
    size_t answered;

    if (load->script.answers != NULL)
        return load->script.answers(connection->counting, load->answers, length);
    if (load->checks)
        check_answer(&load->script, connection->received, load->answers, length);
    connection->received += length;
    answered = connection->received / load->script.answer_size;
    connection->received -= answered * load->script.answer_size;
    return answered;
}

static void on_readable(echo_load *load, struct connection *connection)
{
    ssize_t got = recv(connection->descriptor, load->answers, READ_SIZE, MSG_DONTWAIT);
    int64_t now_ns = bench_now_ns();
    size_t answered;

    bench_require(got > 0, "receiving");
    answered = count_answers(load, connection, (size_t)got);
    if (answered == 0)
        return;
    load->silent -= !connection->answered;
    connection->answered = true;
    load->counts->requests += answered;
    latency_record(&load->counts->latency, now_ns - connection->sent_ns);
    if (!load->drains)
        ask(load, connection, answered, now_ns);
}

static void on_event(echo_load *load, const struct epoll_event *event)
{
    struct connection *connection = event->data.ptr;

    if (event->events & EPOLLOUT && send_due(load, connection))
        watch(load, connection, EPOLL_CTL_MOD, EPOLLIN);
    if (event->events & ~(uint32_t)EPOLLOUT)
        on_readable(load, connection);
}

static void serve_events(echo_load *load)
{
    int count = epoll_wait(load->epoll, load->events, EVENTS_MAX, WAIT_MS_MAX);

    bench_require(count > 0, "waiting for an answer");
    for (int i = 0; i < count; i++)
        on_event(load, &load->events[i]);
}

void echo_load_run(echo_load *load, int64_t duration_ns, echo_counts *counts)
{
    int64_t end_ns = bench_now_ns() + duration_ns;

    load->counts = counts;
    do {
        serve_events(load);
    } while (bench_now_ns() < end_ns || load->silent > 0);
    load->checks = false;
}

void echo_load_drain(echo_load *load, echo_counts *counts)
{
    load->counts = counts;
    load->drains = true;
    while (load->silent > 0)
        serve_events(load);
}

void echo_open(int descriptor, const char *opening)
{
    char answer[4096];
    size_t length = strlen(opening), received = 0;

    bench_require(send(descriptor, opening, length, MSG_NOSIGNAL) == (ssize_t)length, "sending");
    while (received < 4 || memcmp(answer + received - 4, "\r\n\r\n", 4) != 0) {
        ssize_t got = recv(descriptor, answer + received, sizeof(answer) - received, 0);

        bench_require(got > 0, "receiving the answer to the opening");
        received += (size_t)got;
    }
    bench_require(memcmp(answer, "HTTP/1.1 101 ", 13) == 0, "101 as the answer to the opening");
}

static void open_connection(echo_load *load, struct connection *connection, uint16_t port)
{
    connection->descriptor = connect_to(port, (size_t)(connection - load->connections));
    if (load->script.opening != NULL)
        echo_open(connection->descriptor, load->script.opening);
    watch(load, connection, EPOLL_CTL_ADD, EPOLLIN);
}

void echo_script_init(echo_script *script, size_t size, size_t depth)
{
    char *bytes = bench_alloc(1, size);

    fill(bytes, size);
    *script = (echo_script){
        .request = bytes,
        .request_size = size,
        .answer_size = size,
        .answer = bytes,
        .answer_known = size,
        .depth = depth,
    };
}

void echo_script_deinit(echo_script *script)
{
    bench_free(script->request);
}

echo_load *echo_load_open(uint16_t port, size_t connections, const echo_script *script)
{
    echo_load *load = bench_alloc(1, sizeof(*load));

    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    bench_require(load->epoll >= 0, "epoll_create1");
    load->script = *script;
    load->count = load->silent = connections;
    load->connections = bench_alloc(connections, sizeof(*load->connections));
    load->answers = bench_alloc(1, READ_SIZE);
    load->requests = bench_alloc(script->depth, script->request_size);
    load->checks = true;
    for (size_t i = 0; i < script->depth; i++)
        memcpy(load->requests + i * script->request_size, script->request, script->request_size);

    for (size_t i = 0; i < connections; i++)
        open_connection(load, &load->connections[i], port);
    for (size_t i = 0; i < connections; i++)
        ask(load, &load->connections[i], script->depth, bench_now_ns());
    return load;
}

void echo_load_close(echo_load *load)
{
    for (size_t i = 0; i < load->count; i++)
        reset(load->connections[i].descriptor);
    close(load->epoll);
    bench_free(load->requests);
    bench_free(load->answers);
    bench_free(load->connections);
    bench_free(load);
}

/* ---- one connection ---- */

void echo_client_open(echo_client *client, uint16_t port, size_t size, bool spins)
{
    client->descriptor = connect_to(port, 0);
    if (spins)
        set_nonblocking(client->descriptor);
    client->size = size;
    client->spins = spins;
    client->request = bench_alloc(1, size);
    client->answer = bench_alloc(1, size);
    fill(client->request, size);
}

void echo_client_close(echo_client *client)
{
    reset(client->descriptor);
    bench_free(client->answer);
    bench_free(client->request);
}

static ssize_t receive_some(const echo_client *client, size_t received)
{
    ssize_t got;

    do {
        got = recv(client->descriptor, client->answer + received, client->size - received, 0);
    } while (got < 0 && errno == EAGAIN);
    return got;
}

static void ask_and_wait(const echo_client *client)
{
    ssize_t sent = send(client->descriptor, client->request, client->size, MSG_NOSIGNAL);
    size_t received = 0;

    bench_require(sent == (ssize_t)client->size, "sending");
    while (received < client->size) {
        ssize_t got = receive_some(client, received);

        bench_require(got > 0, "receiving");
        received += (size_t)got;
    }
}

void echo_client_pause_until(const echo_client *client, int64_t when_ns)
{
    struct timespec when = {
        .tv_sec = when_ns / INT64_C(1000000000),
        .tv_nsec = when_ns % INT64_C(1000000000),
    };

    if (client->spins)
        bench_spin_until(when_ns);
    else
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

void echo_client_run(echo_client *client, int64_t interval_ns, int64_t duration_ns,
                     echo_counts *counts)
{
    int64_t now_ns = bench_now_ns(), end_ns = now_ns + duration_ns, next_ns = now_ns;

    do {
        int64_t began_ns = now_ns;

        ask_and_wait(client);
        now_ns = bench_now_ns();
        latency_record(&counts->latency, now_ns - began_ns);
        counts->requests++;
        next_ns += interval_ns;
        if (interval_ns > 0) {
            echo_client_pause_until(client, next_ns < end_ns ? next_ns : end_ns);
            now_ns = bench_now_ns();
        }
    } while (now_ns < end_ns);
    bench_require(memcmp(client->answer, client->request, client->size) == 0, "the echo");
}

/* ---- connections that come and go ---- */

struct visit {
    int descriptor;
    size_t received;
    int64_t began_ns;
};

struct churn {
    int epoll;
    uint16_t port;
    size_t size;
    char *request;
    char *answer;
    echo_counts *counts;
};

static void visit_begin(struct churn *churn, struct visit *visit)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = visit};

    visit->began_ns = bench_now_ns();
    visit->received = 0;
    visit->descriptor = connect_to(churn->port, 0);
    bench_require(send(visit->descriptor, churn->request, churn->size, MSG_NOSIGNAL) ==
                      (ssize_t)churn->size,
                  "sending");
    bench_require(epoll_ctl(churn->epoll, EPOLL_CTL_ADD, visit->descriptor, &event) == 0,
                  "epoll_ctl");
}

static void visit_go_on(struct churn *churn, struct visit *visit)
{
    size_t left = churn->size - visit->received;
    ssize_t got = recv(visit->descriptor, churn->answer, left, MSG_DONTWAIT);

    bench_require(got > 0, "receiving");
    visit->received += (size_t)got;
    if (visit->received < churn->size)
        return;
    close(visit->descriptor);
    latency_record(&churn->counts->latency, bench_now_ns() - visit->began_ns);
    churn->counts->requests++;
    visit_begin(churn, visit);
}

static void visit_all(struct churn *churn, struct visit *visits, size_t count, int64_t end_ns)
{
    struct epoll_event events[EVENTS_MAX];

    for (size_t i = 0; i < count; i++)
        visit_begin(churn, &visits[i]);
    do {
        int ready = epoll_wait(churn->epoll, events, EVENTS_MAX, WAIT_MS_MAX);

        bench_require(ready > 0, "waiting for an answer");
        for (int i = 0; i < ready; i++)
            visit_go_on(churn, events[i].data.ptr);
    } while (bench_now_ns() < end_ns);
    for (size_t i = 0; i < count; i++)
        reset(visits[i].descriptor);
}

void echo_churn_run(uint16_t port, size_t concurrent, size_t size, int64_t duration_ns,
                    echo_counts *counts)
{
    struct churn churn = {.port = port, .size = size, .counts = counts};
    struct visit *visits = bench_alloc(concurrent, sizeof(*visits));

    churn.epoll = epoll_create1(EPOLL_CLOEXEC);
    bench_require(churn.epoll >= 0, "epoll_create1");
    churn.request = bench_alloc(1, size);
    churn.answer = bench_alloc(1, size);
    fill(churn.request, size);
    visit_all(&churn, visits, concurrent, bench_now_ns() + duration_ns);
    bench_free(churn.answer);
    bench_free(churn.request);
    close(churn.epoll);
    bench_free(visits);
}
