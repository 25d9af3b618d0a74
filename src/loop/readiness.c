/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns readiness into completions: which events are watched for, and what they lead to. Sending,
 * which needs no event to begin with, is in readiness_send.c.
 *
 * Stopping is lazy: it clears a bit of `wants` and leaves the kernel's interest alone. When an
 * unwanted event arrives, the backend removes the interest (level-triggered), or `unread` is set
 * (edge-triggered). So an owner that pauses and resumes causes no system call.
 *
 * A handle with PENDING_READ waits for memory or for its next turn, not for an event, and is not
 * read before that.
 *
 * In each callback the owner may stop, close or fail the handle, and the descriptor's number may be
 * reused. Afterwards `wants` is checked again, which is 0 in that case, and only the handle itself
 * may be accessed: its memory is valid until `detached`.
 */
#include "loop/readiness.h"

#include <errno.h>
#include <poll.h>

#include "base/memory.h"
#include "base/no_stack_protector.h"
#include "executor/executor.h"
#include "os/clock.h"
#include "os/system.h"

#define WORK_SIZE (16 * 1024) /* bytes that count as one event */

#define WRITABLE (POLLOUT | POLLERR | POLLHUP)
#define READABLE (POLLIN | POLLRDHUP | POLLERR | POLLHUP)

/* Minimum number of blocks for datagrams: an unused block shows that the socket is empty. */
#define BATCH_MIN 2

#define SPARE_SIZE_MAX 4096 /* larger unused blocks are freed */

unsigned weir__readiness_wanted(const weir__io_handle *handle)
{
    unsigned events = 0;

    if (handle->state != WEIR__IO_ATTACHED)
        return 0;
    if ((handle->wants & WEIR__IO_CONNECT) != 0)
        return POLLOUT; /* nothing else until connected */
    if ((handle->wants & WEIR__IO_SEND) != 0 && (handle->pending & WEIR__IO_PENDING_WRITE) == 0)
        events |= POLLOUT;
    if ((handle->wants & (WEIR__IO_ACCEPT | WEIR__IO_RECEIVE)) != 0 &&
        (handle->pending & WEIR__IO_PENDING_READ) == 0)
        events |= handle->edge ? POLLIN | POLLRDHUP : POLLIN;
    if ((handle->wants & WEIR__IO_POLL) != 0)
        events |= handle->poll_events | POLLERR | POLLHUP;
    return events;
}

void weir__readiness_watch(weir__io_handle *handle)
{
    if ((weir__readiness_wanted(handle) & ~(unsigned)handle->armed) != 0)
        handle->io->type->arm(handle);
}

/* ---- reading: what receiving and accepting have in common ---- */

/* The reads of one handle in one turn. */
struct reading {
    unsigned events;
    unsigned count;   /* reads, datagrams or connections so far */
    size_t bytes;     /* of reads after which there may be more */
    int64_t since_ns; /* after the first; 0 = not yet */
    bool delivered;   /* a callback was made */
    bool is_cut;      /* the last read may have left data though its block was not filled */
    bool is_over;     /* no further call in this turn */
};

/* Makes one call and notifies the owner. Returns whether another call may find more. */
typedef bool read_step(weir__io_handle *handle, struct reading *reading);

/*
 * Messages in the error queue that nobody reads, such as those of IP_RECVERR, keep a descriptor in
 * POLLERR while there is nothing to read. They are discarded, or the loop would spin.
 */
static void discard_errors(weir__io_handle *handle)
{
    struct msghdr nowhere = {0};
    unsigned left = WEIR__IO_READS_MAX;

    while (left-- > 0 && weir__sys.recvmsg(handle->descriptor, &nowhere, MSG_ERRQUEUE) >= 0) {
    }
}

/* No event reports the remaining data: it is read in the next turn, or noted until it is wanted. */
static void note_unread(weir__io_handle *handle, uint8_t want)
{
    if ((handle->wants & want) != 0)
        weir__io_set_pending(handle, WEIR__IO_PENDING_READ);
    else
        handle->unread = true;
}

/* An edge that reports a hang-up is the last: the handle is read until the end or the error. */
static bool reads_to_the_end(const weir__io_handle *handle, const struct reading *reading)
{
    return handle->edge && (reading->events & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/*
 * The handle has had its share of the turn. A read of tiny messages may take much longer than a
 * read of one large message, so the time is measured, too: from the second read on, so that the
 * usual one reads no clock.
 */
static bool has_had_its_share(const weir__io_handle *handle, struct reading *reading)
{
    int64_t now_ns;

    if (reading->count >= handle->reads || reading->bytes >= WEIR__IO_BYTES_MAX)
        return true;
    now_ns = weir__monotonic_now();
    if (reading->since_ns == 0)
        reading->since_ns = now_ns;
    return now_ns - reading->since_ns >= WEIR__IO_READING_NS;
}

/* Inlined with its step, which makes a read of a stream one function. */
static inline __attribute__((always_inline)) void
read_turn(weir__io_handle *handle, unsigned events, uint8_t want, read_step *step)
{
    struct reading reading = {.events = events};
    bool more;

    while ((more = step(handle, &reading))) {
        if (reading.is_over || (handle->wants & want) == 0 || has_had_its_share(handle, &reading))
            break;
        handle->io->work++;
    }
    if (more && handle->edge && weir__io_is_attached(handle))
        note_unread(handle, want);
    if (reading.delivered && weir__io_may_notify(handle))
        handle->owner->read_complete(handle);
}

static void start_reading(weir__io_handle *handle, uint8_t want)
{
    handle->wants |= want;
    if (handle->unread) {
        handle->unread = false;
        weir__io_set_pending(handle, WEIR__IO_PENDING_READ);
    }
    weir__readiness_watch(handle);
}

/* The socket is empty for now. */
static bool drained(weir__io_handle *handle, const struct reading *reading)
{
    if ((reading->events & POLLERR) != 0 && !reading->delivered)
        discard_errors(handle);
    return false;
}

/*
 * End of stream or an error, which also ends this turn. Starting again reports it again if it
 * persists, as the end of a stream does. A lent send that has failed has taken the error of the
 * socket, and a reset looks like the end of the stream: so the result of the send comes first. An
 * error that this read has taken is reported now: it does not come again.
 */
static bool end_receiving(weir__io_handle *handle, struct reading *reading, int err)
{
    if (err == 0 && (handle->wants & WEIR__IO_LENDS) != 0) {
        weir__io_set_pending(handle, WEIR__IO_PENDING_READ);
        return false;
    }
    handle->wants &= (uint8_t) ~(WEIR__IO_RECEIVE | WEIR__IO_ONCE);
    reading->is_over = true;
    reading->delivered = true;
    handle->owner->receive_ended(handle, err);
    return true;
}

/* Called before the callback, in which the owner may start again. */
static void stop_if_once(weir__io_handle *handle)
{
    if ((handle->wants & WEIR__IO_ONCE) != 0)
        handle->wants &= (uint8_t) ~(WEIR__IO_RECEIVE | WEIR__IO_ONCE);
}

/* ---- receiving without memory ---- */

/* An empty datagram ends a connection unless it carries descriptors: receive_messages. */
static bool peeked_end(const weir__io_handle *handle, const struct msghdr *header)
{
    if (!handle->datagrams)
        return true;
    return handle->empty_is_end && (header->msg_flags & MSG_CTRUNC) == 0;
}

/*
 * There is no memory to receive into. End of stream and errors are still reported, because a peek
 * needs no memory: connections that end release memory. A handle with data is parked until there
 * may be memory.
 */
static __attribute__((noinline, cold)) bool receive_without_memory(weir__io_handle *handle,
                                                                   struct reading *reading)
{
    char byte;
    struct iovec vector = {&byte, sizeof(byte)};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    ssize_t length;

    do {
        weir__counter_add(handle->io->stats.receives, 1);
        length = weir__sys.recvmsg(handle->descriptor, &header, MSG_PEEK);
    } while (length < 0 && errno == EINTR);
    if (length < 0 && errno == EAGAIN)
        return drained(handle, reading);
    if (length < 0)
        return end_receiving(handle, reading, -errno);
    if (length == 0 && peeked_end(handle, &header))
        return end_receiving(handle, reading, 0);
    weir__io_park(handle);
    return false;
}

/* ---- receiving a stream ---- */

/*
 * A Unix socket ends a read at passed descriptors, which are discarded here, and reports it by
 * MSG_CTRUNC: then a short read has not emptied the socket.
 */
static ssize_t receive_piece(weir__io_handle *handle, const weir__io_block *block, size_t size,
                             struct reading *reading)
{
    struct iovec vector = {block->base, size};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    ssize_t length;

    weir__counter_add(handle->io->stats.receives, 1);
    length = weir__sys.recvmsg(handle->descriptor, &header, 0);
    if ((header.msg_flags & MSG_CTRUNC) != 0)
        reading->is_cut = true;
    return length;
}

/* The usual read: of a handle without edges. */
static inline ssize_t fast_receive(weir__io_handle *handle, const weir__io_block *block,
                                   size_t size)
{
    weir__counter_add(handle->io->stats.receives, 1);
    return weir__sys.recv(handle->descriptor, block->base, size, 0);
}

/* A read after an edge: sets `is_cut`, and counts small reads for a backend that treats them
 * differently. */
static __attribute__((noinline)) ssize_t
receive(weir__io_handle *handle, const weir__io_block *block, size_t size, struct reading *reading)
{
    ssize_t length;

    reading->is_cut = reads_to_the_end(handle, reading);
    if (handle->unix_socket)
        length = receive_piece(handle, block, size, reading);
    else
        length = fast_receive(handle, block, size);
    if (length >= WEIR__IO_SMALL)
        handle->small_reads = 0;
    else if (length > 0 && handle->small_reads < UINT8_MAX)
        handle->small_reads++;
    return length;
}

/* The read was interrupted, the socket is empty, or the stream has ended. */
static __attribute__((noinline)) bool receive_nothing(weir__io_handle *handle,
                                                      struct reading *reading,
                                                      const weir__io_block *block, int err)
{
    handle->io->memory.free(handle->io->memory.arg, block);
    if (err == -EINTR)
        return true;
    if (err == -EAGAIN)
        return drained(handle, reading);
    return end_receiving(handle, reading, err);
}

/* A read that leaves space in the block has emptied the socket, unless it was cut short. */
static inline bool receive_block(weir__io_handle *handle, struct reading *reading)
{
    weir__io *io = handle->io;
    size_t size = handle->window != 0 ? handle->window : WEIR__IO_WINDOW;
    weir__io_block block;
    ssize_t length;

    if (io->memory.alloc(io->memory.arg, size, &block) < 0)
        return receive_without_memory(handle, reading);
    if (handle->edge)
        length = receive(handle, &block, size, reading);
    else
        length = fast_receive(handle, &block, size);
    if (length <= 0)
        return receive_nothing(handle, reading, &block, length < 0 ? -errno : 0);
    io->work += (unsigned)length / WORK_SIZE;
    stop_if_once(handle);
    handle->owner->received(handle, &block, (size_t)length);
    reading->count++;
    reading->delivered = true;
    if ((size_t)length != size && !reading->is_cut)
        return false;
    reading->bytes += (size_t)length;
    return true;
}

WEIR__NO_STACK_PROTECTOR void weir__readiness_receive(weir__io_handle *handle, unsigned events)
{
    read_turn(handle, events, WEIR__IO_RECEIVE, receive_block);
}

/* ---- receiving datagrams ---- */

/*
 * Arguments of recvmmsg and of the callback, shared by all handles of a backend. The space for
 * ancillary data serves all datagrams, or one that may carry descriptors. Small unused blocks are
 * kept for the next batch, since most batches are not full.
 */
struct weir__readiness_batch {
    weir__io_block spare[WEIR__IO_READS_MAX];
    unsigned spare_count;
    size_t spare_size; /* of each */
    struct mmsghdr messages[WEIR__IO_READS_MAX];
    struct iovec vectors[WEIR__IO_READS_MAX];
    struct sockaddr_storage names[WEIR__IO_READS_MAX];
    weir__io_datagram datagrams[WEIR__IO_READS_MAX];
    _Alignas(struct cmsghdr) char controls[WEIR__IO_READS_MAX][WEIR__IO_CONTROL_SIZE];
};

_Static_assert(WEIR__IO_FD_PASSING_SIZE <= WEIR__IO_READS_MAX * WEIR__IO_CONTROL_SIZE,
               "room for one");

/* If there is space for ancillary data, the kernel installs descriptors that a peer has passed. */
static void prepare_message(const weir__io_handle *handle, unsigned i, size_t size)
{
    struct weir__readiness_batch *batch = handle->io->batch;
    size_t control_size = handle->receive_fds   ? WEIR__IO_FD_PASSING_SIZE
                          : handle->unix_socket ? 0
                                                : WEIR__IO_CONTROL_SIZE;

    batch->vectors[i] = (struct iovec){batch->datagrams[i].block.base, size};
    batch->messages[i].msg_hdr = (struct msghdr){
        .msg_name = &batch->names[i],
        .msg_namelen = sizeof(batch->names[i]),
        .msg_iov = &batch->vectors[i],
        .msg_iovlen = 1,
        .msg_control = batch->controls[i],
        .msg_controllen = control_size,
    };
}

static void free_spare(weir__io *io)
{
    struct weir__readiness_batch *batch = io->batch;

    while (batch->spare_count > 0)
        io->memory.free(io->memory.arg, &batch->spare[--batch->spare_count]);
}

static int take_block(weir__io *io, size_t size, weir__io_block *ret_block)
{
    struct weir__readiness_batch *batch = io->batch;

    if (batch->spare_count == 0)
        return io->memory.alloc(io->memory.arg, size, ret_block);
    *ret_block = batch->spare[--batch->spare_count];
    return 0;
}

/* Allocates blocks for up to `count` datagrams. Returns the number of blocks. */
static unsigned prepare_batch(weir__io_handle *handle, unsigned count)
{
    weir__io *io = handle->io;
    size_t size = handle->window != 0 ? handle->window : WEIR__IO_DATAGRAM_WINDOW;
    unsigned i = 0;

    if (io->batch == NULL)
        io->batch = weir__zalloc(sizeof(*io->batch));
    if (io->batch == NULL)
        return 0;
    if (io->batch->spare_size != size)
        free_spare(io);
    io->batch->spare_size = size;
    for (; i < count; i++) {
        if (take_block(io, size, &io->batch->datagrams[i].block) < 0)
            break;
        prepare_message(handle, i, size);
    }
    return i;
}

/* Always fits: all spare blocks were used before new ones were allocated. */
static void save_unused(weir__io *io, unsigned from, unsigned count)
{
    struct weir__readiness_batch *batch = io->batch;

    while (count > from) {
        const weir__io_block *block = &batch->datagrams[--count].block;

        if (batch->spare_size <= SPARE_SIZE_MAX)
            batch->spare[batch->spare_count++] = *block;
        else
            io->memory.free(io->memory.arg, block);
    }
}

void weir__readiness_free_batch(weir__io *io)
{
    if (io->batch != NULL)
        free_spare(io);
    weir__free(io->batch);
    io->batch = NULL;
}

static bool has_passed_fds(struct msghdr *header)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at != NULL; at = CMSG_NXTHDR(header, at))
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
            return true;
    return false;
}

/*
 * Returns the number of datagrams; 0 = the connection has ended: that is received as one empty
 * datagram, which may carry credentials if the socket option asks for them.
 */
static int receive_messages(weir__io_handle *handle, unsigned count)
{
    struct mmsghdr *messages = handle->io->batch->messages;
    int received;

    do {
        weir__counter_add(handle->io->stats.receives, 1);
        received = weir__sys.recvmmsg(handle->descriptor, messages, count, MSG_CMSG_CLOEXEC, NULL);
    } while (received < 0 && errno == EINTR);
    if (received < 0)
        return -errno;
    if (handle->empty_is_end && messages[0].msg_len == 0 && !has_passed_fds(&messages[0].msg_hdr))
        return 0;
    return received;
}

static void deliver_datagrams(weir__io_handle *handle, unsigned count)
{
    struct weir__readiness_batch *batch = handle->io->batch;

    for (unsigned i = 0; i < count; i++) {
        batch->datagrams[i].length = batch->messages[i].msg_len;
        batch->datagrams[i].header = &batch->messages[i].msg_hdr;
    }
    stop_if_once(handle);
    handle->owner->received_datagrams(handle, batch->datagrams, count);
}

/*
 * Sizes the next batch: doubles it if all blocks were used, halves it if most were not. A batch
 * that is not full has emptied the socket.
 */
static void adapt_batch(weir__io_handle *handle, unsigned received, unsigned count)
{
    if (count < handle->batch)
        return;
    if (received == count && count < WEIR__IO_READS_MAX)
        handle->batch *= 2;
    else if (received < count / 2 && count > BATCH_MIN)
        handle->batch /= 2;
}

static unsigned batch_size(const weir__io_handle *handle, const struct reading *reading)
{
    unsigned left = handle->reads - reading->count;

    if (handle->empty_is_end || handle->receive_fds)
        return 1;
    return handle->batch < left ? handle->batch : left;
}

static bool receive_batch(weir__io_handle *handle, struct reading *reading)
{
    unsigned count = prepare_batch(handle, batch_size(handle, reading));
    int received;

    if (count == 0)
        return receive_without_memory(handle, reading);
    received = receive_messages(handle, count);
    save_unused(handle->io, received > 0 ? (unsigned)received : 0, count);
    if (received == -EAGAIN)
        return drained(handle, reading);
    if (received <= 0)
        return end_receiving(handle, reading, received);
    reading->count += (unsigned)received;
    reading->delivered = true;
    adapt_batch(handle, (unsigned)received, count);
    deliver_datagrams(handle, (unsigned)received);
    return (unsigned)received == count || reads_to_the_end(handle, reading);
}

void weir__readiness_receive_start(weir__io_handle *handle, bool once)
{
    if (!weir__io_is_attached(handle))
        return;
    handle->wants &= (uint8_t)~WEIR__IO_ONCE;
    if (once)
        handle->wants |= WEIR__IO_ONCE;
    if (handle->batch == 0)
        handle->batch = BATCH_MIN;
    start_reading(handle, WEIR__IO_RECEIVE);
}

void weir__readiness_receive_stop(weir__io_handle *handle)
{
    handle->wants &= (uint8_t) ~(WEIR__IO_RECEIVE | WEIR__IO_ONCE);
}

/* ---- accepting ---- */

bool weir__readiness_is_connection_error(int err)
{
    switch (err) {
    case -ECONNABORTED:
    case -EPROTO:
    case -ENOPROTOOPT:
    case -EOPNOTSUPP:
    case -ENETDOWN:
    case -ENETUNREACH:
    case -EHOSTDOWN:
    case -EHOSTUNREACH:
    case -ENONET:
    case -EINTR:
        return true;
    default:
        return false;
    }
}

/*
 * A call that finds no connection costs half of one that does. After a turn with only one, the next
 * turn ends after one: if more are there the handle is reported again, as it is level-triggered,
 * and in that turn all are accepted. So connections that come one at a time cost one call each.
 */
static bool expects_one(weir__io_handle *handle, const struct reading *reading)
{
    uint8_t turn = (uint8_t)atomic_load_explicit(&handle->io->stats.waits, memory_order_relaxed);

    if (reading->count == 1) {
        handle->expects_one &= (uint8_t)(turn - handle->small_reads) > 1;
        handle->small_reads = turn;
    }
    return handle->expects_one;
}

static bool accept_failed(weir__io_handle *handle, struct reading *reading, int err)
{
    if (err == -EAGAIN) {
        handle->expects_one = reading->count <= 2;
        return drained(handle, reading);
    }
    if (weir__readiness_is_connection_error(err))
        return true;
    handle->wants &= (uint8_t)~WEIR__IO_ACCEPT;
    reading->is_over = true;
    reading->delivered = true;
    handle->owner->accepted(handle, err, NULL, 0);
    return true;
}

static bool accept_one(weir__io_handle *handle, struct reading *reading)
{
    struct sockaddr_storage storage;
    struct sockaddr *peer = (struct sockaddr *)&storage;
    socklen_t length = sizeof(storage);
    int descriptor;

    reading->count++;
    weir__counter_add(handle->io->stats.accepts, 1);
    descriptor = weir__sys.accept4(handle->descriptor, peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0)
        return accept_failed(handle, reading, -errno);
    reading->delivered = true;
    reading->is_over = expects_one(handle, reading);
    handle->owner->accepted(handle, descriptor, peer, length);
    return true;
}

void weir__readiness_accept_start(weir__io_handle *handle)
{
    if (!weir__io_is_attached(handle))
        return;
    handle->edge = false; /* also a ring checks the state first */
    start_reading(handle, WEIR__IO_ACCEPT);
}

/* An exclusive handle that is not wanted must not take wake-ups from other loops. */
void weir__readiness_accept_stop(weir__io_handle *handle)
{
    handle->wants &= (uint8_t)~WEIR__IO_ACCEPT;
    if (handle->exclusive && weir__io_is_attached(handle))
        handle->io->type->arm(handle);
}

/* ---- connecting ---- */

void weir__readiness_connect(weir__io_handle *handle, const struct sockaddr *address,
                             socklen_t length)
{
    int err;

    if (!weir__io_is_attached(handle))
        return;
    weir__counter_add(handle->io->stats.connects, 1);
    err = weir__sys.connect(handle->descriptor, address, length) < 0 ? -errno : 0;
    if (err == -EINPROGRESS || err == -EINTR) {
        handle->wants |= WEIR__IO_CONNECT;
        weir__readiness_watch(handle);
    } else {
        handle->result = err;
        weir__io_set_pending(handle, WEIR__IO_PENDING_CONNECT);
    }
}

static void finish_connect(weir__io_handle *handle)
{
    int err = 0;
    socklen_t length = sizeof(err);

    if (weir__sys.getsockopt(handle->descriptor, SOL_SOCKET, SO_ERROR, &err, &length) < 0)
        err = errno;
    handle->wants &= (uint8_t)~WEIR__IO_CONNECT;
    handle->owner->connected(handle, -err);
}

/* ---- polling ---- */

void weir__readiness_poll_start(weir__io_handle *handle, unsigned events)
{
    if (!weir__io_is_attached(handle))
        return;
    handle->wants |= WEIR__IO_POLL;
    handle->poll_events = (uint16_t)events;
    weir__readiness_watch(handle);
}

void weir__readiness_poll_stop(weir__io_handle *handle)
{
    handle->wants &= (uint8_t)~WEIR__IO_POLL;
}

/* ---- events ---- */

static void deliver_writable(weir__io_handle *handle)
{
    uint8_t wants = handle->wants;

    if ((wants & WEIR__IO_CONNECT) != 0)
        finish_connect(handle);
    if ((wants & handle->wants & WEIR__IO_SEND) != 0) { /* not a send started just now */
        handle->wants &= (uint8_t)~WEIR__IO_SEND;
        handle->owner->sent(handle, 0);
    }
}

static void deliver_readable(weir__io_handle *handle, unsigned events)
{
    if ((handle->pending & WEIR__IO_PENDING_READ) != 0)
        return;
    if ((handle->wants & WEIR__IO_CONNECT) != 0)
        handle->unread = handle->edge;
    else if ((handle->wants & WEIR__IO_RECEIVE) != 0 && handle->datagrams)
        read_turn(handle, events, WEIR__IO_RECEIVE, receive_batch);
    else if ((handle->wants & WEIR__IO_RECEIVE) != 0)
        weir__readiness_receive(handle, events);
    else if ((handle->wants & WEIR__IO_ACCEPT) != 0)
        read_turn(handle, events, WEIR__IO_ACCEPT, accept_one);
    else
        handle->unread = handle->edge;
}

static void deliver_polled(weir__io_handle *handle, unsigned events)
{
    events &= handle->poll_events | (unsigned)(POLLERR | POLLHUP);
    if (events != 0)
        handle->owner->polled(handle, events);
}

static inline void deliver_ready(weir__io_handle *handle, unsigned events)
{
    if ((events & WRITABLE) != 0)
        deliver_writable(handle);
    if ((events & READABLE) != 0 && weir__io_is_attached(handle))
        deliver_readable(handle, events);
}

/* Events that led to a read are not those of a poll that the owner has started in it. */
WEIR__NO_STACK_PROTECTOR void weir__readiness_deliver(weir__io_handle *handle, unsigned events)
{
    uint8_t wants = handle->wants;

    deliver_ready(handle, events);
    if ((wants & handle->wants & WEIR__IO_POLL) != 0)
        deliver_polled(handle, events);
    weir__readiness_watch(handle);
}

void weir__readiness_pending(weir__io_handle *handle, unsigned pending)
{
    unsigned events = 0;

    if ((pending & WEIR__IO_PENDING_WRITE) != 0)
        events |= POLLOUT;
    if ((pending & WEIR__IO_PENDING_READ) != 0)
        events |= handle->edge ? POLLIN | POLLRDHUP : POLLIN;
    deliver_ready(handle, events);
    weir__readiness_watch(handle);
}
