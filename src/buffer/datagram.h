/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a datagram, for the transport that receives and sends it.
 */
#ifndef WEIR_BUFFER_DATAGRAM_H
#define WEIR_BUFFER_DATAGRAM_H

#include <weir/datagram.h>

struct weir_datagram {
    weir_msg msg;
    weir_datagram *next; /* of those that wait to be read: the transport's */
    weir_msg *content;   /* NULL = no bytes */
    weir_buf *block;     /* of the pool's: this is its payload */
    uint16_t segment_size;
    bool is_local;       /* the recipient is an address of this host: a reply may come from it */
    bool has_source;     /* the sender is one: it is sent from there */
    weir_address sender; /* of both only `length` bytes are copied */
    weir_address recipient;
};

/* One that was received. Takes: content. Fails: -ENOMEM. */
int weir__datagram_received(weir_msg *content, const struct sockaddr *sender,
                            socklen_t sender_length, const weir_address *recipient,
                            weir_datagram **ret_datagram);

#endif
