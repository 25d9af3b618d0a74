/* SPDX-License-Identifier: Apache-2.0 */
/*
 * support/bench.h - what the programs of a suite share, so that all of them measure in one way.
 *
 *      run.py  --- submit producers=2 count=200000 --->  program
 *              <-- {"ns": 23.51} ----------------------
 *
 * A program runs one round for each line of its input: it stays alive, so that rounds can be short
 * and those of the competitors take turns. Given a line as its arguments it runs that and ends. A
 * round keeps nothing for the next one, and whatever fails in it ends the program with a sentence.
 */
#ifndef BENCH_SUPPORT_BENCH_H
#define BENCH_SUPPORT_BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Data of different threads is kept this far apart. */
#define BENCH_LINE 64

/* Ignores the result of a WEIR_MUST_USE function, at no cost. */
#define IGNORE_RESULT(call) ((void)((call) == 0))

typedef struct bench_round bench_round;

typedef struct bench_case {
    const char *name;
    void (*run)(bench_round *round);
} bench_case;

/* Serves the rounds; the cases end with one that has no name. Returns main's result. */
int bench_main(int argc, char **argv, const bench_case *cases);

/* The number that the line gives as NAME=NUMBER. A setting that no one asks for is an error. */
int64_t bench_setting(bench_round *round, const char *name, int64_t otherwise);

/* Index of the name that the line gives as SETTING=NAME, in a NULL-terminated list; 0 without one.
 */
int bench_choice(bench_round *round, const char *setting, const char *const *names);

/* Adds a cost to the answer; less is better. */
void bench_report(bench_round *round, const char *name, double cost);

/* Exits with an error that names `what`, unless `ok`. */
void bench_require(bool ok, const char *what);

/* Zeroed memory with its pages in place, so that no fault falls into what is timed. */
void *bench_alloc(size_t count, size_t size);
void bench_free(void *memory);

/* The number of the n-th CPU that the process may use, counted round; -1 (any) stays -1. */
int bench_cpu(int64_t n);

/* The calling thread runs only on that CPU from now on; -1 = where it could before. */
void bench_pin(int cpu);

/* Starts a thread that runs only on that CPU; -1 = on any. */
void bench_thread_start(pthread_t *thread, int cpu, void *(*body)(void *), void *arg);
void bench_thread_join(pthread_t thread);

static inline int64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Waits without leaving the CPU, which keeps its speed and its caches. */
static inline void bench_spin_until(int64_t deadline_ns)
{
    while (bench_now_ns() < deadline_ns)
        ;
}

/* SplitMix64: the same sequence for every competitor. */
static inline uint64_t bench_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Maps 32 random bits onto 0 <= result < bound, where bound is at most 2^32. */
static inline uint64_t bench_scale(uint32_t bits, uint64_t bound)
{
    return bits * bound >> 32;
}

#endif
