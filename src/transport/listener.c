/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets over loop/io.h.
 *
 * Socket options of the connections are set on the listener, and inherited by accepted sockets: so
 * a connection costs no further call. Unix sockets do not inherit them; setting them on the
 * listener only finds invalid ones before the first connection.
 *
 * Without free descriptors (EMFILE, ENFILE), connections would stay in the backlog, and their
 * clients would wait. So the listener keeps a spare descriptor: it closes that for a moment,
 * accepts the waiting clients, and closes them. Then it pauses.
 *
 * Several loops accept from one socket by a listener each, with a duplicate of its descriptor.
 * Their handles are exclusive: a connection wakes one of the loops that wait. If that one stops
 * accepting before it has accepted the connection, no other loop would know of it: so it reports
 * what it leaves (weir__listener_set_left), and the others look. The file of a Unix socket belongs
 * to the first of the listeners, which was bound. A listener that is alone is not exclusive, nor
 * are those of a server that may share its sockets with other processes: one that ends could take a
 * wake-up along.
 *
 * A socket that the backend has lost, because it was rebuilt or could not watch it, is detached,
 * and attached again after a delay: one failure does not end a server.
 */
#include "transport/listener.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <weir/error.h>
#include <weir/transport.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "channel/channel_stats.h"
#include "loop/loop.h"
#include "loop/readiness.h"
#include "os/descriptor.h"
#include "os/system.h"
#include "transport/socket.h"
#include "transport/stream.h"

#define REFUSED_MAX 64 /* at a time */

static weir__listener *listener_of(const weir_channel *channel)
{
    return WEIR_CONTAINER_OF((weir_channel *)(uintptr_t)channel, weir__listener, channel);
}

static weir__listener *listener_of_handle(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, weir__listener, handle);
}

/* ---- the reserve ---- */

static void open_reserve(weir__listener *listener)
{
    if (listener->reserve < 0)
        listener->reserve = weir__sys.eventfd(0, EFD_CLOEXEC);
}

static void close_reserve(weir__listener *listener)
{
    if (listener->reserve >= 0)
        (void)weir__descriptor_close(listener->reserve);
    listener->reserve = -1;
}

static unsigned refuse_clients(weir__listener *listener)
{
    unsigned count = 0;
    int client;

    close_reserve(listener);
    while (count < REFUSED_MAX && (client = weir__sys.accept4(listener->handle.descriptor, NULL,
                                                              NULL, SOCK_CLOEXEC)) >= 0) {
        (void)weir__descriptor_close(client);
        count++;
    }
    open_reserve(listener);
    return count;
}

/* ---- backend events ---- */

static int attach_socket(weir__listener *listener)
{
    weir__io *io = weir__loop_io(weir__channel_executor(&listener->channel));

    if (listener->handle.descriptor < 0 || listener->handle.io != NULL)
        return 0;
    return weir__io_attach(io, &listener->handle);
}

static void on_backoff_over(weir_timer *timer);

/* After a failure, accepting has stopped: resumes after a delay. */
static void pause_accepting(weir__listener *listener)
{
    weir__backoff_begin(&listener->backoff, weir__channel_executor(&listener->channel),
                        on_backoff_over);
}

static void on_backoff_over(weir_timer *timer)
{
    weir__listener *listener = WEIR_CONTAINER_OF(timer, weir__listener, backoff.timer);

    open_reserve(listener);
    if (attach_socket(listener) < 0)
        pause_accepting(listener);
    else if (listener->reads && weir__io_is_attached(&listener->handle))
        weir__io_accept_start(&listener->handle);
}

/* The address, for the log. */
static const char *place_of(const weir__listener *listener, char *buffer, size_t size)
{
    weir_address local;

    if (weir__socket_local_address(listener->handle.descriptor, &local) < 0)
        return "-";
    return weir_address_format(&local, buffer, size);
}

/* Connections that wait now may have woken no other listener; later ones do not wake this one. */
static void stop_accepting(weir__listener *listener)
{
    struct pollfd poll = {.fd = listener->handle.descriptor, .events = POLLIN};

    if (!weir__io_is_attached(&listener->handle))
        return;
    weir__io_accept_stop(&listener->handle);
    if (listener->left != NULL && listener->reads &&
        weir__sys.ppoll(&poll, 1, &(struct timespec){0}, NULL) > 0)
        listener->left(listener->left_arg);
}

static void accept_failed(weir__listener *listener, int err)
{
    unsigned count = err == -EMFILE || err == -ENFILE ? refuse_clients(listener) : 0;
    static weir__log_limit limit;
    char place[WEIR_ADDRESS_TEXT_SIZE];
    weir__log_note note;

    pause_accepting(listener);
    weir__stats_count(&listener->channel, WEIR__STAT_TURNED_AWAY, count);
    if (weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("listener", place_of(listener, place, sizeof(place)),
                   "cannot accept: %s; %u clients refused, pausing for %lld ms%s",
                   weir_error_text(err), count, (long long)(listener->backoff.length_ns / 1000000),
                   note.text);
    weir__channel_nonfatal_error(&listener->channel, err, "accept failed");
}

static void adopt(weir__listener *listener, int descriptor)
{
    weir_channel *child;
    int err = weir__stream_adopt(listener->child, listener->child_config, &listener->channel,
                                 descriptor, &child);

    if (err < 0) {
        weir__channel_nonfatal_error(&listener->channel, err,
                                     "cannot create a channel for a connection");
        return;
    }
    if (listener->once) /* first: a handler may ask for the next */
        weir__listener_read_stop(&listener->channel);
    (void)weir__channel_received(&listener->channel, weir__channel_msg(child));
}

static void on_accepted(weir__io_handle *handle, int descriptor, const struct sockaddr *peer,
                        socklen_t peer_length)
{
    weir__listener *listener = listener_of_handle(handle);

    (void)peer;
    (void)peer_length;
    if (descriptor < 0) {
        accept_failed(listener, descriptor);
    } else {
        weir__backoff_reset(&listener->backoff);
        adopt(listener, descriptor);
    }
}

static void on_read_complete(weir__io_handle *handle)
{
    weir__channel_read_complete(&listener_of_handle(handle)->channel);
}

static void on_failed(weir__io_handle *handle, int err)
{
    weir__listener *listener = listener_of_handle(handle);
    char place[WEIR_ADDRESS_TEXT_SIZE];

    listener->lost = true;
    weir__io_detach(handle);
    weir__warn_limited("listener", place_of(listener, place, sizeof(place)),
                       "the loop has lost the socket, retrying: %s", weir_error_text(err));
    weir__channel_nonfatal_error(&listener->channel, err, "the loop has lost the socket; retrying");
}

static void on_detached(weir__io_handle *handle)
{
    weir__listener *listener = listener_of_handle(handle);

    if (!listener->lost) {
        weir__channel_detached(&listener->channel);
        return;
    }
    listener->lost = false;
    pause_accepting(listener);
}

static struct weir_channel *channel_of(weir__io_handle *handle)
{
    return &listener_of_handle(handle)->channel;
}

static const weir__io_owner owner = {
    .channel = channel_of,
    .accepted = on_accepted,
    .read_complete = on_read_complete,
    .failed = on_failed,
    .detached = on_detached,
};

/* ---- creation ---- */

int weir__listener_create(const weir__transport *transport, const weir__transport *child,
                          const weir_channel_options *options,
                          const weir_channel_options *child_options, weir_channel **ret_channel)
{
    weir__config *config = NULL, *child_config = NULL;
    weir__listener *listener;
    int err = weir__config_create(options, &config);

    if (err == 0)
        err = weir__config_create(child_options, &child_config);
    if (err == 0)
        err = weir__channel_create(transport, config, NULL, ret_channel);
    weir__config_release(config);
    if (err < 0) {
        weir__config_release(child_config);
        return err;
    }
    listener = listener_of(*ret_channel);
    weir__io_handle_init(&listener->handle, -1, &owner);
    (void)weir__listener_configure(*ret_channel);
    listener->child = child;
    listener->child_config = child_config;
    listener->reserve = -1;
    weir__backoff_init(&listener->backoff);
    return 0;
}

bool weir__listener_can_share(const weir_channel *channel)
{
    return channel->transport->attach == weir__listener_attach;
}

int weir__listener_create_sharing(weir_channel *first, const weir_channel_options *options,
                                  const weir_channel_options *child_options, bool exclusive,
                                  weir_channel **ret_channel)
{
    int err = weir__listener_create(first->transport, listener_of(first)->child, options,
                                    child_options, ret_channel);

    if (err < 0)
        return err;
    listener_of(first)->handle.exclusive = exclusive;
    listener_of(*ret_channel)->handle.exclusive = exclusive;
    return 0;
}

/* The options of the socket were set when it was bound. */
int weir__listener_share(weir_channel *channel, weir_channel *first)
{
    weir__listener *listener = listener_of(channel);
    int descriptor, err = weir_channel_duplicate_descriptor(first, &descriptor);

    if (err < 0)
        return err;
    listener->handle.descriptor = descriptor;
    listener->listens = true;
    open_reserve(listener);
    return 0;
}

int weir__listener_configure(weir_channel *channel)
{
    listener_of(channel)->handle.reads = weir__reads_per_turn(weir__channel_options(channel));
    return 0;
}

void weir__listener_destroy(weir_channel *channel)
{
    weir__listener *listener = listener_of(channel);

    close_reserve(listener);
    weir__config_release(listener->child_config);
}

/* ---- on a loop ---- */

int weir__listener_attach(weir_channel *channel)
{
    return attach_socket(listener_of(channel));
}

bool weir__listener_detach(weir_channel *channel)
{
    weir__listener *listener = listener_of(channel);

    weir__backoff_stop(&listener->backoff);
    listener->lost = false;
    if (listener->handle.io == NULL)
        return true;
    stop_accepting(listener);
    weir__io_detach(&listener->handle);
    return false;
}

/* Removes the file while the socket still accepts: so no other process takes it for a stale one. */
static void remove_file(weir__listener *listener)
{
    /* Relaxed: weir_unix_disable_unlink is called before the close, and the caller orders the two.
     */
    weir__unix_path_end(listener->file,
                        atomic_load_explicit(&listener->leaves_file, memory_order_relaxed));
    listener->file = NULL;
}

void weir__listener_disable_unlink(weir_channel *channel)
{
    atomic_store_explicit(&listener_of(channel)->leaves_file, true, memory_order_relaxed);
}

bool weir__listener_close(weir_channel *channel)
{
    weir__listener *listener = listener_of(channel);

    weir__backoff_stop(&listener->backoff);
    remove_file(listener);
    close_reserve(listener);
    listener->lost = false;
    listener->listens = false;
    if (listener->handle.io != NULL) {
        stop_accepting(listener);
        weir__io_close(&listener->handle);
        return false;
    }
    if (listener->handle.descriptor >= 0)
        (void)weir__descriptor_close(listener->handle.descriptor);
    listener->handle.descriptor = -1;
    return true;
}

bool weir__listener_is_active(const weir_channel *channel)
{
    return listener_of(channel)->listens;
}

/* ---- binding ---- */

static int bind_to(weir__listener *listener, int descriptor, const weir_address *local)
{
    const weir_channel_options *options = weir__channel_options(&listener->channel);

    if (weir_address_family(local) == AF_UNIX)
        return weir__unix_path_bind(descriptor, listener->child->socket_type, local, options,
                                    &listener->file);
    return weir__socket_bind(descriptor, local, options);
}

static int listen_on(weir__listener *listener, int descriptor, const weir_address *local)
{
    const weir_channel_options *options = weir__channel_options(&listener->channel);
    int err = weir__socket_configure(descriptor, weir_address_family(local),
                                     &listener->child_config->options);

    if (err == 0)
        err = weir__socket_set_options(descriptor, options);
    if (err == 0)
        err = bind_to(listener, descriptor, local);
    if (err == 0 && weir__sys.listen(descriptor, options->backlog) < 0)
        err = -errno;
    return err == 0 ? weir__unix_path_check(listener->file) : err;
}

int weir__listener_bind(weir_channel *channel, const weir_address *local)
{
    weir__listener *listener = listener_of(channel);
    int descriptor, err;

    if (listener->handle.descriptor >= 0)
        return -EINVAL;
    if (!weir__endpoint_knows(channel, weir_address_family(local)))
        return -EAFNOSUPPORT;
    err =
        weir__socket_create(weir_address_family(local), listener->child->socket_type, &descriptor);
    if (err < 0)
        return err;
    err = listen_on(listener, descriptor, local);
    if (err < 0) {
        remove_file(listener);
        (void)weir__descriptor_close(descriptor);
        return err;
    }
    weir__channel_lock(channel); /* other threads may read it */
    listener->handle.descriptor = descriptor;
    weir__channel_unlock(channel);
    listener->listens = true;
    open_reserve(listener);
    return attach_socket(listener);
}

/* The backlog was set by the process that called listen. */
int weir__listener_take(weir_channel *channel, int descriptor)
{
    weir__listener *listener = listener_of(channel);
    weir_address local;
    int err = weir__socket_local_address(descriptor, &local);

    if (err == 0)
        err = weir__socket_reconfigure(descriptor, weir_address_family(&local),
                                       &listener->child_config->options);
    if (err == 0)
        err = weir__socket_set_options(descriptor, weir__channel_options(channel));
    if (err < 0)
        return err;
    listener->handle.descriptor = descriptor;
    listener->listens = true;
    open_reserve(listener);
    return 0;
}

int weir__listener_descriptor(const weir_channel *channel)
{
    return listener_of(channel)->handle.descriptor;
}

int weir__listener_local_address(weir_channel *channel, weir_address *ret_address)
{
    return weir__socket_local_address(listener_of(channel)->handle.descriptor, ret_address);
}

int weir__listener_set_socket_option(weir_channel *channel, int level, int name, const void *value,
                                     size_t length)
{
    return weir__socket_set(listener_of(channel)->handle.descriptor, level, name, value, length);
}

int weir__listener_get_socket_option(weir_channel *channel, int level, int name, void *ret_value,
                                     size_t *length)
{
    return weir__socket_get(listener_of(channel)->handle.descriptor, level, name, ret_value,
                            length);
}

/* ---- reading ---- */

void weir__listener_read_start(weir_channel *channel, bool once)
{
    weir__listener *listener = listener_of(channel);

    listener->reads = true;
    listener->once = once;
    if (weir__io_is_attached(&listener->handle) && !weir__backoff_is_running(&listener->backoff))
        weir__io_accept_start(&listener->handle);
}

void weir__listener_read_stop(weir_channel *channel)
{
    weir__listener *listener = listener_of(channel);

    stop_accepting(listener);
    listener->reads = false;
}

/* ---- what waits ---- */

void weir__listener_set_left(weir_channel *channel, weir__listener_left_fn *left, void *arg)
{
    listener_of(channel)->left = left;
    listener_of(channel)->left_arg = arg;
}

void weir__listener_look(weir_channel *channel)
{
    weir__listener *listener = listener_of(channel);

    if (listener->reads && weir__io_is_attached(&listener->handle) &&
        !weir__backoff_is_running(&listener->backoff))
        weir__io_set_pending(&listener->handle, WEIR__IO_PENDING_READ);
}

void weir__listener_accept_waiting(weir_channel *channel)
{
    weir__listener *listener = listener_of(channel);
    int left = weir__channel_options(channel)->backlog, descriptor;

    if (!listener->reads || !weir__io_is_attached(&listener->handle))
        return;
    while (left-- > 0) {
        descriptor = weir__sys.accept4(listener->handle.descriptor, NULL, NULL,
                                       SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor >= 0)
            adopt(listener, descriptor);
        else if (!weir__readiness_is_connection_error(-errno))
            break;
    }
    weir__channel_read_complete(channel);
}
