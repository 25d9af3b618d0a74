/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream sockets over loop/io.h: one implementation for all backends.
 *
 * A send that is partial or lent (WEIR__IO_LENT) lends memory to the backend until `sent` is
 * called. The front of the queue does not change meanwhile: the channel does not flush before
 * weir__channel_writable, and a closed channel keeps its messages until weir__channel_detached. An
 * error of a send that ends while the channel is being detached is left to the next send.
 */
#include "transport/stream.h"

#include <errno.h>
#include <limits.h>

#include <weir/composite.h>
#include <weir/error.h>
#include <weir/file_range.h>

#include "base/no_stack_protector.h"
#include "channel/channel_stats.h"
#include "os/descriptor.h"
#include "os/system.h"
#include "transport/fd_passing.h"
#include "transport/socket.h"

#define VECTORS_FEW 8 /* enough for nearly every flush */

static weir__stream *stream_of(const weir_channel *channel)
{
    return WEIR_CONTAINER_OF(weir__endpoint_of(channel), weir__stream, base);
}

static weir__stream *stream_of_handle(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, weir__stream, base.handle);
}

/* ---- backend events ---- */

/* While nothing is received: the end of the peer's stream once, errors always. */
static void watch_peer(weir__stream *stream)
{
    weir__io_handle *handle = &stream->base.handle;

    if (weir__channel_options(&stream->base.channel)->report_hangup && stream->connected &&
        weir__io_is_attached(handle) && (handle->wants & WEIR__IO_RECEIVE) == 0)
        weir__io_poll_start(handle, stream->hung_up ? 0 : POLLRDHUP);
}

static void on_connected(weir__io_handle *handle, int err)
{
    weir__stream *stream = stream_of_handle(handle);

    stream->connected = err == 0;
    weir__channel_connected(&stream->base.channel, err);
}

static void update_receive_size(weir__stream *stream, size_t length)
{
    const weir_channel_options *options = weir__channel_options(&stream->base.channel);
    weir__io_handle *handle = &stream->base.handle;

    if (weir__receive_size_update(&stream->receive_size, options, handle->window, length))
        handle->window = (uint32_t)weir__receive_size_size(&stream->receive_size, options);
}

static inline void deliver(weir__stream *stream, weir_buf *buf, size_t length)
{
    weir__stats_received(&stream->base.channel, 1, length);
    weir__channel_fast_received(&stream->base.channel, weir_buf_msg(buf));
}

static __attribute__((noinline)) void adapt_and_deliver(weir__stream *stream,
                                                        const weir__io_block *block, size_t length)
{
    update_receive_size(stream, length);
    deliver(stream, weir__received_buf(block, length), length);
}

/* The usual read, of which nothing is to be adapted or copied, makes no call but the last. */
static void on_received(weir__io_handle *handle, const weir__io_block *block, size_t length)
{
    weir__stream *stream = stream_of_handle(handle);

    if (weir__receive_size_fits(&stream->receive_size, handle->window, length) &&
        !weir__received_is_copied(block, length))
        deliver(stream, weir__received_whole(block, length), length);
    else
        adapt_and_deliver(stream, block, length);
}

static bool keeps_packets_apart(const weir__stream *stream)
{
    return stream->base.channel.transport->socket_type != SOCK_STREAM;
}

/* After a lost message: a read on demand gets the next one. */
static void receive_another(weir__stream *stream)
{
    if (weir__channel_has(&stream->base.channel, WEIR__READING_ONE) &&
        weir__io_is_attached(&stream->base.handle))
        weir__io_receive_start(&stream->base.handle, true);
}

/* A packet, or bytes with descriptors: one at a time. */
static void on_received_message(weir__io_handle *handle, const weir__io_datagram *message,
                                size_t count)
{
    weir__stream *stream = stream_of_handle(handle);

    (void)count;
    if (!keeps_packets_apart(stream))
        update_receive_size(stream, message->length);
    weir__stats_received(&stream->base.channel, 1, message->length);
    if (!weir__fd_passing_deliver(&stream->base.channel, handle, message))
        receive_another(stream);
}

static void on_receive_ended(weir__io_handle *handle, int err)
{
    stream_of_handle(handle)->hung_up = true;
    weir__channel_input_ended(&stream_of_handle(handle)->base.channel, err);
}

static __attribute__((noinline)) void complete_last_read(weir__stream *stream)
{
    weir__channel_read_complete(&stream->base.channel);
    watch_peer(stream);
}

/* A read that goes on can only be stopped by read_stop, which watches the peer itself. */
static void on_read_complete(weir__io_handle *handle)
{
    weir__stream *stream = stream_of_handle(handle);

    if ((handle->wants & WEIR__IO_RECEIVE) == 0)
        complete_last_read(stream);
    else
        weir__channel_read_complete(&stream->base.channel);
}

/* The error of the socket; that of a hang-up without one if both sides have ended. */
static int hangup_error(const weir__stream *stream, unsigned events)
{
    int err = 0;
    size_t length = sizeof(err);

    if ((events & (POLLERR | POLLHUP)) == 0)
        return 0;
    (void)weir__socket_get(stream->base.handle.descriptor, SOL_SOCKET, SO_ERROR, &err, &length);
    if (err == 0 && (events & POLLHUP) != 0 &&
        !weir__channel_has(&stream->base.channel, WEIR__OUTPUT_SHUT))
        err = ECONNRESET;
    return -err;
}

/* Errors and hang-ups cannot be masked: after one that fails nothing, the watch ends. */
static void on_polled(weir__io_handle *handle, unsigned events)
{
    weir__stream *stream = stream_of_handle(handle);
    bool is_first = !stream->hung_up;
    int err = hangup_error(stream, events);

    weir__io_poll_stop(handle);
    stream->hung_up = true;
    if (err < 0 || is_first)
        weir__channel_hung_up(&stream->base.channel, err);
    if ((events & (POLLERR | POLLHUP)) == 0)
        watch_peer(stream);
}

/* A promise listener may have closed the channel, or it is being detached: then nothing follows. */
static __attribute__((noinline)) void continue_flush(weir__io_handle *handle, ssize_t count)
{
    if (weir__io_is_attached(handle))
        weir__channel_writable(&stream_of_handle(handle)->base.channel, count < 0 ? (int)count : 0);
}

/* The usual send is that of a single buffer, with nothing behind it. */
static void on_sent(weir__io_handle *handle, ssize_t count)
{
    weir_channel *channel = &stream_of_handle(handle)->base.channel;

    if (count > 0 && weir__outbound_first_has(&channel->outbound, (size_t)count))
        weir__outbound_fast_advance(channel, (size_t)count);
    else if (count > 0)
        weir__outbound_advance(channel, (size_t)count);
    if (count < 0 || weir__channel_end_send(channel))
        continue_flush(handle, count);
}

static void on_failed(weir__io_handle *handle, int err)
{
    weir__channel_failed(&stream_of_handle(handle)->base.channel, err,
                         "the loop has lost the socket");
}

static void on_detached(weir__io_handle *handle)
{
    weir__channel_detached(&stream_of_handle(handle)->base.channel);
}

static const weir__io_owner owner = {
    .channel = weir__endpoint_channel,
    .connected = on_connected,
    .received = on_received,
    .received_datagrams = on_received_message,
    .receive_ended = on_receive_ended,
    .read_complete = on_read_complete,
    .sent = on_sent,
    .polled = on_polled,
    .failed = on_failed,
    .detached = on_detached,
};

/* ---- creation ---- */

/* Applies the receive options. Packets have no adaptive receive size. */
static void apply_receive_options(weir__stream *stream, const weir_channel_options *options)
{
    weir__io_handle *handle = &stream->base.handle;
    bool is_unix = stream->base.channel.transport->socket_family == AF_UNIX;

    stream->receive_size = weir__receive_size_first(options);
    handle->window = keeps_packets_apart(stream)
                         ? (uint32_t)options->receive_max
                         : (uint32_t)weir__receive_size_size(&stream->receive_size, options);
    handle->exact_window = options->receive_max < WEIR__IO_SMALL;
    handle->reads = weir__reads_per_turn(options);
    handle->unix_socket = is_unix;
    handle->receive_fds = is_unix && options->receive_descriptors;
    handle->datagrams = handle->receive_fds || keeps_packets_apart(stream);
    handle->empty_is_end = handle->datagrams;
}

static int create(const weir__transport *transport, weir__config *config, weir_channel *parent,
                  int descriptor, weir_channel **ret_channel)
{
    weir_channel *channel;
    weir__stream *stream;
    int err = weir__channel_create(transport, config, parent, &channel);

    if (err < 0)
        return err;
    stream = stream_of(channel);
    weir__io_handle_init(&stream->base.handle, descriptor, &owner);
    apply_receive_options(stream, &config->options);
    stream->connected = descriptor >= 0;
    *ret_channel = channel;
    return 0;
}

int weir__stream_create(const weir__transport *transport, const weir_channel_options *options,
                        weir_channel **ret_channel)
{
    weir__config *config;
    int err = weir__config_create(options, &config);

    if (err < 0)
        return err;
    err = create(transport, config, NULL, -1, ret_channel);
    weir__config_release(config);
    return err;
}

/* Sets the options that are not inherited from the listener: for Unix sockets all of them. */
static int configure_accepted(const weir__transport *transport, int descriptor,
                              const weir_channel_options *options)
{
    int err = 0;

    if (transport->socket_family == AF_UNIX)
        err = weir__socket_configure(descriptor, AF_UNIX, options);
    return err == 0 ? weir__socket_set_options(descriptor, options) : err;
}

int weir__stream_adopt(const weir__transport *transport, weir__config *config, weir_channel *parent,
                       int descriptor, weir_channel **ret_channel)
{
    int err = configure_accepted(transport, descriptor, &config->options);

    if (err == 0)
        err = create(transport, config, parent, descriptor, ret_channel);
    if (err < 0)
        (void)weir__descriptor_close(descriptor);
    return err;
}

/* ---- lifecycle ---- */

bool weir__stream_close(weir_channel *channel)
{
    weir__stream *stream = stream_of(channel);

    stream->connected = false;
    return weir__endpoint_close(channel);
}

void weir__stream_reset(weir_channel *channel)
{
    weir__socket_reset_on_close(stream_of(channel)->base.handle.descriptor);
}

/* The end of the stream counts as a byte. */
int64_t weir__stream_unacknowledged(const weir_channel *channel)
{
    int bytes, end = weir__channel_has(channel, WEIR__OUTPUT_SHUT) ? 1 : 0;

    if (weir__sys.outq(stream_of(channel)->base.handle.descriptor, &bytes) < 0)
        return 0;
    return bytes > end ? bytes - end : 0;
}

bool weir__stream_is_active(const weir_channel *channel)
{
    return stream_of(channel)->connected;
}

/* ---- addresses ---- */

int weir__stream_open(weir_channel *channel, const weir_address *address)
{
    return weir__endpoint_open(weir__endpoint_of(channel), weir_address_family(address),
                               channel->transport->socket_type, weir__socket_configure);
}

int weir__stream_bind(weir_channel *channel, const weir_address *local)
{
    weir__stream *stream = stream_of(channel);
    int err = weir__stream_open(channel, local);

    if (err < 0)
        return err;
    return weir__socket_bind(stream->base.handle.descriptor, local, weir__channel_options(channel));
}

int weir__stream_connect(weir_channel *channel, const weir_address *remote,
                         const weir_address *local)
{
    weir__stream *stream = stream_of(channel);
    int err = weir__stream_open(channel, remote);

    if (err == 0 && local != NULL)
        err = weir__stream_bind(channel, local);
    if (err < 0)
        return err;
    weir__io_connect(&stream->base.handle, weir_address_sockaddr(remote), remote->length);
    return 0;
}

/* ---- options ---- */

/* The backend may have to receive in another way. */
static void continue_receiving(weir__io_handle *handle)
{
    if (weir__io_is_attached(handle) && (handle->wants & WEIR__IO_RECEIVE) != 0)
        weir__io_receive_start(handle, (handle->wants & WEIR__IO_ONCE) != 0);
}

int weir__stream_configure(weir_channel *channel)
{
    const weir_channel_options *options = weir__channel_options(channel);
    weir__stream *stream = stream_of(channel);
    int descriptor = stream->base.handle.descriptor;
    weir_address local;
    int err;

    apply_receive_options(stream, options);
    if (descriptor < 0)
        return 0;
    continue_receiving(&stream->base.handle);
    err = weir__socket_local_address(descriptor, &local);
    if (err == 0)
        err = weir__socket_reconfigure(descriptor, weir_address_family(&local), options);
    return err == 0 ? weir__socket_set_options(descriptor, options) : err;
}

int weir__stream_take(weir_channel *channel, int descriptor)
{
    weir__stream *stream = stream_of(channel);
    int err;

    stream->base.handle.descriptor = descriptor;
    err = weir__stream_configure(channel);
    stream->connected = err == 0;
    if (err < 0)
        stream->base.handle.descriptor = -1;
    return err;
}

/* ---- reading ---- */

void weir__stream_read_start(weir_channel *channel, bool once)
{
    weir__io_handle *handle = &stream_of(channel)->base.handle;

    if ((handle->wants & WEIR__IO_POLL) != 0)
        weir__io_poll_stop(handle);
    weir__io_receive_start(handle, once);
}

void weir__stream_read_stop(weir_channel *channel)
{
    weir__stream *stream = stream_of(channel);

    if (weir__io_is_attached(&stream->base.handle))
        weir__io_receive_stop(&stream->base.handle);
    watch_peer(stream);
}

static int shut(weir_channel *channel, int how)
{
    return weir__sys.shutdown(stream_of(channel)->base.handle.descriptor, how) < 0 ? -errno : 0;
}

int weir__stream_shut_output(weir_channel *channel)
{
    return shut(channel, SHUT_WR);
}

int weir__stream_shut_input(weir_channel *channel)
{
    return shut(channel, SHUT_RD);
}

/* ---- writing ---- */

int weir__stream_admit(weir_channel *channel, const weir_msg *msg)
{
    (void)channel;
    if (weir_msg_is(msg, &weir_buf_type) || weir_msg_is(msg, &weir_composite_type) ||
        weir_msg_is(msg, &weir_file_range_type))
        return 0;
    return -EPROTOTYPE;
}

static ssize_t send_range(weir__stream *stream, weir_msg *msg, size_t *ret_length)
{
    weir_file_range *range = weir_file_range_of(msg);

    *ret_length = (size_t)weir_file_range_remaining(range);
    return weir__io_send_file(&stream->base.handle, weir_file_range_descriptor(range),
                              weir_file_range_position(range), *ret_length);
}

/* A partial send counts as complete here: the next send finds out whether there is room. */
static ssize_t send_descriptors(weir__stream *stream, weir_descriptors *descriptors,
                                size_t *ret_length)
{
    ssize_t sent = weir__fd_passing_send(&stream->base.handle, descriptors);

    *ret_length = sent > 0 ? (size_t)sent : 1;
    return sent;
}

/* A separate function because of its large stack frame, which would make the callees miss the
 * cache. */
static __attribute__((noinline)) ssize_t send_many(weir__stream *stream, size_t *ret_length)
{
    struct iovec vectors[IOV_MAX];
    size_t count = weir__outbound_gather(&stream->base.channel, vectors, IOV_MAX, ret_length);

    return weir__io_send(&stream->base.handle, vectors, count);
}

/* Sends once from the front of the queue. Returns the bytes sent, or an error; `*ret_length` is the
 * number of bytes offered. */
static __attribute__((noinline)) ssize_t send_front(weir__stream *stream, size_t *ret_length)
{
    struct iovec vectors[VECTORS_FEW];
    size_t count = weir__outbound_gather(&stream->base.channel, vectors, VECTORS_FEW, ret_length);
    weir_msg *msg;

    if (count == VECTORS_FEW)
        return send_many(stream, ret_length);
    if (count > 0)
        return weir__io_send(&stream->base.handle, vectors, count);
    msg = weir__outbound_current(&stream->base.channel);
    if (weir_descriptors_of(msg) != NULL)
        return send_descriptors(stream, weir_descriptors_of(msg), ret_length);
    if (msg != NULL)
        return send_range(stream, msg, ret_length);
    *ret_length = 0;
    return 0;
}

/* A send was not complete: it has failed, or `sent` continues. */
static __attribute__((noinline)) int stop_flush(weir_channel *channel, ssize_t sent)
{
    if (sent < 0)
        return sent == WEIR__IO_LENT ? WEIR__FLUSH_LENT : (int)sent;
    weir__outbound_advance(channel, (size_t)sent);
    return 0;
}

/* `sends` of writes_per_flush were made before. */
static __attribute__((noinline)) int flush(weir_channel *channel, int sends)
{
    weir__stream *stream = stream_of(channel);
    int budget = weir__channel_options(channel)->writes_per_flush - sends;
    size_t length;
    ssize_t sent;

    stream->base.handle.last_send = weir__channel_phase(channel) == WEIR__SENDING;
    while (weir__outbound_is_sendable(channel)) {
        if (budget-- == 0)
            return 1;
        sent = send_front(stream, &length);
        if (sent < 0 || (size_t)sent < length)
            return stop_flush(channel, sent);
        weir__outbound_advance(channel, (size_t)sent);
    }
    return 0;
}

/* The usual flush: of a single buffer, while the channel is open. */
WEIR__NO_STACK_PROTECTOR int weir__stream_fast_flush(weir_channel *channel)
{
    struct iovec vector;
    ssize_t sent;

    if (weir__channel_has(channel, WEIR__NOT_OPEN | WEIR__QUEUE) ||
        !weir__outbound_fast_gather(&channel->outbound, &vector))
        return flush(channel, 0);
    sent = weir__io_send(&weir__endpoint_of(channel)->handle, &vector, 1);
    if ((size_t)sent != vector.iov_len)
        return stop_flush(channel, sent);
    weir__outbound_fast_advance(channel, vector.iov_len);
    return weir__outbound_has_flushed(&channel->outbound) ? flush(channel, 1) : 0;
}
