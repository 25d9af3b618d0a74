/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's connection, relayed to an upstream: if one does not answer, the next is tried.
 */
#ifndef EXAMPLES_BALANCER_H
#define EXAMPLES_BALANCER_H

#include <weir/tls_context.h>

#include "support/relay.h"
#include "support/upstream.h"

struct balancer {
    struct upstreams upstreams;
    weir_tls_context *tls; /* with clients; NULL = none */
    int proxy_version;
    int64_t connect_timeout_ns; /* for each upstream */
};

/* An initialiser of a server: its user_data is the balancer. */
int balancer_init(weir_channel *front, void *balancer);

#endif
