/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated program: what ./dev sim NAME runs, once per seed.
 *
 *      static int run(weir_sim *sim, void *arg) { ... }
 *      static void configure(uint64_t seed, weir_sim_options *options) { ... }
 *      SIM_PROGRAM(echo, "TCP echo with impatient clients", configure, run)
 *
 * `configure` sets rates and the network from the seed, so that some worlds are calm and others are
 * rough. The program must not depend on anything but the world: all state is reset by `run`.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <weir/sim.h>

typedef struct sim_program {
    const char *name;
    const char *text;
    void (*configure)(uint64_t seed, weir_sim_options *options);
    weir_sim_program_fn *run;
    struct sim_program *next;
} sim_program;

void sim_program_add(sim_program *program);

#define SIM_PROGRAM(name_, text_, configure_, run_)                            \
    static sim_program this_program = {#name_, text_, configure_, run_, NULL}; \
    __attribute__((constructor)) static void add_this_program(void)            \
    {                                                                          \
        sim_program_add(&this_program);                                        \
    }

#endif
