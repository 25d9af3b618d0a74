/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stress: four threads submit tasks in every way there is, and a fifth shuts the executor down in
 * the midst of it. Each task must be run, cancelled or refused, exactly once, and the tasks of one
 * thread in the order submitted. tests/executor runs small ones, tests/soak large ones.
 */
#ifndef WEIR_TEST_SUBMIT_STRESS_H
#define WEIR_TEST_SUBMIT_STRESS_H

#include <stdint.h>

#include <weir/group.h>

struct submit_stress {
    uint64_t seed; /* decides when the executor is shut down, how, and what else happens to it */
    uint32_t tasks;

    /* Makes a group of one, by these options and others; NULL = of a plain executor. */
    int (*make_group)(const weir_group_options *options, weir_group **ret_group);

    /* What became of the tasks. */
    uint32_t run;
    uint32_t cancelled;
    uint32_t refused;
};

/* Returns what went wrong, NULL if nothing did. One stress at a time. */
const char *submit_stress_run(struct submit_stress *stress);

#endif
