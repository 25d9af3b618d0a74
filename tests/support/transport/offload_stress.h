/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections whose handlers are found to block at random moments, while they close, move to other
 * loops, get and lose handlers, and pause:
 *
 *      peer --numbers--> split, b0, p0, b1, b2, p1, b3 (echo) --numbers--> peer
 *
 * b0 to b3 are moved to another group when they "block": the verdict is given by the test, so no
 * time passes. Each handler checks that it sees all numbers in order, in both directions, and that
 * it is called by one thread at a time; the peer checks what it gets back. A connection that ends
 * cleanly has echoed everything.
 */
#ifndef WEIR_TEST_OFFLOAD_STRESS_H
#define WEIR_TEST_OFFLOAD_STRESS_H

#include <stdint.h>

#include <weir/group.h>

struct offload_stress {
    weir_group *loops;
    weir_group *aside; /* handlers that block move to it */
    uint64_t seed;
    unsigned at_once;  /* connections that are open at a time */
    uint64_t messages; /* at least */
};

struct offload_stress_result {
    const char *wrong; /* NULL = nothing */
    uint64_t connections;
    uint64_t aborted;
    uint64_t messages; /* that came back */
    uint64_t moved;    /* contexts, from their loop to the group */
    uint64_t added;    /* contexts that began there */
    uint64_t loop_changes;
};

/* Returns when all connections are closed. End the groups, and then call the second, which checks
 * that each promise was completed once and each context freed once. */
void offload_stress_run(const struct offload_stress *stress, struct offload_stress_result *result);
void offload_stress_check_end(struct offload_stress_result *result);

#endif
