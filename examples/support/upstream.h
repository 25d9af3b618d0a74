/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers behind a load balancer or a reverse proxy: which one is next, and whether it is up.
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
    _Atomic bool is_up;
    _Atomic int contrary; /* results in a row that contradict is_up */
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

/*
 * Notes that the upstream has answered, or the reason why not. `limit` results in a row that
 * contradict what it is marked as mark it up or down; either is logged. Any thread.
 */
void upstream_note(struct upstream *upstream, int limit, const char *reason);

/* Counts a connection for as long as it exists: adds a handler that does. */
int upstream_count(struct upstream *upstream, weir_pipeline *pipeline);

#endif
