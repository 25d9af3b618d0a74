/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/load.h - what asks a server: a closed loop over many connections, a client of one
 * connection that sleeps or spins while it waits, and one that connects, asks once, and closes.
 *
 * All run on the calling thread, for a given time, and count what was answered. What fails, also a
 * wrong answer, ends the program.
 */
#ifndef BENCH_ECHO_LOAD_H
#define BENCH_ECHO_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "echo/counts.h"

/* ---- many connections: one thread, epoll, `depth` requests in flight on each ---- */

typedef struct echo_load echo_load;

/* Counts the answers that end within these bytes. `state` is the connection's own, zeroed at first.
 */
typedef size_t echo_answers_fn(uint64_t state[2], const char *bytes, size_t length);

/* What is asked again and again, and what is answered. */
typedef struct echo_script {
    const char *opening; /* sent first, once, and answered up to an empty line; NULL = none */
    char *request;
    size_t request_size;
    size_t answer_size;
    echo_answers_fn *answers; /* instead of the size, if answers vary; they are not compared */
    const char *answer;       /* how each answer begins: `answer_known` bytes, */
    size_t answer_known;      /* which are compared in the first run */
    size_t depth;             /* requests in flight on each connection */
} echo_script;

/* Sends the opening, and waits for the answer to it: 101. */
void echo_open(int descriptor, const char *opening);

/* Copies the request; the answer stays the caller's. */
echo_load *echo_load_open(uint16_t port, size_t connections, const echo_script *script);

/* The script of an echo: random bytes, which echo_script_deinit frees. */
void echo_script_init(echo_script *script, size_t size, size_t depth);
void echo_script_deinit(echo_script *script);

/* The first run goes on until every connection was answered. */
void echo_load_run(echo_load *load, int64_t duration_ns, echo_counts *counts);

/* Until all is answered; nothing more is asked. */
void echo_load_drain(echo_load *load, echo_counts *counts);
void echo_load_close(echo_load *load);

/* ---- one connection ---- */

typedef struct echo_client {
    int descriptor;
    size_t size;
    bool spins; /* asks the socket again and again, instead of sleeping until the answer comes */
    char *request;
    char *answer;
} echo_client;

void echo_client_open(echo_client *client, uint16_t port, size_t size, bool spins);

/* A request every `interval_ns`, 0 = as soon as the one before is answered. */
void echo_client_run(echo_client *client, int64_t interval_ns, int64_t duration_ns,
                     echo_counts *counts);

/* Asks nothing until then. */
void echo_client_pause_until(const echo_client *client, int64_t when_ns);
void echo_client_close(echo_client *client);

/* ---- connections that come and go: connect, one request, close ---- */

void echo_churn_run(uint16_t port, size_t concurrent, size_t size, int64_t duration_ns,
                    echo_counts *counts);

#endif
