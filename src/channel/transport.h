/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between channels and transports. Lifecycle, pipeline, promises, marks and options
 * are the channel's (channel.c, lifecycle.c); a transport only moves bytes or messages.
 *
 * Thread: the channel's loop, unless a slot says otherwise. A transport calls the weir__channel_...
 * functions below from the loop's dispatch or from a task, never from inside a slot.
 *
 * Every such call, and every promise that outbound.h completes for the transport, runs handlers and
 * listeners, which may close the channel: its `close` slot then runs inside the call. After that
 * there is nothing to send, and the transport may call only weir__channel_detached. The channel's
 * memory stays valid at least until that returns.
 */
#ifndef WEIR_CHANNEL_TRANSPORT_H
#define WEIR_CHANNEL_TRANSPORT_H

#include <weir/channel.h>

#include "channel/config.h"

/* The counters of a transport (channel_stats.h): the index of its first one in a shard. */
#define WEIR__STATS_SIZE 32

enum {
    WEIR__STATS_OTHER = 0,
    WEIR__STATS_TCP = 1 * WEIR__STATS_SIZE,
    WEIR__STATS_UDP = 2 * WEIR__STATS_SIZE,
    WEIR__STATS_UNIX = 3 * WEIR__STATS_SIZE,
    WEIR__STATS_INPROC = 4 * WEIR__STATS_SIZE,
    WEIR__STATS_EMBEDDED = 5 * WEIR__STATS_SIZE,
};

/*
 * Result of a flush: a send is in progress that reads the first messages of the queue. They must
 * not be changed before weir__channel_writable.
 */
#define WEIR__FLUSH_LENT 2

typedef struct weir__transport {
    const char *name;
    uint16_t stats;      /* WEIR__STATS_... */
    size_t size;         /* of the whole channel, which begins with the weir_channel */
    int socket_family;   /* AF_UNIX; AF_UNSPEC = the address's, except AF_UNIX */
    int socket_type;     /* SOCK_STREAM, ... of connections */
    bool accepts;        /* a listener: it reads channels, and is active when bound */
    bool connectionless; /* active when bound, and may be connected then; an error concerns a single
                            message, and addresses may change */
    bool has_disconnect; /* otherwise a disconnect closes */
    bool lingers;        /* the peer's end of stream confirms what was sent */
    bool sends_buffers;  /* it can always send a weir_buf: see `admit` */

    /* Any thread: true if the channel can run on that executor. */
    bool (*suits)(const weir_channel *channel, const weir_executor *executor);

    /* Attaches the channel to its loop. An error fails the registration and closes the channel. */
    int (*attach)(weir_channel *channel);

    /*
     * Detaches it, after it has delivered received data. Returns true if that has finished;
     * otherwise weir__channel_detached follows.
     */
    bool (*detach)(weir_channel *channel);

    /* True if it is connected, or bound if that is enough. Asked on registration (an accepted
     * channel is) and after a disconnect. */
    bool (*is_active)(const weir_channel *channel);

    int (*bind)(weir_channel *channel, const weir_address *local);

    /*
     * Returns an error, or weir__channel_connected follows. `remote` is lent until then, or until
     * `close` has finished; `local`, which may be NULL, for the call.
     */
    int (*connect)(weir_channel *channel, const weir_address *remote, const weir_address *local);
    int (*disconnect)(weir_channel *channel); /* NULL unless has_disconnect */

    /*
     * Closes the socket, and finishes a detach in progress. Returns true if that has finished;
     * otherwise weir__channel_detached follows. For a channel that is not attached it always
     * finishes at once, and may be called on any thread: the one that released the last reference.
     */
    bool (*close)(weir_channel *channel);

    /* Makes the `close` that follows at once reset the connection. NULL = not possible. */
    void (*reset)(weir_channel *channel);

    /* Sent bytes that the peer has not acknowledged; an upper bound. NULL = sent data cannot be
     * lost, or it is unknown. */
    int64_t (*unacknowledged)(const weir_channel *channel);

    /* Shuts down sending, or receiving. NULL = not possible. */
    int (*shut_output)(weir_channel *channel);
    int (*shut_input)(weir_channel *channel);

    /*
     * Reads until stopped, or one message. Starting again switches between the two. Stopping is
     * immediate: nothing is delivered after it.
     */
    void (*read_start)(weir_channel *channel, bool once);
    void (*read_stop)(weir_channel *channel);

    /* Returns 0 if it can send the message, or an error, which fails the write. NULL = it can. Not
     * called for buffers if sends_buffers. */
    int (*admit)(weir_channel *channel, const weir_msg *msg);

    /*
     * Sends the flushed part of the outbound queue (outbound.h) until it is empty, or nothing more
     * is taken for now (then the transport calls weir__channel_writable later), or the budget of
     * writes_per_flush is used up (then the channel flushes again in a task). Returns an error that
     * closes the channel, 0, 1 for a used-up budget, or WEIR__FLUSH_LENT.
     */
    int (*flush)(weir_channel *channel);

    /*
     * A thread has deferred WEIR__DEFERRED_TRANSPORT (weir__channel_defer): the transport may
     * deliver now. Also called if the channel was detached or closed meanwhile. NULL = never
     * deferred.
     */
    void (*deferred)(weir_channel *channel);

    /* Any thread, until the channel is closed, which the channel's lock ensures. */
    int (*local_address)(weir_channel *channel, weir_address *ret_address);
    int (*remote_address)(weir_channel *channel, weir_address *ret_address);
    int (*set_socket_option)(weir_channel *channel, int level, int name, const void *value,
                             size_t length);
    int (*get_socket_option)(weir_channel *channel, int level, int name, void *ret_value,
                             size_t *length);

    /*
     * Before the first registration: adopts a connected, bound or listening socket and sets its
     * options. On an error the caller keeps it. NULL = the transport has no socket.
     */
    int (*adopt)(weir_channel *channel, int descriptor);

    /* Any thread, as the addresses: its socket, or -1. NULL = the transport has none. */
    int (*descriptor)(const weir_channel *channel);

    /* The options have changed: applies them. NULL = nothing to do. */
    int (*configure)(weir_channel *channel);

    /* A message or an error has reached the tail. Returns true if the transport took the
     * message, or if the error must not be logged. NULL = false. */
    bool (*unhandled)(weir_channel *channel, weir_msg *msg);
    bool (*unhandled_error)(weir_channel *channel, int err, const char *detail);

    /* Any thread: the channel is freed; `close` has finished. NULL = nothing to free. */
    void (*destroy)(weir_channel *channel);
} weir__transport;

/*
 * Creates a channel: open, not registered, with the part of the transport zeroed. Fails with
 * -ENOMEM. Keeps: config, parent (NULL = not accepted).
 */
int weir__channel_create(const weir__transport *transport, weir__config *config,
                         weir_channel *parent, weir_channel **ret_channel);

/* The channel as the message that the listener's handlers read. */
weir_msg *weir__channel_msg(weir_channel *channel);

/* ---- notifications of the transport ---- */

/* A connection attempt has succeeded or failed. */
void weir__channel_connected(weir_channel *channel, int err);

/* A message was received. Takes: msg. False: deliver no more for now. */
bool weir__channel_received(weir_channel *channel, weir_msg *msg);

/* The last message of this turn has been delivered. */
void weir__channel_read_complete(weir_channel *channel);

/* The peer has ended its stream (0), or receiving has failed. Reading has stopped. */
void weir__channel_input_ended(weir_channel *channel, int err);

/* While nothing is read, the peer has ended its stream (0), or the connection has failed. */
void weir__channel_hung_up(weir_channel *channel, int err);

/* The socket is writable again after a partial flush; or sending has failed. */
void weir__channel_writable(weir_channel *channel, int err);

/* The socket may be writable again. */
void weir__channel_maybe_writable(weir_channel *channel);

/* A detach or a close has finished. */
void weir__channel_detached(weir_channel *channel);

/* A fatal error: fires it and closes the channel. */
void weir__channel_failed(weir_channel *channel, int err, const char *detail);

/* An error that does not close the channel, such as of an accept: fires it. */
void weir__channel_nonfatal_error(weir_channel *channel, int err, const char *detail);

#endif
