/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stress test of submissions: four threads submit tasks in all ways while a fifth shuts the
 * executor down. Each task must be run, cancelled or rejected exactly once, and the tasks of one
 * thread must run in the order submitted. tests/executor runs small ones, tests/soak large ones.
 */
#ifndef WEIR_TEST_SUBMIT_STRESS_H
#define WEIR_TEST_SUBMIT_STRESS_H

#include <stdint.h>

#include <weir/group.h>

struct submit_stress {
    uint64_t seed; /* decides when and how the executor is shut down, suspended, ... */
    uint32_t tasks;

    /* Creates a group of one executor, with these options and others; NULL: a plain executor. */
    int (*make_group)(const weir_group_options *options, weir_group **ret_group);

    /* Results. */
    uint32_t run;
    uint32_t cancelled;
    uint32_t refused;
};

/* Returns the first error, or NULL. Only one may run at a time. */
const char *submit_stress_run(struct submit_stress *stress);

#endif
