/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/channel.h - a connection, a listener or a datagram socket.
 *
 * A channel belongs to one loop at a time. All its events run there, so handlers need no locks.
 * Any thread may call every function of this header while somebody holds a reference for it: one
 * reference serves several threads. On another thread than the loop's the call becomes a task of
 * the loop, and on a closed channel it fails. A `weir_channel *` passed to a callback is borrowed:
 * retain it to use it later.
 *
 * This header also has the values attached to channels (weir_attribute) and the statistics of all
 * channels (weir_channel_stats).
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

/* The data that a channel carries. With the family of the address it selects the transport. */
enum weir_kind {
    WEIR_KIND_STREAM,    /* a byte stream: TCP, Unix stream sockets, "inproc:..." */
    WEIR_KIND_SEQPACKET, /* messages in order: Unix sockets */
    WEIR_KIND_DATAGRAM,  /* single messages (weir/datagram.h): UDP, Unix sockets */
};

/* A socket option as setsockopt takes it, for options without a field below. */
typedef struct weir_socket_option {
    int level;
    int name;
    int value;
} weir_socket_option;

/* Zero means default. Build with WEIR_CHANNEL_OPTIONS(.half_closure = true, ...). */
typedef struct weir_channel_options {
    size_t size;
    bool read_on_demand;     /* auto-read is off: reads one message per weir_request_read */
    bool half_closure;       /* the peer's end of stream is an event (weir_event_input_closed) and
                                does not close the channel, even if the output is shut, too */
    bool keep_open_on_error; /* an error that reaches the tail is logged but closes nothing */
    weir_group *offload_when_blocking; /* handlers that the watchdog sees blocking, and those behind
                                          them, move to this group (weir/watchdog.h); retained;
                                          default: none */
    int64_t connect_timeout_ns;        /* default 30 s; WEIR_OFF = none */
    int64_t close_timeout_ns; /* time that a close waits for the peer's end of stream after it has
                                 sent everything; default 3 s; WEIR_OFF = unlimited */
    int64_t low_mark;         /* becomes writable below this; default 32 KiB */
    int64_t high_mark;        /* becomes unwritable above this; default 64 KiB. Both count as
                                 weir_channel_pending_bytes does */
    int64_t write_cap;        /* writes above this fail with WEIR_EFULL; default none */
    int reads_per_turn;       /* reads before other channels get their turn; default 16. Fewer after
                                 128 KiB, or if they take long */
    int writes_per_flush;     /* system calls before other channels get their turn; default 16 */
    int receive_min;          /* bounds of the adaptive receive size; */
    int receive_initial;      /* default 64, 2048, 131072 */
    int receive_max;

    /* Sockets. If an option cannot be set, bind, connect or the registration fails. */
    bool nagle;          /* Nagle's algorithm; default off (TCP_NODELAY) */
    int reuse_address;   /* SO_REUSEADDR: WEIR_ON or WEIR_OFF; default on, but off for datagrams,
                            where it lets other sockets share the port */
    bool reuse_port;     /* SO_REUSEPORT */
    bool keep_alive;     /* SO_KEEPALIVE */
    bool reset_on_close; /* SO_LINGER with 0: the peer sees a reset */
    int backlog;         /* default 4096 */
    int send_buffer;     /* SO_SNDBUF; default the system's */
    int receive_buffer;  /* SO_RCVBUF; default the system's */
    int64_t user_timeout_ns;                  /* TCP_USER_TIMEOUT; default the system's */
    const weir_socket_option *socket_options; /* set in this order, after the above */
    size_t socket_option_count;

    /* Datagrams. */
    int datagram_size; /* the longest datagram that can be received; default 2048, with gro at least
                          65535, because joined datagrams need the room */
    bool broadcast;    /* SO_BROADCAST */
    bool gro;          /* UDP_GRO: the kernel may join datagrams; each is still read by itself */

    /* Unix sockets. */
    bool receive_descriptors; /* reads descriptors as weir_descriptors; default off: the kernel
                                 discards them */
    unsigned unix_mode;       /* permissions of the bound file, such as 0600; default by umask */

    bool drain_waits; /* when the group shuts down, waits for the peer to close until the shutdown
                         times out; default: closes, unless a handler has `draining` */
    bool packet_info; /* UDP, IP_PKTINFO: the recipient of a datagram is the address it was sent to,
                         even if the channel is bound to any address, and replies leave from it */
    int64_t close_send_timeout_ns; /* a close resets the connection if the peer takes none of the
                                      remaining bytes for this time; default 30 s; WEIR_OFF = never.
                                      A full TCP peer acknowledges in steps of a sixteenth of its
                                      receive buffer, some 400 KB on Linux: it must have the time to
                                      read that */
    bool report_hangup; /* stream sockets and in-process channels: while nothing is read, the peer
                           is watched. If it ends its stream, weir_event_hangup is fired; if it
                           resets the connection, the channel is closed, and what was not read is
                           lost */
    const char *alpn;   /* the protocols that the handlers behind TLS speak, comma-separated, the
                           preferred first: those of a TLS context without .alpn; one with others is
                           rejected. Must live as long as the channel; default: any */
} weir_channel_options;

#define WEIR_CHANNEL_OPTIONS(...) WEIR_OPTIONS(weir_channel_options, __VA_ARGS__)

/* ---- references and state ---- */

/*
 * Retains a channel. Its executor's memory stays valid, too.
 * Thread: any.
 */
WEIR_API weir_channel *weir_channel_retain(weir_channel *channel);

/*
 * Releases a reference. NULL is ignored. The last release closes a channel that has no loop.
 * Thread: any.  Takes: channel.
 */
WEIR_API void weir_channel_release(weir_channel *channel);

/*
 * Process-wide unique id, never reused.
 * Thread: any.
 */
WEIR_API uint64_t weir_channel_id(const weir_channel *channel);

/*
 * The pipeline: the handlers of the channel. Borrowed.
 * Thread: any.
 */
WEIR_API weir_pipeline *weir_channel_pipeline(weir_channel *channel);

/*
 * The loop, borrowed; NULL before the first registration. See weir_channel_register for changes.
 * Thread: any.
 */
WEIR_API weir_executor *weir_channel_executor(const weir_channel *channel);

/*
 * The listener that accepted the channel, borrowed; NULL if none did.
 * Thread: any.
 */
WEIR_API weir_channel *weir_channel_parent(const weir_channel *channel);

/*
 * is_open: no close has begun. is_registered: it has a loop. is_active: it is connected, or, if it
 * is a listener or connectionless, bound. is_writable: its pending bytes are below the high mark.
 * Thread: any.
 */
WEIR_API bool weir_channel_is_open(const weir_channel *channel);
WEIR_API bool weir_channel_is_registered(const weir_channel *channel);
WEIR_API bool weir_channel_is_active(const weir_channel *channel);
WEIR_API bool weir_channel_is_writable(const weir_channel *channel);

/*
 * True if the peer has ended its stream in order. Stays true when the channel is closed.
 * Thread: any.
 */
WEIR_API bool weir_channel_has_peer_ended(const weir_channel *channel);

/*
 * Makes a close not wait for the peer's end of stream. For protocols in which the peer has
 * announced that it sends nothing more: no data can arrive that would make the kernel reset the
 * connection.
 * Thread: any.
 */
WEIR_API void weir_channel_skip_linger(weir_channel *channel);

/*
 * The local and the remote address. The first call on an active channel caches the address, so that
 * later calls succeed when the channel is closed, such as in `inactive`; except for datagram
 * channels, whose addresses may change.
 * Thread: any.  Fails: -ENOTCONN (no address yet, or closed and not cached), -errno.
 */
WEIR_API int weir_channel_local_address(weir_channel *channel, weir_address *ret_address);
WEIR_API int weir_channel_remote_address(weir_channel *channel, weir_address *ret_address);

/*
 * Writes "[id local - remote]", with "!" instead of "-" if not active. Returns `buffer`.
 * Thread: any.
 */
WEIR_API char *weir_channel_format(weir_channel *channel, char *buffer, size_t size);

/* ---- options ---- */

/*
 * Reads the options; replaces all of them. Options that apply when the socket is created or bound
 * (backlog, reuse_port, ...) no longer have an effect. The `socket_options` that are read stay
 * valid as long as the caller has a reference to the channel.
 * Thread: any.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API void weir_channel_get_options(weir_channel *channel, weir_channel_options *ret_options);
WEIR_API int weir_channel_set_options(weir_channel *channel, const weir_channel_options *options);

/*
 * Sets or reads an option of the socket, as setsockopt and getsockopt.
 * Thread: any.  Fails: -ENOTSUP (no socket), WEIR_ECLOSED, -errno.
 */
WEIR_API int weir_channel_set_socket_option(weir_channel *channel, int level, int name,
                                            const void *value, size_t length);
WEIR_API int weir_channel_get_socket_option(weir_channel *channel, int level, int name,
                                            void *ret_value, size_t *length);

/*
 * Switches auto-read. While it is off, one message is read for each weir_channel_request_read.
 * Thread: any.
 */
WEIR_API void weir_channel_set_auto_read(weir_channel *channel, bool on);
WEIR_API bool weir_channel_auto_read(const weir_channel *channel);

/* ---- flow control ---- */

/*
 * bytes_before_unwritable: bytes whose write makes the channel unwritable, so one less can be
 * written; 0 if it is. bytes_before_writable: bytes that must be sent before it becomes writable
 * again, 0 if it is.
 * pending_bytes: written, but not sent. A message counts as the memory that it uses: its bytes, 208
 * for the buffer header and the queue entry, and a buffer's unused capacity if that is larger than
 * its content.
 * Thread: any.
 */
WEIR_API int64_t weir_channel_bytes_before_unwritable(const weir_channel *channel);
WEIR_API int64_t weir_channel_bytes_before_writable(const weir_channel *channel);
WEIR_API int64_t weir_channel_pending_bytes(const weir_channel *channel);

/*
 * Time of the last send by the loop's clock, for timeouts on progress. It is recorded from the
 * first call on: 0 until the next send, and always 0 if there is no memory. On the loop, the
 * current time while nothing is queued.
 * Thread: any.
 */
WEIR_API int64_t weir_channel_sent_at(weir_channel *channel);

/*
 * The number of bytes sent, for limits on the rate. It is counted from the first call of this
 * function or of weir_channel_sent_at on, and always 0 if there is no memory.
 * Thread: any.
 */
WEIR_API int64_t weir_channel_bytes_sent(weir_channel *channel);

/*
 * Sets or clears one of 31 application-defined reasons (1 to 31) to be unwritable. The channel is
 * writable if none is set and the pending bytes allow it.
 * Thread: any.  Fails: -EINVAL.
 */
WEIR_API int weir_channel_set_user_writable(weir_channel *channel, unsigned reason, bool writable);

/*
 * Operations: each starts at the tail of the pipeline; `done` may be NULL.
 *
 * They run in the order in which they were called, on whichever threads. On the loop an operation
 * runs before the function returns, unless one that another thread called before has not run yet:
 * then it follows that one. While a handler of the channel is called its operations run
 * immediately, and weir_channel_abort always does on the loop. The bound of the executor's queue
 * does not apply to operations.
 */

/*
 * Registers the channel on a loop; of a group, on the next one, or on a new one (a thread per
 * channel). On failure the channel is closed. A deregistered channel can be registered on another
 * loop.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_register(weir_channel *channel, weir_executor *loop, weir_promise *done);
WEIR_API void weir_group_register(weir_group *group, weir_channel *channel, weir_promise *done);

/*
 * Deregisters the channel from its loop. It can be registered again, also on another loop. Until
 * then it neither sends nor receives; what was received is delivered before, and what is written
 * is sent afterwards. If its last loop ends meanwhile, calls of other threads fail: a write without
 * a promise then resets a stream. So register it before that, or write with a promise.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_deregister(weir_channel *channel, weir_promise *done);

/*
 * Bind, connect and disconnect. Disconnect closes a channel whose transport cannot disconnect.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_bind(weir_channel *channel, const weir_address *local,
                                weir_promise *done);
WEIR_API void weir_channel_connect(weir_channel *channel, const weir_address *remote,
                                   const weir_address *local, weir_promise *done);
WEIR_API void weir_channel_disconnect(weir_channel *channel, weir_promise *done);

/*
 * Writes a message; a flush sends it. On another thread the message counts against write_cap from
 * the call on. A write without a promise that is lost for want of memory resets a stream, if the
 * transport has a reset: the peer gets nothing that was written later, and no orderly end. Not with
 * keep_open_on_error.
 * Thread: any.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_channel_write(weir_channel *channel, weir_msg *msg, weir_promise *done);
WEIR_API void weir_channel_write_and_flush(weir_channel *channel, weir_msg *msg,
                                           weir_promise *done);

/*
 * Sends everything that was written.
 * Thread: any.
 */
WEIR_API void weir_channel_flush(weir_channel *channel);

/*
 * Requests one message, if auto-read is off.
 * Thread: any.
 */
WEIR_API void weir_channel_request_read(weir_channel *channel);

/*
 * Closes the channel: sends everything written before, shuts down the sending side, and discards
 * input until the peer closes, too, at most for close_timeout_ns. However slow the peer is, it gets
 * everything, unless it takes nothing for close_send_timeout_ns: then the connection is reset, and
 * `done` and the remaining writes fail with -ETIMEDOUT. Otherwise `done` succeeds when the channel
 * is closed. Closing twice is allowed. A channel without a loop sends nothing.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_close(weir_channel *channel, weir_promise *done);

/*
 * Closes the channel at once: writes that are not sent fail. If there are any, the peer sees a
 * reset, if the transport has one.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_abort(weir_channel *channel, weir_promise *done);

/*
 * Half closure: shuts down sending, after everything written before is sent; or receiving. The
 * channel stays open. A shutdown of the output passes the handlers, as a close does, and waits for
 * a slow peer without a timeout. Shutting down twice is allowed. `done` fails with WEIR_ECLOSED
 * after a close, -ENOTCONN before the channel is active, -ENOTSUP if the channel is not a stream.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_shutdown_output(weir_channel *channel, weir_promise *done);
WEIR_API void weir_channel_shutdown_input(weir_channel *channel, weir_promise *done);

/*
 * Fires a user event from the head of the pipeline.
 * Thread: any.  Takes: event.
 */
WEIR_API void weir_channel_fire_event(weir_channel *channel, weir_msg *event);

/*
 * The promise that succeeds when the channel is closed, for whatever reason. It never fails.
 * Borrowed. It is created by the first call, which returns NULL if there is no memory for it;
 * later calls return the same promise.
 * Thread: any.  Fails: NULL (-ENOMEM).
 */
WEIR_API weir_promise *weir_channel_closed(weir_channel *channel);

/*
 * Waits until the channel is closed.
 * Thread: any that may wait.  Fails: -EDEADLK, -ETIMEDOUT, -ENOMEM.
 */
WEIR_API int weir_channel_await_closed(weir_channel *channel, int64_t timeout_ns);

/*
 * The accepted channel that a listener's handlers read as a message. NULL for other messages.
 * Thread: any.
 */
WEIR_API weir_channel *weir_channel_of(weir_msg *msg);

/* --- attributes ------------------------------------------------------------------------------- */

/*
 * User values attached to a channel, by key.
 *
 *      static const weir_attribute session = {.name = "session", .free = session_free};
 *      weir_attribute_set(channel, &session, s);
 *      struct session *s = weir_attribute_get(channel, &session);
 *
 * The address of the weir_attribute is the key; its name is only for people. The channel owns a
 * value from the moment it is set, and frees it when it is replaced or the channel is freed.
 */

typedef struct weir_attribute {
    const char *name;
    void (*free)(void *value); /* any thread; NULL = nothing to free */
    void *reserved[2];
} weir_attribute;

/* An initial value, in the options of a server or client. */
typedef struct weir_attribute_value {
    const weir_attribute *attribute;
    void *value;
} weir_attribute_value;

/*
 * Sets a value and frees the previous one. NULL removes it, as weir_attribute_remove. On failure
 * the caller keeps the value.
 * Thread: any.  Takes: value, on success.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_attribute_set(weir_channel *channel,
                                              const weir_attribute *attribute, void *value);

/*
 * Sets a value if none is set. Returns the value that is set then; NULL without memory.
 * Thread: any.  Takes: value, if it is what is returned.
 */
WEIR_API void *weir_attribute_set_if_absent(weir_channel *channel, const weir_attribute *attribute,
                                            void *value);

/*
 * The value, borrowed; NULL if none is set. If other threads replace values, use them on the loop
 * only.
 * Thread: any.
 */
WEIR_API void *weir_attribute_get(weir_channel *channel, const weir_attribute *attribute);

/*
 * Removes the value and frees it. Returns false if none was set.
 * Thread: any.
 */
WEIR_API bool weir_attribute_remove(weir_channel *channel, const weir_attribute *attribute);

/*
 * Removes the value without freeing it, and returns it.
 * Thread: any.  Gives: value.
 */
WEIR_API WEIR_MUST_USE void *weir_attribute_take(weir_channel *channel,
                                                 const weir_attribute *attribute);

/* --- channel stats ---------------------------------------------------------------------------- */

/*
 * Statistics of all channels of the process.
 *
 * Each loop counts without locked instructions; reading sums up the counts. Counts survive the end
 * of a loop, and totals never decrease. The same numbers are in the metric registry (weir/metric.h)
 * as "channels.open{transport=...}", "channels.errors{transport=...,cause=...}", and so on.
 */

/* Errors of connect, accept, bind, receive, send and registration, by cause. */
typedef struct weir_channel_errors {
    uint64_t refused;     /* ECONNREFUSED */
    uint64_t reset;       /* ECONNRESET, ECONNABORTED */
    uint64_t pipe;        /* EPIPE: sent to a peer that has closed */
    uint64_t timed_out;   /* ETIMEDOUT: the system's, or the channel's connect timeout */
    uint64_t unreachable; /* ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN */
    uint64_t address;     /* EADDRINUSE, EADDRNOTAVAIL */
    uint64_t descriptors; /* EMFILE, ENFILE */
    uint64_t memory;      /* ENOMEM, ENOBUFS */
    uint64_t too_long;    /* EMSGSIZE: a datagram, sent or received */
    uint64_t rejected;    /* WEIR_EREJECTED, WEIR_ETOOMANY: the loop was shutting down, or the group
                             was full */
    uint64_t other;
} weir_channel_errors;

/* Listeners are counted separately, except for errors. */
typedef struct weir_channel_stats {
    uint64_t open;             /* channels that are not closed */
    uint64_t active;           /* those of them that are connected */
    uint64_t listeners;        /* listeners that are not closed */
    uint64_t listeners_active; /* those of them that are bound */

    /* Totals. */
    uint64_t created;
    uint64_t closed;
    uint64_t accepted;          /* included in `created` */
    uint64_t connected;         /* successful connection attempts */
    uint64_t connects_failed;   /* failed or abandoned connection attempts */
    uint64_t accepts_failed;    /* errors of accept; the listener continues */
    uint64_t turned_away;       /* connections closed at once because no descriptor was left */
    uint64_t messages_received; /* reads that returned data; datagrams */
    uint64_t bytes_received;    /* by weir_msg_size for messages that are not bytes */
    uint64_t messages_sent;     /* writes that the socket has taken completely */
    uint64_t bytes_sent;        /* bytes that the socket has taken */
    uint64_t writes_failed;     /* messages that were not sent */
    uint64_t unwritable;        /* times that a channel became unwritable */
    weir_channel_errors errors;
    uint64_t reserved[8];
} weir_channel_stats;

/*
 * Reads the statistics of all channels. Each number is exact by itself; `open` is `created` minus
 * `closed`. Takes a lock that loops take only when they start and end.
 * Thread: any.
 */
WEIR_API void weir_channel_read_stats(weir_channel_stats *ret_stats);

/*
 * The same for one transport: "tcp", "udp", "unix", "inproc", "embedded", "other".
 * Thread: any.  Fails: -EINVAL (another name, or NULL).
 */
WEIR_API int weir_channel_read_stats_of(const char *kind, weir_channel_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
