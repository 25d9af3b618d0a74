/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readiness made into completions: the system calls of backends that only hear when a descriptor is
 * ready. epoll and poll take all of it, uring what it does not do by the ring itself.
 *
 * The functions of the same name as a slot of weir__io_type are that slot: they note in `wants`
 * what the owner wants and have the backend `arm` the handle. When it hears of events it calls
 * weir__readiness_deliver, which makes the calls and tells the owner, in the order connect, write,
 * read.
 */
#ifndef WEIR_LOOP_READINESS_H
#define WEIR_LOOP_READINESS_H

#include "loop/io.h"

/* The events to watch for, of POLLIN, POLLOUT, POLLRDHUP, ...; 0 = none. */
unsigned weir__readiness_wanted(const weir__io_handle *handle);

/* Has the backend arm the handle if the kernel does not watch for all of that. */
void weir__readiness_watch(weir__io_handle *handle);

/*
 * Does what can be done now that these events have come. A handle that has more to read than a turn
 * allows is made due if the backend's events are edges. The owner may close it inside.
 */
void weir__readiness_deliver(weir__io_handle *handle, unsigned events);

/* The same without an event: DUE_READ, DUE_WRITE. */
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

/* The slots of weir__io_type that are these functions. */
#define WEIR__READINESS_SLOTS                                                                 \
    .accept_start = weir__readiness_accept_start, .accept_stop = weir__readiness_accept_stop, \
    .connect = weir__readiness_connect, .receive_start = weir__readiness_receive_start,       \
    .receive_stop = weir__readiness_receive_stop, .send = weir__readiness_send,               \
    .send_datagrams = weir__readiness_send_datagrams, .send_file = weir__readiness_send_file, \
    .poll_start = weir__readiness_poll_start, .poll_stop = weir__readiness_poll_stop

/* What is kept to receive datagrams into is given back. */
void weir__readiness_free_batch(weir__io *io);

/* One call that sends what the socket takes now: bytes, 0 if it is full, or an error. No state
 * changes. */
ssize_t weir__readiness_send_now(weir__io_handle *handle, const struct iovec *vector, size_t count);

/* What accept says of a connection that is lost already, and not of the listener. */
bool weir__readiness_is_connection_error(int err);

#endif
