/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/channel_stats.h - what all channels of the process have done so far, and how many there are.
 *
 * Each loop counts for itself, without a locked instruction, and who reads sums up. Nothing is lost
 * when a loop ends, and what counts something "so far" never goes back. The same figures are in the
 * metric registry (weir/metric.h) as "channels.open", "channels.errors.refused", and so on.
 */
#ifndef WEIR_CHANNEL_STATS_H
#define WEIR_CHANNEL_STATS_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

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
