/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O of a loop: what its backend does for a handle, and what the handle's owner is told.
 *
 *      owner (a channel, a watch)             backend (epoll, uring, poll)
 *      weir__io_receive_start(handle)  --->   the kernel
 *      owner->received(handle, ...)    <---   weir__io_wait, weir__io_dispatch
 *
 * The interface is completion-shaped: the owner says what it wants, and is told what has happened.
 * Backends that only hear of readiness make the system call themselves when it is time (ready.c).
 *
 * What holds everywhere:
 *   - Thread: the loop's, unless a slot says otherwise.
 *   - The owner is called from weir__io_dispatch alone, never from inside one of its own calls. In
 *     a call-back it may call anything here, for its own handle and for others.
 *   - Starting what is started and stopping what is stopped does nothing.
 *   - Once weir__io_close was called, or `failed` was told, only `detached` comes. Its memory is
 *     the backend's until then.
 *   - Descriptors are O_NONBLOCK.
 *
 * Not here: options, accounting, life cycle, promises. Those are the owner's.
 */
#ifndef WEIR_LOOP_IO_H
#define WEIR_LOOP_IO_H

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <weir/base.h>

#include "base/list.h"

#define WEIR__IO_READS_MAX 16         /* of one handle in a turn, unless the owner says otherwise */
#define WEIR__IO_WINDOW (128 * 1024)  /* what a read may bring, unless the owner says less */
#define WEIR__IO_SMALL 4096           /* a read that brings less has brought little */
#define WEIR__IO_DATAGRAM_WINDOW 2048 /* the same for one datagram */
#define WEIR__IO_RETRY_NS weir_ms(10) /* a receive that found no memory is tried again so soon */
#define WEIR__IO_RETRY_MAX_NS weir_ms(160) /* the same after several tries: it doubles */
#define WEIR__IO_CONTROL_SIZE 128          /* of ancillary data that come with a datagram, */
#define WEIR__IO_FD_PASSING_SIZE 1280 /* or of passed descriptors: 253, and what else may come */
#define WEIR__IO_CLOCK_INTERVAL 32    /* events or further reads of one handle: at the clock */

typedef struct weir__io weir__io;
typedef struct weir__io_handle weir__io_handle;
typedef struct weir__io_type weir__io_type;

/* ---- memory to receive into ---- */

typedef struct weir__io_block {
    void *base;
    size_t capacity; /* at least what was asked for */
    void *cookie;    /* whatever the giver needs to know it again */
} weir__io_block;

/* Where blocks come from. Both are called on the loop's thread, and `give` also at its end. */
typedef struct weir__io_memory {
    /* -ENOMEM: data waits in the socket, and is tried again within WEIR__IO_RETRY_MAX_NS. The end
     * of a stream and errors are reported without memory. */
    int (*alloc)(void *arg, size_t size, weir__io_block *ret_block);
    void (*free)(void *arg, const weir__io_block *block);
    void *arg;
} weir__io_memory;

/* ---- what the owner is told ---- */

/* One of a batch of datagrams. The block is the owner's, the rest only until the call returns. */
typedef struct weir__io_datagram {
    weir__io_block block;
    size_t length;
    const struct msghdr *header; /* msg_name, msg_control, msg_flags (MSG_TRUNC) */
} weir__io_datagram;

/* Slots that can never be called may be NULL. */
typedef struct weir__io_owner {
    /*
     * A connection has come: its descriptor (O_NONBLOCK, O_CLOEXEC), which is the owner's, and the
     * peer's address if the backend knows it, otherwise NULL. Or an error, such as -EMFILE: then
     * accepting has stopped. Connections that were aborted meanwhile are not told.
     */
    void (*accepted)(weir__io_handle *handle, int descriptor, const struct sockaddr *peer,
                     socklen_t peer_length);

    /* The connection is there, or why not. */
    void (*connected)(weir__io_handle *handle, int err);

    /* `length` > 0 bytes have come. The block is the owner's, who gives it back. */
    void (*received)(weir__io_handle *handle, const weir__io_block *block, size_t length);

    /* Up to WEIR__IO_READS_MAX datagrams have come, in order; a length of 0 is one, too. */
    void (*received_datagrams)(weir__io_handle *handle, const weir__io_datagram *datagrams,
                               size_t count);

    /*
     * Nothing more will come: the peer's end of stream (0) or an error. Receiving has stopped.
     * After an error that a datagram socket reports, such as -ECONNREFUSED, it may start again.
     */
    void (*receive_ended)(weir__io_handle *handle, int err);

    /* The last of this turn's accepts or receives of this handle has been told. */
    void (*read_complete)(weir__io_handle *handle);

    /*
     * After a send that was not taken whole: `count` >= 0 further bytes of it have been sent, and
     * the lent memory is the owner's again: send what is left. 0 only says that there is room. Or
     * an error.
     */
    void (*sent)(weir__io_handle *handle, ssize_t count);

    /* The descriptor is ready: POLLIN, POLLOUT, ... of those asked for; POLLERR and POLLHUP. */
    void (*polled)(weir__io_handle *handle, unsigned events);

    /*
     * The backend has lost the handle: WEIR_EREBUILT, or what the kernel said of its descriptor.
     * All that was under way has ended without another word. The owner closes it.
     */
    void (*failed)(weir__io_handle *handle, int err);

    /* The last word: the handle is attached to nothing, its memory is the owner's. */
    void (*detached)(weir__io_handle *handle);
} weir__io_owner;

/* ---- the handle: a member of what its owner keeps per descriptor ---- */

/* What its owner wants of a handle: bits of `wants`. */
enum {
    WEIR__IO_ACCEPT = 1 << 0,
    WEIR__IO_CONNECT = 1 << 1,
    WEIR__IO_RECEIVE = 1 << 2,
    WEIR__IO_ONCE = 1 << 3, /* with RECEIVE: only one `received` */
    WEIR__IO_SEND = 1 << 4, /* a send was not taken whole */
    WEIR__IO_POLL = 1 << 5,
};

/* What the next dispatch has to see to: bits of `due`. */
enum {
    WEIR__IO_PENDING_CONNECT = 1 << 0,  /* `connected` with `result` */
    WEIR__IO_PENDING_READ = 1 << 1,     /* there may be more to read, and no event will say so */
    WEIR__IO_PENDING_WRITE = 1 << 2,    /* the same for writing */
    WEIR__IO_PENDING_FAILED = 1 << 3,   /* `failed` with `result` */
    WEIR__IO_PENDING_DETACHED = 1 << 4, /* `detached` */
};

/* How far it is from being detached. */
enum {
    WEIR__IO_ATTACHED,
    WEIR__IO_FAILED,           /* only to be closed */
    WEIR__IO_DETACHING,        /* what the kernel has received is still told */
    WEIR__IO_DETACHING_FAILED, /* the same after a failure: nothing is told any more */
    WEIR__IO_CLOSING,          /* the same, and its descriptor is closed */
};

struct weir__io_handle {
    const weir__io_owner *owner;
    weir__io *io; /* NULL = not attached */
    weir__list link;
    weir__list pending_link;
    int descriptor;
    uint32_t window; /* how much a read may bring, which the owner may change; 0 = the usual */
    int32_t result;
    uint8_t wants;
    uint8_t pending;
    uint8_t state;
    bool datagrams : 1; /* receives datagrams, not a stream */
    bool unread : 1;    /* edge: what nobody wants to read may be there, and no event will say so */
    bool unix_socket : 1;  /* Unix sockets: a read may end at a passed descriptor, so that a short
                          one  does not mean that nothing is left */
    bool empty_is_end : 1; /* of a connection that receives datagrams: an empty one is its end; they
                      come one at a time, so that the owner may stop after each */
    bool receive_fds : 1;  /* Unix sockets that receive datagrams: passed descriptors, which come
                         closed on exec; others get none, whatever a peer sends */
    bool shared_listener : 1; /* other processes may accept from the same socket */
    bool last_send : 1;   /* what is sent now is the last: the end of the stream follows at once */
    uint16_t poll_events; /* what the owner polls for */
    uint8_t reads; /* accepts, receives or datagrams in a turn, which the owner may change; 0 = the
                      usual */

    /* The backend's own. */
    uint8_t batch;       /* datagrams: as many may come at once */
    uint16_t armed;      /* the events that the kernel watches for */
    uint16_t in_flight;  /* uring: its operations that the ring has, a bit each */
    uint32_t slot;       /* poll: the index of its pollfd; epoll: 1 = registered; uring: how many of
                            its completions of this turn are still to be told */
    uint8_t delivered;   /* uring: accepts and receives of this turn */
    uint8_t small_reads; /* reads in a row that have brought little, 255 = or more */
    uint8_t full_reads;  /* uring: the same that have filled a buffer of the ring */
    uint8_t uring_flags; /* uring: what it knows of it */
    void *undelivered;   /* uring: what it was not told yet */
};

/* ---- the backend ---- */

/* System calls by kind, events, ...: written by the loop's thread, read by everybody. */
typedef struct weir__io_stats {
    _Atomic uint64_t waits;    /* epoll_wait, poll, io_uring_enter: also those that only look */
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
    const char *name;  /* the loop's, for the log; lent for as long as the backend lives */
    bool ring_receive; /* uring: receive by a buffer ring */
    bool is_embedded;  /* others sleep on its `descriptor` */
} weir__io_options;

struct weir__io_type {
    const char *name;
    size_t size; /* of the whole backend, whose first member is the weir__io */
    bool edge;   /* an event is told once: what is left must be remembered (ready.c) */

    /*
     * Any thread, before `begin`: makes the kernel's object, but starts nothing. An error leaves a
     * sentence in `reason` that says what was refused and what to do about it. Undone by `close`.
     */
    int (*open)(weir__io *io, char *reason, size_t size);

    /* The thread that will run the loop. */
    int (*begin)(weir__io *io);

    /*
     * The kernel's object goes. No handle is attached, but nothing is waited for: what is in flight
     * of handles that were left alone never comes. Memory is given back.
     */
    void (*close)(weir__io *io);

    /*
     * Waits until there is an event, the deadline by CLOCK_MONOTONIC has come (0: only looks), or
     * weir__io_wake was called, and keeps the events for `dispatch`. Returns how many there are
     * without the wake-up, which it notes in io->woken; or an error after which the backend has to
     * be rebuilt. -EINTR is none: it returns 0, and notes io->interrupted.
     */
    int (*wait)(weir__io *io, int64_t deadline_ns);

    /* Whether `wait` would find something, at the price of less than a system call; NULL = ask it.
     */
    bool (*peek)(weir__io *io);

    /* What was started reaches the kernel without a wait: a manual loop goes to sleep. NULL = it
     * always has. */
    void (*flush)(weir__io *io);

    /* What becomes readable when `wait` would find something, until the next rebuild. NULL = there
     * is no such descriptor. */
    int (*descriptor)(weir__io *io);

    /* Where that is NULL: all that `wait` looks at. Writes the first `count`, returns how many. */
    size_t (*pollfds)(weir__io *io, struct pollfd *ret_entries, size_t count);

    /*
     * Tells the owners what has happened; looks at the clock now and then, and stops at `until_ns`.
     * True if it left something for the next call. weir__io_dispatch sees to `due` around it.
     */
    bool (*dispatch)(weir__io *io, int64_t until_ns);

    /*
     * Begins again with a new kernel object: what was started stays started. Handles of which
     * something is in flight that will not end are told `failed` by the next dispatch. An error
     * means that there is none now: nothing but `rebuild` and `close` may be called, handles may
     * come and go.
     */
    int (*rebuild)(weir__io *io);

    /* Makes room for a handle. May fail with -ENOMEM. NULL = nothing to do. */
    int (*attach)(weir__io_handle *handle);

    /*
     * Ends what is under way for a handle that is DETACHING or CLOSING. True if it is through: all
     * completions have come. Otherwise the backend calls weir__io_detach_done later.
     */
    bool (*detach)(weir__io_handle *handle);

    /*
     * Readiness (ready.c): the kernel's interest becomes what weir__readiness_wanted says. On a
     * failure it makes `failed` due.
     */
    void (*arm)(weir__io_handle *handle);

    /*
     * Of a backend whose events are edges, before a read of a handle with `packets`: true if it
     * will find out by itself whether the read has left something, and make it due. NULL = never.
     */
    bool (*recheck)(weir__io_handle *handle);

    /* DUE_READ or DUE_WRITE has come for a handle that is attached. NULL = weir__readiness_pending.
     */
    void (*dispatch_pending)(weir__io_handle *handle, unsigned pending);

    /* The operations, as the functions of the same name below describe them. */
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
    weir__list pending;  /* handles with bits in `due` */
    weir__list parked;   /* handles with DUE_READ that found no memory to receive into */
    weir__list gone;     /* handles with DUE_DETACHED */
    int64_t retry_at_ns; /* when the parked are tried again, WEIR_NEVER = there are none */
    int64_t retry_ns;    /* the current backoff of that */
    int wake_descriptor; /* an eventfd: kept when the kernel's object is made anew */
    bool woken;          /* the last wait saw weir__io_wake, */
    bool interrupted;    /* or was ended by a signal */
    bool broken;         /* there is no kernel object: begin or rebuild failed, or it is closed */
    bool closed;         /* by weir__io_suspend */
    unsigned work;       /* done since the clock was looked at: weir__io_is_late */
    struct weir__readiness_batch
        *batch; /* to receive datagrams into: made when the first is wanted */
    weir__io_stats stats;
};

extern const weir__io_type weir__io_epoll;
extern const weir__io_type weir__io_poll;
extern const weir__io_type weir__io_uring; /* only if built with it */

/* ---- the backend as a whole (io.c) ---- */

/*
 * Creates a backend that is open, but not begun. Receive memory is plain until somebody says where
 * better memory is. Any thread. On an error `reason` says why.
 */
int weir__io_create(const weir__io_type *type, const weir__io_options *options, weir__io **ret_io,
                    char *reason, size_t size);

/* Any thread, when no loop runs it and no handle is attached. */
void weir__io_destroy(weir__io *io);

/* Where to receive into from now on. Before the first handle is attached. */
void weir__io_set_memory(weir__io *io, const weir__io_memory *memory);

/* As the slots say; `wait` does not block while something is due. `begin` opens what was suspended.
 */
int weir__io_begin(weir__io *io);
int weir__io_wait(weir__io *io, int64_t deadline_ns);
bool weir__io_dispatch(weir__io *io, int64_t until_ns);
int weir__io_rebuild(weir__io *io);

/* The thread goes, and another may come: closes the kernel's object until the next begin. No handle
 * is attached, and weir__io_wake works as ever. */
void weir__io_suspend(weir__io *io);

/* Something waits for the next dispatch that no event will tell. */
bool weir__io_has_pending(const weir__io *io);

/* Any thread: ends the current wait, or the next one. One call may end one wait or none, if it
 * comes too late. */
void weir__io_wake(weir__io *io);

/* There may be memory again: parked handles are tried in the next dispatch. */
void weir__io_memory_returned(weir__io *io);

/* ---- handles ---- */

void weir__io_handle_init(weir__io_handle *handle, int descriptor, const weir__io_owner *owner);

/* From now on the handle is the backend's, until `detached`. Fails with -ENOMEM. */
int weir__io_attach(weir__io *io, weir__io_handle *handle);

/*
 * Takes the handle from the backend: `sent` and `received` tell what the kernel had done already,
 * then comes `detached`. The descriptor stays open, and nothing is lost: it may be attached to
 * another loop. Unless it has failed: that is told before `detached`, if it was not yet.
 */
void weir__io_detach(weir__io_handle *handle);

/* The same, but nothing is told, and the descriptor is closed when nothing uses it any more. */
void weir__io_close(weir__io_handle *handle);

/* For backends: makes bits of `due` due; and a handle that detaches is through. */
void weir__io_set_pending(weir__io_handle *handle, unsigned pending);
void weir__io_detach_done(weir__io_handle *handle);

/* For backends: it can do nothing more for this handle; `failed` is due. */
void weir__io_fail(weir__io_handle *handle, int err);

/* For backends: there was no memory to receive data into that waits. DUE_READ comes when there may
 * be some. */
void weir__io_park(weir__io_handle *handle);

/* For backends: looks at the clock. */
bool weir__io_check_clock(weir__io *io, int64_t until_ns);

/* For backends, after each event: the time is up. Cheap: it looks only now and then. */
static inline bool weir__io_is_late(weir__io *io, int64_t until_ns)
{
    return ++io->work >= WEIR__IO_CLOCK_INTERVAL && weir__io_check_clock(io, until_ns);
}

/* For backends: how much a read may bring now. */
static inline size_t weir__io_window(const weir__io_handle *handle)
{
    if (handle->window != 0)
        return handle->window;
    return handle->datagrams ? WEIR__IO_DATAGRAM_WINDOW : WEIR__IO_WINDOW;
}

/* For backends: how often it may be told of accepts and receives in a turn. */
static inline unsigned weir__io_reads(const weir__io_handle *handle)
{
    return handle->reads != 0 ? handle->reads : WEIR__IO_READS_MAX;
}

static inline bool weir__io_is_attached(const weir__io_handle *handle)
{
    return handle->io != NULL && handle->state == WEIR__IO_ATTACHED;
}

/* The owner may still be told something. */
static inline bool weir__io_may_notify(const weir__io_handle *handle)
{
    return handle->state == WEIR__IO_ATTACHED || handle->state == WEIR__IO_DETACHING;
}

/* Accepts connections on a listening descriptor until it is stopped or fails: `accepted`,
 * `read_complete`. */
static inline void weir__io_accept_start(weir__io_handle *handle)
{
    handle->io->type->accept_start(handle);
}

/* No connection is told from now on; one that the kernel has handed out is told first when
 * accepting starts again, or closed with the handle. */
static inline void weir__io_accept_stop(weir__io_handle *handle)
{
    handle->io->type->accept_stop(handle);
}

/* Connects, and tells `connected`. The address is lent until then; closing is how to give up, and
 * then it is lent until `detached`. */
static inline void weir__io_connect(weir__io_handle *handle, const struct sockaddr *address,
                                    socklen_t length)
{
    handle->io->type->connect(handle, address, length);
}

/*
 * Receives until it is stopped or ends: `received`, at most weir__io_reads times a turn, or
 * `received_datagrams`; `receive_ended`; `read_complete` after the last of a turn. With `once` it
 * stops by itself after one of them: then no more than that is taken from the socket. Calling it
 * again changes `once`.
 */
static inline void weir__io_receive_start(weir__io_handle *handle, bool once)
{
    handle->io->type->receive_start(handle, once);
}

/* Nothing is told from now on, also not by the current batch. What was received already is told
 * first when receiving starts again. Nothing is lost. */
static inline void weir__io_receive_stop(weir__io_handle *handle)
{
    handle->io->type->receive_stop(handle);
}

/*
 * Sends a vector, as much of it as the socket takes at once: returns how many bytes that is, or an
 * error. If that is less than all of it, the memory of the rest is lent until `sent`, and until
 * then every send is -EALREADY; the vector itself is not. Vectors may be longer than IOV_MAX.
 */
static inline ssize_t weir__io_send(weir__io_handle *handle, const struct iovec *vector,
                                    size_t count)
{
    return handle->io->type->send(handle, vector, count);
}

/*
 * The same for datagrams: returns how many of them were taken. An error is the first one's, and
 * says nothing of the others: go on with the next. If not all were taken, `sent` with 0 says when
 * there is room; nothing is lent.
 */
static inline ssize_t weir__io_send_datagrams(weir__io_handle *handle, struct mmsghdr *messages,
                                              size_t count)
{
    return handle->io->type->send_datagrams(handle, messages, count);
}

/*
 * The same for a range of a file: returns how many bytes were taken; if not all, `sent` with 0 says
 * when there is room. A file that ends before the range does is WEIR_ETRUNCATED.
 */
static inline ssize_t weir__io_send_file(weir__io_handle *handle, int file, off_t offset,
                                         size_t count)
{
    return handle->io->type->send_file(handle, file, offset, count);
}

/* Tells `polled` as long as the descriptor is ready for one of `events` (POLLIN, POLLOUT, POLLPRI,
 * POLLRDHUP), once a turn. Calling it again changes the events. */
static inline void weir__io_poll_start(weir__io_handle *handle, unsigned events)
{
    handle->io->type->poll_start(handle, events);
}

static inline void weir__io_poll_stop(weir__io_handle *handle)
{
    handle->io->type->poll_stop(handle);
}

#endif
