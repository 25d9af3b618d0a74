/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagram sockets over loop/io.h: one implementation for all backends and families. Receiving and
 * sending are in datagrams_receive.c and datagrams_send.c.
 *
 * A socket that the backend has lost is attached again after a delay, as with a listener: one
 * failure does not end a server.
 */
#include "transport/datagrams.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "os/system.h"
#include "transport/socket.h"

#define ROOM_MIN_NS weir_us(50)
#define ROOM_MAX_NS weir_ms(10)

static weir__datagrams *datagrams_of(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, weir__datagrams, base.handle);
}

/* ---- backend events ---- */

static void on_connected(weir__io_handle *handle, int err)
{
    weir__datagrams *self = datagrams_of(handle);

    self->connected = err == 0;
    if (err == 0)
        (void)weir__socket_local_address(handle->descriptor, &self->local);
    weir__channel_connected(&self->base.channel, err);
}

static void on_read_complete(weir__io_handle *handle)
{
    weir__channel_read_complete(&datagrams_of(handle)->base.channel);
}

static void on_time_for_room(weir_timer *timer)
{
    weir__channel_maybe_writable(&WEIR_CONTAINER_OF(timer, weir__datagrams, room)->base.channel);
}

/*
 * POLLOUT of a Unix datagram socket only reports room at the peer that it is connected to. Any
 * other recipient may be full, and there is no event when it has room again: so sending is retried,
 * after increasing delays.
 */
static bool waits_for_recipient(weir__datagrams *self)
{
    const weir_datagram *datagram = weir_datagram_of(weir__outbound_current(&self->base.channel));

    if (!self->base.handle.unix_socket || datagram == NULL || datagram->recipient.length == 0)
        return false;
    self->room_ns = self->room_ns == 0 ? ROOM_MIN_NS : 2 * self->room_ns;
    if (self->room_ns > ROOM_MAX_NS)
        self->room_ns = ROOM_MAX_NS;
    return weir_timer_start(weir__channel_executor(&self->base.channel), &self->room, self->room_ns,
                            on_time_for_room) == 0;
}

static void on_sent(weir__io_handle *handle, ssize_t count)
{
    if (count == 0 && waits_for_recipient(datagrams_of(handle)))
        return;
    weir__channel_writable(&datagrams_of(handle)->base.channel, count < 0 ? (int)count : 0);
}

static void on_failed(weir__io_handle *handle, int err)
{
    weir__datagrams *self = datagrams_of(handle);

    self->lost = true;
    weir__io_detach(handle);
    if (weir__channel_is_connecting(&self->base.channel)) {
        weir__channel_connected(&self->base.channel, err);
        return;
    }
    weir__channel_nonfatal_error(&self->base.channel, err,
                                 "the loop has lost the socket; retrying");
}

static void on_backoff_over(weir_timer *timer);

static void try_again_later(weir__datagrams *self)
{
    weir__backoff_begin(&self->backoff, weir__channel_executor(&self->base.channel),
                        on_backoff_over);
}

static void on_backoff_over(weir_timer *timer)
{
    weir__datagrams *self = WEIR_CONTAINER_OF(timer, weir__datagrams, backoff.timer);

    if (weir__endpoint_attach(&self->base.channel) < 0) {
        try_again_later(self);
        return;
    }
    weir__datagrams_start_receiving(self);
    weir__channel_writable(&self->base.channel, 0);
}

static void on_detached(weir__io_handle *handle)
{
    weir__datagrams *self = datagrams_of(handle);

    if (!self->lost) {
        weir__channel_detached(&self->base.channel);
        return;
    }
    self->lost = false;
    try_again_later(self);
}

static void on_received_datagrams(weir__io_handle *handle, const weir__io_datagram *datagrams,
                                  size_t count)
{
    weir__datagrams *self = datagrams_of(handle);

    weir__backoff_reset(&self->backoff);
    weir__datagrams_receive(self, datagrams, count);
}

static void on_receive_ended(weir__io_handle *handle, int err)
{
    weir__datagrams_receive_failed(datagrams_of(handle), err);
}

static const weir__io_owner owner = {
    .channel = weir__endpoint_channel,
    .connected = on_connected,
    .received_datagrams = on_received_datagrams,
    .receive_ended = on_receive_ended,
    .read_complete = on_read_complete,
    .sent = on_sent,
    .failed = on_failed,
    .detached = on_detached,
};

/* ---- lifecycle ---- */

int weir__datagrams_create(const weir__transport *transport, const weir_channel_options *options,
                           weir_channel **ret_channel)
{
    weir__config *config;
    weir__datagrams *self;
    int err = weir__config_create(options, &config);

    if (err < 0)
        return err;
    err = weir__channel_create(transport, config, NULL, ret_channel);
    if (err == 0) {
        self = weir__datagrams_of(*ret_channel);
        weir__io_handle_init(&self->base.handle, -1, &owner);
        self->base.handle.datagrams = true;
        self->waiting_end = &self->waiting;
        weir__backoff_init(&self->backoff);
        weir_timer_init(&self->room);
        weir__datagrams_apply_receive_options(self, &config->options);
    }
    weir__config_release(config);
    return err;
}

bool weir__datagrams_is_active(const weir_channel *channel)
{
    const weir__datagrams *self = weir__datagrams_of(channel);

    return self->bound || self->connected;
}

/* The backend may have detached it already. */
static void stop_timers(weir__datagrams *self)
{
    weir__backoff_stop(&self->backoff);
    self->lost = false;
    if (weir_timer_is_running(&self->room))
        (void)weir_timer_stop(&self->room);
}

bool weir__datagrams_detach(weir_channel *channel)
{
    stop_timers(weir__datagrams_of(channel));
    return weir__endpoint_detach(channel);
}

bool weir__datagrams_close(weir_channel *channel)
{
    weir__datagrams *self = weir__datagrams_of(channel);

    stop_timers(self);
    self->bound = false;
    self->connected = false;
    self->reads = false;
    weir__datagrams_release_waiting(self);
    /* Relaxed: as for listeners (listener.c). */
    weir__unix_path_end(self->file, atomic_load_explicit(&self->leaves_file, memory_order_relaxed));
    self->file = NULL;
    return weir__endpoint_close(channel);
}

void weir__datagrams_disable_unlink(weir_channel *channel)
{
    atomic_store_explicit(&weir__datagrams_of(channel)->leaves_file, true, memory_order_relaxed);
}

void weir__datagrams_destroy(weir_channel *channel)
{
    weir__datagrams_release_waiting(weir__datagrams_of(channel));
}

/* ---- addresses ---- */

static int open_socket(weir__datagrams *self, const weir_address *address)
{
    int family = weir_address_family(address);
    int err =
        weir__endpoint_open(&self->base, family, SOCK_DGRAM, weir__socket_configure_datagrams);

    self->segments = family == AF_INET || family == AF_INET6;
    if (err == 0)
        weir__datagrams_probe_join(self);
    return err;
}

static int bind_to(weir__datagrams *self, const weir_address *local)
{
    const weir_channel_options *options = weir__channel_options(&self->base.channel);
    int descriptor = self->base.handle.descriptor;

    if (weir_address_family(local) == AF_UNIX)
        return weir__unix_path_bind(descriptor, SOCK_DGRAM, local, options, &self->file);
    return weir__socket_bind_datagrams(descriptor, local, options);
}

int weir__datagrams_bind(weir_channel *channel, const weir_address *local)
{
    weir__datagrams *self = weir__datagrams_of(channel);
    int err = open_socket(self, local);

    if (err == 0)
        err = bind_to(self, local);
    if (err == 0)
        err = weir__socket_local_address(self->base.handle.descriptor, &self->local);
    self->bound = err == 0;
    return err;
}

int weir__datagrams_connect(weir_channel *channel, const weir_address *remote,
                            const weir_address *local)
{
    weir__datagrams *self = weir__datagrams_of(channel);
    int err = open_socket(self, remote);

    if (err == 0 && local != NULL)
        err = weir__datagrams_bind(channel, local);
    if (err == 0 && !weir__io_is_attached(&self->base.handle))
        err = -EBUSY; /* the loop has lost the socket */
    if (err < 0)
        return err;
    weir__io_connect(&self->base.handle, weir_address_sockaddr(remote), remote->length);
    return 0;
}

/* True if the socket still has an address: on a disconnect the kernel takes back a port that it had
 * chosen. */
static bool is_bound(const weir_address *local)
{
    if (weir_address_family(local) == AF_UNIX)
        return local->length > sizeof(sa_family_t);
    return weir_address_port(local) != 0;
}

int weir__datagrams_disconnect(weir_channel *channel)
{
    weir__datagrams *self = weir__datagrams_of(channel);
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    if (!self->connected)
        return -ENOTCONN;
    if (weir__sys.connect(self->base.handle.descriptor, &nobody, sizeof(nobody)) < 0)
        return -errno;
    self->connected = false;
    self->bound = weir__socket_local_address(self->base.handle.descriptor, &self->local) == 0 &&
                  is_bound(&self->local);
    return 0;
}

int weir__datagrams_configure(weir_channel *channel)
{
    weir__datagrams *self = weir__datagrams_of(channel);
    const weir_channel_options *options = weir__channel_options(channel);
    int descriptor = self->base.handle.descriptor, err;
    weir_address local;

    weir__datagrams_apply_receive_options(self, options);
    if (descriptor < 0)
        return 0;
    err = weir__socket_local_address(descriptor, &local);
    if (err == 0)
        err = weir__socket_reconfigure_datagrams(descriptor, weir_address_family(&local), options);
    return err == 0 ? weir__socket_set_options(descriptor, options) : err;
}

int weir__datagrams_take(weir_channel *channel, int descriptor)
{
    weir__datagrams *self = weir__datagrams_of(channel);
    weir_address remote;
    int err;

    self->base.handle.descriptor = descriptor;
    err = weir__datagrams_configure(channel);
    if (err == 0)
        err = weir__socket_local_address(descriptor, &self->local);
    if (err < 0) {
        self->base.handle.descriptor = -1;
        return err;
    }
    self->segments = weir_address_family(&self->local) != AF_UNIX;
    weir__datagrams_probe_join(self);
    self->bound = is_bound(&self->local);
    self->connected = weir__socket_remote_address(descriptor, &remote) == 0;
    return 0;
}
