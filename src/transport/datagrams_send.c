/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending datagrams: as many messages as fit into a batch, by one call.
 *
 * A message with a segment size is sent in pieces: of as many segments as the kernel makes of one
 * piece (GSO), or of one segment each if it does not. `sent` counts the bytes already sent of the
 * message at the front; only that one can be partly sent.
 *
 * Conversely, consecutive datagrams of equal length to one recipient are one piece, a run: the
 * kernel splits it into the same datagrams, but takes it through its layers once. Lengths that are
 * too long for the path to a recipient are sent one by one from then on.
 *
 * A send error concerns the first piece of a batch, which fails alone; the others are retried. A
 * piece of several segments is retried segment by segment first.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#include <weir/composite.h>

#include "os/system.h"
#include "transport/datagrams.h"
#include "transport/fd_passing.h"

#define PIECES 32
#define VECTORS 64
#define SEGMENTS_MAX 64 /* per piece: the limit of the kernel */
#define PIECE_MAX 65487 /* the longest datagram, less the longest headers */

/* For the segment size and the source address. */
#define CONTROL_SIZE (CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(struct in6_pktinfo)))

struct batch {
    size_t count;
    size_t used; /* of `vectors` */
    size_t lengths[PIECES];
    size_t completes[PIECES]; /* messages that are complete when it is sent */
    bool is_cut[PIECES];      /* the kernel makes the segments */
    size_t run;               /* the last piece takes more datagrams of this length; 0 = none */
    struct mmsghdr messages[PIECES];
    struct iovec vectors[VECTORS];
    _Alignas(struct cmsghdr) char controls[PIECES][CONTROL_SIZE];
    bool has_descriptors; /* there is room for the descriptors of one message */
    weir__fd_passing passing;
};

/* ---- messages ---- */

/* The content; NULL if there is none. */
static weir_msg *content_of(weir_msg *msg)
{
    const weir_datagram *datagram = weir_datagram_of(msg);

    return datagram != NULL ? datagram->content : msg;
}

static bool is_known(const weir_channel *channel, const weir_msg *content)
{
    return content == NULL || weir_msg_is(content, &weir_buf_type) ||
           weir_msg_is(content, &weir_composite_type) ||
           (weir_msg_is(content, &weir_descriptors_type) &&
            channel->transport->socket_family == AF_UNIX);
}

int weir__datagrams_admit(weir_channel *channel, const weir_msg *msg)
{
    const weir_datagram *datagram = weir_datagram_of((weir_msg *)(uintptr_t)msg);

    if (!is_known(channel, content_of((weir_msg *)(uintptr_t)msg)))
        return -EPROTOTYPE;
    if (datagram != NULL && datagram->recipient.length > 0)
        return 0;
    return weir__datagrams_of(channel)->connected ? 0 : -EDESTADDRREQ;
}

/* ---- a piece ---- */

/* The size of the next piece of a message with `left` bytes left. */
static size_t piece_size(const weir__datagrams *self, const weir_datagram *datagram, size_t left,
                         bool is_front)
{
    size_t size = datagram != NULL ? datagram->segment_size : 0;
    size_t segments;

    if (size == 0)
        return left;
    segments = PIECE_MAX / size < SEGMENTS_MAX ? PIECE_MAX / size : SEGMENTS_MAX;
    if (self->segments && !(is_front && self->splits_front) && segments > 1)
        size *= segments;
    return size < left ? size : left;
}

/* Adds all components of a composite, as far as there is room for their vectors. */
static size_t gather_all(struct batch *batch, weir_composite *composite, size_t length)
{
    struct iovec *vectors = &batch->vectors[batch->used];
    size_t count = weir_composite_iovecs(composite, vectors, VECTORS - batch->used);

    for (size_t i = 0; i < count; i++)
        length -= vectors[i].iov_len;
    return length == 0 ? count : 0;
}

/* Adds a composite as one component, consolidating it first if necessary. */
static int gather_one(struct batch *batch, weir_composite *composite, size_t offset, size_t length)
{
    struct iovec *vector = &batch->vectors[batch->used];
    int err = weir_composite_count(composite) > 1 ? weir_composite_consolidate(composite) : 0;

    if (err < 0)
        return err;
    (void)weir_composite_iovecs(composite, vector, 1);
    vector->iov_base = (char *)vector->iov_base + offset;
    vector->iov_len = length;
    return 1;
}

/* Returns the number of vectors of the piece, or an error: -ENOSPC if it is for the next batch. */
static int gather_composite(struct batch *batch, weir_composite *composite, size_t offset,
                            size_t length)
{
    size_t count = 0;

    if (offset == 0 && length == weir_composite_readable(composite))
        count = gather_all(batch, composite, length);
    if (count > 0)
        return (int)count;
    if (weir_composite_count(composite) > 1 && batch->count > 0)
        return -ENOSPC; /* it may fit there without a copy */
    return gather_one(batch, composite, offset, length);
}

static int gather(struct batch *batch, weir_msg *content, size_t offset, size_t length)
{
    weir_descriptors *descriptors = weir_descriptors_of(content);
    weir_buf *buf =
        descriptors != NULL ? weir_descriptors_bytes(descriptors) : weir_buf_of(content);

    if (length == 0)
        return 0;
    if (batch->used == VECTORS)
        return -ENOSPC;
    if (buf == NULL)
        return gather_composite(batch, weir_composite_of(content), offset, length);
    batch->vectors[batch->used] = (struct iovec){
        .iov_base = (uint8_t *)(uintptr_t)weir_buf_bytes(buf) + offset, /* only read */
        .iov_len = length,
    };
    return 1;
}

/* Adds a control message, in memory of CONTROL_SIZE bytes. */
static void add_control(struct msghdr *header, char *memory, int level, int type, const void *data,
                        size_t size)
{
    struct cmsghdr *control = (struct cmsghdr *)(void *)(memory + header->msg_controllen);

    header->msg_control = memory;
    header->msg_controllen += CMSG_SPACE(size);
    memset(control, 0, CMSG_SPACE(size));
    control->cmsg_level = level;
    control->cmsg_type = type;
    control->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(control), data, size);
}

static void ask_for_segments(struct msghdr *header, char *memory, uint16_t size)
{
    add_control(header, memory, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size));
}

/* The route determines the interface, except for link-local addresses. The wildcard address means
 * no source; the kernel rejects that of IPv6 for an IPv4 recipient. */
static void ask_for_source(struct msghdr *header, char *memory, const weir_address *source)
{
    const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)&source->storage;

    if (weir_address_family(source) == AF_INET) {
        const struct in_pktinfo info = {
            .ipi_spec_dst = ((const struct sockaddr_in *)&source->storage)->sin_addr};

        add_control(header, memory, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
    } else if (weir_address_family(source) == AF_INET6 &&
               !IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr)) {
        const struct in6_pktinfo info = {.ipi6_addr = ipv6->sin6_addr,
                                         .ipi6_ifindex = ipv6->sin6_scope_id};

        add_control(header, memory, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
    }
}

static bool is_cut(const weir_datagram *datagram, size_t length)
{
    return datagram != NULL && datagram->segment_size > 0 && length > datagram->segment_size;
}

static int add_piece(struct batch *batch, weir_msg *msg, size_t offset, size_t length)
{
    weir_datagram *datagram = weir_datagram_of(msg);
    struct mmsghdr *message = &batch->messages[batch->count];
    weir_descriptors *descriptors = weir_descriptors_of(content_of(msg));
    int vectors = gather(batch, content_of(msg), offset, length);

    if (vectors < 0)
        return vectors;
    if (descriptors != NULL && batch->has_descriptors)
        return -ENOSPC;
    *message = (struct mmsghdr){
        .msg_hdr = {.msg_iov = &batch->vectors[batch->used], .msg_iovlen = (size_t)vectors}};
    if (datagram != NULL && datagram->recipient.length > 0) {
        message->msg_hdr.msg_name = &datagram->recipient.storage;
        message->msg_hdr.msg_namelen = datagram->recipient.length;
    }
    batch->is_cut[batch->count] = is_cut(datagram, length);
    if (batch->is_cut[batch->count])
        ask_for_segments(&message->msg_hdr, batch->controls[batch->count], datagram->segment_size);
    if (datagram != NULL && datagram->has_source)
        ask_for_source(&message->msg_hdr, batch->controls[batch->count], &datagram->sender);
    if (descriptors != NULL && offset == 0) {
        weir__fd_passing_put(&batch->passing, descriptors, &message->msg_hdr);
        batch->has_descriptors = true;
    }
    batch->lengths[batch->count] = length;
    batch->used += (size_t)vectors;
    batch->count++;
    return 0;
}

/* ---- runs ---- */

/* A kernel without UDP_SEGMENT would send a run as one datagram. */
void weir__datagrams_probe_join(weir__datagrams *self)
{
    int size, descriptor = self->base.handle.descriptor;
    socklen_t length = sizeof(size);

    self->join_max = 0;
    if (self->segments &&
        weir__sys.getsockopt(descriptor, IPPROTO_UDP, UDP_SEGMENT, &size, &length) == 0 &&
        size == 0)
        self->join_max = PIECE_MAX / 2;
}

static bool are_same(const weir_address *one, const weir_address *other)
{
    return one->length == other->length && memcmp(&one->storage, &other->storage, one->length) == 0;
}

/* Content without addresses uses those of the socket. */
static bool have_same_addresses(weir_msg *one, weir_msg *other)
{
    static const weir_datagram plain;
    const weir_datagram *first = weir_datagram_of(one), *second = weir_datagram_of(other);

    first = first != NULL ? first : &plain;
    second = second != NULL ? second : &plain;
    return are_same(&first->recipient, &second->recipient) &&
           first->has_source == second->has_source &&
           (!first->has_source || are_same(&first->sender, &second->sender));
}

/* Plain bytes without a segment size of their own. */
static bool may_be_in_run(weir_msg *msg)
{
    const weir_datagram *datagram = weir_datagram_of(msg);
    weir_msg *content = content_of(msg);

    return content != NULL && weir_msg_is(content, &weir_buf_type) &&
           (datagram == NULL || datagram->segment_size == 0);
}

/* The run that a message added as its own piece begins; 0 = none. */
static size_t run_of(const weir__datagrams *self, weir_msg *msg)
{
    size_t length = may_be_in_run(msg) ? weir_msg_size(msg) : 0;

    return length <= self->join_max ? length : 0;
}

/* All datagrams of a run have the length of the first; the last may be shorter. */
static bool may_join(const struct batch *batch, weir_msg *msg, weir_msg *before)
{
    size_t length, last = batch->count - 1;

    if (batch->run == 0 || !may_be_in_run(msg) || !have_same_addresses(msg, before))
        return false;
    length = weir_msg_size(msg);
    return length > 0 && length <= batch->run && batch->lengths[last] + length <= PIECE_MAX &&
           batch->completes[last] < SEGMENTS_MAX && batch->used < VECTORS;
}

static void join(struct batch *batch, weir_msg *msg)
{
    size_t last = batch->count - 1, length = weir_msg_size(msg);
    struct msghdr *header = &batch->messages[last].msg_hdr;

    batch->used += (size_t)gather(batch, content_of(msg), 0, length); /* one: there is room */
    if (header->msg_iovlen++ == 1)
        ask_for_segments(header, batch->controls[last], (uint16_t)batch->run);
    batch->lengths[last] += length;
    batch->completes[last]++;
    batch->is_cut[last] = true;
    if (length < batch->run)
        batch->run = 0;
}

/* ---- a batch ---- */

/* Adds the pieces of a message from `offset` on; -ENOSPC if not all of them fit. */
static int add_message(const weir__datagrams *self, struct batch *batch, weir_msg *msg,
                       size_t offset, bool is_front)
{
    size_t size = weir_msg_size(msg), length;
    int err;

    do {
        if (batch->count == PIECES)
            return -ENOSPC;
        length = piece_size(self, weir_datagram_of(msg), size - offset, is_front);
        err = add_piece(batch, msg, offset, length);
        if (err < 0)
            return err;
        offset += length;
        batch->completes[batch->count - 1] = offset == size;
    } while (offset < size);
    return 0;
}

static int add_or_join(const weir__datagrams *self, struct batch *batch, weir_msg *const *msgs,
                       size_t i)
{
    int err;

    if (i > 0 && may_join(batch, msgs[i], msgs[i - 1])) {
        join(batch, msgs[i]);
        return 0;
    }
    err = add_message(self, batch, msgs[i], i == 0 ? self->sent : 0, i == 0);
    batch->run = err == 0 ? run_of(self, msgs[i]) : 0;
    return err;
}

/* Fails only with an error of the first message. */
static int fill(weir__datagrams *self, struct batch *batch)
{
    weir_msg *msgs[PIECES];
    size_t count = weir__outbound_peek(&self->base.channel, msgs, PIECES);
    int err = 0;

    batch->count = 0;
    batch->used = 0;
    batch->run = 0;
    batch->has_descriptors = false;
    for (size_t i = 0; i < count && err == 0; i++)
        err = add_or_join(self, batch, msgs, i);
    return batch->count > 0 ? 0 : err;
}

static void drop_front(weir__datagrams *self, int err)
{
    self->sent = 0;
    self->splits_front = false;
    weir__outbound_complete(&self->base.channel, err, NULL);
}

static void complete(weir__datagrams *self, const struct batch *batch, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (batch->completes[i] == 0)
            self->sent += batch->lengths[i];
        for (size_t gone = 0; gone < batch->completes[i]; gone++)
            drop_front(self, 0);
    }
}

/* True if the kernel or the device cannot segment: at all, or this piece. */
static bool refuses_segments(weir__datagrams *self, const struct batch *batch, int err)
{
    if (!self->segments || !batch->is_cut[0])
        return false;
    if (err != -EIO && err != -EINVAL && err != -EMSGSIZE)
        return false;
    if (err == -EIO) {
        self->segments = false;
        self->join_max = 0;
    } else if (batch->completes[0] > 1) {
        self->join_again = self->join_max;
        self->join_max = batch->vectors[0].iov_len - 1;
    } else {
        self->splits_front = true;
    }
    return true;
}

/* A datagram that fails alone, too, says nothing about runs. Otherwise a client with an unreachable
 * address could disable runs for all others. */
static void restore_join_max(weir__datagrams *self)
{
    if (self->join_again > 0)
        self->join_max = self->join_again;
    self->join_again = 0;
}

/* Sends one batch from the front of the queue. Returns 1 after a partial send: `sent`, or attaching
 * the socket again, continues. */
static __attribute__((noinline)) int send_batch(weir__datagrams *self)
{
    struct batch batch;
    ssize_t sent;

    if (!weir__io_is_attached(&self->base.handle))
        return 1;
    sent = fill(self, &batch);
    if (sent == 0) {
        sent = weir__io_send_datagrams(&self->base.handle, batch.messages, batch.count);
        if (sent < 0 && refuses_segments(self, &batch, (int)sent))
            return 0;
    }
    if (sent < 0) {
        restore_join_max(self);
        drop_front(self, (int)sent);
        return 0;
    }
    if (sent > 0) { /* the recipient has room again */
        self->join_again = 0;
        self->room_ns = 0;
    }
    complete(self, &batch, (size_t)sent);
    return (size_t)sent < batch.count;
}

int weir__datagrams_flush(weir_channel *channel)
{
    weir__datagrams *self = weir__datagrams_of(channel);
    int budget = weir__channel_options(channel)->writes_per_flush;
    int result = 0;

    while (result == 0 && weir__outbound_current(channel) != NULL) {
        if (budget-- == 0)
            return 1;
        result = send_batch(self);
    }
    return 0;
}
