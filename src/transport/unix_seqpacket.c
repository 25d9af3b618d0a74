/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets are sent several at a time, as sendmmsg takes them. One that the system refuses for what
 * it is fails alone; every other error is the connection's.
 */
#include "transport/unix_seqpacket.h"

#include <errno.h>
#include <limits.h>

#include <weir/composite.h>

#include "transport/endpoint.h"
#include "transport/fd_passing.h"

#define PACKETS_MAX 16 /* in one call */

/* ---- what can be a packet ---- */

static weir_msg *without_const(const weir_msg *msg)
{
    return (weir_msg *)(uintptr_t)msg; /* to ask what it is */
}

/* How many bytes; -1 if it is none of ours. */
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
    weir__fd_passing rights;
    struct iovec vectors[IOV_MAX];
};

static void put_bytes(struct batch *batch, const weir_buf *buf)
{
    batch->vectors[batch->used++] =
        (struct iovec){(void *)(uintptr_t)weir_buf_bytes(buf), weir_buf_readable(buf)};
}

/* False if the message has to wait for the next batch: a first one never has to. */
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

/* False if it is the last: there is room for the descriptors of one. */
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
    weir__fd_passing_put(&batch->rights, weir_descriptors_of(msg), header);
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

/* What the system says of a packet, not of the connection. */
static const char *why_refused(ssize_t err)
{
    switch (err) {
    case -EMSGSIZE:
        return "the packet is longer than the socket's send buffer takes";
    case -ETOOMANYREFS:
        return "too many descriptors are on their way";
    default:
        return NULL;
    }
}

/* Sends a batch: 1 = and there may be more; 0 = there is no room, or no more; or an error. */
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
