/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internals of a channel.
 *
 * Threads: the loop, which is the thread of `executor`, may access everything. Before the first
 * registration there is no executor, and the thread that created the channel may. Other threads
 * read atomics and post calls (mailbox.h).
 *
 * Most channels are idle, so the struct is small: fields that few channels need are in
 * weir__channel_extra, which is allocated on first use.
 */
#ifndef WEIR_CHANNEL_CHANNEL_H
#define WEIR_CHANNEL_CHANNEL_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include <weir/channel.h>
#include <weir/timer.h>

#include "base/list.h"
#include "channel/config.h"
#include "channel/outbound.h"
#include "channel/pipeline.h"
#include "channel/transport.h"
#include "executor/executor.h"
#include "executor/mailbox.h"
#include "loop/loop.h"

typedef struct weir__channel_extra weir__channel_extra;
typedef struct weir__attribute weir__attribute;

/*
 * A channel answers several questions, each with one state of an enum. The files that are named
 * have the transitions. Those that other threads read are in `state`, the others, which only the
 * loop uses, in `flags`: an enum has some bits there, so that one test looks at several of them.
 */

/* The phase: the lowest bits of `state`. lifecycle.c */
enum {
    WEIR__OPEN,
    WEIR__SENDING,     /* a close sends what was written before; input is discarded */
    WEIR__LINGERING,   /* sending is shut down; waits for the peer's end of stream */
    WEIR__CLOSING = 4, /* the transport closes; a bit that CLOSED has, too */
    WEIR__CLOSED,
    WEIR__PHASE = 7,
};

/* The registration, in `state`: lifecycle.c */
enum {
    WEIR__NEW = 0,                    /* never registered: `added` has not been called */
    WEIR__IS_REGISTERED = 1 << 3,     /* a bit that DETACHING has, also */
    WEIR__DETACHED = 2 << 3,          /* `unregistered` is being fired */
    WEIR__DETACHING = 3 << 3,         /* the transport is being detached */
    WEIR__BETWEEN_LOOPS = 4 << 3,     /* deregistered */
    WEIR__REMOVING_HANDLERS = 6 << 3, /* closed, all events are fired */
    WEIR__REGISTRATION = 7 << 3,
};

/* The activity, in `state`: what the handlers know of the connection. lifecycle.c */
enum {
    WEIR__IDLE = 0,
    WEIR__IS_ACTIVE = 1 << 6,    /* `active` will be fired; a bit that KNOWN_ACTIVE has, also */
    WEIR__WAS_ACTIVE = 2 << 6,   /* `inactive` will be fired */
    WEIR__KNOWN_ACTIVE = 3 << 6, /* `active` was fired */
    WEIR__ACTIVITY = 3 << 6,
};

/* The input, in `state`: reading.c */
enum {
    WEIR__INPUT_OPEN = 0,
    WEIR__INPUT_SHUT = 1 << 8, /* nothing more is received; a bit that PEER_ENDED has, also */
    WEIR__PEER_ENDED = 3 << 8, /* the peer has ended its stream in order */
    WEIR__INPUT = 3 << 8,
};

/* Bits of `state` that any thread writes. */
enum {
    WEIR__AUTO_READ = 1 << 10,
    WEIR__SKIPS_LINGER = 1 << 11, /* only ever set, as the next ones */
    WEIR__IS_WATCHED = 1 << 12,   /* the time of the last send is recorded: last_sent.h */
    WEIR__ABORTS = 1 << 13,       /* WEIR__DEFERRED_ABORT was set: nothing more is sent */

    WEIR__CAUSE_SHIFT = 16, /* the upper half, from CLOSING on: the error of the close */
};

/* What the transport reads, in `flags`: reading.c */
enum {
    WEIR__READING_STOPPED = 0,
    WEIR__READING_ALL = 1 << 0,
    WEIR__READING_ONE = 2 << 0, /* one message */
    WEIR__READING = 3 << 0,
};

/* What was requested to be read, in `flags`: reading.c */
enum {
    WEIR__REQUEST_NONE = 0,
    WEIR__REQUEST_ONE = 1 << 2,
    WEIR__REQUEST_ANSWERED = 2 << 2, /* the requested message is being passed on */
    WEIR__REQUEST_AUTO = 3 << 2,     /* the loop has seen auto_read; no request has arrived yet */
    WEIR__REQUEST_ALL = 4 << 2,
    WEIR__REQUEST = 7 << 2,
};

/* The output, in `flags`: writing.c */
enum {
    WEIR__OUTPUT_OPEN = 0,
    WEIR__OUTPUT_ENDING = 1 << 5, /* writes fail; shut_output waits for the queue */
    WEIR__OUTPUT_SHUT = 2 << 5,   /* the transport has shut down sending */
    WEIR__OUTPUT = 3 << 5,
};

/* Why the transport gets no flush, in `flags`: writing.c */
enum {
    WEIR__NOT_BUSY = 0,
    WEIR__BUSY_FLUSHING = 1 << 7, /* its flush is on the stack */
    WEIR__BUSY_FULL = 2 << 7,     /* weir__channel_writable will follow */
    WEIR__BUSY_LENT = 4 << 7,     /* the same, when the front of the queue has been sent */
    WEIR__BUSY = 7 << 7,
};

/* What becomes of the queue, in `flags`: writing.c */
enum {
    WEIR__QUEUE_GOES_ON = 0,
    WEIR__QUEUE_STOPPED = 1 << 10, /* the transport gets nothing more from it */
    WEIR__QUEUE_LOST = 3 << 10,    /* the same, and closing resets the connection: data is lost */
    WEIR__QUEUE = 3 << 10,
};

/* Other bits of `flags`. */
enum {
    WEIR__INPUT_THROTTLED = 1 << 16,   /* too many bytes are on their way over the border */
    WEIR__FIRED_FAILURE = 1 << 17,     /* a failure without a promise has fired `error` */
    WEIR__FIRED_DRAINING = 1 << 18,    /* `draining` was fired */
    WEIR__WARNED = 1 << 19,            /* an error that reached the tail was logged */
    WEIR__ADMITTED = 1 << 20,          /* the next write was checked against the cap before */
    WEIR__NOT_OPEN = 1 << 21,          /* the phase is not OPEN, nor will it be again */
    WEIR__UNFLUSHED_PROMISE = 1 << 22, /* an unflushed entry may have a promise */
    WEIR__CHECKS_BUFFERS = 1 << 23,    /* the transport has not `sends_buffers` */
    WEIR__CLOSES_BETWEEN = 1 << 24,    /* a handler behind the border closes it between two loops */
    WEIR__CLOSE_WAITS = 1 << 25,       /* for the next loop, which sends the rest first */
    WEIR__SENDS_AT_ONCE = 1 << 26,     /* a flush sends: not in a batch of reads, see writing.c */
};

/*
 * Flags of the mailbox (mailbox.h). Those that are set between two mails run in this order, except
 * for RESET. What the states say needs no flag of its own: CHECK looks at them, in its turn.
 */
enum {
    WEIR__DEFERRED_ACTIVE = 1 << 0, /* also of a channel that has been closed meanwhile */
    WEIR__DEFERRED_CHECK = 1 << 1,  /* the marks, posted_err, and, after TRANSPORT, `inactive` */
    WEIR__DEFERRED_WRITABILITY = 1 << 2,
    WEIR__DEFERRED_SENDING = 1 << 3, /* continues to send what was flushed */
    WEIR__DEFERRED_FLUSH = 1 << 4,   /* weir_channel_flush */
    WEIR__DEFERRED_READING =
        1 << 5, /* auto_read or the bytes on their way over the border have changed */
    WEIR__DEFERRED_REQUEST_READ = 1 << 6, /* weir_channel_request_read */
    WEIR__DEFERRED_TRANSPORT = 1 << 7,    /* calls the transport's `deferred` */
    WEIR__DEFERRED_DEREGISTER = 1 << 8,
    WEIR__DEFERRED_RESET = 1 << 9,  /* with ABORT: a stream is cut off */
    WEIR__DEFERRED_ABORT = 1 << 10, /* requested, or no memory to pass something on */
    WEIR__DEFERRED_CLOSE = 1 << 11, /* weir_channel_close without a promise */
    WEIR__DEFERRED_CLOSED =
        1 << 12, /* closed: fires inactive and unregistered, removes all handlers */
    WEIR__DEFERRED_SWEEP = 1 << 13,   /* frees removed handlers */
    WEIR__DEFERRED_OFFLOAD = 1 << 14, /* moves the border: pipeline.h */
};

/*
 * Fields of idle channels come first; fields of every read and write come last, next to those of
 * the transport. With thousands of connections each cache line counts.
 */
struct weir_channel {
    union {
        weir_msg msg; /* first: an accepted channel is a message, and has its reference count */
        struct {
            const void *msg_type;
            uint32_t msg_refs;
            uint32_t flags; /* of a message they are for its type */
        };
    };
    _Atomic(weir_executor *) executor; /* weakly retained; NULL = never registered */
    weir__member member;               /* of `executor`, while registered */
    uint64_t id;
    weir_channel *parent;
    weir__mailbox mailbox;
    weir_timer *timers; /* of the handlers on the loop */
    _Atomic(weir__attribute *) attributes;
    _Atomic(weir__channel_extra *) extra;

    const weir__transport *transport;
    _Atomic(weir__config *) config; /* written by the loop */
    _Atomic uint32_t state;         /* the phase, bits, and the error of the close */
    _Atomic uint32_t unwritable;    /* reasons: bit 0 the marks, the others the user's */
    weir_pipeline pipeline;
    weir__outbound outbound;
};

_Static_assert(offsetof(struct weir_channel, flags) == offsetof(weir_msg, flags),
               "the flags are those of the message");

/* ---- state ---- */

static inline uint32_t weir__channel_state(const weir_channel *channel)
{
    return atomic_load_explicit(&channel->state, memory_order_relaxed);
}

static inline unsigned weir__channel_phase(const weir_channel *channel)
{
    return weir__channel_state(channel) & WEIR__PHASE;
}

static inline bool weir__channel_is(const weir_channel *channel, uint32_t bits)
{
    return (weir__channel_state(channel) & bits) == bits;
}

/* The error with which unsent messages fail; 0 before a close. */
static inline int weir__channel_cause(const weir_channel *channel)
{
    return (int16_t)(weir__channel_state(channel) >> WEIR__CAUSE_SHIFT);
}

static inline bool weir__channel_has(const weir_channel *channel, uint32_t flags)
{
    return (channel->flags & flags) != 0;
}

/* True if the enum in `flags` that has the bits of `mask` is in this state. */
static inline bool weir__channel_is_at(const weir_channel *channel, uint32_t mask, uint32_t value)
{
    return (channel->flags & mask) == value;
}

static inline void weir__channel_go_to(weir_channel *channel, uint32_t mask, uint32_t value)
{
    assert((value & ~mask) == 0);
    channel->flags = (channel->flags & ~mask) | value;
}

/* The same for an enum in `state`. */
static inline bool weir__channel_state_is_at(const weir_channel *channel, uint32_t mask,
                                             uint32_t value)
{
    return (weir__channel_state(channel) & mask) == value;
}

/* True from the request of a deregistration until the last of its events. */
static inline bool weir__channel_is_detaching(const weir_channel *channel)
{
    uint32_t registration = weir__channel_state(channel) & WEIR__REGISTRATION;

    return registration == WEIR__DETACHING || registration == WEIR__DETACHED;
}

static inline weir_executor *weir__channel_executor(const weir_channel *channel)
{
    /* Acquire: the registering thread's writes to the channel happen before the loop's accesses. */
    return atomic_load_explicit(&channel->executor, memory_order_acquire);
}

static inline weir__config *weir__channel_config(const weir_channel *channel)
{
    /* Acquire: the config may be newer than the channel. */
    return atomic_load_explicit(&channel->config, memory_order_acquire);
}

/* On the loop, which is the only one to change them. */
static inline const weir_channel_options *weir__channel_options(const weir_channel *channel)
{
    return &weir__channel_config(channel)->options;
}

/* True if this thread may access everything: it is the loop, or there is no loop yet. */
static inline bool weir__channel_in_loop(const weir_channel *channel)
{
    weir_executor *executor = weir__channel_executor(channel);

    return executor == NULL || weir__in_executor(executor);
}

/*
 * The calls between the two are made for the channel, outside of its I/O: see weir__subject. No
 * effect on a thread without an executor.
 */
static inline void weir__channel_enter(weir_channel *channel, weir__subject *subject)
{
    *subject = (weir__subject){.channel = channel};
    if (weir__current != NULL)
        weir__executor_enter_subject(weir__current, subject);
}

static inline void weir__channel_leave(const weir__subject *subject)
{
    if (weir__current != NULL)
        weir__executor_leave_subject(weir__current, subject);
}

static inline weir_ctx *weir__channel_head_tail(weir_channel *channel)
{
    return &channel->pipeline.head_tail;
}

/* The loop: true while the transport delivers a batch of reads, whose end sends: writing.c. */
static inline bool weir__channel_is_in_batch(const weir_channel *channel)
{
    return !weir__channel_has(channel, WEIR__SENDS_AT_ONCE);
}

/* ---- the outbound queue (outbound.h) ---- */

/* Marks all entries as flushed and removes cancelled ones. */
static inline void weir__outbound_flush(weir_channel *channel)
{
    if (weir__channel_has(channel, WEIR__UNFLUSHED_PROMISE))
        weir__outbound_flush_promises(channel);
    else
        channel->outbound.unflushed = channel->outbound.end;
}

/* Any thread: true if there is no reason against writing. */
static inline bool weir__outbound_is_writable(const weir_channel *channel)
{
    return atomic_load_explicit(&channel->unwritable, memory_order_relaxed) == 0;
}

/* True if a transport may send something. */
static inline bool weir__outbound_is_sendable(const weir_channel *channel)
{
    return weir__outbound_has_flushed(&channel->outbound) &&
           !weir__channel_has(channel, WEIR__QUEUE);
}

/* The transport need not be waited for. A flush that is on the stack stays there. */
static inline void weir__channel_stop_waiting(weir_channel *channel)
{
    channel->flags &= ~(uint32_t)(WEIR__BUSY_FULL | WEIR__BUSY_LENT);
}

/*
 * A send that the channel has waited for has ended. Returns false if nothing follows from that:
 * then weir__channel_writable need not be called.
 */
static inline bool weir__channel_end_send(weir_channel *channel)
{
    weir__channel_stop_waiting(channel);
    return weir__outbound_has_flushed(&channel->outbound) ||
           weir__channel_has(channel, WEIR__NOT_OPEN | WEIR__OUTPUT);
}

/* The usual case of weir__channel_received, for transports that are stopped by read_stop alone. */
static inline void weir__channel_fast_received(weir_channel *channel, weir_msg *msg)
{
    if (weir__channel_has(channel, WEIR__NOT_OPEN | WEIR__READING_ONE)) {
        (void)weir__channel_received(channel, msg);
    } else {
        channel->flags &= ~(uint32_t)WEIR__SENDS_AT_ONCE;
        weir_fire_read(weir__channel_head_tail(channel), msg);
    }
}

/* ---- fields that few channels need (channel_extra.c) ---- */

/* Promises that wait for the same event, in order of arrival. */
typedef struct weir__promise_list {
    struct weir__promise_node *first;
} weir__promise_list;

/* A replaced object that other threads may still read; released with the channel. */
typedef struct weir__retired {
    struct weir__retired *next;
    weir_executor *executor; /* one of the two is set */
    weir__config *config;
} weir__retired;

/* Cached addresses. */
typedef struct weir__addresses {
    _Atomic(weir_address *) local;
    _Atomic(weir_address *) remote;
} weir__addresses;

struct weir__channel_extra {
    weir_channel *channel;

    /* The loop only. */
    weir_timer timer;         /* of the connection attempt, then of the close */
    weir_promise *connecting; /* retired; may be NULL all the same, */
    bool is_connecting;
    weir_address *destination; /* of the attempt; the transport reads it */
    weir__promise_list close_waiters;
    weir__promise_list deregister_waiters;
    weir__promise_list shutdown_waiters;
    struct weir__pending_bytes
        *pending_bytes;           /* ctx.c: bytes that handlers on the loop have queued */
    bool has_own_config;          /* the config is not shared */
    unsigned input_pauses;        /* the number of handlers that have paused reading */
    int64_t progress_at;          /* closing.c: time of the last progress */
    int64_t unacknowledged;       /* closing.c: bytes at the last sample */
    struct weir__border *borders; /* border.c: one for each group */
    int close_err;                /* the error of a close that gave up; 0 = none */
    char *close_reason;           /* its text; may be NULL */

    /* Any thread. */
    _Atomic(weir_promise *) closed; /* created on first use */
    _Atomic(weir__retired *) retired;
    weir__addresses addresses;
    _Atomic(struct weir__border *) border;    /* border.c: the last that was used */
    _Atomic(struct weir__offload *) offloads; /* offload.c: changed under the channel's lock */
    _Atomic int64_t under_way;                /* bytes on their way over the border */
    weir__list memberships;                   /* channel_group.c: guarded by the channel's lock */
    _Atomic int posted_err; /* the error of a posted call without a promise; negated when it need
                               not be reported, or has been */
    _Atomic int64_t bytes_sent_at; /* last_sent.c */
    _Atomic int64_t bytes_sent;    /* last_sent.c */
    _Atomic int64_t message_sent_at;
};

/* Any thread. Allocates it on first use; NULL without memory. */
weir__channel_extra *weir__channel_extra_get(weir_channel *channel);
void weir__channel_extra_destroy(weir__channel_extra *extra); /* NULL is ignored */

static inline weir__channel_extra *weir__channel_extra_if_any(const weir_channel *channel)
{
    /* Sequentially consistent for weir_channel_closed. */
    return atomic_load_explicit(&channel->extra, memory_order_seq_cst);
}

/* channel_group.c: the channel is closed and leaves all groups. */
void weir__channel_leave_groups(weir_channel *channel, weir__channel_extra *extra);

/* Any thread: keeps a replaced object until the channel is freed. `retired` is from weir__alloc. */
void weir__channel_extra_retire(weir__channel_extra *extra, weir__retired *retired);

/* Adds a promise and retains it. NULL is not added. Fails with -ENOMEM. */
int weir__promise_list_add(weir__promise_list *waiting, weir_promise *promise);

/* Completes and removes all. */
void weir__promise_list_complete(weir__promise_list *waiting, int err, const char *detail);

/* ---- reports ---- */

#define WEIR__CHANNEL_LOG_NAME_SIZE (2 * WEIR_ADDRESS_TEXT_SIZE + 32)

/*
 * Any thread: the channel as the object of a log message, "97 (127.0.0.1:51234 -> 127.0.0.1:8007)":
 * its id, the address that connected and the address that it connected to. An unknown address is
 * "?". May make two system calls: use it only for messages that are logged.
 */
const char *weir__channel_log_name(weir_channel *channel, char buffer[WEIR__CHANNEL_LOG_NAME_SIZE]);

/* The text of weir_channel_format. Unknown addresses are NULL. */
void weir__channel_format(uint64_t id, bool is_active, const weir_address *local,
                          const weir_address *remote, char *buffer, size_t size);

/*
 * Reports the result of an operation. Without a promise the first failure of a channel fires
 * `error`, unless the channel is closing.
 */
void weir__channel_report(weir_channel *channel, weir_promise *done, int err, const char *detail);

/*
 * Any thread: a posted operation did not reach the loop. Without a promise the loop reports the
 * error; for want of memory it aborts the channel.
 */
void weir__channel_fail_posted(weir_channel *channel, weir_promise *done, int err);

/*
 * Any thread: the same for a write. Without a promise its writer cannot know, and what it writes
 * next must not be sent, or the peer would get a stream with a gap: a stream is reset, unless it is
 * the write that was too much (WEIR_EFULL).
 */
void weir__channel_fail_posted_write(weir_channel *channel, weir_promise *done, int err);

/* Any thread: weir__channel_give_up on the loop. Needs no memory. */
void weir__channel_defer_give_up(weir_channel *channel, int err);

/* Any thread: an active channel is not taken by another loop, so it is cut off: a stream is reset.
 */
void weir__channel_defer_loss(weir_channel *channel, int err);

/* True if losing a write has to reset the channel. Any thread. */
bool weir__channel_resets_for_loss(const weir_channel *channel);

/*
 * True if an operation may start with this promise: NULL or pending. A cancelled promise skips the
 * operation silently; a completed one is a mistake of the caller, and logged.
 */
bool weir__channel_may_begin(weir_channel *channel, weir_promise *done);

/* ---- the mailbox (mailbox.h) ---- */

extern const weir__mailbox_type weir__channel_mailbox;

/* Any thread: sets flags of the mailbox. Cannot fail. No effect before the first registration. */
void weir__channel_defer(weir_channel *channel, uint32_t flags);

/* The work of some flags. */
void weir__channel_do_active(weir_channel *channel);
void weir__channel_do_inactive(weir_channel *channel);
void weir__channel_do_detach(weir_channel *channel);
void weir__channel_fire_closed(weir_channel *channel);

/* ---- operations that reached the head; on the loop ---- */

/* lifecycle.c */
int weir__channel_check_registration(const weir_channel *channel);
void weir__channel_do_register(weir_channel *channel, weir_promise *done);
void weir__channel_reject_registration(weir_channel *channel, weir_promise *done, int err);
void weir__channel_do_deregister(weir_channel *channel, weir_promise *done);
void weir__channel_do_close(weir_channel *channel, weir_promise *done);
void weir__channel_do_abort(weir_channel *channel, weir_promise *done, int err);

/* connect.c */
void weir__channel_do_bind(weir_channel *channel, const weir_address *local, weir_promise *done);
void weir__channel_do_connect(weir_channel *channel, const weir_address *remote,
                              const weir_address *local, weir_promise *done);
void weir__channel_do_disconnect(weir_channel *channel, weir_promise *done);

/* reading.c */
void weir__channel_do_request_read(weir_channel *channel);
void weir__channel_do_shut_input(weir_channel *channel, weir_promise *done);

/* writing.c */
void weir__channel_do_flush(weir_channel *channel);
void weir__channel_end_batch(weir_channel *channel); /* sends what was flushed; no batch: nothing */
void weir__channel_do_shut_output(weir_channel *channel, weir_promise *done);

/* ---- between the files of this layer; on the loop ---- */

/* Sets and clears bits of `state` that the loop writes: the state and the mask of an enum. */
void weir__channel_set_state(weir_channel *channel, uint32_t set, uint32_t clear);

/* To be called when auto_read, or a condition of reading, has changed. */
void weir__channel_update_auto_read(weir_channel *channel);
void weir__channel_update_reading(weir_channel *channel);

/* Copies auto_read on the first registration. */
void weir__channel_init_auto_read(weir_channel *channel);

/* Pauses reading for a handler; resumes it. Pausing fails with -ENOMEM. */
int weir__channel_pause_input(weir_channel *channel);
void weir__channel_resume_input(weir_channel *channel);

/* Starts auto-read when the channel becomes active or is registered again. */
void weir__channel_start_reading(weir_channel *channel);

/* Sends flushed messages, unless the transport waits for room. */
void weir__channel_resume_sending(weir_channel *channel);

/* Everything written before a close has been sent. */
void weir__channel_sent_all(weir_channel *channel);

/* Enters CLOSING: closes the transport. Unsent messages fail with `err`. */
void weir__channel_begin_closing(weir_channel *channel, int err);

/* The same for a channel that no loop takes: an active stream is cut off, which is a reset. */
void weir__channel_lose(weir_channel *channel, int err);

/* Abandons a connection attempt: fails its promise and stops its timer. */
void weir__channel_stop_connecting(weir_channel *channel, int err);
bool weir__channel_is_connecting(const weir_channel *channel);

/* The channel of a member of a loop; NULL if it is something else. */
weir_channel *weir__channel_of_member(weir__member *member);

/* True if a loop has a reference. Its executor's list has the member, unless it runs inline. */
static inline bool weir__channel_is_member(const weir_channel *channel)
{
    return channel->member.type != NULL;
}

/* All handlers are removed: leaves the loop for good, which releases its reference. */
void weir__channel_leave_loop(weir_channel *channel);

/* The group shuts down: closes listeners and channels without a `draining` handler, fires
 * `draining` on the others. */
void weir__channel_drain(weir_channel *channel);

/* Guards calls of the transport from other threads against the close. */
void weir__channel_lock(const weir_channel *channel);
void weir__channel_unlock(const weir_channel *channel);

#endif
