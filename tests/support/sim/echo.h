/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An echo server and a client of weir in a world: the client sends messages in batches, and
 * compares the answers. Datagrams without an answer are sent again.
 */
#ifndef WEIR_TEST_SIM_ECHO_H
#define WEIR_TEST_SIM_ECHO_H

#include <weir/sim.h>
#include <weir/weir.h>

struct echo {
    enum weir_kind kind;
    const char *server_address, *client_address;
    bool is_local;  /* both on one host */
    unsigned size;  /* bytes of a message, at least 4 */
    unsigned batch; /* messages that are sent at once */
};

/* Runs with 20 seeds, twice each. `options` may be NULL. Fails the test if a run fails, or if two
 * runs of one seed differ. */
void echo_run(const weir_sim_options *options, const struct echo *echo);

#endif
