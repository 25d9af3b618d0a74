/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls/crowd.h - what asks the servers of this suite: many clients on one thread (tls/line.h), with
 * one request under way on each.
 *
 * A request is always the same: an HTTP GET of TLS_REQUEST_SIZE bytes, so that nginx and those who
 * only look at the length understand it.
 */
#ifndef BENCH_TLS_CROWD_H
#define BENCH_TLS_CROWD_H

#include "echo/counts.h"
#include "tls/line.h"

#define TLS_REQUEST_SIZE 64

typedef struct tls_crowd tls_crowd;

/*
 * So many clients of a port. Answers have `answer` bytes, 0: as many as the request; those of an
 * HTTP server have a head besides.
 */
tls_crowd *tls_crowd_open(tls_lines *lines, uint16_t port, size_t clients, size_t answer);
void tls_crowd_close(tls_crowd *crowd);

/* Each connects, asks once, and closes, again and again; returns when all who have come are gone.
 */
void tls_crowd_visit(tls_crowd *crowd, int64_t duration_ns, echo_counts *counts);

/* All connect and stay; they ask for so long, and until each was answered. */
void tls_crowd_settle(tls_crowd *crowd);
void tls_crowd_talk(tls_crowd *crowd, int64_t duration_ns, echo_counts *counts);

#endif
