/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O of a loop: operations of a backend on handles, and callbacks to the owners of the
 * handles.
 *
 *      owner (a channel, a watch)             backend (epoll, uring, poll)
 *      weir__io_receive_start(handle)  --->   the kernel
 *      owner->received(handle, ...)    <---   weir__io_wait, weir__io_dispatch
 *
 * The interface is completion-based: the owner starts an operation and is called with its result.
 * Backends that report only readiness make the system call themselves when the time comes
 * (readiness.c).
 *
 * Rules:
 *   - Thread: the loop's, unless stated otherwise.
 *   - The owner is called from weir__io_dispatch only, never from inside one of its own calls. In a
 *     callback it may call any function declared here, for its own handle and for others.
 *   - Starting what is started and stopping what is stopped has no effect.
 *   - After weir__io_close, or after `failed`, the only callback is `detached`. Until then the
 *     backend uses the handle's memory.
 *   - Descriptors are O_NONBLOCK.
 *
 * Options, accounting, lifecycle and promises belong to the owner.
 */
#ifndef WEIR_LOOP_IO_H
#define WEIR_LOOP_IO_H

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <weir/base.h>

#include "base/list.h"

#define WEIR__IO_READS_MAX 16              /* default number of reads of a handle per turn */
#define WEIR__IO_BYTES_MAX (128 * 1024)    /* a stream that got so much in a turn gets no more, */
#define WEIR__IO_READING_NS weir_us(500)   /* nor a handle whose further reads took so long */
#define WEIR__IO_WINDOW (128 * 1024)       /* maximum size of a read, unless the owner sets less */
#define WEIR__IO_SMALL 4096                /* a read below this size counts as small */
#define WEIR__IO_DATAGRAM_WINDOW 2048      /* the same for one datagram */
#define WEIR__IO_RETRY_NS weir_ms(10)      /* first delay of a receive without memory */
#define WEIR__IO_RETRY_MAX_NS weir_ms(160) /* maximum of that delay, which doubles */
#define WEIR__IO_CONTROL_SIZE 128          /* ancillary data of a datagram */
#define WEIR__IO_FD_PASSING_SIZE                                    \
    1280 /* passed descriptors (up to 253) and other ancillary data \
          */
#define WEIR__IO_CLOCK_INTERVAL \
    32 /* events, or further reads of one handle, between two clock checks */

/*
 * Result of weir__io_send: the backend sends later. The memory is lent until `sent`, which follows
 * in a later dispatch with the number of bytes sent, or an error.
 */
#define WEIR__IO_LENT (-EINPROGRESS)

typedef struct weir__io weir__io;
typedef struct weir__io_handle weir__io_handle;
typedef struct weir__io_type weir__io_type;

/* ---- memory to receive into ---- */

typedef struct weir__io_block {
    void *base;
    size_t capacity; /* at least the requested size */
    void *cookie;    /* the allocator's own */
} weir__io_block;

/* Allocates receive blocks. Both are called on the loop's thread; `free` also at the loop's end. */
typedef struct weir__io_memory {
    /*
     * On -ENOMEM the data stays in the socket and is retried within WEIR__IO_RETRY_MAX_NS. End of
     * stream and errors are reported without memory.
     */
    int (*alloc)(void *arg, size_t size, weir__io_block *ret_block);
    void (*free)(void *arg, const weir__io_block *block);
    void *arg;
} weir__io_memory;

/* ---- callbacks to the owner ---- */

/* One of a batch of datagrams. The owner owns the block; the rest is valid during the call. */
typedef struct weir__io_datagram {
    weir__io_block block;
    size_t length;
    const struct msghdr *header; /* msg_name, msg_control, msg_flags (MSG_TRUNC) */
} weir__io_datagram;

/* Callbacks that can never be called may be NULL. */
typedef struct weir__io_owner {
    /*
     * Returns the channel of the handle, for reports. Called by a signal handler on the loop's
     * thread. NULL = the handle is not that of a channel.
     */
    struct weir_channel *(*channel)(weir__io_handle *handle);

    /*
     * A connection was accepted: the owner owns the descriptor (O_NONBLOCK, O_CLOEXEC). `peer` is
     * NULL if the backend does not know the address. A negative descriptor is an error, such as
     * -EMFILE: accepting has stopped. Connections that were aborted meanwhile are not reported.
     */
    void (*accepted)(weir__io_handle *handle, int descriptor, const struct sockaddr *peer,
                     socklen_t peer_length);

    /* The connection is established, or `err`. */
    void (*connected)(weir__io_handle *handle, int err);

    /* `length` > 0 bytes were received. The owner owns the block and frees it. */
    void (*received)(weir__io_handle *handle, const weir__io_block *block, size_t length);

    /*
     * Up to WEIR__IO_READS_MAX datagrams were received, in order. A length of 0 is an empty
     * datagram.
     */
    void (*received_datagrams)(weir__io_handle *handle, const weir__io_datagram *datagrams,
                               size_t count);

    /*
     * End of stream (0) or an error. Receiving has stopped. After an error reported by a datagram
     * socket, such as -ECONNREFUSED, it may be started again.
     */
    void (*receive_ended)(weir__io_handle *handle, int err);

    /*
     * Called after the last accept or receive of this handle in this turn. A ring may call it
     * several times in a turn, each time after some.
     */
    void (*read_complete)(weir__io_handle *handle);

    /*
     * Follows a partial send, or one that was WEIR__IO_LENT: `count` >= 0 more bytes of it were
     * sent, and the lent memory is the owner's again, which sends the rest. 0 means only that the
     * socket may be writable. Negative: an error.
     */
    void (*sent)(weir__io_handle *handle, ssize_t count);

    /* The descriptor is ready: the requested events, POLLERR and POLLHUP. */
    void (*polled)(weir__io_handle *handle, unsigned events);

    /*
     * The backend lost the handle: WEIR_EREBUILT, or the kernel's error for its descriptor.
     * Operations in flight end without a callback. The owner must close the handle.
     */
    void (*failed)(weir__io_handle *handle, int err);

    /* Called last: the handle is not attached any more, and its memory is the owner's. */
    void (*detached)(weir__io_handle *handle);
} weir__io_owner;

/* ---- the handle: a member of what its owner keeps per descriptor ---- */

/* Operations that the owner has started: bits of `wants`. */
enum {
    WEIR__IO_ACCEPT = 1 << 0,
    WEIR__IO_CONNECT = 1 << 1,
    WEIR__IO_RECEIVE = 1 << 2,
    WEIR__IO_ONCE = 1 << 3, /* with RECEIVE: stop after one `received` */
    WEIR__IO_SEND = 1 << 4, /* a send was partial */
    WEIR__IO_POLL = 1 << 5,
    WEIR__IO_LENDS = 1 << 6, /* memory is lent to a send */
};

/* Work for the next dispatch: bits of `pending`. */
enum {
    WEIR__IO_PENDING_CONNECT = 1 << 0,  /* `connected` with `result` */
    WEIR__IO_PENDING_READ = 1 << 1,     /* there may be more to read, and no event will report it */
    WEIR__IO_PENDING_WRITE = 1 << 2,    /* the same for writing */
    WEIR__IO_PENDING_FAILED = 1 << 3,   /* `failed` with `result` */
    WEIR__IO_PENDING_DETACHED = 1 << 4, /* `detached` */
};

/* State of a handle, on its way to `detached`. */
enum {
    WEIR__IO_ATTACHED,
    WEIR__IO_FAILED,           /* may only be closed */
    WEIR__IO_DETACHING,        /* data that the kernel has received is still delivered */
    WEIR__IO_DETACHING_FAILED, /* the same after a failure: no callback but `detached` */
    WEIR__IO_CLOSING,          /* the same, and the descriptor will be closed */
};

struct weir__io_handle {
    const weir__io_owner *owner;
    weir__io *io; /* NULL = not attached */
    weir__list link;
    weir__list pending_link;
    int descriptor;
    uint32_t window; /* size of a read, set by the owner; 0 = default */
    int32_t result;
    uint8_t wants;
    uint8_t pending;
    uint8_t state;
    bool datagrams : 1; /* receives datagrams, not a stream */
    bool unread : 1;    /* edge-triggered: unread data may be there, and no event will report it */
    bool unix_socket : 1;  /* a read may end early at a passed descriptor, so a short read does not
                              mean that the socket is empty */
    bool empty_is_end : 1; /* of a connection that receives datagrams: an empty one is the end of
                              the stream; datagrams are received one at a time, so that the owner
                              may stop after each */
    bool receive_fds : 1;  /* of a Unix socket that receives datagrams: accept passed descriptors
                              (close-on-exec); other sockets discard them */
    bool exact_window : 1; /* no read may exceed the window; otherwise up to WEIR__IO_SMALL */
    bool last_send : 1;    /* the current send is the last: the end of the stream follows at once */
    bool edge : 1;         /* of the backend's type, but for listeners: an event is reported once */
    uint8_t batch : 6;     /* private to the backend; datagrams: size of the next batch */
    bool expects_one : 1;  /* private to the backend: the last turn found one connection */
    bool exclusive : 1;    /* a listening socket that several loops accept from: a connection wakes
                              one that waits; set by the owner before it attaches the handle */
    uint8_t reads; /* maximum of accepts, receives or datagrams per turn; the owner may set it */
    uint16_t poll_events; /* events that the owner polls for */

    /* Private to the backend. */
    uint16_t armed;     /* events that the kernel watches for */
    uint16_t in_flight; /* uring: operations in the ring, one bit each */
    uint32_t slot; /* poll: index of its pollfd; epoll: 1 = registered; uring: the turn in which it
                      read last */
    uint8_t delivered;         /* uring: accepts and receives delivered in that turn */
    uint8_t small_reads;       /* consecutive small reads, saturating at 255 */
    uint8_t full_reads;        /* uring: reads of that turn that filled a buffer of the ring */
    uint8_t uring_mode : 2;    /* uring: how it reads, enum weir__uring_mode */
    bool uring_is_reading : 1; /* uring: something was received: read_complete follows */
    uint8_t uring_polls : 2;   /* uring: one-shot polls for data so far, see uring_poll.c */
    bool uring_edges : 1; /* uring: one-shot polls complete without a wanted event: use multishot */
    void *undelivered;    /* uring: queue of events not delivered yet */
};

_Static_assert(sizeof(void *) != 8 || sizeof(weir__io_handle) <= 88, "there may be a million");

/* ---- the backend ---- */

/* Counters: written by the loop's thread, read by any. */
typedef struct weir__io_stats {
    _Atomic uint64_t waits;    /* epoll_wait, poll, io_uring_enter, with and without blocking */
    _Atomic uint64_t controls; /* epoll_ctl */
    _Atomic uint64_t accepts;
    _Atomic uint64_t connects;
    _Atomic uint64_t receives;
    _Atomic uint64_t sends;
    _Atomic uint64_t closes;
    _Atomic uint64_t events;
    _Atomic uint64_t handles; /* attached now */
} weir__io_stats;

typedef struct weir__io_options {
    const char *name; /* of the loop, for the log; must outlive the backend */
    bool is_embedded; /* another main loop sleeps on its `descriptor` */
} weir__io_options;

struct weir__io_type {
    const char *name;
    size_t size;    /* of the backend struct, whose first member is the weir__io */
    bool edge;      /* edge-triggered: an event is reported once, and unread data must be remembered
                       (readiness.c) */
    bool wakes_one; /* can wait for `exclusive` handles; others would wake every loop */

    /*
     * Any thread, before `begin`. Creates the kernel object but starts nothing. On an error, writes
     * to `reason` what was refused and what to do about it. Undone by `close`.
     */
    int (*open)(weir__io *io, char *reason, size_t size);

    /* Called on the thread that will run the loop. */
    int (*begin)(weir__io *io);

    /*
     * Closes the kernel object and frees memory. No handle is attached. Does not wait: operations
     * still in flight for abandoned handles never complete.
     */
    void (*close)(weir__io *io);

    /*
     * Waits for an event, the deadline by CLOCK_MONOTONIC (0: does not block) or weir__io_wake, and
     * keeps the events for `dispatch`. Returns the number of events without the wake-up, which sets
     * io->woken, or an error after which the backend must be rebuilt. EINTR is not an error:
     * returns 0 and sets io->interrupted.
     */
    int (*wait)(weir__io *io, int64_t deadline_ns);

    /* True if `wait` would find something, at less cost than a system call. NULL = call `wait`. */
    bool (*peek)(weir__io *io);

    /*
     * Submits started operations without waiting, before a manual loop sleeps. NULL = not needed.
     */
    void (*flush)(weir__io *io);

    /*
     * A descriptor that is readable when `wait` would find something; changes with a rebuild. NULL
     * = there is none.
     */
    int (*descriptor)(weir__io *io);

    /*
     * If `descriptor` is NULL: all descriptors that `wait` polls. Writes the first `count` and
     * returns the number of all.
     */
    size_t (*pollfds)(weir__io *io, struct pollfd *ret_entries, size_t count);

    /*
     * Delivers events to owners. Checks the clock now and then and stops at `until_ns`. True if
     * events are left for the next call. weir__io_dispatch processes pending handles before it.
     */
    bool (*dispatch)(weir__io *io, int64_t until_ns);

    /*
     * Replaces the kernel object. Started operations stay started. Handles with operations in
     * flight that do not end get `failed` in the next dispatch. After an error there is no kernel
     * object: only `rebuild` and `close` may be called, but handles may be attached and detached.
     */
    int (*rebuild)(weir__io *io);

    /* Reserves space for a handle. May fail with -ENOMEM. NULL = not needed. */
    int (*attach)(weir__io_handle *handle);

    /*
     * Cancels the operations of a handle that is DETACHING or CLOSING. True if none is left in
     * flight; otherwise the backend calls weir__io_detach_done later.
     */
    bool (*detach)(weir__io_handle *handle);

    /*
     * For readiness.c: sets the kernel's interest to weir__readiness_wanted. On failure calls
     * weir__io_fail.
     */
    void (*arm)(weir__io_handle *handle);

    /* PENDING_READ or PENDING_WRITE of an attached handle. NULL = weir__readiness_pending. */
    void (*dispatch_pending)(weir__io_handle *handle, unsigned pending);

    /* The operations; see the functions of the same name below. */
    void (*accept_start)(weir__io_handle *handle);
    void (*accept_stop)(weir__io_handle *handle);
    void (*connect)(weir__io_handle *handle, const struct sockaddr *address, socklen_t length);
    void (*receive_start)(weir__io_handle *handle, bool once);
    void (*receive_stop)(weir__io_handle *handle);
    ssize_t (*send)(weir__io_handle *handle, const struct iovec *vector, size_t count);
    ssize_t (*send_datagrams)(weir__io_handle *handle, struct mmsghdr *messages, size_t count);
    ssize_t (*send_file)(weir__io_handle *handle, int file, off_t offset, size_t count);
    void (*poll_start)(weir__io_handle *handle, unsigned events);
    void (*poll_stop)(weir__io_handle *handle);
};

struct weir__io {
    const weir__io_type *type;
    weir__io_options options;
    weir__io_memory memory;
    weir__list handles;
    weir__list pending;       /* handles with bits in `pending` */
    weir__list parked;        /* handles with PENDING_READ that found no memory to receive into */
    weir__list gone;          /* handles with PENDING_DETACHED */
    int64_t retry_at_ns;      /* when parked handles, or submissions that a sleeping owner waits
                                 for, are retried; WEIR_NEVER = there are none */
    int64_t retry_ns;         /* current delay of that retry */
    int wake_descriptor;      /* an eventfd, kept across rebuilds */
    bool woken;               /* the last wait saw weir__io_wake */
    bool interrupted;         /* the last wait was ended by a signal */
    bool broken;              /* no kernel object: begin or rebuild failed, or it is closed */
    bool closed;              /* by weir__io_suspend */
    unsigned work;            /* done since the last clock check, see weir__io_is_late */
    weir__io_handle *current; /* inside weir__io_dispatch: the handle that it delivers to */
    struct weir__readiness_batch *batch; /* datagram receive buffers, created on first use */
    weir__io_stats stats;
};

extern const weir__io_type weir__io_epoll;
extern const weir__io_type weir__io_poll;
extern const weir__io_type weir__io_uring; /* only if built with liburing */

/* ---- the backend as a whole (io.c) ---- */

/*
 * Creates an open backend; weir__io_begin starts it. Receive blocks come from malloc until
 * weir__io_set_memory. Any thread. On an error `reason` says why.
 */
int weir__io_create(const weir__io_type *type, const weir__io_options *options, weir__io **ret_io,
                    char *reason, size_t size);

/* Any thread, when no loop runs it and no handle is attached. */
void weir__io_destroy(weir__io *io);

/* Sets the allocator of receive blocks, before the first handle is attached. */
void weir__io_set_memory(weir__io *io, const weir__io_memory *memory);

/*
 * Call the functions of the type. weir__io_wait does not block while handles are pending.
 * weir__io_begin reopens a suspended backend.
 */
int weir__io_begin(weir__io *io);
int weir__io_wait(weir__io *io, int64_t deadline_ns);
bool weir__io_dispatch(weir__io *io, int64_t until_ns);
int weir__io_rebuild(weir__io *io);

/*
 * Closes the kernel object until the next begin, possibly on another thread. No handle is attached.
 * weir__io_wake keeps working.
 */
void weir__io_suspend(weir__io *io);

/* True if the next dispatch has work that no event will report. */
static inline bool weir__io_has_pending(const weir__io *io)
{
    return !weir__list_is_empty(&io->pending) || !weir__list_is_empty(&io->gone);
}

/* Any thread. Ends the current wait or the next one. A call that comes late may end none. */
void weir__io_wake(weir__io *io);

/* Memory may be available again: the next dispatch retries parked handles. */
void weir__io_memory_returned(weir__io *io);

/* ---- handles ---- */

void weir__io_handle_init(weir__io_handle *handle, int descriptor, const weir__io_owner *owner);

/* The backend uses the handle until `detached`. Fails with -ENOMEM. */
int weir__io_attach(weir__io *io, weir__io_handle *handle);

/*
 * Detaches a handle without closing its descriptor, so that it can be attached to another loop.
 * What the kernel had completed is delivered first by `sent` and `received`, then `detached` is
 * called. A failure that was not delivered yet is delivered before `detached`.
 */
void weir__io_detach(weir__io_handle *handle);

/* The same, but delivers nothing, and closes the descriptor when no operation uses it any more. */
void weir__io_close(weir__io_handle *handle);

/* For backends: sets bits of `pending`; finishes the detach of a handle. */
void weir__io_set_pending(weir__io_handle *handle, unsigned pending);
void weir__io_detach_done(weir__io_handle *handle);

/* For backends: the handle cannot be used any more; `failed` becomes pending. */
void weir__io_fail(weir__io_handle *handle, int err);

/*
 * For backends: there was no memory to receive waiting data into. PENDING_READ is set when there
 * may be some.
 */
void weir__io_park(weir__io_handle *handle);

/* For backends: a wait ends soon, after which the loop tries again what could not be done. */
void weir__io_retry_later(weir__io *io);

/* For backends, before each delivery. A signal handler on the loop's thread reads it: it is written
 * before the owner is called, since a compiler does not know that call. */
static inline void weir__io_set_current(weir__io *io, weir__io_handle *handle)
{
    io->current = handle;
}

/* The loop's thread, possibly in a signal handler: the channel that weir__io_dispatch delivers to.
 * NULL: none. */
static inline struct weir_channel *weir__io_channel(const weir__io *io)
{
    weir__io_handle *handle = io->current;

    return handle != NULL && handle->owner->channel != NULL ? handle->owner->channel(handle) : NULL;
}

/* For backends: checks the clock. */
bool weir__io_check_clock(weir__io *io, int64_t until_ns);

/* For backends, after each event: true if the time is up. Checks the clock only now and then. */
static inline bool weir__io_is_late(weir__io *io, int64_t until_ns)
{
    return ++io->work >= WEIR__IO_CLOCK_INTERVAL && weir__io_check_clock(io, until_ns);
}

static inline bool weir__io_is_attached(const weir__io_handle *handle)
{
    return handle->io != NULL && handle->state == WEIR__IO_ATTACHED;
}

/* True if callbacks other than `detached` are still allowed. */
static inline bool weir__io_may_notify(const weir__io_handle *handle)
{
    return handle->state == WEIR__IO_ATTACHED || handle->state == WEIR__IO_DETACHING;
}

/*
 * Accepts connections on a listening descriptor until stopped or failed. Calls `accepted` and
 * `read_complete`.
 */
static inline void weir__io_accept_start(weir__io_handle *handle)
{
    handle->io->type->accept_start(handle);
}

/* Stops accepting. No backend keeps a connection that it has accepted. */
static inline void weir__io_accept_stop(weir__io_handle *handle)
{
    handle->io->type->accept_stop(handle);
}

/*
 * Connects and calls `connected`. The address is lent until then. To cancel, close the handle; the
 * address is then lent until `detached`.
 */
static inline void weir__io_connect(weir__io_handle *handle, const struct sockaddr *address,
                                    socklen_t length)
{
    handle->io->type->connect(handle, address, length);
}

/*
 * Receives until stopped or ended. Calls `received`, at most `reads` times per turn, or
 * `received_datagrams`; `receive_ended`; and `read_complete` after the last of a turn. With `once`,
 * stops after one delivery and takes no more from the socket. Calling it again changes `once`.
 */
static inline void weir__io_receive_start(weir__io_handle *handle, bool once)
{
    handle->io->type->receive_start(handle, once);
}

/*
 * Stops receiving at once, even within the current batch. Data already received is delivered when
 * receiving starts again; none is lost.
 */
static inline void weir__io_receive_stop(weir__io_handle *handle)
{
    handle->io->type->receive_stop(handle);
}

/*
 * Sends as much of a vector as the socket takes now. Returns the number of bytes, or an error.
 * After a partial send, the memory of the rest (not the vector) is lent until `sent`, and every
 * send until then is -EALREADY. WEIR__IO_LENT: all of it is lent until `sent`, as if the send were
 * partial. Vectors may be longer than IOV_MAX.
 */
static inline ssize_t weir__io_send(weir__io_handle *handle, const struct iovec *vector,
                                    size_t count)
{
    return handle->io->type->send(handle, vector, count);
}

/*
 * Sends datagrams. Returns how many were sent. An error concerns the first datagram only: continue
 * with the next. After a partial send, `sent` with 0 reports that the socket is writable; nothing
 * is lent.
 */
static inline ssize_t weir__io_send_datagrams(weir__io_handle *handle, struct mmsghdr *messages,
                                              size_t count)
{
    return handle->io->type->send_datagrams(handle, messages, count);
}

/*
 * Sends a range of a file. Returns the number of bytes sent. After a partial send, `sent` with 0
 * reports that the socket is writable. A file that ends before the range is WEIR_ETRUNCATED.
 */
static inline ssize_t weir__io_send_file(weir__io_handle *handle, int file, off_t offset,
                                         size_t count)
{
    return handle->io->type->send_file(handle, file, offset, count);
}

/*
 * Calls `polled` once per turn while the descriptor is ready for one of `events` (POLLIN, POLLOUT,
 * POLLPRI, POLLRDHUP). Calling it again replaces the events.
 */
static inline void weir__io_poll_start(weir__io_handle *handle, unsigned events)
{
    handle->io->type->poll_start(handle, events);
}

static inline void weir__io_poll_stop(weir__io_handle *handle)
{
    handle->io->type->poll_stop(handle);
}

#endif
