/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets are sent in batches, by sendmmsg. An error of one packet fails its write alone; any other
 * error is that of the connection.
 */
#include "transport/unix_seqpacket.h"

#include <errno.h>
#include <limits.h>

#include <weir/composite.h>

#include "transport/endpoint.h"
#include "transport/fd_passing.h"

#define PACKETS_MAX 16 /* per call */

/* ---- messages ---- */

static weir_msg *without_const(const weir_msg *msg)
{
    return (weir_msg *)(uintptr_t)msg; /* only for its type */
}

/* The length; -1 if the type is not supported. */
static int64_t length_of(const weir_msg *msg)
{
    weir_msg *it = without_const(msg);

    if (weir_buf_of(it) != NULL)
        return (int64_t)weir_buf_readable(weir_buf_of(it));
    if (weir_composite_of(it) != NULL)
        return (int64_t)weir_composite_readable(weir_composite_of(it));
    if (weir_descriptors_of(it) != NULL)
        return (int64_t)weir_buf_readable(weir_descriptors_bytes(weir_descriptors_of(it)));
    return -1;
}

int weir__seqpacket_admit(weir_channel *channel, const weir_msg *msg)
{
    const weir_composite *composite = weir_composite_of(without_const(msg));
    int64_t length = length_of(msg);

    (void)channel;
    if (length <= 0)
        return length < 0 ? -EPROTOTYPE : -EINVAL;
    return composite != NULL && weir_composite_count(composite) > IOV_MAX ? -EMSGSIZE : 0;
}

/* ---- sending ---- */

struct batch {
    struct mmsghdr messages[PACKETS_MAX];
    size_t count;
    size_t used; /* of the vectors */
    weir__fd_passing passing;
    struct iovec vectors[IOV_MAX];
};

static void put_bytes(struct batch *batch, const weir_buf *buf)
{
    batch->vectors[batch->used++] =
        (struct iovec){(void *)(uintptr_t)weir_buf_bytes(buf), weir_buf_readable(buf)};
}

/* False if the message does not fit into this batch; the first one always does. */
static bool put_content(struct batch *batch, weir_msg *msg)
{
    weir_composite *composite = weir_composite_of(msg);

    if (composite != NULL) {
        if (weir_composite_count(composite) > IOV_MAX - batch->used)
            return false;
        batch->used +=
            weir_composite_iovecs(composite, batch->vectors + batch->used, IOV_MAX - batch->used);
    } else if (batch->used == IOV_MAX) {
        return false;
    } else {
        put_bytes(batch, weir_buf_of(msg) != NULL
                             ? weir_buf_of(msg)
                             : weir_descriptors_bytes(weir_descriptors_of(msg)));
    }
    return true;
}

/* False if the batch is full: it holds the descriptors of one message. */
static bool put(struct batch *batch, weir_msg *msg)
{
    struct msghdr *header = &batch->messages[batch->count].msg_hdr;
    size_t first = batch->used;

    if (!put_content(batch, msg))
        return false;
    *header = (struct msghdr){.msg_iov = batch->vectors + first, .msg_iovlen = batch->used - first};
    batch->count++;
    if (weir_descriptors_of(msg) == NULL)
        return true;
    weir__fd_passing_put(&batch->passing, weir_descriptors_of(msg), header);
    return false;
}

static void gather(weir_channel *channel, struct batch *batch)
{
    weir_msg *msgs[PACKETS_MAX];
    size_t count = weir__outbound_peek(channel, msgs, PACKETS_MAX);

    batch->count = 0;
    batch->used = 0;
    for (size_t i = 0; i < count && put(batch, msgs[i]); i++) {
    }
}

/* The reason if the error concerns one packet; NULL if it is that of the connection. */
static const char *why_refused(ssize_t err)
{
    switch (err) {
    case -EMSGSIZE:
        return "packet longer than the socket's send buffer";
    case -ETOOMANYREFS:
        return "too many descriptors in flight";
    default:
        return NULL;
    }
}

/* Sends a batch. Returns 1 if there may be more, 0 if there is no room or nothing left, or an
 * error. */
static __attribute__((noinline)) int send_batch(weir_channel *channel)
{
    struct batch batch;
    ssize_t sent;

    gather(channel, &batch);
    if (batch.count == 0)
        return 0;
    sent =
        weir__io_send_datagrams(&weir__endpoint_of(channel)->handle, batch.messages, batch.count);
    if (sent < 0 && why_refused(sent) == NULL)
        return (int)sent;
    if (sent < 0) {
        weir__outbound_complete(channel, (int)sent, why_refused(sent));
        return 1;
    }
    for (ssize_t i = 0; i < sent; i++)
        weir__outbound_complete(channel, 0, NULL);
    return (size_t)sent == batch.count;
}

int weir__seqpacket_flush(weir_channel *channel)
{
    int budget = weir__channel_options(channel)->writes_per_flush;
    int result = 1;

    while (result > 0 && weir__outbound_current(channel) != NULL) {
        if (budget-- == 0)
            return 1;
        result = send_batch(channel);
    }
    return result < 0 ? result : 0;
}
