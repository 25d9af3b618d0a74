/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runner of simulated programs: worlds in worker processes, and reports of failures.
 */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/programs/program.h"

/* What the loops of a world run on: see .uring of weir_sim_options. */
enum sim_backend {
    SIM_BOTH, /* half of the seeds on io_uring */
    SIM_READINESS,
    SIM_URING,
};

/* The command line. */
typedef struct sim_command {
    const char *executable; /* for the command that reproduces a failure */
    uint64_t from, to;
    uint64_t after_from, after_to; /* seeds that run before a single one; 0: none */
    bool single;                   /* --seed: in this process, for a debugger */
    bool trace;                    /* print each event */
    bool hash;                     /* print the hash of all seeds */
    bool hashes;                   /* and of each one */
    bool keep_going;               /* after a failure */
    bool repeat;                   /* each seed three times, in several orders: equal hashes? */
    bool reduce;                   /* the faults of --seed */
    bool quiet;                    /* failures without trace and reduction */
    unsigned jobs;                 /* worker processes; 0: one per core */
    unsigned timeout;              /* real seconds that a world may take */
    enum sim_backend backend;
    weir_sim_fault_event *only; /* --only; NULL: all faults */
    size_t only_count;
} sim_command;

/* What a run of many seeds has found. */
typedef struct sim_summary {
    uint64_t seeds, failures;
    uint64_t uring; /* seeds over io_uring */
    uint64_t events;
    int64_t virtual_ns;
    double seconds;
    uint64_t hash;
} sim_summary;

/* Options of a seed: those of the program, and of the command. */
weir_sim_options sim_options_for(const sim_program *program, uint64_t seed,
                                 const sim_command *command);

/* True if libweir was built with io_uring. */
bool sim_has_uring(void);

/* Runs all seeds in worker processes; reports failures and progress. False on a failure. */
bool sim_run_seeds(const sim_program *program, const sim_command *command,
                   sim_summary *ret_summary);

/* Prints a failed seed: what failed, the trace, fewer faults that fail, how to reproduce it. */
void sim_report_failure(const sim_program *program, uint64_t seed, const char *text,
                        const sim_command *command);

double sim_real_seconds(void);

#endif
