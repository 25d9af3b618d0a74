/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/competitor.h - what an echo server defines to be measured.
 *
 *      #include "echo/competitor.h"
 *      the functions below
 *      #include "echo/cases.h"
 *
 * A server sends back whatever it receives, in order, also what the socket does not take at once,
 * and closes a connection when its peer does.
 */
#ifndef BENCH_ECHO_COMPETITOR_H
#define BENCH_ECHO_COMPETITOR_H

#include "echo/server.h"
#include "support/bench.h"

/* Reads what the line of the round says about the server. */
static void server_configure(bench_round *round);

/* In a process of its own: listens, announces itself, and serves on that CPU until it is killed. */
static void server_run(int cpu);

#endif
