/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a transport does for a channel, and what it tells it. Life cycle, pipeline, promises, marks
 * and options are the channel's (channel.c, life.c); a transport only moves bytes or messages.
 *
 * Thread: the channel's loop, unless a slot says otherwise. The weir__channel_... functions below
 * are called from the loop's dispatch or from a task, never from inside a slot.
 *
 * Everything that a transport tells, and every promise that outbound.h completes for it, runs
 * handlers and listeners, and those may close the channel: its `close` slot then runs inside the
 * call. From there on there is nothing to send (outbound.h says so) and nothing is to be told but
 * weir__channel_detached; the memory stays at least until that has returned.
 */
#ifndef WEIR_CHANNEL_TRANSPORT_H
#define WEIR_CHANNEL_TRANSPORT_H

#include <weir/channel.h>

#include "channel/config.h"

/* Whose figures a channel counts in (channel_stats.h): where those begin in an account. */
#define WEIR__STATS_SIZE 32

enum {
    WEIR__STATS_OTHER = 0,
    WEIR__STATS_TCP = 1 * WEIR__STATS_SIZE,
    WEIR__STATS_UDP = 2 * WEIR__STATS_SIZE,
    WEIR__STATS_UNIX = 3 * WEIR__STATS_SIZE,
    WEIR__STATS_INPROC = 4 * WEIR__STATS_SIZE,
    WEIR__STATS_EMBEDDED = 5 * WEIR__STATS_SIZE,
};

typedef struct weir__transport {
    const char *name;
    uint16_t stats;      /* WEIR__STATS_... */
    size_t size;         /* of the whole channel, whose first member is the weir_channel */
    int socket_family;   /* AF_UNIX; AF_UNSPEC = what the address says, but not that */
    int socket_type;     /* SOCK_STREAM, ... of those that carry a connection */
    bool accepts;        /* its reads are channels; it is active when bound */
    bool connectionless; /* the same, and it may be connected then; its errors are those of single
                            messages, and its addresses may change */
    bool has_disconnect; /* otherwise disconnect closes */
    bool lingers;        /* the peer's end of stream says that it has got what was sent */

    /* Any thread: whether the channel can live on that executor. */
    bool (*suits)(const weir_channel *channel, const weir_executor *executor);

    /* The loop takes the channel. An error fails the registration and closes the channel. */
    int (*attach)(weir_channel *channel);

    /*
     * The loop lets go of it; what was received is told first. True: it is through already.
     * Otherwise weir__channel_detached follows.
     */
    bool (*detach)(weir_channel *channel);

    /* Whether it is connected (or bound, if that is enough) at registration: an accepted channel
     * is; and after a disconnect. */
    bool (*is_active)(const weir_channel *channel);

    int (*bind)(weir_channel *channel, const weir_address *local);

    /*
     * An error is told at once; otherwise weir__channel_connected follows. `remote` is lent until
     * then, or until `close` is through; `local`, which may be NULL, for the call.
     */
    int (*connect)(weir_channel *channel, const weir_address *remote, const weir_address *local);
    int (*disconnect)(weir_channel *channel); /* NULL unless has_disconnect */

    /*
     * Ends everything and gives the descriptor back; a detach that is under way ends with it. True:
     * it is through already. Otherwise weir__channel_detached follows. Of a channel that is not
     * attached it is always through, and may be called on any thread: by who held it last.
     */
    bool (*close)(weir_channel *channel);

    /* `close` follows at once, and the peer is to see a reset. NULL = there is no such thing. */
    void (*reset)(weir_channel *channel);

    /* Bytes that were sent and that the peer has not acknowledged; an upper bound. NULL = what is
     * sent cannot be lost any more, or nobody knows. */
    int64_t (*unacknowledged)(const weir_channel *channel);

    /* The end of stream for the peer; and nothing more is received. NULL = there is no such thing.
     */
    int (*shut_output)(weir_channel *channel);
    int (*shut_input)(weir_channel *channel);

    /*
     * Reading until stopped, or one message. Starting again changes between the two. Stop is
     * immediate: nothing is told after it.
     */
    void (*read_start)(weir_channel *channel, bool once);
    void (*read_stop)(weir_channel *channel);

    /* Whether it can send such a message: an error fails the write. NULL = it can. */
    int (*admit)(weir_channel *channel, const weir_msg *msg);

    /*
     * Sends what is flushed of the channel's outbound queue (outbound.h): until that is empty, or
     * nothing more is taken for now - then it calls weir__channel_writable later - or the budget of
     * writes_per_flush is used up - then the channel flushes again in a task. Returns an error of
     * the whole channel, 0, or 1 for a used-up budget.
     */
    int (*flush)(weir_channel *channel);

    /*
     * Somebody, on whatever thread, has asked for WEIR__DEFERRED_TRANSPORT (weir__channel_defer):
     * the transport may tell now what has come. Also when it is detached or closed meanwhile. NULL
     * = nobody ever asks.
     */
    void (*deferred)(weir_channel *channel);

    /* Any thread, while the channel has not been closed: a lock of the channel's sees to that. */
    int (*local_address)(weir_channel *channel, weir_address *ret_address);
    int (*remote_address)(weir_channel *channel, weir_address *ret_address);
    int (*set_socket_option)(weir_channel *channel, int level, int name, const void *value,
                             size_t length);
    int (*get_socket_option)(weir_channel *channel, int level, int name, void *ret_value,
                             size_t *length);

    /*
     * Before the first registration: a socket that is connected, bound or listening already becomes
     * the channel's, with its options. On an error it stays the caller's. NULL = it has no socket.
     */
    int (*adopt)(weir_channel *channel, int descriptor);

    /* The same thread rule as for the addresses: its socket, or -1. NULL = it never has one. */
    int (*descriptor)(const weir_channel *channel);

    /* The channel has other options than before: applies them to what there is; NULL = nothing. */
    int (*configure)(weir_channel *channel);

    /* A message or an error has reached the tail. True: the message is taken, the error need not be
     * logged. NULL = false. */
    bool (*unhandled)(weir_channel *channel, weir_msg *msg);
    bool (*unhandled_error)(weir_channel *channel, int err, const char *detail);

    /* Any thread: the last reference has gone, `close` is through. NULL = nothing to free. */
    void (*destroy)(weir_channel *channel);
} weir__transport;

/*
 * Makes a channel of that kind: open, not registered, all of the transport's own part zero. Fails
 * with -ENOMEM. Keeps: config, parent (NULL = it was not accepted).
 */
int weir__channel_create(const weir__transport *transport, weir__config *config,
                         weir_channel *parent, weir_channel **ret_channel);

/* An accepted channel as the message that travels through the listener's pipeline. */
weir_msg *weir__channel_msg(weir_channel *channel);

/* ---- what a transport tells ---- */

/* A connection attempt has ended. */
void weir__channel_connected(weir_channel *channel, int err);

/* A message has come: takes it. False: stop telling, the channel does not want more now. */
bool weir__channel_received(weir_channel *channel, weir_msg *msg);

/* The last of this turn's messages has been told. */
void weir__channel_read_complete(weir_channel *channel);

/* The peer sends no more (0), or receiving has failed. Reading has stopped. */
void weir__channel_input_ended(weir_channel *channel, int err);

/* There is room to send again after a flush that was not taken whole; or sending has failed. */
void weir__channel_writable(weir_channel *channel, int err);

/* There may be: it is worth a try. */
void weir__channel_maybe_writable(weir_channel *channel);

/* The transport has let go of the channel, after detach or close. */
void weir__channel_detached(weir_channel *channel);

/* The transport cannot go on: the channel gets the error and is aborted. */
void weir__channel_failed(weir_channel *channel, int err, const char *detail);

/* An error that the channel survives, such as that of an accept: goes through the pipeline. */
void weir__channel_nonfatal_error(weir_channel *channel, int err, const char *detail);

#endif
