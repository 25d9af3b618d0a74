/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending for readiness-based backends: sends at once what the socket takes, and asks for an event
 * only when it is full. The owner keeps the rest and sends it when `sent` reports that the socket
 * is writable.
 */
#include <errno.h>
#include <limits.h>

#include <weir/error.h>

#include "base/no_stack_protector.h"
#include "executor/executor.h"
#include "loop/readiness.h"
#include "os/system.h"

/* A file sent to a fast reader yields to other handles after this number of calls. */
#define FILE_CALLS_MAX 16

/* The rest of a partial send waits until the socket is writable. */
static void wait_writable(weir__io_handle *handle)
{
    handle->wants |= WEIR__IO_SEND;
    weir__readiness_watch(handle);
}

/* The same, but the socket is writable already: `sent` is called in the next turn. */
static void retry_next_turn(weir__io_handle *handle)
{
    handle->wants |= WEIR__IO_SEND;
    weir__io_set_pending(handle, WEIR__IO_PENDING_WRITE);
}

/*
 * Result of a send of several calls, one of which was partial (0) or failed. An error after a
 * success is left to the next send, which begins where it happened.
 */
static ssize_t stop_sending(weir__io_handle *handle, ssize_t total, ssize_t err)
{
    if (err == 0)
        wait_writable(handle);
    else if (total > 0)
        retry_next_turn(handle);
    else
        return err;
    return total;
}

/* A send that is in progress, or a handle that has failed or left, refuses another. */
static bool may_send(const weir__io_handle *handle)
{
    return handle->state == WEIR__IO_ATTACHED &&
           (handle->wants & (WEIR__IO_SEND | WEIR__IO_LENDS)) == 0;
}

static __attribute__((noinline, cold)) int refuse_send(const weir__io_handle *handle)
{
    if (handle->state == WEIR__IO_FAILED)
        return handle->result;
    if (handle->state != WEIR__IO_ATTACHED)
        return WEIR_ECLOSED;
    return -EALREADY;
}

static size_t vector_length(const struct iovec *vector, size_t count)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++)
        length += vector[i].iov_len;
    return length;
}

/* With MSG_MORE the FIN travels in the packet with the last bytes. */
static int send_flags(const weir__io_handle *handle)
{
    return handle->last_send ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL;
}

/* Returns the result of send(2), which is cheaper than sendmsg(2). */
static inline ssize_t send_one(const weir__io_handle *handle, const struct iovec *vector)
{
    weir__counter_add(handle->io->stats.sends, 1);
    return weir__sys.send(handle->descriptor, vector->iov_base, vector->iov_len,
                          send_flags(handle));
}

static ssize_t send_many(const weir__io_handle *handle, const struct iovec *vector, size_t count)
{
    struct iovec *parts = (struct iovec *)(uintptr_t)vector; /* sendmsg does not write to it */
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = count < IOV_MAX ? count : IOV_MAX};

    weir__counter_add(handle->io->stats.sends, 1);
    return weir__sys.sendmsg(handle->descriptor, &header, send_flags(handle));
}

ssize_t weir__readiness_send_now(weir__io_handle *handle, const struct iovec *vector, size_t count)
{
    ssize_t sent;

    do {
        sent = count == 1 ? send_one(handle, vector) : send_many(handle, vector, count);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN ? 0 : -errno;
    return sent;
}

static __attribute__((noinline)) ssize_t send_vector(weir__io_handle *handle,
                                                     const struct iovec *vector, size_t count)
{
    ssize_t total = 0;

    while (count > 0) {
        size_t parts = count < IOV_MAX ? count : IOV_MAX;
        size_t length = vector_length(vector, parts);
        ssize_t sent = weir__readiness_send_now(handle, vector, parts);

        if (sent < 0)
            return stop_sending(handle, total, sent);
        total += sent;
        if ((size_t)sent < length)
            return stop_sending(handle, total, 0);
        vector += parts;
        count -= parts;
    }
    return total;
}

/* After a send of one part that was not sent whole. */
static __attribute__((noinline)) ssize_t send_rest(weir__io_handle *handle,
                                                   const struct iovec *part, ssize_t sent)
{
    if (sent < 0 && errno == EINTR)
        return send_vector(handle, part, 1);
    if (sent < 0 && errno != EAGAIN)
        return -errno;
    return stop_sending(handle, sent > 0 ? sent : 0, 0);
}

ssize_t weir__readiness_send(weir__io_handle *handle, const struct iovec *vector, size_t count)
{
    ssize_t sent;

    if (!may_send(handle))
        return refuse_send(handle);
    if (count != 1)
        return send_vector(handle, vector, count);
    sent = send_one(handle, vector);
    return (size_t)sent == vector->iov_len ? sent : send_rest(handle, vector, sent);
}

ssize_t weir__readiness_send_datagrams(weir__io_handle *handle, struct mmsghdr *messages,
                                       size_t count)
{
    size_t total = 0;

    if (!may_send(handle))
        return refuse_send(handle);
    while (total < count) {
        size_t left = count - total;
        int sent;

        weir__counter_add(handle->io->stats.sends, 1);
        sent = weir__sys.sendmmsg(handle->descriptor, messages + total,
                                  (unsigned)(left < IOV_MAX ? left : IOV_MAX), MSG_NOSIGNAL);
        if (sent >= 0)
            total += (size_t)sent;
        else if (errno != EINTR)
            return stop_sending(handle, (ssize_t)total, errno == EAGAIN ? 0 : -errno);
    }
    return (ssize_t)total;
}

ssize_t weir__readiness_send_file(weir__io_handle *handle, int file, off_t offset, size_t count)
{
    size_t total = 0;

    if (!may_send(handle))
        return refuse_send(handle);
    for (unsigned calls = 0; total < count; calls++) {
        ssize_t sent;

        if (calls == FILE_CALLS_MAX) {
            retry_next_turn(handle);
            break;
        }
        weir__counter_add(handle->io->stats.sends, 1);
        sent = weir__sys.sendfile(handle->descriptor, file, &offset, count - total);
        if (sent == 0)
            return stop_sending(handle, (ssize_t)total, WEIR_ETRUNCATED);
        if (sent > 0)
            total += (size_t)sent;
        else if (errno != EINTR)
            return stop_sending(handle, (ssize_t)total, errno == EAGAIN ? 0 : -errno);
    }
    return (ssize_t)total;
}
