/* SPDX-License-Identifier: Apache-2.0 */
/*
 * udp/load.h - what asks a UDP echo server: a closed loop over some sockets, with so many datagrams
 * under way on each at all times, sent and received in batches.
 *
 * It runs on the calling thread, for a given time, and counts what was answered. What fails, also a
 * wrong answer or one that does not come, ends the program.
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
