/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run in a child process of its own: a failed run spoils its process, and a crash ends it.
 */
#ifndef WEIR_SIM_ISOLATED_H
#define WEIR_SIM_ISOLATED_H

#include <weir/sim.h>

/*
 * Forks, runs the program in the child and copies its result. As weir_sim_run; a crash of the child
 * and the end of `max_real_ns` are failures of the run, too. Fails also with the errors of pipe and
 * fork.
 */
int weir__sim_run_isolated(const weir_sim_options *options, weir_sim_program_fn *program, void *arg,
                           weir_sim_result *ret_result);

#endif
