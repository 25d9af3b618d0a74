/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Health checks: a GET to each upstream, again and again. A status below 500 is a success.
 */
#ifndef EXAMPLES_PROXY_HEALTH_H
#define EXAMPLES_PROXY_HEALTH_H

#include <weir/http_client.h>

#include "support/upstream.h"

struct check {
    struct health *health;
    struct upstream *upstream;
    weir_listener listener;
    bool is_under_way;
};

struct health {
    struct upstreams *upstreams;
    weir_http_client *client; /* of the checks alone */
    weir_executor *loop;      /* of that client */
    const char *path;
    int fall; /* failures in a row that mark an upstream down */
    int rise; /* successes in a row that mark it up */
    int64_t interval_ns;
    struct check checks[UPSTREAMS_MAX];
};

/* Starts the checks; they end with the loop, which `health` must outlive. */
int health_start(struct health *health);

#endif
