/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of a handle: starts operations, records callbacks, and reports to the driver whatever
 * loop/io.h does not allow: an unexpected callback, too many reads in a turn, a byte that is not
 * the next one of the stream, anything after close. Its handle is freed inside `detached`, so that
 * a sanitizer detects later use.
 *
 * Both directions carry a stream (stream.h). The other end of the socket is often not a peer but
 * the test itself: `remote`.
 *
 * A test that wants to act inside a callback sets `react`.
 */
#ifndef WEIR_TEST_PEER_H
#define WEIR_TEST_PEER_H

#include "support/loop/driver.h"
#include "support/loop/sockets.h"
#include "support/loop/stream.h"

#define PEER_HISTORY_MAX 63
#define PEER_DESCRIPTORS_MAX 128

/* Callbacks, as letters of the history. */
enum peer_event {
    PEER_ACCEPTED = 'a',
    PEER_CONNECTED = 'c',
    PEER_RECEIVED = 'r',
    PEER_DATAGRAMS = 'd',
    PEER_ENDED = 'e',
    PEER_COMPLETE = '.',
    PEER_SENT = 's',
    PEER_POLLED = 'p',
    PEER_FAILED = 'f',
    PEER_DETACHED = 'x',
};

struct peer {
    struct driver *driver;
    weir__list link;
    weir__list notified_link;
    weir__io_handle *handle; /* NULL = not attached */
    int descriptor;          /* -1 = the backend closes it */
    int remote;              /* -1 = none; closed at the end */
    void (*react)(struct peer *peer, enum peer_event event);
    void (*on_datagram)(struct peer *peer, const weir__io_datagram *datagram);
    void *arg; /* for the test */

    /* Recorded callbacks. */
    char history[PEER_HISTORY_MAX + 1]; /* the first ones */
    unsigned accepts;
    unsigned connects;
    unsigned receives;
    unsigned datagrams;
    unsigned ends;
    unsigned completes;
    unsigned sents;
    unsigned polls;
    unsigned fails;
    unsigned detaches;
    int accept_error;
    int connect_result;
    int end_error;
    int send_error;    /* of a send, direct or by `sent` */
    ssize_t last_sent; /* last argument of `sent` */
    int fail_error;
    unsigned poll_events;
    uint64_t bytes;                        /* received */
    uint64_t bytes_sent;                   /* by peer_send */
    size_t largest;                        /* largest amount received at once */
    int descriptors[PEER_DESCRIPTORS_MAX]; /* the first accepted ones; closed at the end */

    /* Operations started. */
    bool accepting;
    bool connecting;
    bool receiving;
    bool once;
    bool detaching;
    bool closed;
    unsigned polling;
    size_t lent;     /* rest of a partial send */
    bool is_reading; /* read_complete has to follow */
    bool awaits_writable;

    /* Of this turn. */
    uint64_t turn;
    unsigned turn_reads;
    unsigned turn_ends;
    unsigned turn_completes;
    unsigned turn_polls;

    struct stream in;
    struct stream out;
    struct stream remote_in;
    struct stream remote_out;

    /* State of peer_send. */
    uint64_t to_send;
    unsigned elements; /* of each vector; 0 means 1 */
    char *chunk;
    size_t chunk_at;
    size_t chunk_end;
};

/* ---- coming and going ---- */

/* Creates a peer with an attached handle, which closes the descriptor. */
struct peer *peer_open(struct driver *driver, int descriptor);
struct peer *peer_open_datagrams(struct driver *driver, int descriptor);

/* The same for one end of a pair; `remote` is the other end. */
struct peer *peer_open_pair(struct driver *driver, enum pair_kind kind);

/* Attaches a detached peer to this driver's backend. Does not assert: returns the error. */
int peer_attach(struct peer *peer, struct driver *driver);

void peer_detach(struct peer *peer);
void peer_close(struct peer *peer); /* no effect the second time */

/* For the driver: called at the end of a turn in which the peer was notified; and to free it. */
void peer_end_turn(struct peer *peer);
void peer_free(struct peer *peer);

/* ---- what it asks for: the functions of io.h, noted ---- */

void peer_accept_start(struct peer *peer);
void peer_accept_stop(struct peer *peer);
void peer_connect(struct peer *peer, const struct address *address);
void peer_receive_start(struct peer *peer, bool once);
void peer_receive_stop(struct peer *peer);
void peer_poll_start(struct peer *peer, unsigned events);
void peer_poll_stop(struct peer *peer);
ssize_t peer_send_vector(struct peer *peer, const struct iovec *vector, size_t count);
ssize_t peer_send_file(struct peer *peer, int file, off_t offset, size_t count);
ssize_t peer_send_datagrams(struct peer *peer, struct mmsghdr *messages, size_t count);

/* Sends `count` more bytes of its stream; continues when `sent` is called. */
void peer_send(struct peer *peer, uint64_t count);

/* ---- the other end ---- */

/* Sends up to `count` more bytes of the stream, as many as the socket takes. Returns the number. */
size_t peer_remote_send(struct peer *peer, size_t count);

/* Receives and checks available data. Returns the number of bytes. */
size_t peer_remote_receive(struct peer *peer);

void peer_remote_close(struct peer *peer);
void peer_remote_reset(struct peer *peer);

#endif
