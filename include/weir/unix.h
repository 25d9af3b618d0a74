/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/unix.h - Unix sockets on event loops: streams, packets and datagrams between processes of
 * one machine. Bootstraps make them for addresses such as "unix:/run/x.sock" and "unix:@name"
 * (abstract: without a file); these are for programs that want it done by hand.
 *
 *      WEIR_KIND_STREAM     bytes in order, as TCP
 *      WEIR_KIND_SEQPACKET  a connection, too, but every message is one packet on both sides. An
 *                           empty one cannot be written (-EINVAL): the peer would take it for the
 *                           end. One that is longer than the reader's receive_max is lost, which is
 *                           an error event (-EMSGSIZE)
 *      WEIR_KIND_DATAGRAM   weir/datagram.h. None is lost: who writes faster than is read waits.
 *                           So a recipient that does not read keeps those waiting whose datagrams
 *                           come after its own; a channel that is connected has only one
 *
 * On all of them descriptors can be passed: weir/descriptors.h.
 *
 * A socket's file is made by bind, with the permissions of .unix_mode, and removed by close. A file
 * at which nobody answers any more is replaced; otherwise bind fails with -EADDRINUSE. One that is
 * no socket is left alone: -EEXIST. Connecting to a listener whose backlog is full fails with
 * -EAGAIN.
 */
#ifndef WEIR_UNIX_H
#define WEIR_UNIX_H

#include <sys/types.h>

#include <weir/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A channel to be registered, and connected or, if it is one for datagrams, bound. NULL options:
 * every default. One for datagrams that is connected without an address of its own gets an abstract
 * one, so that it can be answered.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_unix_create(enum weir_kind kind, const weir_channel_options *options,
                              weir_channel **ret_channel);

/*
 * A channel to be registered and bound: its reads are the channels that it accepts, with
 * `child_options`.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL (also for datagrams).
 */
WEIR_API int weir_unix_create_server(enum weir_kind kind, const weir_channel_options *options,
                                     const weir_channel_options *child_options,
                                     weir_channel **ret_channel);

/*
 * Has a listener, or a channel of datagrams, leave its file when it is closed, because another
 * process has its socket.
 * Thread: any.  Fails: -EINVAL (neither, or not of Unix sockets).
 */
WEIR_API int weir_unix_leave_file(weir_channel *channel);

/* Who is at the other end, as the system knows it: of the time when it connected or listened. */
typedef struct weir_unix_peer {
    pid_t pid; /* 0 = it has none in our namespace */
    uid_t uid;
    gid_t gid;
} weir_unix_peer;

/*
 * Who the peer is, also after it has closed its end.
 * Thread: any.  Fails: -EINVAL (not a Unix channel), -ENOTCONN, WEIR_ECLOSED, -ENOTSUP (no socket
 * yet).
 */
WEIR_API int weir_unix_read_peer(weir_channel *channel, weir_unix_peer *ret_peer);

/*
 * The peer's supplementary groups. `*count` is how many there is room for, and then how many there
 * are.
 * Thread: any.  Fails: as weir_unix_read_peer, -ERANGE (there are more: `*count` says how many).
 */
WEIR_API int weir_unix_read_peer_groups(weir_channel *channel, gid_t *ret_groups, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
