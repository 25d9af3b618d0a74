/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before the sources of examples that run in a world, which are not changed: what they
 * print is a note in the trace, and the signals of the runner stay as they are.
 */
#ifndef SIM_EXAMPLE_H
#define SIM_EXAMPLE_H

#include <signal.h>
#include <stdio.h>

#include <weir/sim.h>

/* Their main functions. */
int chat_main(int argc, char **argv);

#define printf(...) weir_sim_note(weir_sim_current(), __VA_ARGS__)
#define fprintf(stream, ...) ((void)(stream), weir_sim_note(weir_sim_current(), __VA_ARGS__))
#define pthread_sigmask(how, set, old) ((void)(how), (void)(set))

#endif
