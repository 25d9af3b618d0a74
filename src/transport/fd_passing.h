/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing descriptors through Unix sockets (SCM_RIGHTS).
 */
#ifndef WEIR_TRANSPORT_FD_PASSING_H
#define WEIR_TRANSPORT_FD_PASSING_H

#include <weir/channel.h>
#include <weir/descriptors.h>

#include "loop/io.h"

/* Memory for the control message. */
typedef struct weir__fd_passing {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * WEIR_DESCRIPTORS_MAX)];
} weir__fd_passing;

/* Adds the descriptors that have not been sent yet to a message. */
void weir__fd_passing_put(weir__fd_passing *passing, const weir_descriptors *descriptors,
                          struct msghdr *header);

/* Sends them through a stream, with the first byte of their message. Returns the number of bytes
 * sent, 0 if there is no room, or an error. */
ssize_t weir__fd_passing_send(weir__io_handle *handle, weir_descriptors *descriptors);

/*
 * Creates the received message: a weir_buf, or weir_descriptors if there are any and the handle
 * accepts them. Fails, with a detail:
 *   -EMSGSIZE  the packet did not fit
 *   -EMFILE    not all descriptors could be received, and all were closed; gives the bytes
 *   -EPROTO    descriptors without a byte
 *   -ENOMEM
 * Otherwise gives NULL. Takes: the block.
 */
int weir__fd_passing_receive(const weir__io_handle *handle, const weir__io_datagram *received,
                             weir_msg **ret_msg, const char **ret_detail);

/* The same, and delivers it to the channel. False if the message was lost. */
bool weir__fd_passing_deliver(weir_channel *channel, const weir__io_handle *handle,
                              const weir__io_datagram *received);

#endif
