/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of rings. An operation that has to fail is turned into a no-op just before the kernel sees
 * it, so the kernel completes it at once and without effect, as it does a failing one. Its result
 * becomes the error when the completion is taken.
 *
 * An operation is identified by its user_data, which is unique among those in flight.
 */
#include "support/loop/faults.h"

#ifdef WEIR_WITH_URING

#include <stdlib.h>
#include <string.h>

#include "loop/uring.h"

#define RINGS_MAX 4
#define INJECTED_MAX 256

_Static_assert(FAULT_RING_POLL + WEIR__URING_SEND == FAULT_RING_SEND &&
                   FAULT_RING_POLL + WEIR__URING_WAKE == FAULT_RING_WAKE,
               "the operations have the same order");

static weir__uring_calls real;

/* Rings created since the installation; a closed ring is replaced by its successor. */
static struct {
    struct io_uring *ring;
    int descriptor;
    unsigned seen; /* operations inspected */
} rings[RINGS_MAX];
static unsigned ring_count;

static struct {
    uint64_t user_data;
    int result;
} injected[INJECTED_MAX];
static unsigned injected_count;

/* ---- operations ---- */

static void doom(struct io_uring_sqe *operation, int result)
{
    uint64_t user_data = operation->user_data;

    if (injected_count == INJECTED_MAX)
        abort();
    injected[injected_count].user_data = user_data;
    injected[injected_count++].result = result;
    memset(operation, 0, sizeof(*operation));
    operation->opcode = IORING_OP_NOP;
    operation->user_data = user_data;
}

static void inspect(struct io_uring_sqe *operation)
{
    unsigned op = operation->user_data & WEIR__URING_OP_MASK;
    int err;

    if (op > WEIR__URING_WAKE)
        return;
    err = faults_account(FAULT_RING_POLL + op);
    if (err != 0)
        doom(operation, -err);
}

static void inspect_all(unsigned descriptor, unsigned submit)
{
    for (unsigned i = 0; i < ring_count; i++) {
        struct io_uring_sq *queue = &rings[i].ring->sq;
        unsigned end;

        if (rings[i].descriptor != (int)descriptor)
            continue;
        end = *queue->khead + submit;
        for (; rings[i].seen != end; rings[i].seen++)
            inspect(&queue->sqes[rings[i].seen & queue->ring_mask]);
    }
}

/* The operations already turned into no-ops. */
static void on_completion(struct io_uring_cqe *completion)
{
    for (unsigned i = 0; i < injected_count; i++) {
        if (injected[i].user_data != completion->user_data)
            continue;
        completion->res = injected[i].result;
        injected[i] = injected[--injected_count];
        return;
    }
}

/* ---- calls ---- */

static void note_ring(struct io_uring *ring)
{
    unsigned i = 0;

    while (i < ring_count && rings[i].descriptor != ring->ring_fd)
        i++;
    if (i == RINGS_MAX)
        abort();
    if (i == ring_count)
        ring_count++;
    rings[i].ring = ring;
    rings[i].descriptor = ring->ring_fd;
    rings[i].seen = 0;
}

static int shim_setup(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
    int err = faults_account(FAULT_RING_SETUP);

    if (err != 0)
        return -err;
    err = real.setup(entries, ring, params);
    if (err >= 0) {
        injected_count = 0; /* closing a ring ends its operations */
        note_ring(ring);
    }
    return err;
}

static int shim_enable(struct io_uring *ring)
{
    int err = faults_account(FAULT_RING_ENABLE);

    return err != 0 ? -err : real.enable(ring);
}

static int shim_enter(unsigned ring, unsigned submit, unsigned wait, unsigned flags,
                      sigset_t *argument, size_t size)
{
    int err = faults_account(FAULT_RING_ENTER);

    if (err != 0)
        return -err;
    inspect_all(ring, submit);
    return real.enter(ring, submit, wait, flags, argument, size);
}

static int shim_register_buffers(struct io_uring *ring, struct io_uring_buf_reg *buffers,
                                 unsigned flags)
{
    int err = faults_account(FAULT_RING_BUFFERS);

    return err != 0 ? -err : real.register_buffers(ring, buffers, flags);
}

void faults_install_ring(void)
{
    if (weir__uring_system.enter != shim_enter)
        real = weir__uring_system;
    ring_count = 0;
    weir__uring_system.setup = shim_setup;
    weir__uring_system.enable = shim_enable;
    weir__uring_system.enter = shim_enter;
    weir__uring_system.register_buffers = shim_register_buffers;
    weir__uring_fault = on_completion;
}

void faults_remove_ring(void)
{
    weir__uring_system = real;
    weir__uring_fault = NULL;
}

#else

void faults_install_ring(void)
{
}

void faults_remove_ring(void)
{
}

#endif
