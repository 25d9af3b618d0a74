/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns readiness into completions: makes the system calls for backends that report only when a
 * descriptor is ready. epoll and poll use all of it, uring what it does not do in the ring.
 *
 * The functions named like members of weir__io_type implement those members: they set `wants` and
 * have the backend `arm` the handle. When events arrive, the backend calls weir__readiness_deliver,
 * which makes the calls and notifies the owner, in the order connect, write, read.
 */
#ifndef WEIR_LOOP_READINESS_H
#define WEIR_LOOP_READINESS_H

#include "loop/io.h"

/* The events to watch for: POLLIN, POLLOUT, POLLRDHUP, ...; 0 = none. */
unsigned weir__readiness_wanted(const weir__io_handle *handle);

/* Arms the handle if the kernel does not watch for all of them. */
void weir__readiness_watch(weir__io_handle *handle);

/*
 * Processes these events. If a handle has more to read than a turn allows and the backend is
 * edge-triggered, sets PENDING_READ. The owner may close the handle in a callback.
 */
void weir__readiness_deliver(weir__io_handle *handle, unsigned events);

/*
 * True for the most common event: data, and nothing else, for a stream that receives, and nothing
 * else. A handle that has left wants nothing. weir__readiness_receive then replaces
 * weir__readiness_deliver: the kernel watches for what is wanted already, unless the owner changes
 * that in a callback, and then it is armed by that call.
 */
static inline bool weir__readiness_is_data(const weir__io_handle *handle, unsigned events)
{
    return events == POLLIN && handle->wants == WEIR__IO_RECEIVE && handle->pending == 0 &&
           !handle->datagrams;
}

/* Receives from a stream, as often as a turn allows. */
void weir__readiness_receive(weir__io_handle *handle, unsigned events);

/* The same without an event, for PENDING_READ and PENDING_WRITE. */
void weir__readiness_pending(weir__io_handle *handle, unsigned pending);

void weir__readiness_accept_start(weir__io_handle *handle);
void weir__readiness_accept_stop(weir__io_handle *handle);
void weir__readiness_connect(weir__io_handle *handle, const struct sockaddr *address,
                             socklen_t length);
void weir__readiness_receive_start(weir__io_handle *handle, bool once);
void weir__readiness_receive_stop(weir__io_handle *handle);
ssize_t weir__readiness_send(weir__io_handle *handle, const struct iovec *vector, size_t count);
ssize_t weir__readiness_send_datagrams(weir__io_handle *handle, struct mmsghdr *messages,
                                       size_t count);
ssize_t weir__readiness_send_file(weir__io_handle *handle, int file, off_t offset, size_t count);
void weir__readiness_poll_start(weir__io_handle *handle, unsigned events);
void weir__readiness_poll_stop(weir__io_handle *handle);

/* Members of weir__io_type implemented by these functions. */
#define WEIR__READINESS_SLOTS                                                                 \
    .accept_start = weir__readiness_accept_start, .accept_stop = weir__readiness_accept_stop, \
    .connect = weir__readiness_connect, .receive_start = weir__readiness_receive_start,       \
    .receive_stop = weir__readiness_receive_stop, .send = weir__readiness_send,               \
    .send_datagrams = weir__readiness_send_datagrams, .send_file = weir__readiness_send_file, \
    .poll_start = weir__readiness_poll_start, .poll_stop = weir__readiness_poll_stop

/* Frees the memory kept for receiving datagrams. */
void weir__readiness_free_batch(weir__io *io);

/*
 * Makes one call that sends what the socket takes now. Returns the number of bytes, 0 if the socket
 * is full, or an error. Changes no state.
 */
ssize_t weir__readiness_send_now(weir__io_handle *handle, const struct iovec *vector, size_t count);

/* True for errors of accept(2) that concern one aborted connection, not the listener. */
bool weir__readiness_is_connection_error(int err);

#endif
