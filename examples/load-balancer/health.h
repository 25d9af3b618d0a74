/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health checks: a connection to each upstream, again and again. Some failures in a row mark it
 * down, some successes up again; either is logged.
 */
#ifndef EXAMPLES_HEALTH_H
#define EXAMPLES_HEALTH_H

#include "support/upstream.h"

struct check {
    struct health *health;
    struct upstream *upstream;
    weir_listener listener;
    bool is_under_way;
};

struct health {
    struct upstreams *upstreams;
    int proxy_version;
    int fall; /* failures in a row that mark an upstream down */
    int rise; /* successes in a row that mark it up */
    int64_t interval_ns;
    int64_t timeout_ns;
    weir_executor *loop; /* all checks run on it */
    struct check checks[UPSTREAMS_MAX];
};

/* Starts the checks; they end with the loop, which `health` must outlive. */
int health_start(struct health *health);

#endif
