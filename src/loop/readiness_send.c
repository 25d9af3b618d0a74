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

static int check_send(const weir__io_handle *handle)
{
    if (handle->state == WEIR__IO_FAILED)
        return handle->result;
    if (handle->state != WEIR__IO_ATTACHED)
        return WEIR_ECLOSED;
    return (handle->wants & WEIR__IO_SEND) != 0 ? -EALREADY : 0;
}

static size_t vector_length(const struct iovec *vector, size_t count)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++)
        length += vector[i].iov_len;
    return length;
}

/* With MSG_MORE the FIN travels in the packet with the last bytes. */
static ssize_t send_once(const weir__io_handle *handle, const struct iovec *vector, size_t count)
{
    struct iovec *parts = (struct iovec *)(uintptr_t)vector; /* sendmsg does not write to it */
    int flags = handle->last_send ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL;

    if (count == 1)
        return weir__sys.send(handle->descriptor, vector->iov_base, vector->iov_len, flags);
    return weir__sys.sendmsg(handle->descriptor,
                             &(struct msghdr){.msg_iov = parts, .msg_iovlen = count}, flags);
}

WEIR__NO_STACK_PROTECTOR ssize_t weir__readiness_send_now(weir__io_handle *handle,
                                                          const struct iovec *vector, size_t count)
{
    ssize_t sent;

    if (count > IOV_MAX)
        count = IOV_MAX;
    do {
        weir__counter_add(handle->io->stats.sends, 1);
        sent = send_once(handle, vector, count);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN ? 0 : -errno;
    return sent;
}

ssize_t weir__readiness_send(weir__io_handle *handle, const struct iovec *vector, size_t count)
{
    ssize_t total = 0;
    int err = check_send(handle);

    if (err < 0)
        return err;
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

ssize_t weir__readiness_send_datagrams(weir__io_handle *handle, struct mmsghdr *messages,
                                       size_t count)
{
    size_t total = 0;
    int err = check_send(handle);

    if (err < 0)
        return err;
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
    int err = check_send(handle);

    if (err < 0)
        return err;
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
