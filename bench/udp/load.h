/* SPDX-License-Identifier: Apache-2.0 */
/*
 * udp/load.h - load for a UDP echo server: a closed loop over some sockets, with `depth` datagrams
 * in flight on each, sent and received in batches.
 *
 * Runs on the calling thread for a given time and counts answers. Exits on any failure, including a
 * wrong or missing answer.
 */
#ifndef BENCH_UDP_LOAD_H
#define BENCH_UDP_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "echo/counts.h"

#define UDP_DEPTH_MAX 64

typedef struct udp_load udp_load;

udp_load *udp_load_open(uint16_t port, size_t sockets, size_t size, size_t depth);
void udp_load_run(udp_load *load, int64_t duration_ns, echo_counts *counts);
void udp_load_close(udp_load *load);

#endif
