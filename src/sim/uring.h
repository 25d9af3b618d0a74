/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of io_uring as the kernel sees it, for uring.c and uring_op.c. The loop's side is the code
 * that runs in production, loop/uring*.c, below whose table of calls this is.
 */
#ifndef WEIR_SIM_URING_H
#define WEIR_SIM_URING_H

#include "loop/uring.h"
#include "sim/world.h"

/* What differs between kernels. Drawn when a world begins. */
typedef struct weir__sim_kernel {
    unsigned refused;      /* flags of the setup */
    unsigned submissions;  /* sizes of the queues, at most */
    unsigned completions;  /* at least one per submission */
    unsigned receives;     /* of a multishot receive in a row; then others have their turn */
    bool end_takes_buffer; /* the end of a stream is reported with a buffer */
    bool reports_wakes;    /* a poll reports what it was woken for, even if that is gone */
    unsigned most_buffers; /* so far: that a ring had at a time */
} weir__sim_kernel;

typedef struct weir__sim_uring {
    weir__sim_file file;
    struct io_uring *user; /* of the loop */
    unsigned flags;        /* of the setup */
    bool is_enabled;
    uint64_t submitter; /* the fiber that has enabled it */
    weir_sim_process *process;

    /* Shared with the loop. */
    unsigned sq_head, sq_tail, sq_flags, sq_dropped, sq_entries;
    unsigned cq_head, cq_tail, cq_flags, cq_overflow, cq_entries;
    unsigned sq_mask, cq_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;

    /* The buffer ring. */
    const struct io_uring_buf_ring *buffers; /* NULL = none */
    unsigned buffer_count;
    uint16_t buffers_taken; /* the kernel's end of it */

    weir__list overflow;       /* completions without room in the queue */
    bool has_dropped;          /* a completion for which there was no memory either */
    weir__list ops;            /* in flight */
    weir__list work;           /* those that were woken, in that order */
    weir__sim_fiber *waiter;   /* in io_uring_enter */
    weir__sim_event interrupt; /* runs the work of a ring that does not defer it */
    unsigned busy;             /* calls in a row that did not wait */
} weir__sim_uring;

extern weir__sim_kernel weir__sim_kernel_of_world;

static inline bool weir__sim_uring_defers(const weir__sim_uring *ring)
{
    return (ring->flags & IORING_SETUP_DEFER_TASKRUN) != 0;
}

/* ---- completions (uring.c) ---- */

/* True if another completion of a multishot operation may be posted. */
bool weir__sim_uring_has_room(const weir__sim_uring *ring);
void weir__sim_uring_post(weir__sim_uring *ring, uint64_t user_data, int result, unsigned flags);

/* There is work: the thread runs it when it enters the kernel, or is interrupted. */
void weir__sim_uring_notify(weir__sim_uring *ring);

/* ---- operations (uring_op.c) ---- */

/* Starts what an entry asks for, which may complete at once. */
void weir__sim_uring_issue(weir__sim_uring *ring, const struct io_uring_sqe *sqe);

/* Continues the operations that were woken. */
void weir__sim_uring_run_work(weir__sim_uring *ring);

/* True if a receive for this handle is in flight and was not cancelled. */
bool weir__sim_uring_receives(const weir__sim_uring *ring, const weir__io_handle *handle);

/* Ends all operations: they complete as cancelled, or silently. Returns their number. */
unsigned weir__sim_uring_end_all(weir__sim_uring *ring, bool silently);

#endif
