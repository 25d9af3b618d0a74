/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of datagrams, for the transport.
 */
#ifndef WEIR_BUFFER_DATAGRAM_H
#define WEIR_BUFFER_DATAGRAM_H

#include <weir/datagram.h>

struct weir_datagram {
    weir_msg msg;
    weir_datagram *next; /* list of received datagrams: for the transport */
    weir_msg *content;   /* NULL = empty */
    weir_buf *block;     /* the block of the pool that contains this struct */
    uint16_t segment_size;
    bool is_local;       /* the recipient is a local address: a reply may be sent from it */
    bool has_source;     /* the sender is a local address: it is sent from there */
    weir_address sender; /* only `length` bytes of these are initialized */
    weir_address recipient;
};

/* Creates a received datagram. Takes: content. Fails: -ENOMEM. */
int weir__datagram_received(weir_msg *content, const struct sockaddr *sender,
                            socklen_t sender_length, const weir_address *recipient,
                            weir_datagram **ret_datagram);

#endif
