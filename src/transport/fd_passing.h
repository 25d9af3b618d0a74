/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that pass through Unix sockets beside bytes (SCM_RIGHTS).
 */
#ifndef WEIR_TRANSPORT_FD_PASSING_H
#define WEIR_TRANSPORT_FD_PASSING_H

#include <weir/channel.h>
#include <weir/descriptors.h>

#include "loop/io.h"

/* Room for what goes beside a message. */
typedef struct weir__fd_passing {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * WEIR_DESCRIPTORS_MAX)];
} weir__fd_passing;

/* Lets the descriptors go with a message that is sent: those that have not gone yet. */
void weir__fd_passing_put(weir__fd_passing *rights, const weir_descriptors *descriptors,
                          struct msghdr *header);

/* Sends them through a stream, with as many of their bytes as it takes: returns how many those are,
 * 0 if there is no room, or an error. They go with the first byte, once. */
ssize_t weir__fd_passing_send(weir__io_handle *handle, weir_descriptors *descriptors);

/*
 * The message that was received: a weir_buf, or weir_descriptors if some have come and the handle
 * takes them. Fails, with a sentence:
 *   -EMSGSIZE  the packet did not fit
 *   -EMFILE    not all descriptors could be opened, and they were closed; gives the bytes
 *   -EPROTO    descriptors without a byte
 *   -ENOMEM
 * What is not given is NULL, and was released. Takes: the block.
 */
int weir__fd_passing_receive(const weir__io_handle *handle, const weir__io_datagram *received,
                             weir_msg **ret_msg, const char **ret_detail);

/* The same, and tells the channel. False if the message was lost. */
bool weir__fd_passing_tell(weir_channel *channel, const weir__io_handle *handle,
                           const weir__io_datagram *received);

#endif
