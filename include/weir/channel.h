/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/channel.h - a connection, a listener, or anything else that bytes or messages go through.
 *
 * A channel belongs to one loop at a time, and every event of it runs there: handlers need no
 * locks. Everything here may be called on any thread, for as long as a reference is held: a call
 * from elsewhere becomes a task of the loop, and one on a closed channel completes with an error.
 * A `weir_channel *` in a call-back is borrowed: retain it to keep it.
 *
 *      open -> registered (has a loop) -> active (connected or bound) -> inactive -> unregistered
 */
#ifndef WEIR_CHANNEL_H
#define WEIR_CHANNEL_H

#include <weir/address.h>
#include <weir/base.h>
#include <weir/executor.h>
#include <weir/group.h>
#include <weir/handler.h>
#include <weir/options.h>
#include <weir/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a channel carries. Bootstraps choose the transport by this and by the address's family. */
enum weir_kind {
    WEIR_KIND_STREAM,    /* bytes in order: TCP, Unix stream sockets, "inproc:..." */
    WEIR_KIND_SEQPACKET, /* messages in order: Unix sockets */
    WEIR_KIND_DATAGRAM,  /* messages by themselves (weir/datagram.h): UDP, Unix sockets */
};

/* A socket option by its numbers, for what has no name below. */
typedef struct weir_socket_option {
    int level;
    int name;
    int value;
} weir_socket_option;

/* Zero means default. Build with WEIR_CHANNEL_OPTIONS(.half_closure = true, ...). */
typedef struct weir_channel_options {
    size_t size;
    bool read_on_demand;       /* reads only when asked: weir_request_read */
    bool half_closure;         /* the peer's end of stream is an event, and closes nothing, also if
                                  the output is shut: it stays open until somebody closes it */
    bool keep_open_on_error;   /* an error that reaches the tail is logged, and closes nothing */
    bool executor_per_handler; /* handlers of one group run on executors of their own, not on one */
    int64_t connect_timeout_ns; /* default 30 s; WEIR_OFF = none */
    int64_t close_timeout_ns;   /* a close that has sent everything waits so long for the end of the
                                   peer's stream; default 3 s; WEIR_OFF = for ever */
    int64_t low_mark;           /* writable again below this, default 32 KiB */
    int64_t high_mark;          /* not writable above this, default 64 KiB; what is counted says
                                   weir_channel_pending_bytes */
    int64_t write_cap;          /* a write beyond this fails with WEIR_EFULL; default none */
    int reads_per_turn;         /* default 16 */
    int writes_per_flush;       /* system calls before others get a turn, default 16 */
    int receive_min;            /* a receive buffer adapts between these: */
    int receive_initial;        /* default 64, 2048, 131072 */
    int receive_max;

    /* Sockets. What cannot be set fails bind, connect or registration. */
    bool nagle;          /* TCP_NODELAY is on by default */
    int reuse_address;   /* SO_REUSEADDR: WEIR_ON, WEIR_OFF; default on, for datagrams off, because
                            it lets other sockets share the port there */
    bool reuse_port;     /* SO_REUSEPORT */
    bool keep_alive;     /* SO_KEEPALIVE */
    bool reset_on_close; /* SO_LINGER with 0: the peer sees a reset */
    int backlog;         /* default 4096 */
    int send_buffer;     /* SO_SNDBUF, default the system's */
    int receive_buffer;  /* SO_RCVBUF */
    int64_t user_timeout_ns;                  /* TCP_USER_TIMEOUT, default the system's */
    const weir_socket_option *socket_options; /* set in this order, after the above */
    size_t socket_option_count;

    /* Datagrams. */
    int datagram_size; /* the longest that can be received, default 2048; with gro 65535 at the
                          least: there has to be room for all that come together */
    bool broadcast;    /* SO_BROADCAST */
    bool gro;          /* UDP_GRO: the system may join datagrams, which are told one by one */

    /* Unix sockets. */
    bool receive_descriptors; /* what comes with descriptors is read as weir_descriptors; otherwise
                                 they are dropped, and never get into the process */
    unsigned unix_mode;       /* permissions of the file that is bound, as 0600; default by umask */

    bool drain_waits; /* when its group shuts down it is left to its peer, until the time is up;
                         otherwise it is closed then, unless a handler has `draining` */
    bool packet_info; /* UDP, IP_PKTINFO: the recipient of what comes is the address that it was
                         sent to, also if the channel is bound to any, and a reply leaves from
                         there */
    int64_t close_send_timeout_ns; /* a close gives up, and resets the connection, when the peer has
                                      taken nothing of what is left for so long; default 30 s;
                                      WEIR_OFF = never */
} weir_channel_options;

#define WEIR_CHANNEL_OPTIONS(...) WEIR_OPTIONS(weir_channel_options, __VA_ARGS__)

/* ---- references, and what it is ---- */

/*
 * Keeps a channel, and the memory of its executor.
 * Thread: any.
 */
WEIR_API weir_channel *weir_channel_retain(weir_channel *channel);

/*
 * Gives a reference back; NULL is fine. A channel that was never registered is closed by the last.
 * Thread: any.  Takes: channel.
 */
WEIR_API void weir_channel_release(weir_channel *channel);

/*
 * A number that no other channel of the process has or had.
 * Thread: any.
 */
WEIR_API uint64_t weir_channel_id(const weir_channel *channel);

/*
 * Its handlers.
 * Thread: any.
 */
WEIR_API weir_pipeline *weir_channel_pipeline(weir_channel *channel);

/*
 * The loop, borrowed; NULL before the first registration. It may change: see weir_channel_register.
 * Thread: any.
 */
WEIR_API weir_executor *weir_channel_executor(const weir_channel *channel);

/*
 * The listener that accepted it, borrowed; NULL if it was not accepted.
 * Thread: any.
 */
WEIR_API weir_channel *weir_channel_parent(const weir_channel *channel);

/*
 * Whether it has not been closed; has a loop; is connected, or bound if it accepts or needs no
 * connection; takes writes below its high water mark.
 * Thread: any.
 */
WEIR_API bool weir_channel_is_open(const weir_channel *channel);
WEIR_API bool weir_channel_is_registered(const weir_channel *channel);
WEIR_API bool weir_channel_is_active(const weir_channel *channel);
WEIR_API bool weir_channel_is_writable(const weir_channel *channel);

/*
 * Whether the peer has ended its stream, and not only been lost; also when it is closed.
 * Thread: any.
 */
WEIR_API bool weir_channel_has_peer_ended(const weir_channel *channel);

/*
 * The peer has said, by what it speaks, that it sends nothing more. So a close does not wait for
 * the end of its stream: nothing can come that would make the system reset the connection.
 * Thread: any.
 */
WEIR_API void weir_channel_skip_linger(weir_channel *channel);

/*
 * Its own address and its peer's. Who wants to know them when it is closed, such as in `inactive`,
 * asks once before: then they are remembered, unless it is a datagram channel, whose may change.
 * Thread: any.  Fails: -ENOTCONN (it has none yet, or is closed and nobody has asked before), or
 * what the system said.
 */
WEIR_API int weir_channel_local_address(weir_channel *channel, weir_address *ret_address);
WEIR_API int weir_channel_remote_address(weir_channel *channel, weir_address *ret_address);

/*
 * Writes "[id local - remote]", or "! " for "- " when it is not active. Returns `buffer`.
 * Thread: any.
 */
WEIR_API char *weir_channel_format(weir_channel *channel, char *buffer, size_t size);

/* ---- options ---- */

/*
 * The options as they are; and others in their place: those that a socket is made with (backlog,
 * reuse_port, ...) have no effect any more. `socket_options` of what is read is lent for as long as
 * the channel is kept, whatever is set meanwhile.
 * Thread: any.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API void weir_channel_get_options(weir_channel *channel, weir_channel_options *ret_options);
WEIR_API int weir_channel_set_options(weir_channel *channel, const weir_channel_options *options);

/*
 * Any option of its socket, as setsockopt and getsockopt.
 * Thread: any.  Fails: -ENOTSUP (no socket), WEIR_ECLOSED, -errno.
 */
WEIR_API int weir_channel_set_socket_option(weir_channel *channel, int level, int name,
                                            const void *value, size_t length);
WEIR_API int weir_channel_get_socket_option(weir_channel *channel, int level, int name,
                                            void *ret_value, size_t *length);

/*
 * Switches reading by itself on and off.
 * Thread: any.
 */
WEIR_API void weir_channel_set_auto_read(weir_channel *channel, bool on);
WEIR_API bool weir_channel_auto_read(const weir_channel *channel);

/* ---- flow ---- */

/*
 * Bytes that may be written before it is not writable any more, and that must go out before it is
 * writable again; and all that were written and not sent. Each message counts as the memory that it
 * holds: its bytes, 208 for its buffer and its place in the queue, and the unused room of a buffer
 * that has more of it than of bytes.
 * Thread: any.
 */
WEIR_API int64_t weir_channel_bytes_before_unwritable(const weir_channel *channel);
WEIR_API int64_t weir_channel_bytes_before_writable(const weir_channel *channel);
WEIR_API int64_t weir_channel_pending_bytes(const weir_channel *channel);

/*
 * When some bytes were last sent, by the clock of its loop: for who gives up when nothing moves. It
 * is written down from the first call on, and 0 until some are sent; also without memory for it. To
 * who asks on the loop it is now as long as there is nothing to be sent: handlers may hold it back.
 * Thread: any.
 */
WEIR_API int64_t weir_channel_sent_at(weir_channel *channel);

/*
 * One of 31 reasons of the user's own (1 to 31) why it is not writable.
 * Thread: any.  Fails: -EINVAL.
 */
WEIR_API int weir_channel_set_user_writable(weir_channel *channel, unsigned reason, bool writable);

/* ---- operations: each begins at the tail of the pipeline; `done` may be NULL ---- */

/*
 * Gives the channel to a loop; of a group, to the next one, or to one of its own (a thread per
 * channel). If that fails the channel is closed.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_register(weir_channel *channel, weir_executor *loop, weir_promise *done);
WEIR_API void weir_group_register(weir_group *group, weir_channel *channel, weir_promise *done);

/*
 * Takes the channel from its loop; it can be registered again, also elsewhere. Nothing is lost.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_deregister(weir_channel *channel, weir_promise *done);

/*
 * Binds, connects, disconnects (which closes where there is no such thing).
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_bind(weir_channel *channel, const weir_address *local,
                                weir_promise *done);
WEIR_API void weir_channel_connect(weir_channel *channel, const weir_address *remote,
                                   const weir_address *local, weir_promise *done);
WEIR_API void weir_channel_disconnect(weir_channel *channel, weir_promise *done);

/*
 * Writes a message. From another thread it does not wake the loop; flushing does.
 * Thread: any.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_channel_write(weir_channel *channel, weir_msg *msg, weir_promise *done);
WEIR_API void weir_channel_write_and_flush(weir_channel *channel, weir_msg *msg,
                                           weir_promise *done);

/*
 * Sends what was written.
 * Thread: any.
 */
WEIR_API void weir_channel_flush(weir_channel *channel);

/*
 * Asks for one read.
 * Thread: any.
 */
WEIR_API void weir_channel_request_read(weir_channel *channel);

/*
 * Closes: sends what was written before, shuts the sending side, and discards what comes until the
 * peer closes too, for close_timeout_ns at the longest. A slow peer gets everything. A close gives
 * up when the peer takes nothing for close_send_timeout_ns: it resets the connection, and `done`
 * and the writes that are left fail with -ETIMEDOUT. Otherwise `done` succeeds when the channel is
 * closed. Closing twice is fine. Without a loop nothing can be sent.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_close(weir_channel *channel, weir_promise *done);

/*
 * Closes at once: what was not sent is lost, and its writes fail. The peer sees a reset if anything
 * was, where the transport has such a thing.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_abort(weir_channel *channel, weir_promise *done);

/*
 * Half closure: nothing more is sent, after what was written before; or received. The first goes
 * through the handlers, as a close does, and the channel stays open: it waits for a slow peer as
 * long as it takes. Shutting twice is fine. It fails with WEIR_ECLOSED after a close, -ENOTCONN
 * before the channel is active, -ENOTSUP where there is no stream.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_shutdown_output(weir_channel *channel, weir_promise *done);
WEIR_API void weir_channel_shutdown_input(weir_channel *channel, weir_promise *done);

/*
 * Sends an event of the user's own through the pipeline, from the head.
 * Thread: any.  Takes: event.
 */
WEIR_API void weir_channel_fire_event(weir_channel *channel, weir_msg *event);

/*
 * Completes when the channel is closed, however that came; never fails. Borrowed.
 * Thread: any.  Fails: NULL if there is no memory for it.
 */
WEIR_API weir_promise *weir_channel_closed(weir_channel *channel);

/*
 * Waits until the channel is closed.
 * Thread: any that may wait.  Fails: -EDEADLK, -ETIMEDOUT, -ENOMEM.
 */
WEIR_API int weir_channel_await_closed(weir_channel *channel, int64_t timeout_ns);

/*
 * An accepted channel travels as a message to the listener's handlers: the channel in it, or NULL.
 * Thread: any.
 */
WEIR_API weir_channel *weir_channel_of(weir_msg *msg);

/* --- attribute -------------------------------------------------------------------------------- */

/*
 * Values that users hang on a channel, by key.
 *
 *      static const weir_attribute session = {.name = "session", .free = session_free};
 *      weir_attribute_set(channel, &session, s);
 *      struct session *s = weir_attribute_get(channel, &session);
 *
 * The key is its address: no two of them meet by name. A value belongs to the channel from the
 * moment it is set, and is freed when it is replaced or when the channel's memory goes.
 */

typedef struct weir_attribute {
    const char *name;
    void (*free)(void *value); /* any thread; NULL = nothing to free */
    void *reserved[2];
} weir_attribute;

/* A value to begin with, in a bootstrap's options. */
typedef struct weir_attribute_value {
    const weir_attribute *attribute;
    void *value;
} weir_attribute_value;

/*
 * Sets a value; the one before is freed. NULL removes it. On an error the value stays the caller's.
 * Thread: any.  Takes: value, on success.  Fails: -ENOMEM.
 */
WEIR_API int weir_attribute_set(weir_channel *channel, const weir_attribute *attribute,
                                void *value);

/*
 * Sets a value if there is none. Returns the one that is there then; NULL if there is no memory.
 * Thread: any.  Takes: value, if it is what is returned.
 */
WEIR_API void *weir_attribute_set_if_absent(weir_channel *channel, const weir_attribute *attribute,
                                            void *value);

/*
 * The value, borrowed; NULL if there is none. Another thread may replace it: where that happens,
 * use it on the loop only.
 * Thread: any.
 */
WEIR_API void *weir_attribute_get(weir_channel *channel, const weir_attribute *attribute);

/*
 * Takes the value out, without freeing it.
 * Thread: any.  Gives: value.
 */
WEIR_API void *weir_attribute_take(weir_channel *channel, const weir_attribute *attribute);

/* --- channel stats ---------------------------------------------------------------------------- */

/*
 * What all channels of the process have done so far, and how many there are.
 *
 * Each loop counts for itself, without a locked instruction, and who reads sums up. Nothing is lost
 * when a loop ends, and what counts something "so far" never goes back. The same figures are in the
 * metric registry (weir/metric.h) as "channels.open", "channels.errors.refused", and so on.
 */

/* Errors of connecting, accepting, binding, receiving, sending and registering, by their cause. */
typedef struct weir_channel_errors {
    uint64_t refused;     /* nobody listens there: ECONNREFUSED */
    uint64_t reset;       /* by the peer: ECONNRESET, ECONNABORTED */
    uint64_t pipe;        /* sent to a peer that has closed: EPIPE */
    uint64_t timed_out;   /* ETIMEDOUT: the system's, or the channel's connect timeout */
    uint64_t unreachable; /* ENETUNREACH, EHOSTUNREACH, and both that are down */
    uint64_t address;     /* is in use, or there is none left: EADDRINUSE, EADDRNOTAVAIL */
    uint64_t descriptors; /* there was none left: EMFILE, ENFILE */
    uint64_t memory;      /* the same: ENOMEM, ENOBUFS */
    uint64_t too_long;    /* a datagram, to be sent or received: EMSGSIZE */
    uint64_t rejected;    /* a loop that shuts down did not take the channel, or its group had no
                             room for it: WEIR_EREJECTED, WEIR_ETOOMANY */
    uint64_t other;
} weir_channel_errors;

/* Listeners are counted apart, except for what goes wrong. */
typedef struct weir_channel_stats {
    uint64_t open;             /* channels now: those that are not closed, */
    uint64_t active;           /* and of these the connected ones */
    uint64_t listeners;        /* listeners that are not closed, */
    uint64_t listeners_active; /* and those that are bound */

    /* So far. */
    uint64_t created;
    uint64_t closed;
    uint64_t accepted;          /* of the created ones */
    uint64_t connected;         /* attempts that have succeeded, */
    uint64_t connects_failed;   /* and those that have failed or were given up */
    uint64_t accepts_failed;    /* errors of listeners, which go on */
    uint64_t turned_away;       /* clients that there was no descriptor for */
    uint64_t messages_received; /* reads that brought something; datagrams */
    uint64_t bytes_received;    /* of a message that is no bytes: what weir_msg_size says */
    uint64_t messages_sent;     /* writes of which the socket has taken the last byte */
    uint64_t bytes_sent;        /* what the socket has taken */
    uint64_t writes_failed;     /* messages that will not be sent */
    uint64_t unwritable;        /* times that a channel has become so */
    weir_channel_errors errors;
    uint64_t reserved[8];
} weir_channel_stats;

/*
 * The figures of all channels, each exact by itself; `open` is `created` less `closed`. Takes a
 * lock that the loops take only when they are made and when they go.
 * Thread: any.
 */
WEIR_API void weir_channel_read_stats(weir_channel_stats *ret_stats);

/*
 * The same of one kind: "tcp", "udp", "unix", "inproc", "embedded", "other".
 * Thread: any.  Fails: -EINVAL for any other name, and NULL.
 */
WEIR_API int weir_channel_read_stats_of(const char *kind, weir_channel_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
