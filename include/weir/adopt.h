/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/adopt.h - sockets that others have made as channels, and channels' sockets for others.
 *
 *      systemd, a parent, a library --- descriptor ---> weir_adopt ---> register, as any channel
 *      a channel --- weir_channel_duplicate_descriptor ---> another process, a library
 *
 * What kind of channel it becomes is asked of the socket itself: TCP, UDP, and Unix sockets of all
 * kinds. A server adopts listeners by its options: `.adopt` of weir/server.h.
 */
#ifndef WEIR_ADOPT_H
#define WEIR_ADOPT_H

#include <weir/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

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
 * channel closes, unless weir_unix_leave_file says otherwise.
 * Thread: any.  Gives: descriptor.  Fails: -ENOTSUP (no socket), WEIR_ECLOSED, -EMFILE.
 */
WEIR_API int weir_channel_duplicate_descriptor(weir_channel *channel, int *ret_descriptor);

#ifdef __cplusplus
}
#endif

#endif
