/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the io_uring backend, shared by its files:
 *
 *     uring.c             the backend: starts and cancels operations
 *     uring_ring.c        opens, closes and rebuilds the ring
 *     uring_setup.c       sets up a ring, explains why it cannot
 *     uring_probe.c       proves by a round trip that rings work
 *     uring_queue.c       submission
 *     uring_completion.c  completion
 *     uring_poll.c        polls
 *     uring_receive.c     receives by a buffer ring
 *     uring_send.c        sends
 *     uring_deliver.c     notifies owners, queues events that cannot be delivered yet
 *
 * The user_data of an operation is the address of its handle with the kind of the operation in the
 * low bits. A handle has at most one operation of each kind. It stays in handle->in_flight until
 * its last completion, and the handle stays with the backend until its last operation.
 */
#ifndef WEIR_LOOP_URING_H
#define WEIR_LOOP_URING_H

#include <assert.h>
#include <signal.h>
#include <string.h>
#include <sys/utsname.h>

#include "loop/io.h"
#include "loop/uring_abi.h"

enum weir__uring_op {
    WEIR__URING_POLL, /* readable, multishot; or the events that the owner polls for, one-shot */
    WEIR__URING_POLL_WRITE, /* writable, one-shot */
    WEIR__URING_CONNECT,    /* one-shot */
    WEIR__URING_RECEIVE,    /* multishot, by the buffer ring */
    WEIR__URING_SEND,       /* one-shot, completed by its submission */
    WEIR__URING_OP_COUNT,

    /* Without a handle. */
    WEIR__URING_WAKE = WEIR__URING_OP_COUNT, /* the eventfd */
    WEIR__URING_CANCEL,
    WEIR__URING_OP_MASK = 7,
};

/* How a handle reads: uring.c has the transitions. */
enum weir__uring_mode {
    WEIR__URING_BY_POLL, /* and is not known to bring much */
    WEIR__URING_BY_RING, /* the receive is armed: in flight, and not to be cancelled */
    WEIR__URING_LEAVING, /* nothing is armed; events may be queued, and a receive may still end */
    WEIR__URING_BULK,    /* has brought much: by poll, and it sends at once */
};

#define WEIR__URING_EXCLUSIVE (1u << 28) /* EPOLLEXCLUSIVE, for polls */
#define WEIR__URING_SMALL_MIN 8          /* small reads in a row, then by the ring */
#define WEIR__URING_BUFFERS_MAX 512      /* a power of two; together they fit into the L2 cache */

typedef struct weir__uring_buffers weir__uring_buffers;
typedef struct weir__uring_event weir__uring_event;

#define WEIR__URING_VECTOR_MAX 8
#define WEIR__URING_VECTORS_MAX 64

/* Vectors of sends that have not been submitted yet. */
struct weir__uring_vector {
    struct msghdr header;
    struct iovec parts[WEIR__URING_VECTOR_MAX];
};

struct weir__uring_vectors {
    struct weir__uring_vector all[WEIR__URING_VECTORS_MAX];
    unsigned count;
};

typedef struct weir__uring {
    weir__io io;
    struct io_uring ring;
    bool is_open;
    bool is_wake_watched;
    bool is_draining;     /* during a rebuild: start nothing, notify nobody */
    bool needs_rearm;     /* a submission failed: rearm all handles */
    unsigned enter_flags; /* supported by the kernel */
    unsigned counted;     /* tail of the completion queue as of the last `wait` */
    uint32_t turn;        /* number of turns; never 0 */
    int64_t row_since_ns; /* reads of a handle in a row: after the first; 0 = not yet */
    unsigned turn_events; /* events of this turn */
    weir__uring_event *spare;
    weir__uring_buffers *buffers; /* NULL = receive by poll only */
    struct weir__uring_vectors vectors;
} weir__uring;

static inline weir__uring *weir__uring_of(weir__io *io)
{
    return WEIR_CONTAINER_OF(io, weir__uring, io);
}

/* ---- seams for tests: set them before there is a ring ---- */

/*
 * Calls of liburing and of the system. All but the last two return a negative errno and do not set
 * errno. The simulator (sim/uring.c) replaces all of them.
 */
typedef struct weir__uring_calls {
    int (*setup)(unsigned entries, struct io_uring *ring, struct io_uring_params *params);
    void (*exit)(struct io_uring *ring);
    int (*enable)(struct io_uring *ring);
    int (*enter)(unsigned ring, unsigned submit, unsigned wait, unsigned flags, sigset_t *argument,
                 size_t size);
    int (*register_buffers)(struct io_uring *ring, struct io_uring_buf_reg *buffers,
                            unsigned flags);
    int (*limit_workers)(struct io_uring *ring, unsigned *workers);
    int (*cancel_sync)(struct io_uring *ring, struct io_uring_sync_cancel_reg *what);
    int (*uname)(struct utsname *ret_kernel); /* uname(2) */
    int (*disabled)(void);                    /* kernel.io_uring_disabled */
} weir__uring_calls;

extern weir__uring_calls weir__uring_system;

/*
 * Called for every completion, which it may change. An operation whose F_MORE is cleared stays in
 * the kernel and keeps completing: set the user_data of later completions to WEIR__URING_CANCEL.
 */
extern void (*weir__uring_fault)(struct io_uring_cqe *completion);

/* A turn with fewer events sends by plain calls (uring_send.c). */
extern unsigned weir__uring_lend_min;

/* The same number for a new handle; not more. */
extern uint8_t weir__uring_fresh_reads;

/* ---- handles (uring.c) ---- */

/* Starts what is wanted of a handle; or of all handles, and cancels the rest. */
void weir__uring_arm(weir__io_handle *handle);
void weir__uring_rearm_all(weir__uring *self);

/* Fails the handle. */
void weir__uring_fail(weir__io_handle *handle, int err);

/* Finishes the detach of a handle if it has no operation in flight and no queued event. */
void weir__uring_try_detach_done(weir__io_handle *handle);

/*
 * The same if it is being detached. Called after each completion, unless the handle was attached
 * before the owner was notified: then weir__io_detach knows what is in flight.
 */
static inline void weir__uring_check_detach(weir__io_handle *handle)
{
    if (handle->state >= WEIR__IO_DETACHING)
        weir__uring_try_detach_done(handle);
}

/* ---- the ring (uring_ring.c): slots of weir__io_type ---- */

int weir__uring_open(weir__io *io, char *reason, size_t size);
int weir__uring_begin(weir__io *io);
void weir__uring_close(weir__io *io);
int weir__uring_rebuild(weir__io *io);

/* ---- getting a ring (uring_setup.c) ---- */

/* Sets up a disabled ring. On an error writes a reason. */
int weir__uring_setup(weir__uring *self, char *reason, size_t size);

/* The same with queues of minimum size. */
int weir__uring_setup_small(weir__uring *self, char *reason, size_t size);

/* Writes why a system call of io_uring failed, and what to do about it. */
void weir__uring_explain(const char *call, int err, char *reason, size_t size);

/*
 * Creates, enables and uses a ring like the loop's, and closes it again: uring_probe.c. Any thread.
 * On an error writes a reason.
 */
int weir__uring_probe(const weir__io_options *options, char *reason, size_t size);

/* Writes the kernel features of this ring, such as "single-issuer defer-taskrun". */
void weir__uring_features(const weir__uring *self, char *text, size_t size);

/* ---- the queues (uring_queue.c) ---- */

/*
 * As io_uring_get_sqe, for a ring without SQPOLL and large sqes. Clears the sqe, which still has
 * the fields of an earlier operation: the io_uring_prep functions of liburing 2.3 set all that the
 * kernel reads, later ones only their own.
 */
static inline struct io_uring_sqe *weir__uring_next_sqe(weir__uring *self)
{
    struct io_uring_sq *queue = &self->ring.sq;
    unsigned tail = queue->sqe_tail;
    struct io_uring_sqe *sqe;

    if (tail - IO_URING_READ_ONCE(*queue->khead) >= queue->ring_entries)
        return NULL;
    queue->sqe_tail = tail + 1;
    sqe = &queue->sqes[tail & queue->ring_mask];
    memset(sqe, 0, sizeof(*sqe));
    return sqe;
}

/* Submits a queue that is full. Returns an sqe; or NULL, and all handles are rearmed later. */
struct io_uring_sqe *weir__uring_make_room(weir__uring *self);

/*
 * Returns an sqe for an operation of this handle, which is in flight from then on. The caller must
 * fill it in at once. NULL if there is no ring now or the kernel takes no more: then all handles
 * are rearmed later.
 */
static inline struct io_uring_sqe *weir__uring_start(weir__io_handle *handle,
                                                     enum weir__uring_op op)
{
    weir__uring *self = weir__uring_of(handle->io);
    struct io_uring_sqe *sqe = self->is_open ? weir__uring_next_sqe(self) : NULL;

    if (sqe == NULL && (sqe = weir__uring_make_room(self)) == NULL)
        return NULL;
    handle->in_flight |= (uint16_t)(1u << op);
    sqe->user_data = (uintptr_t)handle | (uint64_t)op;
    return sqe;
}

/* Cancels an operation; its last completion still arrives. */
void weir__uring_cancel(weir__io_handle *handle, enum weir__uring_op op);
int weir__uring_cancel_all(weir__uring *self);

/*
 * The last resort: after it no operation in flight writes to memory, whether it completes or not.
 * False if that is not certain.
 */
bool weir__uring_cancel_sync(weir__uring *self);

/* Watches the eventfd, unless it is watched. */
void weir__uring_watch_wake(weir__uring *self);

/* Submits started operations. */
int weir__uring_submit(weir__uring *self);

/*
 * The same, and waits for a completion until the deadline (0 = does not wait). After an error the
 * ring must be rebuilt.
 */
int weir__uring_enter(weir__uring *self, int64_t deadline_ns);

/* The kernel has completions that it posts only when it is entered. */
bool weir__uring_kernel_has_completions(const weir__uring *self);

/* In in_flight: the operation was cancelled. */
#define WEIR__URING_CANCELLED(op) (1u << ((op) + 8))

static inline bool weir__uring_is_in_flight(const weir__io_handle *handle, enum weir__uring_op op)
{
    return (handle->in_flight & (1u << op)) != 0;
}

static inline bool weir__uring_is_cancelled(const weir__io_handle *handle, enum weir__uring_op op)
{
    return (handle->in_flight & WEIR__URING_CANCELLED(op)) != 0;
}

/* What the table in uring.c says. */
static inline void weir__uring_check_mode(const weir__io_handle *handle)
{
    bool receives = weir__uring_is_in_flight(handle, WEIR__URING_RECEIVE);
    bool polls = weir__uring_is_in_flight(handle, WEIR__URING_POLL);

    (void)receives;
    (void)polls;
    if (handle->uring_mode == WEIR__URING_BY_RING)
        assert(receives && !polls && !weir__uring_is_cancelled(handle, WEIR__URING_RECEIVE));
    else if (handle->uring_mode != WEIR__URING_LEAVING)
        assert(!receives);
    assert(handle->undelivered == NULL || handle->uring_mode == WEIR__URING_LEAVING);
}

/* This was the last completion of an operation. */
static inline void weir__uring_end(weir__io_handle *handle, enum weir__uring_op op)
{
    handle->in_flight &= (uint16_t) ~(1u << op | WEIR__URING_CANCELLED(op));
}

/* Operations whose completions are reads of an owner. */
static inline bool weir__uring_is_read(enum weir__uring_op op)
{
    return op == WEIR__URING_POLL || op == WEIR__URING_RECEIVE;
}

/* ---- completions (uring_completion.c) ---- */

/* Counts new completions. Returns their number; 0 for wake-ups alone. */
int weir__uring_count(weir__uring *self);

static inline bool weir__uring_has_counted(const weir__uring *self)
{
    return *self->ring.cq.khead != self->counted;
}

/* Processes these completions until the time is up. True if some are left. */
bool weir__uring_complete(weir__uring *self, int64_t until_ns);

/* True if the next completion is of this operation, too. */
static inline bool weir__uring_is_next(const weir__uring *self, const weir__io_handle *handle,
                                       enum weir__uring_op op)
{
    unsigned head = *self->ring.cq.khead;

    return head != self->counted && self->ring.cq.cqes[head & self->ring.cq.ring_mask].user_data ==
                                        ((uintptr_t)handle | (uint64_t)op);
}

/* ---- delivering events (uring_deliver.c) ---- */

/* The result of an operation done by the ring. */
struct weir__uring_event {
    weir__uring_event
        *next; /* circular list of undelivered events; handle->undelivered is the last one */
    weir__io_block block; /* the data, if result > 0 */
    int result;
    uint8_t op;
    uint16_t after_cancel; /* reads queued since the receive was cancelled, up to this one */
};

/*
 * The most reads that are queued after the kernel has taken the cancellation: each one with data is
 * in a buffer of its own, and one may be the end of the stream.
 */
#define WEIR__URING_UNDELIVERED_MAX (WEIR__URING_BUFFERS_MAX + 1)

/* Notifies the owner, or queues the event if the owner may not be notified now. */
void weir__uring_deliver(weir__io_handle *handle, const weir__uring_event *what);

/* Called before a handle reads: the count of `delivered` begins anew with each turn. */
static inline void weir__uring_enter_turn(weir__io_handle *handle, const weir__uring *self)
{
    if (handle->slot == self->turn)
        return;
    handle->slot = self->turn;
    handle->delivered = 0;
    handle->full_reads = 0;
}

/* Called before the next of several reads in a row: if those after the first took long, the handle
 * has had its share of the turn, as has_had_its_share in readiness.c says. */
void weir__uring_limit_row(weir__io_handle *handle);

/* Called after the last of several reads. */
void weir__uring_finish_reading(weir__io_handle *handle);

/* Delivers queued events: in the next dispatch; or now, as far as they are wanted. */
void weir__uring_defer_delivery(weir__io_handle *handle);
void weir__uring_deliver_queued(weir__io_handle *handle);

/* Discards queued events and frees their blocks. */
void weir__uring_discard_queued(weir__io_handle *handle);

/* Frees the memory of unused events. */
void weir__uring_free_spare(weir__uring *self);

/* ---- polls (uring_poll.c) ---- */

void weir__uring_poll_readable(weir__io_handle *handle);
void weir__uring_poll_for_owner(weir__io_handle *handle, unsigned events);
void weir__uring_poll_writable(weir__io_handle *handle);
void weir__uring_on_poll(weir__io_handle *handle, int result, unsigned flags);
void weir__uring_on_writable(weir__io_handle *handle, int result, unsigned flags);

/* ---- sending (uring_send.c) ---- */

ssize_t weir__uring_send(weir__io_handle *handle, const struct iovec *vector, size_t count);
void weir__uring_on_send(weir__io_handle *handle, int result);

/* ---- receiving by a buffer ring (uring_receive.c) ---- */

int weir__uring_buffers_open(weir__uring *self);

/* `in_use`: the kernel may still write to the buffers, so they are not freed. */
void weir__uring_buffers_close(weir__uring *self, bool in_use);

/* At the end of a batch: replaces the blocks that went to owners. */
void weir__uring_buffers_fill(weir__uring *self);

/* True if a handle should receive by the buffer ring, false for poll. */
bool weir__uring_receives_by_ring(const weir__io_handle *handle);

/* Cancels the receive, if there is one: from here on nothing is armed. */
void weir__uring_leave_ring(weir__io_handle *handle);

/* Ends LEAVING when the receive has ended and all of it has been delivered. */
void weir__uring_settle(weir__io_handle *handle);

void weir__uring_start_receive(weir__io_handle *handle);
void weir__uring_on_receive(weir__io_handle *handle, int result, unsigned flags);

#endif
