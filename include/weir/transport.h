/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/transport.h - TCP channels on event loops: one that connects, one that accepts. Bootstraps
 * make them (weir/server.h, weir/client.h); these are for programs that want it done by hand.
 */
#ifndef WEIR_TRANSPORT_H
#define WEIR_TRANSPORT_H

#include <sys/types.h>

#include <weir/channel.h>
#include <weir/datagram.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A channel to be registered and connected. NULL options: every default. The socket is made when it
 * is known whether it is IPv4 or IPv6.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_tcp_create(const weir_channel_options *options, weir_channel **ret_channel);

/*
 * A channel to be registered and bound: its reads are the channels that it accepts, with
 * `child_options`.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_tcp_create_server(const weir_channel_options *options,
                                    const weir_channel_options *child_options,
                                    weir_channel **ret_channel);

/* --- adopt ------------------------------------------------------------------------------------ */

/*
 * Sockets that others have made as channels, and channels' sockets for others.
 *
 *      systemd, a parent, a library --- descriptor ---> weir_adopt ---> register, as any channel
 *      a channel --- weir_channel_duplicate_descriptor ---> another process, a library
 *
 * What kind of channel it becomes is asked of the socket itself: TCP, UDP, and Unix sockets of all
 * kinds. A server adopts listeners by its options: `.adopt` of weir/server.h.
 */

/*
 * Makes a channel of a socket that is connected, or of datagrams and bound. It is active as soon as
 * it is registered. The socket is made non-blocking, for every process that has it, closed on exec,
 * and gets the options. On failure it stays the caller's, but those may have been set. What is no
 * such socket is an error, which the log has in words.
 * Thread: any.  Takes: descriptor, on success.  Gives: channel.  Fails: -EBADF, -ENOTSOCK,
 * -ENOTCONN, -EINVAL (it listens), -EAFNOSUPPORT, -ENOMEM, and what setting options says.
 */
WEIR_API int weir_adopt(int descriptor, const weir_channel_options *options,
                        weir_channel **ret_channel);

/*
 * The same for a socket that listens. Its file, if it is a Unix socket, is not removed in the end,
 * and its backlog stays what it is.
 * Thread: any.  Takes: descriptor, on success.  Gives: channel.  Fails: -EBADF, -ENOTSOCK, -EINVAL
 * (it does not listen), -EAFNOSUPPORT, -ENOMEM, and what setting options says.
 */
WEIR_API int weir_adopt_server(int descriptor, const weir_channel_options *options,
                               const weir_channel_options *child_options,
                               weir_channel **ret_channel);

/*
 * Another descriptor of a channel's socket, closed on exec. The socket lives until both have been
 * closed; who reads from one takes it from the other. The file of a Unix listener goes when the
 * channel closes, unless weir_unix_disable_unlink says otherwise.
 * Thread: any.  Gives: descriptor.  Fails: -ENOTSUP (no socket), WEIR_ECLOSED, -EMFILE.
 */
WEIR_API int weir_channel_duplicate_descriptor(weir_channel *channel, int *ret_descriptor);

/* --- udp -------------------------------------------------------------------------------------- */

/*
 * UDP channels on event loops: bound, connected, or both. Bootstraps make them
 * (weir/server.h, weir/client.h, with .kind = WEIR_KIND_DATAGRAM); this is for programs that want
 * it done by hand, and for multicast.
 *
 * A channel is active once it is bound or connected, and its messages are datagrams
 * (weir/datagram.h). One that cannot be sent fails its own promise, and nothing else. What the
 * network reports of those that were sent - nobody receives at that port: -ECONNREFUSED - is an
 * error event, and so is one that was too long to be received (-EMSGSIZE); the channel stays open.
 */

/*
 * A channel to be registered, and bound or connected. NULL options: every default. The socket is
 * made when it is known whether it is IPv4 or IPv6.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_udp_create(const weir_channel_options *options, weir_channel **ret_channel);

/*
 * Joins a multicast group, or leaves it: what is sent to the group's address comes to a channel
 * that is bound to its port. `interface` is a name, such as "eth0", or NULL for the system's
 * choice. With a `source` only what that address sends comes, and several can be joined; NULL is
 * any source. The ports do not matter. What only others on this host have joined does not come
 * (IP_MULTICAST_ALL is off).
 *
 * What is sent goes by the socket's options: IP_MULTICAST_IF, _TTL and _LOOP or their IPv6 equals
 * (weir_channel_set_socket_option). Who shares the port with others wants SO_REUSEADDR
 * (weir_channel_options.socket_options).
 * Thread: any.  Keeps: done.  Fails: -ENOTSUP (no UDP channel), -ENOTCONN (neither bound nor
 * connected), -EINVAL (no such group), -ENODEV (no such interface), -EADDRINUSE (joined already),
 * -EADDRNOTAVAIL (not joined), -ENAMETOOLONG, WEIR_ECLOSED, -ENOMEM.
 */
WEIR_API void weir_udp_join(weir_channel *channel, const weir_address *group, const char *interface,
                            const weir_address *source, weir_promise *done);
WEIR_API void weir_udp_leave(weir_channel *channel, const weir_address *group,
                             const char *interface, const weir_address *source, weir_promise *done);

/* --- unix ------------------------------------------------------------------------------------- */

/*
 * Unix sockets on event loops: streams, packets and datagrams between processes of
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
WEIR_API int weir_unix_disable_unlink(weir_channel *channel);

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

/* --- inproc ----------------------------------------------------------------------------------- */

/*
 * Channels inside the process: messages, of whatever type, go from one pipeline to
 * the other as they are, without a socket. Buffers that wait one behind the other are put together,
 * as long as they fit into what the channel would receive at a time. Addresses are names:
 * "inproc:name". The two ends run on executors of every kind, event loop or not, the same or two.
 *
 * A message has been sent when it is on the way to the peer, and is pending until then. On the way
 * there is room for the `receive_buffer` of the channel that reads (default 64 KiB, counted as the
 * marks of a channel are), or for one larger message. So a peer that does not read makes the
 * writer unwritable, as with a socket. Other options of sockets mean nothing here.
 *
 * A name that is taken fails to be bound with -EADDRINUSE, and is free again when its channel has
 * been closed. To connect where nobody listens, or where `backlog` others wait, or to a listener
 * that closes the connection before it has a loop, fails with -ECONNREFUSED. A write to a peer that
 * has closed fails with WEIR_ECLOSED; what that one had sent before can still be read. When it has
 * been, and half closure has kept the channel open, a write fails with -EPIPE and ends it.
 */

/*
 * A channel to be registered and connected.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_inproc_create(const weir_channel_options *options, weir_channel **ret_channel);

/*
 * A channel to be registered and bound to a name.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_inproc_create_server(const weir_channel_options *options,
                                       const weir_channel_options *child_options,
                                       weir_channel **ret_channel);

#ifdef __cplusplus
}
#endif

#endif
