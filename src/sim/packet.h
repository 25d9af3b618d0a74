/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A datagram, or a packet of a Unix socket, with the descriptors that are passed with it.
 */
#ifndef WEIR_SIM_PACKET_H
#define WEIR_SIM_PACKET_H

#include <sys/socket.h>

#include "sim/stream.h"

/* The limit of the kernel (SCM_MAX_FD). */
#define WEIR__SIM_PASSED_MAX 253

/* Descriptors under way: references to files of the world, or descriptors of the real system. */
typedef struct weir__sim_passed {
    unsigned count;
    struct {
        weir__sim_file *file; /* NULL: `real` */
        int real;
    } items[];
} weir__sim_passed;

/*
 * Takes the descriptors of a message (SCM_RIGHTS); *ret_passed is NULL if there are none. Fails
 * with -EBADF, -EINVAL, -ENOMEM.
 */
int weir__sim_passed_take(const struct msghdr *message, weir__sim_passed **ret_passed);

/*
 * Gives the calling process descriptors, as far as the control buffer of the message has room, and
 * frees `passed`, which may be NULL. Sets MSG_CTRUNC if some were discarded.
 */
void weir__sim_passed_deliver(weir__sim_passed *passed, struct msghdr *message);
void weir__sim_passed_free(weir__sim_passed *passed);

typedef struct weir__sim_packet {
    weir__list link;
    size_t length;
    weir_address from;
    void *sender;             /* for the owner */
    struct ucred credentials; /* of its process */
    weir__sim_passed *passed;
    weir__sim_checksum checksum;
    uint8_t bytes[];
} weir__sim_packet;

/* Copies a part of a message. NULL without memory. */
weir__sim_packet *weir__sim_packet_create(const struct msghdr *message, size_t offset,
                                          size_t length);
weir__sim_packet *weir__sim_packet_copy(const weir__sim_packet *packet);
void weir__sim_packet_free(weir__sim_packet *packet);
void weir__sim_packets_free(weir__list *packets);

/*
 * Copies the packet into a message, with the sender's address, MSG_TRUNC and passed descriptors.
 * Returns what recvmsg returns. The caller removes the packet, unless it is a peek.
 */
ssize_t weir__sim_packet_receive(weir__sim_packet *packet, struct msghdr *message, int flags);

#endif
