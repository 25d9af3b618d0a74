/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a channel.
 *
 * Who may touch what: the loop - the thread of `executor` - everything; before the first
 * registration, when there is no executor, the thread that made the channel. Other threads read
 * what is atomic, and post calls (call.h).
 *
 * A channel is small because most of them are idle: what few channels need, or all of them seldom,
 * is allocated when it is needed (weir__channel_extra).
 */
#ifndef WEIR_CHANNEL_CHANNEL_H
#define WEIR_CHANNEL_CHANNEL_H

#include <assert.h>
#include <stdatomic.h>

#include <weir/channel.h>
#include <weir/timer.h>

#include "base/list.h"
#include "channel/config.h"
#include "channel/outbound.h"
#include "channel/pipeline.h"
#include "channel/transport.h"
#include "executor/executor.h"
#include "loop/loop.h"

typedef struct weir__channel_extra weir__channel_extra;
typedef struct weir__attribute weir__attribute;

/* How far a channel is from its end: the lowest bits of `state`. life.c has the transitions. */
enum {
    WEIR__OPEN,
    WEIR__SENDING,   /* close was asked for: sends what was written before; input is discarded */
    WEIR__LINGERING, /* the sending side is shut; waits for the peer's end of stream */
    WEIR__CLOSING,   /* the transport ends */
    WEIR__CLOSED,
    WEIR__PHASE = 7,

    /* Further bits of `state`: also read by other threads. */
    WEIR__IS_REGISTERED = 1 << 3,
    WEIR__IS_ACTIVE = 1 << 4,
    WEIR__PEER_ENDED = 1 << 5, /* its stream, in order */
};

/* Bits of `flags`: the loop's own. */
enum {
    WEIR__WAS_REGISTERED =
        1 << 0,                  /* it was registered once: handlers are told when they are added */
    WEIR__FIRED_ACTIVE = 1 << 1, /* `active` was fired, and `inactive` not yet */
    WEIR__AUTO_READING = 1 << 2, /* what `auto_read` was when the loop last looked */
    WEIR__READ_REQUESTED = 1 << 3,  /* reading was asked for: once, or for good with auto_read */
    WEIR__READING = 1 << 4,         /* the transport reads, */
    WEIR__READING_ONCE = 1 << 5,    /* one message */
    WEIR__INPUT_THROTTLED = 1 << 6, /* too much is under way to handlers elsewhere */
    WEIR__INPUT_SHUT = 1 << 7,      /* nothing more will come */
    WEIR__OUTPUT_CLOSED = 1 << 8,   /* writes are refused: shut_output waits for what was written */
    WEIR__OUTPUT_SHUT = 1 << 9,     /* the peer has been told so */
    WEIR__OUTPUT_FULL = 1 << 10,    /* the transport will tell weir__channel_writable */
    WEIR__OUTPUT_STOPPED = 1 << 11, /* the outbound queue has nothing for the transport any more */
    WEIR__FLUSHING = 1 << 12,       /* the transport's flush is on the stack */
    WEIR__FIRED_FAILURE = 1 << 13,  /* a failure that nobody waited for has been fired */
    WEIR__FIRED_DRAINING = 1 << 14, /* `draining` was fired */
    WEIR__DETACHING = 1 << 15,      /* on the way out of its loop */
    WEIR__REMOVING_HANDLERS = 1 << 16, /* closed, all have heard: handlers are being removed */
    WEIR__MEMBER = 1 << 17,            /* the loop holds a reference */
    WEIR__WARNED = 1 << 18,            /* of an error that reached the tail */
    WEIR__WATCHED = 1 << 19,           /* somebody asks when something was sent: progress.h */
    WEIR__INPUT_PAUSED = 1 << 20,      /* a handler does not want to be read for now */
    WEIR__ADMITTED = 1 << 21,          /* the next write is within the cap already */
    WEIR__RESETS = 1 << 22,            /* its end is a reset: data is lost */
    WEIR__ANSWERING = 1 << 23,         /* the message that was requested is being passed on */
};

/* Bits of `due`: what the channel's task has to do, in this order. */
enum {
    WEIR__DEFERRED_ACTIVE = 1 << 0,
    WEIR__DEFERRED_MARKS = 1 << 1, /* look at them */
    WEIR__DEFERRED_WRITABILITY = 1 << 2,
    WEIR__DEFERRED_FLUSH = 1 << 3,
    WEIR__DEFERRED_READING = 1 << 4,    /* auto_read has changed, or what is under way elsewhere */
    WEIR__DEFERRED_TRANSPORT = 1 << 5,  /* the transport's own */
    WEIR__DEFERRED_INACTIVE = 1 << 6,   /* disconnected */
    WEIR__DEFERRED_DEREGISTER = 1 << 7, /* asked for */
    WEIR__DEFERRED_ABORT = 1 << 8,      /* asked for, or there was no memory to pass something on */
    WEIR__DEFERRED_CLOSED = 1 << 9,     /* closed: inactive, unregistered, all handlers go */
    WEIR__DEFERRED_SWEEP = 1 << 10,     /* handlers were removed */
    WEIR__DEFERRED_REPORT = 1 << 11,    /* something that another thread asked for */
    WEIR__DEFERRED_WATCH = 1 << 12,     /* asked for by another thread */
    WEIR__DEFERRED_MOVE = 1 << 13,      /* to another loop, since the one that it left has ended */
    WEIR__DEFERRED_GIVE_UP = 1 << 14,   /* a handler elsewhere has held data for too long */
};

/*
 * What an idle channel needs comes first, what every read and write touches last, beside what the
 * transport puts behind it: at thousands of connections each line of the cache counts.
 */
struct weir_channel {
    weir_msg msg; /* a channel travels as a message when it is accepted: the count is its own */
    _Atomic(weir_executor *) executor; /* its memory is kept; NULL = never registered */
    weir__member member;               /* of the executor that it is registered on */
    uint64_t id;
    weir_channel *parent;
    weir_task deferred_task;
    weir_timer *timers; /* of its handlers that run on the loop */
    _Atomic(weir__attribute *) attributes;
    _Atomic(weir__channel_extra *) extra;
    _Atomic uint32_t deferred; /* who sets the first bit posts deferred_task */
    _Atomic bool auto_read;
    _Atomic bool skip_linger; /* set once */
    uint16_t stats;           /* of the transport: where its figures begin in an account */

    const weir__transport *transport;
    _Atomic(weir__config *) config; /* the loop's to change */
    _Atomic uint32_t state;         /* the loop's to change */
    uint32_t flags;
    weir_pipeline pipeline;
    weir__outbound outbound;
};

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

static inline bool weir__channel_has(const weir_channel *channel, uint32_t flags)
{
    return (channel->flags & flags) != 0;
}

static inline weir_executor *weir__channel_executor(const weir_channel *channel)
{
    /* Acquire: what the registering thread did to the channel comes before what the loop does. */
    return atomic_load_explicit(&channel->executor, memory_order_acquire);
}

static inline weir__config *weir__channel_config(const weir_channel *channel)
{
    /* Acquire: other threads may meet a config that was made after the channel. */
    return atomic_load_explicit(&channel->config, memory_order_acquire);
}

/* The loop's: it is the loop that changes them. */
static inline const weir_channel_options *weir__channel_options(const weir_channel *channel)
{
    return &weir__channel_config(channel)->options;
}

/* Whether this thread may touch everything: it is the loop's, or there is no loop yet. */
static inline bool weir__channel_in_loop(const weir_channel *channel)
{
    weir_executor *executor = weir__channel_executor(channel);

    return executor == NULL || weir__in_executor(executor);
}

static inline weir_ctx *weir__channel_head_tail(weir_channel *channel)
{
    return &channel->pipeline.head_tail;
}

/* ---- what few channels need (extra.c) ---- */

/* Promises that wait for one thing, in the order they came. */
typedef struct weir__promise_list {
    struct weir__promise_node *first;
} weir__promise_list;

/* Something that other threads may still be looking at: kept until the channel's memory goes. */
typedef struct weir__retired {
    struct weir__retired *next;
    weir_executor *executor; /* one of the two */
    weir__config *config;
} weir__retired;

/* What a channel's addresses were, when somebody asked. */
typedef struct weir__addresses {
    _Atomic(weir_address *) local;
    _Atomic(weir_address *) remote;
} weir__addresses;

struct weir__channel_extra {
    weir_channel *channel;

    /* The loop's. */
    weir_timer timer;          /* of connecting, then of closing */
    weir_promise *connecting;  /* retired; may be NULL all the same, */
    bool is_connecting;        /* if nobody waits */
    weir_address *destination; /* of the attempt; lent to the transport */
    weir__promise_list close_waiters;
    weir__promise_list deregister_waiters;
    weir__promise_list shutdown_waiters;
    struct weir__pending_bytes *pending_bytes; /* ctx.c: handlers that hold back bytes */
    bool has_own_config;                       /* nobody shares it */
    unsigned input_pauses;                     /* handlers that hold the input */
    int64_t progress_at;                       /* closing.c: when the peer last took something */
    int64_t unacknowledged;                    /* bytes, at the last sample */
    int close_err;                             /* why the close gave up; 0 = it did not */
    char *close_reason;                        /* the same in words; may be NULL all the same */

    /* Any thread's. */
    _Atomic(weir_promise *) closed; /* made when somebody asks for it */
    _Atomic(weir__retired *) retired;
    weir__addresses addresses;
    _Atomic(struct weir__move *) moves;       /* operation.c: pending, the last one first */
    _Atomic(struct weir__pin *) pins;         /* hop.c: which executor of a group handlers run on */
    _Atomic(struct weir__offload *) offloads; /* offload.c: changed under the channel's lock */
    _Atomic int64_t under_way;     /* bytes on their way to and from handlers elsewhere */
    weir__list memberships;        /* channel_group.c: under the channel's lock */
    _Atomic int posted_err;        /* why something that nobody waits for was not done */
    _Atomic int64_t bytes_sent_at; /* progress.c */
    _Atomic int64_t message_sent_at;
};

/* Any thread: makes it if need be; NULL if there is no memory. */
weir__channel_extra *weir__channel_extra_get(weir_channel *channel);
void weir__channel_extra_destroy(weir__channel_extra *extra); /* NULL is fine */

static inline weir__channel_extra *weir__channel_extra_if_any(const weir_channel *channel)
{
    /* Sequentially consistent for weir_channel_closed, too. */
    return atomic_load_explicit(&channel->extra, memory_order_seq_cst);
}

/* channel_group.c: it is closed, and a member of nothing from here on. */
void weir__channel_leave_groups(weir_channel *channel, weir__channel_extra *extra);

/* Any thread: takes what the channel has had until now. `kept` is from weir__alloc. */
void weir__channel_extra_retire(weir__channel_extra *extra, weir__retired *retired);

/* Adds a promise, which is kept; NULL is not added. Fails with -ENOMEM. */
int weir__promise_list_add(weir__promise_list *waiting, weir_promise *promise);

/* Completes all of them. */
void weir__promise_list_complete(weir__promise_list *waiting, int err, const char *detail);

/* ---- reports ---- */

#define WEIR__CHANNEL_LOG_NAME_SIZE (2 * WEIR_ADDRESS_TEXT_SIZE + 32)

/*
 * Any thread: the channel as the object of a log message, "97 (127.0.0.1:51234 -> 127.0.0.1:8007)":
 * its id, the end that has connected and the one that was connected to. An address that cannot be
 * found is "?". May make two system calls: only for messages that are really logged.
 */
const char *weir__channel_log_name(weir_channel *channel, char buffer[WEIR__CHANNEL_LOG_NAME_SIZE]);

/*
 * The end of an operation. Where nobody waits the first failure of a channel is fired as `error`,
 * unless it failed because the channel is closing.
 */
void weir__channel_report(weir_channel *channel, weir_promise *done, int err, const char *detail);

/*
 * Any thread: what was asked for will not come to the loop. Where nobody waits for it the loop
 * reports that; if the reason is want of memory it aborts the channel.
 */
void weir__channel_fail_posted(weir_channel *channel, weir_promise *done, int err);

/*
 * Whether an operation may begin with this promise: NULL, or one that is pending. One that was
 * cancelled is silently not performed; one that is complete is a mistake, and logged.
 */
bool weir__channel_may_begin(weir_channel *channel, weir_promise *done);

/* ---- the channel's own task (due.c) ---- */

/* Any thread: the bits will be seen to by the loop. Cannot fail. */
void weir__channel_defer(weir_channel *channel, uint32_t bits);

/*
 * Keeps the task from being posted until it is let go of, which posts it if something has become
 * due. False if it is under way: then there is nothing to let go of.
 */
bool weir__channel_pause_deferred(weir_channel *channel);
void weir__channel_resume_deferred(weir_channel *channel);

/* What they stand for, each in its file. */
void weir__channel_do_active(weir_channel *channel);
void weir__channel_do_inactive(weir_channel *channel);
void weir__channel_do_detach(weir_channel *channel);
void weir__channel_fire_closed(weir_channel *channel);
void weir__channel_do_moves(weir_channel *channel);

/* ---- the head's side of the operations; on the loop ---- */

/* life.c */
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
void weir__channel_do_shut_output(weir_channel *channel, weir_promise *done);

/* ---- between the files of this layer; on the loop ---- */

/* Sets and clears bits of `state`. */
void weir__channel_set_state(weir_channel *channel, uint32_t set, uint32_t clear);

/* auto_read, or what reading depends on, has changed. */
void weir__channel_update_auto_read(weir_channel *channel);
void weir__channel_update_reading(weir_channel *channel);

/* It comes to its first loop: auto_read is what it was switched to before. */
void weir__channel_init_auto_read(weir_channel *channel);

/* A handler wants nothing to be read for a while, whatever is asked for; and no longer. Holding
 * fails with -ENOMEM. */
int weir__channel_pause_input(weir_channel *channel);
void weir__channel_resume_input(weir_channel *channel);

/* It is active now, or on a loop again: reads if it is to read by itself. */
void weir__channel_start_reading(weir_channel *channel);

/* What was flushed goes to the transport, as far as it does not wait for room. */
void weir__channel_resume_sending(weir_channel *channel);

/* All that was written before a close has been sent. */
void weir__channel_sent_all(weir_channel *channel);

/* Ends the channel: the transport goes, and what is not sent fails with `err`. */
void weir__channel_begin_closing(weir_channel *channel, int err);

/* A connection attempt is given up: its promise fails, its timer stops. */
void weir__channel_stop_connecting(weir_channel *channel, int err);
bool weir__channel_is_connecting(const weir_channel *channel);

/* All handlers are gone: the loop lets go of the channel. */
void weir__channel_leave_loop(weir_channel *channel);

/* The group shuts down: listeners close; others hear `draining`, and close if nobody listens. */
void weir__channel_drain(weir_channel *channel);

/* Keeps others from asking the transport of a channel that is being closed. */
void weir__channel_lock(const weir_channel *channel);
void weir__channel_unlock(const weir_channel *channel);

#endif
