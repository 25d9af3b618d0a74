/* SPDX-License-Identifier: Apache-2.0 */
/* Every call and allocation fails once. */
#include "support/loop/fault_sweep.h"

#include <errno.h>
#include <stdio.h>

#include "support/loop/faults.h"
#include "support/memory.h"
#include "support/test.h"

#define A_FEW 3

void sweep_fail(const struct sweep *sweep, const char *about)
{
    fail_msg("%s: %s: %s", sweep->backend->name, sweep->fault, about);
}

bool sweep_has_failed(const struct sweep *sweep)
{
    return sweep->memory_failed || test_memory_failed() || faults_injected() > 0;
}

void sweep_stop_faults(struct sweep *sweep)
{
    faults_end();
    sweep->memory_failed = sweep->memory_failed || test_memory_failed();
    test_memory_fail_at(0);
}

static void put_on(struct sweep *sweep, int excuse)
{
    int err;

    sweep->memory_failed = false;
    err = sweep->scenario(sweep);
    if (err != 0 && err != excuse && err != sweep->allowed_error)
        fail_msg("%s: %s: it does not begin: %d", sweep->backend->name, sweep->fault, err);
}

/* ---- system calls ---- */

static void try(struct sweep *sweep, enum fault_call call, uint64_t n, uint64_t count, int err)
{
    (void)snprintf(sweep->fault, sizeof(sweep->fault),
                   "%s fails with %d, from the %u. on, %u times", faults_name(call), err,
                   (unsigned)n, (unsigned)count);
    faults_inject(call, n, count, err);
    put_on(sweep, -err);
}

static void fail_one_kind(struct sweep *sweep, enum fault_call call, uint64_t made)
{
    uint64_t few = call == FAULT_RING_ENTER && sweep->ring_fails_once ? 1 : A_FEW;
    const int *errors = faults_errors(call);
    size_t count = 0;

    for (; errors[count] != 0; count++)
        if (count % sweep->stride == 0)
            try(sweep, call, 1, 1, errors[count]);
    for (uint64_t n = 2; n <= made; n += sweep->stride * (1 + made / sweep->places)) {
        if (!sweep->takes_turns || n % 2 == 0)
            try(sweep, call, n, 1, errors[n % count]);
        if (!sweep->takes_turns || n % 2 == 1)
            try(sweep, call, n, few, errors[(n + 1) % count]);
    }
}

void sweep_calls(struct sweep *sweep)
{
    uint64_t made[FAULT_COUNT];

    faults_install();
    (void)snprintf(sweep->fault, sizeof(sweep->fault), "nothing fails");
    assert_int_equal(sweep->scenario(sweep), 0);
    for (int call = 0; call < FAULT_COUNT; call++)
        made[call] = faults_calls(call);
    for (int call = 0; call < FAULT_COUNT; call++)
        if (made[call] > 0)
            fail_one_kind(sweep, call, made[call]);
    faults_remove();
}

/* ---- allocations ---- */

void sweep_allocations(struct sweep *sweep)
{
    unsigned n = 1;

    do {
        (void)snprintf(sweep->fault, sizeof(sweep->fault), "allocation %u fails", n);
        test_memory_fail_at(n);
        put_on(sweep, -ENOMEM);
        n += 1 + n / 32 * sweep->stride;
    } while (sweep->memory_failed);
}
