/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/transport.h - creating channels by hand: TCP, UDP, Unix sockets, in-process channels, and
 * channels for existing sockets. Most programs use weir/server.h and weir/client.h instead.
 *
 *      create -> add handlers -> weir_channel_register -> weir_channel_connect or weir_channel_bind
 *
 * NULL options mean defaults throughout. Sockets are created when the address family is known, by
 * bind or connect.
 */
#ifndef WEIR_TRANSPORT_H
#define WEIR_TRANSPORT_H

#include <sys/types.h>

#include <weir/channel.h>
#include <weir/datagram.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- tcp -------------------------------------------------------------------------------------- */

/*
 * Creates a TCP channel that can be connected.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_tcp_create(const weir_channel_options *options,
                                           weir_channel **ret_channel);

/*
 * Creates a TCP listener. It reads the channels that it accepts, which have `child_options`.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_tcp_create_server(const weir_channel_options *options,
                                                  const weir_channel_options *child_options,
                                                  weir_channel **ret_channel);

/* --- adopt ------------------------------------------------------------------------------------ */

/*
 * Channels for existing sockets, and descriptors of a channel's socket.
 *
 *      systemd, a parent, a library --- descriptor ---> weir_adopt ---> weir_channel_register
 *      a channel --- weir_channel_duplicate_descriptor ---> another process, a library
 *
 * The socket determines the kind of channel: TCP, UDP, or any kind of Unix socket. A server adopts
 * listening sockets with `.adopt` (weir/server.h).
 */

/*
 * Creates a channel for a connected socket, or for a bound datagram socket. It is active once
 * registered. The options are applied to the socket, which is made non-blocking (for all processes
 * that share it) and close-on-exec; this may have happened even on failure. The log says what is
 * wrong with an unsuitable socket.
 * Thread: any.  Takes: descriptor, on success.  Gives: channel.  Fails: -EBADF, -ENOTSOCK,
 * -ENOTCONN, -EINVAL (it listens), -EAFNOSUPPORT, -ENOMEM, and with errors of setsockopt.
 */
WEIR_API WEIR_MUST_USE int weir_adopt(int descriptor, const weir_channel_options *options,
                                      weir_channel **ret_channel);

/*
 * Creates a listener for a listening socket. Its backlog is unchanged; the file of a Unix socket is
 * not removed on close.
 * Thread: any.  Takes: descriptor, on success.  Gives: channel.  Fails: -EBADF, -ENOTSOCK, -EINVAL
 * (it does not listen), -EAFNOSUPPORT, -ENOMEM, and with errors of setsockopt.
 */
WEIR_API WEIR_MUST_USE int weir_adopt_server(int descriptor, const weir_channel_options *options,
                                             const weir_channel_options *child_options,
                                             weir_channel **ret_channel);

/*
 * Duplicates the descriptor of a channel's socket, with close-on-exec. The socket stays open until
 * both are closed; bytes read from one are not seen by the other. The channel still removes the
 * file of a Unix listener when it closes: see weir_unix_disable_unlink.
 * Thread: any.  Gives: descriptor.  Fails: -ENOTSUP (no socket), WEIR_ECLOSED, -EMFILE.
 */
WEIR_API WEIR_MUST_USE int weir_channel_duplicate_descriptor(weir_channel *channel,
                                                             int *ret_descriptor);

/* --- udp -------------------------------------------------------------------------------------- */

/*
 * UDP channels are bound, connected, or both, and active from then on. Their messages are datagrams
 * (weir/datagram.h). A datagram that cannot be sent fails its own promise and nothing else. ICMP
 * errors for datagrams already sent (-ECONNREFUSED: port unreachable) and datagrams too long to be
 * received (-EMSGSIZE) are error events; the channel stays open.
 *
 * Servers and clients create them with .kind = WEIR_KIND_DATAGRAM.
 */

/*
 * Creates a UDP channel that can be bound or connected.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_udp_create(const weir_channel_options *options,
                                           weir_channel **ret_channel);

/*
 * Joins or leaves a multicast group. Datagrams sent to the group's address are received by channels
 * bound to their port; ports given here are ignored. `interface` is a name such as "eth0", or NULL
 * for the system's choice. With a `source`, only datagrams from that address are received, and
 * several sources can be joined; NULL means any. Groups that only other sockets of this host have
 * joined are not received (IP_MULTICAST_ALL is off).
 *
 * Sending is controlled by IP_MULTICAST_IF, IP_MULTICAST_TTL, IP_MULTICAST_LOOP and their IPv6
 * counterparts (weir_channel_set_socket_option). To share the port with other sockets, set
 * SO_REUSEADDR (weir_channel_options.socket_options).
 * Thread: any.  Keeps: done.  Fails: -ENOTSUP (not a UDP channel), -ENOTCONN (neither bound nor
 * connected), -EINVAL (not a group), -ENODEV (no such interface), -EADDRINUSE (already joined),
 * -EADDRNOTAVAIL (not joined), -ENAMETOOLONG, WEIR_ECLOSED, -ENOMEM.
 */
WEIR_API void weir_udp_join(weir_channel *channel, const weir_address *group, const char *interface,
                            const weir_address *source, weir_promise *done);
WEIR_API void weir_udp_leave(weir_channel *channel, const weir_address *group,
                             const char *interface, const weir_address *source, weir_promise *done);

/* --- unix ------------------------------------------------------------------------------------- */

/*
 * Unix sockets, at addresses such as "unix:/run/x.sock" and "unix:@name" (abstract: no file).
 *
 *      WEIR_KIND_STREAM     a byte stream, as TCP
 *      WEIR_KIND_SEQPACKET  a connection that preserves message boundaries: each message is one
 *                           packet. An empty one cannot be written (-EINVAL): the peer would take
 *                           it for the end. A packet longer than the reader's receive_max is lost
 *                           (error event -EMSGSIZE)
 *      WEIR_KIND_DATAGRAM   weir/datagram.h. None is lost: a write waits until the recipient has
 *                           room. So a recipient that does not read blocks the datagrams written
 *                           after its own, to other recipients, too
 *
 * All of them can pass descriptors: weir/descriptors.h.
 *
 * Binding creates the socket's file with the permissions of .unix_mode; closing removes it. Binding
 * replaces a stale file, at which no process listens; otherwise it fails with -EADDRINUSE, or with
 * -EEXIST if the file is not a socket. Connecting to a listener whose backlog is full fails with
 * -EAGAIN.
 */

/*
 * Creates a Unix channel that can be connected, or, for datagrams, also bound. A datagram channel
 * that is connected but not bound gets an abstract address, so that it can receive replies.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_unix_create(enum weir_kind kind,
                                            const weir_channel_options *options,
                                            weir_channel **ret_channel);

/*
 * Creates a Unix listener. It reads the channels that it accepts, which have `child_options`.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL (also for datagrams).
 */
WEIR_API WEIR_MUST_USE int weir_unix_create_server(enum weir_kind kind,
                                                   const weir_channel_options *options,
                                                   const weir_channel_options *child_options,
                                                   weir_channel **ret_channel);

/*
 * Makes a listener or datagram channel leave its file in place when it closes, because another
 * process uses the socket.
 * Thread: any.  Fails: -EINVAL (another kind of channel).
 */
WEIR_API int weir_unix_disable_unlink(weir_channel *channel);

/* Credentials of the peer process at the time it connected or listened. */
typedef struct weir_unix_peer {
    pid_t pid; /* 0 = not visible in our PID namespace */
    uid_t uid;
    gid_t gid;
} weir_unix_peer;

/*
 * Reads the peer's credentials, even after the peer has closed.
 * Thread: any.  Fails: -EINVAL (not a Unix channel), -ENOTCONN, WEIR_ECLOSED, -ENOTSUP (no socket
 * yet).
 */
WEIR_API WEIR_MUST_USE int weir_unix_read_peer(weir_channel *channel, weir_unix_peer *ret_peer);

/*
 * Reads the peer's supplementary groups. `*count` is the capacity of the array on entry, and the
 * number of groups on return.
 * Thread: any.  Fails: as weir_unix_read_peer, -ERANGE (the array is too small).
 */
WEIR_API WEIR_MUST_USE int weir_unix_read_peer_groups(weir_channel *channel, gid_t *ret_groups,
                                                      size_t *count);

/* --- inproc ----------------------------------------------------------------------------------- */

/*
 * Channels inside the process: messages of any type pass from one pipeline to the other without a
 * socket. Queued buffers are merged up to the reader's receive size. Addresses are names:
 * "inproc:name". Each end runs on an executor of any kind.
 *
 * A message counts as sent when it enters the link to the peer, and as pending until then. The link
 * holds `receive_buffer` bytes of the reading channel (default 64 KiB, counted as for the water
 * marks), or one larger message. So a peer that does not read makes the writer unwritable, as with
 * a socket. Other socket options have no effect.
 *
 * Binding a name in use fails with -EADDRINUSE; the name is free again when its channel is closed.
 * Connecting fails with -ECONNREFUSED if the name is not bound, `backlog` others are waiting, or
 * the listener closes the connection before registering it. Writing to a peer that has closed fails
 * with WEIR_ECLOSED; what the peer sent before can still be read. After that, if half closure keeps
 * the channel open, a write fails with -EPIPE and closes it.
 */

/*
 * Creates an in-process channel that can be connected.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_inproc_create(const weir_channel_options *options,
                                              weir_channel **ret_channel);

/*
 * Creates an in-process listener. It reads the channels that it accepts, which have
 * `child_options`.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_inproc_create_server(const weir_channel_options *options,
                                                     const weir_channel_options *child_options,
                                                     weir_channel **ret_channel);

#ifdef __cplusplus
}
#endif

#endif
