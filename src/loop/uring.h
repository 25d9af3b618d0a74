/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the io_uring backend, shared by its files:
 *
 *     uring.c             the backend: what is started, and ended
 *     uring_ring.c        the ring comes and goes
 *     uring_setup.c       getting one, and why there is none
 *     uring_probe.c       a round trip that proves that rings work
 *     uring_queue.c       operations go into a queue,
 *     uring_completion.c  and completions come out of one
 *     uring_poll.c        polls
 *     uring_doubts.c      whether something is left in a Unix socket
 *     uring_receive.c     receiving by a ring of buffers
 *     uring_tell.c        telling owners, and keeping what they may not be told yet
 *
 * An operation in the ring is known by the address of its handle, with which of the handle's
 * operations it is in the low bits: one of each kind at a time. It stays in handle->in_flight until
 * its last completion, and the handle with the backend until its last operation.
 */
#ifndef WEIR_LOOP_URING_H
#define WEIR_LOOP_URING_H

#include <signal.h>
#include <sys/utsname.h>

#include "loop/io.h"
#include "loop/uring_abi.h"

enum weir__uring_op {
    WEIR__URING_POLL, /* readiness to read, again and again; or what the owner polls for, once */
    WEIR__URING_POLL_WRITE, /* readiness to write, once */
    WEIR__URING_ACCEPT,     /* again and again */
    WEIR__URING_CONNECT,    /* once */
    WEIR__URING_RECEIVE,    /* again and again, by the ring of buffers */
    WEIR__URING_OP_COUNT,

    /* Without a handle. */
    WEIR__URING_WAKE = WEIR__URING_OP_COUNT, /* the eventfd */
    WEIR__URING_CANCEL,
    WEIR__URING_OP_MASK = 7,
};

/* What is known of a handle: bits of `manner`. */
enum {
    WEIR__URING_BULK = 1 << 0,    /* much: by poll, also if there is a ring of buffers */
    WEIR__URING_EDGES = 1 << 1,   /* polls that look first complete for nothing */
    WEIR__URING_RECHECK = 1 << 2, /* there may be more to read than it was told of */
};

typedef struct weir__uring_buffers weir__uring_buffers;
typedef struct weir__uring_event weir__uring_event;

#define WEIR__URING_RECHECKS_MAX 64

struct weir__uring_rechecks {
    weir__io_handle *handles[WEIR__URING_RECHECKS_MAX];
    unsigned count;
    unsigned turns; /* that they were put off */
};

typedef struct weir__uring {
    weir__io io;
    struct io_uring ring;
    bool is_open;
    bool is_wake_watched;
    bool is_draining;     /* nothing is started, nobody is told anything */
    bool needs_rearm;     /* something could not be submitted: all handles are looked at again */
    unsigned enter_flags; /* that the kernel knows */
    unsigned counted;     /* the completion queue's tail, as far as `wait` has looked */
    unsigned turn_completions; /* completions of this turn */
    struct weir__uring_rechecks rechecks;
    weir__uring_event *spare;
    weir__uring_buffers *buffers; /* NULL = received by poll alone */
} weir__uring;

static inline weir__uring *weir__uring_of(weir__io *io)
{
    return WEIR_CONTAINER_OF(io, weir__uring, io);
}

/* ---- seams for tests: set them before there is a ring ---- */

/* What is asked of liburing and of the system. All but the last two return a negative errno, and do
 * not set errno. */
typedef struct weir__uring_calls {
    int (*setup)(unsigned entries, struct io_uring *ring, struct io_uring_params *params);
    int (*enable)(struct io_uring *ring);
    int (*enter)(unsigned ring, unsigned submit, unsigned wait, unsigned flags, sigset_t *argument,
                 size_t size);
    int (*register_buffers)(struct io_uring *ring, struct io_uring_buf_reg *buffers,
                            unsigned flags);
    int (*uname)(struct utsname *ret_kernel); /* as the function of that name */
    int (*disabled)(void);                    /* kernel.io_uring_disabled */
} weir__uring_calls;

extern weir__uring_calls weir__uring_system;

/*
 * Every completion passes by here and may be changed. One whose F_MORE is taken away stays in the
 * kernel, and goes on completing: make its later completions nobody's by the user_data
 * WEIR__URING_CANCEL.
 */
extern void (*weir__uring_fault)(struct io_uring_cqe *completion);

/* ---- handles (uring.c) ---- */

/* Has the ring do what is wanted of a handle; or of all, and no more than that. */
void weir__uring_arm(weir__io_handle *handle);
void weir__uring_rearm_all(weir__uring *self);

/* The handle fails. */
void weir__uring_fail(weir__io_handle *handle, int err);

/* One that detaches or closes is through, if nothing of it is in flight or kept. */
void weir__uring_try_detach_done(weir__io_handle *handle);

/* ---- the ring (uring_ring.c): slots of weir__io_type ---- */

int weir__uring_open(weir__io *io, char *reason, size_t size);
int weir__uring_begin(weir__io *io);
void weir__uring_close(weir__io *io);
int weir__uring_rebuild(weir__io *io);

/* ---- getting a ring (uring_setup.c) ---- */

/* Makes a ring that is not enabled yet. An error leaves a sentence. */
int weir__uring_setup(weir__uring *self, char *reason, size_t size);

/* The same with the smallest queues. */
int weir__uring_setup_small(weir__uring *self, char *reason, size_t size);

/* Writes why a system call of io_uring failed, and what to do about it. */
void weir__uring_explain(const char *call, int err, char *reason, size_t size);

/* Creates, enables and uses a ring like the loop's own, and closes it again: uring_probe.c. Any
 * thread. An error leaves a sentence. */
int weir__uring_probe(const weir__io_options *options, char *reason, size_t size);

/* What of the kernel's features this ring has, as "single-issuer defer-taskrun ...". */
void weir__uring_features(const weir__uring *self, char *text, size_t size);

/* ---- the queues (uring_queue.c) ---- */

/*
 * A sqe in the queue for an operation of this handle, which is then in flight. It must be filled
 * in at once. NULL if there is no ring now, or the kernel takes nothing more: then what is wanted
 * is looked at again later.
 */
struct io_uring_sqe *weir__uring_start(weir__io_handle *handle, enum weir__uring_op op);

/* Has an operation end; its last completion comes as ever. */
void weir__uring_cancel(weir__io_handle *handle, enum weir__uring_op op);
int weir__uring_cancel_all(weir__uring *self);

/* The last resort: whatever is in flight writes nowhere any more, whether it completes or not.
 * False if that is not sure. */
bool weir__uring_cancel_sync(weir__uring *self);

/* Watches the eventfd, if that is not watched. */
void weir__uring_watch_wake(weir__uring *self);

/* Gives the kernel what was started. */
int weir__uring_submit(weir__uring *self);

/*
 * The same, and waits for a completion until the deadline (0 = does not). An error means that the
 * ring is of no use any more.
 */
int weir__uring_enter(weir__uring *self, int64_t deadline_ns);

/* The kernel has completions that it posts only when it is entered. */
bool weir__uring_kernel_has_completions(const weir__uring *self);

/* Of in_flight: the operation was cancelled. */
#define WEIR__URING_CANCELLED(op) (1u << ((op) + 8))

static inline bool weir__uring_is_in_flight(const weir__io_handle *handle, enum weir__uring_op op)
{
    return (handle->in_flight & (1u << op)) != 0;
}

/* An operation whose completions are an owner's reads. */
static inline bool weir__uring_is_read(enum weir__uring_op op)
{
    return op == WEIR__URING_POLL || op == WEIR__URING_ACCEPT || op == WEIR__URING_RECEIVE;
}

/* ---- completions (uring_completion.c) ---- */

typedef struct weir__uring_completion {
    weir__io_handle *handle; /* NULL = nobody's */
    enum weir__uring_op op;
    int result;
    unsigned flags;
} weir__uring_completion;

/* Takes note of the completions that have come: how many are a handle's. */
int weir__uring_count(weir__uring *self);

static inline bool weir__uring_has_counted(const weir__uring *self)
{
    return *self->ring.cq.khead != self->counted;
}

/* Sees to the next of those. False = there is none. */
bool weir__uring_complete_next(weir__uring *self);

/* ---- telling owners (uring_tell.c) ---- */

/* What has come of an operation that the ring does itself. */
struct weir__uring_event {
    weir__uring_event *next; /* of what is kept, a circle: handle->backend is the last one */
    weir__io_block block;    /* what was received, if result > 0 */
    int result;
    enum weir__uring_op op;
};

/* Tells the owner now or, if it may not be told now, later: then the handle keeps it. */
void weir__uring_deliver(weir__io_handle *handle, const weir__uring_event *what);

/* After each completion of a read: if it was the turn's last, the reading is complete. */
void weir__uring_finish_reading(weir__io_handle *handle);

/* Tells what is kept: in the next dispatch; now, as far as it is wanted. */
void weir__uring_defer_delivery(weir__io_handle *handle);
void weir__uring_deliver_queued(weir__io_handle *handle);

/* What is kept is given back. */
void weir__uring_discard_queued(weir__io_handle *handle);

/* The memory for what is kept goes. */
void weir__uring_free_spare(weir__uring *self);

/* ---- polls (uring_poll.c) ---- */

void weir__uring_poll_readable(weir__io_handle *handle);
void weir__uring_poll_for_owner(weir__io_handle *handle, unsigned events);
void weir__uring_poll_writable(weir__io_handle *handle);
void weir__uring_on_poll(weir__io_handle *handle, const weir__uring_completion *completion);
void weir__uring_on_writable(weir__io_handle *handle, const weir__uring_completion *completion);

/* ---- whether something is left in a Unix socket (uring_doubts.c) ---- */

/* Before a read that may be cut without saying so: true if what it leaves will be found. A handle
 * that leaves is forgotten. */
bool weir__uring_recheck(weir__io_handle *handle);
void weir__uring_cancel_recheck(weir__io_handle *handle);

/* Before a wait: has those read again that have something left; or puts it off, if it may, and then
 * nobody may sleep yet. */
void weir__uring_run_rechecks(weir__uring *self, bool may_defer);

static inline bool weir__uring_has_rechecks(const weir__uring *self)
{
    return self->rechecks.count > 0;
}

/* ---- receiving by a ring of buffers (uring_receive.c) ---- */

int weir__uring_buffers_open(weir__uring *self);

/* `in_use`: the kernel may still write there, so they are given up. */
void weir__uring_buffers_close(weir__uring *self, bool in_use);

/* At the end of a batch: a fresh block for each that has gone to an owner. */
void weir__uring_buffers_fill(weir__uring *self);

/* Whether a handle that receives should receive by the ring, or by poll. */
bool weir__uring_receives_by_ring(const weir__io_handle *handle);

void weir__uring_start_receive(weir__io_handle *handle);
void weir__uring_on_receive(weir__io_handle *handle, const weir__uring_completion *completion);

#endif
