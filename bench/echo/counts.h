/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/counts.h - what a load has seen answered.
 */
#ifndef BENCH_ECHO_COUNTS_H
#define BENCH_ECHO_COUNTS_H

#include <stdint.h>

#include "support/latency.h"

typedef struct echo_counts {
    uint64_t requests;      /* answered; of the churn: connections */
    struct latency latency; /* of each */
} echo_counts;

#endif
