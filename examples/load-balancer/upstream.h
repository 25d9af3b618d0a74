/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers behind the load balancer: which one is next, and whether it is up.
 */
#ifndef EXAMPLES_UPSTREAM_H
#define EXAMPLES_UPSTREAM_H

#include <stdatomic.h>
#include <weir/weir.h>

#define UPSTREAMS_MAX 64

enum balance {
    BALANCE_LEAST_CONNECTIONS,
    BALANCE_ROUND_ROBIN,
};

struct upstream {
    const char *address;
    _Atomic int connections; /* that are open or being opened; any loop */
    _Atomic bool is_up;      /* written by the health checks */
};

struct upstreams {
    struct upstream list[UPSTREAMS_MAX];
    size_t count;
    enum balance balance;
    _Atomic unsigned turn; /* whose turn it is; among equals, too */
};

/* False if there are too many. Upstreams are up until a check says otherwise. */
bool upstreams_add(struct upstreams *upstreams, const char *address);

/*
 * The next upstream for a client, of those whose bit in `tried` is not set; the bit is set then.
 * Upstreams that are down are chosen only if no other is left. NULL if all have been tried. Any
 * thread.
 */
struct upstream *upstreams_choose(struct upstreams *upstreams, uint64_t *tried);

/* Counts a connection for as long as it exists: adds a handler that does. */
int upstream_count(struct upstream *upstream, weir_pipeline *pipeline);

#endif
