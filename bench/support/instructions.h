/* SPDX-License-Identifier: Apache-2.0 */
/*
 * support/instructions.h - counts the instructions of a stretch of code, under callgrind.
 *
 *      bench_count_begin("group next", 1000);
 *      for (int i = 0; i < 1000; i++)
 *          weir_group_next(group);
 *      bench_count_end();
 *
 * Each stretch becomes one dump of callgrind's, labelled with its name and how often it did what it
 * does; harness/instructions.py divides. Only what this thread does is counted. Without callgrind
 * nothing happens.
 */
#ifndef BENCH_SUPPORT_INSTRUCTIONS_H
#define BENCH_SUPPORT_INSTRUCTIONS_H

#include <stdio.h>

#include <valgrind/callgrind.h>

static char bench_count_label[128];

static inline void bench_count_begin(const char *name, int operations)
{
    snprintf(bench_count_label, sizeof(bench_count_label), "%s|%d", name, operations);
    CALLGRIND_TOGGLE_COLLECT;
}

/* What comes between the two is not counted. */
static inline void bench_count_pause(void)
{
    CALLGRIND_TOGGLE_COLLECT;
}

static inline void bench_count_resume(void)
{
    CALLGRIND_TOGGLE_COLLECT;
}

static inline void bench_count_end(void)
{
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT(bench_count_label);
}

/* What this machine cannot do is not compared. */
static inline void bench_count_none(const char *name)
{
    snprintf(bench_count_label, sizeof(bench_count_label), "%s|0", name);
    CALLGRIND_DUMP_STATS_AT(bench_count_label);
}

#endif
