/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback is checked against what the peer asked for before it is recorded.
 */
#include "support/loop/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

#define CHUNK_SIZE (64 * 1024)
#define ELEMENTS_MAX 64

/* The part of a peer that the backend uses. */
struct seat {
    weir__io_handle handle;
    struct peer *peer;
};

/* ---- callbacks ---- */

static struct peer *record(weir__io_handle *handle, enum peer_event event)
{
    struct peer *peer = WEIR_CONTAINER_OF(handle, struct seat, handle)->peer;
    struct driver *driver = peer->driver;
    size_t length = strlen(peer->history);

    if (length < PEER_HISTORY_MAX)
        peer->history[length] = (char)event;
    if (!driver->dispatching)
        driver_fail(driver, "'%c' from inside a call", event);
    if ((peer->closed || peer->fails > 0) && event != PEER_DETACHED)
        driver_fail(driver, "'%c' after the end (%s)", event, peer->history);
    if (peer->turn != driver->turn) {
        peer->turn = driver->turn;
        peer->turn_reads = peer->turn_ends = peer->turn_completes = peer->turn_polls = 0;
        weir__list_remove(&peer->notified_link); /* of a turn not made by this driver */
        weir__list_append(&driver->notified, &peer->notified_link);
    }
    driver->callbacks++;
    return peer;
}

static void react(struct peer *peer, enum peer_event event)
{
    if (peer->react != NULL)
        peer->react(peer, event);
}

/* A detaching handle still delivers what the kernel had completed, wanted or not. */
static void expect(struct peer *peer, bool asked_for, enum peer_event event)
{
    if (!asked_for && !peer->detaching)
        driver_fail(peer->driver, "'%c' was not asked for (%s)", event, peer->history);
}

/* A ring calls read_complete after reads in a row, of which there may be several in a turn. */
static bool completes_often(const struct peer *peer)
{
    return peer->driver->backend->io == WEIR_IO_URING;
}

static void count_reads(struct peer *peer, unsigned count)
{
    peer->is_reading = true;
    peer->turn_reads += count;
    if (peer->turn_reads > WEIR__IO_READS_MAX && !peer->detaching)
        driver_fail(peer->driver, "%u reads in a turn", peer->turn_reads);
    if (peer->turn_completes > 0 && !completes_often(peer))
        driver_fail(peer->driver, "a read after read_complete (%s)", peer->history);
}

static void keep_descriptor(struct peer *peer, int descriptor)
{
    if ((fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0 ||
        (fcntl(descriptor, F_GETFD) & FD_CLOEXEC) == 0)
        driver_fail(peer->driver, "an accepted descriptor without its flags");
    if (peer->accepts < PEER_DESCRIPTORS_MAX)
        peer->descriptors[peer->accepts] = descriptor;
    else
        (void)close(descriptor);
    peer->accepts++;
}

static void on_accepted(weir__io_handle *handle, int descriptor, const struct sockaddr *address,
                        socklen_t address_length)
{
    struct peer *peer = record(handle, PEER_ACCEPTED);

    expect(peer, peer->accepting, PEER_ACCEPTED);
    if ((address == NULL) != (address_length == 0) && descriptor >= 0)
        driver_fail(peer->driver, "an address and its length disagree");
    if (descriptor < 0) {
        peer->accept_error = descriptor;
        peer->accepting = false;
        peer->turn_ends++;
    } else {
        count_reads(peer, 1);
        keep_descriptor(peer, descriptor);
    }
    react(peer, PEER_ACCEPTED);
}

static void on_connected(weir__io_handle *handle, int err)
{
    struct peer *peer = record(handle, PEER_CONNECTED);

    expect(peer, peer->connecting, PEER_CONNECTED);
    peer->connecting = false;
    peer->connects++;
    peer->connect_result = err;
    react(peer, PEER_CONNECTED);
}

static void on_received(weir__io_handle *handle, const weir__io_block *block, size_t length)
{
    struct peer *peer = record(handle, PEER_RECEIVED);

    expect(peer, peer->receiving, PEER_RECEIVED);
    count_reads(peer, 1);
    if (length == 0 || length > block->capacity)
        driver_fail(peer->driver, "%zu bytes in a block of %zu", length, block->capacity);
    else if (!stream_check(&peer->in, block->base, length))
        driver_fail(peer->driver, "garbled within %zu bytes after %llu", length,
                    (unsigned long long)peer->bytes);
    peer->receives++;
    peer->bytes += length;
    peer->largest = length > peer->largest ? length : peer->largest;
    if (peer->once)
        peer->receiving = false;
    counted_memory_free(&peer->driver->memory, block);
    react(peer, PEER_RECEIVED);
}

static void on_received_datagrams(weir__io_handle *handle, const weir__io_datagram *datagrams,
                                  size_t count)
{
    struct peer *peer = record(handle, PEER_DATAGRAMS);

    expect(peer, peer->receiving, PEER_DATAGRAMS);
    count_reads(peer, (unsigned)count);
    if (count == 0 || (peer->once && count > WEIR__IO_READS_MAX))
        driver_fail(peer->driver, "%zu datagrams at a time", count);
    for (size_t i = 0; i < count; i++) {
        peer->datagrams++;
        peer->bytes += datagrams[i].length;
        if (datagrams[i].length > datagrams[i].block.capacity)
            driver_fail(peer->driver, "a datagram beyond its block");
        if (peer->on_datagram != NULL)
            peer->on_datagram(peer, &datagrams[i]);
        counted_memory_free(&peer->driver->memory, &datagrams[i].block);
    }
    if (peer->once)
        peer->receiving = false;
    react(peer, PEER_DATAGRAMS);
}

static void on_receive_ended(weir__io_handle *handle, int err)
{
    struct peer *peer = record(handle, PEER_ENDED);

    expect(peer, peer->receiving, PEER_ENDED);
    peer->turn_ends++;
    peer->ends++;
    peer->end_error = err;
    peer->receiving = false;
    react(peer, PEER_ENDED);
}

static void on_read_complete(weir__io_handle *handle)
{
    struct peer *peer = record(handle, PEER_COMPLETE);

    peer->completes++;
    peer->is_reading = false;
    peer->turn_completes++;
    if (peer->turn_completes > 1 && !completes_often(peer))
        driver_fail(peer->driver, "read_complete twice in a turn (%s)", peer->history);
    if (peer->turn_reads + peer->turn_ends == 0)
        driver_fail(peer->driver, "read_complete without a read (%s)", peer->history);
    react(peer, PEER_COMPLETE);
}

static void on_polled(weir__io_handle *handle, unsigned events)
{
    struct peer *peer = record(handle, PEER_POLLED);

    expect(peer, peer->polling != 0, PEER_POLLED);
    if (events == 0 || (events & ~(peer->polling | POLLERR | POLLHUP)) != 0)
        driver_fail(peer->driver, "polled 0x%x, asked for 0x%x", events, peer->polling);
    if (++peer->turn_polls > 1)
        driver_fail(peer->driver, "polled twice in a turn");
    peer->polls++;
    peer->poll_events = events;
    react(peer, PEER_POLLED);
}

static void on_failed(weir__io_handle *handle, int err)
{
    struct peer *peer = record(handle, PEER_FAILED);

    peer->fails++;
    peer->fail_error = err;
    if (err >= 0)
        driver_fail(peer->driver, "failed with %d", err);
    react(peer, PEER_FAILED);
}

static void on_detached(weir__io_handle *handle)
{
    struct peer *peer = record(handle, PEER_DETACHED);

    if (!peer->closed && !peer->detaching)
        driver_fail(peer->driver, "detached, but nobody asked for it");
    if (handle->io != NULL)
        driver_fail(peer->driver, "detached, but still attached to a backend");
    peer->detaches++;
    peer->handle = NULL;
    peer->accepting = peer->connecting = peer->receiving = peer->awaits_writable = false;
    peer->polling = 0;
    peer->lent = 0;
    free(WEIR_CONTAINER_OF(handle, struct seat, handle));
    react(peer, PEER_DETACHED);
}

/* ---- sending ---- */

static void pump(struct peer *peer);

static void on_sent(weir__io_handle *handle, ssize_t count)
{
    struct peer *peer = record(handle, PEER_SENT);

    expect(peer, peer->awaits_writable, PEER_SENT);
    if (count > 0 && (size_t)count > peer->lent)
        driver_fail(peer->driver, "%zd bytes sent of %zu lent", count, peer->lent);
    peer->awaits_writable = false;
    peer->lent = 0;
    peer->sents++;
    peer->last_sent = count;
    if (count < 0) {
        peer->send_error = (int)count;
    } else if (peer->chunk_at < peer->chunk_end) {
        peer->chunk_at += (size_t)count;
        peer->bytes_sent += (uint64_t)count;
    }
    if (count >= 0 && !peer->detaching)
        pump(peer);
    react(peer, PEER_SENT);
}

static size_t total_of(const struct iovec *vector, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++)
        total += vector[i].iov_len;
    return total;
}

static void note_sent(struct peer *peer, ssize_t taken, size_t total, bool lends)
{
    if (taken == -EALREADY)
        return;
    if (taken < 0)
        peer->send_error = (int)taken;
    if (taken > (ssize_t)total)
        driver_fail(peer->driver, "%zd taken of %zu", taken, total);
    if (taken >= 0 && taken < (ssize_t)total) {
        peer->awaits_writable = true;
        peer->lent = lends ? total - (size_t)taken : 0;
    }
}

/* A send that is made later has taken nothing yet. */
ssize_t peer_send_vector(struct peer *peer, const struct iovec *vector, size_t count)
{
    ssize_t taken = weir__io_send(peer->handle, vector, count);

    if (taken == WEIR__IO_LENT)
        taken = 0;
    note_sent(peer, taken, total_of(vector, count), true);
    return taken;
}

ssize_t peer_send_file(struct peer *peer, int file, off_t offset, size_t count)
{
    ssize_t taken = weir__io_send_file(peer->handle, file, offset, count);

    note_sent(peer, taken, count, false);
    return taken;
}

ssize_t peer_send_datagrams(struct peer *peer, struct mmsghdr *messages, size_t count)
{
    ssize_t taken = weir__io_send_datagrams(peer->handle, messages, count);

    note_sent(peer, taken, count, false);
    return taken;
}

static bool refill(struct peer *peer)
{
    size_t count = peer->to_send < CHUNK_SIZE ? (size_t)peer->to_send : CHUNK_SIZE;

    if (peer->chunk_at < peer->chunk_end)
        return true;
    if (count == 0)
        return false;
    free(peer->chunk); /* not lent any more: a sanitizer detects a late read */
    peer->chunk = malloc(count);
    assert_non_null(peer->chunk);
    stream_write(&peer->out, peer->chunk, count);
    peer->to_send -= count;
    peer->chunk_at = 0;
    peer->chunk_end = count;
    return true;
}

/* Splits the rest of the chunk into elements; the last one takes the remainder. */
static size_t split(const struct peer *peer, struct iovec vector[ELEMENTS_MAX])
{
    size_t total = peer->chunk_end - peer->chunk_at;
    size_t count = peer->elements == 0 ? 1 : peer->elements;
    size_t each = total / count;

    for (size_t i = 0; i < count; i++)
        vector[i] = (struct iovec){peer->chunk + peer->chunk_at + i * each, each};
    vector[count - 1].iov_len = total - (count - 1) * each;
    return count;
}

static void pump(struct peer *peer)
{
    struct iovec vector[ELEMENTS_MAX];
    ssize_t taken;

    while (!peer->awaits_writable && peer->send_error == 0 && refill(peer)) {
        taken = peer_send_vector(peer, vector, split(peer, vector));
        if (taken < 0)
            break;
        peer->chunk_at += (size_t)taken;
        peer->bytes_sent += (uint64_t)taken;
    }
}

void peer_send(struct peer *peer, uint64_t count)
{
    peer->to_send += count;
    pump(peer);
}

/* ---- coming and going ---- */

static const weir__io_owner owner = {
    .accepted = on_accepted,
    .connected = on_connected,
    .received = on_received,
    .received_datagrams = on_received_datagrams,
    .receive_ended = on_receive_ended,
    .read_complete = on_read_complete,
    .sent = on_sent,
    .polled = on_polled,
    .failed = on_failed,
    .detached = on_detached,
};

static struct peer *make_peer(struct driver *driver, int descriptor)
{
    struct peer *peer = calloc(1, sizeof(*peer));

    assert_non_null(peer);
    peer->driver = driver;
    peer->descriptor = descriptor;
    peer->remote = -1;
    peer->elements = 1;
    weir__list_append(&driver->peers, &peer->link);
    weir__list_init(&peer->notified_link);
    return peer;
}

static int take_seat(struct peer *peer, struct driver *driver, bool datagrams)
{
    struct seat *seat = malloc(sizeof(*seat));
    int err;

    if (seat == NULL)
        return -ENOMEM;
    seat->peer = peer;
    weir__io_handle_init(&seat->handle, peer->descriptor, &owner);
    seat->handle.datagrams = datagrams;
    err = weir__io_attach(driver->io, &seat->handle);
    if (err < 0) {
        free(seat);
        return err;
    }
    peer->handle = &seat->handle;
    return 0;
}

struct peer *peer_open(struct driver *driver, int descriptor)
{
    struct peer *peer = make_peer(driver, descriptor);

    assert_int_equal(take_seat(peer, driver, false), 0);
    return peer;
}

struct peer *peer_open_datagrams(struct driver *driver, int descriptor)
{
    struct peer *peer = make_peer(driver, descriptor);

    assert_int_equal(take_seat(peer, driver, true), 0);
    return peer;
}

struct peer *peer_open_pair(struct driver *driver, enum pair_kind kind)
{
    bool datagrams = kind == PAIR_UDP || kind == PAIR_UNIX_DATAGRAM || kind == PAIR_UNIX_SEQPACKET;
    struct peer *peer;
    int pair[2];

    socket_pair(kind, pair);
    peer = datagrams ? peer_open_datagrams(driver, pair[0]) : peer_open(driver, pair[0]);
    peer->remote = pair[1];
    peer->handle->unix_socket = kind == PAIR_UNIX_SEQPACKET;
    peer->handle->empty_is_end = kind == PAIR_UNIX_SEQPACKET;
    return peer;
}

int peer_attach(struct peer *peer, struct driver *driver)
{
    peer->driver = driver;
    peer->turn = 0; /* of the other driver */
    peer->detaching = false;
    weir__list_remove(&peer->notified_link);
    weir__list_remove(&peer->link);
    weir__list_append(&driver->peers, &peer->link);
    return take_seat(peer, driver, false);
}

void peer_detach(struct peer *peer)
{
    peer->detaching = true;
    weir__io_detach(peer->handle);
}

void peer_close(struct peer *peer)
{
    if (peer->handle == NULL || peer->closed)
        return;
    peer->closed = true;
    peer->descriptor = -1;
    weir__io_close(peer->handle);
}

void peer_end_turn(struct peer *peer)
{
    if (peer->closed || peer->detaching || peer->fails > 0)
        return;
    if (peer->is_reading)
        driver_fail(peer->driver, "reads without read_complete (%s)", peer->history);
}

void peer_free(struct peer *peer)
{
    unsigned kept = peer->accepts < PEER_DESCRIPTORS_MAX ? peer->accepts : PEER_DESCRIPTORS_MAX;

    weir__list_remove(&peer->notified_link);
    weir__list_remove(&peer->link);
    for (unsigned i = 0; i < kept; i++)
        (void)close(peer->descriptors[i]);
    if (peer->descriptor >= 0)
        (void)close(peer->descriptor);
    peer_remote_close(peer);
    free(peer->chunk);
    free(peer);
}

/* ---- what it asks for ---- */

void peer_accept_start(struct peer *peer)
{
    peer->accepting = true;
    weir__io_accept_start(peer->handle);
}

void peer_accept_stop(struct peer *peer)
{
    peer->accepting = false;
    weir__io_accept_stop(peer->handle);
}

void peer_connect(struct peer *peer, const struct address *address)
{
    peer->connecting = true;
    weir__io_connect(peer->handle, (const struct sockaddr *)&address->storage, address->length);
}

void peer_receive_start(struct peer *peer, bool once)
{
    peer->once = once;
    peer->receiving = true;
    weir__io_receive_start(peer->handle, once);
}

void peer_receive_stop(struct peer *peer)
{
    peer->receiving = false;
    weir__io_receive_stop(peer->handle);
}

void peer_poll_start(struct peer *peer, unsigned events)
{
    peer->polling = events;
    weir__io_poll_start(peer->handle, events);
}

void peer_poll_stop(struct peer *peer)
{
    peer->polling = 0;
    weir__io_poll_stop(peer->handle);
}

/* ---- the other end ---- */

size_t peer_remote_send(struct peer *peer, size_t count)
{
    char memory[4096];
    size_t total = 0;

    while (total < count) {
        struct stream stream = peer->remote_out;
        size_t size = count - total < sizeof(memory) ? count - total : sizeof(memory);
        ssize_t taken;

        stream_write(&stream, memory, size);
        taken = send(peer->remote, memory, size, MSG_NOSIGNAL);
        if (taken <= 0)
            break;
        peer->remote_out.position += (uint64_t)taken;
        total += (size_t)taken;
    }
    return total;
}

size_t peer_remote_receive(struct peer *peer)
{
    char memory[4096];
    size_t total = 0;
    ssize_t count;

    while ((count = recv(peer->remote, memory, sizeof(memory), 0)) > 0) {
        if (!stream_check(&peer->remote_in, memory, (size_t)count))
            driver_fail(peer->driver, "garbled at the other end, before %llu",
                        (unsigned long long)peer->remote_in.position);
        total += (size_t)count;
    }
    return total;
}

void peer_remote_close(struct peer *peer)
{
    if (peer->remote >= 0)
        (void)close(peer->remote);
    peer->remote = -1;
}

void peer_remote_reset(struct peer *peer)
{
    socket_reset(peer->remote);
    peer->remote = -1;
}
